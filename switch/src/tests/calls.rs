//! Calls between two phones.

use std::time::Duration;

use expect_test::expect;

use crate::call::Call;
use crate::io::{MediaCommand, Output};
use crate::tests::ladder::{Counting, any_instant, check, description, drain, forks, input, setup};

#[test]
fn a_call_is_answered_and_hung_up() {
    check(
        "call 4000 PCMU,PCMA sendrecv -> 1
         100 ringing 0 180
         3000 answered 0 5000 PCMA sendrecv
         3010 journalled
         3050 ack caller
         63900 bye caller
         63910 report 1
         63910 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,PCMA,opus,G722 sendrecv v1]
            100 ringing 0 180
                      180 caller
            3000 answered 0 5000 PCMA sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            3010 journalled
                      media 0 answered
                      200 caller [20000 PCMA sendrecv v1]
            3050 ack caller
            63900 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            63910 report 1
            63910 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:03.010Z billsec 60 bridge NORMAL_CLEARING status 200 codecs PCMA/PCMA verdict -
        "#]],
    );
}

#[test]
fn the_record_names_the_codec_that_was_heard() {
    check(
        "call 4000 PCMU,PCMA sendrecv -> 1
         100 answered 0 5000 PCMU,PCMA sendrecv
         110 journalled
         2000 bye caller
         2010 report 1
         2010 report 0 PCMA",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,PCMA,opus,G722 sendrecv v1]
            100 answered 0 5000 PCMU,PCMA sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU,PCMA sendrecv v1]
            2000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            2010 report 1
            2010 report 0 PCMA
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 1 bridge NORMAL_CLEARING status 200 codecs PCMA/PCMA verdict -
        "#]],
    );
}

#[test]
fn early_media_is_heard_and_the_answer_may_repeat_it() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 ringing 0 183 5000 PCMU sendrecv
         3000 answered 0
         3010 journalled
         9000 bye 0
         9010 report 1
         9010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 183 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      183 caller [20000 PCMU sendrecv v1]
            3000 answered 0
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            3010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            9000 bye 0
                      BYE caller NORMAL_CLEARING
                      media 1 close
                      media 0 close
            9010 report 1
            9010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:03.010Z billsec 5 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

