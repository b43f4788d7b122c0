//! Ladder tests inside a dialog: changes of calls, and requests that are out of place or out of order.

use expect_test::expect;

use crate::ua::ladder::check;

#[test]
fn hold_by_reinvite_with_lost_messages() {
    check(
        "0 a invite
         100 b respond 200
         1000 lose ACK 2
         1000 a reinvite
         1050 b respond 200
         3000 b reinvite late
         3050 a respond 200
         3100 b ack
         4000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a reinvite
            1000ms      a>b INVITE 2 +sdp
            1010ms      b: Reinvited
            1050ms    b respond 200
            1050ms      b>a 200 (2 INVITE)
            1060ms      a: 200 response
            1060ms      a>b ACK 2   (lost)
            1550ms      b>a 200 (2 INVITE)
            1560ms      a>b ACK 2
            1570ms      b: Acked
            3000ms    b reinvite late
            3000ms      b>a INVITE 1
            3010ms      a: Reinvited
            3050ms    a respond 200
            3050ms      a>b 200 (1 INVITE)
            3060ms      b: 200 response
            3100ms    b ack
            3100ms      b>a ACK 1 +sdp
            3110ms      a: Acked +sdp
            4000ms    a hangup
            4000ms      a: Ended: HungUp
            4000ms      a>b BYE 3
            4010ms      b: Ended by BYE
            4010ms      b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn glare() {
    check(
        "0 a invite
         100 b respond 200
         1000 a reinvite
         1005 b reinvite
         9000 a reinvite
         9050 b respond 488
         9500 b hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a reinvite
            1000ms      a>b INVITE 2 +sdp
            1005ms    b reinvite
            1005ms      b>a INVITE 1 +sdp
            1010ms      b>a 491 (2 INVITE)
            1015ms      a>b 491 (1 INVITE)
            1020ms      a>b ACK 2
            1020ms      a: ReinviteClashed
            1025ms      b>a ACK 1
            1025ms      b: ReinviteClashed
            3005ms      b: ReinviteDue
            3490ms      a: ReinviteDue
            9000ms    a reinvite
            9000ms      a>b INVITE 3 +sdp
            9010ms      b: Reinvited
            9050ms    b respond 488
            9050ms      b>a 488 (3 INVITE)
            9060ms      a>b ACK 3
            9060ms      a: 488 response
            9500ms    b hangup
            9500ms      b: Ended: HungUp
            9500ms      b>a BYE 2
            9510ms      a: Ended by BYE
            9510ms      a>b 200 (2 BYE)
        "#]],
    );
}

#[test]
fn one_invite_at_a_time() {
    check(
        "0 a invite
         100 b respond 200
         1000 a reinvite
         1100 a reinvite
         1100 b reinvite
         1200 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a reinvite
            1000ms      a>b INVITE 2 +sdp
            1010ms      b: Reinvited
            1100ms    a reinvite
            1100ms      a: the leg is not in a state for it
            1100ms    b reinvite
            1100ms      b: the leg is not in a state for it
            1200ms    a hangup
            1200ms      a: Ended: HungUp
            1200ms      a>b BYE 3
            1210ms      b: Ended by BYE
            1210ms      b>a 200 (3 BYE)
            1210ms      b>a 487 (2 INVITE)
            1220ms      a>b ACK 2
        "#]],
    );
}

#[test]
fn requests_out_of_place() {
    check(
        "0 a require 100rel
         100 a stranger BYE
         200 a options
         250 b respond 200
         300 b respond 200",
        expect![[r#"
            0ms       a require 100rel
            0ms         a>b INVITE 1
            10ms        b>a 420 (1 INVITE)100rel
            20ms        a>b ACK 1
            20ms        a: Ended: refused 420
            100ms     a stranger BYE
            110ms       b>a 481 (9 BYE)
            200ms     a options
            200ms       a>b OPTIONS 1
            210ms       b: OPTIONS request
            250ms     b respond 200
            250ms       b>a 200 (1 OPTIONS)
            260ms       a: 200 response
            300ms     b respond 200
            300ms       b: the leg is not in a state for it
        "#]],
    );
}

#[test]
fn the_peer_has_restarted_when_the_call_is_changed() {
    check(
        "0 a invite\n 100 b respond 200\n 1000 b restart\n 2000 a reinvite\n 3000 a info",
        expect![[r#"
        0ms       a invite
        0ms         a>b INVITE 1 +sdp
        10ms        b: Invited
        100ms     b respond 200
        100ms       b>a 200 (1 INVITE)
        110ms       a: Answered
        110ms       a>b ACK 1
        120ms       b: Acked
        1000ms    b restart
        2000ms    a reinvite
        2000ms      a>b INVITE 2 +sdp
        2010ms      b>a 481 (2 INVITE)
        2020ms      a>b ACK 2
        2020ms      a: Ended: Gone
        3000ms    a info
        3000ms      a: the leg is not in a state for it
    "#]],
    );
}

#[test]
fn the_peer_is_gone_when_the_call_is_changed() {
    check(
        &format!(
            "0 a invite\n 100 b respond 200\n {}\n {}\n 1000 a reinvite\n 90000 b hangup",
            "200 lose INVITE\n".repeat(7),
            "200 lose BYE\n".repeat(11)
        ),
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            1000ms    a reinvite
            1000ms      a>b INVITE 2 +sdp   (lost)
            1500ms      a>b INVITE 2 +sdp   (lost)
            2500ms      a>b INVITE 2 +sdp   (lost)
            4500ms      a>b INVITE 2 +sdp   (lost)
            8500ms      a>b INVITE 2 +sdp   (lost)
            16500ms     a>b INVITE 2 +sdp   (lost)
            32500ms     a>b INVITE 2 +sdp   (lost)
            33000ms     a: Ended: Gone
            33000ms     a>b BYE 3   (lost)
            33500ms     a>b BYE 3   (lost)
            34500ms     a>b BYE 3   (lost)
            36500ms     a>b BYE 3   (lost)
            40500ms     a>b BYE 3   (lost)
            44500ms     a>b BYE 3   (lost)
            48500ms     a>b BYE 3   (lost)
            52500ms     a>b BYE 3   (lost)
            56500ms     a>b BYE 3   (lost)
            60500ms     a>b BYE 3   (lost)
            64500ms     a>b BYE 3   (lost)
            90000ms   b hangup
            90000ms     b: Ended: HungUp
            90000ms     b>a BYE 1
            90010ms     a>b 481 (1 BYE)
        "#]],
    );
}

#[test]
fn a_peer_that_breaks_the_order() {
    check(
        "0 a invite
         100 b respond 200
         200 b raw INFO 7
         220 a respond 200
         300 b raw INFO 6
         400 b raw INVITE 8
         500 b raw INVITE 9
         600 a respond 200
         700 b raw ACK 9
         800 b raw ACK 8
         900 b raw BYE 10
         1000 b raw INFO 11
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
            200ms     b raw INFO 7
            210ms       a: INFO request of the leg
            220ms     a respond 200
            220ms       a>b 200 (7 INFO)
            300ms     b raw INFO 6
            310ms       a>b 500 (6 INFO)
            400ms     b raw INVITE 8
            410ms       a: Reinvited
            500ms     b raw INVITE 9
            510ms       a>b 500 (9 INVITE) +Retry-After
            600ms     a respond 200
            600ms       a>b 200 (8 INVITE)
            700ms     b raw ACK 9
            800ms     b raw ACK 8
            810ms       a: Acked
            900ms     b raw BYE 10
            910ms       a: Ended by BYE
            910ms       a>b 200 (10 BYE)
            1000ms    b raw INFO 11
            1010ms      a>b 481 (11 INFO)
            1100ms    b hangup
            1100ms      b: Ended: HungUp
            1100ms      b>a BYE 1
            1110ms      a>b 481 (1 BYE)
        "#]],
    );
}
