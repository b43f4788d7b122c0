//! Transfers by the carrier of a trunk, and offers to transferred parties that collide.

use std::time::Duration;

use sidetone_model::call::Direction;
use sidetone_model::directory::{DirectorySnapshot, Trunk};
use sidetone_model::trunk_interop::TrunkInterop;
use sidetone_sip::message::{Method, StatusCode};

use crate::tests::network::{Plan, SDP, acme, address, extension, trunk};
use crate::tests::transfers::{ANN, BOB, Desk, in_dialog, one_of};

const CARRIER: &str = "203.0.113.1:5060";

/// Acme, whose carrier may transfer.
fn directory() -> DirectorySnapshot {
    let interop = TrunkInterop { transfers: true, ..TrunkInterop::default() };
    acme(vec![Trunk { interop, ..trunk(1, CARRIER) }])
}

/// The carrier refers the phone, which talks to Ann, from this address.
fn refer(desk: &mut Desk, from: &str, refer_to: &str) {
    let text =
        in_dialog(desk.at_carrier(&Method::Invite)[0], "REFER", 9, &format!("Refer-To: {refer_to}\r\n"));
    desk.net.inject(from, text);
}

#[test]
fn a_carrier_refers_an_extension_to_a_number() {
    let mut desk = Desk::with(directory(), [Plan::Accept]);
    refer(&mut desk, CARRIER, &format!("<sip:{BOB}@carrier.test>"));
    assert!(desk.net.told.iter().any(|told| told.status() == StatusCode::ACCEPTED));
    let notifies = desk.at_carrier(&Method::Notify);
    assert_eq!(notifies.last().unwrap().body().as_ref(), b"SIP/2.0 200 OK\r\n");
    assert_eq!(desk.at_carrier(&Method::Bye).len(), 1, "Ann's leg ends");
    assert!(desk.net.heard.is_empty(), "the phone stays: {:?}", desk.net.heard);
    let invite = desk.at_carrier(&Method::Invite)[1];
    assert_eq!(invite.uri(), format!("sip:{BOB}@{CARRIER}"));
    assert!(
        invite.header("Referred-By").is_none()
            && invite.from().unwrap().to_string().contains("+442071230000")
    );
    assert!(desk.bridges().ends_with(&[(1, 3), (3, 1)]), "{:?}", desk.bridges());
    desk.net.wait(Duration::from_secs(6));
    desk.net.hang_up();
    let (first, second) = (one_of(&desk.net.records, ANN), one_of(&desk.net.records, BOB));
    assert_eq!((second.direction, second.billsec), (Direction::Outbound, 6));
    assert_eq!(second.extension_id, Some(extension(11, 1, "", "").id), "its organisation pays");
    assert_eq!(second.transferred_from, Some(first.call_uuid));
    desk.end();
}

#[test]
fn what_a_carrier_may_not_refer_to_is_refused() {
    let bob = format!("<sip:{BOB}@carrier.test>");
    let limited = |limit| {
        let mut directory = directory();
        directory.organisations[0].max_outbound_calls = limit;
        directory
    };
    for (from, refer_to, limit, status) in [
        (CARRIER, "<sip:4711@carrier.test>", None, "403 Number May Not Be Called"),
        (CARRIER, bob.as_str(), Some(1), "403 Number May Not Be Called"),
        (CARRIER, "<sip:1@x?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2>", None, "603 Trunks Refer To Numbers"),
        ("192.0.2.66:5060", bob.as_str(), None, "403 Forbidden"),
    ] {
        let mut desk = Desk::with(limited(limit), [Plan::Accept]);
        refer(&mut desk, from, refer_to);
        let heard = match from {
            CARRIER => {
                let told = desk.net.told.last().unwrap();
                format!("{} {}", told.status().as_u16(), told.reason())
            }
            _ => {
                let (to, bytes) = desk.net.elsewhere.last().unwrap();
                assert_eq!(*to, address(from));
                String::from_utf8_lossy(bytes).lines().next().unwrap().replace("SIP/2.0 ", "")
            }
        };
        assert_eq!(heard, status, "{refer_to}");
        assert_eq!((desk.net.switch.live_calls(), desk.net.records.len()), (1, 0), "{refer_to}");
        assert_eq!(desk.at_carrier(&Method::Invite).len(), 1);
        desk.end();
    }
}

/// Ann holds; the offer to Bob collides with one of his, and is repeated.
#[test]
fn an_offer_to_a_transferred_party_is_repeated_after_a_clash() {
    let held = |desk: &Desk| {
        let offers = desk.at_carrier(&Method::Invite);
        offers.iter().filter(|offer| String::from_utf8_lossy(offer.body()).contains("sendonly")).count()
    };
    let mut desk = Desk::new([Plan::Accept, Plan::Refuse(491, Vec::new()), Plan::Accept]);
    desk.refer_to(BOB);
    let body = format!("Content-Type: application/sdp\r\n\r\n{SDP}a=sendonly\r\n");
    for (method, more) in [("INVITE", body.as_str()), ("ACK", "")] {
        let text = in_dialog(desk.at_carrier(&Method::Invite)[0], method, 11, more);
        desk.net.inject(CARRIER, text);
    }
    assert_eq!(held(&desk), 1);
    desk.net.wait(Duration::from_secs(5));
    assert_eq!(held(&desk), 2, "after 2.1 to 4 s");
    desk.net.wait(Duration::from_secs(20));
    assert_eq!(held(&desk), 2, "Bob has taken it");
    desk.end();
}
