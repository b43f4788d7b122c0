//! Entry to rooms: every row of the table of admissions and refusals.

use expect_test::expect;

use crate::conference::tests::script::check;

#[test]
fn a_room_without_a_pin_is_walked_into() {
    check(
        "
            room
            ada dials
            bob dials
            show
            ada gone
            bob gone
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
            show
                Board [] 0 s, revision 3: 1=ada participant; 2=bob participant;
            ada gone
                news 4: 1 left
                mix 1 is told left
            bob gone
                news 5: 2 left
                news 6: ended
            show
                nobody
        "#]],
    );
}

#[test]
fn a_pin_decides_the_role() {
    check(
        "
            room pin=1234 mod=9876
            bob dials
            bob heard
            bob keys 1234#
            ada dials
            ada keys 9876#
            show
        ",
        expect![[r#"
            bob dials
                bob joins mix 1, hears room
                bob is told enter-pin
            bob heard
            bob keys 1234#
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 2, hears room
                bob is told alone
            ada dials
                ada joins mix 3, hears room
                ada is told enter-pin
            ada keys 9876#
                ada is told no more
                mix 2 is told joined
                news 3: ada joined as moderator 2
                ada joins mix 2, hears room
            show
                Board [] 0 s, revision 3: 1=bob participant; 2=ada moderator;
        "#]],
    );
}

#[test]
fn a_pin_ends_with_a_pause_too_and_may_be_keyed_over_the_prompt() {
    check(
        "
            room pin=1234
            bob dials
            bob keys 12
            wait 2s
            bob keys 34
            wait 4s
        ",
        expect![[r#"
            bob dials
                bob joins mix 1, hears room
                bob is told enter-pin
            bob keys 12
                bob is told no more
            wait 2s
            bob keys 34
            wait 4s
              after 3000 ms
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 2, hears room
                bob is told alone
        "#]],
    );
}

#[test]
fn a_star_begins_the_pin_anew() {
    check(
        "
            room pin=1234
            bob dials
            bob keys 99*1234#
        ",
        expect![[r#"
            bob dials
                bob joins mix 1, hears room
                bob is told enter-pin
            bob keys 99*1234#
                bob is told no more
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 2, hears room
                bob is told alone
        "#]],
    );
}

#[test]
fn three_wrong_pins_and_the_call_is_over() {
    check(
        "
            room pin=1234
            out dials
            out keys 1111#
            out keys 2222
            wait 3s
            out keys 123456789012345678901234#
            out keys 1234#
            out heard
            out gone
        ",
        expect![[r#"
            out dials
                out joins mix 1, hears room
                out is told enter-pin
            out keys 1111#
                out is told no more
                out is told wrong-pin enter-pin
            out keys 2222
                out is told no more
            wait 3s
              after 3000 ms
                out is told wrong-pin enter-pin
            out keys 123456789012345678901234#
                out is told no more
                out is told goodbye
            out keys 1234#
            out heard
                out hung up: CALL_REJECTED
            out gone
        "#]],
    );
}

#[test]
fn who_hears_no_goodbye_to_its_end_is_hung_up_all_the_same() {
    check(
        "
            room pin=1234
            out dials
            out keys 1#
            out keys 1#
            out keys 1#
            wait 11s
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
            wait 11s
              after 10000 ms
                out hung up: CALL_REJECTED
        "#]],
    );
}

#[test]
fn who_keys_nothing_is_asked_again_and_hung_up_after_a_minute() {
    check(
        "
            room pin=1234
            out dials
            wait 5s
            out heard
            wait 55s
            out heard
        ",
        expect![[r#"
            out dials
                out joins mix 1, hears room
                out is told enter-pin
            wait 5s
            out heard
            wait 55s
              after 10000 ms
                out is told enter-pin
              after 55000 ms
                out is told no more
                out is told goodbye
            out heard
                out hung up
        "#]],
    );
}

#[test]
fn who_keys_on_and_on_is_hung_up_after_five_minutes() {
    check(
        "
            room pin=1234
            out dials
            out keys 1*
            wait 50s
            out keys 1*
            wait 50s
            out keys 1*
            wait 50s
            out keys 1*
            wait 50s
            out keys 1*
            wait 50s
            out keys 1*
            wait 51s
        ",
        expect![[r#"
            out dials
                out joins mix 1, hears room
                out is told enter-pin
            out keys 1*
                out is told no more
            wait 50s
              after 10000 ms
                out is told enter-pin
            out keys 1*
                out is told no more
            wait 50s
              after 10000 ms
                out is told enter-pin
            out keys 1*
                out is told no more
            wait 50s
              after 10000 ms
                out is told enter-pin
            out keys 1*
                out is told no more
            wait 50s
              after 10000 ms
                out is told enter-pin
            out keys 1*
                out is told no more
            wait 50s
              after 10000 ms
                out is told enter-pin
            out keys 1*
                out is told no more
            wait 51s
              after 10000 ms
                out is told enter-pin
              after 50000 ms
                out is told no more
                out is told goodbye
        "#]],
    );
}

#[test]
fn who_hangs_up_at_the_prompt_is_forgotten() {
    check(
        "
            room pin=1234
            out dials
            out gone
            wait 400s
            show
        ",
        expect![[r#"
            out dials
                out joins mix 1, hears room
                out is told enter-pin
            out gone
            wait 400s
            show
                nobody
        "#]],
    );
}

#[test]
fn the_room_number_is_asked_first() {
    check(
        "
            room pin=1234 mod=9876
            out asks
            out keys 200#
            out keys 9876#
            show
        ",
        expect![[r#"
            out asks
                out joins mix 1, hears room
                out is told enter-room
            out keys 200#
                out is told no more
                out is told enter-pin
            out keys 9876#
                out is told no more
                news 1: opened Board
                news 2: out joined as moderator 1
                out joins mix 2, hears room
                out is told alone
            show
                Board [] 0 s, revision 2: 1=+44304564 moderator;
        "#]],
    );
}

#[test]
fn an_unknown_room_number_is_asked_again_three_times() {
    check(
        "
            room pin=1234
            out asks
            out keys 999#
            out heard
            out keys 20
            wait 3s
            out keys 201#
            out heard
        ",
        expect![[r#"
            out asks
                out joins mix 1, hears room
                out is told enter-room
            out keys 999#
                out is told no more
                out is told no-such-room enter-room
            out heard
            out keys 20
            wait 3s
              after 3000 ms
                out is told no-such-room enter-room
            out keys 201#
                out is told no more
                out is told no-such-room goodbye
            out heard
                out hung up: UNALLOCATED_NUMBER
        "#]],
    );
}

#[test]
fn a_number_without_a_pin_leads_straight_in() {
    check(
        "
            room
            out asks
            out keys 200#
        ",
        expect![[r#"
            out asks
                out joins mix 1, hears room
                out is told enter-room
            out keys 200#
                out is told no more
                news 1: opened Board
                news 2: out joined as participant 1
                out joins mix 2, hears room
                out is told alone
        "#]],
    );
}

#[test]
fn an_exempt_extension_is_seated_in_its_role() {
    check(
        "
            room pin=1234 mod=9876 exempt=ada:moderator exempt=bob:participant
            ada dials
            bob dials
            cy dials
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 1, hears room
                ada is told alone
            bob dials
                mix 1 is told joined
                news 3: bob joined as participant 2
                bob joins mix 1, hears room
            cy dials
                cy joins mix 2, hears room
                cy is told enter-pin
            show
                Board [] 0 s, revision 3: 1=ada moderator; 2=bob participant;
        "#]],
    );
}

#[test]
fn an_exempt_extension_asked_for_the_number_needs_no_pin_either() {
    check(
        "
            room pin=1234 exempt=ada:participant
            ada asks
            ada keys 200#
        ",
        expect![[r#"
            ada asks
                ada joins mix 1, hears room
                ada is told enter-room
            ada keys 200#
                ada is told no more
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 2, hears room
                ada is told alone
        "#]],
    );
}

/// Exempt participants are also refused.
#[test]
fn a_locked_room_takes_moderators_alone() {
    check(
        "
            room pin=1234 mod=9876 exempt=ada:moderator exempt=bob:participant
            ada dials
            lock
            bob dials
            bob heard
            cy dials
            cy keys 1234#
            cy heard
            out dials
            out keys 9876#
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as moderator 1
                ada joins mix 1, hears room
                ada is told alone
            lock
                news 3: locked true
                mix 1 is told locked
            bob dials
                bob joins mix 2, hears room
                bob is told locked goodbye
            bob heard
                bob hung up
            cy dials
                cy joins mix 3, hears room
                cy is told enter-pin
            cy keys 1234#
                cy is told no more
                cy is told locked goodbye
            cy heard
                cy hung up
            out dials
                out joins mix 4, hears room
                out is told enter-pin
            out keys 9876#
                out is told no more
                mix 1 is told joined
                news 4: out joined as moderator 2
                out joins mix 1, hears room
            show
                Board [locked] 0 s, revision 4: 1=ada moderator; 2=+44304564 moderator;
        "#]],
    );
}

#[test]
fn a_full_room_takes_nobody() {
    check(
        "
            room pin=1234 mod=9876 max=2
            ada dials
            ada keys 1234#
            bob dials
            bob keys 1234#
            cy dials
            cy keys 9876#
            cy heard
            dial 104 moderator
            dial +442079460000 participant
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
            bob keys 1234#
                bob is told no more
                mix 2 is told joined
                news 3: bob joined as participant 2
                bob joins mix 2, hears room
            cy dials
                cy joins mix 4, hears room
                cy is told enter-pin
            cy keys 9876#
                cy is told no more
                cy is told full goodbye
            cy heard
                cy hung up
            dial 104 moderator
                = the room is full: it holds max_members already
            dial +442079460000 participant
                = the room is full: it holds max_members already
        "#]],
    );
}
