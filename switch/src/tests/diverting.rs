//! Redirections by phones: their targets, who pays, and redirections that are never followed.

use std::time::Duration;

use sidetone_model::call::{Direction, EndedBy, HangupCause};
use sidetone_model::directory::{DirectorySnapshot, Network};
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::ua::Reply;

use crate::machine::Input;
use crate::tests::network::{Net, Plan, SDP, acme, address, extension, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const ANN: &str = "+447700900001";
const BOB: &str = "+447700900002";

fn directory() -> DirectorySnapshot {
    let mut from_carrier = trunk(1, CARRIER);
    from_carrier.accept_from = vec![Network { address: address(CARRIER).ip(), prefix_len: 32 }];
    acme(vec![from_carrier])
}

/// 1001 is registered, and its phone redirects calls to this Contact.
fn redirecting(status: u16, contact: &str) -> Net {
    let mut net = Net::new(directory());
    net.register();
    net.heard.clear();
    net.refusal = Some(Reply::new(StatusCode::new(status).unwrap()).header("Contact", contact));
    net
}

/// Ann calls the number of 1001 from outside.
fn ann_calls(net: &mut Net) {
    net.inject(
        CARRIER,
        format!(
            "INVITE sip:+442071230000@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bKin\r\n\
             Max-Forwards: 70\r\nFrom: <sip:{ANN}@carrier.test>;tag=in\r\nTo: <sip:+442071230000@acme.test>\r\n\
             Call-ID: inbound\r\nCSeq: 1 INVITE\r\nContact: <sip:{CARRIER}>\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{SDP}",
            SDP.len()
        ),
    );
}

fn statuses(net: &Net) -> Vec<u16> {
    net.told.iter().map(|response| response.status().as_u16()).collect()
}

fn end(net: &mut Net) {
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    assert!(net.switch.control.calls.is_empty());
}

#[test]
fn a_redirection_to_an_outside_number_is_the_forwarders_call() {
    for (status, contact) in
        [(302, format!("<sip:{BOB}@acme.test>")), (301, "<sip:07700-900002@192.0.2.1>;q=0.5".to_owned())]
    {
        let mut net = redirecting(status, &contact);
        net.carrier(CARRIER, [Plan::Accept]);
        ann_calls(&mut net);
        assert_eq!(statuses(&net), [181, 200], "{contact}");
        let onward = net.carriers[&address(CARRIER)].of(&Method::Invite)[0].clone();
        assert_eq!(onward.uri(), format!("sip:{BOB}@{CARRIER}"));
        let diversions: Vec<&str> = onward.header_all("Diversion").collect();
        assert_eq!(diversions, ["<sip:1001@acme.test>;reason=deflection;counter=1"]);
        let history: Vec<&str> = onward.header_all("History-Info").collect();
        assert_eq!(history.len(), 2);
        assert_eq!(history[0], "<sip:1001@acme.test?Reason=SIP%3Bcause%3D302>;index=1");
        assert!(history[1].ends_with(">;index=1.1;mp=1"), "{history:?}");
        assert_eq!(onward.max_forwards(), Some(68));
        assert_eq!(net.called.len(), 1);
        net.wait(Duration::from_secs(7));
        net.feed(Input::EndCalls(HangupCause::NormalClearing));
        net.run();
        let record = &net.records[0];
        assert_eq!(
            (record.direction, record.extension_id),
            (Direction::Inbound, Some(extension(11, 1, "", "").id))
        );
        assert_eq!(record.caller_number.as_deref(), Some(ANN));
        assert_eq!(record.destination_number.as_deref(), Some("+442071230000"));
        assert_eq!((record.dialled_number.as_deref(), record.forwarded_to.as_deref()), (None, Some(BOB)));
        assert_eq!((record.billsec, record.sip_status), (7, Some(200)));
        end(&mut net);
    }
}

/// The Contact with the highest `q` is called first; one that cannot be called does not stop the redirection.
#[test]
fn a_redirection_with_several_contacts_goes_to_the_best_one_that_can_be_called() {
    for contacts in [
        "<sip:nobody@acme.test>;q=0.1, <sip:BOB@acme.test>;q=0.9".to_owned(),
        "<sip:nobody@acme.test>;q=0.9, <sip:BOB@acme.test>;q=0.1".to_owned(),
        format!("<sip:{ANN}@acme.test>;q=0.1, <sip:BOB@acme.test>"),
        "<mailto:x@y.test>;q=0.1, <sip:BOB@acme.test>;q=0.9".to_owned(),
        "<mailto:x@y.test>, <sip:BOB@acme.test>".to_owned(),
        "<mailto:12@y.test>, <sip:acme.test>, <sip:BOB@acme.test>".to_owned(),
        "<sip:1001@acme.test>, <tel:BOB>".to_owned(),
    ] {
        let contacts = contacts.replace("BOB", BOB);
        let mut net = redirecting(302, &contacts);
        net.carrier(CARRIER, [Plan::Accept]);
        ann_calls(&mut net);
        assert_eq!(statuses(&net), [181, 200], "{contacts}");
        let onward = net.carriers[&address(CARRIER)].of(&Method::Invite)[0].clone();
        assert_eq!(onward.uri(), format!("sip:{BOB}@{CARRIER}"), "{contacts}");
        end(&mut net);
    }
}

/// In circles, to no number, or to a number that the extension may not dial: the caller gets 480, as for any
/// redirection that is not followed.
#[test]
fn a_redirection_that_leads_nowhere_is_a_failed_call() {
    for contact in
        ["<sip:1001@acme.test>", "<sip:+442071230000@acme.test>", "<sip:nobody@acme.test>", "<sip:acme.test>"]
    {
        let mut net = redirecting(302, contact);
        net.carrier(CARRIER, [Plan::Accept]);
        ann_calls(&mut net);
        net.wait(Duration::from_secs(1));
        assert_eq!(statuses(&net).last(), Some(&480), "{contact}: {:?}", statuses(&net));
        assert!(net.carriers[&address(CARRIER)].of(&Method::Invite).is_empty(), "{contact}");
        let record = &net.records[0];
        assert_eq!(record.hangup_cause, Some(HangupCause::RedirectionToNewDestination), "{contact}");
        assert_eq!(record.ended_by, Some(EndedBy::Callee));
        end(&mut net);
    }
}

/// A carrier's redirection is never followed: the new call would be at the expense of no authenticated party.
#[test]
fn a_trunk_redirects_nothing() {
    let mut net = Net::new(directory());
    net.carrier(
        CARRIER,
        [Plan::Refuse(302, vec![("Contact", format!("<sip:{BOB}@acme.test>"))]), Plan::Accept],
    );
    net.dial(ANN);
    assert_eq!(net.heard, ["480 Temporarily Unavailable"]);
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Invite).len(), 1);
    end(&mut net);
}

