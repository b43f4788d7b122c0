//! Extensions over HTTP.

use serde_json::json;

use crate::http::desk::{As, Desk, hold_the_rules};

const FIELDS: [&str; 16] = [
    "codec_string",
    "created_at",
    "do_not_disturb",
    "forwarding",
    "id",
    "language",
    "max_registrations",
    "name",
    "notify_message_waiting",
    "number",
    "organisation_id",
    "srtp",
    "strict_source",
    "team_id",
    "updated_at",
    "video",
];

#[test]
fn the_rules_of_all_managed_things_hold() {
    let desk = Desk::start();
    hold_the_rules(&desk, "/extensions", &desk.extension("1002"), "directory:read", "directory:write");
}

#[test]
fn the_limit_of_registrations_is_set_and_bounded() {
    let desk = Desk::start();
    let made = desk.post(As::Acme, "/extensions", json!({"number": "1003"}));
    assert_eq!((made.status, &made.body["max_registrations"]), (201, &json!(10)), "{}", made.body);
    let path = format!("/extensions/{}", made.body["id"].as_str().unwrap());
    let changed = desk.patch(As::Acme, &path, json!({"max_registrations": 1}));
    assert_eq!((changed.status, &changed.body["max_registrations"]), (200, &json!(1)), "{}", changed.body);
    assert_eq!(desk.get(As::Acme, &path).body["max_registrations"], 1);
    for wrong in [json!(0), json!(51), json!("2"), json!(null)] {
        let answer = desk.patch(As::Acme, &path, json!({"max_registrations": wrong}));
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{wrong}: {}", answer.body);
        assert!(answer.message().starts_with("max_registrations: "), "{}", answer.message());
    }
    let made = desk.post(As::Acme, "/extensions", json!({"number": "1004", "max_registrations": 50}));
    assert_eq!(made.body["max_registrations"], 50);
}

#[test]
fn the_waiting_messages_are_set_and_read() {
    let desk = Desk::start();
    let path = format!("/extensions/{}/message-waiting", desk.extension("1002"));
    let none = json!({"new": 0, "old": 0, "urgent_new": 0, "urgent_old": 0});
    assert_eq!(desk.get(As::Acme, &path).body, none);
    let all = json!({"new": 2, "old": 8, "urgent_new": 1, "urgent_old": 3});
    let set = desk.send(As::Acme, "PUT", &path, Some(all.clone()));
    assert_eq!((set.status, &set.body), (200, &all));
    assert_eq!(desk.get(As::Acme, &path).body, all);
    let extension = format!("/extensions/{}", desk.extension("1002"));
    // Another change of the extension keeps them.
    let changed = desk.patch(As::Acme, &extension, json!({"notify_message_waiting": true}));
    assert_eq!(
        (changed.status, &changed.body["notify_message_waiting"]),
        (200, &json!(true)),
        "{}",
        changed.body
    );
    assert_eq!(desk.get(As::Acme, &path).body, all);
    for (body, wrong) in [
        (json!({}), "new: is required"),
        (json!({"new": -1}), "new: "),
        (json!({"new": 10_000}), "new: "),
        (json!({"new": 1, "urgent_new": 2}), "urgent_new: must be at most new"),
        (json!({"new": 1, "old": 1, "urgent_old": 2}), "urgent_old: must be at most old"),
    ] {
        let answer = desk.send(As::Acme, "PUT", &path, Some(body.clone()));
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{body}: {}", answer.body);
        assert!(answer.message().contains(wrong), "{body}: {}", answer.message());
    }
    assert_eq!(
        desk.send(As::Acme, "PUT", &path, Some(json!({"new": 1}))).body["old"],
        0,
        "what is left out is 0"
    );
}

