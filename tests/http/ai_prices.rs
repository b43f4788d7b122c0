//! Prices of AI models over HTTP, and who may read and set them; the team of a conversation.

use serde_json::{Value, json};

use crate::http::desk::{As, Desk};

fn price() -> Value {
    json!({
        "kind": "sell", "provider": "acme-ai", "model": "talk-*", "text_input_per_million": "4",
        "audio_input_per_million": "40.5", "output_per_million": "16.00000001", "currency": "EUR"
    })
}

fn with(mut body: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        body.as_object_mut().unwrap().insert(name.clone(), value.clone());
    }
    body
}

#[test]
fn one_is_made_read_changed_and_removed() {
    let desk = Desk::start();
    let made = desk.post(As::Operator, "/ai-prices", price());
    assert_eq!(made.status, 201, "{}", made.body);
    let expected = with(
        price(),
        json!({
            "id": made.body["id"], "organisation_id": null, "text_input_per_million": "4.00",
            "audio_input_per_million": "40.50", "from_time": "1970-01-01T00:00:00.000Z", "to_time": null
        }),
    );
    assert_eq!(made.body, expected);
    let path = made.location().to_owned();
    assert_eq!(desk.get(As::Operator, &path).body, expected);
    let change = json!({
        "organisation_id": desk.organisation("Acme"), "audio_input_per_million": null,
        "from_time": "2026-01-01T00:00:00Z", "to_time": "2027-01-01T00:00:00Z"
    });
    let changed = desk.patch(As::Operator, &path, change.clone());
    let expected = with(expected, change);
    let expected = with(
        expected,
        json!({"from_time": "2026-01-01T00:00:00.000Z", "to_time": "2027-01-01T00:00:00.000Z"}),
    );
    assert_eq!((changed.status, &changed.body), (200, &expected));
    let again = desk.patch(As::Operator, &path, changed.body.clone());
    assert_eq!((again.status, &again.body), (200, &expected), "what was read can be sent back");
    assert_eq!(desk.delete(As::Operator, &path).status, 204);
    assert_eq!(desk.delete(As::Operator, &path).status, 404);
    assert_eq!(desk.get(As::Operator, &path).status, 404);
}

#[test]
fn prices_are_the_operators_to_set() {
    let desk = Desk::start();
    let made = desk.post(As::Operator, "/ai-prices", price());
    let path = made.location();
    for who in [As::Acme, As::Reader, As::Supervisor] {
        for (method, path, body) in [
            ("POST", "/ai-prices", Some(price())),
            ("PATCH", path, Some(json!({"model": "*"}))),
            ("DELETE", path, None),
        ] {
            let answer = desk.send(who, method, path, body);
            assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{who:?} {method}");
        }
    }
    assert_eq!(desk.send(As::Nobody, "GET", "/ai-prices", None).status, 401);
    assert_eq!(desk.get(As::Reader, "/ai-prices").status, 403);
}

#[test]
fn an_organisation_reads_its_own_sell_prices_and_those_for_all() {
    let desk = Desk::start();
    let for_org =
        |name: &str| with(price(), json!({"organisation_id": desk.organisation(name), "model": name}));
    let mut paths = Vec::new();
    for body in [
        price(),
        for_org("Acme"),
        for_org("Bolt"),
        with(price(), json!({"kind": "cost", "model": "at cost"})),
    ] {
        let made = desk.post(As::Operator, "/ai-prices", body);
        assert_eq!(made.status, 201, "{}", made.body);
        paths.push(made.location().to_owned());
    }
    assert_eq!(desk.get(As::Acme, "/ai-prices").items("model"), ["Acme", "talk-*"]);
    assert_eq!(desk.get(As::Bolt, "/ai-prices").items("model"), ["Bolt", "talk-*"]);
    assert_eq!(desk.get(As::Operator, "/ai-prices").items("model"), ["Acme", "Bolt", "at cost", "talk-*"]);
    let bolt = desk.organisation("Bolt");
    let narrowed = format!("/ai-prices?organisation_id={bolt}");
    assert_eq!(desk.get(As::Operator, &narrowed).items("model"), ["Bolt"]);
    let cases = [
        (As::Acme, narrowed.as_str(), 403),
        (As::Acme, "/ai-prices?kind=cost", 403),
        (As::Acme, "/ai-prices?kind=sell", 200),
        (As::Operator, "/ai-prices?kind=cost", 200),
        (As::Acme, &paths[0], 200),
        (As::Acme, &paths[1], 200),
        (As::Acme, &paths[2], 403),
        (As::Acme, &paths[3], 403),
        (As::Operator, &paths[3], 200),
        (As::Acme, "/ai-prices/abc", 400),
        (As::Acme, "/ai-prices/00000000-0000-4000-8000-000000000000", 404),
        (As::Operator, "/ai-prices?limit=0", 400),
        (As::Operator, "/ai-prices?colour=red", 400),
    ];
    for (who, path, status) in cases {
        assert_eq!(desk.get(who, path).status, status, "{who:?} {path}");
    }
    let page = desk.get(As::Operator, "/ai-prices?limit=1&offset=1&provider=acme-ai");
    assert_eq!(page.fields(), ["items", "limit", "offset", "total"]);
    assert_eq!((page.items("model"), &page.body["total"]), (vec!["Bolt"], &json!(4)));
}

