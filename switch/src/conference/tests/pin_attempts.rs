//! Many wrong PINs: from one caller who tries thousands, and from many callers who share the guessing.

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::pin_guessing::PinLimit;
use sidetone_model::room::Role;

use crate::conference::tests::world::{ACME, ROOM, World, exempt, extension, pin, plain};
use crate::conference::{Goal, Input, PinCaller, RoomsConfig};

fn guarded() -> World {
    let mut room = plain();
    room.participant_pin = pin("4711");
    room.exemptions.push(exempt("bob", Role::Participant));
    World::new(&[room], RoomsConfig::default(), 7)
}

/// Keys wrong PINs in one call until it is hung up or refused; returns how many.
fn attack(world: &mut World, call: &str, caller: &str) -> Result<usize, u16> {
    world.rooms.admits(world.now.instant, ROOM, &PinCaller::new(None, caller))?;
    let leg = World::leg(call);
    let mut who = World::arrival(call, Goal::Room(ROOM));
    who.number = caller.to_owned();
    world.feed(Input::Arrived(who));
    let mut keyed = 0;
    while world.up.contains_key(&leg) {
        world.outputs.clear();
        for digit in format!("{:04}#", keyed + 5000).chars() {
            world.feed(Input::Digit(leg, digit));
        }
        keyed += 1;
        // Wait for the PIN result and the prompt after it.
        let is_slow = world.rooms.wrong_pins(world.now.instant, ROOM).1;
        world.pass(Duration::from_secs(if is_slow { 46 } else { 4 }));
        let token = world.up.get(&leg).map(|told| told.token);
        if let Some(token) = token {
            world.feed(Input::Played(leg, token));
        }
    }
    world.feed(Input::Gone(leg, HangupCause::NormalClearing));
    Ok(keyed)
}

/// Whether a caller who knows the PIN can enter.
fn comes_in(world: &mut World, name: &str) -> bool {
    let leg = World::leg(name);
    let who = World::arrival(name, Goal::Room(ROOM));
    if world.rooms.admits(world.now.instant, ROOM, &who.counted()).is_err() {
        return false;
    }
    world.feed(Input::Arrived(who));
    for digit in "4711#".chars() {
        world.feed(Input::Digit(leg, digit));
    }
    world.pass(Duration::from_secs(4));
    let is_in = world.rooms.room_of(leg).is_some();
    world.feed(Input::Gone(leg, HangupCause::NormalClearing));
    is_in
}

#[test]
fn ten_thousand_attempts_of_one_caller_are_few_tries() {
    let mut world = guarded();
    let (mut tries, mut refused) = (0, 0);
    for _ in 0..10_000 {
        match attack(&mut world, "eve", "+4420") {
            Ok(keyed) => {
                assert!(keyed <= 3, "{keyed} tries in one call");
                tries += keyed;
            }
            Err(status) => {
                assert_eq!(status, 403);
                refused += 1;
                world.pass(Duration::from_secs(4));
            }
        }
        assert!(comes_in(&mut world, "out"), "the room is usable by others");
    }
    assert!(world.guessed.iter().all(|guessed| guessed.limit == PinLimit::Caller), "{:?}", world.guessed);
    // Ten tries before the first refusal, and ten after each; the refusals last 10, 20, 40 … minutes.
    let hours = world.now.instant.duration_since(world.start()).as_secs() / 3600;
    assert!(tries <= 10 * 10, "{tries} tries in {hours} h");
    assert!(refused > 9_800, "{refused} calls refused");
    let who = PinCaller::new(extension("ada"), "+4420");
    assert_eq!(world.rooms.admits(world.now.instant, ROOM, &who), Ok(()), "an extension is no number");
}

