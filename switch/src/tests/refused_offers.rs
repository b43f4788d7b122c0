//! Offers inside an answered call that the other party refuses, answers without use, or whose sender cancels them.

use std::time::Duration;

use sidetone_sip::message::{Method, Response, StatusCode};

use crate::tests::ladder::play;
use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";

/// A hold of the caller, which the callee answers by this event.
fn held(event: &str) -> String {
    play(&format!(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         1000 offer caller 4000 PCMU sendonly
         1050 {event}
         1100 offered 0 5000 PCMU sendrecv"
    ))
}

/// The responses of 401, 405, 420 and others have headers about our request, which the sender did not make.
#[test]
fn a_refusal_that_concerns_only_our_request_becomes_one_of_the_offer() {
    for status in [300, 302, 401, 405, 407, 415, 420, 421, 422] {
        assert!(held(&format!("offered 0 {status}")).contains("re-INVITE caller 488"), "{status}");
    }
    for (status, passed) in [(503, 500), (403, 403), (488, 488), (491, 491), (606, 606)] {
        let log = held(&format!("offered 0 {status}"));
        assert!(log.contains(&format!("re-INVITE caller {passed}")), "{log}");
    }
}

/// The 200 has put the callee on hold; the former session is offered again.
#[test]
fn an_answer_without_use_is_repaired() {
    let log = held("offered 0");
    assert!(log.contains("re-INVITE caller 488"), "{log}");
    assert_eq!(log.matches("re-INVITE fork 0 [20002 PCMU").count(), 2, "{log}");
    assert!(log.contains("sendrecv v3]"), "{log}");
    assert!(log.trim_end().ends_with("media 1 to 0"), "both talk again: {log}");
}

#[test]
fn the_party_that_cancelled_keeps_its_session_and_the_other_gets_it_back() {
    for (response, offers) in [("offered 0 487", 1), ("offered 0 5000 PCMU recvonly", 2), ("offered 0", 2)] {
        let log = play(&format!(
            "call 4000 PCMU sendrecv -> 1
             100 answered 0 5000 PCMU sendrecv
             110 journalled
             1000 offer caller 4000 PCMU sendonly
             1010 withdrawn 0
             1020 withdrawn caller
             1030 offer caller 4000 PCMU sendonly
             1050 {response}
             1100 offered 0 5000 PCMU sendrecv
             1200 offer caller 4000 PCMU sendonly"
        ));
        assert_eq!(log.matches("CANCEL re-INVITE fork 0").count(), 1, "{log}");
        assert!(
            log.contains("1030 offer caller 4000 PCMU sendonly\n          re-INVITE caller 491"),
            "{log}"
        );
        assert_eq!(log.matches("re-INVITE fork 0 [20002 PCMU").count(), 1 + offers, "{log}");
        assert!(!log.contains("receive true send false"), "{log}");
    }
    let gone = play(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         1000 offer caller 4000 PCMU sendonly
         1020 withdrawn caller
         1050 offered 0 481",
    );
    assert!(gone.contains("BYE caller RECOVERY_ON_TIMER_EXPIRE"), "{gone}");
}

/// 1001 cancels its hold. The carrier gets CANCEL; a 200 that crosses it is repaired by an offer of the former session.
#[test]
fn a_cancelled_offer_takes_no_effect_at_the_other_party() {
    let held_sdp = format!("{SDP}a=sendonly\r\n");
    for crosses in [false, true] {
        let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
        net.carrier(CARRIER, [Plan::Accept]);
        net.dial("+447700900002");
        net.wait(Duration::from_secs(1));
        net.heard.clear();
        net.carrier(CARRIER, [Plan::Refuse(100, Vec::new()), Plan::Accept]);
        net.offer_anew(&held_sdp);
        net.wait(Duration::from_secs(1));
        let hold = net.carriers[&address(CARRIER)].of(&Method::Invite)[1].clone();
        if crosses {
            let carrier = net.carriers.get_mut(&address(CARRIER)).unwrap();
            carrier.gone.insert(hold.call_id().to_owned(), None);
        }
        net.phone.cancel_reinvite(net.now(), net.leg.unwrap());
        net.run();
        assert_eq!(net.heard, ["487 Request Terminated"]);
        let carrier = net.carriers.get_mut(&address(CARRIER)).unwrap();
        assert_eq!(carrier.of(&Method::Cancel).len(), 1);
        if crosses {
            net.carriers.get_mut(&address(CARRIER)).unwrap().gone.clear();
            let mut response = Response::reply_to(&hold, StatusCode::OK);
            response.push("Contact", format!("<sip:{CARRIER}>")).unwrap();
            response.set_body("application/sdp", format!("{SDP}a=recvonly\r\n")).unwrap();
            net.inject(CARRIER, String::from_utf8(response.to_bytes().to_vec()).unwrap());
        }
        let invites = net.carriers[&address(CARRIER)].of(&Method::Invite);
        assert_eq!(invites.len(), if crosses { 3 } else { 2 });
        let last = String::from_utf8_lossy(invites.last().unwrap().body()).into_owned();
        assert_eq!(last.contains("a=sendonly"), !crosses, "{last}");
        net.heard.clear();
        net.offer_anew(&held_sdp);
        assert_eq!(net.heard, ["200 OK"]);
        let invites = net.carriers[&address(CARRIER)].of(&Method::Invite);
        assert!(String::from_utf8_lossy(invites.last().unwrap().body()).contains("a=sendonly"));
    }
}

/// The extension that the callee refuses is one of our request, not of the caller's.
#[test]
fn a_call_refused_for_an_extension_of_our_request_is_unavailable() {
    for status in [420, 421, 422] {
        let log = play(&format!("call 4000 PCMU sendrecv -> 1\n100 failed 0 {status}"));
        assert!(log.contains("480 caller"), "{log}");
    }
}
