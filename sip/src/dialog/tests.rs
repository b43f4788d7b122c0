//! Dialogs created from requests and responses: identity, sequence, targets and routes.

use super::*;
use crate::flow::{Flow, ListenerId};
use crate::message::{Method, Request, Response, StatusCode};

fn flow(remote: &str) -> Flow {
    Flow::udp(ListenerId(3), remote.parse().unwrap())
}

fn invite(via: &str, contact: &str, record_routes: &[&str]) -> Request {
    let mut invite = Request::builder(Method::Invite, "sip:bob@biloxi.example")
        .header("Via", format!("SIP/2.0/UDP {via};branch=z9hG4bK74bf9"))
        .header("From", "Alice <sip:alice@atlanta.example>;tag=9fxced76sl")
        .header("To", "\"B;ob\" <sip:bob@biloxi.example>")
        .header("Call-ID", "3848276298220188511@atlanta.example")
        .header("CSeq", "31862 INVITE")
        .header("Contact", contact)
        .build()
        .unwrap();
    for route in record_routes {
        invite.push("Record-Route", route).unwrap();
    }
    invite
}

fn response(to_invite: &Request, status: u16, tag: &str, contact: &str, record_routes: &[&str]) -> Response {
    let mut response = Response::reply_to(to_invite, StatusCode::new(status).unwrap());
    response.set_to_tag(tag).unwrap();
    response.push("Contact", contact).unwrap();
    for route in record_routes {
        response.push("Record-Route", route).unwrap();
    }
    response
}

fn uas(remote: &str, via: &str, contact: &str, record_routes: &[&str]) -> Dialog {
    let invite = invite(via, contact, record_routes);
    Dialog::uas(&invite, "314159", flow(remote), "<sip:bob@192.0.2.4>".to_owned()).unwrap()
}

