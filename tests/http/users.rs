//! Managing users.

use serde_json::{Value, json};

use crate::http::office::{KEEPER, Office, PASSWORD};

fn id_of(office: &Office, email: &str) -> String {
    let root = office.login("root@platform.test");
    let found = office.get(&root, &format!("/users?q={}", email.replace('@', "%40")));
    found.body["items"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_user_is_made_read_changed_and_removed() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let body = json!({"email": "Zoe@acme.test", "role": "team_supervisor", "team_id": office.names.sales});
    let made = office.ask(&boss, "POST /users", body);
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.header("location"), format!("/api/v1/users/{}", made.id()));
    assert_eq!((&made.body["email"], &made.body["name"]), (&json!("zoe@acme.test"), &json!("zoe")));
    let password = made.body["password"].as_str().unwrap().to_owned();
    assert_eq!(password.len(), 20);
    let path = format!("/users/{}", made.id());
    let read = office.get(&boss, &path);
    let mut expected = made.body.as_object().unwrap().clone();
    expected.remove("password");
    assert_eq!(read.body, Value::Object(expected), "the password is never shown again");
    assert_eq!(office.try_login("127.0.0.1", "zoe@acme.test", &password).status, 200);

    let patch = format!("PATCH {path}");
    assert_eq!(office.ask(&boss, &patch, read.body.clone()).body, read.body, "GET and PATCH");
    let changed = office.ask(&boss, &patch, json!({"team_id": null, "name": "Zoë", "email": "zo@acme.test"}));
    assert_eq!((&changed.body["team_id"], &changed.body["name"]), (&Value::Null, &json!("Zoë")));
    assert_eq!(changed.body["role"], "team_supervisor");
    assert_eq!(office.try_login("127.0.0.1", "zo@acme.test", &password).status, 200);
    assert_eq!(office.ask(&boss, &patch, json!({"password": "battery staple"})).status, 200);
    assert_eq!(office.try_login("127.0.0.1", "zo@acme.test", &password).status, 401);
    assert_eq!(office.try_login("127.0.0.1", "zo@acme.test", "battery staple").status, 200);

    assert_eq!(office.ask(&boss, &format!("DELETE {path}"), Value::Null).status, 204);
    assert_eq!(office.ask(&boss, &format!("DELETE {path}"), Value::Null).error(), (404, "not_found"));
    assert_eq!(office.get(&boss, &path).status, 404);
}

#[test]
fn lists_sort_search_and_page() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let all = ["bob@acme.test", "boss@acme.test", "eve@acme.test", "lost@acme.test", "mia@acme.test"];
    assert_eq!(office.get(&boss, "/users").items("email"), all);
    let page = office.get(&boss, "/users?order=desc&limit=2&offset=1");
    assert_eq!(page.items("email"), ["lost@acme.test", "eve@acme.test"]);
    assert_eq!(
        (&page.body["total"], &page.body["limit"], &page.body["offset"]),
        (&json!(5), &json!(2), &json!(1))
    );
    assert_eq!(office.get(&boss, "/users?q=BO").items("email"), ["bob@acme.test", "boss@acme.test"]);
    let team = format!("/users?team_id={}", office.names.support);
    assert_eq!(office.get(&boss, &team).items("email"), ["bob@acme.test", "eve@acme.test"]);
    let wrong = office.get(&boss, "/users?limit=0&sort=role&foo=1&order=up");
    for part in [
        "limit: must be between 1 and 500",
        "sort: unknown key 'role'",
        "foo: is not a parameter",
        "order: must be",
    ] {
        assert!(wrong.message().contains(part), "{}", wrong.message());
    }
}

#[test]
fn an_address_belongs_to_one_person_over_all_organisations() {
    let office = Office::open();
    let bolt = office.login("boss@bolt.test");
    let taken = office.ask(&bolt, "POST /users", json!({"email": "MIA@acme.test", "role": "agent"}));
    assert_eq!(taken.error(), (409, "conflict"));
    assert!(taken.message().starts_with("email: "));
    let own = id_of(&office, "boss@bolt.test");
    let taken = office.ask(&bolt, &format!("PATCH /users/{own}"), json!({"email": "mia@acme.test"}));
    assert_eq!(taken.status, 409);
}

#[test]
fn everything_that_is_wrong_with_a_user_is_named() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let body = json!({"email": "x", "role": "root", "password": "short", "team_id": 1, "disabled": "no", "admin": true});
    let answer = office.ask(&boss, "POST /users", body);
    for part in [
        "email: must be an email address",
        "role: must be one of agent, operator, org_admin, org_member, team_supervisor",
        "password: must be 8 to 128 characters",
        "team_id: must be a string",
        "disabled: must be true or false",
        "admin: is not a field here",
    ] {
        assert!(answer.message().contains(part), "{part} is not in {}", answer.message());
    }
    let foreign = json!({"email": "z@acme.test", "role": "agent", "team_id": office.names.bolt_support});
    let answer = office.ask(&boss, "POST /users", foreign);
    assert_eq!(answer.message(), "team_id: the organisation has no such team");
}

