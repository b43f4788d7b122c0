//! Calls into and out of conference rooms, from the view of phones and carriers.

use std::time::Duration;

use expect_test::expect;
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::directory::{Destination, DirectorySnapshot, Network, Number};
use sidetone_model::ids::{NoteId, RoomId};
use sidetone_model::note::{Destination as NoteTo, Dispatch};
use sidetone_model::pin_guessing::PinLimit;
use sidetone_model::room::{
    Control, ControlDone, ControlRefused, DialFailure, DialKind, DialRequest, Exemption, GainChange, Role,
    RoomConfig, RoomName, rules,
};
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::ua::Reply;
use uuid::Uuid;

use crate::machine::{Input, Notice};
use crate::mixing::Recording;
use crate::queries::{ControlRoom, DialIntoRoom};
use crate::tests::network::{Net, Plan, acme, address, extension, number, trunk};

pub(super) const CARRIER: &str = "203.0.113.1:5060";
pub(super) const WORLD: &str = "+447700900123";

pub(super) fn room_id(n: u128) -> RoomId {
    RoomId(Uuid::from_u128(n))
}

/// A room of acme without a PIN.
pub(super) fn room(n: u128, number: &str) -> RoomConfig {
    RoomConfig {
        id: room_id(n),
        organisation_id: Uuid::from_u128(1).into(),
        name: "Stand-up".into(),
        number: number.into(),
        participant_pin: Default::default(),
        moderator_pin: Default::default(),
        wait_for_moderator: false,
        end_when_moderator_leaves: false,
        record: false,
        record_channels: 1,
        announce_names: false,
        max_members: 0,
        exemptions: Vec::new(),
        members: Vec::new(),
    }
}

/// Room 200 has no PIN; room 300 has the PINs 1234 and 9876. One phone number leads to 300, another asks for
/// a room. The carrier's address is accepted for incoming calls.
pub(super) fn with_rooms() -> DirectorySnapshot {
    let mut snapshot = acme(vec![trunk(1, CARRIER)]);
    let pin = |text: &str| rules::pin(text).unwrap();
    snapshot.rooms = vec![
        room(51, "200"),
        RoomConfig { participant_pin: pin("1234"), moderator_pin: pin("9876"), ..room(52, "300") },
    ];
    let to =
        |n, text: &str, room| Number { destination: Destination::Conference(room), ..number(n, 1, text, 11) };
    snapshot.numbers.push(to(32, "+442071230001", Some(room_id(52))));
    snapshot.numbers.push(to(33, "+442071230002", None));
    snapshot.trunks[0].accept_from = vec![Network { address: address(CARRIER).ip(), prefix_len: 32 }];
    snapshot
}

fn name(n: u128) -> RoomName {
    RoomName::Stored(room_id(n))
}

fn request(kind: DialKind, target: &str) -> DialRequest {
    DialRequest { kind, target: target.into(), role: Role::Participant, confirm: false }
}

impl Net {
    fn dial_into(&mut self, room: u128, kind: DialKind, target: &str) -> Result<String, ControlRefused> {
        let request = request(kind, target);
        self.ask(DialIntoRoom(room_id(room), request)).map(|dialled| dialled.target)
    }

    fn members(&mut self, room: RoomName) -> Vec<(u32, String)> {
        let found = self.live_room(room);
        let members = found.map(|room| room.members).unwrap_or_default();
        members.into_iter().map(|member| (member.id, member.number)).collect()
    }

    fn control(&mut self, room: u128, control: Control) -> Result<ControlDone, ControlRefused> {
        self.ask(ControlRoom(name(room), control))
    }

    /// Calls a number of ours through the carrier; returns the last status that the carrier got.
    pub(super) fn call_in(&mut self, number: &str, caller: &str, headers: &str) -> u16 {
        self.come_in(number, caller, headers).unwrap()
    }

