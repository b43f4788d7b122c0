//! Parked calls and their pick-up, and pick-up of calls that ring.

use std::time::Duration;

use expect_test::expect;
use sidetone_model::call::HangupCause;
use sidetone_model::call_operation::{CallOperation, OperationRefused, RecordStep};
use sidetone_model::call_parking::{ParkOrder, PickUpOrder};
use sidetone_model::ids::{CallId, ExtensionId};
use sidetone_sip::message::Method;
use uuid::Uuid;

use crate::tests::directory::organisation;
use crate::tests::network::{Net, Plan, acme, address, extension, trunk};
use crate::tests::operations::refused;
use crate::tests::own_mix::check_after;
use crate::tests::transfers::{ANN, BOB, one_of};

const CARRIER: &str = "203.0.113.1:5060";

impl Net {
    fn park(&mut self, call: CallId, slot: Option<u16>, seconds: u32) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::Park(ParkOrder { call, leg: None, slot, seconds }))
    }

    fn pick_up_by(&mut self, call: CallId, extension: u128) -> Result<CallId, OperationRefused> {
        let by = ExtensionId(Uuid::from_u128(extension));
        self.operate(CallOperation::PickUp(PickUpOrder { call, by }))
    }

    /// The parking slot of a call.
    fn slot_of(&mut self, call: CallId) -> Option<u16> {
        Some(self.find_call(call)?.parked?.slot)
    }

    fn byes_to_carrier(&self) -> usize {
        self.carriers[&address(CARRIER)].of(&Method::Bye).len()
    }

    fn cause_of(&self, number: &str) -> Option<HangupCause> {
        one_of(&self.records, number).hangup_cause
    }
}

/// 1001, which is registered if `registered`, talks to Ann; 1002 has no phone, and 1003 is of another organisation.
fn talking(registered: bool) -> (Net, CallId) {
    let mut directory = acme(vec![trunk(1, CARRIER)]);
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    directory.organisations.push(organisation(2, "other.test"));
    directory.extensions.push(extension(13, 2, "other.test", "1003"));
    let mut net = Net::new(directory);
    if registered {
        net.register();
    }
    net.carrier(CARRIER, [Plan::Accept, Plan::Accept]);
    net.dial(ANN);
    net.heard.clear();
    let call = net.live()[0].uuid;
    (net, call)
}