#[test]
fn a_uas_dialog_is_the_mirror_of_its_invite() {
    let mut dialog = uas(
        "192.0.2.1:5060",
        "192.0.2.1",
        "<sip:alice@192.0.2.1>",
        &["<sip:ss1.example;lr>, <sip:ss2.example;lr>", "<sip:ss3.example;lr>"],
    );
    assert_eq!((dialog.role(), dialog.state()), (Role::Uas, State::Early));
    let cseq = dialog.next_cseq();
    let bye = dialog.request(Method::Bye, cseq).unwrap();
    let text = String::from_utf8(bye.to_bytes().to_vec()).unwrap();
    expect_test::expect![[r#"
        BYE sip:alice@192.0.2.1 SIP/2.0
        Route: <sip:ss1.example;lr>
        Route: <sip:ss2.example;lr>
        Route: <sip:ss3.example;lr>
        Max-Forwards: 70
        From: "B;ob" <sip:bob@biloxi.example>;tag=314159
        To: Alice <sip:alice@atlanta.example>;tag=9fxced76sl
        Call-ID: 3848276298220188511@atlanta.example
        CSeq: 1 BYE
        Content-Length: 0

    "#]]
    .assert_eq(&text.replace('\r', ""));
}

#[test]
fn a_uac_dialog_turns_the_route_around_and_learns_its_target_anew() {
    let invite = invite("192.0.2.1", "<sip:alice@192.0.2.1>", &[]);
    let ringing = response(&invite, 180, "8321234356", "<sip:bob@192.0.2.4>", &["<sip:ss2.example;lr>"]);
    let mut dialog =
        Dialog::uac(&invite, &ringing, flow("192.0.2.9:5060"), "<sip:alice@192.0.2.1>".to_owned()).unwrap();
    assert_eq!(
        (dialog.state(), dialog.remote_target().to_string()),
        (State::Early, "sip:bob@192.0.2.4".into())
    );

    let routes = ["<sip:ss2.example;lr>", "<sip:ss1.example;lr>"];
    let answer = response(&invite, 200, "8321234356", "<sip:bob@192.0.2.5:5080?Subject=x>", &routes);
    dialog.confirm_uac(&answer).unwrap();
    let ack = dialog.request(Method::Ack, 31_862).unwrap();
    let seen: Vec<_> = ack.routes().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        (ack.uri(), seen),
        ("sip:bob@192.0.2.5:5080", routes.iter().rev().map(ToString::to_string).collect())
    );

    // §12.2: the route set stays for the life of the dialog, the target may change.
    let moved = response(&invite, 200, "8321234356", "<sip:bob@192.0.2.6>", &[]);
    dialog.confirm_uac(&moved).unwrap();
    assert_eq!(
        (dialog.remote_target().to_string(), dialog.routes().is_empty()),
        ("sip:bob@192.0.2.6".into(), false)
    );
    assert_eq!(dialog.next_cseq(), 31_863);
}

#[test]
fn requests_are_taken_in_order_only() {
    let mut dialog = uas("192.0.2.1:5060", "192.0.2.1", "<sip:alice@192.0.2.1>", &[]);
    for (name, cseq, expected) in [
        ("lower than the INVITE's", 31_861, Err(DialogError::OutOfOrder)),
        ("equal in a new transaction", 31_862, Err(DialogError::OutOfOrder)),
        ("the next", 31_863, Ok(())),
        ("a gap", 40_000, Ok(())),
        ("back into the gap", 39_999, Err(DialogError::OutOfOrder)),
    ] {
        let mut info = invite("192.0.2.1", "<sip:alice@192.0.2.1>", &[]);
        info.set("CSeq", format!("{cseq} INFO")).unwrap();
        assert_eq!(dialog.receive(flow("192.0.2.1:5060"), &info), expected, "{name}");
    }
}

#[test]
fn only_an_invite_or_an_update_moves_the_target() {
    for (method, expected) in
        [(Method::Info, "192.0.2.1"), (Method::Invite, "192.0.2.7"), (Method::Update, "192.0.2.7")]
    {
        let mut dialog = uas("192.0.2.1:5060", "192.0.2.1", "<sip:192.0.2.1>", &[]);
        let request =
            Request::builder(method, "sip:b@h").header("Contact", "<sip:192.0.2.7>").build().unwrap();
        dialog.refresh_target_by(&request).unwrap();
        assert_eq!(dialog.remote_target().to_string(), format!("sip:{expected}"));
    }
}

#[test]
fn messages_go_to_the_route_or_the_target_unless_that_is_behind_a_nat() {
    for (name, source, via, contact, routes, expected) in [
        ("as it says", "192.0.2.1:5060", "192.0.2.1", "<sip:a@192.0.2.1>", &[][..], "192.0.2.1:5060"),
        ("another port", "192.0.2.1:5060", "192.0.2.1", "<sip:a@192.0.2.1:5099>", &[], "192.0.2.1:5099"),
        ("another host", "192.0.2.1:5060", "192.0.2.1", "<sip:a@198.51.100.8>", &[], "198.51.100.8:5060"),
        ("a name", "192.0.2.1:5070", "pc.example", "<sip:a@pc.example>", &[], "192.0.2.1:5070"),
        ("behind a NAT", "203.0.113.5:40000", "192.168.1.2", "<sip:a@192.168.1.2>", &[], "203.0.113.5:40000"),
        (
            "behind a NAT that kept the port",
            "203.0.113.5:5060",
            "10.0.0.2",
            "<sip:a@10.0.0.2>",
            &[],
            "203.0.113.5:5060",
        ),
        ("a private network of ours", "10.0.0.3:5060", "10.0.0.3", "<sip:a@10.0.0.2>", &[], "10.0.0.2:5060"),
        ("no address at all", "192.0.2.1:5060", "192.0.2.1", "<sip:a@0.0.0.0>", &[], "192.0.2.1:5060"),
        ("another family", "192.0.2.1:5060", "192.0.2.1", "<sip:a@[2001:db8::1]>", &[], "192.0.2.1:5060"),
        (
            "IPv6",
            "[2001:db8::1]:5060",
            "[2001:db8::1]",
            "<sip:a@[2001:db8::7]:5061>",
            &[],
            "[2001:db8::7]:5061",
        ),
        (
            "a proxy that stays",
            "192.0.2.9:5060",
            "192.0.2.9",
            "<sip:a@10.0.0.2>",
            &["<sip:192.0.2.10;lr>"],
            "192.0.2.10:5060",
        ),
        (
            "a proxy by name",
            "192.0.2.9:5060",
            "192.0.2.9",
            "<sip:a@10.0.0.2>",
            &["<sip:p.example;lr>"],
            "192.0.2.9:5060",
        ),
    ] {
        let dialog = uas(source, via, contact, routes);
        assert_eq!(dialog.route(), flow(expected), "{name}");
    }
}

#[test]
fn messages_to_a_registered_phone_keep_to_its_flow_unless_proxies_stay() {
    let routes = &["<sip:192.0.2.10;lr>"][..];
    for (contact, routes, expected) in [
        ("<sip:a@192.0.2.1:5099>", &[][..], "192.0.2.1:5060"),
        ("<sip:a@198.51.100.8>", &[], "192.0.2.1:5060"),
        ("<sip:a@198.51.100.8>", routes, "192.0.2.10:5060"),
    ] {
        let mut dialog = uas("192.0.2.1:5060", "192.0.2.1", contact, routes);
        dialog.keep_to_flow();
        assert_eq!(dialog.route(), flow(expected), "{contact}");
    }
    let mut dialog = uas("192.0.2.1:5060", "192.0.2.1", "<sip:a@10.0.0.2>", &[]);
    dialog.keep_to_flow();
    dialog.move_to(flow("192.0.2.1:6060"));
    assert_eq!(dialog.route(), flow("192.0.2.1:6060"));
}

#[test]
fn an_ack_is_kept_for_its_own_2xx() {
    let mut dialog = uas("192.0.2.1:5060", "192.0.2.1", "<sip:alice@192.0.2.1>", &[]);
    let bytes = bytes::Bytes::from_static(b"ACK");
    dialog.keep_ack(2, flow("192.0.2.1:5060"), bytes.clone());
    assert_eq!(dialog.ack_of(1), None);
    assert_eq!(dialog.ack_of(2), Some((flow("192.0.2.1:5060"), bytes)));
}
