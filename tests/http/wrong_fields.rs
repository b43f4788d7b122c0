//! A response names every wrong field of a request, whichever kind of rule it breaks: its form, its range, another
//! field, or stored data. One table over every operation that creates or changes something.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::http::desk::{As, Desk};

/// An unused id.
const NONE: &str = "00000000-0000-4000-8000-000000000001";

/// A request with wrong fields, and their names in the order of the response.
struct Case {
    operation: &'static str,
    who: As,
    method: &'static str,
    path: String,
    body: Value,
    wrong: &'static [&'static str],
}

/// Resources for the table beyond the directory of the desk.
struct Things {
    agent: String,
    ai_price: String,
    cost_rate: String,
    fx_rate: String,
    key: String,
    room: String,
    sell_rate: String,
    user: String,
    webhook: String,
}

impl Things {
    fn of(desk: &Desk) -> Self {
        let made = |who, path: &str, body: Value| {
            let made = desk.post(who, path, body);
            assert_eq!(made.status, 201, "{path}: {}", made.body);
            made.body["id"].as_str().unwrap().to_owned()
        };
        let price = json!({"prefix": "+44", "per_minute": "0.01", "currency": "EUR"});
        let with = |mut body: Value, field: &str, value: &str| {
            body[field] = json!(value);
            body
        };
        let user = made(As::Acme, "/users", json!({"email": "ada@acme.test", "role": "agent"}));
        let agent = json!({"name": "Ada", "kind": "human", "user_id": user,
            "extension_id": desk.extension("1001")});
        made(As::Acme, "/conference-rooms", json!({"name": "Other", "number": "201"}));
        Self {
            agent: {
                made(As::Acme, "/agents", agent);
                made(As::Acme, "/agents", json!({"name": "Grace", "kind": "human"}))
            },
            ai_price: made(
                As::Operator,
                "/ai-prices",
                json!({"kind": "sell", "provider": "openai", "model": "gpt*", "text_input_per_million": "1",
                    "output_per_million": "1", "currency": "EUR"}),
            ),
            cost_rate: made(
                As::Operator,
                "/cost-rates",
                with(price.clone(), "trunk_id", &desk.trunk("acme carrier")),
            ),
            fx_rate: made(As::Operator, "/fx-rates", json!({"from": "EUR", "to": "USD", "rate": "1.1"})),
            key: made(
                As::Acme,
                "/api-keys",
                json!({"name": "crm", "permissions": ["calls:read"], "allow": ["192.0.2.1"]}),
            ),
            room: made(As::Acme, "/conference-rooms", json!({"name": "Stand-up", "number": "200"})),
            sell_rate: made(
                As::Operator,
                "/sell-rates",
                with(price, "organisation_id", &desk.organisation("Acme")),
            ),
            user,
            webhook: made(
                As::Acme,
                "/webhooks",
                json!({"url": "https://crm.example.com/hook", "events": ["call.ended"]}),
            ),
        }
    }
}

