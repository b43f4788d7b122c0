//! Calls that programs request: the calling party rings first, then the target.

use std::collections::BTreeMap;
use std::time::Duration;

use expect_test::expect;
use sidetone_model::call::{Direction, EndedBy, HangupCause};
use sidetone_model::call_request::{
    CallOrder, CancelRefused, PlaceRefused, Placeable, RequestedCall, RouteKind,
};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::ua::Reply;

use crate::machine::Input;
use crate::queries::{CancelCall, CheckCall, EndCall, PlaceCall};
use crate::tests::conference_adapter::{CARRIER, WORLD, with_rooms};
use crate::tests::ladder::check;
use crate::tests::network::{Net, Plan, address, extension};
use crate::tests::qualifying::register_gone;

#[test]
fn the_caller_rings_first_and_then_the_target() {
    check(
        "call request -> 2
         100 ringing 1 180
         2000 answered 1 4000 PCMU,PCMA sendrecv
         2001 onward 1
         2100 ringing 0 180
         5000 answered 0 5000 PCMA sendrecv
         5010 journalled
         9000 bye caller
         9010 report 1
         9010 report 2",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
                      INVITE fork 1 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            100 ringing 1 180
                      180 caller
            2000 answered 1 4000 PCMU,PCMA sendrecv
                      CANCEL fork 0 LOSE_RACE
                      media 0 close
                      media 1 party 4000 receive true send true
                      caller is fork 1
            2001 onward 1
                      INVITE fork 0 [20004 PCMU,PCMA,opus,G722 sendrecv v1]
            2100 ringing 0 180
                      180 caller
            5000 answered 0 5000 PCMA sendrecv
                      media 1 party 4000 receive true send true
                      media 2 party 5000 receive true send true
                      media 1 to 2 renumbered
                      media 2 to 1
                      media 1 from PCMU to PCMA
                      media 2 answered
                      journal
            5010 journalled
                      media 1 answered
                      200 caller [20002 PCMA sendrecv v0]
            9000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 2 close
                      media 1 close
            9010 report 1
            9010 report 2
                      record NORMAL_CLEARING answered 1970-01-01T00:00:05.010Z billsec 3 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMA verdict -
        "#]],
    );
}

/// The target has none of the caller's codecs: audio is transcoded, and the caller gets no new offer.
#[test]
fn codecs_are_transcoded_for_the_caller_that_has_its_answer() {
    check(
        "call request -> 1
         2000 answered 0 4000 PCMU sendrecv
         2001 onward trunks
         2001 attempt 7
         5000 answered 0 5000 G722 sendrecv
         5010 journalled",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            2000 answered 0 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      caller is fork 0
            2001 onward trunks
            2001 attempt 7
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            5000 answered 0 5000 G722 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1 renumbered
                      media 1 to 0 renumbered
                      media 0 from PCMU to G722
                      media 1 from G722 to PCMU
                      media 1 answered
                      journal
            5010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v0]
        "#]],
    );
}

#[test]
fn each_side_rings_for_its_own_time() {
    let limit = 60_000;
    for (script, wanted) in [
        (format!("call request -> 1\n {limit} timeout\n {limit} report 0"), "record NO_ANSWER"),
        (
            format!(
                "call request -> 1\n 50000 answered 0 4000 PCMU sendrecv\n 50000 onward 1\n {limit} timeout\n \
                 109999 timeout\n 110000 timeout\n 110010 report 0\n 110010 report 1"
            ),
            "record NO_ANSWER",
        ),
    ] {
        let log = crate::tests::ladder::play(&script);
        assert!(log.contains(wanted), "{log}");
        assert_eq!(log.matches("CANCEL").count(), 1, "{log}");
    }
}

#[test]
fn the_caller_hangs_up_before_the_target_answers() {
    check(
        "call request -> 1
         2000 answered 0 4000 PCMU sendrecv
         2001 onward 1
         2500 offer caller 4000 PCMU sendonly
         3000 bye caller
         3010 report 0",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            2000 answered 0 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      caller is fork 0
            2001 onward 1
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            2500 offer caller 4000 PCMU sendonly
                      media 0 party 4000 receive true send false
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
            3000 bye caller
                      CANCEL fork 0 ORIGINATOR_CANCEL
                      media 1 close
                      media 0 close
            3010 report 0
                      record ORIGINATOR_CANCEL answered - billsec 0 bridge - status - codecs -/- verdict unanswered
        "#]],
    );
    // Before the target is known.
    check(
        "call request -> 1
         2000 answered 0 4000 PCMU sendrecv
         2001 bye caller
         2002 onward 1
         2010 report 0",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            2000 answered 0 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      caller is fork 0
            2001 bye caller
                      media 0 close
            2002 onward 1
            2010 report 0
                      record ORIGINATOR_CANCEL answered - billsec 0 bridge - status - codecs -/- verdict unanswered
        "#]],
    );
}

