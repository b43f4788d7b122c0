//! Inside the room: every row of the tables of states, controls and keys.

use expect_test::expect;

use crate::conference::tests::script::check;
use crate::conference::tests::world::{ROOM, World, plain};
use crate::conference::{Goal, Input, Output, RoomsConfig};

#[test]
fn the_whole_story_of_a_room() {
    check(
        "
            room
            ada dials
            out dials
            wait 90s
            show
            ada gone
            out gone
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            out dials
                mix 1 is told joined
                news 3: out joined as participant 2
                out joins mix 1, hears room
            wait 90s
            show
                Board [] 90 s, revision 3: 1=ada participant; 2=+44304564 participant;
            ada gone
                news 4: 1 left
                mix 1 is told left
            out gone
                news 5: 2 left
                news 6: ended
        "#]],
    );
}

#[test]
fn lock_and_unlock() {
    check(
        "
            room
            ada dials
            lock
            lock
            unlock
            unlock
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            lock
                news 3: locked true
                mix 1 is told locked
            lock
            unlock
                news 4: locked false
                mix 1 is told unlocked
            unlock
        "#]],
    );
}

#[test]
fn mute_and_unmute_one() {
    check(
        "
            room
            ada dials
            bob dials
            bob talks
            mute 2
            mute 2
            bob talks
            show
            unmute 2
            bob talks
            show
            mute 9
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            bob dials
                mix 1 is told joined
                news 3: bob joined as participant 2
                bob joins mix 1, hears room
            bob talks
                news 4: 2 talking true
            mute 2
                news 5: 2 muted true
                news 6: 2 talking false
                bob is muted
                bob is told muted
            mute 2
            bob talks
            show
                Board [] 0 s, revision 6: 1=ada participant; 2=bob participant muted;
            unmute 2
                news 7: 2 muted false
                bob is heard
                bob is told unmuted
            bob talks
                news 8: 2 talking true
            show
                Board [] 0 s, revision 8: 1=ada participant; 2=bob participant talking;
            mute 9
                = there is no such member in the room
        "#]],
    );
}

#[test]
fn kick() {
    check(
        "
            room
            ada dials
            bob dials
            kick 2
            bob gone
            kick 2
            kick 1
            kick 1
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            bob dials
                mix 1 is told joined
                news 3: bob joined as participant 2
                bob joins mix 1, hears room
            kick 2
                bob joins mix 2, muted, hears room
                bob is told kicked
                news 4: 2 left
                mix 1 is told left
            bob gone
            kick 2
                = there is no such member in the room
            kick 1
                ada joins mix 3, muted, hears room
                ada is told kicked
                news 5: 1 left
                news 6: ended
            kick 1
                = the room is not live
        "#]],
    );
}

#[test]
fn record_on_and_off() {
    check(
        "
            room
            ada dials
            record on
            record on
            bob dials
            record off
            recorded 1000
            record off
            record on
            recorded 2000 no space left on the disk
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            record on
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad
                news 3: recording true
                mix 1 is told recording-on
            record on
            bob dials
                mix 1 is told joined
                news 4: bob joined as participant 2
                bob joins mix 1, hears room
                bob is told recording-on
            record off
                record mix 1 no more
                news 5: recording false
                mix 1 is told recording-off
            recorded 1000
                news 6: recorded 1000 None
            record off
            record on
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad
                news 7: recording true
                mix 1 is told recording-on
            recorded 2000 no space left on the disk
                the recording failed with 2000 bytes: no space left on the disk
                news 8: recording false
                mix 1 is told recording-off
                news 9: recorded 2000 Some("no space left on the disk")
            show
                Board [] 0 s, revision 9: 1=ada participant; 2=bob participant;
        "#]],
    );
}

#[test]
fn a_recording_that_ends_late_is_not_taken_for_the_next() {
    check(
        "
            room
            ada dials
            record on
            record off
            record on
            recorded 1000
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            record on
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad
                news 3: recording true
                mix 1 is told recording-on
            record off
                record mix 1 no more
                news 4: recording false
                mix 1 is told recording-off
            record on
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad
                news 5: recording true
                mix 1 is told recording-on
            recorded 1000
                news 6: recorded 1000 None
            show
                Board [recording] 0 s, revision 6: 1=ada participant;
        "#]],
    );
}