    /// Calls room 300 through the carrier, whether or not the call is answered.
    pub(super) fn try_call_in(&mut self, caller: &str) {
        let _ = self.come_in("+442071230001", caller, "");
    }

    fn come_in(&mut self, number: &str, caller: &str, headers: &str) -> Option<u16> {
        self.carriers.entry(address(CARRIER)).or_default();
        let told = self.told.len();
        let call = format!("{caller}-{told}");
        self.inject(CARRIER, inbound("INVITE", number, (caller, &call), "", headers, SDP));
        let answer = self.told[told..].last().cloned()?;
        if answer.status() == StatusCode::OK {
            let tag = answer.header("To").unwrap().split("tag=").nth(1).unwrap().to_owned();
            self.inject(CARRIER, inbound("ACK", number, (caller, &call), &format!(";tag={tag}"), "", ""));
        }
        Some(answer.status().as_u16())
    }
}

const SDP: &str =
    "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP 8\r\n";

fn inbound(
    method: &str,
    number: &str,
    (caller, call): (&str, &str),
    tag: &str,
    headers: &str,
    body: &str,
) -> String {
    let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    format!(
        "{method} sip:{number}@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bK{method}{call}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:{caller}@203.0.113.1>;tag=1\r\nTo: <sip:{number}@198.51.100.1>{tag}\r\n\
         Call-ID: {call}\r\nCSeq: 1 {method}\r\nContact: <sip:{CARRIER}>\r\n{headers}{kind}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn an_extension_dials_a_room() {
    let mut net = Net::new(with_rooms());
    net.dial("200");
    assert_eq!(net.heard, ["200"]);
    expect![[r#"
        news Opened { room_name: "Stand-up" }
        news 1001 joined as participant 1
        1 joins, hears Room
        1 is told alone"#]]
    .assert_eq(&net.heard_of_rooms());
    assert_eq!(net.members(name(51)), [(1, "1001".to_owned())]);
    net.wait(Duration::from_secs(10));
    net.hang_up();
    expect![[r#"
        news Left { member: 1, cause: NormalClearing }
        news Ended"#]]
    .assert_eq(&net.heard_of_rooms());
    let record = &net.records[0];
    assert_eq!((record.direction, record.billsec), (Direction::Internal, 10));
    assert_eq!(record.destination_number.as_deref(), Some("200"));
    assert_eq!((record.codec_a.as_deref(), record.codec_b.as_deref()), (Some("PCMU"), None));
    assert_eq!(record.hangup_cause, Some(HangupCause::NormalClearing));
    assert_eq!((record.bridge_cause, record.sip_status), (None, None));
    assert!(net.switch.control.conferences.seats.is_empty() && net.members(name(51)).is_empty());
}

/// Keys arrive as events in the media or as INFO, and from some phones as both.
#[test]
fn a_pin_is_keyed_in_either_way_or_both() {
    for (media, info) in [("1234#", ""), ("", "1234#"), ("1234#", "1234#")] {
        let mut net = Net::new(with_rooms());
        net.dial("300");
        net.heard_of_rooms();
        for place in 0..5 {
            net.key(1, media.get(place..=place).unwrap_or_default());
            if let Some(digit) = info.get(place..=place) {
                net.inform("application/dtmf-relay", &format!("Signal={digit}\r\nDuration=160\r\n"));
            }
        }
        assert_eq!(net.members(name(52)), [(1, "1001".to_owned())], "{media} {info}");
        net.wait(Duration::from_secs(2));
        net.inform("application/dtmf", "*");
        net.inform("application/dtmf", "1");
        assert!(net.heard_of_rooms().contains("1 muted true"));
        assert!(net.said.is_empty(), "no note, but a key");
    }
}

/// Digits detected in the audio of a phone that also sends INFO: only the INFOs count, even if the tones are late.
#[test]
fn tones_of_a_phone_that_sends_info_do_not_count() {
    let mut net = Net::new(with_rooms());
    net.dial("300");
    net.key(1, "12");
    net.inform("application/dtmf", "3");
    net.inform("application/dtmf", "4");
    net.wait(Duration::from_secs(2));
    net.key(1, "34");
    net.inform("application/dtmf", "#");
    assert_eq!(net.members(name(52)), [(1, "1001".to_owned())], "1234 was keyed");
}

/// Controls that programs set for a member reach the media of its port.
#[test]
fn controls_of_a_member_reach_its_seat() {
    let mut net = Net::new(with_rooms());
    net.dial("200");
    net.carrier(CARRIER, [Plan::Accept]);
    assert!(net.dial_into(51, DialKind::External, WORLD).is_ok());
    assert_eq!(net.members(name(51)).len(), 2);
    net.heard_of_rooms();
    let change = GainChange { gain_db: Some(-6), automatic_gain: Some(true) };
    for control in [
        Control::Gain(1, change),
        Control::Deaf(1, true),
        Control::Deaf(1, false),
        Control::Hold(1, true),
        Control::Hold(1, false),
        Control::Whisper(1, Some(2)),
        Control::Kick(2),
    ] {
        net.control(51, control).unwrap();
    }
    let media = |line: &&str| !line.starts_with("news");
    expect![[r#"
        1 gain -6 dB, automatic
        1 hears Silence
        1 hears Room
        1 muted true
        1 hears Music
        1 muted false
        1 hears Room
        1 whispers to Some(2)
        2 joins, hears Room, muted
        2 is told kicked
        1 muted true
        1 whispers to None
        all hear left"#]]
    .assert_eq(&net.heard_of_rooms().lines().filter(media).collect::<Vec<_>>().join("\n"));
}

#[test]
fn three_wrong_pins_end_the_call() {
    let mut net = Net::new(with_rooms());
    net.dial("300");
    net.key(1, "1111#2222#3333#");
    net.wait(Duration::from_secs(30));
    assert_eq!(net.heard, ["200", "BYE"]);
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::CallRejected));
    assert_eq!(net.switch.live_calls(), 0);
}

#[test]
fn a_number_leads_to_a_room_or_asks_for_one() {
    let mut net = Net::new(with_rooms());
    assert_eq!(net.call_in("+442071230001", "+33140000001", ""), 200);
    net.key(1, "1234#");
    assert_eq!(net.call_in("+442071230002", "+33140000002", ""), 200);
    net.key(2, "300#9876#");
    assert_eq!(net.members(name(52)), [(1, "+33140000001".to_owned()), (2, "+33140000002".to_owned())]);
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    assert!(net.heard_of_rooms().ends_with("news Ended"));
    let to = |number: &str| {
        let mut records = net.records.iter();
        records.find(|record| record.destination_number.as_deref() == Some(number)).unwrap()
    };
    let record = to("+442071230001");
    assert_eq!((record.direction, record.trunk_id), (Direction::Inbound, Some(trunk(1, CARRIER).id)));
    assert_eq!(record.caller_number.as_deref(), Some("+33140000001"));
    assert_eq!(to("+442071230002").caller_number.as_deref(), Some("+33140000002"));
    assert_eq!((net.switch.live_calls(), net.switch.control.conferences.seats.len()), (0, 0));
}

/// S8: only a leg that the directory authenticated has an extension, whatever a caller claims.
#[test]
fn s8_an_outside_caller_is_never_exempt() {
    let mut directory = with_rooms();
    let own = extension(11, 1, "acme.test", "1001");
    directory.rooms[1].exemptions = vec![Exemption { extension_id: own.id, role: Role::Moderator }];
    let mut net = Net::new(directory);
    for claim in
        ["", "P-Asserted-Identity: <sip:1001@acme.test>\r\nRemote-Party-ID: <sip:1001@acme.test>\r\n"]
    {
        assert_eq!(net.call_in("+442071230001", "1001", claim), 200);
        assert!(net.heard_of_rooms().ends_with("is told enter-pin"));
        assert!(net.members(name(52)).is_empty());
        net.feed(Input::EndCalls(HangupCause::NormalClearing));
        net.run();
    }
    net.dial("300");
    assert_eq!(net.members(name(52)), [(1, "1001".to_owned())]);
}

#[test]
fn an_extension_is_dialled_into_a_room() {
    let mut net = Net::new(with_rooms());
    assert_eq!(
        net.dial_into(51, DialKind::Extension, "1001"),
        Err(ControlRefused::Unregistered("1001".into()))
    );
    assert_eq!(
        net.dial_into(51, DialKind::Extension, "1009"),
        Err(ControlRefused::NoExtension("1009".into()))
    );
    assert_eq!(net.dial_into(59, DialKind::Extension, "1001"), Err(ControlRefused::NoRoom));
    net.register();
    net.heard.clear();
    assert_eq!(net.dial_into(51, DialKind::Extension, "1001"), Ok("1001".into()));
    let invite = &net.called[0];
    let from = invite.from().unwrap();
    assert_eq!(from.display.as_deref(), Some("Stand-up"));
    assert_eq!(from.uri.user_decoded().as_deref(), Some("200"));
    assert!(net.members(name(51)).is_empty());
    net.wait(Duration::from_secs(3));
    net.pick_up();
    assert_eq!(net.members(name(51)), [(1, "1001".to_owned())]);
    net.wait(Duration::from_secs(7));
    net.control(51, Control::Kick(1)).unwrap();
    assert_eq!(net.heard, ["BYE"]);
    let record = &net.records[0];
    assert_eq!((record.direction, record.billsec), (Direction::Internal, 7));
    assert_eq!(record.caller_number.as_deref(), Some("200"));
    assert_eq!(record.destination_number.as_deref(), Some("1001"));
    assert_eq!(record.extension_id, Some(extension(11, 1, "acme.test", "1001").id));
    assert_eq!((record.codec_a.as_deref(), record.codec_b.as_deref()), (Some("PCMU"), None));
    assert_eq!((record.sip_status, record.hangup_cause), (Some(200), Some(HangupCause::NormalClearing)));
    assert_eq!(net.switch.live_calls(), 0);
}

#[test]
fn a_default_member_is_rung_and_rung_again() {
    let mut directory = with_rooms();
    directory.rooms[1].members = vec![extension(11, 1, "acme.test", "1001").id];
    let mut net = Net::new(directory);
    net.refusal = Some(Reply::new(StatusCode::new(486).unwrap()));
    net.call_in("+442071230001", "+33140000001", "");
    net.key(1, "1234#");
    assert!(net.heard_of_rooms().contains("news invite 1001 waiting unregistered"));
    net.register();
    assert_eq!(net.called.len(), 1, "rung as soon as it is there");
    assert!(net.heard_of_rooms().contains("news invite 1001 waiting busy"));
    net.refusal = None;
    net.wait(Duration::from_secs(40));
    assert_eq!(net.called.len(), 2);
    net.pick_up();
    assert!(net.heard_of_rooms().contains("news invite 1001 joined"));
    assert_eq!(net.members(name(52)).len(), 2);
}

#[test]
fn the_world_is_dialled_into_a_room() {
    let mut net = Net::new(with_rooms());
    net.carrier(CARRIER, [Plan::Accept]);
    assert_eq!(net.dial_into(51, DialKind::External, WORLD), Ok(WORLD.into()));
    let invite = net.carriers[&address(CARRIER)].of(&Method::Invite)[0].clone();
    assert_eq!(invite.uri(), format!("sip:{WORLD}@203.0.113.1:5060"));
    assert_eq!(invite.from().unwrap().uri.user_decoded().unwrap(), "+442071230000");
    assert_eq!(net.members(name(51)), [(1, WORLD.to_owned())]);
    net.wait(Duration::from_secs(5));
    net.control(51, Control::End).unwrap();
    let record = &net.records[0];
    assert_eq!((record.direction, record.billsec), (Direction::Outbound, 5));
    assert_eq!((record.trunk_id, record.extension_id), (Some(trunk(1, CARRIER).id), None));
    assert_eq!(record.caller_number.as_deref(), Some("+442071230000"));
    assert!(net.switch.control.calls.has_no_outbound() && net.switch.control.conferences.dials.is_empty());
    assert!(matches!(net.dial_into(51, DialKind::External, "12"), Err(ControlRefused::NoNumber)));
}

#[test]
fn a_trunk_that_fails_makes_room_for_the_next_and_the_last_is_told() {
    let second = "203.0.113.2:5060";
    for last in [Plan::Accept, Plan::Refuse(486, Vec::new())] {
        let mut directory = with_rooms();
        directory.trunks.push(trunk(2, second));
        let mut net = Net::new(directory);
        net.carrier(CARRIER, [Plan::Refuse(503, Vec::new())]);
        net.carrier(second, [last.clone()]);
        net.dial_into(51, DialKind::External, WORLD).unwrap();
        let seated = matches!(last, Plan::Accept);
        assert_eq!(net.members(name(51)).len(), usize::from(seated));
        net.feed(Input::EndCalls(HangupCause::NormalClearing));
        net.run();
        assert_eq!(net.records[0].sip_status, Some(if seated { 200 } else { 486 }));
        assert_eq!((net.switch.live_calls(), net.switch.control.conferences.dials.len()), (0, 0));
    }
}

/// While a party holds, it is neither mixed nor does it hear the mix; both return when it resumes.
#[test]
fn a_member_holds_and_comes_back() {
    let mut net = Net::new(with_rooms());
    net.dial("200");
    net.heard_of_rooms();
    for (line, expected) in [
        ("a=sendonly\r\n", "1 hears false speaks false"),
        ("a=inactive\r\n", "1 hears false speaks false"),
        ("a=sendrecv\r\n", "1 hears true speaks true"),
    ] {
        net.offer_anew(&format!("{}{line}", crate::tests::network::SDP));
        assert!(net.heard_of_rooms().starts_with(expected), "{line}");
    }
    net.hang_up();
    assert_eq!(net.switch.live_calls(), 0);
}

/// The caller cancels while the 200 waits for the journal: the caller was never in the room.
#[test]
fn a_caller_who_gives_up_before_the_answer_was_never_there() {
    let mut net = Net::new(with_rooms());
    net.is_disk_slow = true;
    net.dial("200");
    net.wait(Duration::from_secs(1));
    net.hang_up();
    net.write();
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::OriginatorCancel));
    assert!(!net.heard_of_rooms().contains("news"));
    assert_eq!((net.switch.live_calls(), net.switch.control.conferences.seats.len()), (0, 0));
}

/// The room ends while a target answers its call: the answer is hung up, or opens the room again if its last
/// member had left.
#[test]
fn a_dial_is_answered_after_the_room_ended() {
    for ended in [true, false] {
        let mut net = Net::new(with_rooms());
        net.register();
        net.call_in("+442071230001", "+33140000001", "");
        net.key(1, "1234#");
        net.dial_into(52, DialKind::Extension, "1001").unwrap();
        net.is_disk_slow = true;
        net.pick_up();
        net.heard_of_rooms();
        if ended {
            net.control(52, Control::End).unwrap();
        } else {
            net.control(52, Control::Kick(1)).unwrap();
        }
        net.write();
        assert_eq!(net.members(name(52)).len(), usize::from(!ended), "ended {ended}");
        assert_eq!(net.heard.iter().filter(|heard| *heard == "BYE").count(), usize::from(ended));
        net.feed(Input::EndCalls(HangupCause::NormalClearing));
        net.run();
        assert_eq!((net.switch.live_calls(), net.switch.control.conferences.dials.len()), (0, 0));
    }
}

/// The carrier's member is kicked at the moment at which it hangs up: one record, one `Left`.
#[test]
fn kick_and_hang_up_cross() {
    let mut net = Net::new(with_rooms());
    net.dial("200");
    net.heard_of_rooms();
    net.phone.hang_up(net.now(), net.leg.unwrap());
    net.control(51, Control::Kick(1)).unwrap();
    let heard = net.heard_of_rooms();
    assert_eq!(heard.matches("news Left").count(), 1, "{heard}");
    assert_eq!(heard.matches("news Ended").count(), 1, "{heard}");
    assert_eq!((net.records.len(), net.switch.live_calls()), (1, 0));
}

/// The room locks while a caller keys the PIN: a participant hears the prompt and is hung up, a moderator is
/// seated.
#[test]
fn the_room_locks_while_a_caller_is_at_the_pin_prompt() {
    for (pin, members) in [("1234#", 1), ("9876#", 2)] {
        let mut net = Net::new(with_rooms());
        net.call_in("+442071230001", "+33140000001", "");
        net.key(1, "1234#");
        net.dial("300");
        net.control(52, Control::Lock).unwrap();
        net.heard_of_rooms();
        net.key(2, pin);
        assert_eq!(net.members(name(52)).len(), members, "{pin}");
        net.wait(Duration::from_secs(20));
        assert_eq!(net.heard.iter().any(|heard| heard == "BYE"), members == 1);
    }
}

/// The last member leaves while a caller keys the PIN: the room ends, and opens again.
#[test]
fn the_last_member_leaves_while_one_joins() {
    let mut net = Net::new(with_rooms());
    net.dial("300");
    net.key(1, "1234#");
    net.call_in("+442071230001", "+33140000001", "");
    net.key(2, "1234");
    net.heard_of_rooms();
    net.hang_up();
    net.key(2, "#");
    let heard = net.heard_of_rooms();
    let news: Vec<&str> = heard.lines().filter(|line| line.starts_with("news")).collect();
    assert_eq!(
        news,
        [
            "news Left { member: 1, cause: NormalClearing }",
            "news Ended",
            "news Opened { room_name: \"Stand-up\" }",
            "news +33140000001 joined as participant 1",
        ]
    );
    assert_eq!((net.records.len(), net.switch.live_calls()), (1, 1));
}

/// One moderator leaves while another joins: the order decides whether the room continues.
#[test]
fn a_moderator_leaves_while_another_joins() {
    for leaves_first in [true, false] {
        let mut directory = with_rooms();
        directory.rooms[1].end_when_moderator_leaves = true;
        let mut net = Net::new(directory);
        net.dial("300");
        net.key(1, "9876#");
        for (port, pin) in [(2, "1234#"), (3, "9876")] {
            net.call_in("+442071230001", &format!("+3314000000{port}"), "");
            net.key(port, pin);
        }
        if leaves_first {
            net.hang_up();
            net.key(3, "#");
        } else {
            net.key(3, "#");
            net.hang_up();
        }
        let left: Vec<String> = net.members(name(52)).into_iter().map(|(_, number)| number).collect();
        let expected: &[&str] =
            if leaves_first { &["+33140000003"] } else { &["+33140000002", "+33140000003"] };
        assert_eq!(left, expected, "leaves first {leaves_first}");
        let ended = net.heard_of_rooms().matches("news Ended").count();
        assert_eq!(ended, usize::from(leaves_first));
    }
}

/// The recording is closed after the room has ended: its result is still published, once.
#[test]
fn the_room_ends_while_its_recording_stops() {
    let mut net = Net::new(with_rooms());
    net.dial("200");
    net.control(51, Control::Record(true)).unwrap();
    let session = net.live_room(name(51)).unwrap().session_id;
    net.control(51, Control::Record(false)).unwrap();
    net.control(51, Control::End).unwrap();
    let heard = net.heard_of_rooms();
    assert!(heard.contains("record no more") && heard.contains("news Ended"), "{heard}");
    assert_eq!((net.switch.live_calls(), net.switch.open_recordings()), (0, 1));
    for told in [1, 0] {
        net.feed(Input::Recorded(session, Recording { bytes: 44, error: None }));
        net.run();
        assert_eq!(net.heard_of_rooms().matches("news Recorded { bytes: 44, error: None }").count(), told);
    }
    assert_eq!(net.switch.open_recordings(), 0);
}

#[test]
fn a_node_that_takes_no_calls_dials_nobody() {
    let mut net = Net::new(with_rooms());
    net.register();
    net.feed(Input::Accept(false));
    assert_eq!(net.dial_into(51, DialKind::Extension, "1001"), Err(ControlRefused::Busy));
    assert!(net.called.is_empty());
}

/// The power of a phone is cut in a room; it restarts, registers and calls again before its silence was noticed.
#[test]
fn a_phone_that_calls_again_takes_its_old_seat() {
    let mut net = Net::new(with_rooms());
    net.register();
    net.dial("200");
    net.key(1, "*1");
    net.silent(1, Duration::from_secs(1));
    net.wait(Duration::from_secs(5));
    net.dial("200");
    assert_eq!(net.members(name(51)), [(1, "1001".to_owned())]);
    let room = net.live_room(name(51)).unwrap();
    assert!(room.members[0].muted, "as before");
    let lost = &net.records[0];
    assert_eq!((lost.hangup_cause, lost.billsec), (Some(HangupCause::MediaTimeout), 5));
    assert_ne!(room.members[0].call_uuid, lost.call_uuid);
    // A second call of a phone that still sends gets its own seat.
    net.dial("200");
    assert_eq!(net.members(name(51)), [(1, "1001".to_owned()), (2, "1001".to_owned())]);
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    assert!(net.switch.control.conferences.seats.is_empty());
}

/// If a phone answers that it does not know the call of a note, it is probed, not hung up.
#[test]
fn a_silent_phone_that_refuses_an_info_is_probed() {
    for (taking, leaves) in [(StatusCode::NO_TRANSACTION, true), (StatusCode::METHOD_NOT_ALLOWED, false)] {
        let mut net = Net::new(with_rooms());
        net.dial("200");
        net.silent(1, Duration::from_secs(1));
        net.taking = Some(taking);
        let (leg, call) =
            net.switch.control.conferences.seats.iter().map(|(leg, seat)| (*leg, seat.call)).next().unwrap();
        let (note, to) = (NoteId(Uuid::nil()), NoteTo::Call(call, vec![leg]));
        net.send_note(Dispatch { note, to, payload: "{}".into() });
        net.wait(Duration::from_secs(1));
        let probes = net.noted.iter().filter(|request| *request.method() == Method::Options).count();
        assert_eq!((probes, net.records.len()), (usize::from(leaves), usize::from(leaves)), "{taking:?}");
    }
}

#[test]
fn prompts_begin_600_ms_after_the_200() {
    let mut net = Net::new(with_rooms());
    net.dial("300");
    net.wait(Duration::from_millis(200));
    net.key(1, "1234#");
    net.wait(Duration::from_secs(1));
    net.key(1, "*1");
    let millis: Vec<u128> = net.leads.iter().map(Duration::as_millis).collect();
    assert_eq!(millis, [600, 400, 0]);
}

/// The ringing time limits of the switch and of the phone both count as "no answer", not as a failure.
#[test]
fn an_invite_that_rings_in_vain_was_not_answered() {
    for by_phone in [false, true] {
        let mut snapshot = with_rooms();
        snapshot.rooms[1].members = vec![extension(11, 1, "acme.test", "1001").id];
        let mut net = Net::new(snapshot);
        net.register();
        net.call_in("+442071230001", "+33140000001", "");
        net.key(1, "1234#");
        let (_, key) = net.ringing.take().unwrap();
        net.phone.respond(net.now(), &key, Reply::new(StatusCode::RINGING)).unwrap();
        net.run();
        if by_phone {
            net.phone.respond(net.now(), &key, Reply::new(StatusCode::TEMPORARILY_UNAVAILABLE)).unwrap();
            net.run();
        }
        net.wait(Duration::from_secs(70));
        let heard = net.heard_of_rooms();
        assert!(heard.contains("news invite 1001 no_answer no_answer"), "{heard}");
    }
}

/// The last party in the room hears a prompt with the reason, and is hung up a minute later.
#[test]
fn the_last_party_of_merged_calls_is_released() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(WORLD);
    net.dial(WORLD);
    let calls: Vec<_> = net.news.iter().map(|news| news.call().uuid).collect();
    let (call, with) = (calls[0], *calls.last().unwrap());
    let merged = net
        .ask(crate::queries::Merge { call, with, by: sidetone_model::room::Requester::default() })
        .unwrap();
    let members = merged.members.len();
    assert!(members >= 3, "{members}");
    net.heard_of_rooms();
    for member in merged.members.iter().skip(1) {
        assert_eq!(net.ask(ControlRoom(merged.room, Control::Kick(member.id))), Ok(ControlDone::Done));
    }
    let heard = net.heard_of_rooms();
    assert!(heard.contains("is told kicked") && heard.ends_with("is told others-left"), "{heard}");
    net.wait(Duration::from_millis(59_900));
    assert_eq!(net.live_room(merged.room).unwrap().members.len(), 1);
    net.wait(Duration::from_millis(200));
    assert_eq!(net.live_room(merged.room), None);
    assert!(net.heard_of_rooms().contains("is told ended"));
}

#[test]
fn guessed_pins_are_reported_to_the_organisation() {
    let mut net = Net::new(with_rooms());
    for call in 0..4 {
        assert_eq!(net.call_in("+442071230001", "+33140000001", ""), 200, "call {call}");
        let port = net.ports.0.len() as u64;
        net.key(port, "1111#2222#3333#");
        net.wait(Duration::from_secs(1));
    }
    assert_eq!(net.call_in("+442071230001", "+33140000001", ""), 403);
    let [guessed] = net.pins_guessed.as_slice() else { panic!("{:?}", net.pins_guessed) };
    assert_eq!((guessed.limit, guessed.failures, guessed.window_seconds), (PinLimit::Caller, 10, 600));
    assert_eq!((guessed.room_id, guessed.number.as_str()), (room_id(52), "+33140000001"));
    assert!(net.notices.contains(&Notice::PinGuessing(room_id(52), PinLimit::Caller)));
}

/// The response to a dial request and the report of its failure both contain the id of the call.
#[test]
fn a_dial_is_answered_with_its_call() {
    let mut net = Net::new(with_rooms());
    net.carrier(CARRIER, [Plan::Refuse(486, Vec::new())]);
    let busy = net.ask(DialIntoRoom(room_id(51), request(DialKind::External, WORLD))).unwrap();
    let [failed] = net.dials_failed.as_slice() else { panic!("{:?}", net.dials_failed) };
    assert_eq!((failed.call_uuid, failed.cause), (busy.call, DialFailure::Busy));
    assert_eq!((failed.room_id, failed.target.as_str()), (room_id(51), WORLD));
    assert_eq!(net.records[0].call_uuid, busy.call);

    let mut net = Net::new(with_rooms());
    net.carrier(CARRIER, [Plan::Accept]);
    let answered = net.ask(DialIntoRoom(room_id(51), request(DialKind::External, WORLD))).unwrap();
    let room = net.live_room(name(51)).unwrap();
    assert_eq!((room.members[0].call_uuid, net.dials_failed.len()), (answered.call, 0));
}
