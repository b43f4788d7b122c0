//! Two events at the same time, in either order.

use expect_test::expect;

use crate::conference::tests::script::check;

/// The member who joins is in a new session.
#[test]
fn the_last_member_leaves_while_one_joins() {
    check(
        "
            room pin=1234
            ada dials
            ada keys 1234#
            bob dials
            bob keys 123
            ada gone
            bob keys 4#
            show
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                ada is told enter-pin
            ada keys 1234#
                ada is told no more
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 2, hears room
                ada is told alone
            bob dials
                bob joins mix 3, hears room
                bob is told enter-pin
            bob keys 123
                bob is told no more
            ada gone
                news 3: 1 left
                news 4: ended
            bob keys 4#
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 4, hears room
                bob is told alone
            show
                Board [] 0 s, revision 2: 1=bob participant;
        "#]],
    );
}

#[test]
fn a_room_is_locked_while_one_is_at_the_prompt() {
    check(
        "
            room pin=1234 mod=9876
            ada dials
            ada keys 9876#
            bob dials
            bob keys 12
            cy dials
            cy keys 98
            lock
            bob keys 34#
            cy keys 76#
            bob gone
            show
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                ada is told enter-pin
            ada keys 9876#
                ada is told no more
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 2, hears room
                ada is told alone
            bob dials
                bob joins mix 3, hears room
                bob is told enter-pin
            bob keys 12
                bob is told no more
            cy dials
                cy joins mix 4, hears room
                cy is told enter-pin
            cy keys 98
                cy is told no more
            lock
                news 3: locked true
                mix 2 is told locked
            bob keys 34#
                bob is told locked goodbye
            cy keys 76#
                mix 2 is told joined
                news 4: cy joined as moderator 2
                cy joins mix 2, hears room
            bob gone
            show
                Board [locked] 0 s, revision 4: 1=ada moderator; 2=cy moderator;
        "#]],
    );
}

#[test]
fn a_room_is_ended_while_its_recording_stops() {
    check(
        "
            room
            ada dials
            record on
            record off
            end
            recorded 4444
            recorded 4444
            ada heard
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
            end
                news 5: 1 left
                ada is muted
                ada is told ended
                news 6: ended
            recorded 4444
                news 7: recorded 4444 None
            recorded 4444
            ada heard
                ada hung up
        "#]],
    );
}

#[test]
fn a_recording_that_is_never_told_to_have_ended_is_forgotten() {
    check(
        "
            room record
            ada dials
            ada gone
            wait 301s
            recorded 10
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
            wait 301s
            recorded 10
        "#]],
    );
}

#[test]
fn a_moderator_leaves_while_another_joins() {
    check(
        "
            room pin=1234 mod=9876 ends
            ada dials
            ada keys 9876#
            bob dials
            bob keys 9876
            ada gone
            bob keys #
            show
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                ada is told enter-pin
            ada keys 9876#
                ada is told no more
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 2, hears room
                ada is told alone
            bob dials
                bob joins mix 3, hears room
                bob is told enter-pin
            bob keys 9876
                bob is told no more
            ada gone
                news 3: 1 left
                news 4: ended
            bob keys #
                news 1: opened Board
                news 2: bob joined as moderator 1
                bob joins mix 4, hears room
                bob is told alone
            show
                Board [] 0 s, revision 2: 1=bob moderator;
        "#]],
    );
}

#[test]
fn another_joins_before_the_moderator_leaves() {
    check(
        "
            room pin=1234 mod=9876 ends
            ada dials
            ada keys 9876#
            bob dials
            bob keys 9876#
            ada gone
            show
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                ada is told enter-pin
            ada keys 9876#
                ada is told no more
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 2, hears room
                ada is told alone
            bob dials
                bob joins mix 3, hears room
                bob is told enter-pin
            bob keys 9876#
                bob is told no more
                mix 2 is told joined
                news 3: bob joined as moderator 2
                bob joins mix 2, hears room
            ada gone
                news 4: 1 left
                mix 2 is told left
            show
                Board [] 0 s, revision 4: 2=bob moderator;
        "#]],
    );
}

