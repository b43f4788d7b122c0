//! Controls of one member: loudness, deafness, hold, a mute that the member cannot end, a whisper.

use expect_test::expect;

use crate::conference::tests::script::check;

#[test]
fn a_gain_is_set_changed_and_bounded() {
    check(
        "
            room
            ada dials
            bob dials
            gain 1 6
            gain 1 6
            gain 1 auto
            gain 1 99
            gain 7 0
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
            gain 1 6
                news 4: 1 gain 6 dB
                ada has a gain of 6 dB
            gain 1 6
            gain 1 auto
                news 5: 1 gain 6 dB, automatic
                ada has a gain of 6 dB, automatic
            gain 1 99
                news 6: 1 gain 24 dB, automatic
                ada has a gain of 24 dB, automatic
            gain 7 0
                = there is no such member in the room
            show
                Board [] 0 s, revision 6: 1=ada participant gain 24 dB, automatic; 2=bob participant;
        "#]],
    );
}

#[test]
fn a_deaf_member_hears_nothing_and_is_heard() {
    check(
        "
            room
            ada dials
            bob dials
            deaf 2 on
            deaf 2 on
            bob talks
            bob keys *1
            show
            deaf 2 off
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
            deaf 2 on
                news 4: 2 deaf true
                bob hears nothing
            deaf 2 on
            bob talks
                news 5: 2 talking true
            bob keys *1
                news 6: 2 muted true
                news 7: 2 talking false
                bob is muted
                bob is told muted
            show
                Board [] 0 s, revision 7: 1=ada participant; 2=bob participant muted deaf;
            deaf 2 off
                news 8: 2 deaf false
                bob hears room
        "#]],
    );
}

#[test]
fn a_locked_mute_is_not_ended_by_the_member() {
    check(
        "
            room pin=1234 mod=9876
            bob dials
            bob keys 1234#
            mute-locked 1
            mute-locked 1
            bob keys *2
            mute-all
            mute-all
            show
            unmute 1
            bob keys *1
            bob keys *2
            mute-all
            mute-locked 1
            mute-all
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
            mute-locked 1
                news 3: 1 muted true
                bob is muted
                bob is told muted
                news 4: 1 mute locked true
            mute-locked 1
            bob keys *2
                bob is told muted
            mute-all
                = AllMuted(true)
                news 5: all muted true
                mix 2 is told all-muted
            mute-all
                = AllMuted(false)
                news 6: all muted false
                mix 2 is told all-unmuted
            show
                Board [] 0 s, revision 6: 1=bob participant muted mute-locked;
            unmute 1
                news 7: 1 muted false
                news 8: 1 mute locked false
                bob is heard
                bob is told unmuted
            bob keys *1
                news 9: 1 muted true
                bob is muted
                bob is told muted
            bob keys *2
                news 10: 1 muted false
                bob is heard
                bob is told unmuted
            mute-all
                = AllMuted(true)
                news 11: all muted true
                bob is muted
                mix 2 is told all-muted
            mute-locked 1
                news 12: 1 mute locked true
            mute-all
                = AllMuted(false)
                news 13: all muted false
                mix 2 is told all-unmuted
            show
                Board [] 0 s, revision 13: 1=bob participant muted mute-locked;
        "#]],
    );
}

