//! Parties that clients dial into a room and that do not join: each is reported.

use expect_test::expect;

use crate::conference::tests::script::{check, run};

/// A party that a client dialled is reported once, with the cause.
#[test]
fn a_dialled_party_that_does_not_join_is_reported() {
    for (end, cause) in [
        ("busy", "busy"),
        ("declined", "declined"),
        ("unanswered", "no_answer"),
        ("unregistered", "unregistered"),
        ("503", "failed 503"),
    ] {
        let text = run(&format!("room\ndial 101 participant\ndial 1 ends {end}\nwait 60s"));
        assert!(text.ends_with(&format!("    101 does not join: {cause}\nwait 60s\n")), "{text}");
    }
    check(
        "room max=1
         dial 101 participant
         dial 1 rings
         dial 1 ends 480
         dial 102 participant
         ada dials
         bob answers 2
         dial 103 participant",
        expect![[r#"
            dial 101 participant
                = 101
                dial 1 extension 101 participant as 200 Board
            dial 1 rings
            dial 1 ends 480
                101 does not join: no_answer
            dial 102 participant
                = 102
                dial 2 extension 102 participant as 200 Board
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            bob answers 2
                102 does not join: refused
                bob joins mix 2, hears room
                bob is told full goodbye
            dial 103 participant
                = the room is full: it holds max_members already
        "#]],
    );
}

/// A second dial of an extension rings no phone while the first rings or once the extension is seated.
#[test]
fn an_extension_is_called_once_at_a_time() {
    check(
        "room member=bob
         dial 102 moderator
         ada dials
         dial 1 rings
         dial 1 ends busy
         dial 103 participant
         cy dials",
        expect![[r#"
            dial 102 moderator
                = 102
                dial 1 extension 102 moderator as 200 Board
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
            dial 1 rings
                news 4: invite bob ringing
            dial 1 ends busy
                102 does not join: busy
                news 5: invite bob waiting busy
            dial 103 participant
                = 103
                dial 2 extension 103 participant as 200 Board
            cy dials
                mix 1 is told joined
                news 6: cy joined as participant 2
                cy joins mix 1, hears room
                cancel dial 2
                103 does not join: cancelled
        "#]],
    );
}

/// A room that is ended cancels the calls that clients requested, and reports them.
#[test]
fn calls_that_end_with_the_room_are_reported() {
    check(
        "room
         ada dials
         dial 102 participant
         dial 103 participant confirm
         cy answers 2
         end",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            dial 102 participant
                = 102
                dial 1 extension 102 participant as 200 Board
            dial 103 participant confirm
                = 103
                dial 2 extension 103 participant as 200 Board
            cy answers 2
                cy joins mix 2, hears room
                cy is told confirm-join
            end
                news 3: 1 left
                ada is muted
                ada is told ended
                cancel dial 1
                102 does not join: cancelled
                103 does not join: cancelled
                cy is told no more
                cy is told ended
                news 4: ended
        "#]],
    );
}
