//! Request bodies: what is accepted, what is refused, and the error messages (H15).

use serde_json::json;

use crate::http::desk::{As, Desk};

const JSON: &str = "Content-Type: application/json\r\n";

fn nested(depth: usize) -> Vec<u8> {
    [br#"{"name":"#.to_vec(), vec![b'['; depth - 1], vec![b']'; depth - 1], b"}".to_vec()].concat()
}

#[test]
fn what_is_no_body_is_refused_in_words() {
    let desk = Desk::start();
    let utf16: Vec<u8> = "{\"number\":\"1\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let digits = format!("{{\"number\":{}}}", "9".repeat(1_000_000)).into_bytes();
    let cases: Vec<(&str, Vec<u8>, u16, &str)> = vec![
        (JSON, b"".to_vec(), 400, "body: is missing"),
        (JSON, b"[]".to_vec(), 400, "body: must be a JSON object, not an array"),
        (JSON, b"{} x".to_vec(), 400, "body: is not JSON at line 1 column 4"),
        (JSON, b"{\"number\":NaN}".to_vec(), 400, "NaN and Infinity are no numbers"),
        (JSON, b"{\"number\":-Infinity}".to_vec(), 400, "NaN and Infinity are no numbers"),
        (JSON, b"{\"number\":\"1\",\"number\":\"2\"}".to_vec(), 400, "number: is given more than once"),
        (JSON, b"{\"number\":\"\xff\"}".to_vec(), 400, "body: must be in UTF-8"),
        (JSON, utf16.clone(), 400, "body: must be in UTF-8"),
        (JSON, digits, 400, "number out of range"),
        (JSON, nested(33), 400, "nested deeper than 32 levels"),
        (JSON, nested(400_000), 400, "nested deeper than 32 levels"),
        (JSON, vec![b' '; 1024 * 1024 + 1], 413, "too large"),
        ("Content-Type: application/json; charset=utf-16\r\n", utf16, 400, "UTF-8, the only charset"),
        ("", b"{}".to_vec(), 415, "application/json"),
        ("Content-Type: text/html\r\n", b"{}".to_vec(), 415, "application/json"),
        (
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
            b"{}".to_vec(),
            415,
            "application/json",
        ),
    ];
    for (headers, body, status, said) in cases {
        let answer = desk.raw(As::Acme, "POST", "/extensions", headers, &body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(answer.status, status, "{headers}{shown}: {}", answer.body);
        assert!(answer.message().contains(said), "{shown}: {}", answer.message());
    }
    assert_eq!(desk.get(As::Acme, "/extensions").body["total"], 2, "nothing was made of any of them");
}

#[test]
fn who_may_not_hears_that_and_not_what_is_wrong_with_the_body() {
    let desk = Desk::start();
    for (who, status) in [(As::Nobody, 401), (As::Reader, 403), (As::Rooms, 403)] {
        let answer = desk.raw(who, "POST", "/extensions", JSON, b"{nonsense");
        assert_eq!(answer.status, status, "{}", answer.body);
    }
}

#[test]
fn every_wrong_field_is_named_in_the_order_of_the_request() {
    let desk = Desk::start();
    let body = json!({
        "colour": "red", "codec_string": "speexx", "team_id": "support", "name": null, "password": 7
    });
    let answer = desk.post(As::Acme, "/extensions", body);
    let fields = "organisation_id, team_id, number, name, password, codec_string, strict_source, srtp, video, forwarding, \
                   do_not_disturb, language, max_registrations, notify_message_waiting";
    let expected = [
        ("colour", format!("is not a field here, the fields are {fields}")),
        ("codec_string", "\"speexx\" is none of AMR, AMR-WB, EVS, G722, G723, G726-32, G729, GSM, L16, PCMA, PCMU, iLBC, opus, speex".to_owned()),
        ("team_id", "must be a UUID".to_owned()),
        ("name", "must not be null".to_owned()),
        ("password", "must be a string, not a number".to_owned()),
        ("number", "is required".to_owned()),
    ];
    let message = expected.iter().map(|(field, message)| format!("{field}: {message}")).collect::<Vec<_>>();
    assert_eq!((answer.status, answer.code()), (400, "invalid_request"));
    assert_eq!(answer.message(), message.join("; "));
    let named: Vec<_> =
        expected.iter().map(|(field, message)| json!({"field": field, "message": message})).collect();
    assert_eq!(answer.body["error"]["fields"], json!(named));
}

#[test]
fn a_password_is_never_repeated() {
    let desk = Desk::start();
    let secret = "s3cret\u{7}";
    let answer = desk.post(As::Acme, "/extensions", json!({"number": "1003", "password": secret}));
    assert_eq!(
        answer.message(),
        "password: must be 8 characters to 128 bytes on one line; without a password one is generated"
    );
    assert!(!answer.body.to_string().contains("s3cret"));
}

#[test]
fn unknown_fields_are_ignored_where_the_operator_says_so() {
    let desk = Desk::with(false);
    let answer = desk.post(As::Acme, "/extensions", json!({"number": "1003", "colour": "red"}));
    assert_eq!(answer.status, 201, "{}", answer.body);
    let answer = desk.post(As::Acme, "/extensions", json!({"number": "x", "colour": "red"}));
    assert_eq!(answer.message(), "number: must be 1 to 15 digits");
}
