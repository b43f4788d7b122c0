//! What the switch says of itself: Allow and Supported, and the extensions that a request may require.

use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Headers, Method, StatusCode};
use sidetone_sip::ua::{Draft, Extra};

use crate::tests::nat::{CARRIER, net, of_carrier};
use crate::tests::network::{Net, PHONE, Plan, SDP, SWITCH, acme, address, trunk};
use crate::tests::transfers::{BOB, Desk};

fn allows(headers: &Headers) -> bool {
    ["INVITE", "INFO", "REFER", "UPDATE"].iter().all(|method| headers.lists("Allow", method))
}

#[test]
fn an_invite_and_its_answers_list_methods_and_extensions() {
    let mut net = net(PHONE);
    net.inject(CARRIER, of_carrier("INVITE", 1, "", SDP));
    let rung = net.called[0].headers().clone();
    net.pick_up();
    assert!(allows(&rung) && rung.lists("Supported", "replaces") && rung.lists("Supported", "100rel"));
    let answers: Vec<_> =
        net.told.iter().filter(|response| response.status() != StatusCode::TRYING).collect();
    assert_eq!(answers.last().unwrap().status(), StatusCode::OK);
    for answer in &answers {
        assert!(allows(answer.headers()), "{}", answer.status());
        assert_eq!(answer.headers().lists("Supported", "replaces"), answer.status() == StatusCode::OK);
    }

    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(BOB);
    let invite = net.carriers[&address(CARRIER)].of(&Method::Invite)[0].clone();
    assert!(allows(invite.headers()) && invite.headers().lists("Supported", "replaces"));
    assert_eq!(invite.headers().header_all("Allow").count(), 1);
}

#[test]
fn options_is_answered_with_all_extensions() {
    let mut net = net(PHONE);
    net.inject(CARRIER, of_carrier("OPTIONS", 1, "", &" ".repeat(400)));
    let answer = net.told.last().unwrap().headers();
    for tag in ["100rel", "gruu", "norefersub", "outbound", "path", "replaces", "timer"] {
        assert!(answer.lists("Supported", tag), "{tag}: {:?}", answer.header("Supported"));
    }
    assert!(allows(answer));
}

#[test]
fn a_registration_may_require_what_the_registrar_supports() {
    let (accepted, refused) = ("200 OK", "420 Bad Extension");
    for (tag, expected) in [
        ("path", accepted),
        ("outbound", accepted),
        ("gruu", accepted),
        ("path, outbound", accepted),
        ("magic", refused),
    ] {
        let mut net = Net::new(acme(Vec::new()));
        let aor = "<sip:1001@acme.test>";
        let draft = Draft::new(Method::Register, "sip:acme.test", aor, aor).header("Require", tag);
        net.phone.request(net.now(), Flow::udp(ListenerId(0), address(SWITCH)), draft).unwrap();
        net.run();
        assert_eq!(net.heard.join(","), expected, "{tag}");
        assert_eq!(net.switch.bindings(), usize::from(expected == accepted), "{tag}");
    }
}

#[test]
fn a_transfer_may_require_that_there_is_no_subscription() {
    let mut desk = Desk::new([Plan::Accept]);
    let refer = Extra::new().header("Refer-To", format!("<sip:{BOB}@acme.test>"));
    desk.refer(refer.header("Require", "norefersub").header("Refer-Sub", "false"));
    assert_eq!(desk.net.heard.first().map(String::as_str), Some("202 Accepted"), "{:?}", desk.net.heard);
    assert_eq!(desk.at_carrier(&Method::Invite).len(), 2);
    desk.end();
}