#[test]
fn a_target_that_is_busy_or_absent_hangs_the_caller_up() {
    check(
        "call request -> 1
         2000 answered 0 4000 PCMU sendrecv
         2001 onward 1
         2100 failed 0 486
         2110 report 0",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            2000 answered 0 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      caller is fork 0
            2001 onward 1
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            2100 failed 0 486
                      media 1 close
                      486 caller USER_BUSY
                      media 0 close
            2110 report 0
                      record USER_BUSY answered - billsec 0 bridge USER_BUSY status 486 codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call request -> 1
         2000 answered 0 4000 PCMU sendrecv
         2001 onward refused
         2110 report 0",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            2000 answered 0 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      caller is fork 0
            2001 onward refused
                      480 caller USER_NOT_REGISTERED
                      media 0 close
            2110 report 0
                      record USER_NOT_REGISTERED answered - billsec 0 bridge - status - codecs -/- verdict unanswered
        "#]],
    );
}

#[test]
fn a_request_is_cancelled_at_any_time_before_both_answered() {
    for script in [
        "call request -> 2\n 100 cancel",
        "call request -> 1\n 100 answered 0 4000 PCMU sendrecv\n 101 onward 1\n 200 cancel\n 210 report 0",
        "call request -> 1\n 100 answered 0 4000 PCMU sendrecv\n 101 onward 1\n 200 answered 0 5000 PCMU sendrecv\n \
         210 cancel\n 220 report 0\n 220 report 1",
    ] {
        let log = crate::tests::ladder::play(script);
        assert!(log.contains("record ORIGINATOR_CANCEL answered -"), "{log}");
    }
}

#[test]
fn the_caller_is_put_into_a_room() {
    check(
        "call request -> 1
         2000 answered 0 4000 PCMU sendrecv
         2001 onward room
         2010 journalled
         3000 bye caller
         3010 report 0",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            2000 answered 0 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      caller is fork 0
            2001 onward room
                      journal
            2010 journalled
                      media 0 answered
                      up
                      seat caller
            3000 bye caller
                      caller left its seat
                      media 0 close
            3010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:02.010Z billsec 0 bridge - status - codecs PCMU/- verdict -
        "#]],
    );
}

/// A request of 1001.
pub(super) fn request(to: &str) -> RequestedCall {
    RequestedCall {
        from: "1001".into(),
        to: to.into(),
        ring_seconds: 30,
        reference: Some("ticket-4711".into()),
        variables: BTreeMap::from([("customer".into(), "4711".into())]),
        ..RequestedCall::default()
    }
}

impl Net {
    fn check_call(&mut self, requested: RequestedCall) -> Result<Placeable, PlaceRefused> {
        self.ask(CheckCall(extension(11, 1, "acme.test", "1001").id, requested))
    }

    /// Checks a request, places it, and returns its call.
    pub(super) fn place(&mut self, requested: RequestedCall) -> CallId {
        let call = self.check_call(requested.clone()).unwrap().call;
        let from = extension(11, 1, "acme.test", "1001").id;
        self.ask(PlaceCall(CallOrder { call, from, requested })).unwrap();
        self.run();
        call
    }
}

/// 1001 is registered, and a carrier takes outside calls.
fn site(plan: Plan) -> Net {
    let mut net = Net::new(with_rooms());
    net.register();
    net.carrier(CARRIER, [plan]);
    net
}

