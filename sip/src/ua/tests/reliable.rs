//! Reliable provisional responses (RFC 3262).

use expect_test::expect;

use crate::ua::ladder::check;

#[test]
fn each_response_waits_for_the_prack_of_the_one_before() {
    check(
        "0 b extension 100rel
         0 a require 100rel
         100 b respond 180
         105 b respond 183
         107 b respond 200
         200 a ack
         300 a hangup",
        expect![[r#"
            0ms       b extension 100rel
            0ms       a require 100rel
            0ms         a>b INVITE 1
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE) +RSeq
            105ms     b respond 183
            107ms     b respond 200
            110ms       a: Progress 180
            110ms       a>b PRACK 2 +RAck
            120ms       b>a 200 (2 PRACK)
            120ms       b>a 200 (1 INVITE)
            130ms       a: Answered
            200ms     a ack
            200ms       a>b ACK 1 +sdp
            210ms       b: Acked +sdp
            300ms     a hangup
            300ms       a: Ended: HungUp
            300ms       a>b BYE 3
            310ms       b: Ended by BYE
            310ms       b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn lost_responses_and_pracks_are_repeated() {
    check(
        "0 b extension 100rel
         0 lose 180
         0 lose 180
         0 lose PRACK
         0 lose 200 (2 PRACK)
         0 a require 100rel
         100 b respond 180
         5000 b respond 200
         5100 a ack
         5200 a hangup",
        expect![[r#"
            0ms       b extension 100rel
            0ms       a require 100rel
            0ms         a>b INVITE 1
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE) +RSeq   (lost)
            500ms       a>b INVITE 1
            510ms       b>a 180 (1 INVITE) +RSeq   (lost)
            600ms       b>a 180 (1 INVITE) +RSeq
            610ms       a: Progress 180
            610ms       a>b PRACK 2 +RAck   (lost)
            1110ms      a>b PRACK 2 +RAck
            1120ms      b>a 200 (2 PRACK)   (lost)
            2110ms      a>b PRACK 2 +RAck
            2120ms      b>a 200 (2 PRACK)
            5000ms    b respond 200
            5000ms      b>a 200 (1 INVITE)
            5010ms      a: Answered
            5100ms    a ack
            5100ms      a>b ACK 1 +sdp
            5110ms      b: Acked +sdp
            5200ms    a hangup
            5200ms      a: Ended: HungUp
            5200ms      a>b BYE 3
            5210ms      b: Ended by BYE
            5210ms      b>a 200 (3 BYE)
        "#]],
    );
}

#[test]
fn without_a_prack_the_invite_is_refused() {
    check(
        "0 b extension 100rel
         0 lose PRACK
         0 a require 100rel
         100 b respond 183
         115 cut all
         200 b respond 200
         40000 a hangup",
        expect![[r#"
            0ms       b extension 100rel
            0ms       a require 100rel
            0ms         a>b INVITE 1
            10ms        b: Invited
            100ms     b respond 183
            100ms       b>a 183 (1 INVITE) +RSeq
            110ms       a: Progress 183
            110ms       a>b PRACK 2 +RAck   (lost)
            200ms     b respond 200
            600ms       b>a 183 (1 INVITE) +RSeq   (lost)
            610ms       a>b PRACK 2 +RAck   (lost)
            1600ms      b>a 183 (1 INVITE) +RSeq   (lost)
            1610ms      a>b PRACK 2 +RAck   (lost)
            3600ms      b>a 183 (1 INVITE) +RSeq   (lost)
            3610ms      a>b PRACK 2 +RAck   (lost)
            7600ms      b>a 183 (1 INVITE) +RSeq   (lost)
            7610ms      a>b PRACK 2 +RAck   (lost)
            11610ms     a>b PRACK 2 +RAck   (lost)
            15600ms     b>a 183 (1 INVITE) +RSeq   (lost)
            15610ms     a>b PRACK 2 +RAck   (lost)
            19610ms     a>b PRACK 2 +RAck   (lost)
            23610ms     a>b PRACK 2 +RAck   (lost)
            27610ms     a>b PRACK 2 +RAck   (lost)
            31600ms     b>a 183 (1 INVITE) +RSeq   (lost)
            31610ms     a>b PRACK 2 +RAck   (lost)
            32100ms     b: Ended: PrackMissing
            32100ms     b>a 504 (1 INVITE)   (lost)
            32600ms     b>a 504 (1 INVITE)   (lost)
            33600ms     b>a 504 (1 INVITE)   (lost)
            35600ms     b>a 504 (1 INVITE)   (lost)
            39600ms     b>a 504 (1 INVITE)   (lost)
            40000ms   a hangup
            40000ms     a: Ended: HungUp
            40000ms     a>b CANCEL 1   (lost)
            40500ms     a>b CANCEL 1   (lost)
            41500ms     a>b CANCEL 1   (lost)
            43500ms     a>b CANCEL 1   (lost)
            43600ms     b>a 504 (1 INVITE)   (lost)
            47500ms     a>b CANCEL 1   (lost)
            47600ms     b>a 504 (1 INVITE)   (lost)
            51500ms     a>b CANCEL 1   (lost)
            51600ms     b>a 504 (1 INVITE)   (lost)
            55500ms     a>b CANCEL 1   (lost)
            55600ms     b>a 504 (1 INVITE)   (lost)
            59500ms     a>b CANCEL 1   (lost)
            59600ms     b>a 504 (1 INVITE)   (lost)
            63500ms     a>b CANCEL 1   (lost)
            63600ms     b>a 504 (1 INVITE)   (lost)
            67500ms     a>b CANCEL 1   (lost)
            71500ms     a>b CANCEL 1   (lost)
        "#]],
    );
}

#[test]
fn refusals_and_cancels_do_not_wait() {
    check(
        "0 b extension 100rel
         0 lose PRACK
         0 a require 100rel
         100 b respond 183
         115 b respond 486",
        expect![[r#"
            0ms       b extension 100rel
            0ms       a require 100rel
            0ms         a>b INVITE 1
            10ms        b: Invited
            100ms     b respond 183
            100ms       b>a 183 (1 INVITE) +RSeq
            110ms       a: Progress 183
            110ms       a>b PRACK 2 +RAck   (lost)
            115ms     b respond 486
            115ms       b: Ended: HungUp
            115ms       b>a 486 (1 INVITE)
            125ms       a>b ACK 1
            125ms       a: Ended: refused 486
            610ms       a>b PRACK 2 +RAck
            620ms       b>a 481 (2 PRACK)
        "#]],
    );
    check(
        "0 b extension 100rel
         0 lose PRACK
         0 a require 100rel
         100 b respond 183
         105 b respond 200
         115 a hangup",
        expect![[r#"
            0ms       b extension 100rel
            0ms       a require 100rel
            0ms         a>b INVITE 1
            10ms        b: Invited
            100ms     b respond 183
            100ms       b>a 183 (1 INVITE) +RSeq
            105ms     b respond 200
            110ms       a: Progress 183
            110ms       a>b PRACK 2 +RAck   (lost)
            115ms     a hangup
            115ms       a: Ended: HungUp
            115ms       a>b CANCEL 1
            125ms       b>a 200 (1 CANCEL)
            125ms       b: Ended by CANCEL
            125ms       b>a 487 (1 INVITE)
            135ms       a>b ACK 1
            610ms       a>b PRACK 2 +RAck
            620ms       b>a 481 (2 PRACK)
        "#]],
    );
}

#[test]
fn a_prack_of_no_response_is_refused() {
    check(
        "0 b extension 100rel
         0 a require 100rel
         100 b respond 180
         200 a raw PRACK 9
         300 b respond 200
         400 a ack
         450 a raw PRACK 10
         500 b hangup",
        expect![[r#"
            0ms       b extension 100rel
            0ms       a require 100rel
            0ms         a>b INVITE 1
            10ms        b: Invited
            100ms     b respond 180
            100ms       b>a 180 (1 INVITE) +RSeq
            110ms       a: Progress 180
            110ms       a>b PRACK 2 +RAck
            120ms       b>a 200 (2 PRACK)
            200ms     a raw PRACK 9
            210ms       b>a 481 (9 PRACK)
            300ms     b respond 200
            300ms       b>a 200 (1 INVITE)
            310ms       a: Answered
            400ms     a ack
            400ms       a>b ACK 1 +sdp
            410ms       b: Acked +sdp
            450ms     a raw PRACK 10
            460ms       b>a 481 (10 PRACK)
            500ms     b hangup
            500ms       b: Ended: HungUp
            500ms       b>a BYE 1
            510ms       a: Ended by BYE
            510ms       a>b 200 (1 BYE)
        "#]],
    );
}