/// Only an operator of the platform can create, change or appoint an operator.
#[test]
fn nobody_appoints_above_themselves() {
    let office = Office::open();
    let root = office.login("root@platform.test");
    let operator = json!({"email": "op@acme.test", "role": "operator", "organisation_id": office.names.acme,
        "password": PASSWORD});
    let made = office.ask(&root, "POST /users", operator);
    assert_eq!(made.status, 201, "{}", made.text);
    assert!(made.body.get("password").is_none(), "it was given");
    let path = format!("/users/{}", made.id());
    for token in [office.login("boss@acme.test"), KEEPER.to_owned()] {
        assert_eq!(office.get(&token, &path).status, 200, "they are of the same organisation");
        for body in [
            json!({"password": "battery staple"}),
            json!({"role": "agent"}),
            json!({"disabled": true}),
            json!({}),
        ] {
            let answer = office.ask(&token, &format!("PATCH {path}"), body);
            assert_eq!(answer.error(), (403, "forbidden"));
        }
        assert_eq!(office.ask(&token, &format!("DELETE {path}"), Value::Null).status, 403);
        let role = json!({"email": "me@acme.test", "role": "operator"});
        assert_eq!(office.ask(&token, "POST /users", role).status, 403);
        let mia = id_of(&office, "mia@acme.test");
        let answer = office.ask(&token, &format!("PATCH /users/{mia}"), json!({"role": "operator"}));
        assert_eq!(answer.status, 403);
    }
    // The key lacks some permissions of an administrator.
    let admin = json!({"email": "me@acme.test", "role": "org_admin"});
    assert_eq!(office.ask(KEEPER, "POST /users", admin).error(), (403, "forbidden"));
    let member = json!({"email": "me@acme.test", "role": "agent"});
    assert_eq!(
        office.ask(KEEPER, "POST /users", member).status,
        403,
        "an agent reads rooms, the key does not"
    );
}

#[test]
fn the_last_who_runs_something_cannot_go() {
    let office = Office::open();
    let (root, boss) = (office.login("root@platform.test"), office.login("boss@acme.test"));
    let (root_id, boss_id) = (id_of(&office, "root@platform.test"), id_of(&office, "boss@acme.test"));
    for (token, id, role) in [(&boss, &boss_id, "org_admin"), (&root, &root_id, "operator")] {
        for (what, body) in [
            (format!("DELETE /users/{id}"), Value::Null),
            (format!("PATCH /users/{id}"), json!({"role": "agent"})),
            (format!("PATCH /users/{id}"), json!({"disabled": true})),
        ] {
            let answer = office.ask(token, &what, body);
            assert_eq!(answer.error(), (409, "conflict"), "{what}");
            assert_eq!(
                answer.message(),
                format!("the user is the last {role}: give another user this role first")
            );
        }
    }
    let deputy = json!({"email": "deputy@acme.test", "role": "org_admin", "disabled": true});
    let deputy = office.ask(&boss, "POST /users", deputy);
    assert_eq!(
        office.ask(&boss, &format!("DELETE /users/{boss_id}"), Value::Null).status,
        409,
        "a disabled one is nobody"
    );
    office.ask(&boss, &format!("PATCH /users/{}", deputy.id()), json!({"disabled": false}));
    assert_eq!(office.ask(&boss, &format!("DELETE /users/{boss_id}"), Value::Null).status, 204);
    let deputy = format!("DELETE /users/{}", deputy.id());
    assert_eq!(office.ask(&root, &deputy, Value::Null).status, 204, "an operator runs it then");
}

#[test]
fn a_user_who_is_an_agent_stays_until_the_agent_is_somebody_else() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let bob = id_of(&office, "bob@acme.test");
    let agent = office.ask(&boss, "POST /agents", json!({"name": "Bob", "kind": "human", "user_id": bob}));
    assert_eq!(agent.status, 201, "{}", agent.text);
    let refused = office.ask(&boss, &format!("DELETE /users/{bob}"), Value::Null);
    assert_eq!(
        (refused.error(), refused.message()),
        ((409, "conflict"), "the user is the agent Bob: give it another one")
    );
    assert_eq!(
        office.ask(&boss, &format!("PATCH /agents/{}", agent.id()), json!({"user_id": null})).status,
        200
    );
    assert_eq!(office.ask(&boss, &format!("DELETE /users/{bob}"), Value::Null).status, 204);
}

#[test]
fn users_are_their_organisations_own() {
    let office = Office::open();
    let bolt = office.login("boss@bolt.test");
    let mia = id_of(&office, "mia@acme.test");
    for (what, body) in [("GET", Value::Null), ("PATCH", json!({"name": "x"})), ("DELETE", Value::Null)] {
        let answer = office.ask(&bolt, &format!("{what} /users/{mia}"), body);
        assert_eq!(answer.error(), (403, "forbidden"), "{what}");
        assert!(!answer.text.contains("mia"));
    }
    assert_eq!(office.get(&bolt, "/users").items("email"), ["boss@bolt.test"]);
    let foreign =
        json!({"email": "spy@bolt.test", "role": "org_admin", "organisation_id": office.names.acme});
    assert_eq!(office.ask(&bolt, "POST /users", foreign).status, 403);
    for email in ["mia@acme.test", "eve@acme.test", "bob@acme.test", "lost@acme.test"] {
        let token = office.login(email);
        assert_eq!(office.get(&token, "/users").error(), (403, "forbidden"), "{email}");
        let me = json!({"role": "org_admin"});
        let own = office.get(&token, "/auth/me").id().to_owned();
        assert_eq!(office.ask(&token, &format!("PATCH /users/{own}"), me).status, 403, "{email}");
    }
}