#[test]
fn a_requested_call_rings_the_phone_and_then_the_carrier() {
    let mut net = site(Plan::Accept);
    let requested = RequestedCall { auto_answer: true, ..request(WORLD) };
    let call = net.place(requested);
    assert_eq!(net.called.len(), 1);
    let live = net.find_call(call).unwrap();
    assert_eq!((live.reference.as_deref(), live.variables.len()), (Some("ticket-4711"), 1));
    let invite = &net.called[0];
    assert!(invite.header("Call-Info").unwrap().ends_with(";answer-after=0"));
    assert!(invite.header("Alert-Info").unwrap().contains("info=alert-autoanswer"));
    assert!(invite.header("From").unwrap().contains("447700900123@acme.test"), "it shows the target");
    assert!(net.carriers[&address(CARRIER)].of(&Method::Invite).is_empty(), "the phone has not answered");
    assert_eq!(net.find_call(call).unwrap().direction, Direction::Outbound);
    net.pick_up();
    net.run();
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Invite).len(), 1);
    assert_eq!(net.requests, ["calling", "answered"]);
    let live = net.find_call(call).unwrap();
    let numbers: Vec<_> = live.legs.iter().map(|leg| leg.number.clone().unwrap()).collect();
    assert_eq!(numbers, ["1001", WORLD]);
    net.wait(Duration::from_secs(20));
    assert!(net.ask(EndCall(call)));
    net.run();
    assert!(!net.ask(EndCall(call)));
    let record = net.records.remove(0);
    assert_eq!(
        (record.call_uuid, record.billsec, record.reference.as_deref()),
        (call, 20, Some("ticket-4711"))
    );
    assert_eq!(record.extension_id, Some(extension(11, 1, "acme.test", "1001").id));
    assert_eq!((record.hangup_cause, record.sip_status), (Some(HangupCause::NormalClearing), Some(200)));
    assert_eq!(net.requests, ["calling", "answered", "completed"]);
    assert_eq!((net.records.len(), net.switch.live_calls()), (0, 0));
    assert!(net.switch.control.calls.is_empty());
}

/// At the end, the state of all phones is removed, including those whose INVITE was cancelled.
#[test]
fn nothing_is_left_of_the_phones_that_did_not_answer() {
    let mut net = site(Plan::Accept);
    register_gone(&mut net);
    let call = net.place(request(WORLD));
    net.pick_up();
    net.run();
    assert_eq!(net.requests, ["calling", "answered"]);
    net.wait(Duration::from_secs(40));
    assert!(net.ask(EndCall(call)));
    net.wait(Duration::from_secs(40));
    assert_eq!((net.records.len(), net.switch.live_calls()), (1, 0));
    assert!(net.switch.control.calls.is_empty());
}

#[test]
fn a_phone_that_does_not_answer_or_is_busy_fails_the_request() {
    let mut net = site(Plan::Accept);
    net.place(request(WORLD));
    net.wait(Duration::from_secs(29));
    assert!(net.records.is_empty());
    net.wait(Duration::from_secs(2));
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::NoAnswer));
    assert_of_caller(&net.records[0], "did not answer in time");
    assert_eq!(net.requests, ["failed no_answer"]);
    for (status, reason, said) in
        [(StatusCode::BUSY_HERE, "busy", "was busy"), (StatusCode::DECLINE, "declined", "declined it")]
    {
        net.refusal = Some(Reply::new(status));
        net.place(request(WORLD));
        assert_eq!(net.requests.last().unwrap(), &format!("failed {reason}"));
        assert_of_caller(net.records.last().unwrap(), said);
    }
    assert_eq!((net.records.len(), net.switch.live_calls()), (3, 0));
    assert!(net.carriers[&address(CARRIER)].of(&Method::Invite).is_empty());
    assert!(net.switch.control.calls.has_no_outbound());
}

/// Asserts that a record blames only the phone of `from`, for which the sentence says this.
fn assert_of_caller(record: &Cdr, said: &str) {
    assert_eq!((record.bridge_cause, record.sip_status), (None, None), "no extension was called");
    assert_eq!((record.ended_by, record.called), (Some(EndedBy::Caller), None));
    let sentence = &record.media.as_ref().unwrap().sentence;
    let expected = format!("The call was not placed: the phone of `from`, which rings first, {said}.");
    assert!(sentence.starts_with(&expected), "{sentence}");
}

/// The target counts as called, and so as missed, only once the calling party has answered.
#[test]
fn an_extension_is_called_when_the_calling_party_has_answered() {
    let mut snapshot = with_rooms();
    snapshot.extensions.push(extension(12, 1, "acme.test", "1002"));
    let callee = extension(12, 1, "acme.test", "1002").id;
    let mut net = Net::new(snapshot);
    net.register();
    let cancelled = net.place(request("1002"));
    assert_eq!(net.ask(CancelCall(cancelled)), Ok(()));
    net.run();
    net.place(request("1002"));
    net.pick_up();
    net.run();
    assert_eq!(net.requests.last().unwrap(), "failed unregistered");
    let called: Vec<_> =
        net.records.iter().map(|record| record.called.map(|called| called.extension_id)).collect();
    assert_eq!(called, [None, Some(callee)]);
    let sentence = |at: usize| net.records[at].media.as_ref().map(|media| media.sentence.as_str());
    assert!(sentence(0).unwrap().contains("was still ringing when the request was cancelled"));
    assert_eq!(sentence(1), None, "the record itself says why");
}

