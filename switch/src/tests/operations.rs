//! Operations of programs on live calls: transfer on behalf of a phone, and the move into a room.

use std::time::Duration;

use sidetone_model::access::Scope;
use sidetone_model::call_operation::{
    CallOperation, HoldOrder, MoveOrder, OperationRefused, TransferOrder, TransferTarget,
};
use sidetone_model::ids::{CallId, LegId};
use sidetone_model::live_call::{LiveCall, LiveCallQuery};
use sidetone_model::page::Window;
use sidetone_sip::message::Method;
use uuid::Uuid;

use crate::queries::{ListCalls, Operate};
use crate::tests::conference_adapter::{CARRIER, WORLD, room_id, with_rooms};
use crate::tests::network::{Net, Plan, address};
use crate::tests::transfers::{ANN, BOB, Desk, one_of};

impl Net {
    /// The live calls, the oldest first.
    pub(super) fn live(&mut self) -> Vec<LiveCall> {
        let window = Window::at(0, 50);
        let mut page = self
            .ask(ListCalls(Scope::Everything, LiveCallQuery { window, ..LiveCallQuery::default() }))
            .items;
        page.reverse();
        page
    }

    pub(super) fn operate(&mut self, operation: CallOperation) -> Result<CallId, OperationRefused> {
        let done = self.ask(Operate(operation));
        self.run();
        done
    }

    pub(super) fn transfer(
        &mut self,
        call: CallId,
        leg: Option<LegId>,
        to: TransferTarget,
    ) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::Transfer(TransferOrder { call, leg, to }))
    }

    pub(super) fn hold(&mut self, call: CallId, leg: Option<LegId>) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::Hold(HoldOrder { call, leg }))
    }

    pub(super) fn unhold(&mut self, call: CallId) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::Unhold(call))
    }

    /// The directions of the offers that the carrier got in its call.
    fn offers_to_carrier(&self) -> Vec<&'static str> {
        let direction = |body: &[u8]| {
            let body = String::from_utf8_lossy(body).into_owned();
            let words = ["sendonly", "recvonly", "inactive"];
            words.into_iter().find(|word| body.contains(&format!("a={word}"))).unwrap_or("sendrecv")
        };
        self.carriers[&address(CARRIER)].of(&Method::Invite).iter().map(|one| direction(one.body())).collect()
    }

    pub(super) fn move_to(
        &mut self,
        call: CallId,
        leg: Option<LegId>,
        room: u128,
    ) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::MoveToRoom(MoveOrder { call, leg, room: room_id(room) }))
    }
}

pub(super) fn number(number: &str) -> TransferTarget {
    TransferTarget::Number(number.to_owned())
}

/// The field that a refusal names; `conflict` and `gone` for those without one.
pub(super) fn refused(result: Result<CallId, OperationRefused>) -> String {
    match result.unwrap_err() {
        OperationRefused::Wrong(problems) => {
            problems.into_iter().map(|problem| problem.field).collect::<Vec<_>>().join(", ")
        }
        OperationRefused::Conflict(_) => "conflict".to_owned(),
        OperationRefused::Gone => "gone".to_owned(),
        OperationRefused::Busy => "busy".to_owned(),
    }
}

#[test]
fn a_program_transfers_the_far_end_to_a_number() {
    let mut desk = Desk::new([Plan::Accept]);
    let call = desk.net.live()[0].uuid;
    let target = desk.net.transfer(call, None, number(BOB)).unwrap();
    assert_ne!(target, call);
    assert_eq!(desk.net.heard, ["BYE"], "the phone is not notified of a transfer that it did not order");
    assert!(desk.bridges().ends_with(&[(2, 3), (3, 2)]), "{:?}", desk.bridges());
    desk.net.wait(Duration::from_secs(20));
    desk.carrier_hangs_up(0);
    let (first, second) = (one_of(&desk.net.records, ANN), one_of(&desk.net.records, BOB));
    assert_eq!((first.call_uuid, second.call_uuid), (call, target));
    assert_eq!((first.transferred_to, second.transferred_from), (Some(target), Some(call)));
    assert_eq!((first.billsec, second.billsec), (20, 20));
    desk.end();
}