#[test]
fn one_is_made_read_changed_and_removed() {
    let desk = Desk::start();
    let body = json!({
        "number": "1003", "name": "Edsger", "team_id": desk.team(), "codec_string": "OPUS, pcma",
        "password": "a b c d e"
    });
    let made = desk.post(As::Acme, "/extensions", body);
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.fields(), FIELDS, "a password that was given is not repeated");
    let id = made.body["id"].as_str().unwrap();
    assert_eq!(made.location(), format!("/extensions/{id}"));
    assert_eq!(made.body["codec_string"], "opus,PCMA");
    assert_eq!(made.body["organisation_id"], desk.organisation("Acme"));
    assert_eq!(made.body["created_at"], made.body["updated_at"]);

    let path = format!("/extensions/{id}");
    let read = desk.get(As::Reader, &path);
    assert_eq!((read.status, &read.body), (200, &made.body));

    let changed = desk.patch(As::Acme, &path, json!({"name": "Edsger W.", "team_id": null}));
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!((&changed.body["name"], &changed.body["team_id"]), (&json!("Edsger W."), &json!(null)));
    assert_eq!(changed.body["codec_string"], "opus,PCMA", "what is left out stays");
    let strict = desk.patch(As::Acme, &path, json!({"strict_source": "sdp"}));
    assert_eq!((strict.status, &strict.body["strict_source"]), (200, &json!("sdp")));
    assert_eq!(desk.get(As::Reader, &path).body["strict_source"], "sdp");
    let secure = desk.patch(As::Acme, &path, json!({"srtp": "optional"}));
    assert_eq!((secure.status, &secure.body["srtp"]), (200, &json!("optional")));
    let wrong = desk.patch(As::Acme, &path, json!({"srtp": "yes"}));
    assert_eq!(
        (wrong.status, wrong.message()),
        (400, "srtp: must be one of off, optional, required, webrtc")
    );
    let seen = desk.patch(As::Acme, &path, json!({"video": "pass"}));
    assert_eq!((seen.status, &seen.body["video"]), (200, &json!("pass")));
    let wrong = desk.patch(As::Acme, &path, json!({"video": "relay"}));
    assert_eq!((wrong.status, wrong.message()), (400, "video: must be one of off, pass"));
    let german = desk.patch(As::Acme, &path, json!({"language": "de"}));
    assert_eq!((&made.body["language"], &german.body["language"]), (&json!(null), &json!("de")));
    let wrong = desk.patch(As::Acme, &path, json!({"language": "DE"}));
    assert_eq!((wrong.status, wrong.message()), (400, "language: must be de or en"));
    assert_eq!(desk.patch(As::Acme, &path, json!({"language": null})).body["language"], json!(null));
    let changed = desk.patch(As::Acme, &path, json!({"strict_source": null}));
    assert_eq!((&changed.body["srtp"], &changed.body["video"]), (&json!("optional"), &json!("pass")));
    assert_eq!(changed.body["strict_source"], json!(null));
    let wrong = desk.patch(As::Acme, &path, json!({"strict_source": "sip"}));
    assert_eq!((wrong.status, wrong.message()), (400, "strict_source: must be one of any, sdp, signalling"));
    let again = desk.patch(As::Acme, &path, changed.body.clone());
    assert_eq!((again.status, &again.body), (200, &changed.body), "what was read can be sent back");

    assert_eq!(desk.delete(As::Acme, &path).status, 204);
    assert_eq!(desk.delete(As::Acme, &path).status, 404);
    assert_eq!(desk.get(As::Acme, &path).status, 404);
}

#[test]
fn a_password_is_made_up_and_shown_once() {
    let desk = Desk::start();
    let made = desk.post(As::Acme, "/extensions", json!({"number": "1003"}));
    let password = made.body["password"].as_str().unwrap().to_owned();
    assert_eq!(password.len(), 20);
    assert_eq!((&made.body["name"], &made.body["codec_string"]), (&json!(""), &json!("")));
    assert_eq!((&made.body["team_id"], &made.body["strict_source"]), (&json!(null), &json!(null)));
    assert_eq!((&made.body["srtp"], &made.body["video"]), (&json!("off"), &json!("off")));
    let strict = desk.post(As::Acme, "/extensions", json!({"number": "1005", "strict_source": "signalling"}));
    assert_eq!(strict.body["strict_source"], "signalling");
    let read = desk.get(As::Acme, made.location());
    assert_eq!(read.fields(), FIELDS);
    let other = desk.post(As::Acme, "/extensions", json!({"number": "1004"}));
    assert_ne!(other.body["password"], json!(password));
}

#[test]
fn a_number_is_one_extension_of_its_organisation() {
    let desk = Desk::start();
    let answer = desk.post(As::Acme, "/extensions", json!({"number": "1001"}));
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert_eq!(answer.message(), "number: the organisation already has an extension 1001");
    assert_eq!(desk.post(As::Bolt, "/extensions", json!({"number": "1001"})).status, 201);
    let path = format!("/extensions/{}", desk.extension("1002"));
    let body = json!({"number": "1001", "password": "a long one"});
    assert_eq!(desk.patch(As::Acme, &path, body).status, 409);
}

/// Writers run one after the other, each with its checks first: no check is out of date when its change is written.
#[test]
fn of_many_at_once_one_gets_the_number() {
    let desk = Desk::start();
    let statuses = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| desk.post(As::Acme, "/extensions", json!({"number": "1003"})).status))
            .collect();
        let mut statuses: Vec<u16> = asked.into_iter().map(|thread| thread.join().unwrap()).collect();
        statuses.sort_unstable();
        statuses
    });
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(desk.get(As::Acme, "/extensions?q=1003").body["total"], 1);
}

#[test]
fn a_number_changes_with_a_new_password_alone() {
    let desk = Desk::start();
    let path = format!("/extensions/{}", desk.extension("1002"));
    let answer = desk.patch(As::Acme, &path, json!({"number": "1099"}));
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.message(),
        "number: needs a new password along with it: a password belongs to a number"
    );
    assert_eq!(desk.patch(As::Acme, &path, json!({"number": "1002"})).status, 200, "the same is no other");
    let answer = desk.patch(As::Acme, &path, json!({"number": "1099", "password": "the new one"}));
    assert_eq!((answer.status, &answer.body["number"]), (200, &json!("1099")));
    assert_eq!(answer.fields(), FIELDS);
}

