//! Calls to default members: who is rung, how often, and the results.

use expect_test::expect;

use crate::conference::tests::script::check;

#[test]
fn default_members_are_rung_when_the_room_opens() {
    check(
        "
            room pin=1234 member=bob member=cy
            ada dials
            ada keys 1234#
            dial 1 rings
            bob answers 1
            dial 2 rings
            dial 2 ends declined
            ada gone
            bob gone
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
                news 3: invite bob pending
                news 4: invite cy pending
                dial 1 extension 102 participant as 200 Board
                dial 2 extension 103 participant as 200 Board
            dial 1 rings
                news 5: invite bob ringing
            bob answers 1
                mix 2 is told joined
                news 6: bob joined as participant 2
                bob joins mix 2, hears room
                news 7: invite bob joined
            dial 2 rings
                news 8: invite cy ringing
            dial 2 ends declined
                news 9: invite cy declined declined
            ada gone
                news 10: 1 left
                mix 2 is told left
            bob gone
                news 11: 2 left
                news 12: ended
        "#]],
    );
}

#[test]
fn who_opens_the_room_is_not_rung() {
    check(
        "
            room member=ada member=bob
            ada dials
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite ada joined
                news 4: invite bob pending
                dial 1 extension 102 participant as 200 Board
            show
                Board [] 0 s, revision 4: 1=ada participant;
        "#]],
    );
}

#[test]
fn a_default_member_that_is_exempt_sits_in_that_role() {
    check(
        "
            room pin=1234 mod=9876 exempt=bob:moderator member=bob
            ada dials
            ada keys 1234#
            bob answers 1
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
                news 3: invite bob pending
                dial 1 extension 102 moderator as 200 Board
            bob answers 1
                mix 2 is told joined
                news 4: bob joined as moderator 2
                bob joins mix 2, hears room
                news 5: invite bob joined
            show
                Board [] 0 s, revision 5: 1=ada participant; 2=bob moderator;
        "#]],
    );
}