#[test]
fn a_room_that_records_begins_with_its_first_member() {
    check(
        "
            room record
            ada dials
            ada gone
            recorded 5000
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad
                news 3: recording true
                ada is told alone recording-on
            ada gone
                news 4: 1 left
                record mix 1 no more
                news 5: recording false
                news 6: ended
            recorded 5000
                news 7: recorded 5000 None
        "#]],
    );
}

#[test]
fn end() {
    check(
        "
            room
            ada dials
            out dials
            record on
            end
            ada heard
            out gone
            recorded 100
            end
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            out dials
                mix 1 is told joined
                news 3: out joined as participant 2
                out joins mix 1, hears room
            record on
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad
                news 4: recording true
                mix 1 is told recording-on
            end
                news 5: 1 left
                ada is muted
                ada is told ended
                news 6: 2 left
                out is muted
                out is told ended
                record mix 1 no more
                news 7: recording false
                news 8: ended
            ada heard
                ada hung up
            out gone
            recorded 100
                news 9: recorded 100 None
            end
                = the room is not live
            show
                nobody
        "#]],
    );
}

#[test]
fn talking_is_told_once() {
    check(
        "
            room
            ada dials
            ada stops
            ada talks
            ada talks
            show
            ada holds
            ada talks
            ada resumes
            ada talks
            ada stops
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            ada stops
            ada talks
                news 3: 1 talking true
            ada talks
            show
                Board [] 0 s, revision 3: 1=ada participant talking;
            ada holds
                news 4: 1 talking false
            ada talks
            ada resumes
            ada talks
                news 5: 1 talking true
            ada stops
                news 6: 1 talking false
        "#]],
    );
}

#[test]
fn phones_are_told_who_comes_and_goes_and_others_are_not() {
    check(
        "
            room notes
            ada dials
            out dials
            bob dials
            out gone
            bob gone
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                note to 1: {"title":"Board","level":"info","event":"roster","count":1,"members":[{"member":1,"name":"ada","role":"participant"}]}
            out dials
                mix 1 is told joined
                news 3: out joined as participant 2
                out joins mix 1, hears room
                note to 1: {"title":"+44304564 joined","level":"info","event":"member-join","member":2,"name":"+44304564","count":2}
            bob dials
                news 4: bob joined as participant 3
                bob joins mix 1, hears room
                note to 1: {"title":"bob joined","level":"info","event":"member-join","member":3,"name":"bob","count":3}
                note to 3: {"title":"Board","level":"info","event":"roster","count":3,"members":[{"member":1,"name":"ada","role":"participant"},{"member":2,"name":"+44304564","role":"participant"},{"member":3,"name":"bob","role":"participant"}]}
            out gone
                news 5: 2 left
                note to 1,3: {"title":"+44304564 left","level":"info","event":"member-leave","member":2,"name":"+44304564","count":2}
                mix 1 is told left
            bob gone
                news 6: 3 left
                note to 1: {"title":"bob left","level":"info","event":"member-leave","member":3,"name":"bob","count":1}
        "#]],
    );
}