#[test]
fn a_target_that_is_busy_leaves_the_call_as_it_was() {
    let mut desk = Desk::new([Plan::Refuse(486, Vec::new())]);
    let call = desk.net.live()[0].uuid;
    desk.net.transfer(call, None, number(BOB)).unwrap();
    assert!(desk.net.heard.is_empty(), "{:?}", desk.net.heard);
    assert_eq!(desk.net.live().len(), 1);
    // And it may be transferred again.
    desk.carrier_plans([Plan::Accept]);
    desk.net.transfer(call, None, number(BOB)).unwrap();
    assert_eq!(desk.net.heard, ["BYE"]);
    desk.end();
}

#[test]
fn a_program_joins_the_far_ends_of_two_calls() {
    for plan in [Plan::Accept, Plan::Ring] {
        let rings = matches!(plan, Plan::Ring);
        let mut desk = Desk::new([plan]);
        desk.net.dial(BOB);
        desk.net.heard.clear();
        let calls = desk.net.live();
        let (first, second) = (calls[0].uuid, calls[1].uuid);
        assert_eq!(desk.net.transfer(first, None, TransferTarget::Call(second)), Ok(second));
        if rings {
            assert!(desk.net.heard.is_empty(), "it waits for the answer: {:?}", desk.net.heard);
            desk.carrier_answers(1);
            desk.net.run();
        }
        assert!(desk.net.heard.ends_with(&["BYE".into(), "BYE".into()]), "{:?}", desk.net.heard);
        assert!(desk.bridges().ends_with(&[(2, 4), (4, 2)]), "{:?}", desk.bridges());
        desk.end();
    }
}

#[test]
fn what_cannot_be_transferred_is_refused_and_goes_on() {
    let mut desk = Desk::new([Plan::Ring]);
    let call = desk.net.live().remove(0);
    let (phone, carrier) = (call.legs[0].uuid, call.legs[1].uuid);
    let (nowhere, unknown) = (CallId(Uuid::from_u128(9)), LegId(Uuid::from_u128(9)));
    for (wanted, call_id, leg, to) in [
        ("gone", nowhere, None, number(BOB)),
        ("leg", call.uuid, Some(unknown), number(BOB)),
        ("leg, to", call.uuid, Some(unknown), number("9")),
        ("conflict", call.uuid, Some(carrier), number(BOB)),
        ("to", call.uuid, Some(phone), number("9")),
        ("with", call.uuid, None, TransferTarget::Call(call.uuid)),
        ("with", call.uuid, None, TransferTarget::Call(nowhere)),
    ] {
        assert_eq!(refused(desk.net.transfer(call_id, leg, to.clone())), wanted, "{to:?}");
    }
    // During a transfer no second one may begin.
    desk.net.transfer(call.uuid, None, number(BOB)).unwrap();
    assert_eq!(refused(desk.net.transfer(call.uuid, None, number(BOB))), "conflict");
    desk.net.wait(Duration::from_secs(61));
    assert!(desk.net.heard.is_empty(), "{:?}", desk.net.heard);
    assert_eq!(desk.net.records.len(), 1, "only the target's call is over");
    desk.end();
}

#[test]
fn a_call_that_is_not_answered_is_not_transferred_or_moved() {
    let mut net = Net::new(with_rooms());
    net.register();
    net.carrier(CARRIER, [Plan::Ring]);
    net.dial(WORLD);
    let call = net.live()[0].uuid;
    assert_eq!(refused(net.transfer(call, None, number(WORLD))), "conflict");
    assert_eq!(refused(net.move_to(call, None, 51)), "conflict");
}

