//! Ladder tests of calls: how they begin, how they end, and messages that cross or are lost.

use expect_test::expect;

use crate::ua::ladder::{check, check_with};

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
            2000ms      a>b INFO 2 +note
            2010ms      b: INFO request of the leg
            2050ms    b respond 200
            2050ms      b>a 200 (2 INFO)
            2060ms      a: InfoAnswered 200
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