#[test]
fn every_operation_names_every_wrong_field() {
    let desk = Desk::start();
    let things = Things::of(&desk);
    let cases: Vec<Case> = [directory(&desk, &things), people(&desk, &things), money(&desk, &things)]
        .into_iter()
        .flatten()
        .collect();
    for Case { operation, who, method, path, body, wrong } in &cases {
        let answer = desk.send(*who, method, path, Some(body.clone()));
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{operation}: {}", answer.body);
        let fields = answer.body["error"]["fields"].as_array().unwrap();
        let named: Vec<&str> = fields.iter().map(|field| field["field"].as_str().unwrap()).collect();
        assert_eq!(named, *wrong, "{operation}: {}", answer.body);
    }
    let tested: BTreeSet<&str> = cases.iter().map(|case| case.operation).collect();
    let document = desk.get(As::Operator, "/openapi.json").body;
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
    let names =
        operations.filter(|operation| operation["requestBody"]["content"]["application/json"].is_object());
    let names = names.map(|operation| operation["operationId"].as_str().unwrap());
    let written = ["create", "change", "set"];
    let missing: Vec<&str> = names
        .filter(|name| written.iter().any(|word| name.starts_with(word)))
        .filter(|name| *name != "changePassword" && !tested.contains(name))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

fn directory(desk: &Desk, things: &Things) -> Vec<Case> {
    let own = desk.organisation("Acme");
    let extension = format!("/extensions/{}", desk.extension("1002"));
    let room = format!("/conference-rooms/{}", things.room);
    vec![
        Case {
            operation: "createOrganisation",
            who: As::Operator,
            method: "POST",
            path: "/organisations".to_owned(),
            body: json!({"name": "Acme", "sip_domain": "bolt.test", "currency": "euro",
                "call_info_secret": "0123456789abcdef"}),
            wrong: &["name", "sip_domain", "currency", "call_info_url"],
        },
        Case {
            operation: "changeOrganisation",
            who: As::Operator,
            method: "PATCH",
            path: format!("/organisations/{own}"),
            body: json!({"name": "Bolt", "credit": "-1", "call_info_secret": "0123456789abcdef"}),
            wrong: &["name", "credit", "call_info_url"],
        },
        Case {
            operation: "setMessageWaiting",
            who: As::Acme,
            method: "PUT",
            path: format!("{extension}/message-waiting"),
            body: json!({"new": 1, "old": -1, "urgent_new": 2, "colour": "red"}),
            wrong: &["old", "urgent_new", "colour"],
        },
        Case {
            operation: "createExtension",
            who: As::Acme,
            method: "POST",
            path: "/extensions".to_owned(),
            body: json!({"number": "1001", "team_id": desk.foreign_team(), "name": "correct horse",
                "password": "correct horse", "srtp": "yes",
                "forwarding": {"always": "1001", "busy": "99", "no_answer": "x", "no_answer_seconds": 1}}),
            wrong: &[
                "number",
                "team_id",
                "password",
                "srtp",
                "forwarding.always",
                "forwarding.busy",
                "forwarding.no_answer",
                "forwarding.no_answer_seconds",
            ],
        },
        Case {
            operation: "changeExtension",
            who: As::Acme,
            method: "PATCH",
            path: extension,
            body: json!({"number": "1001", "team_id": NONE, "password": "Grace",
                "forwarding": {"busy": "1001", "unregistered": "99"}}),
            wrong: &["number", "team_id", "password", "forwarding.busy", "forwarding.unregistered"],
        },
        Case {
            operation: "createNumber",
            who: As::Acme,
            method: "POST",
            path: "/numbers".to_owned(),
            body: json!({"number": "+442071230000", "destination": "extension",
                "destination_id": desk.extension("2001"), "colour": 1}),
            wrong: &["number", "destination_id", "colour"],
        },
        Case {
            operation: "changeNumber",
            who: As::Acme,
            method: "PATCH",
            path: format!("/numbers/{}", desk.number()),
            body: json!({"number": "207", "destination": "conference", "destination_id": NONE}),
            wrong: &["number", "destination_id"],
        },
        Case {
            operation: "createTrunk",
            who: As::Acme,
            method: "POST",
            path: "/trunks".to_owned(),
            body: json!({"name": "shared carrier", "accept_from": ["10.0.0.0/24"], "priority": -1,
                "register": true, "backup_addresses": ["sip:8.8.8.8"], "outbound_numbers": "national"}),
            wrong: &[
                "name",
                "accept_from[0]",
                "priority",
                "register",
                "backup_addresses",
                "outbound_numbers",
            ],
        },
        Case {
            operation: "changeTrunk",
            who: As::Acme,
            method: "PATCH",
            path: format!("/trunks/{}", desk.trunk("acme carrier")),
            body: json!({"name": "bolt carrier", "address": "sip:10.0.0.1", "progress_seconds": 1,
                "register": true}),
            wrong: &["name", "address", "progress_seconds", "register"],
        },
        Case {
            operation: "createConferenceRoom",
            who: As::Acme,
            method: "POST",
            path: "/conference-rooms".to_owned(),
            body: json!({"name": "", "number": "200", "participant_pin": "1234", "moderator_pin": "1234"}),
            wrong: &["name", "number", "moderator_pin"],
        },
        Case {
            operation: "changeConferenceRoom",
            who: As::Acme,
            method: "PATCH",
            path: room.clone(),
            body: json!({"name": "", "number": "201", "wait_for_moderator": true}),
            wrong: &["name", "number", "wait_for_moderator", "moderator_pin"],
        },
        Case {
            operation: "setConferenceRoomMembers",
            who: As::Acme,
            method: "PUT",
            path: format!("{room}/members"),
            body: json!({"items": [{"extension_id": desk.extension("2001")}, {"extension_id": "x"},
                {"extension_id": desk.extension("1001")}, {"extension_id": NONE}]}),
            wrong: &["items[0].extension_id", "items[1].extension_id", "items[3].extension_id"],
        },
        Case {
            operation: "setConferenceRoomExemptions",
            who: As::Acme,
            method: "PUT",
            path: format!("{room}/exemptions"),
            body: json!({"items": [{"extension_id": NONE, "role": "chair"},
                {"extension_id": desk.extension("1001"), "role": "participant"}]}),
            wrong: &["items[0].extension_id", "items[0].role"],
        },
    ]
}

fn people(desk: &Desk, things: &Things) -> Vec<Case> {
    let extension = desk.extension("1001");
    vec![
        Case {
            operation: "createTeam",
            who: As::Operator,
            method: "POST",
            path: "/teams".to_owned(),
            body: json!({"name": "support", "organisation_id": desk.organisation("Acme"), "colour": 1}),
            wrong: &["name", "colour"],
        },
        Case {
            operation: "changeTeam",
            who: As::Acme,
            method: "PATCH",
            path: format!("/teams/{}", desk.team()),
            body: json!({"name": "", "colour": 1}),
            wrong: &["name", "colour"],
        },
        Case {
            operation: "createAgent",
            who: As::Acme,
            method: "POST",
            path: "/agents".to_owned(),
            body: json!({"name": "", "kind": "virtual", "team_id": NONE, "extension_id": extension,
                "user_id": things.user}),
            wrong: &["name", "team_id", "extension_id", "user_id", "user_id"],
        },
        Case {
            operation: "changeAgent",
            who: As::Acme,
            method: "PATCH",
            path: format!("/agents/{}", things.agent),
            body: json!({"team_id": desk.foreign_team(), "extension_id": extension, "user_id": NONE}),
            wrong: &["team_id", "extension_id", "user_id"],
        },
        Case {
            operation: "createUser",
            who: As::Acme,
            method: "POST",
            path: "/users".to_owned(),
            body: json!({"email": "ada@acme.test", "role": "king", "password": "ada@acme.test",
                "team_id": NONE}),
            wrong: &["email", "role", "password", "team_id"],
        },
        Case {
            operation: "changeUser",
            who: As::Acme,
            method: "PATCH",
            path: format!("/users/{}", things.user),
            body: json!({"email": "supervisor@acme.test", "team_id": desk.foreign_team(), "name": ""}),
            wrong: &["email", "team_id", "name"],
        },
        Case {
            operation: "createApiKey",
            who: As::Acme,
            method: "POST",
            path: "/api-keys".to_owned(),
            body: json!({"name": "crm", "allow": ["0.0.0.0/0"], "rate_per_minute": 0}),
            wrong: &["name", "allow[0]", "rate_per_minute", "permissions"],
        },
        Case {
            operation: "changeApiKey",
            who: As::Acme,
            method: "PATCH",
            path: format!("/api-keys/{}", things.key),
            body: json!({"name": "reader", "permissions": ["fly"], "rate_per_minute": 0}),
            wrong: &["name", "permissions[0]", "rate_per_minute"],
        },
        Case {
            operation: "createWebhook",
            who: As::Operator,
            method: "POST",
            path: "/webhooks".to_owned(),
            body: json!({"organisation_id": NONE, "url": "http://10.0.0.1", "events": []}),
            wrong: &["organisation_id", "url", "events"],
        },
        Case {
            operation: "changeWebhook",
            who: As::Acme,
            method: "PATCH",
            path: format!("/webhooks/{}", things.webhook),
            body: json!({"url": "http://10.0.0.1", "events": ["x y"], "active": 1}),
            wrong: &["url", "events[0]", "active"],
        },
    ]
}

fn money(desk: &Desk, things: &Things) -> Vec<Case> {
    let price = json!({"prefix": "44x", "per_minute": "-1", "currency": "EUR"});
    let with = |field: &str, value: &str| {
        let mut body = price.clone();
        body[field] = json!(value);
        body
    };
    let one = |operation, method, path: String, body, wrong| {
        let who = As::Operator;
        Case { operation, who, method, path, body, wrong }
    };
    vec![
        one(
            "createSellRate",
            "POST",
            "/sell-rates".to_owned(),
            with("organisation_id", NONE),
            &["prefix", "per_minute", "organisation_id"],
        ),
        one(
            "changeSellRate",
            "PATCH",
            format!("/sell-rates/{}", things.sell_rate),
            json!({"prefix": "44x", "per_minute": "-1"}),
            &["prefix", "per_minute"],
        ),
        one(
            "createCostRate",
            "POST",
            "/cost-rates".to_owned(),
            with("trunk_id", NONE),
            &["prefix", "per_minute", "trunk_id"],
        ),
        one(
            "changeCostRate",
            "PATCH",
            format!("/cost-rates/{}", things.cost_rate),
            json!({"prefix": "44x", "per_minute": "-1"}),
            &["prefix", "per_minute"],
        ),
        one(
            "createFxRate",
            "POST",
            "/fx-rates".to_owned(),
            json!({"from": "euro", "to": "USD", "rate": "-1"}),
            &["from", "rate"],
        ),
        one(
            "changeFxRate",
            "PATCH",
            format!("/fx-rates/{}", things.fx_rate),
            json!({"rate": "-1", "colour": 1}),
            &["rate", "colour"],
        ),
        one(
            "createAiPrice",
            "POST",
            "/ai-prices".to_owned(),
            json!({"kind": "sell", "organisation_id": NONE, "provider": "", "model": "gpt*",
                "text_input_per_million": "1", "output_per_million": "1", "currency": "EUR",
                "from_time": "2026-01-02T00:00:00Z", "to_time": "2026-01-01T00:00:00Z"}),
            &["organisation_id", "provider", "to_time"],
        ),
        one(
            "changeAiPrice",
            "PATCH",
            format!("/ai-prices/{}", things.ai_price),
            json!({"organisation_id": NONE, "currency": "euro"}),
            &["organisation_id", "currency"],
        ),
        one(
            "createTeam",
            "POST",
            "/teams".to_owned(),
            json!({"name": "bolts", "organisation_id": desk.organisation("Bolt"), "colour": 1}),
            &["name", "colour"],
        ),
    ]
}

/// Several values taken by other resources are one conflict that names them all; nothing is changed.
#[test]
fn a_conflict_names_every_taken_value() {
    let desk = Desk::start();
    let body = json!({"name": "Acme", "sip_domain": "bolt.test"});
    let answer = desk.post(As::Operator, "/organisations", body);
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert_eq!(
        answer.message(),
        "name: another organisation has this name; sip_domain: another organisation has this domain"
    );
    assert_eq!(answer.body["error"]["fields"][1]["field"], "sip_domain");
    assert_eq!(desk.get(As::Operator, "/organisations").body["total"], 2);
}

/// Another tenant's resource is never looked up: a wrong request gets the same response whether it exists or not.
#[test]
fn nothing_of_another_organisation_is_shown() {
    let desk = Desk::start();
    let bolt = desk.organisation("Bolt");
    let asked = |organisation: &str, number: &str| {
        let body = json!({"number": number, "name": 1, "team_id": desk.foreign_team(),
            "organisation_id": organisation});
        let answer = desk.post(As::Acme, "/extensions", body);
        assert_eq!(answer.status, 400, "{}", answer.body);
        answer.message().to_owned()
    };
    for (organisation, number) in [(bolt.as_str(), "2001"), (bolt.as_str(), "2002"), (NONE, "2001")] {
        assert_eq!(
            asked(organisation, number),
            "name: must be a string, not a number",
            "{organisation} {number}"
        );
    }
}