#[test]
fn a_program_moves_a_call_into_a_room_without_its_pin() {
    let mut net = Net::new(with_rooms());
    net.register();
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(WORLD);
    let call = net.live()[0].uuid;
    assert_eq!(refused(net.move_to(call, None, 99)), "room_id");
    let unknown = Some(LegId(Uuid::from_u128(9)));
    assert_eq!(refused(net.move_to(call, unknown, 99)), "leg, room_id");
    assert_eq!(net.move_to(call, None, 52), Ok(call));
    let rooms = net.live_rooms();
    let numbers: Vec<_> = rooms[0].members.iter().map(|member| member.number.clone()).collect();
    assert_eq!(numbers, ["1001", WORLD]);
    assert_eq!(refused(net.move_to(call, None, 51)), "conflict");
    assert_eq!(refused(net.transfer(call, None, number(WORLD))), "conflict");
    // Each party leaves separately.
    net.hang_up();
    net.run();
    assert_eq!((net.live_rooms()[0].members.len(), net.records.len()), (1, 0));
}

/// Each of two linked calls has one of the parties: the refusal names the operation that moves them into the room.
#[test]
fn a_linked_call_names_the_way_into_a_room() {
    let mut desk = Desk::with(with_rooms(), [Plan::Accept]);
    let first = desk.net.live()[0].uuid;
    let second = desk.net.transfer(first, None, number(BOB)).unwrap();
    for call in [first, second] {
        let Err(OperationRefused::Conflict(why)) = desk.net.move_to(call, None, 52) else {
            panic!("a linked call has moved");
        };
        assert!(why.contains(&format!("POST /conference-rooms/{}/dial", room_id(52))), "{why}");
    }
    assert_eq!(desk.net.live().len(), 2, "they go on");
    desk.end();
}

#[test]
fn one_party_moves_and_the_other_is_hung_up() {
    let mut net = Net::new(with_rooms());
    net.register();
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(WORLD);
    net.heard.clear();
    let call = net.live().remove(0);
    assert_eq!(net.move_to(call.uuid, Some(call.legs[1].uuid), 51), Ok(call.uuid));
    assert_eq!(net.heard, ["BYE"]);
    let rooms = net.live_rooms();
    assert_eq!((rooms[0].members.len(), rooms[0].members[0].number.as_str()), (1, WORLD));
    assert!(net.carriers[&address(CARRIER)].of(&Method::Bye).is_empty());
}

/// A program holds for the phone and resumes; the carrier and the phone get re-INVITEs, and the call shows who holds.
#[test]
fn a_program_holds_and_resumes_a_call() {
    let mut net = Net::new(with_rooms());
    net.register();
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(WORLD);
    let call = net.live().remove(0);
    let (phone, carrier) = (call.legs[0].uuid, call.legs[1].uuid);
    assert_eq!(refused(net.unhold(call.uuid)), "conflict");
    assert_eq!(net.hold(call.uuid, None), Ok(call.uuid));
    assert_eq!(net.live()[0].held_by, Some(phone));
    assert_eq!((net.offers_to_carrier(), net.reinvited.len()), (vec!["sendrecv", "sendonly"], 1));
    // The same hold again has no effect; for a hold by the other leg, the first must resume.
    assert_eq!(net.hold(call.uuid, Some(phone)), Ok(call.uuid));
    assert_eq!(refused(net.hold(call.uuid, Some(carrier))), "conflict");
    assert_eq!((net.offers_to_carrier().len(), net.reinvited.len()), (2, 1));
    // A call on hold does not end after a minute of silence.
    for port in [1, 2] {
        net.silent(port, Duration::from_secs(5));
    }
    net.wait(Duration::from_secs(120));
    assert_eq!(net.unhold(call.uuid), Ok(call.uuid));
    assert_eq!(net.live()[0].held_by, None);
    assert_eq!(net.offers_to_carrier(), ["sendrecv", "sendonly", "sendrecv"]);
    assert_eq!(net.reinvited.len(), 2);
    // The carrier's leg may hold too.
    assert_eq!(net.hold(call.uuid, Some(carrier)), Ok(call.uuid));
    assert_eq!(net.live()[0].held_by, Some(carrier));
    assert_eq!(net.offers_to_carrier().last(), Some(&"inactive"));
    // The call is moved into a room, where both talk again.
    assert_eq!(net.move_to(call.uuid, None, 52), Ok(call.uuid));
    assert_eq!(net.live()[0].held_by, None);
    assert_eq!(net.offers_to_carrier().last(), Some(&"sendrecv"));
    assert_eq!(refused(net.hold(call.uuid, None)), "conflict");
}