/// The binding of an unreachable phone does not delay the answer of a reachable one.
#[test]
fn a_fork_without_any_response_delays_no_other_after_four_seconds() {
    check(
        "call 4000 PCMU sendrecv -> 3
         100 ringing 1 180
         2000 failed 1 486
         4000 timeout
         4000 unheard 0
         4010 failed 2 480
         4020 report 3
         4020 report 2
         4020 report 1
         4020 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 2 [20006 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 1 180
                      180 caller
            2000 failed 1 486
                      media 2 close
            4000 timeout
                      is fork 0 heard
                      is fork 2 heard
            4000 unheard 0
            4010 failed 2 480
                      media 3 close
                      CANCEL fork 0 USER_BUSY
                      media 1 close
                      486 caller USER_BUSY
                      media 0 close
            4020 report 3
            4020 report 2
            4020 report 1
            4020 report 0
                      record USER_BUSY answered - billsec 0 bridge USER_BUSY status 486 codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 2
         4000 timeout
         4000 unheard 0
         5000 ringing 0 180
         6000 failed 1 486
         7000 answered 0 5000 PCMU sendrecv
         7010 journalled
         8000 bye caller
         8010 report 1
         8010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            4000 timeout
                      is fork 0 heard
                      is fork 1 heard
            4000 unheard 0
            5000 ringing 0 180
                      180 caller
            6000 failed 1 486
                      media 2 close
            7000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            7010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            8000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            8010 report 1
            8010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:07.010Z billsec 0 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn the_first_fork_to_answer_wins_and_a_late_answer_is_hung_up() {
    check(
        "call 4000 PCMU sendrecv -> 3
         100 ringing 0 180
         120 ringing 1 183 5002 PCMU sendrecv
         130 ringing 2 180
         3000 answered 0 5000 PCMU sendrecv
         3005 answered 2 5004 PCMU sendrecv
         3010 journalled
         3020 failed 1 487
         5000 bye caller
         5010 report 1
         5010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 2 [20006 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 180
                      180 caller
            120 ringing 1 183 5002 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 5002 receive true send true
                      media 0 to 2
                      media 2 to 0
                      183 caller [20000 PCMU sendrecv v1]
            130 ringing 2 180
            3000 answered 0 5000 PCMU sendrecv
                      CANCEL fork 1 LOSE_RACE
                      media 2 close
                      CANCEL fork 2 LOSE_RACE
                      media 3 close
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            3005 answered 2 5004 PCMU sendrecv
                      BYE fork 2 LOSE_RACE
            3010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            3020 failed 1 487
            5000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            5010 report 1
            5010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:03.010Z billsec 1 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

/// Without a common codec the caller gets 488.
#[test]
fn without_a_codec_in_common_nothing_rings() {
    check(
        "call 4000 L16 sendrecv -> 1",
        expect![[r#"
        stillborn 488 ports 2
    "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 G729 sendrecv
         110 report 1
         110 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 G729 sendrecv
                      BYE fork 0 INCOMPATIBLE_DESTINATION
                      media 1 close
                      488 caller INCOMPATIBLE_DESTINATION
                      media 0 close
            110 report 1
            110 report 0
                      record INCOMPATIBLE_DESTINATION answered - billsec 0 bridge INCOMPATIBLE_DESTINATION status 200 codecs -/- verdict unanswered
        "#]],
    );
}

#[test]
fn hold_reaches_the_other_party_and_an_address_does_not() {
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         2000 offer caller 4000 PCMU sendonly
         2050 offered 0 5000 PCMU recvonly
         3000 offer caller 4002 PCMU sendonly
         4000 offer caller 4002 PCMU sendrecv
         4050 offered 0 5000 PCMU sendrecv
         5000 offer 0 5008 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            2000 offer caller 4000 PCMU sendonly
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            2050 offered 0 5000 PCMU recvonly
                      media 0 party 4000 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
            3000 offer caller 4002 PCMU sendonly
                      media 0 party 4002 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
            4000 offer caller 4002 PCMU sendrecv
                      re-INVITE fork 0 [20002 PCMU sendrecv v3]
            4050 offered 0 5000 PCMU sendrecv
                      media 0 party 4002 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv v3]
            5000 offer 0 5008 PCMU sendrecv
                      media 0 party 4002 receive true send true
                      media 1 party 5008 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 PCMU sendrecv v3]
        "#]],
    );
}

/// RFC 3261 §14.2: a re-INVITE without an offer requests a new one. Some exchanges end a hold in this way, and the
/// terms of the ACK's answer must be offered to the other party.
#[test]
fn a_reinvite_without_an_offer_ends_the_hold_for_both_parties() {
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         2000 offer caller 4000 PCMU inactive
         2050 offered 0 5000 PCMU inactive
         3000 offer caller
         3010 ack caller 4002 PCMU sendonly
         3050 offered 0 5000 PCMU recvonly
         3500 offer 0
         3510 ack 0 5000 PCMU recvonly
         4000 offer caller
         4010 ack caller 4000 PCMU sendrecv
         4050 offered 0 491
         5000 due 0
         5050 offered 0 5000 PCMU sendrecv
         6000 offer caller
         6010 ack caller 4000 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            2000 offer caller 4000 PCMU inactive
                      re-INVITE fork 0 [20002 PCMU inactive v2]
            2050 offered 0 5000 PCMU inactive
                      media 0 party 4000 receive false send false
                      media 1 party 5000 receive false send false
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU inactive v2]
            3000 offer caller
                      re-INVITE caller 200 [20000 PCMU sendrecv v3]
            3010 ack caller 4002 PCMU sendonly
                      media 0 party 4002 receive true send false
                      media 1 party 5000 receive false send false
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 [20002 PCMU sendonly v3]
            3050 offered 0 5000 PCMU recvonly
                      media 0 party 4002 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
            3500 offer 0
                      re-INVITE fork 0 200 [20002 PCMU sendonly v3]
            3510 ack 0 5000 PCMU recvonly
                      media 0 party 4002 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
            4000 offer caller
                      re-INVITE caller 200 [20000 PCMU sendrecv v3]
            4010 ack caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 [20002 PCMU sendrecv v4]
            4050 offered 0 491
            5000 due 0
                      re-INVITE fork 0 [20002 PCMU sendrecv v4]
            5050 offered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
            6000 offer caller
                      re-INVITE caller 200 [20000 PCMU sendrecv v3]
            6010 ack caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

/// A fresh offer respects the hold of the other party.
#[test]
fn a_fresh_offer_does_not_end_the_hold_of_the_other_party() {
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         2000 offer 0 5000 PCMU sendonly
         2050 offered caller 4000 PCMU recvonly
         3000 offer caller
         3010 ack caller 4000 PCMU recvonly
         4000 offer caller
         4010 ack caller
         5000 offer caller
         5010 ack caller 4000 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            2000 offer 0 5000 PCMU sendonly
                      re-INVITE caller [20000 PCMU sendonly v2]
            2050 offered caller 4000 PCMU recvonly
                      media 0 party 4000 receive false send true
                      media 1 party 5000 receive true send false
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 PCMU recvonly v2]
            3000 offer caller
                      re-INVITE caller 200 [20000 PCMU sendonly v2]
            3010 ack caller 4000 PCMU recvonly
                      media 0 party 4000 receive false send true
                      media 1 party 5000 receive true send false
                      media 0 to 1
                      media 1 to 0
            4000 offer caller
                      re-INVITE caller 200 [20000 PCMU sendonly v2]
            4010 ack caller
            5000 offer caller
                      re-INVITE caller 200 [20000 PCMU sendonly v2]
            5010 ack caller 4000 PCMU sendrecv
                      media 0 party 4000 receive false send true
                      media 1 party 5000 receive true send false
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

/// If the other party's dialog has ended when the new terms are passed on, the call ends (RFC 5057 §5.1).
#[test]
fn an_offer_passed_on_after_the_ack_that_finds_no_dialog_ends_the_call() {
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         3000 offer caller
         3010 ack caller 4000 PCMU sendonly
         3050 offered 0 481
         3060 report 0
         3060 report 1",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            3000 offer caller
                      re-INVITE caller 200 [20000 PCMU sendrecv v1]
            3010 ack caller 4000 PCMU sendonly
                      media 0 party 4000 receive true send false
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            3050 offered 0 481
                      BYE caller RECOVERY_ON_TIMER_EXPIRE
                      media 1 close
                      media 0 close
            3060 report 0
            3060 report 1
                      record RECOVERY_ON_TIMER_EXPIRE answered 1970-01-01T00:00:01.010Z billsec 2 bridge RECOVERY_ON_TIMER_EXPIRE status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn offers_that_cross_are_told_to_wait() {
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         2000 offer caller 4000 PCMU sendonly
         2010 offer 0 5000 PCMU sendonly
         2020 offered 0 491
         3000 offer caller 4000 PCMU inactive
         3010 offered 0 481
         3020 report 1
         3020 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            2000 offer caller 4000 PCMU sendonly
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            2010 offer 0 5000 PCMU sendonly
                      re-INVITE fork 0 491
            2020 offered 0 491
                      re-INVITE caller 491
            3000 offer caller 4000 PCMU inactive
                      re-INVITE fork 0 [20002 PCMU inactive v3]
            3010 offered 0 481
                      re-INVITE caller 481
                      BYE caller RECOVERY_ON_TIMER_EXPIRE
                      media 1 close
                      media 0 close
            3020 report 1
            3020 report 0
                      record RECOVERY_ON_TIMER_EXPIRE answered 1970-01-01T00:00:01.010Z billsec 2 bridge RECOVERY_ON_TIMER_EXPIRE status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn a_caller_without_an_offer_gets_ours_and_answers_with_the_ack() {
    check(
        "call - -> 1
         1000 answered 0 5000 PCMA,PCMU sendrecv
         1010 journalled
         1050 ack caller 4000 PCMA sendrecv
         2000 bye 0
         2010 report 1
         2010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            1000 answered 0 5000 PCMA,PCMU sendrecv
                      media 1 party 5000 receive true send true
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMA sendrecv v1]
            1050 ack caller 4000 PCMA sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0 renumbered
                      media 1 from PCMU to PCMA
            2000 bye 0
                      BYE caller NORMAL_CLEARING
                      media 1 close
                      media 0 close
            2010 report 1
            2010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:01.010Z billsec 0 bridge NORMAL_CLEARING status 200 codecs PCMA/PCMA verdict -
        "#]],
    );
    check(
        "call - -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         1050 ack caller
         1060 report 1
         1060 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      media 1 party 5000 receive true send true
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            1050 ack caller
                      BYE fork 0 INCOMPATIBLE_DESTINATION
                      BYE caller INCOMPATIBLE_DESTINATION
                      media 1 close
                      media 0 close
            1060 report 1
            1060 report 0
                      record INCOMPATIBLE_DESTINATION answered 1970-01-01T00:00:01.010Z billsec 0 bridge INCOMPATIBLE_DESTINATION status 200 codecs -/PCMU verdict -
        "#]],
    );
}

/// Random inputs in any order: no panic, at most one record, and every port is closed once.
#[test]
fn fuzz_any_order_of_inputs_ends_in_one_record() {
    use proptest::prelude::*;
    let steps = prop::sample::select(vec![
        "ringing 0 180",
        "ringing 1 183 5002 PCMU sendrecv",
        "answered 0 5000 PCMU sendrecv",
        "answered 1",
        "answered 1 5002 PCMA sendrecv",
        "failed 0 486",
        "failed 1 603",
        "failed 7 404",
        "cancel",
        "journalled",
        "ack caller",
        "ack caller 4000 PCMU sendrecv",
        "bye caller",
        "bye 0",
        "bye 1",
        "offer caller 4000 PCMU sendonly",
        "offer 0 5000 PCMU inactive",
        "offer 1",
        "offered 0 5000 PCMU recvonly",
        "offered caller 491",
        "offered caller 4000 PCMU sendrecv",
        "offered 0 481",
        "report 0",
        "report 1",
        "timeout",
        "end",
    ]);
    proptest!(|(steps in prop::collection::vec(steps, 0..24), offer in any::<bool>())| {
        let start = any_instant();
        let offer = offer.then(|| description("4000 PCMU sendrecv"));
        let mut ports = Counting { next: 0, left: 8 };
        let mut call = Call::new(start, setup(offer, forks(2)));
        drain(&mut call, start, &mut ports);
        let (mut records, mut closed) = (0, Vec::new());
        let ends = ["end", "report 0", "timeout"];
        for (at, step) in steps.iter().copied().chain(ends).enumerate() {
            let late = if step == "timeout" { 200 } else { 0 };
            let now = start + Duration::from_secs(at as u64 + late);
            call.handle_input(now, input(step));
            for output in drain(&mut call, now, &mut ports) {
                match output {
                    Output::Ended(_) => records += 1,
                    Output::Media(port, MediaCommand::Close) => closed.push(port),
                    _ => {}
                }
            }
        }
        prop_assert_eq!(records, 1);
        closed.sort();
        prop_assert_eq!(closed, call.ports().collect::<Vec<_>>());
        prop_assert!(call.is_over());
    });
}