#[test]
fn the_target_is_busy_and_the_phone_hears_it() {
    let mut net = site(Plan::Refuse(486, Vec::new()));
    net.place(request(WORLD));
    net.pick_up();
    net.run();
    assert_eq!(net.heard.last().unwrap(), "BYE");
    assert_eq!(net.requests, ["calling", "failed busy"]);
    assert_eq!(net.records[0].sip_status, Some(486));
    assert!(net.switch.control.calls.is_empty());
}

#[test]
fn a_request_can_be_cancelled_until_both_sides_have_answered() {
    let mut net = site(Plan::Ring);
    let ringing = net.place(request(WORLD));
    assert_eq!(net.ask(CancelCall(ringing)), Ok(()));
    net.run();
    assert_eq!(net.ask(CancelCall(ringing)), Err(CancelRefused::Gone));
    assert_eq!(net.requests, ["cancelled cancelled"]);
    let calling = net.place(request(WORLD));
    net.pick_up();
    net.run();
    assert_eq!(net.ask(CancelCall(calling)), Ok(()));
    net.run();
    net.wait(Duration::from_secs(1));
    assert_eq!(net.heard.last().unwrap(), "BYE");
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Cancel).len(), 1);
    net.carrier(CARRIER, [Plan::Accept]);
    let up = net.place(request(WORLD));
    net.pick_up();
    net.run();
    assert_eq!(net.ask(CancelCall(up)), Err(CancelRefused::Answered));
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    assert_eq!((net.records.len(), net.switch.live_calls()), (3, 0));
}

#[test]
fn the_target_is_a_room() {
    let mut net = site(Plan::Accept);
    let checked = net.check_call(request("svc-room-00000000-0000-0000-0000-000000000033")).unwrap();
    assert_eq!((checked.would.route, checked.would.to.number.as_str()), (RouteKind::Room, "200"));
    let call = net.place(request("200"));
    net.pick_up();
    net.run();
    let rooms = net.live_rooms();
    assert_eq!((rooms.len(), rooms[0].members.len()), (1, 1));
    assert_eq!(rooms[0].members[0].number, "1001");
    assert_eq!(net.requests, ["calling", "answered"]);
    assert!(net.ask(EndCall(call)));
    net.run();
    assert_eq!((net.records.len(), net.live_rooms().len()), (1, 0));
}

#[test]
fn every_wrong_field_is_named_and_an_absent_phone_is_a_conflict() {
    let mut snapshot = with_rooms();
    snapshot.extensions.push(extension(12, 1, "acme.test", "1002"));
    let mut net = Net::new(snapshot);
    let wrong = RequestedCall { caller_id: Some("+33100000000".into()), ..request("9") };
    let Err(PlaceRefused::Wrong(fields)) = net.check_call(wrong) else { panic!("refused") };
    let names: Vec<_> = fields.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(names, ["caller_id", "to"]);
    assert_eq!(net.check_call(request(WORLD)), Err(PlaceRefused::Unregistered));
    net.register();
    let checked = net.check_call(request(WORLD)).unwrap();
    assert_eq!((checked.would.route, checked.would.from.phones), (RouteKind::Outside, 1));
    let warned = net.check_call(request("1002")).unwrap();
    assert_eq!((warned.would.route, warned.warnings.len()), (RouteKind::Extension, 1));
    net.feed(Input::Accept(false));
    assert_eq!(net.check_call(request(WORLD)), Err(PlaceRefused::Busy));
    assert_eq!((net.called.len(), net.records.len()), (0, 0), "nothing rang");
}

/// The phone hangs up while the target rings.
#[test]
fn the_phone_hangs_up_before_the_target_answers() {
    let mut net = site(Plan::Ring);
    net.place(request(WORLD));
    net.pick_up();
    net.run();
    net.hang_up();
    net.run();
    net.wait(Duration::from_secs(1));
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Cancel).len(), 1);
    assert_eq!(net.requests, ["calling", "failed hung_up"]);
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::OriginatorCancel));
    assert!(net.switch.control.calls.is_empty());
}
