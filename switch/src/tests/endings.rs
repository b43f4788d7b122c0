//! How calls end, and when their records are output.

use expect_test::expect;

use crate::tests::ladder::{check, play};

#[test]
fn cancel_ends_every_fork() {
    check(
        "call 4000 PCMU sendrecv -> 2
         100 ringing 0 180
         2000 cancel
         2010 failed 0 487
         2020 report 0
         2030 failed 1 487",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 180
                      180 caller
            2000 cancel
                      CANCEL fork 0 ORIGINATOR_CANCEL
                      media 1 close
                      CANCEL fork 1 ORIGINATOR_CANCEL
                      media 2 close
                      487 caller -
                      media 0 close
            2010 failed 0 487
            2020 report 0
                      record ORIGINATOR_CANCEL answered - billsec 0 bridge - status - codecs -/- verdict unanswered
            2030 failed 1 487
        "#]],
    );
}

#[test]
fn cancel_crosses_the_answer() {
    check(
        "call 4000 PCMU sendrecv -> 1
         2000 cancel
         2001 answered 0 5000 PCMU sendrecv
         2010 report 1
         2010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            2000 cancel
                      CANCEL fork 0 ORIGINATOR_CANCEL
                      media 1 close
                      487 caller -
                      media 0 close
            2001 answered 0 5000 PCMU sendrecv
                      BYE fork 0 LOSE_RACE
            2010 report 1
            2010 report 0
                      record ORIGINATOR_CANCEL answered - billsec 0 bridge - status - codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 1
         2000 answered 0 5000 PCMU sendrecv
         2001 cancel
         2002 journalled
         2010 report 1
         2010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            2000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            2001 cancel
                      BYE fork 0 ORIGINATOR_CANCEL
                      487 caller -
                      media 1 close
                      media 0 close
            2002 journalled
            2010 report 1
            2010 report 0
                      record ORIGINATOR_CANCEL answered - billsec 0 bridge - status 200 codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 1
         2000 answered 0 5000 PCMU sendrecv
         2001 journalled
         2002 cancel",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            2000 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            2001 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            2002 cancel
        "#]],
    );
}

/// A phone that the network refuses counts as not registered; one that answers 503 counts as failed (RFC 3261 §16.7).
#[test]
fn an_unreachable_phone_is_unavailable() {
    let told = |steps: &str| play(&format!("call 4000 PCMU sendrecv -> 2\n{steps}\n300 report 0"));
    let unreachable = told("100 unreached 0 503\n200 unreached 1 503");
    assert!(unreachable.contains("480 caller NO_USER_RESPONSE"), "{unreachable}");
    let refused = told("100 unreached 0 503\n200 failed 1 503");
    assert!(refused.contains("500 caller NORMAL_TEMPORARY_FAILURE"), "{refused}");
    let busy = told("100 unreached 0 503\n200 failed 1 486");
    assert!(busy.contains("486 caller USER_BUSY"), "{busy}");
}

#[test]
fn refusals_reach_the_caller_as_what_they_mean() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 failed 0 486
         110 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 failed 0 486
                      media 1 close
                      486 caller USER_BUSY
                      media 0 close
            110 report 0
                      record USER_BUSY answered - billsec 0 bridge USER_BUSY status 486 codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 2
         100 failed 0 404
         200 failed 1 486
         210 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            100 failed 0 404
                      media 1 close
            200 failed 1 486
                      media 2 close
                      486 caller USER_BUSY
                      media 0 close
            210 report 0
                      record USER_BUSY answered - billsec 0 bridge USER_BUSY status 486 codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 2
         100 failed 0 603
         210 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            100 failed 0 603
                      media 1 close
                      CANCEL fork 1 CALL_REJECTED
                      media 2 close
                      603 caller CALL_REJECTED
                      media 0 close
            210 report 0
                      record CALL_REJECTED answered - billsec 0 bridge CALL_REJECTED status 603 codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 1
         100 failed 0 302
         210 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 failed 0 302
                      media 1 close
                      480 caller REDIRECTION_TO_NEW_DESTINATION
                      media 0 close
            210 report 0
                      record REDIRECTION_TO_NEW_DESTINATION answered - billsec 0 bridge REDIRECTION_TO_NEW_DESTINATION status 302 codecs -/- verdict unanswered
        "#]],
    );
}

