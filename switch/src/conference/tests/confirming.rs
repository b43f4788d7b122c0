//! Parties that a room called and that key 1 to join: a mailbox is never seated.

use expect_test::expect;

use crate::conference::tests::script::check;

#[test]
fn who_keys_one_is_seated_in_the_requested_role() {
    check(
        "
            room pin=1234 mod=9876
            dial +442079460000 moderator confirm
            far answers 1
            show
            far keys 5*#
            far keys 1
            show
        ",
        expect![[r#"
            dial +442079460000 moderator confirm
                = +442079460000
                dial 1 external +442079460000 moderator as 200 Board
            far answers 1
                far joins mix 1, hears room
                far is told confirm-join
            show
                nobody
            far keys 5*#
            far keys 1
                far is told no more
                news 1: opened Board
                news 2: far joined as moderator 1
                far joins mix 2, hears room
                far is told alone
            show
                Board [] 0 s, revision 2: 1=+44709618 moderator;
        "#]],
    );
}

/// A mailbox plays its greeting and records; it presses no key.
#[test]
fn a_mailbox_is_never_seated() {
    check(
        "
            room
            ada dials
            dial +442079460000 participant confirm
            far answers 1
            wait 4s
            far heard
            wait 32s
            far heard
            show
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            dial +442079460000 participant confirm
                = +442079460000
                dial 1 external +442079460000 participant as 200 Board
            far answers 1
                far joins mix 2, hears room
                far is told confirm-join
            wait 4s
            far heard
            wait 32s
              after 10000 ms
                far is told confirm-join
              after 26000 ms
                +442079460000 does not join: not_confirmed
                far is told no more
                far is told goodbye
            far heard
                far hung up
            show
                Board [] 36 s, revision 2: 1=ada participant;
        "#]],
    );
}

#[test]
fn the_room_locks_or_ends_before_the_confirmation() {
    check(
        "
            room mod=9876
            ada dials
            dial +442079460000 participant confirm
            dial +442079460001 participant confirm
            far answers 1
            out answers 2
            lock
            far keys 1
            end
            out heard
            out keys 1
        ",
        expect![[r#"
            ada dials
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 1, hears room
                ada is told alone
            dial +442079460000 participant confirm
                = +442079460000
                dial 1 external +442079460000 participant as 200 Board
            dial +442079460001 participant confirm
                = +442079460001
                dial 2 external +442079460001 participant as 200 Board
            far answers 1
                far joins mix 2, hears room
                far is told confirm-join
            out answers 2
                out joins mix 3, hears room
                out is told confirm-join
            lock
                news 3: locked true
                mix 1 is told locked
            far keys 1
                far is told no more
                +442079460000 does not join: refused
                far is told locked goodbye
            end
                news 4: 1 left
                ada is muted
                ada is told ended
                +442079460001 does not join: cancelled
                out is told no more
                out is told ended
                news 5: ended
            out heard
                out hung up
            out keys 1
        "#]],
    );
}

#[test]
fn the_latest_request_decides() {
    check(
        "
            room
            dial +442079460000 participant
            dial +442079460000 moderator confirm
            far answers 1
            far gone
            show
        ",
        expect![[r#"
            dial +442079460000 participant
                = +442079460000
                dial 1 external +442079460000 participant as 200 Board
            dial +442079460000 moderator confirm
                = +442079460000
            far answers 1
                far joins mix 1, hears room
                far is told confirm-join
            far gone
                +442079460000 does not join: not_confirmed
            show
                nobody
        "#]],
    );
}

#[test]
fn a_party_that_does_not_confirm_is_reported() {
    check(
        "room
         dial 101 participant confirm
         ada answers 1
         wait 30s
         dial 102 participant confirm
         bob answers 2
         bob gone",
        expect![[r#"
            dial 101 participant confirm
                = 101
                dial 1 extension 101 participant as 200 Board
            ada answers 1
                ada joins mix 1, hears room
                ada is told confirm-join
            wait 30s
              after 30000 ms
                101 does not join: not_confirmed
                ada is told no more
                ada is told goodbye
            dial 102 participant confirm
                = 102
                dial 2 extension 102 participant as 200 Board
            bob answers 2
                bob joins mix 2, hears room
                bob is told confirm-join
            bob gone
                102 does not join: not_confirmed
        "#]],
    );
}