#[test]
fn a_second_price_for_the_same_is_a_conflict() {
    let desk = Desk::start();
    let made = desk.post(As::Operator, "/ai-prices", price());
    let again = desk.post(As::Operator, "/ai-prices", with(price(), json!({"currency": "USD"})));
    assert_eq!((again.status, again.code()), (409, "conflict"));
    assert!(again.message().contains(made.body["id"].as_str().unwrap()), "{}", again.message());
}

#[test]
fn the_message_names_every_wrong_field() {
    let desk = Desk::start();
    let cases = [
        (json!({"kind": "gift"}), "kind: must be one of cost, sell"),
        (json!({"provider": " "}), "provider: must be 1 to 200 characters on one line"),
        (json!({"model": "a*b"}), "model: must be a model's name, or the beginning of names followed by *"),
        (json!({"text_input_per_million": "-1"}), "text_input_per_million: must be between 0 and 1000000"),
        (json!({"output_per_million": "1000000.1"}), "output_per_million: must be between 0 and 1000000"),
        (json!({"currency": "euro"}), "currency: must be"),
        (
            json!({"from_time": "2026-01-01T00:00:00Z", "to_time": "2026-01-01T00:00:00Z"}),
            "to_time: must be after from_time",
        ),
        (
            json!({"organisation_id": "00000000-0000-4000-8000-000000000000"}),
            "organisation_id: there is no such organisation",
        ),
        (
            json!({"kind": "cost", "organisation_id": "00000000-0000-4000-8000-000000000000"}),
            "organisation_id: must be null",
        ),
        (json!({"price": "1"}), "price: is not a field here"),
    ];
    for (change, message) in cases {
        let answer = desk.post(As::Operator, "/ai-prices", with(price(), change));
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{message}: {}", answer.body);
        assert!(answer.message().contains(message), "{message}: {}", answer.message());
    }
    let empty = desk.post(As::Operator, "/ai-prices", json!({}));
    for name in ["kind", "provider", "model", "text_input_per_million", "output_per_million", "currency"] {
        assert!(empty.message().contains(&format!("{name}: is required")), "{}", empty.message());
    }
}

/// Rule 2 of the call log holds for conversations too: before there is a record, by the agent's team.
#[test]
fn a_supervisor_reads_the_conversations_of_their_own_team() {
    let desk = Desk::start();
    let agent = |name: &str, team: Value| {
        let body = json!({"name": name, "kind": "virtual", "team_id": team});
        let made = desk.post(As::Acme, "/agents", body);
        assert_eq!(made.status, 201, "{}", made.body);
        made.body["id"].clone()
    };
    let (own, other) = (agent("Robin", json!(desk.team())), agent("Kim", Value::Null));
    for (number, agent, status) in [(1, own, 200), (2, other, 403), (3, Value::Null, 403)] {
        let call = format!("00000000-0000-4000-8000-00000000000{number}");
        let path = format!("/conversations/00000000-0000-4000-8000-0000000000c{number}");
        let body = json!({
            "call_uuid": call, "direction": "inbound", "started_at": "2026-01-01T00:00:00Z",
            "agent_kind": "virtual", "agent_id": agent, "provider": "acme-ai", "model": "talk-1",
            "ai_billing_mode": "rated"
        });
        assert_eq!(desk.send(As::Acme, "PUT", &path, Some(body)).status, 201);
        assert_eq!(desk.get(As::Acme, &path).status, 200);
        for path in [path, format!("/cdrs/{call}/conversation")] {
            assert_eq!(desk.get(As::Supervisor, &path).status, status, "{path}");
        }
    }
}

/// An operator reports for the organisation that the request names; a conversation cannot change its organisation.
#[test]
fn an_operator_reports_for_any_organisation() {
    let desk = Desk::start();
    let path = "/conversations/00000000-0000-4000-8000-0000000000c1";
    let body = json!({
        "organisation_id": desk.organisation("Bolt"), "call_uuid": "00000000-0000-4000-8000-000000000001",
        "direction": "outbound", "started_at": "2026-01-01T00:00:00Z", "agent_kind": "human"
    });
    let made = desk.send(As::Operator, "PUT", path, Some(body.clone()));
    assert_eq!((made.status, &made.body["organisation_id"]), (201, &json!(desk.organisation("Bolt"))));
    assert_eq!((desk.get(As::Bolt, path).status, desk.get(As::Acme, path).status), (200, 403));
    let unnamed = with(body.clone(), json!({"organisation_id": null}));
    assert_eq!(desk.send(As::Operator, "PUT", path, Some(unnamed)).status, 200);
    let moved = with(body, json!({"organisation_id": desk.organisation("Acme")}));
    assert_eq!(desk.send(As::Operator, "PUT", path, Some(moved)).status, 403);
}
