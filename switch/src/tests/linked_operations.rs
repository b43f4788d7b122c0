//! Recordings and prompts of calls that a transfer or a pick-up has linked: both calls get every step and show the same
//! state.

use std::time::Duration;

use sidetone_media::mix::MixId;
use sidetone_model::call_operation::{CallOperation, OperationRefused, RecordStep, TransferTarget};
use sidetone_model::call_prompt::{LivePrompt, PlaySide};
use sidetone_model::ids::{CallId, CallRecordingId};
use sidetone_model::language::Language;
use sidetone_model::prompt::Prompt;
use sidetone_sip::message::Method;
use uuid::Uuid;

use crate::io::{MediaCommand, PortId};
use crate::machine::Input;
use crate::mixing::MixOrder;
use crate::tests::network::{Net, OfRooms, Plan, acme, trunk};
use crate::tests::operations::{number, refused};
use crate::tests::transfers::{BOB, Desk};

const ID: CallRecordingId = CallRecordingId(Uuid::from_u128(7));

fn prompt(play: u128, side: PlaySide) -> LivePrompt {
    LivePrompt { play_id: Uuid::from_u128(play).into(), prompt: Prompt::Goodbye, side }
}

impl Net {
    pub(super) fn record(&mut self, call: CallId, step: RecordStep) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::Record(call, step))
    }

    fn play_in(&mut self, call: CallId, prompt: Option<LivePrompt>) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::Play(call, prompt))
    }

    /// Returns the orders to the media engine since the last call, and the mixes.
    fn ordered(&mut self) -> (Vec<String>, Vec<MixId>) {
        let mut mixes = Vec::new();
        let mut texts = Vec::new();
        for output in self.of_rooms.drain(..) {
            texts.push(match output {
                OfRooms::Media(port, MediaCommand::Bridge { peer, .. }) => {
                    format!("{} to {}", port.0, peer.0)
                }
                OfRooms::Media(port, MediaCommand::Join { mix, hears, .. }) => {
                    mixes.push(mix);
                    format!("{} hears {hears:?}", port.0)
                }
                OfRooms::Media(port, MediaCommand::Leave) => format!("{} leaves", port.0),
                OfRooms::Media(port, MediaCommand::Listen { mix, muted, .. }) => {
                    mixes.push(mix);
                    format!("{} listened{}", port.0, if muted { " muted" } else { "" })
                }
                OfRooms::Media(port, MediaCommand::Mute(muted)) => format!("{} muted {muted}", port.0),
                OfRooms::Media(port, MediaCommand::Play { token, language, .. }) => {
                    format!("{} plays {token} in {}", port.0, language.unwrap())
                }
                OfRooms::Media(port, MediaCommand::StopPlaying) => format!("{} plays no more", port.0),
                OfRooms::Media(port, MediaCommand::Unbridge) => format!("{} to no one", port.0),
                OfRooms::Mix(mix, MixOrder::Record(plan)) => {
                    mixes.push(mix);
                    format!("record {:?}", plan.sides.unwrap().map(|port| port.0))
                }
                OfRooms::Mix(mix, MixOrder::StopRecording) => {
                    mixes.push(mix);
                    "record no more".to_owned()
                }
                _ => continue,
            });
        }
        (texts, mixes)
    }

    fn media_orders(&mut self) -> Vec<String> {
        self.ordered().0
    }
}

/// The calls of Ann (port 2) and Bob (port 3), whom a transfer by 1001 (port 1) has connected.
fn joined() -> (Desk, [CallId; 2]) {
    let mut desk = Desk::new([Plan::Accept]);
    desk.net.is_player_slow = true;
    let first = desk.net.live()[0].uuid;
    let second = desk.net.transfer(first, None, number(BOB)).unwrap();
    desk.net.of_rooms.clear();
    (desk, [first, second])
}

fn shown(desk: &mut Desk, calls: [CallId; 2]) -> Vec<Option<(CallRecordingId, bool)>> {
    let recording = |call| desk.net.find_call(call).unwrap().recording;
    calls.map(recording).map(|one| one.map(|one| (one.id, one.paused))).into()
}