#[test]
fn fifty_who_take_turns_make_the_room_slow_and_not_unusable() {
    let mut world = guarded();
    let (mut keyed, mut calls, mut slow) = (0, 0, 0);
    for _ in 0..20 {
        for caller in 0..50 {
            let was_slow = world.rooms.wrong_pins(world.now.instant, ROOM).1;
            if let Ok(tries) = attack(&mut world, "eve", &format!("+44{caller}")) {
                assert!(tries <= 3);
                assert!(tries == 1 || !was_slow, "{tries} tries in a call to a slow room");
                slow += usize::from(was_slow);
                keyed += tries;
                calls += 1;
            }
            if caller % 10 == 0 {
                assert!(comes_in(&mut world, "out"), "the room is usable by others");
                assert!(comes_in(&mut world, "bob"), "and by those who need no PIN");
            }
        }
    }
    assert!(slow > 100 && keyed <= 50 * 30, "{keyed} tries in {calls} calls, {slow} of them slow");
}

#[test]
fn a_moderator_pin_is_guessed_in_the_room_no_faster_than_on_the_way_in() {
    let mut room = plain();
    room.moderator_pin = pin("9876");
    let mut world = World::new(&[room], RoomsConfig::default(), 7);
    let begun = world.now.instant;
    // Twelve calls at the same time, each with its own number. Each hangs up after its tries and calls again.
    for round in 0..150 {
        let callers: Vec<String> = (0..12).map(|place| format!("eve-{round}-{place}")).collect();
        for (place, caller) in callers.iter().enumerate() {
            let leg = World::leg(caller);
            let mut who = World::arrival(caller, Goal::Room(ROOM));
            who.number = format!("+44{round:05}{place:02}");
            world.feed(Input::Arrived(who));
            for digit in "5000#5001#5002#".chars() {
                world.feed(Input::Digit(leg, digit));
            }
        }
        world.outputs.clear();
        world.pass(Duration::from_secs(4));
        for caller in &callers {
            world.feed(Input::Gone(World::leg(caller), HangupCause::NormalClearing));
        }
    }
    // Sixty until the room is slow, and then one every 45 seconds; without the limit there are 5,400.
    let seconds = world.now.instant.duration_since(begun).as_secs();
    let checked = world.rooms.wrong_pins(world.now.instant, ROOM).0;
    assert!(checked <= 60 + 12 + seconds / 45, "{checked} PINs checked in {seconds} s");
    assert_eq!(world.guessed.iter().map(|guessed| guessed.limit).collect::<Vec<_>>(), [PinLimit::Room]);
    // The attack is over, and no result waits.
    world.pass(Duration::from_secs(120));
    let (leg, who) = (World::leg("chair"), World::arrival("chair", Goal::Room(ROOM)));
    let number = who.number.clone();
    world.feed(Input::Arrived(who));
    for digit in "9876#".chars() {
        world.feed(Input::Digit(leg, digit));
    }
    world.pass(Duration::from_secs(46));
    let room = world.rooms.live_room(world.now.wall, ROOM.into()).unwrap();
    let chair = room.members.iter().find(|member| member.number == number);
    let role = chair.map(|member| member.role);
    assert_eq!(role, Some(Role::Moderator), "who has the PIN becomes moderator all the same");
}

#[test]
fn a_failure_is_forgotten_after_ten_minutes() {
    let mut world = guarded();
    for _ in 0..3 {
        assert_eq!(attack(&mut world, "eve", "+4420"), Ok(3));
    }
    world.pass(Duration::from_secs(601));
    for _ in 0..3 {
        assert_eq!(attack(&mut world, "eve", "+4420"), Ok(3));
    }
    // This is the tenth failure in ten minutes.
    assert_eq!(attack(&mut world, "eve", "+4420"), Ok(1));
    assert_eq!(attack(&mut world, "eve", "+4420"), Err(403));
    world.pass(Duration::from_secs(601));
    assert!(attack(&mut world, "eve", "+4420").is_ok());
}

#[test]
fn callers_without_number_are_bounded_and_few_are_remembered() {
    use crate::conference::pin_attempts::{Attempt, PinAttempts};

    let mut pin_attempts = PinAttempts::default();
    let now = crate::conference::tests::any_instant();
    for caller in 0..20_000 {
        let who = PinCaller::new(None, &format!("+44{caller}"));
        pin_attempts.failed(now, &Attempt { organisation: ACME, room: ROOM, who, trunk: None });
    }
    assert_eq!(pin_attempts.len(), 10_000);
    assert_eq!(PinCaller::new(None, &"9".repeat(500)), PinCaller::Number("9".repeat(64)));
}
