//! Between the callee's answer and the caller's: the record is being written, and either side may send a
//! request.

use std::time::Duration;

use expect_test::expect;
use sidetone_model::call::HangupCause;
use sidetone_sip::message::Method;

use crate::tests::ladder::check;
use crate::tests::network::{Net, Plan, SDP, acme, trunk};

const CARRIER: &str = "203.0.113.1:5060";

/// 1001's outbound call was answered, and the journal entry is not written yet.
fn answering() -> Net {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.is_disk_slow = true;
    net.dial("+447700900123");
    assert_eq!((net.unwritten.len(), requests(&net, &Method::Ack), net.heard.len()), (1, 1, 0));
    net
}

fn requests(net: &Net, method: &Method) -> usize {
    net.carriers.values().map(|carrier| carrier.of(method).len()).sum()
}

/// Checks that the caller is answered and the call continues until the caller hangs up.
fn assert_goes_on(mut net: Net) {
    net.write();
    assert_eq!(net.heard, ["200"]);
    assert_eq!(net.carrier_says(CARRIER, "INVITE", 9, Some(SDP)), 200, "the next offer is taken");
    net.wait(Duration::from_secs(40));
    assert_eq!((net.switch.live_calls(), requests(&net, &Method::Bye)), (1, 0));
    net.hang_up();
    let [record] = net.records.as_slice() else { panic!("{:?}", net.records) };
    assert_eq!((record.hangup_cause, record.billsec), (Some(HangupCause::NormalClearing), 40));
    assert_eq!((requests(&net, &Method::Bye), net.switch.live_calls(), net.switch.legs()), (1, 0, 0));
}

#[test]
fn an_offer_before_the_caller_is_answered_comes_again() {
    let held = format!("{SDP}a=sendonly\r\n");
    for offer in [Some(SDP), Some(held.as_str()), None] {
        let mut net = answering();
        assert_eq!(net.carrier_says(CARRIER, "INVITE", 1, offer), 491, "{offer:?}");
        assert_eq!(net.carrier_says(CARRIER, "INVITE", 2, offer), 491, "{offer:?}");
        assert_goes_on(net);
    }
}

#[test]
fn an_update_or_info_before_the_caller_is_answered_costs_no_call() {
    for (method, body, expected) in [("UPDATE", Some(SDP), 491), ("UPDATE", None, 200), ("INFO", None, 200)] {
        let mut net = answering();
        assert_eq!(net.carrier_says(CARRIER, method, 1, body), expected, "{method} {body:?}");
        assert_goes_on(net);
    }
}

#[test]
fn the_far_end_hangs_up_before_the_caller_is_answered() {
    for offers_first in [false, true] {
        let mut net = answering();
        if offers_first {
            assert_eq!(net.carrier_says(CARRIER, "INVITE", 1, Some(SDP)), 491);
        }
        assert_eq!(net.carrier_says(CARRIER, "BYE", 2, None), 200);
        assert_eq!(net.heard, ["480 Temporarily Unavailable"]);
        net.write();
        net.wait(Duration::from_secs(40));
        let [record] = net.records.as_slice() else { panic!("{:?}", net.records) };
        assert_eq!(record.hangup_cause, Some(HangupCause::NormalClearing));
        assert_eq!((record.answered_at, record.billsec, record.sip_status), (None, 0, Some(200)));
        assert_eq!((net.heard.len(), requests(&net, &Method::Bye)), (1, 0));
        assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    }
}

#[test]
fn the_caller_gives_up_before_it_is_answered() {
    for offers_first in [false, true] {
        let mut net = answering();
        // A CANCEL is sent only after a response to the INVITE (RFC 3261 §9.1).
        net.wait(Duration::from_millis(300));
        if offers_first {
            assert_eq!(net.carrier_says(CARRIER, "INVITE", 1, Some(SDP)), 491);
        }
        net.hang_up();
        net.write();
        net.wait(Duration::from_secs(40));
        let [record] = net.records.as_slice() else { panic!("{:?}", net.records) };
        assert_eq!((record.hangup_cause, record.answered_at), (Some(HangupCause::OriginatorCancel), None));
        assert_eq!(requests(&net, &Method::Bye), 1);
        assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    }
}

/// While the answer waits for the journal, an offer of the winning fork gets 491 and one of another fork 481.
#[test]
fn only_the_callee_that_answered_is_told_to_wait() {
    check(
        "call 4000 PCMU sendrecv -> 2
         1000 answered 0 5000 PCMU sendrecv
         1001 offer 0 5000 PCMU sendonly
         1002 offer 1 5002 PCMU sendonly
         1003 journalled
         1004 offer 0 5000 PCMU sendonly",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      CANCEL fork 1 LOSE_RACE
                      media 2 close
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            1001 offer 0 5000 PCMU sendonly
                      re-INVITE fork 0 491
            1002 offer 1 5002 PCMU sendonly
                      re-INVITE fork 1 481
            1003 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            1004 offer 0 5000 PCMU sendonly
                      re-INVITE caller [20000 PCMU sendonly v2]
        "#]],
    );
}

/// A caller without an offer answers ours by its ACK. An offer of the callee before that must wait.
#[test]
fn an_offer_before_the_caller_has_settled_comes_again() {
    check(
        "call - -> 1
         1000 answered 0 5000 PCMU sendrecv
         1001 journalled
         1002 offer 0 5002 PCMU sendrecv
         1003 ack caller 4000 PCMU sendrecv
         1004 offer 0 5002 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      media 1 party 5000 receive true send true
                      media 1 answered
                      journal
            1001 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            1002 offer 0 5002 PCMU sendrecv
                      re-INVITE fork 0 491
            1003 ack caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
            1004 offer 0 5002 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5002 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 PCMU sendrecv v2]
        "#]],
    );
}
