//! Names that callers speak before they are seated.

use expect_test::expect;

use crate::conference::tests::script::check;

#[test]
fn an_extension_is_asked_once_and_announced_by_its_name() {
    check(
        "
            room names
            ada dials
            ada is named
            bob dials
            bob is nameless
            bob heard
            bob keys 1#
            bob is named
            bob gone
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                the name of ada is looked for
            ada is named
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 2, hears room
                ada is told alone
            bob dials
                bob joins mix 3, hears room
                the name of bob is looked for
            bob is nameless
                bob is told say-name
            bob heard
                bob speaks its name in mix 3
            bob keys 1#
                record mix 3 no more
            bob is named
                mix 2 is told the name of bob has-joined
                news 3: bob joined as participant 2
                bob joins mix 2, hears room
            bob gone
                news 4: 2 left
                mix 2 is told the name of bob has-left
                the name of bob is forgotten
        "#]],
    );
}

#[test]
fn an_outside_caller_without_a_name_is_announced_by_a_chime() {
    check(
        "
            room names
            ada dials
            ada is nameless
            ada keys #
            eve dials
            eve heard
            wait 4s
            wait 1s
            eve is nameless
            eve gone
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                the name of ada is looked for
            ada is nameless
                ada is told say-name
            ada keys #
                ada is told no more
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 2, hears room
                ada is told alone
            eve dials
                eve joins mix 3, hears room
                eve is told say-name
            eve heard
                eve speaks its name in mix 3 for now
            wait 4s
            wait 1s
              after 1000 ms
                record mix 3 no more
            eve is nameless
                mix 2 is told joined
                news 3: eve joined as participant 2
                eve joins mix 2, hears room
            eve gone
                news 4: 2 left
                mix 2 is told left
                the name of eve is forgotten
        "#]],
    );
}

#[test]
fn a_called_party_that_hangs_up_while_its_name_is_looked_for_is_reported() {
    check(
        "
            room names
            dial 102 participant
            bob answers 1
            bob gone
        ",
        expect![[r#"
            dial 102 participant
                = 102
                dial 1 extension 102 participant as 200 Board
            bob answers 1
                bob joins mix 1, hears room
                the name of bob is looked for
            bob gone
                the name of bob is forgotten
                102 does not join: cancelled
        "#]],
    );
}

#[test]
fn a_room_that_is_deleted_while_a_caller_is_named_refuses_the_caller() {
    check(
        "
            room names
            ada dials
            no room
            ada is named
            ada heard
            ada gone
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                the name of ada is looked for
            no room
            ada is named
                ada is told no-such-room goodbye
            ada heard
                ada hung up
            ada gone
                the name of ada is forgotten
        "#]],
    );
}

#[test]
fn every_phase_has_a_deadline() {
    check(
        "
            room names
            ada dials
            wait 2s
            bob dials
            bob is nameless
            wait 15s
            eve dials
            eve heard
            wait 7s
            eve is named
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                the name of ada is looked for
            wait 2s
              after 2000 ms
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 2, hears room
                ada is told alone
            bob dials
                bob joins mix 3, hears room
                the name of bob is looked for
            bob is nameless
                bob is told say-name
            wait 15s
              after 15000 ms
                bob is told no more
                mix 2 is told joined
                news 3: bob joined as participant 2
                bob joins mix 2, hears room
            eve dials
                eve joins mix 4, hears room
                eve is told say-name
            eve heard
                eve speaks its name in mix 4 for now
            wait 7s
              after 5000 ms
                record mix 4 no more
              after 7000 ms
                mix 2 is told joined
                news 4: eve joined as participant 3
                eve joins mix 2, hears room
            eve is named
        "#]],
    );
}

#[test]
fn many_at_once_are_one_name_and_one_chime() {
    check(
        "
            room names
            ada dials
            ada is named
            bob dials
            bob is named
            cy dials
            cy is named
            dee dials
            dee is named
            bob gone
            cy gone
            dee gone
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                the name of ada is looked for
            ada is named
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 2, hears room
                ada is told alone
            bob dials
                bob joins mix 3, hears room
                the name of bob is looked for
            bob is named
                mix 2 is told the name of bob has-joined
                news 3: bob joined as participant 2
                bob joins mix 2, hears room
            cy dials
                cy joins mix 4, hears room
                the name of cy is looked for
            cy is named
                mix 2 is told joined
                news 4: cy joined as participant 3
                cy joins mix 2, hears room
            dee dials
                dee joins mix 5, hears room
                the name of dee is looked for
            dee is named
                news 5: dee joined as participant 4
                dee joins mix 2, hears room
            bob gone
                news 6: 2 left
                mix 2 is told the name of bob has-left
                the name of bob is forgotten
            cy gone
                news 7: 3 left
                mix 2 is told left
                the name of cy is forgotten
            dee gone
                news 8: 4 left
                the name of dee is forgotten
        "#]],
    );
}

#[test]
fn a_party_that_was_called_is_not_asked_and_is_cancelled_with_the_room() {
    check(
        "
            room names
            ada dials
            ada is named
            dial +441 participant
            eve answers 1
            dial 102 participant
            bob answers 2
            end
            cy dials
            cy is nameless
            cy gone
        ",
        expect![[r#"
            ada dials
                ada joins mix 1, hears room
                the name of ada is looked for
            ada is named
                news 1: opened Board
                news 2: ada joined as participant 1
                ada joins mix 2, hears room
                ada is told alone
            dial +441 participant
                = +441
                dial 1 external +441 participant as 200 Board
            eve answers 1
                mix 2 is told joined
                news 3: eve joined as participant 2
                eve joins mix 2, hears room
            dial 102 participant
                = 102
                dial 2 extension 102 participant as 200 Board
            bob answers 2
                bob joins mix 3, hears room
                the name of bob is looked for
            end
                news 4: 1 left
                ada is muted
                ada is told ended
                news 5: 2 left
                eve is muted
                eve is told ended
                102 does not join: cancelled
                bob is told ended
                news 6: ended
            cy dials
                cy joins mix 4, hears room
                the name of cy is looked for
            cy is nameless
                cy is told say-name
            cy gone
                the name of cy is forgotten
        "#]],
    );
}