#[test]
fn both_parties_of_linked_calls_are_recorded_by_either_call() {
    for named in [0, 1] {
        let (mut desk, calls) = joined();
        let (call, other) = (calls[named], calls[1 - named]);
        assert_eq!(refused(desk.net.record(call, RecordStep::Pause)), "conflict");
        assert_eq!(desk.net.record(call, RecordStep::Start(ID)), Ok(other), "the other call is recorded too");
        let (orders, mixes) = desk.net.ordered();
        // Ann takes the called side of the first call, Bob that of the second one.
        let expected = match named {
            0 => ["3 listened", "2 listened", "record [3, 2]"],
            _ => ["2 listened", "3 listened", "record [2, 3]"],
        };
        assert_eq!(orders, expected);
        assert!(mixes.iter().all(|mix| *mix == mixes[0]), "{mixes:?}");
        assert_eq!(shown(&mut desk, calls), [Some((ID, false)); 2]);
        for (again, named) in [(call, "already"), (other, "linked")] {
            let Err(OperationRefused::Conflict(why)) = desk.net.record(again, RecordStep::Start(ID)) else {
                panic!("it is recorded already")
            };
            assert!(why.contains(named), "{why}");
        }
        desk.net.record(other, RecordStep::Pause).unwrap();
        assert_eq!(shown(&mut desk, calls), [Some((ID, true)); 2]);
        desk.net.record(call, RecordStep::Resume).unwrap();
        let mut muted = desk.net.media_orders();
        muted.sort_unstable();
        assert_eq!(muted, ["2 muted false", "2 muted true", "3 muted false", "3 muted true"]);
        desk.net.record(other, RecordStep::Stop).unwrap();
        let (mut orders, stopped) = desk.net.ordered();
        assert_eq!((stopped, shown(&mut desk, calls)), (vec![mixes[0]], vec![None; 2]));
        orders.sort_unstable();
        assert_eq!(orders, ["2 leaves", "2 to 3", "3 leaves", "3 to 2", "record no more"]);
        desk.end();
    }
}

/// A prompt keeps the seats, including seats that the pause of an earlier recording has muted.
#[test]
fn a_recording_that_starts_during_a_prompt_hears_both_parties() {
    let (mut desk, calls) = joined();
    desk.net.record(calls[0], RecordStep::Start(ID)).unwrap();
    desk.net.record(calls[0], RecordStep::Pause).unwrap();
    desk.net.play_in(calls[0], Some(prompt(8, PlaySide::Callee))).unwrap();
    desk.net.record(calls[0], RecordStep::Stop).unwrap();
    desk.net.media_orders();
    desk.net.record(calls[0], RecordStep::Start(CallRecordingId(Uuid::from_u128(9)))).unwrap();
    let mut orders = desk.net.media_orders();
    orders.retain(|order| order.contains("muted"));
    orders.sort_unstable();
    assert_eq!(orders, ["2 muted false", "3 muted false"]);
    desk.end();
}

/// A hold in between records silence in the same mix; the end of one party ends the recording once.
#[test]
fn a_recording_goes_on_through_a_hold_and_ends_with_either_party() {
    for leaves in [0, 1] {
        let (mut desk, calls) = joined();
        desk.net.record(calls[0], RecordStep::Start(ID)).unwrap();
        let leg = desk.net.find_call(calls[1]).unwrap().legs[0].uuid;
        desk.net.hold(calls[1], Some(leg)).unwrap();
        let (orders, mixes) = desk.net.ordered();
        assert_eq!(orders[3..], ["3 hears Nothing", "2 hears Music"]);
        assert!(mixes.iter().all(|mix| *mix == mixes[0]), "{mixes:?}");
        desk.net.record(calls[0], RecordStep::Pause).unwrap();
        desk.net.unhold(calls[0]).unwrap();
        // The answers to the re-INVITEs bridge again.
        assert_eq!(
            desk.net.media_orders()[..4],
            ["2 listened muted", "2 to 3", "3 listened muted", "3 to 2"]
        );
        assert_eq!(shown(&mut desk, calls), [Some((ID, true)); 2]);
        desk.carrier_hangs_up(leaves);
        let ends = desk.net.media_orders();
        assert_eq!(ends.iter().filter(|order| *order == "record no more").count(), 1, "{ends:?}");
        desk.net.wait(Duration::from_secs(5));
        assert_eq!(desk.net.records.len(), 2);
        desk.end();
    }
}

/// The recording ended by itself, for example on a full disk: neither call is recorded any more.
#[test]
fn a_recording_that_ends_by_itself_ends_in_both_calls() {
    let (mut desk, calls) = joined();
    desk.net.record(calls[1], RecordStep::Start(ID)).unwrap();
    let error = Some("the disk of recordings is full".to_owned());
    desk.net.feed(Input::Recorded(ID.0.into(), crate::mixing::Recording { bytes: 0, error }));
    desk.net.run();
    assert_eq!(shown(&mut desk, calls), [None; 2]);
    assert_eq!(desk.net.record(calls[0], RecordStep::Start(ID)), Ok(calls[1]), "and may be again");
    desk.end();
}

/// Two calls of different media groups, whose ports the relay bridges in one worker: the mix is in that worker.
#[test]
fn the_mix_of_an_attended_transfer_is_where_the_bridge_is() {
    let mut desk = Desk::new([Plan::Accept]);
    desk.net.dial(BOB);
    let calls: Vec<_> = desk.net.live().iter().map(|live| live.uuid).collect();
    desk.net.transfer(calls[0], None, TransferTarget::Call(calls[1])).unwrap();
    let groups = [0, 1].map(|at| desk.net.switch.control.calls.get(calls[at]).unwrap().call.group() % 4);
    desk.net.of_rooms.clear();
    desk.net.record(calls[0], RecordStep::Start(ID)).unwrap();
    let (orders, mixes) = desk.net.ordered();
    assert_eq!(orders, ["4 listened", "2 listened", "record [4, 2]"]);
    assert_eq!(mixes.iter().map(|mix| mix.0 % 4).collect::<Vec<_>>(), [groups[0].min(groups[1]); 3]);
    desk.end();
}

