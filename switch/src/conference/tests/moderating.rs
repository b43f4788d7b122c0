//! Commands reserved for moderators, and rooms that depend on a moderator.

use expect_test::expect;

use crate::conference::tests::script::check;

#[test]
fn mute_all_excepts_moderators_and_holds_for_who_comes() {
    check(
        "
            room pin=1234 mod=9876
            ada dials
            ada keys 9876#
            bob dials
            bob keys 1234#
            cy dials
            cy keys 1234#
            mute 2
            mute-all
            dee dials
            dee keys 1234#
            show
            mute-all
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
            cy dials
                cy joins mix 4, hears room
                cy is told enter-pin
            cy keys 1234#
                cy is told no more
                news 4: cy joined as participant 3
                cy joins mix 2, hears room
            mute 2
                news 5: 2 muted true
                bob is muted
                bob is told muted
            mute-all
                = AllMuted(true)
                news 6: all muted true
                cy is muted
                mix 2 is told all-muted
            dee dials
                dee joins mix 5, hears room
                dee is told enter-pin
            dee keys 1234#
                dee is told no more
                news 7: dee joined as participant 4
                dee joins mix 2, muted, hears room
                dee is told all-muted
            show
                Board [all-muted] 0 s, revision 7: 1=ada moderator; 2=bob participant muted; 3=cy participant muted; 4=dee participant muted;
            mute-all
                = AllMuted(false)
                news 8: all muted false
                cy is heard
                dee is heard
                mix 2 is told all-unmuted
            show
                Board [] 0 s, revision 8: 1=ada moderator; 2=bob participant muted; 3=cy participant; 4=dee participant;
        "#]],
    );
}

#[test]
fn every_key_of_the_table_by_a_moderator() {
    check(
        "
            room pin=1234 mod=9876
            ada dials
            ada keys 9876#
            bob dials
            bob keys 1234#
            ada keys *1
            ada keys *2
            ada keys *5
            ada keys *5
            ada keys *7
            ada keys *7
            ada keys *0
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
            ada keys *1
                news 4: 1 muted true
                ada is muted
                ada is told muted
            ada keys *2
                news 5: 1 muted false
                ada is heard
                ada is told unmuted
            ada keys *5
                news 6: locked true
                mix 2 is told locked
            ada keys *5
                news 7: locked false
                mix 2 is told unlocked
            ada keys *7
                news 8: all muted true
                bob is muted
                mix 2 is told all-muted
            ada keys *7
                news 9: all muted false
                bob is heard
                mix 2 is told all-unmuted
            ada keys *0
                news 10: 1 left
                ada is muted
                ada is told ended
                news 11: 2 left
                bob is muted
                bob is told ended
                news 12: ended
        "#]],
    );
}

#[test]
fn every_key_of_the_table_by_a_participant() {
    check(
        "
            room pin=1234 mod=9876
            bob dials
            bob keys 1234#
            bob keys *1
            bob keys *1
            bob keys *2
            bob keys *5
            bob keys *7
            bob keys *0
            bob keys *
            wait 4s
            bob keys 1
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
            bob keys *1
                news 3: 1 muted true
                bob is muted
                bob is told muted
            bob keys *1
                bob is told muted
            bob keys *2
                news 4: 1 muted false
                bob is heard
                bob is told unmuted
            bob keys *5
            bob keys *7
            bob keys *0
            bob keys *
            wait 4s
            bob keys 1
            show
                Board [] 4 s, revision 4: 1=bob participant;
        "#]],
    );
}

#[test]
fn participants_wait_for_the_moderator() {
    check(
        "
            room pin=1234 mod=9876 waits
            bob dials
            bob keys 1234#
            bob talks
            out dials
            out keys 1234#
            ada dials
            ada keys 9876#
            bob talks
            show
            ada gone
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
                bob joins mix 2, muted, hears music
                bob is told wait-for-moderator
            bob talks
            out dials
                out joins mix 3, hears room
                out is told enter-pin
            out keys 1234#
                out is told no more
                news 3: out joined as participant 2
                out joins mix 2, muted, hears music
                out is told wait-for-moderator
            ada dials
                ada joins mix 4, hears room
                ada is told enter-pin
            ada keys 9876#
                ada is told no more
                news 4: ada joined as moderator 3
                ada joins mix 2, hears room
                bob is heard
                bob hears room
                out is heard
                out hears room
            bob talks
                news 5: 1 talking true
            show
                Board [] 0 s, revision 5: 1=bob participant talking; 2=+44304564 participant; 3=ada moderator;
            ada gone
                news 6: 3 left
                bob is muted
                bob hears music
                out is muted
                out hears music
                news 7: 1 talking false
                bob is told wait-for-moderator
                out is told wait-for-moderator
            show
                Board [] 0 s, revision 7: 1=bob participant waiting; 2=+44304564 participant waiting;
        "#]],
    );
}

#[test]
fn a_room_ends_with_its_last_moderator() {
    check(
        "
            room pin=1234 mod=9876 ends
            bob dials
            bob keys 1234#
            ada dials
            ada keys 9876#
            cy dials
            cy keys 9876#
            ada gone
            cy gone
            bob heard
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
            ada dials
                ada joins mix 3, hears room
                ada is told enter-pin
            ada keys 9876#
                ada is told no more
                mix 2 is told joined
                news 3: ada joined as moderator 2
                ada joins mix 2, hears room
            cy dials
                cy joins mix 4, hears room
                cy is told enter-pin
            cy keys 9876#
                cy is told no more
                news 4: cy joined as moderator 3
                cy joins mix 2, hears room
            ada gone
                news 5: 2 left
                mix 2 is told left
            cy gone
                news 6: 3 left
                news 7: 1 left
                bob is muted
                bob is told ended
                news 8: ended
            bob heard
                bob hung up
            show
                nobody
        "#]],
    );
}
