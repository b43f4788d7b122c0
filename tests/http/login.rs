//! Logging in, and what ends a session (H7).

use std::time::Instant;

use serde_json::{Value, json};

use crate::http::office::{KEEPER, Office, PASSWORD};

const HOURS_12_MS: i64 = 12 * 3_600_000;

#[test]
fn a_login_answers_a_session_of_twelve_hours() {
    let office = Office::open();
    let answer = office.try_login("127.0.0.1", "Boss@ACME.test", PASSWORD);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.fields(), ["expires_at", "token", "token_type", "user"]);
    assert_eq!(answer.body["token_type"], "Bearer");
    assert_eq!(answer.body["expires_at"], "2026-01-01T12:01:40.000Z", "12 h after 00:01:40");
    let user = answer.body["user"].as_object().unwrap();
    let mut fields: Vec<_> = user.keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["email", "id", "name", "organisation_id", "permissions", "role"]);
    assert_eq!((&user["email"], &user["role"]), (&json!("boss@acme.test"), &json!("org_admin")));
    assert_eq!(user["organisation_id"], office.names.acme.to_string());
    let permissions = user["permissions"].as_array().unwrap();
    assert!(permissions.contains(&json!("users:write")) && !permissions.contains(&json!("margin:read")));
    let token = answer.body["token"].as_str().unwrap();
    assert_eq!(office.get(token, "/cdrs").status, 200);
    assert_eq!(office.get(token, "/auth/me").body, answer.body["user"]);
}

#[test]
fn a_wrong_password_and_an_unknown_address_are_answered_alike() {
    let office = Office::open();
    let wrong = office.try_login("127.0.0.1", "boss@acme.test", "wrong horse");
    assert_eq!(wrong.error(), (401, "invalid_credentials"));
    for email in ["nobody@acme.test", "not an address", "boss@acme.test\u{a0}", "%"] {
        let unknown = office.try_login("127.0.0.1", email, PASSWORD);
        assert_eq!(unknown.text, wrong.text, "{email}");
        assert_eq!(unknown.header("www-authenticate"), wrong.header("www-authenticate"));
    }
}

/// The response time does not show which accounts exist: both cases compute one hash. The bounds allow for a busy
/// machine; a lookup without a hash is a hundred times faster.
#[test]
fn an_unknown_address_costs_the_same_work() {
    let office = Office::open();
    let mut times: [Vec<u128>; 2] = Default::default();
    // Interleaved, so that other load on the machine affects both.
    for number in 0..18 {
        let kind = number % 2;
        let email = ["boss@acme.test", "nobody@acme.test"][kind];
        let started = Instant::now();
        let answer = office.try_login(&format!("10.0.0.{number}"), email, "wrong horse");
        assert_eq!(answer.status, 401);
        times[kind].push(started.elapsed().as_micros());
    }
    let [known, unknown] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    assert!(unknown * 4 > known && known * 4 > unknown, "known {known} us, unknown {unknown} us");
}

#[test]
fn what_is_wrong_with_a_login_is_named() {
    let office = Office::open();
    let answer = office.ask_from("127.0.0.1", None, "POST /auth/login", json!({"email": 1, "pasword": "x"}));
    assert_eq!(answer.error(), (400, "invalid_request"));
    for field in ["email: must be", "pasword: is not a field here", "password: is required"] {
        assert!(answer.message().contains(field), "{}", answer.message());
    }
    let answer = office.ask_from("127.0.0.1", None, "POST /auth/login", Value::Null);
    assert_eq!(answer.error(), (400, "invalid_request"));
}

#[test]
fn the_sixth_failure_in_five_minutes_waits_and_locks_nobody_else_out() {
    let office = Office::open();
    for number in 0..5 {
        let answer = office.try_login("127.0.0.1", "boss@acme.test", "wrong horse");
        assert_eq!(answer.status, 401, "{number}");
        office.pass(10_000);
    }
    let answer = office.try_login("127.0.0.1", "BOSS@acme.test", PASSWORD);
    assert_eq!(answer.error(), (429, "rate_limited"), "not even the right one");
    assert_eq!(answer.header("retry-after"), "250");
    assert_eq!(office.try_login("127.0.0.2", "boss@acme.test", PASSWORD).status, 200, "from elsewhere");
    assert_eq!(office.try_login("127.0.0.1", "mia@acme.test", PASSWORD).status, 200, "somebody else");
    office.pass(250_000);
    assert_eq!(office.try_login("127.0.0.1", "boss@acme.test", PASSWORD).status, 200);
}

/// Concurrent attempts are counted before their passwords are checked.
#[test]
fn many_tries_at_once_are_no_more_than_five() {
    let office = Office::open();
    let answers = office.runtime.block_on(async {
        let tries = (0..30).map(|_| {
            let body = json!({"email": "boss@acme.test", "password": "wrong horse"});
            office.answer("127.0.0.1", None, "POST /auth/login", body)
        });
        futures_util::future::join_all(tries).await
    });
    let looked_at = answers.iter().filter(|answer| answer.status == 401).count();
    assert_eq!(looked_at, 5);
    assert!(answers.iter().all(|answer| [401, 429].contains(&answer.status)));
}

