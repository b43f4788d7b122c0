//! ETags of stored rooms: of two changes based on one state, the second is refused.

use serde_json::{Value, json};

use crate::http::desk::{As, Desk};
use crate::http::face::Answer;

fn tag(answer: &Answer) -> String {
    let (_, rest) = answer.head.split_once("\r\netag: ").unwrap();
    rest.split("\r\n").next().unwrap().to_owned()
}

fn send(desk: &Desk, method: &str, path: &str, tag: &str, body: &Value) -> Answer {
    let headers = format!("Content-Type: application/json\r\nIf-Match: {tag}\r\n");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    desk.raw(As::Acme, method, path, &headers, body.as_bytes())
}

#[test]
fn a_room_that_was_changed_since_is_not_changed_again() {
    let desk = Desk::start();
    let made = desk.post(As::Acme, "/conference-rooms", json!({"name": "Board", "number": "200"}));
    let path = made.location().to_owned();
    let first = tag(&made);
    assert_eq!(tag(&desk.get(As::Acme, &path)), first, "reading changes nothing");

    let changed = send(&desk, "PATCH", &path, &first, &json!({"name": "Retro"}));
    assert_eq!((changed.status, &changed.body["name"]), (200, &json!("Retro")));
    let second = tag(&changed);
    assert_ne!(second, first);
    let refused = send(&desk, "PATCH", &path, &first, &json!({"name": "Lost"}));
    assert_eq!((refused.status, refused.code()), (412, "precondition_failed"));
    assert!(refused.message().contains("read it again"), "{}", refused.message());

    // The lists of the room are parts of its state.
    let (members, exemptions) = (format!("{path}/members"), format!("{path}/exemptions"));
    let extension = desk.extension("1001");
    let listed = json!({"items": [{"extension_id": extension}]});
    assert_eq!(send(&desk, "PUT", &members, &first, &listed).status, 412);
    let set = send(&desk, "PUT", &members, &second, &listed);
    assert_eq!(set.status, 200, "{}", set.body);
    let exempt = json!({"items": [{"extension_id": extension, "role": "participant"}]});
    assert_eq!(send(&desk, "PUT", &exemptions, &second, &exempt).status, 412);
    let third = tag(&desk.get(As::Acme, &path));
    assert_eq!(send(&desk, "PUT", &exemptions, &format!("{second}, {third}"), &exempt).status, 200);

    // A weak tag never matches; `*` matches any state; without the header nothing is compared.
    let fourth = tag(&desk.get(As::Acme, &path));
    assert_eq!(send(&desk, "PATCH", &path, &format!("W/{fourth}"), &json!({"name": "Weak"})).status, 412);
    assert_eq!(send(&desk, "PATCH", &path, "*", &json!({"name": "Any"})).status, 200);
    assert_eq!(desk.patch(As::Acme, &path, json!({"name": "Plain"})).status, 200);
    let refused = send(&desk, "PATCH", &path, "plain", &json!({"name": "x"}));
    assert_eq!((refused.status, refused.message().starts_with("If-Match: must be *")), (400, true));

    assert_eq!(send(&desk, "DELETE", &path, &fourth, &Value::Null).status, 412);
    let fifth = tag(&desk.get(As::Acme, &path));
    assert_eq!(send(&desk, "DELETE", &path, &fifth, &Value::Null).status, 204);
}
