//! Offers inside a call that a party answers with 100 and then not at all.

use std::time::Duration;

use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";

/// The carrier sends 100 to a hold of 1001 and then nothing. 1001 gets 504, and the call and later offers are not
/// affected, whether or not the carrier answers the CANCEL.
#[test]
fn an_offer_without_an_answer_is_refused_and_the_call_goes_on() {
    for answers_cancel in [true, false] {
        let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
        net.carrier(CARRIER, [Plan::Accept]);
        net.dial("+447700900002");
        net.wait(Duration::from_secs(1));
        net.heard.clear();
        net.carrier(CARRIER, [Plan::Refuse(100, Vec::new()), Plan::Accept]);
        let held = format!("{SDP}a=sendonly\r\n");
        net.offer_anew(&held);
        let call_id = net.carriers[&address(CARRIER)].requests[0].call_id().to_owned();
        if !answers_cancel {
            net.carriers.get_mut(&address(CARRIER)).unwrap().gone.insert(call_id, None);
        }
        net.wait(Duration::from_secs(33));
        assert!(net.heard.is_empty(), "{:?}", net.heard);
        net.wait(Duration::from_secs(2));
        assert_eq!(net.heard, ["504 Server Time-out"]);
        net.wait(Duration::from_secs(60));
        net.carriers.get_mut(&address(CARRIER)).unwrap().gone.clear();
        net.offer_anew(&held);
        assert_eq!(net.heard[1..], ["200 OK"], "{answers_cancel}");
        assert_eq!(net.switch.live_calls(), 1);
        net.hang_up();
        net.wait(Duration::from_secs(200));
        assert_eq!((net.switch.live_calls(), net.switch.legs(), net.records.len()), (0, 0, 1));
    }
}