#[test]
fn an_invite_ends_in_every_way() {
    check(
        "
            room member=ada member=bob member=cy member=dee
            out dials
            dial 1 ends unanswered
            dial 2 ends declined
            dial 3 ends 480
            dial 4 rings
            end
        ",
        expect![[r#"
            out dials
                news 1: opened Board
                news 2: out joined as participant 1
                out joins mix 1, hears room
                out is told alone
                news 3: invite ada pending
                news 4: invite bob pending
                news 5: invite cy pending
                news 6: invite dee pending
                dial 1 extension 101 participant as 200 Board
                dial 2 extension 102 participant as 200 Board
                dial 3 extension 103 participant as 200 Board
                dial 4 extension 104 participant as 200 Board
            dial 1 ends unanswered
                news 7: invite ada no_answer no_answer
            dial 2 ends declined
                news 8: invite bob declined declined
            dial 3 ends 480
                news 9: invite cy failed sip_480
            dial 4 rings
                news 10: invite dee ringing
            end
                news 11: 1 left
                out is muted
                out is told ended
                cancel dial 4
                news 12: invite dee cancelled room_ended
                news 13: ended
        "#]],
    );
}

#[test]
fn who_is_not_registered_is_rung_as_soon_as_they_are() {
    check(
        "
            room member=bob
            ada dials
            dial 1 ends unregistered
            wait 2s
            bob is free
            dial 2 rings
            bob answers 2
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 1 ends unregistered
                news 4: invite bob waiting unregistered
            wait 2s
            bob is free
                dial 2 extension 102 participant as 200 Board
            dial 2 rings
                news 5: invite bob ringing
            bob answers 2
                mix 1 is told joined
                news 6: bob joined as participant 2
                bob joins mix 1, hears room
                news 7: invite bob joined
        "#]],
    );
}

#[test]
fn who_is_not_registered_is_tried_every_five_seconds() {
    check(
        "
            room member=bob
            ada dials
            dial 1 ends unregistered
            wait 6s
            dial 2 ends unregistered
            wait 6s
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 1 ends unregistered
                news 4: invite bob waiting unregistered
            wait 6s
              after 5000 ms
                dial 2 extension 102 participant as 200 Board
            dial 2 ends unregistered
            wait 6s
              after 5000 ms
                dial 3 extension 102 participant as 200 Board
        "#]],
    );
}

#[test]
fn who_is_busy_is_rung_as_soon_as_they_are_free() {
    check(
        "
            room member=bob
            ada dials
            dial 1 ends busy
            wait 10s
            bob is free
            dial 2 rings
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 1 ends busy
                news 4: invite bob waiting busy
            wait 10s
            bob is free
                dial 2 extension 102 participant as 200 Board
            dial 2 rings
                news 5: invite bob ringing
        "#]],
    );
}

#[test]
fn who_is_busy_is_tried_every_half_minute() {
    check(
        "
            room member=bob
            ada dials
            dial 1 ends busy
            wait 40s
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 1 ends busy
                news 4: invite bob waiting busy
            wait 40s
              after 30000 ms
                dial 2 extension 102 participant as 200 Board
        "#]],
    );
}

/// Many phones answer 486 when their user rejects a call.
#[test]
fn a_phone_that_rang_is_left_alone_for_half_a_minute() {
    check(
        "
            room member=bob
            ada dials
            dial 1 rings
            wait 4s
            dial 1 ends busy
            bob is free
            wait 60s
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 1 rings
                news 4: invite bob ringing
            wait 4s
            dial 1 ends busy
                news 5: invite bob waiting busy
            bob is free
            wait 60s
              after 26000 ms
                dial 2 extension 102 participant as 200 Board
        "#]],
    );
}

#[test]
fn a_phone_that_says_busy_whenever_it_is_free_is_not_rung_without_end() {
    check(
        "
            room member=bob
            ada dials
            dial 1 ends busy
            bob is free
            wait 6s
            dial 2 ends busy
            bob is free
            wait 10s
            bob is free
            wait 30s
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 1 ends busy
                news 4: invite bob waiting busy
            bob is free
            wait 6s
              after 5000 ms
                dial 2 extension 102 participant as 200 Board
            dial 2 ends busy
            bob is free
            wait 10s
            bob is free
            wait 30s
              after 19000 ms
                dial 3 extension 102 participant as 200 Board
        "#]],
    );
}

#[test]
fn who_comes_by_themselves_is_rung_no_more() {
    check(
        "
            room member=bob member=cy
            ada dials
            dial 1 ends busy
            bob dials
            cy dials
            wait 60s
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                news 4: invite cy pending
                dial 1 extension 102 participant as 200 Board
                dial 2 extension 103 participant as 200 Board
            dial 1 ends busy
                news 5: invite bob waiting busy
            bob dials
                mix 1 is told joined
                news 6: bob joined as participant 2
                bob joins mix 1, hears room
                news 7: invite bob joined
            cy dials
                news 8: cy joined as participant 3
                cy joins mix 1, hears room
                cancel dial 2
                news 9: invite cy joined
            wait 60s
            show
                Board [] 60 s, revision 9: 1=ada participant; 2=bob participant; 3=cy participant;
        "#]],
    );
}

#[test]
fn a_locked_room_rings_again_when_it_is_unlocked() {
    check(
        "
            room member=bob
            ada dials
            dial 1 ends unregistered
            lock
            bob is free
            wait 12s
            unlock
            wait 6s
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                dial 1 extension 102 participant as 200 Board
            dial 1 ends unregistered
                news 4: invite bob waiting unregistered
            lock
                news 5: locked true
                mix 1 is told locked
            bob is free
            wait 12s
            unlock
                news 6: locked false
                mix 1 is told unlocked
            wait 6s
              after 3000 ms
                dial 2 extension 102 participant as 200 Board
        "#]],
    );
}

#[test]
fn invites_end_with_the_room() {
    check(
        "
            room member=bob member=cy
            ada dials
            dial 1 ends busy
            dial 2 rings
            ada gone
            wait 60s
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                news 4: invite cy pending
                dial 1 extension 102 participant as 200 Board
                dial 2 extension 103 participant as 200 Board
            dial 1 ends busy
                news 5: invite bob waiting busy
            dial 2 rings
                news 6: invite cy ringing
            ada gone
                news 7: 1 left
                cancel dial 2
                news 8: invite bob cancelled room_ended
                news 9: invite cy cancelled room_ended
                news 10: ended
            wait 60s
        "#]],
    );
}

#[test]
fn somebody_is_dialled_in() {
    check(
        "
            room pin=1234 mod=9876
            dial 101 moderator
            ada answers 1
            dial +442079460000 participant
            dial +442079460000 moderator
            far answers 2
            show
        ",
        expect![[r#"
            dial 101 moderator
                = 101
                dial 1 extension 101 moderator as 200 Board
            ada answers 1
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 1, hears room
                ada is told alone
            dial +442079460000 participant
                = +442079460000
                dial 2 external +442079460000 participant as 200 Board
            dial +442079460000 moderator
                = +442079460000
            far answers 2
                mix 1 is told joined
                news 3: far joined as moderator 2
                far joins mix 1, hears room
            show
                Board [] 0 s, revision 3: 1=ada moderator; 2=+44709618 moderator;
        "#]],
    );
}

#[test]
fn nobody_is_dialled_into_a_locked_room_but_moderators() {
    check(
        "
            room
            ada dials
            lock
            dial 102 participant
            dial 102 moderator
            bob answers 1
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
            dial 102 participant
                = the room is locked: unlock it, or dial a moderator
            dial 102 moderator
                = 102
                dial 1 extension 102 moderator as 200 Board
            bob answers 1
                mix 1 is told joined
                news 4: bob joined as moderator 2
                bob joins mix 1, hears room
        "#]],
    );
}

#[test]
fn who_is_dialled_in_and_fails_is_forgotten() {
    check(
        "
            room
            dial 101 participant
            dial 1 ends busy
            wait 60s
            no room
            dial 101 participant
        ",
        expect![[r#"
            dial 101 participant
                = 101
                dial 1 extension 101 participant as 200 Board
            dial 1 ends busy
                101 does not join: busy
            wait 60s
            no room
            dial 101 participant
                = there is no such room
        "#]],
    );
}

#[test]
fn an_extension_that_is_in_the_room_is_not_dialled() {
    check(
        "room
         ada dials
         dial 101 participant
         dial 102 participant",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            dial 101 participant
                = extension 101 is in the room already
            dial 102 participant
                = 102
                dial 1 extension 102 participant as 200 Board
        "#]],
    );
}

#[test]
fn a_phone_that_stops_ringing_by_itself_did_not_answer() {
    check(
        "room member=bob member=cy
         ada dials
         dial 1 rings
         dial 1 ends 480
         dial 2 ends 480",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
                news 3: invite bob pending
                news 4: invite cy pending
                dial 1 extension 102 participant as 200 Board
                dial 2 extension 103 participant as 200 Board
            dial 1 rings
                news 5: invite bob ringing
            dial 1 ends 480
                news 6: invite bob no_answer no_answer
            dial 2 ends 480
                news 7: invite cy failed sip_480
        "#]],
    );
}