#[test]
fn a_prompt_reaches_either_side_of_linked_calls_and_the_audio_goes_on() {
    let (mut desk, calls) = joined();
    let playing = |desk: &mut Desk| calls.map(|call| desk.net.find_call(call).unwrap().playing);
    desk.net.play_in(calls[0], Some(prompt(8, PlaySide::Callee))).unwrap();
    let seen = [prompt(8, PlaySide::Callee), prompt(8, PlaySide::Caller)].map(Some);
    assert_eq!(
        playing(&mut desk),
        seen,
        "Ann is the called side of one call, and the other side of the other"
    );
    assert_eq!(desk.net.media_orders(), ["3 listened", "3 to no one", "2 listened", "2 plays 8 in en"]);
    desk.net.feed(Input::Played(PortId(2), 7));
    desk.net.feed(Input::Played(PortId(3), 8));
    assert_eq!(playing(&mut desk), seen);
    desk.net.feed(Input::Played(PortId(2), 8));
    desk.net.run();
    assert_eq!(playing(&mut desk), [None; 2]);
    assert_eq!(desk.net.media_orders(), ["2 leaves", "2 to 3", "3 leaves", "3 to 2"]);
    assert_eq!(desk.net.requests, ["prompt finished"], "one event");
    // To both, replaced by the other call, then stopped.
    desk.net.record(calls[0], RecordStep::Start(ID)).unwrap();
    desk.net.play_in(calls[0], Some(prompt(9, PlaySide::Both))).unwrap();
    desk.net.media_orders();
    desk.net.play_in(calls[1], Some(prompt(10, PlaySide::Callee))).unwrap();
    let mut orders = desk.net.media_orders();
    orders.sort_unstable();
    let expected =
        ["2 plays no more", "2 to 3", "2 to no one", "3 plays 10 in en", "3 plays no more", "3 to 2"];
    assert_eq!(orders, expected);
    desk.net.play_in(calls[0], None).unwrap();
    let mut orders = desk.net.media_orders();
    orders.sort_unstable();
    assert_eq!(orders, ["2 to 3", "3 plays no more", "3 to 2"], "the recording listens on");
    assert_eq!(desk.net.requests[1..], ["prompt replaced", "prompt stopped"]);
    desk.net.play_in(calls[1], Some(prompt(11, PlaySide::Both))).unwrap();
    desk.carrier_hangs_up(0);
    assert_eq!(desk.net.requests.last().unwrap(), "prompt call_ended");
    desk.end();
}

/// While the target of a transfer rings, the recording continues; its answer ends the recording.
#[test]
fn a_transfer_ends_a_recording_when_its_target_answers() {
    let mut desk = Desk::new([Plan::Ring]);
    let call = desk.net.live()[0].uuid;
    desk.net.record(call, RecordStep::Start(ID)).unwrap();
    desk.refer_to(BOB);
    assert_eq!(desk.net.find_call(call).unwrap().recording.map(|one| one.id), Some(ID));
    desk.net.of_rooms.clear();
    desk.carrier_answers(1);
    desk.net.run();
    let orders = desk.net.media_orders();
    assert_eq!(orders.iter().filter(|order| *order == "record no more").count(), 1, "{orders:?}");
    assert_eq!(desk.net.find_call(call).unwrap().recording, None);
    assert_eq!(desk.at_carrier(&Method::Bye).len(), 0);
    desk.end();
}

/// A phone of an extension with a language, and a party outside.
#[test]
fn a_built_in_prompt_is_in_the_language_of_the_party_that_hears_it() {
    let mut directory = acme(vec![trunk(1, "203.0.113.1:5060")]);
    directory.organisations[0].language = Language::German;
    directory.extensions.iter_mut().for_each(|one| one.language = Some(Language::English));
    let mut desk = Desk::with(directory, [Plan::Accept]);
    desk.net.is_player_slow = true;
    desk.net.of_rooms.clear();
    let call = desk.net.live()[0].uuid;
    desk.net.play_in(call, Some(prompt(8, PlaySide::Both))).unwrap();
    let plays = |desk: &mut Desk| {
        desk.net.media_orders().into_iter().filter(|order| order.contains("plays 8")).collect::<Vec<_>>()
    };
    assert_eq!(plays(&mut desk), ["1 plays 8 in en", "2 plays 8 in de"]);
    desk.net.transfer(call, None, number(BOB)).unwrap();
    desk.net.play_in(call, Some(prompt(8, PlaySide::Both))).unwrap();
    assert_eq!(plays(&mut desk), ["3 plays 8 in de", "2 plays 8 in de"]);
    desk.end();
}