/// The party on hold is transferred: it hears the target, and gets an offer to send again.
#[test]
fn a_held_party_is_transferred() {
    let mut desk = Desk::new([Plan::Accept]);
    let call = desk.net.live()[0].uuid;
    desk.net.hold(call, None).unwrap();
    desk.net.transfer(call, None, number(BOB)).unwrap();
    assert!(desk.bridges().ends_with(&[(2, 3), (3, 2)]), "{:?}", desk.bridges());
    assert_eq!(refused(desk.net.hold(call, None)), "conflict", "its phone is in no call now");
    desk.end();
}

/// Ann and Bob, whom a transfer has linked: either side holds, and the calls of both show it.
#[test]
fn parties_of_linked_calls_are_held() {
    let mut desk = Desk::new([Plan::Accept]);
    let first = desk.net.live()[0].uuid;
    let second = desk.net.transfer(first, None, number(BOB)).unwrap();
    let legs: Vec<LegId> = desk.net.live().iter().map(|live| live.legs[0].uuid).collect();
    assert_eq!(refused(desk.net.unhold(first)), "conflict");
    assert_eq!(desk.net.hold(first, Some(legs[0])), Ok(first));
    let held = |desk: &mut Desk| desk.net.live().iter().map(|live| live.held_by).collect::<Vec<_>>();
    assert_eq!(held(&mut desk), [Some(legs[0]); 2]);
    let joins = ["2 joins, hears Nothing, muted", "3 joins, hears Music, muted"];
    assert!(desk.net.rooms.iter().filter(|line| line.contains("joins")).eq(joins), "{:?}", desk.net.rooms);
    assert_eq!(desk.net.offers_to_carrier()[2..], ["inactive", "sendonly"]);
    assert_eq!(desk.net.hold(first, Some(legs[0])), Ok(first), "again changes nothing");
    assert_eq!(refused(desk.net.hold(second, Some(legs[1]))), "conflict");
    assert_eq!(desk.net.offers_to_carrier().len(), 4);
    desk.net.rooms.clear();
    assert_eq!(desk.net.unhold(second), Ok(second));
    assert_eq!(held(&mut desk), [None; 2]);
    assert_eq!(desk.net.rooms, ["3 leaves", "2 leaves"]);
    assert!(desk.bridges().ends_with(&[(3, 2), (2, 3)]) || desk.bridges().ends_with(&[(2, 3), (3, 2)]));
    assert_eq!(desk.net.offers_to_carrier()[4..], ["sendrecv"; 2]);
    // The end of one ends the other, also during a hold.
    desk.net.hold(second, Some(legs[1])).unwrap();
    desk.carrier_hangs_up(0);
    desk.net.wait(Duration::from_secs(5));
    assert_eq!(desk.net.records.len(), 2);
    desk.end();
}

#[test]
fn what_cannot_be_held_is_refused() {
    let mut net = Net::new(with_rooms());
    net.register();
    net.carrier(CARRIER, [Plan::Ring]);
    net.dial(WORLD);
    let call = net.live()[0].uuid;
    let unknown = LegId(Uuid::from_u128(9));
    assert_eq!(refused(net.hold(CallId(Uuid::from_u128(9)), None)), "gone");
    assert_eq!(refused(net.hold(call, None)), "conflict", "it rings");
    let mut desk = Desk::new([]);
    let call = desk.net.live()[0].uuid;
    assert_eq!(refused(desk.net.hold(call, Some(unknown))), "leg");
    desk.end();
}