#[test]
fn nobody_answers() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 ringing 0 180
         60000 timeout
         60010 failed 0 487
         60020 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 180
                      180 caller
            60000 timeout
                      CANCEL fork 0 NO_ANSWER
                      media 1 close
                      480 caller NO_ANSWER
                      media 0 close
            60010 failed 0 487
            60020 report 0
                      record NO_ANSWER answered - billsec 0 bridge - status - codecs -/- verdict unanswered
        "#]],
    );
}

#[test]
fn a_missing_report_delays_the_record_and_no_more() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 failed 0 486
         2099 timeout
         2100 timeout
         2200 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 failed 0 486
                      media 1 close
                      486 caller USER_BUSY
                      media 0 close
            2099 timeout
            2100 timeout
                      record USER_BUSY answered - billsec 0 bridge USER_BUSY status 486 codecs -/- verdict unanswered
            2200 report 0
        "#]],
    );
}

/// The far leg's report does not arrive: the record is output without it.
#[test]
fn a_report_that_does_not_come_delays_the_record_for_two_seconds() {
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         3000 bye caller
         3010 report 0 PCMU
         4999 timeout
         5000 timeout
         5010 report 1",
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
            3000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            3010 report 0 PCMU
            4999 timeout
            5000 timeout
                      record NORMAL_CLEARING answered 1970-01-01T00:00:01.010Z billsec 1 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
            5010 report 1
        "#]],
    );
}

#[test]
fn both_hang_up_at_once() {
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         2000 bye caller
         2001 bye 0
         2010 report 1
         2010 report 0",
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
            2000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            2001 bye 0
            2010 report 1
            2010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:01.010Z billsec 0 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn a_draining_engine_ends_what_it_finds() {
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 end
         1010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            1000 end
                      CANCEL fork 0 NORMAL_CLEARING
                      media 1 close
                      503 caller NORMAL_CLEARING
                      media 0 close
            1010 report 0
                      record NORMAL_CLEARING answered - billsec 0 bridge - status - codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 1
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         2500 end
         2510 report 1
         2510 report 0",
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
            2500 end
                      BYE fork 0 NORMAL_CLEARING
                      BYE caller NORMAL_CLEARING
                      media 1 close
                      media 0 close
            2510 report 1
            2510 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:01.010Z billsec 1 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

/// The 487 of a cancelled phone does not end an offer between the connected parties.
#[test]
fn a_cancelled_fork_ends_no_offer_of_the_call() {
    check(
        "call 4000 PCMU sendrecv -> 2
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         2000 offer caller 4000 PCMU sendonly
         2010 failed 1 487
         2050 offered 0 5000 PCMU recvonly",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            1000 answered 0 5000 PCMU sendrecv
                      CANCEL fork 1 LOSE_RACE
                      media 2 close
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
            2010 failed 1 487
            2050 offered 0 5000 PCMU recvonly
                      media 0 party 4000 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
        "#]],
    );
}

/// Another phone begins to take over a ringing call, but the called phone answers first: its later end ends the call.
#[test]
fn a_pick_up_that_failed_keeps_no_party_waiting() {
    check(
        "call 4000 PCMU sendrecv -> 1
         500 refers 0
         1000 answered 0 5000 PCMU sendrecv
         1010 journalled
         5000 bye 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            500 refers 0
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
            5000 bye 0
                      BYE caller NORMAL_CLEARING
                      media 1 close
                      media 0 close
        "#]],
    );
}
