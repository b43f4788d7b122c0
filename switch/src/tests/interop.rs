//! Messages as real carriers and phones send them.

use sidetone_sip::message::{Method, Request};
use sidetone_sip::registrar::Registration;

use crate::tests::nat::{CARRIER, net, of_carrier};
use crate::tests::network::{Net, PHONE, SDP};

/// An INVITE of the carrier with more headers.
fn invite(more: &str, body: &str) -> String {
    of_carrier("INVITE", 1, "", body).replacen("Max-Forwards", &format!("{more}Max-Forwards"), 1)
}

/// SIP-I: the session description beside an ISUP message.
#[test]
fn a_session_description_among_other_parts_is_the_offer_and_the_answer() {
    let parts = format!(
        "--x\r\nContent-Type: application/isup;version=itu-t92+\r\n\r\n\u{1}\u{2}\r\n--x\r\n\
         Content-Type: application/sdp\r\n\r\n{SDP}\r\n--x--\r\n"
    );
    let mut net = net(PHONE);
    let mixed = "Content-Type: multipart/mixed;boundary=x";
    net.inject(
        CARRIER,
        invite("", &parts)
            .replace("Content-Type: application/sdp\r\nContent-L", &format!("{mixed}\r\nContent-L")),
    );
    net.pick_up();
    assert_eq!(net.told.last().unwrap().status().as_u16(), 200);
    let other = invite("", "hello").replace("Content-Type: application/sdp", "Content-Type: text/plain");
    net.inject(CARRIER, other.replace("Call-ID: in", "Call-ID: in2").replace("z9hG4bK", "z9hG4bKt"));
    assert_eq!(net.told.last().unwrap().status().as_u16(), 415);
}

/// The number that the phone shows and the record contains.
fn caller_of(net: &mut Net, more: &str) -> (String, Option<String>) {
    net.called.clear();
    net.records.clear();
    net.inject(CARRIER, invite(more, SDP));
    let from = net.called[0].from().unwrap().uri.user_decoded().unwrap().into_owned();
    net.inject(CARRIER, of_carrier("CANCEL", 1, "", "").replace("z9hG4bKCANCEL", "z9hG4bKINVITE"));
    net.wait(std::time::Duration::from_secs(40));
    (from, net.records[0].caller_number.clone())
}

#[test]
fn the_number_that_a_carrier_asserts_is_the_callers() {
    let from = "+447700900123";
    for (headers, expected) in [
        ("", from),
        ("P-Asserted-Identity: \"Bob\" <sip:+442079460000@carrier>\r\n", "+442079460000"),
        ("P-Asserted-Identity: <tel:+442079460000>\r\nRemote-Party-ID: <sip:+441@c>\r\n", "+442079460000"),
        (
            "Remote-Party-ID: \"B\" <sip:+442079460001@c>;party=calling;privacy=off;screen=yes\r\n",
            "+442079460001",
        ),
        ("Remote-Party-ID: <sip:+442079460001@c>;party=called\r\n", from),
        ("Remote-Party-ID: <sip:+442079460001@c>;privacy=full\r\n", from),
        ("Privacy: id\r\nP-Asserted-Identity: <sip:+442079460000@carrier>\r\n", from),
        ("P-Asserted-Identity: nonsense\r\n", from),
    ] {
        let mut net = net(PHONE);
        assert_eq!(
            caller_of(&mut net, headers),
            (expected.to_owned(), Some(expected.to_owned())),
            "{headers}"
        );
    }
}

#[test]
fn the_headers_of_a_contact_are_no_part_of_the_request_uri() {
    let mut net = net(PHONE);
    let flow = net.flow_of(PHONE);
    let register = Request::builder(Method::Register, "sip:acme.test")
        .header("Call-ID", "headers")
        .header("CSeq", "1 REGISTER")
        .header("Contact", format!("<sip:1001@{PHONE};x=y?Subject=hello>"))
        .build()
        .unwrap();
    let registration = Registration::from_request(&register, flow).unwrap();
    net.switch
        .shared
        .registrar
        .handle_input(net.now(), sidetone_sip::registrar::Input::Forget { aor: "1001@acme.test" });
    net.switch.shared.registrar.register(net.now(), "1001@acme.test", registration).unwrap();
    net.inject(CARRIER, invite("", SDP));
    assert_eq!(net.called[0].uri(), format!("sip:1001@{PHONE};x=y"));
}