#[test]
fn somebody_is_kicked_who_hangs_up() {
    check(
        "
            room
            ada dials
            bob dials
            bob gone
            kick 2
            cy dials
            kick 3
            cy gone
            cy keys *1
            cy talks
            show
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
            bob gone
                news 4: 2 left
                mix 1 is told left
            kick 2
                = there is no such member in the room
            cy dials
                news 5: cy joined as participant 3
                cy joins mix 1, hears room
            kick 3
                cy joins mix 2, muted, hears room
                cy is told kicked
                news 6: 3 left
            cy gone
            cy keys *1
            cy talks
            show
                Board [] 0 s, revision 6: 1=ada participant;
        "#]],
    );
}

/// A target that was dialled in opens the room again; a default member does not.
#[test]
fn a_call_of_ours_is_answered_after_the_room_ran_empty() {
    check(
        "
            room member=bob
            ada dials
            dial 103 participant
            ada gone
            bob answers 1
            cy answers 2
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 103 participant
                = 103
                dial 2 extension 103 participant as 200 Board
            ada gone
                news 4: 1 left
                cancel dial 1
                news 5: invite bob cancelled room_ended
                news 6: ended
            bob answers 1
                bob hung up
            cy answers 2
                news 1: opened Board
                news 2: cy joined as participant 1
                cy joins mix 2, hears room
                cy is told alone
                news 3: invite bob pending
                dial 3 extension 102 participant as 200 Board
            show
                Board [] 0 s, revision 3: 1=cy participant;
        "#]],
    );
}

#[test]
fn a_call_of_ours_is_answered_after_the_room_was_ended() {
    check(
        "
            room
            ada dials
            dial 103 participant
            end
            cy answers 1
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            dial 103 participant
                = 103
                dial 1 extension 103 participant as 200 Board
            end
                news 3: 1 left
                ada is muted
                ada is told ended
                cancel dial 1
                103 does not join: cancelled
                news 4: ended
            cy answers 1
                cy hung up
            show
                nobody
        "#]],
    );
}

#[test]
fn a_call_of_ours_is_answered_after_the_room_was_deleted() {
    check(
        "
            room
            dial 103 participant
            no room
            cy answers 1
            cy heard
        ",
        expect![[r#"
            dial 103 participant
                = 103
                dial 1 extension 103 participant as 200 Board
            no room
            cy answers 1
                103 does not join: refused
                cy joins mix 1, hears room
                cy is told no-such-room goodbye
            cy heard
                cy hung up
        "#]],
    );
}

#[test]
fn a_call_of_ours_is_answered_after_the_room_was_locked() {
    check(
        "
            room member=bob
            ada dials
            dial 103 moderator
            lock
            bob answers 1
            cy answers 2
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 103 moderator
                = 103
                dial 2 extension 103 moderator as 200 Board
            lock
                news 4: locked true
                mix 1 is told locked
            bob answers 1
                bob joins mix 2, hears room
                bob is told locked goodbye
                news 5: invite bob failed
            cy answers 2
                mix 1 is told joined
                news 6: cy joined as moderator 2
                cy joins mix 1, hears room
            show
                Board [locked] 0 s, revision 6: 1=ada participant; 2=cy moderator;
        "#]],
    );
}

#[test]
fn a_caller_is_gone_while_the_verdict_is_said() {
    check(
        "
            room pin=1234
            out dials
            out keys 1#
            out keys 1#
            out keys 1#
            out gone
            wait 60s
        ",
        expect![[r#"
            out dials
                out joins mix 1, hears room
                out is told enter-pin
            out keys 1#
                out is told no more
                out is told wrong-pin enter-pin
            out keys 1#
                out is told no more
                out is told wrong-pin enter-pin
            out keys 1#
                out is told no more
                out is told goodbye
            out gone
            wait 60s
        "#]],
    );
}

#[test]
fn the_moderator_ends_the_room_by_its_last_key_and_hangs_up() {
    check(
        "
            room pin=1234 mod=9876
            ada dials
            ada keys 9876#
            bob dials
            bob keys 1234#
            ada keys *0
            ada gone
            bob gone
            wait 60s
            show
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                ada is told enter-pin
            ada keys 9876#
                ada is told no more
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 2, hears room
                ada is told alone
            bob dials
                bob joins mix 3, hears room
                bob is told enter-pin
            bob keys 1234#
                bob is told no more
                mix 2 is told joined
                news 3: bob joined as participant 2
                bob joins mix 2, hears room
            ada keys *0
                news 4: 1 left
                ada is muted
                ada is told ended
                news 5: 2 left
                bob is muted
                bob is told ended
                news 6: ended
            ada gone
            bob gone
            wait 60s
            show
                nobody
        "#]],
    );
}
