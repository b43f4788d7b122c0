//! Recordings of rooms on two channels: the side of each member, and the fixed number of channels of a session.

use expect_test::expect;

use crate::conference::tests::script::check;

#[test]
fn moderators_are_on_the_left_and_without_one_the_first_member() {
    check(
        "
            room record=2 exempt=cy:moderator
            ada dials
            bob dials
            cy dials
            cy gone
            ada gone
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is on the left
                news 3: recorded on 2 channels
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad on two channels
                news 4: recording true
                ada is told alone recording-on
            bob dials
                mix 1 is told joined
                news 5: bob joined as participant 2
                bob joins mix 1, hears room
                bob is told recording-on
            cy dials
                news 6: cy joined as moderator 3
                cy joins mix 1, hears room
                ada is on the right
                cy is on the left
                cy is told recording-on
            cy gone
                news 7: 3 left
                ada is on the left
                mix 1 is told left
            ada gone
                news 8: 1 left
                bob is on the left
        "#]],
    );
}

#[test]
fn a_session_has_one_number_of_channels() {
    check(
        "
            room
            ada dials
            record on 2
            record off
            record on 1
            record on 2
            bob dials
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            record on 2
                ada is on the left
                news 3: recorded on 2 channels
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad on two channels
                news 4: recording true
                mix 1 is told recording-on
            record off
                record mix 1 no more
                news 5: recording false
                mix 1 is told recording-off
            record on 1
                = the recordings of a session are in one file, and its file has 2 channels: leave channels out
                record mix 1 session 00000000-0000-7ee9-86e8-cd469905b6ad on two channels
                news 6: recording true
                mix 1 is told recording-on
            record on 2
            bob dials
                mix 1 is told joined
                news 7: bob joined as participant 2
                bob joins mix 1, hears room
                bob is told recording-on
        "#]],
    );
}
