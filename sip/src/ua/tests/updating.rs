//! Offers in UPDATE (RFC 3311).

use expect_test::expect;

use crate::ua::ladder::check;

#[test]
fn an_update_changes_the_session_in_one_transaction() {
    check(
        "0 a invite
         100 b respond 200
         1000 a update
         1100 b respond 200
         2000 b update
         2100 a respond 488
         3000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a update
            1000ms      a>b UPDATE 2 +sdp
            1010ms      b: Updated
            1100ms    b respond 200
            1100ms      b>a 200 (2 UPDATE)
            1110ms      a: 200 response
            2000ms    b update
            2000ms      b>a UPDATE 1 +sdp
            2010ms      a: Updated
            2100ms    a respond 488
            2100ms      a>b 488 (1 UPDATE)
            2110ms      b: 488 response
            3000ms    a hangup
            3000ms      a: Ended: HungUp
            3000ms      a>b BYE 3
            3010ms      b: Ended by BYE
            3010ms      b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn offers_that_cross_are_refused() {
    check(
        "0 a invite
         100 b respond 200
         1000 a update
         1005 a update
         1050 b reinvite
         1100 b respond 200
         2000 b reinvite
         2001 a update
         2100 a respond 200
         3000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a update
            1000ms      a>b UPDATE 2 +sdp
            1005ms    a update
            1005ms      a>b UPDATE 3 +sdp
            1010ms      b: Updated
            1015ms      b>a 500 (3 UPDATE) +Retry-After
            1025ms      a: 500 response
            1050ms    b reinvite
            1050ms      b: the leg is not in a state for it
            1100ms    b respond 200
            1100ms      b>a 200 (2 UPDATE)
            1110ms      a: 200 response
            2000ms    b reinvite
            2000ms      b>a INVITE 1 +sdp
            2001ms    a update
            2001ms      a>b UPDATE 4 +sdp
            2010ms      a: Reinvited
            2011ms      b>a 491 (4 UPDATE)
            2021ms      a: 491 response
            2100ms    a respond 200
            2100ms      a>b 200 (1 INVITE)
            2110ms      b: 200 response
            2110ms      b>a ACK 1
            2120ms      a: Acked
            3000ms    a hangup
            3000ms      a: Ended: HungUp
            3000ms      a>b BYE 5
            3010ms      b: Ended by BYE
            3010ms      b>a 200 (5 BYE)
        "#]],
    );
}

#[test]
fn an_update_before_the_answer_has_to_wait() {
    check(
        "0 a invite
         100 b respond 180
         200 a update
         300 b update
         400 b respond 200
         1000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE)
            110ms       a: Progress 180
            200ms     a update
            200ms       a>b UPDATE 2 +sdp
            210ms       b>a 500 (2 UPDATE) +Retry-After
            220ms       a: 500 response
            300ms     b update
            300ms       b>a UPDATE 1 +sdp
            310ms       a>b 491 (1 UPDATE)
            320ms       b: 491 response
            400ms     b respond 200
            400ms       b>a 200 (1 INVITE)
            410ms       a: Answered
            410ms       a>b ACK 1
            420ms       b: Acked
            1000ms    a hangup
            1000ms      a: Ended: HungUp
            1000ms      a>b BYE 3
            1010ms      b: Ended by BYE
            1010ms      b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn an_update_of_a_call_that_ends_is_answered() {
    check(
        "0 a invite
         100 b respond 200
         1000 a update
         1100 b hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a update
            1000ms      a>b UPDATE 2 +sdp
            1010ms      b: Updated
            1100ms    b hangup
            1100ms      b: Ended: HungUp
            1100ms      b>a 487 (2 UPDATE)
            1100ms      b>a BYE 1
            1110ms      a: 487 response
            1110ms      a: Ended by BYE
            1110ms      a>b 200 (1 BYE)
        "#]],
    );
}