#[test]
fn one_that_is_referred_to_stays() {
    let desk = Desk::start();
    let path = format!("/extensions/{}", desk.extension("1001"));
    let answer = desk.delete(As::Acme, &path);
    assert_eq!((answer.status, answer.code()), (409, "conflict"));
    assert!(answer.message().contains("+442071230000"), "{}", answer.message());
    let number = format!("/numbers/{}", desk.number());
    assert_eq!(desk.delete(As::Acme, &number).status, 204);
    assert_eq!(desk.delete(As::Acme, &path).status, 204);
}

#[test]
fn what_it_refers_to_is_the_organisations_own() {
    let desk = Desk::start();
    let foreign = json!({"number": "1003", "team_id": desk.foreign_team()});
    let absent = json!({"number": "1003", "team_id": "00000000-0000-4000-8000-000000000000"});
    for body in [foreign, absent] {
        let answer = desk.post(As::Acme, "/extensions", body);
        assert_eq!((answer.status, answer.message()), (400, "team_id: the organisation has no such team"));
    }
    let path = format!("/extensions/{}", desk.extension("1001"));
    let answer = desk.patch(As::Acme, &path, json!({"team_id": desk.foreign_team()}));
    assert_eq!(answer.message(), "team_id: the organisation has no such team");
}

#[test]
fn an_organisation_is_named_by_operators() {
    let desk = Desk::start();
    let bolt = desk.organisation("Bolt");
    let body = json!({"number": "1003", "organisation_id": bolt});
    let answer = desk.post(As::Acme, "/extensions", body.clone());
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
    let answer = desk.post(As::Operator, "/extensions", body);
    assert_eq!((answer.status, &answer.body["organisation_id"]), (201, &json!(bolt)));
    let absent = "00000000-0000-4000-8000-000000000000";
    let answer = desk.post(As::Operator, "/extensions", json!({"number": "1", "organisation_id": absent}));
    assert_eq!(answer.message(), "organisation_id: there is no such organisation");
    // A change does not move it: the field is read-only there.
    let path = format!("/extensions/{}", desk.extension("1002"));
    let moved = desk.patch(As::Acme, &path, json!({"organisation_id": bolt}));
    assert_eq!(moved.body["organisation_id"], desk.organisation("Acme"));
}

#[test]
fn lists_are_of_the_callers_scope() {
    let desk = Desk::start();
    assert_eq!(desk.get(As::Reader, "/extensions").items("number"), ["1001", "1002"]);
    assert_eq!(desk.get(As::Bolt, "/extensions").items("number"), ["2001"]);
    assert_eq!(desk.get(As::Operator, "/extensions").items("number"), ["1001", "1002", "2001"]);
    assert_eq!(desk.get(As::Supervisor, "/extensions").items("number"), ["1001"]);
    let bolt = desk.organisation("Bolt");
    let narrowed = format!("/extensions?organisation_id={bolt}");
    assert_eq!(desk.get(As::Operator, &narrowed).items("number"), ["2001"]);
    assert_eq!(desk.get(As::Acme, &narrowed).status, 403);
    let other_team = format!("/extensions/{}", desk.extension("1002"));
    assert_eq!(desk.get(As::Supervisor, &other_team).status, 403);
    assert_eq!(desk.get(As::Rooms, "/extensions").status, 403);
    assert_eq!(desk.get(As::Nobody, "/extensions").status, 401);
    assert_eq!(desk.post(As::Reader, "/extensions", json!({"number": "9"})).status, 403);
}

#[test]
fn lists_are_searched_sorted_and_paged() {
    let desk = Desk::start();
    for (number, name) in [("1003", "Étienne"), ("1004", "100% Ada_"), ("1005", "ada")] {
        let answer = desk.post(As::Acme, "/extensions", json!({"number": number, "name": name}));
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    let found = |query: &str| {
        let answer = desk.get(As::Acme, &format!("/extensions?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.body);
        answer.items("number").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found("q=ADA"), ["1001", "1004", "1005"]);
    assert_eq!(found("q=%C3%89TI"), ["1003"]);
    assert_eq!(found("q=%25"), ["1004"]);
    assert_eq!(found("q=_"), ["1004"]);
    assert_eq!(found("q=100"), ["1001", "1002", "1003", "1004", "1005"]);
    assert_eq!(found("order=desc&limit=2"), ["1005", "1004"]);
    assert_eq!(found("limit=2&offset=2"), ["1003", "1004"]);
    assert_eq!(found(&format!("team_id={}", desk.team())), ["1001"]);
    assert_eq!(found("sort=created_at&order=desc&offset=3").len(), 2);
    let page = desk.get(As::Acme, "/extensions?limit=2&offset=9");
    assert_eq!((&page.body["total"], &page.body["items"]), (&json!(5), &json!([])));
}
