//! Managing teams and agents.

use serde_json::{Value, json};

use crate::http::office::{KEEPER, Office};

#[test]
fn a_team_is_made_read_renamed_and_removed() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let made = office.ask(&boss, "POST /teams", json!({"name": "Billing"}));
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.header("location"), format!("/api/v1/teams/{}", made.id()));
    assert_eq!(made.fields(), ["created_at", "id", "name", "organisation_id", "updated_at"]);
    let path = format!("/teams/{}", made.id());
    assert_eq!(office.get(&boss, &path).body, made.body);
    let patch = format!("PATCH {path}");
    assert_eq!(office.ask(&boss, &patch, made.body.clone()).body["name"], "Billing", "GET and PATCH");
    assert_eq!(office.ask(&boss, &patch, json!({"name": "Accounts"})).body["name"], "Accounts");
    assert_eq!(office.get(&boss, "/teams").items("name"), ["Accounts", "sales", "support"]);
    assert_eq!(office.get(&boss, "/teams?sort=created_at&order=desc&limit=1").items("name"), ["Accounts"]);
    assert_eq!(office.get(&boss, "/teams?q=ACC").items("name"), ["Accounts"]);
    let taken = office.ask(&boss, &patch, json!({"name": "sales"}));
    assert_eq!(
        (taken.error(), taken.message()),
        ((409, "conflict"), "name: the organisation already has a team \"sales\"")
    );
    assert_eq!(office.ask(&boss, "POST /teams", json!({"name": "sales"})).status, 409);
    assert_eq!(office.ask(&boss, &format!("DELETE {path}"), Value::Null).status, 204);
    assert_eq!(office.ask(&boss, &format!("DELETE {path}"), Value::Null).error(), (404, "not_found"));
}

#[test]
fn a_team_stays_while_somebody_is_in_it() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let refused = office.ask(&boss, &format!("DELETE /teams/{}", office.names.support), Value::Null);
    assert_eq!(refused.error(), (409, "conflict"));
    assert_eq!(
        refused.message(),
        "the team still has the extensions 1001; the users bob@acme.test, eve@acme.test: move them first"
    );
}

#[test]
fn an_agent_takes_the_calls_of_an_extension() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let body = json!({"name": "Robin", "kind": "virtual", "extension_id": office.names.ada, "team_id": office.names.sales});
    let made = office.ask(&boss, "POST /agents", body);
    assert_eq!(made.status, 201, "{}", made.text);
    let fields = [
        "created_at",
        "extension_id",
        "id",
        "kind",
        "name",
        "organisation_id",
        "team_id",
        "updated_at",
        "user_id",
    ];
    assert_eq!(made.fields(), fields);
    // The routing data: the engine reads it again when the revision has grown.
    let directory = || office.runtime.block_on(office.store.directory()).unwrap();
    let before = directory();
    let ada = before.extensions.iter().find(|extension| extension.id == office.names.ada).unwrap();
    assert_eq!(ada.agent_id.map(|id| id.to_string()).as_deref(), Some(made.id()));
    assert_eq!(ada.team_id, Some(office.names.sales), "the agent's team is the record's");

    let path = format!("/agents/{}", made.id());
    assert_eq!(
        office.ask(&boss, &format!("PATCH {path}"), made.body.clone()).body["name"],
        "Robin",
        "GET and PATCH"
    );
    assert_eq!(
        office.ask(&boss, &format!("PATCH {path}"), json!({"team_id": null})).body["team_id"],
        Value::Null
    );
    let after = directory();
    let ada = after.extensions.iter().find(|extension| extension.id == office.names.ada).unwrap();
    assert_eq!(ada.team_id, Some(office.names.support), "the extension's own, where the agent has none");
    assert!(after.revision > before.revision);

    let taken = office.ask(
        &boss,
        "POST /agents",
        json!({"name": "B", "kind": "human", "extension_id": office.names.ada}),
    );
    assert_eq!(
        (taken.error(), taken.message()),
        ((409, "conflict"), "extension_id: the extension is already that of Robin")
    );
    assert_eq!(office.ask(&boss, &format!("DELETE {path}"), Value::Null).status, 204);
    assert!(directory().extensions.iter().all(|extension| extension.agent_id.is_none()));
    assert_eq!(office.get(&boss, &path).status, 404);
}