#[test]
fn two_calls_become_a_room() {
    check(
        "
            room
            ada merges ada out
            out merges ada out
            ada gone
            out gone
        ",
        expect![[r#"
            ada merges ada out
                news 1: opened 
                news 2: merged by ada true
                news 3: ada joined as participant 1
                ada joins mix 1, hears room
            out merges ada out
                news 4: out joined as participant 2
                out joins mix 1, hears room
            ada gone
                news 5: 1 left
                out is told others-left
            out gone
                news 6: 2 left
                news 7: ended
        "#]],
    );
}

/// [`World`] checks that every note is shorter than 4 KB.
#[test]
fn the_roster_of_a_large_room_is_cut_and_says_how_many_there_are() {
    let mut room = plain();
    room.name = "\u{1f600}".repeat(200);
    let mut world = World::new(&[room], RoomsConfig::default(), 7);
    let mut come = |name: &str, shown: &str| {
        world.outputs.clear();
        let mut who = World::arrival(name, Goal::Room(ROOM));
        who.name = shown.to_owned();
        world.feed(Input::Arrived(who));
        let mut rosters = world.outputs.iter().filter_map(|output| match output {
            Output::Note(note) if note.payload["event"] == "roster" => Some(note.payload.clone()),
            _ => None,
        });
        rosters.next_back()
    };
    for number in 0..150 {
        assert_eq!(come(&format!("out{number}"), &"\u{e9}\"\u{7}".repeat(90)), None);
    }
    let roster = come("ada", "Ada").unwrap();
    assert_eq!(roster["count"], 151);
    let listed = roster["members"].as_array().unwrap();
    assert!((10..40).contains(&listed.len()), "{}", listed.len());
    assert_eq!(listed[0]["name"], "\u{e9}\"".repeat(32));
}

#[test]
fn a_phone_that_calls_again_takes_its_old_seat() {
    check(
        "room exempt=ada:moderator pin=1234 max=3
         ada dials on ada-desk
         bob dials
         bob keys 1234#
         mute 1
         lock
         ada is silent
         ada-again dials on ada-desk
         ada gone
         show
         ada-cell dials on ada-cell
         ada-again is silent
         ada-third dials on ada-third
         ada-third gone
         show",
        expect![[r#"
            ada dials on ada-desk
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 1, hears room
                ada is told alone
            bob dials
                bob joins mix 2, hears room
                bob is told enter-pin
            bob keys 1234#
                bob is told no more
                mix 1 is told joined
                news 3: bob joined as participant 2
                bob joins mix 1, hears room
            mute 1
                news 4: 1 muted true
                ada is muted
                ada is told muted
            lock
                news 5: locked true
                mix 1 is told locked
            ada is silent
            ada-again dials on ada-desk
                news 6: 1 left MEDIA_TIMEOUT
                news 7: ada-again joined as moderator 1
                news 8: 1 muted true
                ada hung up: MEDIA_TIMEOUT
                ada-again joins mix 1, muted, hears room
                ada-again is told muted
            ada gone
            show
                Board [locked] 0 s, revision 8: 1=+44748846 moderator muted; 2=bob participant;
            ada-cell dials on ada-cell
                news 9: ada-cell joined as moderator 3
                ada-cell joins mix 1, hears room
            ada-again is silent
            ada-third dials on ada-third
                ada-third joins mix 3, hears room
                ada-third is told full goodbye
            ada-third gone
            show
                Board [locked] 0 s, revision 9: 1=+44748846 moderator muted; 2=bob participant; 3=+4489260 moderator;
        "#]],
    );
}

#[test]
fn the_room_stays_with_the_moderator_who_calls_again() {
    check(
        "room exempt=ada:moderator waits ends
         ada dials on ada-desk
         cy dials
         ada is silent
         ada-again dials on ada-desk
         ada gone
         ada-again gone",
        expect![[r#"
            ada dials on ada-desk
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 1, hears room
                ada is told alone
            cy dials
                mix 1 is told joined
                news 3: cy joined as participant 2
                cy joins mix 1, hears room
            ada is silent
            ada-again dials on ada-desk
                news 4: 1 left MEDIA_TIMEOUT
                news 5: ada-again joined as moderator 1
                ada hung up: MEDIA_TIMEOUT
                ada-again joins mix 1, hears room
            ada gone
            ada-again gone
                news 6: 1 left
                cy is muted
                cy hears music
                news 7: 2 left
                cy is muted
                cy is told ended
                news 8: ended
        "#]],
    );
}

/// Many joins in a short time get one chime, and so do many leaves.
#[test]
fn joins_at_once_are_one_chime() {
    check(
        "room
         ada dials
         bob dials
         cy dials
         wait 2s
         dee dials
         bob gone
         cy gone",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            bob dials
                mix 1 is told joined
                news 3: bob joined as participant 2
                bob joins mix 1, hears room
            cy dials
                news 4: cy joined as participant 3
                cy joins mix 1, hears room
            wait 2s
            dee dials
                mix 1 is told joined
                news 5: dee joined as participant 4
                dee joins mix 1, hears room
            bob gone
                news 6: 2 left
                mix 1 is told left
            cy gone
                news 7: 3 left
        "#]],
    );
}
