//! A moderator PIN keyed in the room, and rooms whose stored settings change while parties enter.

use expect_test::expect;

use crate::conference::tests::script::check;

/// The room asks participants for no PIN.
#[test]
fn a_pin_keyed_in_the_room_makes_a_moderator() {
    check(
        "
            room mod=9876 waits
            bob dials
            bob keys 1111#
            bob keys 9876#
            show
        ",
        expect![[r#"
            bob dials
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 1, muted, hears music
                bob is told wait-for-moderator
            bob keys 1111#
                bob is told wrong-pin
            bob keys 9876#
                news 3: 1 left
                news 4: bob joined as moderator 2
                bob is heard
                bob hears room
            show
                Board [] 0 s, revision 4: 2=bob moderator;
        "#]],
    );
}

#[test]
fn a_pin_in_the_room_may_be_tried_three_times() {
    check(
        "
            room mod=9876
            bob dials
            bob keys 1#
            bob keys 2#
            bob keys 3#
            bob keys 9876#
            show
        ",
        expect![[r#"
            bob dials
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 1, hears room
                bob is told alone
            bob keys 1#
                bob is told wrong-pin
            bob keys 2#
                bob is told wrong-pin
            bob keys 3#
                bob is told wrong-pin
            bob keys 9876#
            show
                Board [] 0 s, revision 2: 1=bob participant;
        "#]],
    );
}

#[test]
fn who_was_asked_for_a_pin_keys_no_other_in_the_room() {
    check(
        "
            room pin=1234 mod=9876
            bob dials
            bob keys 1234#
            bob keys 9876#
            show
        ",
        expect![[r#"
            bob dials
                bob joins mix 1, hears room
                bob is told enter-pin
            bob keys 1234#
                bob is told no more
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 2, hears room
                bob is told alone
            bob keys 9876#
            show
                Board [] 0 s, revision 2: 1=bob participant;
        "#]],
    );
}

#[test]
fn who_mutes_themselves_stays_so_as_moderator() {
    check(
        "
            room mod=9876
            bob dials
            bob keys *1
            bob keys 9876#
            show
        ",
        expect![[r#"
            bob dials
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 1, hears room
                bob is told alone
            bob keys *1
                news 3: 1 muted true
                bob is muted
                bob is told muted
            bob keys 9876#
                news 4: 1 left
                news 5: bob joined as moderator 2
                news 6: 2 muted true
            show
                Board [] 0 s, revision 6: 2=bob moderator muted;
        "#]],
    );
}

#[test]
fn pins_that_changed_count_for_who_comes_later() {
    check(
        "
            room pin=1234
            ada dials
            ada keys 1234#
            bob dials
            room pin=4321 max=2
            bob keys 1234#
            bob keys 4321#
            cy dials
            cy keys 4321#
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
            room pin=4321 max=2
            bob keys 1234#
                bob is told no more
                bob is told wrong-pin enter-pin
            bob keys 4321#
                bob is told no more
                mix 2 is told joined
                news 3: bob joined as participant 2
                bob joins mix 2, hears room
            cy dials
                cy joins mix 4, hears room
                cy is told enter-pin
            cy keys 4321#
                cy is told no more
                cy is told full goodbye
            show
                Board [] 0 s, revision 3: 1=ada participant; 2=bob participant;
        "#]],
    );
}

#[test]
fn a_room_that_is_deleted_takes_nobody() {
    check(
        "
            room pin=1234
            ada dials
            no room
            ada keys 1234#
            ada heard
            bob dials
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                ada is told enter-pin
            no room
            ada keys 1234#
                ada is told no more
                ada is told no-such-room goodbye
            ada heard
                ada hung up: UNALLOCATED_NUMBER
            bob dials
                bob joins mix 2, hears room
                bob is told no-such-room goodbye
        "#]],
    );
}