/// The caller gives up while the new target rings, and the target's refusal is the result of the call.
#[test]
fn a_forwarded_call_ends_as_any_other() {
    let mut net = redirecting(302, &format!("<sip:{BOB}@acme.test>"));
    net.carrier(CARRIER, [Plan::Refuse(486, Vec::new())]);
    ann_calls(&mut net);
    assert_eq!(statuses(&net), [181, 486]);
    assert_eq!(
        (net.records[0].hangup_cause, net.records[0].sip_status),
        (Some(HangupCause::UserBusy), Some(486))
    );
    end(&mut net);

    let mut net = redirecting(302, &format!("<sip:{BOB}@acme.test>"));
    net.carrier(CARRIER, [Plan::Ring]);
    ann_calls(&mut net);
    net.wait(Duration::from_secs(3));
    net.inject(
        CARRIER,
        format!(
            "CANCEL sip:+442071230000@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bKin\r\n\
             Max-Forwards: 70\r\nFrom: <sip:{ANN}@carrier.test>;tag=in\r\nTo: <sip:+442071230000@acme.test>\r\n\
             Call-ID: inbound\r\nCSeq: 1 CANCEL\r\nContent-Length: 0\r\n\r\n"
        ),
    );
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Cancel).len(), 1);
    net.wait(Duration::from_secs(3));
    assert_eq!(net.records[0].ended_by, Some(EndedBy::Caller));
    end(&mut net);
}