#[test]
fn everything_that_is_wrong_with_an_agent_is_named() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let wrong = office.ask(
        &boss,
        "POST /agents",
        json!({"kind": "robot", "team_id": "x", "user_id": 7, "colour": "red"}),
    );
    for part in [
        "kind: must be one of human, virtual",
        "team_id: must be a UUID",
        "user_id: must be a string",
        "colour: is not a field here",
        "name: is required",
    ] {
        assert!(wrong.message().contains(part), "{part} is not in {}", wrong.message());
    }
    let foreign = json!({"name": "A", "kind": "human", "extension_id": office.names.bolt_line,
        "team_id": office.names.bolt_support});
    let answer = office.ask(&boss, "POST /agents", foreign);
    assert_eq!(answer.error(), (400, "invalid_request"));
    assert_eq!(
        answer.message(),
        "extension_id: the organisation has no such extension; team_id: the organisation has no such team"
    );
    let mia = office.get(&office.login("mia@acme.test"), "/auth/me").id().to_owned();
    let virtual_user =
        office.ask(&boss, "POST /agents", json!({"name": "A", "kind": "virtual", "user_id": mia}));
    assert!(virtual_user.message().starts_with("user_id: a virtual agent does not log in"));
}

#[test]
fn teams_and_agents_are_their_organisations_own() {
    let office = Office::open();
    let (boss, bolt) = (office.login("boss@acme.test"), office.login("boss@bolt.test"));
    let agent = office.ask(&boss, "POST /agents", json!({"name": "Robin", "kind": "human"}));
    let paths = [format!("/agents/{}", agent.id()), format!("/teams/{}", office.names.sales)];
    for path in &paths {
        for (what, body) in [("GET", Value::Null), ("PATCH", json!({"name": "x"})), ("DELETE", Value::Null)] {
            let answer = office.ask(&bolt, &format!("{what} {path}"), body);
            assert_eq!(answer.error(), (403, "forbidden"), "{what} {path}");
            assert!(!answer.text.contains("Robin") && !answer.text.contains("sales"));
        }
        assert_eq!(office.get(KEEPER, path).status, 200);
    }
    for list in ["teams", "agents"] {
        let foreign = json!({"name": "x", "kind": "human", "organisation_id": office.names.acme});
        let foreign = if list == "teams" {
            json!({"name": "x", "organisation_id": office.names.acme})
        } else {
            foreign
        };
        assert_eq!(office.ask(&bolt, &format!("POST /{list}"), foreign.clone()).status, 403, "{list}");
        let root = office.login("root@platform.test");
        let made = office.ask(&root, &format!("POST /{list}"), foreign);
        assert_eq!(
            (made.status, &made.body["organisation_id"]),
            (201, &json!(office.names.acme)),
            "{}",
            made.text
        );
        let member = office.login("mia@acme.test");
        assert_eq!(office.get(&member, &format!("/{list}")).status, 200, "{list}");
        assert_eq!(office.ask(&member, &format!("POST /{list}"), json!({"name": "y"})).status, 403, "{list}");
    }
}

/// A user of one team sees that team and its agents; a user without a team sees nothing.
#[test]
fn a_supervisor_sees_their_own_team() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    for (name, team) in
        [("Ann", json!(office.names.sales)), ("Ben", json!(office.names.support)), ("Cid", Value::Null)]
    {
        let made = office.ask(&boss, "POST /agents", json!({"name": name, "kind": "human", "team_id": team}));
        assert_eq!(made.status, 201);
    }
    assert_eq!(office.get(&boss, "/agents").items("name"), ["Ann", "Ben", "Cid"]);
    for email in ["eve@acme.test", "bob@acme.test"] {
        let token = office.login(email);
        assert_eq!(office.get(&token, "/agents").items("name"), ["Ben"], "{email}");
        assert_eq!(office.get(&token, &format!("/agents?team_id={}", office.names.sales)).body["total"], 0);
        assert_eq!(office.get(&token, "/teams").items("name"), ["support"]);
        assert_eq!(office.get(&token, &format!("/teams/{}", office.names.support)).status, 200);
        assert_eq!(office.get(&token, &format!("/teams/{}", office.names.sales)).error(), (403, "forbidden"));
    }
    let lost = office.login("lost@acme.test");
    assert_eq!(office.get(&lost, "/agents").body["total"], 0);
    assert_eq!(office.get(&lost, "/teams").body["total"], 0);
}
