//! Merging two calls into one conference.

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, ExtensionId};
use sidetone_model::room::{LiveRoom, MergeRefused, Requester, RoomName};
use sidetone_sip::message::Method;
use sidetone_sip::ua::LegKey;
use uuid::Uuid;

use crate::machine::Input;
use crate::queries::{Merge, RoomOfCall};
use crate::tests::network::{Net, Plan, SDP, acme, address, extension, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const ANN: &str = "+447700900001";
const BOB: &str = "+447700900002";

/// 1001 has a call to Ann, then one to Bob.
struct Desk {
    net: Net,
    calls: [CallId; 2],
    legs: [LegKey; 2],
}

impl Desk {
    fn new() -> Desk {
        let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
        net.carrier(CARRIER, [Plan::Accept]);
        let legs = [ANN, BOB].map(|number| {
            net.dial(number);
            net.leg.unwrap()
        });
        let calls: Vec<CallId> = net.news.iter().map(|news| news.call().uuid).collect();
        net.heard.clear();
        net.heard_of_rooms();
        Desk { net, calls: calls.try_into().unwrap(), legs }
    }

    fn merge(&mut self, call: CallId, with: CallId) -> Result<LiveRoom, MergeRefused> {
        let by = Requester { who: None, extensions: vec![own()] };
        self.net.ask(Merge { call, with, by })
    }

    fn members(&mut self) -> Vec<String> {
        let room = RoomName::Merged(self.calls[0]);
        let found = self.net.live_room(room);
        found.map(|room| room.members.into_iter().map(|member| member.number).collect()).unwrap_or_default()
    }

    fn byes(&self) -> usize {
        self.net.carriers[&address(CARRIER)].of(&Method::Bye).len()
    }
}

fn own() -> ExtensionId {
    extension(11, 1, "acme.test", "1001").id
}

#[test]
fn who_is_in_both_calls_is_seated_once() {
    let mut desk = Desk::new();
    let [first, second] = desk.calls;
    let room = desk.merge(first, second).unwrap();
    assert_eq!((room.room, room.room_id), (RoomName::Merged(first), None));
    assert_eq!(desk.members(), ["1001", ANN, BOB]);
    assert_eq!(desk.net.heard, ["BYE"], "the second leg of 1001");
    assert!(desk.net.heard_of_rooms().contains("news merged"));
    // Both calls are live and in the room, and any of their legs finds it.
    let bobs = desk.net.find_call(second).unwrap();
    assert_eq!(bobs.legs.len(), 1);
    for uuid in [first.0, second.0, bobs.legs[0].uuid.0] {
        let found = desk.net.ask(RoomOfCall(uuid));
        assert_eq!(found.map(|room| room.room), Some(RoomName::Merged(first)));
    }
    assert_eq!(desk.merge(first, second), Err(MergeRefused::InRoom(first)));

    // Each party leaves separately; the record of a call is output when its last party has left.
    desk.net.wait(Duration::from_secs(10));
    desk.net.leg = Some(desk.legs[0]);
    desk.net.hang_up();
    assert_eq!(desk.members(), [ANN, BOB]);
    assert_eq!((desk.net.records.len(), desk.byes()), (0, 0), "Ann's leg costs on");
    desk.net.wait(Duration::from_secs(10));
    assert_eq!(desk.net.carrier_says(CARRIER, "BYE", 1, None), 200);
    assert_eq!(desk.members(), [BOB]);
    assert_eq!((desk.net.records[0].call_uuid, desk.net.records[0].billsec), (first, 20));
    desk.net.feed(Input::EndCalls(HangupCause::NormalClearing));
    desk.net.run();
    assert_eq!((desk.net.records.len(), desk.net.switch.live_calls(), desk.byes()), (2, 0, 1));
    assert!(desk.net.heard_of_rooms().ends_with("news Ended"));
    assert!(
        desk.net.switch.control.conferences.seats.is_empty() && desk.net.switch.control.calls.has_no_legs()
    );
}

/// The phone holds the first call and talks in the second: its leg of the second call stays.
#[test]
fn of_two_legs_of_one_phone_the_one_that_talks_stays() {
    let mut desk = Desk::new();
    let [first, second] = desk.calls;
    desk.net.leg = Some(desk.legs[0]);
    desk.net.offer_anew(&format!("{SDP}a=sendonly\r\n"));
    desk.net.heard_of_rooms();
    desk.merge(first, second).unwrap();
    assert_eq!(desk.members(), [ANN, "1001", BOB]);
    assert_eq!(desk.net.heard, ["200 OK", "BYE"], "its offer was answered, and its first leg is over");
    // Ann, whom 1001 had put on hold, gets an offer to send and receive again.
    let invites = desk.net.carriers[&address(CARRIER)].of(&Method::Invite);
    let last = String::from_utf8_lossy(invites.last().unwrap().body()).into_owned();
    assert!(last.contains("a=sendrecv"), "{last}");
    assert!(desk.net.heard_of_rooms().contains("hears true speaks true"));
}

#[test]
fn calls_that_are_not_up_or_not_two_are_not_merged() {
    let mut desk = Desk::new();
    let [first, second] = desk.calls;
    let nobody = CallId(Uuid::nil());
    assert_eq!(desk.merge(first, first), Err(MergeRefused::Same));
    assert_eq!(desk.merge(first, nobody), Err(MergeRefused::Gone(nobody)));
    assert_eq!(desk.merge(nobody, second), Err(MergeRefused::Gone(nobody)));
    desk.net.carrier(CARRIER, [Plan::Ring]);
    desk.net.dial(ANN);
    let ringing = desk.net.news.last().unwrap().call().uuid;
    assert_eq!(desk.merge(first, ringing), Err(MergeRefused::NotAnswered(ringing)));
    assert_eq!(desk.members(), Vec::<String>::new());
    desk.net.hang_up();
    desk.net.leg = Some(desk.legs[1]);
    desk.net.hang_up();
    assert_eq!(desk.merge(first, second), Err(MergeRefused::Gone(second)));
    assert_eq!(desk.net.switch.live_calls(), 1);
}

/// One of the calls ends at the moment of the merge.
#[test]
fn a_hang_up_crosses_the_merge() {
    let mut desk = Desk::new();
    let [first, second] = desk.calls;
    desk.net.phone.hang_up(desk.net.now(), desk.legs[0]);
    let room = desk.merge(first, second).unwrap();
    assert_eq!(room.members.len(), 3);
    assert_eq!(desk.members(), [ANN, BOB]);
    desk.net.feed(Input::EndCalls(HangupCause::NormalClearing));
    desk.net.run();
    assert_eq!((desk.net.records.len(), desk.net.switch.live_calls()), (2, 0));
}