/// Every login counts against the address, also one with a token: an account does not help to guess others.
#[test]
fn logins_are_bounded_per_address() {
    let office = Office::open();
    let token = office.login("mia@acme.test");
    let mut limited = 0;
    for number in 0..70 {
        let body = json!({"email": format!("user{number}@acme.test")});
        let answer = office.ask_from("127.0.0.3", Some(&token), "POST /auth/login", body);
        assert_eq!(answer.header("x-ratelimit-limit"), "60");
        limited += usize::from(answer.status == 429);
    }
    assert_eq!(limited, 10);
    assert_eq!(office.get(&token, "/auth/me").status, 200, "the session's own allowance is untouched");
}

#[test]
fn a_session_lasts_twelve_hours_and_five_seconds_of_leeway() {
    let office = Office::open();
    let token = office.login("mia@acme.test");
    for (pass_ms, status) in [(HOURS_12_MS, 200), (4_000, 200), (2_000, 401)] {
        office.pass(pass_ms);
        assert_eq!(office.get(&token, "/cdrs").status, status, "{pass_ms}");
    }
}

#[test]
fn a_logout_ends_that_session_alone() {
    let office = Office::open();
    let (first, second) = (office.login("mia@acme.test"), office.login("mia@acme.test"));
    let answer = office.ask(&first, "POST /auth/logout", Value::Null);
    assert_eq!((answer.status, answer.text.as_str()), (204, ""));
    assert_eq!(office.get(&first, "/cdrs").error(), (401, "unauthenticated"));
    assert_eq!(office.ask(&first, "POST /auth/logout", Value::Null).status, 401);
    assert_eq!(office.get(&second, "/cdrs").status, 200);
    // Ended sessions are deleted only when their tokens have expired.
    office.pass(HOURS_12_MS - 60_000);
    office.ask(&second, "POST /auth/logout", Value::Null);
    assert_eq!(office.get(&first, "/cdrs").status, 401);
}

#[test]
fn a_new_password_ends_every_session() {
    let office = Office::open();
    let (first, second) = (office.login("mia@acme.test"), office.login("mia@acme.test"));
    let change = |old: &str, new: &str| {
        office.ask(&first, "POST /auth/password", json!({"old_password": old, "new_password": new}))
    };
    let wrong = change("wrong horse", "battery staple");
    assert_eq!(
        (wrong.error(), wrong.message()),
        ((400, "invalid_request"), "old_password: is not the present password")
    );
    assert!(change(PASSWORD, "short").message().starts_with("new_password: must be 8 to 128 characters"));
    assert_eq!(office.get(&second, "/cdrs").status, 200, "nothing has changed");
    assert_eq!(change(PASSWORD, "battery staple").status, 204);
    for token in [&first, &second] {
        assert_eq!(office.get(token, "/cdrs").error(), (401, "unauthenticated"));
    }
    assert_eq!(office.try_login("127.0.0.1", "mia@acme.test", PASSWORD).status, 401);
    assert_eq!(office.try_login("127.0.0.1", "mia@acme.test", "battery staple").status, 200);
}

#[test]
fn another_role_and_being_kept_out_end_every_session() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let mia = office.login("mia@acme.test");
    let id = office.get(&mia, "/auth/me").id().to_owned();
    let change = |body: Value| office.ask(&boss, &format!("PATCH /users/{id}"), body).status;
    assert_eq!(change(json!({"name": "Mia"})), 200);
    assert_eq!(office.get(&mia, "/cdrs").status, 200, "a name is no reason");
    assert_eq!(change(json!({"role": "agent"})), 200);
    assert_eq!(office.get(&mia, "/cdrs").status, 401);
    let mia = office.login("mia@acme.test");
    assert_eq!(change(json!({"disabled": true})), 200);
    assert_eq!(office.get(&mia, "/cdrs").status, 401);
    let kept_out = office.try_login("127.0.0.1", "mia@acme.test", PASSWORD);
    assert_eq!(kept_out.error(), (401, "invalid_credentials"));
    assert_eq!(change(json!({"disabled": false})), 200);
    assert_eq!(office.get(&mia, "/cdrs").status, 401, "an ended session does not come back");
    assert_eq!(office.try_login("127.0.0.1", "mia@acme.test", PASSWORD).status, 200);
    let mia = office.login("mia@acme.test");
    assert_eq!(office.ask(&boss, &format!("DELETE /users/{id}"), Value::Null).status, 204);
    assert_eq!(office.get(&mia, "/cdrs").status, 401);
}

