//! Ladders of calls and of everything that goes wrong with them.

use expect_test::expect;

use super::ladder::{check, check_with};

#[test]
fn a_call_from_invite_to_bye() {
    check(
        "0 a invite
         100 b respond 180
         500 b respond 200
         2000 a info
         2050 b respond 200
         3000 b hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE)
            110ms       a: Progress 180
            500ms     b respond 200
            500ms       b>a 200 (1 INVITE)
            510ms       a: Answered
            510ms       a>b ACK 1
            520ms       b: Acked
            2000ms    a info
            2000ms      a>b INFO 2
            2010ms      b: INFO request of the leg
            2050ms    b respond 200
            2050ms      b>a 200 (2 INFO)
            2060ms      a: 200 response
            3000ms    b hangup
            3000ms      b: Ended: HungUp
            3000ms      b>a BYE 1
            3010ms      a: Ended by BYE
            3010ms      a>b 200 (1 BYE)
        "#]],
    );
}

#[test]
fn an_offer_in_the_200_is_answered_in_the_ack() {
    check(
        "0 a invite late
         100 b respond 200
         300 a ack
         310 a ack
         900 a hangup",
        expect![[r#"
            0ms       a invite late
            0ms         a>b INVITE 1
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            300ms     a ack
            300ms       a>b ACK 1 +sdp
            310ms       b: Acked +sdp
            310ms     a ack
            310ms       a: the leg is not in a state for it
            900ms     a hangup
            900ms       a: Ended: HungUp
            900ms       a>b BYE 2
            910ms       b: Ended by BYE
            910ms       b>a 200 (2 BYE)
        "#]],
    );
}

#[test]
fn hanging_up_before_the_owed_ack_sends_it_first() {
    check(
        "0 a invite late
         100 b respond 200
         300 a hangup",
        expect![[r#"
            0ms       a invite late
            0ms         a>b INVITE 1
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            300ms     a hangup
            300ms       a: Ended: HungUp
            300ms       a>b ACK 1
            300ms       a>b BYE 2
            310ms       b: Acked
            310ms       b: Ended by BYE
            310ms       b>a 200 (2 BYE)
        "#]],
    );
}

#[test]
fn refused() {
    check(
        "0 a invite\n 100 b respond 486",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 486
            100ms       b: Ended: HungUp
            100ms       b>a 486 (1 INVITE)
            110ms       a>b ACK 1
            110ms       a: Ended: refused 486
        "#]],
    );
}

#[test]
fn challenged_without_state_and_tried_again() {
    check(
        "0 a invite
         20 b refuse 401
         40 a retry
         100 b respond 200
         200 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            20ms      b refuse 401
            20ms        b: Ended: HungUp
            20ms        b>a 401 (1 INVITE)
            30ms        a>b ACK 1
            30ms        a: Ended: refused 401
            40ms      a retry
            40ms        a>b INVITE 2 +sdp
            50ms        b: Invited +Authorization
            100ms     b respond 200
            100ms       b>a 200 (2 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 2
            120ms       b: Acked
            200ms     a hangup
            200ms       a: Ended: HungUp
            200ms       a>b BYE 3
            210ms       b: Ended by BYE
            210ms       b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn cancelled_while_ringing() {
    check(
        "0 a invite\n 100 b respond 180\n 500 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE)
            110ms       a: Progress 180
            500ms     a hangup
            500ms       a: Ended: HungUp
            500ms       a>b CANCEL 1
            510ms       b>a 200 (1 CANCEL)
            510ms       b: Ended by CANCEL
            510ms       b>a 487 (1 INVITE)
            520ms       a>b ACK 1
        "#]],
    );
}

#[test]
fn cancelled_before_any_answer() {
    check(
        "0 a invite\n 5 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            5ms       a hangup
            5ms         a: Ended: HungUp
            10ms        b: Invited
            210ms       b>a 100 (1 INVITE)
            220ms       a>b CANCEL 1
            230ms       b>a 200 (1 CANCEL)
            230ms       b: Ended by CANCEL
            230ms       b>a 487 (1 INVITE)
            240ms       a>b ACK 1
        "#]],
    );
}

#[test]
fn the_cancel_crosses_the_200() {
    check(
        "0 a invite\n 100 b respond 180\n 500 a hangup\n 505 b respond 200",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE)
            110ms       a: Progress 180
            500ms     a hangup
            500ms       a: Ended: HungUp
            500ms       a>b CANCEL 1
            505ms     b respond 200
            505ms       b>a 200 (1 INVITE)
            510ms       b>a 200 (1 CANCEL)
            515ms       a>b ACK 1
            515ms       a>b BYE 2
            525ms       b: Acked
            525ms       b: Ended by BYE
            525ms       b>a 200 (2 BYE)
        "#]],
    );
}

#[test]
fn the_bye_crosses_the_bye() {
    check(
        "0 a invite\n 100 b respond 200\n 500 a hangup\n 505 b hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1
            120ms       b: Acked
            500ms     a hangup
            500ms       a: Ended: HungUp
            500ms       a>b BYE 2
            505ms     b hangup
            505ms       b: Ended: HungUp
            505ms       b>a BYE 1
            510ms       b>a 200 (2 BYE)
            515ms       a>b 200 (1 BYE)
        "#]],
    );
}

#[test]
fn the_ack_is_lost() {
    check(
        "0 lose ACK\n 0 a invite\n 100 b respond 200\n 2000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1   (lost)
            600ms       b>a 200 (1 INVITE)
            610ms       a>b ACK 1
            620ms       b: Acked
            2000ms    a hangup
            2000ms      a: Ended: HungUp
            2000ms      a>b BYE 2
            2010ms      b: Ended by BYE
            2010ms      b>a 200 (2 BYE)
        "#]],
    );
}

#[test]
fn the_200_is_lost_and_the_invite_repeated_after_it() {
    check(
        "0 lose 100\n 0 lose 200\n 0 a invite\n 300 b respond 200\n 2000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            210ms       b>a 100 (1 INVITE)   (lost)
            300ms     b respond 200
            300ms       b>a 200 (1 INVITE)   (lost)
            500ms       a>b INVITE 1 +sdp
            800ms       b>a 200 (1 INVITE)
            810ms       a: Answered
            810ms       a>b ACK 1
            820ms       b: Acked
            2000ms    a hangup
            2000ms      a: Ended: HungUp
            2000ms      a>b BYE 2
            2010ms      b: Ended by BYE
            2010ms      b>a 200 (2 BYE)
        "#]],
    );
}

#[test]
fn the_ack_never_comes() {
    check(
        &format!("{} 0 a invite\n 100 b respond 200", "0 lose ACK\n".repeat(12)),
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1   (lost)
            600ms       b>a 200 (1 INVITE)
            610ms       a>b ACK 1   (lost)
            1600ms      b>a 200 (1 INVITE)
            1610ms      a>b ACK 1   (lost)
            3600ms      b>a 200 (1 INVITE)
            3610ms      a>b ACK 1   (lost)
            7600ms      b>a 200 (1 INVITE)
            7610ms      a>b ACK 1   (lost)
            11600ms     b>a 200 (1 INVITE)
            11610ms     a>b ACK 1   (lost)
            15600ms     b>a 200 (1 INVITE)
            15610ms     a>b ACK 1   (lost)
            19600ms     b>a 200 (1 INVITE)
            19610ms     a>b ACK 1   (lost)
            23600ms     b>a 200 (1 INVITE)
            23610ms     a>b ACK 1   (lost)
            27600ms     b>a 200 (1 INVITE)
            27610ms     a>b ACK 1   (lost)
            31600ms     b>a 200 (1 INVITE)
            31610ms     a>b ACK 1   (lost)
            32100ms     b: Ended: AckMissing
            32100ms     b>a BYE 1
            32110ms     a: Ended by BYE
            32110ms     a>b 200 (1 BYE)
        "#]],
    );
}

#[test]
fn the_callee_hangs_up_before_the_ack() {
    check(
        "0 lose ACK\n 0 a invite\n 100 b respond 200\n 115 b hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1   (lost)
            115ms     b hangup
            115ms       b: Ended: HungUp
            600ms       b>a 200 (1 INVITE)
            610ms       a>b ACK 1
            620ms       b>a BYE 1
            630ms       a: Ended by BYE
            630ms       a>b 200 (1 BYE)
        "#]],
    );
}

#[test]
fn the_caller_hangs_up_before_the_callee_has_the_ack() {
    check(
        "0 lose ACK\n 0 a invite\n 100 b respond 200\n 115 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 200
            100ms       b>a 200 (1 INVITE)
            110ms       a: Answered
            110ms       a>b ACK 1   (lost)
            115ms     a hangup
            115ms       a: Ended: HungUp
            115ms       a>b BYE 2
            125ms       b: Ended by BYE
            125ms       b>a 200 (2 BYE)
        "#]],
    );
}

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
            1025ms      b>a ACK 1
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
fn two_forks_answer() {
    check(
        "0 a invite
         100 b respond 180
         150 fork 183 other
         300 b respond 200
         350 fork 200 other
         2000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE)
            110ms       a: Progress 180
            150ms     fork>a 183 other
            160ms       a: Progress 183
            300ms     b respond 200
            300ms       b>a 200 (1 INVITE)
            310ms       a: Answered
            310ms       a>b ACK 1
            320ms       b: Acked
            350ms     fork>a 200 other
            360ms       a>b ACK 1
            360ms       a>b BYE 2
            370ms       b>a 481 (2 BYE)
            2000ms    a hangup
            2000ms      a: Ended: HungUp
            2000ms      a>b BYE 2
            2010ms      b: Ended by BYE
            2010ms      b>a 200 (2 BYE)
        "#]],
    );
}

#[test]
fn nobody_there() {
    check(
        &format!("{} 0 a invite", "0 lose INVITE\n".repeat(7)),
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp   (lost)
            500ms       a>b INVITE 1 +sdp   (lost)
            1500ms      a>b INVITE 1 +sdp   (lost)
            3500ms      a>b INVITE 1 +sdp   (lost)
            7500ms      a>b INVITE 1 +sdp   (lost)
            15500ms     a>b INVITE 1 +sdp   (lost)
            31500ms     a>b INVITE 1 +sdp   (lost)
            32000ms     a: Ended: TimedOut
        "#]],
    );
}

#[test]
fn a_long_ring_keeps_the_proxies_patient_and_the_caller_gives_up() {
    check(
        "0 a invite\n 100 b respond 180\n 130000 a hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE)
            110ms       a: Progress 180
            60100ms     b>a 180 (1 INVITE)
            60110ms     a: Progress 180
            120100ms    b>a 180 (1 INVITE)
            120110ms    a: Progress 180
            130000ms  a hangup
            130000ms    a: Ended: HungUp
            130000ms    a>b CANCEL 1
            130010ms    b>a 200 (1 CANCEL)
            130010ms    b: Ended by CANCEL
            130010ms    b>a 487 (1 INVITE)
            130020ms    a>b ACK 1
        "#]],
    );
}

#[test]
fn the_callee_rejects_by_hanging_up() {
    check(
        "0 a invite\n 100 b respond 180\n 200 b hangup",
        expect![[r#"
            0ms       a invite
            0ms         a>b INVITE 1 +sdp
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE)
            110ms       a: Progress 180
            200ms     b hangup
            200ms       b: Ended: HungUp
            200ms       b>a 480 (1 INVITE)
            210ms       a>b ACK 1
            210ms       a: Ended: refused 480
        "#]],
    );
}

#[test]
fn requests_out_of_place() {
    check(
        "0 a require 100rel
         100 a bye-stranger
         200 a options
         250 b respond 200
         300 b respond 200",
        expect![[r#"
            0ms       a require 100rel
            0ms         a>b INVITE 1
            10ms        b>a 420 (1 INVITE)100rel
            20ms        a>b ACK 1
            20ms        a: Ended: refused 420
            100ms     a bye-stranger
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

#[test]
fn no_room_for_another_leg() {
    check_with(
        1,
        "0 a invite\n 100 b respond 200\n 200 a invite\n 300 b invite\n 400 b hangup",
        expect![[r#"
        0ms       a invite
        0ms         a>b INVITE 1 +sdp
        10ms        b: Invited
        100ms     b respond 200
        100ms       b>a 200 (1 INVITE)
        110ms       a: Answered
        110ms       a>b ACK 1
        120ms       b: Acked
        200ms     a invite
        200ms       a>b INVITE 1 +sdp
        210ms       b: overload
        210ms       b>a 503 (1 INVITE)
        220ms       a>b ACK 1
        220ms       a: Ended: refused 503
        300ms     b invite
        300ms       b: too many transactions or legs are open
        400ms     b hangup
        400ms       b: Ended: HungUp
        400ms       b>a BYE 1
        410ms       a: Ended by BYE
        410ms       a>b 200 (1 BYE)
    "#]],
    );
}

#[test]
fn no_way_to_the_peer() {
    check(
        "0 lose INVITE\n 0 a invite\n 0 a unreachable\n 10 a options\n 10 a unreachable",
        expect![[r#"
        0ms       a invite
        0ms         a>b INVITE 1 +sdp   (lost)
        0ms       a unreachable
        0ms         a: Ended: Unreachable
        10ms      a options
        10ms        a>b OPTIONS 1
        10ms      a unreachable
        10ms        a: Unanswered
        20ms        b: OPTIONS request
        3520ms      b>a 100 (1 OPTIONS)
    "#]],
    );
}
