//! Forwarding and do not disturb of extensions over HTTP.

use serde_json::json;

use crate::http::desk::{As, Desk};

const NOTHING: &str =
    r#"{"always":null,"busy":null,"no_answer":null,"no_answer_seconds":20,"unregistered":null}"#;

#[test]
fn forwarding_is_set_changed_and_removed_member_by_member() {
    let desk = Desk::start();
    let path = format!("/extensions/{}", desk.extension("1001"));
    let read = desk.get(As::Reader, &path);
    assert_eq!(
        (read.body["forwarding"].to_string().as_str(), &read.body["do_not_disturb"]),
        (NOTHING, &json!(false))
    );
    let body =
        json!({"forwarding": {"busy": "1002", "no_answer": "+44 20 7946-0000", "no_answer_seconds": 30}});
    let changed = desk.patch(As::Acme, &path, body);
    assert_eq!(changed.status, 200, "{}", changed.body);
    let expected = json!({
        "always": null, "busy": "1002", "no_answer": "+442079460000", "no_answer_seconds": 30, "unregistered": null
    });
    assert_eq!(changed.body["forwarding"], expected);
    let again = desk.patch(As::Acme, &path, json!({"forwarding": {"busy": null}, "do_not_disturb": true}));
    assert_eq!(again.body["forwarding"]["busy"], json!(null));
    assert_eq!(again.body["forwarding"]["no_answer"], "+442079460000", "what is left out stays");
    assert_eq!(again.body["do_not_disturb"], true);
    assert_eq!(desk.patch(As::Acme, &path, again.body.clone()).body["forwarding"], again.body["forwarding"]);
    assert_eq!(desk.get(As::Reader, &path).body["forwarding"], again.body["forwarding"]);

    let body = json!({"number": "1003", "forwarding": {"unregistered": "1001"}, "do_not_disturb": true});
    let made = desk.post(As::Acme, "/extensions", body);
    assert_eq!(
        (made.status, &made.body["forwarding"]["unregistered"]),
        (201, &json!("1001")),
        "{}",
        made.body
    );
    assert_eq!(made.body["do_not_disturb"], true);
}

#[test]
fn a_number_that_the_extension_cannot_dial_is_refused() {
    let desk = Desk::start();
    let path = format!("/extensions/{}", desk.extension("1001"));
    let nowhere = "is no extension, conference room or phone number that the extension can dial";
    let digits = "must be 1 to 20 digits as the extension dials them, such as 1002 or +442071230000";
    let cases = [
        (json!({"always": "1001"}), "forwarding.always: is the extension itself".to_owned()),
        (json!({"busy": "4711"}), format!("forwarding.busy: {nowhere}")),
        // Bolt's extension does not belong to Acme.
        (json!({"busy": "2001"}), format!("forwarding.busy: {nowhere}")),
        (
            json!({"unregistered": "02079460000"}),
            "forwarding.unregistered: is a national number and the organisation has no country_code: write it with +"
                .to_owned(),
        ),
        (json!({"no_answer": "sip:ann@example.com"}), format!("forwarding.no_answer: {digits}")),
        (json!({"no_answer_seconds": 4}), "forwarding.no_answer_seconds: must be between 5 and 120".to_owned()),
        (
            json!({"never": "1002"}),
            "forwarding.never: is not a field here, the fields are always, busy, no_answer, no_answer_seconds, \
             unregistered"
                .to_owned(),
        ),
    ];
    for (forwarding, message) in cases {
        let answer = desk.patch(As::Acme, &path, json!({"forwarding": forwarding}));
        assert_eq!((answer.status, answer.message()), (400, message.as_str()), "{forwarding}");
    }
    assert_eq!(desk.get(As::Reader, &path).body["forwarding"].to_string(), NOTHING);
    // A number that was valid when it was set and is not any more does not block later changes.
    let made = desk.post(As::Acme, "/extensions", json!({"number": "1003"}));
    assert_eq!(desk.patch(As::Acme, &path, json!({"forwarding": {"busy": "1003"}})).status, 200);
    assert_eq!(desk.delete(As::Acme, made.location()).status, 204);
    let later = desk.patch(As::Acme, &path, json!({"forwarding": {"busy": "1003", "always": "1002"}}));
    assert_eq!(later.status, 200, "{}", later.body);
}

/// Users set the forwarding of their own extension and no other field of it, and nothing on other extensions or in
/// other organisations.
#[test]
fn users_set_the_forwarding_of_their_own_extension_alone() {
    let desk = Desk::start();
    let (own, other) = (desk.extension("1001"), desk.extension("1002"));
    let user = |who, email: &str| {
        let body = json!({"email": email, "password": "battery staple", "role": "agent"});
        let made = desk.post(who, "/users", body);
        assert_eq!(made.status, 201, "{}", made.body);
        made.body["id"].clone()
    };
    let ada = user(As::Acme, "ada@acme.test");
    user(As::Bolt, "bob@bolt.test");
    let agent = json!({"name": "Ada", "kind": "human", "extension_id": own, "user_id": ada});
    let made = desk.post(As::Acme, "/agents", agent);
    assert_eq!(made.status, 201, "{}", made.body);

    let patch = |email: &str, id: &str, body| {
        desk.patch_by((email, "battery staple"), &format!("/extensions/{id}"), body)
    };
    let disturb = json!({"do_not_disturb": true, "forwarding": {"busy": "1002"}});
    let changed = patch("ada@acme.test", &own, disturb.clone());
    assert_eq!((changed.status, &changed.body["do_not_disturb"]), (200, &json!(true)), "{}", changed.body);
    assert_eq!(patch("ada@acme.test", &other, disturb.clone()).status, 403);
    for body in [json!({"name": "Eve"}), json!({"password": "battery staple", "do_not_disturb": false})] {
        let answer = patch("ada@acme.test", &own, body);
        assert_eq!(answer.status, 403, "{}", answer.body);
        assert!(answer.message().contains("only forwarding and do_not_disturb"), "{}", answer.message());
    }
    let wrong = patch("ada@acme.test", &own, json!({"forwarding": {"always": "4711"}}));
    assert_eq!(wrong.status, 400, "{}", wrong.body);
    for id in [&own, &other] {
        assert_eq!(patch("bob@bolt.test", id, disturb.clone()).status, 403);
    }
    let body = json!({"do_not_disturb": true});
    assert_eq!(desk.patch(As::Reader, &format!("/extensions/{own}"), body).status, 403, "a key is no user");
    let read = desk.get(As::Reader, &format!("/extensions/{other}"));
    assert_eq!(read.body["do_not_disturb"], false);
    assert_eq!(desk.get(As::Reader, &format!("/extensions/{own}")).body["name"], "Ada");
}