fn end(net: &mut Net) {
    net.feed(crate::machine::Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    assert!(net.switch.control.transfers.is_empty());
    assert!(net.switch.control.calls.is_empty());
}

#[test]
fn a_parked_party_hears_music_and_is_reported_once_its_time_is_over() {
    check_after(
        "1000 park 0 caller
         2000 offer 0 5008 PCMU sendrecv
         3000 timeout
         301500 timeout
         302000 timeout
         303000 bye 0",
        expect![[r#"
            1000 park 0 caller
                      media 1 joins mix 100 in PCMU muted hears Music
            2000 offer 0 5008 PCMU sendrecv
                      media 1 party 5008 receive true send true
                      media 1 PCMU hears true speaks true
                      re-INVITE fork 0 200 [20002 PCMU sendrecv v2]
            3000 timeout
            301500 timeout
                      not picked up
            302000 timeout
            303000 bye 0
                      fork 0 left its seat
                      media 1 close
                      media 0 close
        "#]],
    );
}

/// Parking ends the hold and the recording of the call.
#[test]
fn a_call_that_is_held_and_recorded_is_parked() {
    check_after(
        "1000 record start
         2000 hold caller
         3000 park 0 caller",
        expect![[r#"
            1000 record start
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      record mix 100 Some([PortId(0), PortId(1)])
            2000 hold caller
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            3000 park 0 caller
                      mix 100 StopRecording
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 1 joins mix 100 in PCMU muted hears Music
        "#]],
    );
}

#[test]
fn a_party_waits_in_a_slot_until_it_is_picked_up() {
    let (mut net, call) = talking(true);
    assert_eq!(refused(net.park(call, Some(0), 300)), "slot");
    assert_eq!(refused(net.park(call, Some(100), 300)), "slot");
    assert_eq!(net.park(call, None, 300), Ok(call));
    assert_eq!((net.heard.clone(), net.byes_to_carrier()), (vec!["BYE".to_owned()], 0));
    assert!(net.rooms.iter().any(|line| line == "2 joins, hears Music, muted"), "{:?}", net.rooms);
    let parked = net.find_call(call).unwrap().parked.unwrap();
    assert_eq!((parked.slot, parked.by), (1, ExtensionId(Uuid::from_u128(11))));
    // Another call has another slot, and cannot have the same.
    net.dial(BOB);
    let other = net.live().into_iter().map(|live| live.uuid).find(|uuid| *uuid != call).unwrap();
    assert_eq!(refused(net.park(other, Some(1), 300)), "conflict");
    assert_eq!(net.park(other, None, 300), Ok(other));
    assert_eq!(net.slot_of(other), Some(2));
    // Other operations on a waiting party are refused.
    assert_eq!(refused(net.park(call, None, 300)), "conflict");
    assert_eq!(refused(net.hold(call, None)), "conflict");
    assert_eq!(refused(net.pick_up_by(call, 12)), "conflict", "1002 has no phone");
    assert_eq!(refused(net.pick_up_by(call, 13)), "from", "1003 is of another organisation");
    assert_eq!(refused(net.pick_up_by(CallId(Uuid::from_u128(9)), 11)), "gone");
    let taken = net.pick_up_by(call, 11).unwrap();
    assert_eq!(refused(net.pick_up_by(call, 11)), "conflict", "one of two wins");
    assert!(net.slot_of(call).is_some(), "it waits until a phone answers");
    net.pick_up();
    net.run();
    assert_eq!(net.slot_of(call), None);
    assert_eq!(refused(net.pick_up_by(call, 11)), "conflict");
    net.wait(Duration::from_secs(20));
    assert_eq!(net.switch.live_calls(), 3);
    end(&mut net);
    let (first, second) = (one_of(&net.records, ANN), one_of(&net.records, "1001"));
    assert_eq!((first.call_uuid, second.call_uuid), (call, taken));
    assert_eq!((first.transferred_to, second.transferred_from), (Some(taken), Some(call)));
    assert_eq!((first.billsec, second.billsec), (20, 20));
    assert_eq!(second.caller_number.as_deref(), Some(ANN));
}

/// 1001 has picked Ann up and parks her again: the recording of both ends.
#[test]
fn a_recording_of_linked_calls_ends_when_a_party_is_parked() {
    let (mut net, call) = talking(true);
    net.park(call, None, 300).unwrap();
    let taken = net.pick_up_by(call, 11).unwrap();
    net.pick_up();
    net.run();
    assert_eq!(net.record(taken, RecordStep::Start(Uuid::from_u128(7).into())), Ok(call));
    net.rooms.clear();
    net.park(taken, None, 300).unwrap();
    assert_eq!(net.slot_of(call), Some(1));
    assert_eq!(net.rooms.iter().filter(|line| *line == "record no more").count(), 1, "{:?}", net.rooms);
    assert_eq!(net.find_call(call).unwrap().recording, None);
    end(&mut net);
}

#[test]
fn a_pick_up_that_is_not_answered_leaves_the_party_in_its_slot() {
    let (mut net, call) = talking(true);
    net.park(call, None, 300).unwrap();
    net.pick_up_by(call, 11).unwrap();
    net.wait(Duration::from_secs(31));
    assert_eq!((net.switch.live_calls(), net.byes_to_carrier()), (1, 0));
    assert_eq!(net.slot_of(call), Some(1));
    net.ringing = None;
    net.pick_up_by(call, 11).unwrap();
    net.pick_up();
    net.run();
    assert_eq!((net.slot_of(call), net.live().len()), (None, 2));
    end(&mut net);
}

#[test]
fn a_party_is_returned_after_its_time() {
    let (mut net, call) = talking(true);
    net.park(call, None, 10).unwrap();
    net.wait(Duration::from_secs(9));
    assert!(net.ringing.is_none());
    net.wait(Duration::from_secs(2));
    assert!(net.ringing.is_some(), "the phone of 1001 rings");
    assert_eq!(refused(net.pick_up_by(call, 11)), "conflict");
    net.pick_up();
    net.run();
    assert_eq!((net.slot_of(call), net.live().len(), net.byes_to_carrier()), (None, 2, 0));
    end(&mut net);
    assert_eq!(net.cause_of(ANN), Some(HangupCause::NormalClearing));
}

#[test]
fn a_party_that_cannot_be_returned_is_hung_up_with_a_cause_of_its_own() {
    for registered in [true, false] {
        let (mut net, call) = talking(registered);
        net.park(call, None, 10).unwrap();
        net.wait(Duration::from_secs(if registered { 39 } else { 9 }));
        assert_eq!(net.byes_to_carrier(), 0);
        net.wait(Duration::from_secs(5));
        assert_eq!((net.byes_to_carrier(), net.cause_of(ANN)), (1, Some(HangupCause::ParkTimeout)));
        end(&mut net);
    }
}

/// The time of the slot ends while an extension is called for the party; the party is returned when that extension
/// does not answer.
#[test]
fn a_pick_up_comes_before_the_return() {
    let (mut net, call) = talking(true);
    net.park(call, None, 10).unwrap();
    net.pick_up_by(call, 11).unwrap();
    net.wait(Duration::from_secs(20));
    assert_eq!(net.switch.live_calls(), 2);
    net.wait(Duration::from_secs(11));
    assert_eq!((net.switch.live_calls(), net.byes_to_carrier()), (2, 0), "it is being returned");
    net.wait(Duration::from_secs(30));
    assert_eq!(net.cause_of(ANN), Some(HangupCause::ParkTimeout));
    end(&mut net);
}

/// A party that hangs up leaves its slot, and a phone that rings for it stops.
#[test]
fn a_parked_party_hangs_up() {
    let (mut net, call) = talking(true);
    net.park(call, None, 300).unwrap();
    net.pick_up_by(call, 11).unwrap();
    net.carrier_says(CARRIER, "BYE", 7, None);
    net.wait(Duration::from_secs(5));
    assert_eq!((net.switch.live_calls(), net.records.len()), (0, 2));
    assert_eq!(refused(net.pick_up_by(call, 11)), "gone");
    end(&mut net);
}

/// The phone that parked the party is lost: the BYE to it gets no response, and the party still waits.
#[test]
fn a_dead_phone_does_not_end_the_call_that_it_parked() {
    let (mut net, call) = talking(true);
    net.is_phone_gone = true;
    net.park(call, None, 60).unwrap();
    net.wait(Duration::from_secs(40));
    assert_eq!((net.live()[0].uuid, net.byes_to_carrier()), (call, 0));
    net.wait(Duration::from_secs(60));
    assert_eq!(net.cause_of(ANN), Some(HangupCause::ParkTimeout));
    end(&mut net);
}

#[test]
fn a_ringing_call_is_picked_up() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.register();
    net.carrier(CARRIER, [Plan::Ring]);
    net.dial(ANN);
    let call = net.live()[0].uuid;
    net.heard.clear();
    let taken = net.pick_up_by(call, 11).unwrap();
    assert_eq!(refused(net.pick_up_by(call, 11)), "conflict");
    net.pick_up();
    net.run();
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Cancel).len(), 1, "the carrier stops ringing");
    assert_eq!(net.heard, ["200"], "the caller is answered");
    assert!([call, taken].into_iter().all(|call| net.find_call(call).is_some()));
    end(&mut net);
    let (first, second) = (one_of(&net.records, ANN), one_of(&net.records, "1001"));
    assert_eq!((second.transferred_to, first.transferred_from), (Some(call), Some(taken)));
}

/// The other phones answer first, or the caller gives up: the phone that rings for the pick-up stops ringing.
#[test]
fn a_ringing_call_is_answered_elsewhere_before_it_is_picked_up() {
    let mut desk = crate::tests::transfers::Desk::new([Plan::Ring]);
    desk.net.register();
    desk.net.dial(BOB);
    let ringing = |live: &&sidetone_model::live_call::LiveCall| live.answered_at.is_none();
    let call = desk.net.live().iter().find(ringing).unwrap().uuid;
    desk.net.pick_up_by(call, 11).unwrap();
    assert_eq!(desk.net.switch.live_calls(), 3);
    desk.carrier_answers(1);
    desk.net.wait(Duration::from_secs(40));
    assert_eq!(desk.net.switch.live_calls(), 2, "the answered call goes on");
    assert_eq!(desk.net.live().iter().filter(|live| live.answered_at.is_some()).count(), 2);
    desk.end();
}
