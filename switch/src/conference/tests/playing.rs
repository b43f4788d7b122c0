//! A sound that a program plays into a room: to all members or to one, one sound at a time.

use expect_test::expect;

use crate::conference::tests::script::check;

#[test]
fn one_sound_plays_at_a_time_and_its_end_is_news() {
    check(
        "
            room
            ada dials
            bob dials
            play own-news 4000
            play hold-music 9000
            wait 3s
            show
            wait 2s
            play hold-music 9000
            stop-sound
            stop-sound
            wait 20s
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
            play own-news 4000
                mix 1 hears own-news
                news 4: playing own-news
            play hold-music 9000
                = own-news is being played: stop it first, or wait for its end
            wait 3s
            show
                Board [playing] 3 s, revision 4: 1=ada participant; 2=bob participant;
            wait 2s
              after 1000 ms
                news 5: played own-news
            play hold-music 9000
                mix 1 hears hold-music
                news 6: playing hold-music
            stop-sound
                mix 1 hears no sound
                news 7: played hold-music, stopped
            stop-sound
            wait 20s
        "#]],
    );
}

#[test]
fn a_sound_for_one_member_ends_when_the_member_leaves() {
    check(
        "
            room
            ada dials
            bob dials
            play own-news 4000 7
            play own-news 4000 2
            bob gone
            wait 10s
            play own-news 4000 1
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
            play own-news 4000 7
                = must be a member of the room
            play own-news 4000 2
                bob alone hears own-news
                news 4: playing own-news to 2
            bob gone
                bob hears no sound
                news 5: played own-news, stopped
                news 6: 2 left
                mix 1 is told left
            wait 10s
            play own-news 4000 1
                ada alone hears own-news
                news 7: playing own-news to 1
            kick 1
                ada joins mix 2, muted, hears room
                ada is told kicked
                ada hears no sound
                news 8: played own-news, stopped
                news 9: 1 left
                news 10: ended
        "#]],
    );
}

#[test]
fn a_sound_ends_with_its_room_and_not_with_a_member() {
    check(
        "
            room
            ada dials
            bob dials
            play own-news 4000
            bob gone
            end
            wait 10s
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
            play own-news 4000
                mix 1 hears own-news
                news 4: playing own-news
            bob gone
                news 5: 2 left
                mix 1 is told left
            end
                news 6: 1 left
                ada is muted
                ada is told ended
                mix 1 hears no sound
                news 7: played own-news, stopped
                news 8: ended
            wait 10s
              after 10000 ms
                ada hung up
        "#]],
    );
}

#[test]
fn a_member_who_becomes_a_moderator_hears_the_sound_for_it_no_more() {
    check(
        "
            room mod=9876
            ada dials
            play own-news 4000 1
            ada keys 9876#
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            play own-news 4000 1
                ada alone hears own-news
                news 3: playing own-news to 1
            ada keys 9876#
                ada hears no sound
                news 4: played own-news, stopped
                news 5: 1 left
                news 6: ada joined as moderator 2
        "#]],
    );
}