#[test]
fn the_lock_is_for_participants() {
    check(
        "
            room mod=9876
            bob dials
            mute-locked 1
            bob keys 9876#
            show
            bob keys *2
            mute-locked 2
            bob keys *2
        ",
        expect![[r#"
            bob dials
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 1, hears room
                bob is told alone
            mute-locked 1
                news 3: 1 muted true
                bob is muted
                bob is told muted
                news 4: 1 mute locked true
            bob keys 9876#
                news 5: 1 left
                news 6: bob joined as moderator 2
                news 7: 2 muted true
            show
                Board [] 0 s, revision 7: 2=bob moderator muted;
            bob keys *2
                news 8: 2 muted false
                bob is heard
                bob is told unmuted
            mute-locked 2
                news 9: 2 muted true
                bob is muted
                bob is told muted
            bob keys *2
                news 10: 2 muted false
                bob is heard
                bob is told unmuted
        "#]],
    );
}

#[test]
fn a_member_on_hold_hears_music_and_is_not_heard() {
    check(
        "
            room
            ada dials
            bob dials
            bob talks
            hold 2 on
            hold 2 on
            bob talks
            deaf 2 on
            show
            hold 2 off
            deaf 2 off
            bob talks
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
            hold 2 on
                news 5: 2 on hold true
                news 6: 2 talking false
                bob is muted
                bob hears music
            hold 2 on
            bob talks
            deaf 2 on
                news 7: 2 deaf true
            show
                Board [] 0 s, revision 7: 1=ada participant; 2=bob participant deaf on-hold;
            hold 2 off
                news 8: 2 on hold false
                bob is heard
                bob hears nothing
            deaf 2 off
                news 9: 2 deaf false
                bob hears room
            bob talks
                news 10: 2 talking true
        "#]],
    );
}

#[test]
fn members_wait_for_the_moderator_and_the_read_shows_it() {
    check(
        "
            room mod=9876 waits exempt=ada:moderator
            bob dials
            show
            hold 1 on
            ada dials
            show
            hold 1 off
            show
        ",
        expect![[r#"
            bob dials
                news 1: opened Board
                news 2: bob joined as participant 1
                bob joins mix 1, muted, hears music
                bob is told wait-for-moderator
            show
                Board [] 0 s, revision 2: 1=bob participant waiting;
            hold 1 on
                news 3: 1 on hold true
            ada dials
                news 4: ada joined as moderator 2
                ada joins mix 1, hears room
            show
                Board [] 0 s, revision 4: 1=bob participant on-hold; 2=ada moderator;
            hold 1 off
                news 5: 1 on hold false
                bob is heard
                bob hears room
            show
                Board [] 0 s, revision 5: 1=bob participant; 2=ada moderator;
        "#]],
    );
}

#[test]
fn a_whisper_is_heard_by_one_member_until_that_member_leaves() {
    check(
        "
            room
            ada dials
            bob dials
            cy dials
            whisper 1 1
            whisper 1 9
            whisper 9 1
            whisper 1 2
            whisper 1 2
            show
            whisper 1 3
            whisper 1 none
            whisper 1 2
            bob gone
            show
            ada keys *2
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
            cy dials
                news 4: cy joined as participant 3
                cy joins mix 1, hears room
            whisper 1 1
                = must be another member of the room
            whisper 1 9
                = must be another member of the room
            whisper 9 1
                = there is no such member in the room
            whisper 1 2
                news 5: 1 whispers to Some(2)
                ada is heard by bob
            whisper 1 2
            show
                Board [] 0 s, revision 5: 1=ada participant whispers-to Some(2); 2=bob participant; 3=cy participant;
            whisper 1 3
                news 6: 1 whispers to Some(3)
                ada is heard by cy
            whisper 1 none
                news 7: 1 whispers to None
                ada is heard by all
            whisper 1 2
                news 8: 1 whispers to Some(2)
                ada is heard by bob
            bob gone
                news 9: 2 left
                news 10: 1 muted true
                ada is muted
                ada is heard by all
                news 11: 1 whispers to None
                mix 1 is told left
            show
                Board [] 0 s, revision 11: 1=ada participant muted; 3=cy participant;
            ada keys *2
                news 12: 1 muted false
                ada is heard
                ada is told unmuted
        "#]],
    );
}

#[test]
fn a_whisper_follows_a_member_who_becomes_a_moderator() {
    check(
        "
            room mod=9876
            ada dials
            bob dials
            whisper 1 2
            bob keys 9876#
            show
            ada keys 9876#
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
            whisper 1 2
                news 4: 1 whispers to Some(2)
                ada is heard by bob
            bob keys 9876#
                news 5: 2 left
                news 6: bob joined as moderator 3
                news 7: 1 whispers to Some(3)
            show
                Board [] 0 s, revision 7: 1=ada participant whispers-to Some(3); 3=bob moderator;
            ada keys 9876#
                news 8: 1 left
                news 9: ada joined as moderator 4
                news 10: 4 whispers to Some(3)
            show
                Board [] 0 s, revision 10: 3=bob moderator; 4=ada moderator whispers-to Some(3);
        "#]],
    );
}

#[test]
fn a_phone_that_calls_again_has_its_controls_again() {
    check(
        "
            room
            ada dials on ada-1
            bob dials on bob-1
            gain 1 -6
            whisper 1 2
            deaf 1 on
            mute-locked 2
            ada is silent
            bob is silent
            ada2 dials on ada-1
            bob2 dials on bob-1
            show
        ",
        expect![[r#"
            ada dials on ada-1
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            bob dials on bob-1
                mix 1 is told joined
                news 3: bob joined as participant 2
                bob joins mix 1, hears room
            gain 1 -6
                news 4: 1 gain -6 dB
                ada has a gain of -6 dB
            whisper 1 2
                news 5: 1 whispers to Some(2)
                ada is heard by bob
            deaf 1 on
                news 6: 1 deaf true
                ada hears nothing
            mute-locked 2
                news 7: 2 muted true
                bob is muted
                bob is told muted
                news 8: 2 mute locked true
            ada is silent
            bob is silent
            ada2 dials on ada-1
                news 9: 1 left MEDIA_TIMEOUT
                news 10: ada2 joined as participant 1
                news 11: 1 deaf true
                news 12: 1 gain -6 dB
                news 13: 1 whispers to Some(2)
                ada hung up: MEDIA_TIMEOUT
                ada2 joins mix 1, muted, hears nothing
                ada2 is heard by bob
                ada2 is heard
                ada2 has a gain of -6 dB
            bob2 dials on bob-1
                news 14: 2 left MEDIA_TIMEOUT
                news 15: bob2 joined as participant 2
                news 16: 2 muted true
                news 17: 2 mute locked true
                bob hung up: MEDIA_TIMEOUT
                bob2 joins mix 1, muted, hears room
                ada2 is heard by bob2
                bob2 is told muted
            show
                Board [] 0 s, revision 17: 1=+44968434 participant deaf gain -6 dB whispers-to Some(2); 2=+44466802 participant muted mute-locked;
        "#]],
    );
}

/// A member's talk time ends when the room no longer hears the member.
#[test]
fn the_time_that_each_member_talked_is_published_when_it_leaves() {
    check(
        "
            room mod=9876
            ada dials
            bob dials
            cy dials
            ada talks
            wait 2s
            ada stops
            bob talks
            wait 500ms
            ada talks
            wait 1s
            mute 1
            wait 5s
            ada gone
            bob keys 9876#
            bob talks
            wait 3s
            bob gone
            cy gone
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
            cy dials
                news 4: cy joined as participant 3
                cy joins mix 1, hears room
            ada talks
                news 5: 1 talking true
            wait 2s
            ada stops
                news 6: 1 talking false
            bob talks
                news 7: 2 talking true
            wait 500ms
            ada talks
                news 8: 1 talking true
            wait 1s
            mute 1
                news 9: 1 muted true
                news 10: 1 talking false
                ada is muted
                ada is told muted
            wait 5s
            ada gone
                news 11: 1 left, talked 3000 ms
                mix 1 is told left
            bob keys 9876#
                news 12: 2 left, talked 6500 ms
                news 13: bob joined as moderator 4
            bob talks
                news 14: 4 talking true
            wait 3s
            bob gone
                news 15: 4 left, talked 3000 ms
                mix 1 is told left
            cy gone
                news 16: 3 left
                news 17: ended
        "#]],
    );
}
