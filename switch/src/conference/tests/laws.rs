//! Invariants under random inputs: [`World`] checks them after every input.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use sidetone_model::call::HangupCause;
use sidetone_model::ids::{ExtensionId, LegId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::event::MergedBy;
use sidetone_model::room::{
    Control, ControlRefused, DialKind, DialRequest, GainChange, PlayingSound, Role, RoomConfig, RoomName,
};

use crate::conference::tests::world::{ROOM, STAFF, World, exempt, extension, pin, plain};
use crate::conference::{DialEnd, Goal, Input, RoomsConfig};

/// One random step.
#[derive(Clone, Debug)]
enum Step {
    Arrive(u8, u8),
    Answer(Index),
    Control(u8, Index),
    Dial(u8, bool),
    DialEnds(Index, DialEnd),
    Free(u8),
    Gone(Index),
    Held(Index, bool),
    Heard(Index),
    Keys(Index, &'static str),
    Named(Index, bool),
    Pass(u32),
    Recorded(bool),
    Rings(Index),
    Stale(u8),
    Talks(Index, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let keys = select(vec![
        "1234#", "9876#", "1111#", "200#", "12", "*1", "*2", "*5", "*7", "*0", "*", "#", "5", "9876", "A",
    ]);
    let end = select(vec![
        DialEnd::Busy,
        DialEnd::Declined,
        DialEnd::NoAnswer,
        DialEnd::Status(480),
        DialEnd::Unregistered,
    ]);
    let time = select(vec![0, 20, 500, 2_900, 3_100, 5_000, 12_000, 30_000, 61_000]);
    prop_oneof![
        6 => (any::<u8>(), 0..5_u8).prop_map(|(who, goal)| Step::Arrive(who, goal)),
        2 => any::<Index>().prop_map(Step::Answer),
        4 => (0..18_u8, any::<Index>()).prop_map(|(what, who)| Step::Control(what, who)),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(who, role)| Step::Dial(who, role)),
        2 => (any::<Index>(), end).prop_map(|(dial, end)| Step::DialEnds(dial, end)),
        1 => any::<u8>().prop_map(Step::Free),
        3 => any::<Index>().prop_map(Step::Gone),
        1 => (any::<Index>(), any::<bool>()).prop_map(|(who, on)| Step::Held(who, on)),
        2 => any::<Index>().prop_map(Step::Heard),
        8 => (any::<Index>(), keys).prop_map(|(who, keys)| Step::Keys(who, keys)),
        3 => time.prop_map(Step::Pass),
        6 => (any::<Index>(), any::<bool>()).prop_map(|(who, is_known)| Step::Named(who, is_known)),
        1 => any::<bool>().prop_map(Step::Recorded),
        1 => any::<Index>().prop_map(Step::Rings),
        1 => any::<u8>().prop_map(Step::Stale),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(who, on)| Step::Talks(who, on)),
    ]
}

fn config() -> impl Strategy<Value = RoomConfig> {
    (any::<[bool; 9]>(), 0..4_u32).prop_map(
        |([pinned, moderated, waits, ends, record, names, ada, bob, cy], max)| {
            let mut room = plain();
            let keyed = |digits, is_set| if is_set { pin(digits) } else { pin("") };
            room.participant_pin = keyed("1234", pinned);
            room.moderator_pin = keyed("9876", moderated);
            room.wait_for_moderator = waits;
            room.end_when_moderator_leaves = ends;
            room.record = record;
            room.announce_names = names;
            room.max_members = if max == 0 { 0 } else { max + 1 };
            room.exemptions.extend(ada.then(|| exempt("ada", Role::Moderator)));
            room.exemptions.extend(bob.then(|| exempt("bob", Role::Participant)));
            room.members.extend(
                cy.then(|| [extension("cy").unwrap(), extension("dee").unwrap()]).into_iter().flatten(),
            );
            room
        },
    )
}

/// Returns a name: an extension's, or a new one for an outside party.
fn newcomer(who: u8, count: usize) -> String {
    match STAFF.get(usize::from(who % 8)) {
        Some((name, _)) => (*name).to_owned(),
        None => format!("out{count}"),
    }
}

fn staff(who: u8) -> ExtensionId {
    extension(STAFF[usize::from(who) % STAFF.len()].0).unwrap()
}

fn pick(world: &World, index: Index) -> Option<LegId> {
    let legs: Vec<_> = world.up.keys().copied().collect();
    (!legs.is_empty()).then(|| legs[index.index(legs.len())])
}

fn play(world: &mut World, step: Step, count: usize) {
    let dial_at = |world: &World, index: Index| {
        let dials: Vec<_> = world.dials.keys().copied().collect();
        (!dials.is_empty()).then(|| dials[index.index(dials.len())])
    };
    match step {
        Step::Arrive(who, goal) => {
            let name = newcomer(who, count);
            let leg = World::leg(&name);
            if world.up.contains_key(&leg) || world.hung_up.contains(&leg) {
                return;
            }
            let calls = ["out-a", "out-b"].map(|name| World::leg(name).0.into());
            let goal = match goal {
                0 => Goal::Ask,
                1 => Goal::Merged { room: RoomName::Merged(calls[0]), calls, by: MergedBy::default() },
                _ => Goal::Room(ROOM),
            };
            world.feed(Input::Arrived(World::arrival(&name, goal)));
        }
        Step::Answer(index) => {
            let Some(dial) = dial_at(world, index) else { return };
            let target = world.dials[&dial].clone();
            let name = STAFF.iter().find(|(_, number)| *number == target).map_or("far", |(name, _)| *name);
            let leg = World::leg(name);
            if !world.up.contains_key(&leg) && !world.hung_up.contains(&leg) {
                world.feed(Input::Arrived(World::arrival(name, Goal::Dialled { dial })));
            }
        }
        Step::Control(what, index) => {
            let names: Vec<_> = world.reader.live().map(|room| room.room).collect();
            let Some(name) = (!names.is_empty()).then(|| names[index.index(names.len())]) else { return };
            let room = world.reader.live().find(|room| room.room == name).unwrap();
            let members = &room.members;
            let member = members[index.index(members.len())].id;
            let control = match what {
                0 if index.index(3) == 0 => Control::End,
                1 => Control::Kick(member),
                2 => Control::Lock,
                3 => Control::Mute(member),
                4 => Control::MuteAll,
                5 => Control::Record(true),
                6 => Control::Record(false),
                7 => Control::Unmute(member),
                8 => Control::MuteLocked(member),
                9 => Control::Deaf(member, index.index(3) > 0),
                10 => Control::Hold(member, index.index(3) > 0),
                11 => Control::Gain(member, GainChange { gain_db: Some(6), automatic_gain: Some(true) }),
                12 => Control::Whisper(member, None),
                13 => {
                    let other = members[(index.index(members.len()) + 1) % members.len()].id;
                    Control::Whisper(member, Some(other).filter(|other| *other != member))
                }
                14 if room.playing.is_none() => {
                    let member = (index.index(2) > 0).then_some(member);
                    let sound = PlayingSound { prompt: Prompt::HoldMusic.into(), member };
                    Control::Play { sound, duration_ms: 4_000 }
                }
                15 => Control::StopSound,
                16 => Control::RecordChannels(1 + u16::from(index.index(2) > 0)),
                _ => Control::Unlock,
            };
            let done = world.control(name, control);
            assert!(done.is_ok() || matches!(done, Err(ControlRefused::Channels(_))), "{done:?}");
        }
        Step::Dial(who, moderates) => {
            let target =
                if who % 3 == 0 { "+442079460000".into() } else { STAFF[usize::from(who) % 4].1.to_owned() };
            let kind = if who % 3 == 0 { DialKind::External } else { DialKind::Extension };
            let role = if moderates { Role::Moderator } else { Role::Participant };
            drop(world.dial(DialRequest { kind, target, role, confirm: who % 2 == 0 }));
        }
        Step::DialEnds(index, end) => {
            if let Some(dial) = dial_at(world, index) {
                world.feed(Input::DialFailed { dial, end });
            }
        }
        Step::Free(who) => world.feed(Input::Free(staff(who))),
        Step::Gone(index) => {
            if let Some(leg) = pick(world, index) {
                world.feed(Input::Gone(leg, HangupCause::NormalClearing));
            }
        }
        Step::Held(index, held) => {
            if let Some(leg) = pick(world, index) {
                world.feed(Input::Held(leg, held));
            }
        }
        Step::Heard(index) => {
            if let Some(leg) = pick(world, index) {
                let token = world.up[&leg].token;
                world.feed(Input::Played(leg, token));
            }
        }
        Step::Keys(index, digits) => {
            let Some(leg) = pick(world, index) else { return };
            for digit in digits.chars() {
                world.feed(Input::Digit(leg, digit));
            }
        }
        Step::Named(index, is_known) => {
            if let Some(leg) = pick(world, index) {
                world.feed(Input::Name(leg, is_known));
            }
        }
        Step::Pass(millis) => world.pass(Duration::from_millis(millis.into())),
        Step::Recorded(failed) => {
            if let Some(session) = world.next_recorded() {
                let error = failed.then(|| "no space left".to_owned());
                world.feed(Input::Recorded { session, bytes: 44, error });
            }
        }
        Step::Rings(index) => {
            if let Some(dial) = dial_at(world, index) {
                world.feed(Input::Ringing(dial));
            }
        }
        // Inputs about an ended leg must have no effect.
        Step::Stale(who) => {
            let leg = world.hung_up.iter().next().copied().unwrap_or(World::leg("ghost"));
            match who % 4 {
                0 => world.feed(Input::Digit(leg, '1')),
                1 => world.feed(Input::Talking(leg, true)),
                2 => world.feed(Input::Played(leg, 1)),
                _ => world.feed(Input::Gone(leg, HangupCause::NormalClearing)),
            }
        }
        Step::Talks(index, talking) => {
            if let Some(leg) = pick(world, index) {
                world.feed(Input::Talking(leg, talking));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_laws_hold(
        config in config(),
        steps in proptest::collection::vec(step(), 1..120),
        seed in any::<u64>(),
    ) {
        let bounds = RoomsConfig { rooms_max: 3, members_max: 6, callers_max: 5, dials_max: 3 };
        let mut world = World::new(&[config], bounds, seed);
        for (count, step) in steps.into_iter().enumerate() {
            play(&mut world, step, count);
        }
        // A leg that is in no room is hung up in time, and a room without members is removed.
        world.pass(Duration::from_secs(400));
        let seated: usize = world.reader.live().map(|room| room.members.len()).sum();
        prop_assert_eq!(world.up.len(), seated);
        for leg in world.up.keys().copied().collect::<Vec<_>>() {
            world.feed(Input::Gone(leg, HangupCause::NormalClearing));
        }
        prop_assert_eq!(world.reader.live().count(), 0);
        world.pass(Duration::from_secs(400));
        prop_assert_eq!(world.rooms.next_timeout(), None);
    }
}