/// H7 end to end; the tests of the token itself have every variant.
#[test]
fn a_forged_session_is_refused() {
    let office = Office::open();
    let token = office.login("mia@acme.test");
    let [header, claims, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let forged = [
        // {"alg":"none"}
        format!("eyJhbGciOiJub25lIn0.{claims}."),
        format!("eyJhbGciOiJub25lIn0.{claims}.{signature}"),
        format!("{header}.{claims}."),
        format!("{header}.{claims}"),
        format!("{header}.{signature}.{claims}"),
        format!("{token}x"),
    ];
    for token in forged {
        let answer = office.get(&token, "/cdrs");
        assert_eq!(answer.error(), (401, "unauthenticated"), "{token}");
        assert!(!answer.text.contains(claims));
    }
    assert_eq!(office.get(&token, "/cdrs").status, 200);
}

#[test]
fn keys_have_no_session() {
    let office = Office::open();
    for what in ["GET /auth/me", "POST /auth/logout"] {
        assert_eq!(office.ask(KEEPER, what, Value::Null).error(), (403, "forbidden"), "{what}");
    }
    for what in ["GET /auth/me", "POST /auth/logout", "POST /auth/password"] {
        assert_eq!(office.ask_from("127.0.0.1", None, what, Value::Null).status, 401, "{what}");
    }
}

/// 1,200 a minute for a user over all sessions; the headers are on every response.
#[test]
fn a_user_has_one_rate_over_all_sessions() {
    let office = Office::open();
    let tokens = [office.login("mia@acme.test"), office.login("mia@acme.test")];
    let mut accepted = 0;
    for number in 0..1300 {
        let path = ["/cdrs?limit=1", "/nothing", "/teams/x", "/users"][number % 4];
        let answer = office.get(&tokens[number % 2], path);
        assert_eq!(answer.header("x-ratelimit-limit"), "1200", "{path}");
        assert!(!answer.header("x-ratelimit-reset").is_empty());
        match answer.status {
            429 => assert_eq!(answer.header("retry-after"), "60"),
            _ => accepted += 1,
        }
    }
    assert_eq!(accepted, 1200);
    assert_eq!(office.get(&office.login("boss@acme.test"), "/cdrs").status, 200, "others have their own");
    office.pass(60_000);
    assert_eq!(office.get(&tokens[0], "/cdrs").status, 200);
}

/// "Every response carries" the three headers: for any caller and any response.
#[test]
fn the_rate_headers_are_on_every_answer() {
    let office = Office::open();
    let mia = office.login("mia@acme.test");
    let long = format!("GET /cdrs?q={}", "x".repeat(20_000));
    let large = json!({"email": "x".repeat(20_000), "password": "x"});
    let larger = json!({"name": "x".repeat(1_100_000)});
    let login = json!({"email": "boss@acme.test", "password": PASSWORD});
    let cases: Vec<(Option<&str>, &str, Value, u16)> = vec![
        (None, "GET /cdrs", Value::Null, 401),
        (None, "GET /nothing", Value::Null, 404),
        (None, "GET /", Value::Null, 404),
        (None, "GET ", Value::Null, 404),
        (None, "GET /openapi.json", Value::Null, 200),
        (None, "POST /auth/login", login, 200),
        (None, "POST /auth/login", large, 413),
        (None, "GET /auth/login", Value::Null, 405),
        (Some("tel_nobody_nothing"), "GET /cdrs", Value::Null, 401),
        (Some(KEEPER), "GET /cdrs", Value::Null, 200),
        (Some(KEEPER), "GET /conversations/x", Value::Null, 400),
        (Some(&mia), "GET /users", Value::Null, 403),
        (Some(&mia), "GET /cdrs/00000000-0000-0000-0000-000000000001", Value::Null, 404),
        (Some(&mia), "PUT /cdrs", Value::Null, 405),
        (Some(&mia), &long, Value::Null, 414),
        (Some(KEEPER), "POST /teams", larger, 413),
        (Some(KEEPER), "POST /teams", Value::Null, 400),
        (Some(KEEPER), "POST /teams", json!({}), 400),
        (Some(&mia), "POST /auth/logout", Value::Null, 204),
    ];
    for (token, what, body, status) in cases {
        let answer = office.ask_from("127.0.0.1", token, what, body);
        let shown: String = what.chars().take(40).collect();
        assert_eq!(answer.status, status, "{shown}: {}", answer.text);
        let limit = if token == Some(KEEPER) {
            "600"
        } else if token == Some(&mia) {
            "1200"
        } else {
            "60"
        };
        assert_eq!(answer.header("x-ratelimit-limit"), limit, "{shown}");
        assert!(answer.header("x-ratelimit-remaining").parse::<u32>().is_ok(), "{shown}");
        assert_eq!(answer.header("x-ratelimit-reset"), "1767225761", "{shown}");
        assert!(status < 400 || answer.body["error"]["code"].is_string(), "{shown}");
    }
}

/// A user whose session ended before the answer arrived logs in again and repeats the request: the key is theirs, not the
/// session's.
#[test]
fn a_repeated_request_gets_its_answer_in_another_session() {
    let office = Office::open();
    let team = |token: &str| office.repeatable(token, "POST /teams", "again-1", json!({"name": "night"}));
    let first = team(&office.login("boss@acme.test"));
    assert_eq!((first.status, first.header("idempotency-replayed")), (201, ""), "{}", first.text);
    let again = team(&office.login("boss@acme.test"));
    assert_eq!((again.status, again.header("idempotency-replayed")), (201, "true"), "{}", again.text);
    assert_eq!(again.text, first.text);
    // The same key of another user is another one.
    assert_eq!(team(&office.login("boss@bolt.test")).header("idempotency-replayed"), "");
}
