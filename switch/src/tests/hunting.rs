//! Calls that try one trunk after another.

use std::time::Duration;

use expect_test::expect;
use proptest::prelude::*;

use crate::call::Call;
use crate::io::{Callees, MediaCommand, Output};
use crate::tests::ladder::{Counting, any_instant, attempt, check, description, drain, input, play, setup};

#[test]
fn the_second_trunk_takes_what_the_first_cannot() {
    check(
        "call 4000 PCMU,PCMA sendrecv -> trunks
         1 attempt 7
         200 failed 0 503
         201 attempt 8
         900 ringing 1 180
         3000 answered 1 5000 PCMA sendrecv
         3010 journalled
         13010 bye 1
         13020 report 2
         13020 report 0",
        expect![[r#"
            1 attempt 7
                      INVITE fork 0 [20002 PCMU,PCMA,opus,G722 sendrecv v1]
            200 failed 0 503
                      media 1 close
                      next after 503
            201 attempt 8
                      INVITE fork 1 [20004 PCMU,PCMA,opus,G722 sendrecv v1]
            900 ringing 1 180
                      180 caller
            3000 answered 1 5000 PCMA sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 5000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      media 2 answered
                      journal
            3010 journalled
                      media 0 answered
                      200 caller [20000 PCMA sendrecv v1]
            13010 bye 1
                      BYE caller NORMAL_CLEARING
                      media 2 close
                      media 0 close
            13020 report 2
            13020 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:03.010Z billsec 10 bridge NORMAL_CLEARING status 200 codecs PCMA/PCMA verdict - trunk 8
        "#]],
    );
}

#[test]
fn what_is_said_of_the_number_is_not_asked_of_another_trunk() {
    for (status, told) in [(404, "404"), (486, "486"), (603, "603"), (407, "480"), (302, "480")] {
        let script =
            format!("call 4000 PCMU sendrecv -> trunks\n1 attempt 7\n200 failed 0 {status}\n210 report 0");
        let seen = play(&script);
        assert!(seen.contains(&format!("{told} caller")) && !seen.contains("next"), "{seen}");
        assert!(seen.contains(&format!("status {status} ")), "{seen}");
    }
}

#[test]
fn silence_and_a_refusal_of_the_network_are_no_response_of_the_far_end() {
    check(
        "call 4000 PCMU sendrecv -> trunks
         1 attempt 7
         6001 unreached 0 408
         6002 attempt 8
         6003 unreached 1 503
         6004 exhausted
         6010 report 2
         6010 report 0",
        expect![[r#"
            1 attempt 7
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            6001 unreached 0 408
                      media 1 close
                      next after 408
            6002 attempt 8
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            6003 unreached 1 503
                      media 2 close
                      next after 503
            6004 exhausted
                      500 caller NORMAL_TEMPORARY_FAILURE
                      media 0 close
            6010 report 2
            6010 report 0
                      record NORMAL_TEMPORARY_FAILURE answered - billsec 0 bridge - status - codecs -/- verdict unanswered trunk 8
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> trunks
         1 exhausted
         10 report 0",
        expect![[r#"
            1 exhausted
                      503 caller NETWORK_OUT_OF_ORDER
                      media 0 close
            10 report 0
                      record NETWORK_OUT_OF_ORDER answered - billsec 0 bridge - status - codecs -/- verdict unanswered
        "#]],
    );
}

/// The record describes the last attempt, without results of the one before.
#[test]
fn the_last_attempt_is_the_one_on_record() {
    check(
        "call 4000 PCMU sendrecv -> trunks
         1 attempt 7
         10 failed 0 500
         11 attempt 8
         6011 unreached 1 408
         6012 exhausted
         6020 report 0",
        expect![[r#"
            1 attempt 7
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            10 failed 0 500
                      media 1 close
                      next after 500
            11 attempt 8
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            6011 unreached 1 408
                      media 2 close
                      next after 408
            6012 exhausted
                      408 caller RECOVERY_ON_TIMER_EXPIRE
                      media 0 close
            6020 report 0
                      record RECOVERY_ON_TIMER_EXPIRE answered - billsec 0 bridge - status - codecs -/- verdict unanswered trunk 8
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> trunks
         1 attempt 7
         10 failed 0 500
         11 attempt 8
         20 failed 1 502
         21 exhausted
         30 report 0",
        expect![[r#"
            1 attempt 7
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            10 failed 0 500
                      media 1 close
                      next after 500
            11 attempt 8
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            20 failed 1 502
                      media 2 close
                      next after 502
            21 exhausted
                      502 caller NETWORK_OUT_OF_ORDER
                      media 0 close
            30 report 0
                      record NETWORK_OUT_OF_ORDER answered - billsec 0 bridge NETWORK_OUT_OF_ORDER status 502 codecs -/- verdict unanswered trunk 8
        "#]],
    );
}

/// The caller has heard the announcement already, and would hear it again.
#[test]
fn after_early_media_no_other_trunk_is_tried() {
    check(
        "call 4000 PCMU sendrecv -> trunks
         1 attempt 7
         100 ringing 0 183 5000 PCMU sendrecv
         4000 failed 0 503
         4010 report 0",
        expect![[r#"
            1 attempt 7
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 183 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      183 caller [20000 PCMU sendrecv v1]
            4000 failed 0 503
                      media 1 close
                      500 caller NORMAL_TEMPORARY_FAILURE
                      media 0 close
            4010 report 0
                      record NORMAL_TEMPORARY_FAILURE answered - billsec 0 bridge NORMAL_TEMPORARY_FAILURE status 503 codecs -/- verdict unanswered trunk 7
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> trunks
         1 attempt 7
         100 ringing 0 180
         4000 failed 0 503
         4001 attempt 8
         4002 ringing 1 183 5002 PCMU sendrecv
         5000 answered 1
         5010 journalled
         6000 bye caller
         6010 report 0",
        expect![[r#"
            1 attempt 7
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 180
                      180 caller
            4000 failed 0 503
                      media 1 close
                      next after 503
            4001 attempt 8
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            4002 ringing 1 183 5002 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 5002 receive true send true
                      media 0 to 2
                      media 2 to 0
                      183 caller [20000 PCMU sendrecv v1]
            5000 answered 1
                      media 0 party 4000 receive true send true
                      media 2 party 5002 receive true send true
                      media 0 to 2
                      media 2 to 0
                      media 2 answered
                      journal
            5010 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            6000 bye caller
                      BYE fork 1 NORMAL_CLEARING
                      media 2 close
                      media 0 close
            6010 report 0
        "#]],
    );
}

#[test]
fn a_caller_that_gives_up_ends_the_search() {
    check(
        "call 4000 PCMU sendrecv -> trunks
         1 attempt 7
         10 failed 0 503
         11 cancel
         12 attempt 8
         13 exhausted
         20 report 0",
        expect![[r#"
            1 attempt 7
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            10 failed 0 503
                      media 1 close
                      next after 503
            11 cancel
                      487 caller -
                      media 0 close
            12 attempt 8
            13 exhausted
            20 report 0
                      record ORIGINATOR_CANCEL answered - billsec 0 bridge NORMAL_TEMPORARY_FAILURE status 503 codecs -/- verdict unanswered trunk 7
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> trunks
         1 attempt 7
         60000 timeout
         60001 failed 0 487
         60010 report 0",
        expect![[r#"
            1 attempt 7
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            60000 timeout
                      CANCEL fork 0 NO_ANSWER
                      media 1 close
                      480 caller NO_ANSWER
                      media 0 close
            60001 failed 0 487
            60010 report 0
                      record NO_ANSWER answered - billsec 0 bridge - status - codecs -/- verdict unanswered trunk 7
        "#]],
    );
}

#[test]
fn nothing_in_common_with_the_world_is_488() {
    check(
        "call 4000 L16 sendrecv -> trunks
         1 attempt 7
         10 report 0",
        expect![[r#"
            1 attempt 7
                      CANCEL fork 0 INCOMPATIBLE_DESTINATION
                      media 1 close
                      488 caller INCOMPATIBLE_DESTINATION
                      media 0 close
            10 report 0
                      record INCOMPATIBLE_DESTINATION answered - billsec 0 bridge - status - codecs -/- verdict unanswered trunk 7
        "#]],
    );
}

/// Random inputs in any order: no panic, at most one record, and every port is closed once.
#[test]
fn fuzz_any_order_of_attempts_ends_in_one_record() {
    let steps = prop::sample::select(vec![
        "attempt",
        "exhausted",
        "ringing 0 180",
        "ringing 0 183 5002 PCMU sendrecv",
        "ringing 1 180",
        "answered 0 5000 PCMU sendrecv",
        "answered 1 5000 PCMU sendrecv",
        "answered 1",
        "failed 0 503",
        "failed 1 486",
        "failed 2 500",
        "unreached 0 408",
        "unreached 1 503",
        "cancel",
        "journalled",
        "ack caller",
        "bye caller",
        "bye 0",
        "bye 1",
        "offer caller 4000 PCMU sendonly",
        "offer 1 5000 PCMU inactive",
        "offered 0 5000 PCMU recvonly",
        "offered 1 481",
        "report 0",
        "timeout",
        "end",
    ]);
    proptest!(|(steps in prop::collection::vec(steps, 0..24), offer in any::<bool>())| {
        let start = any_instant();
        let offer = offer.then(|| description("4000 PCMU sendrecv"));
        let mut ports = Counting { next: 0, left: 100 };
        let mut call = Call::new(start, setup(offer, Callees::InTurn));
        drain(&mut call, start, &mut ports);
        let (mut records, mut closed) = (0, Vec::new());
        for (at, step) in steps.iter().copied().chain(["end", "report 0", "timeout"]).enumerate() {
            let late = if step == "timeout" { 200 } else { 0 };
            let input = if step == "attempt" { attempt(7) } else { input(step) };
            let now = start + Duration::from_secs(at as u64 + late);
            call.handle_input(now, input);
            for output in drain(&mut call, now, &mut ports) {
                match output {
                    Output::Ended(_) => records += 1,
                    Output::Media(port, MediaCommand::Close) => closed.push(port.0),
                    _ => {}
                }
            }
        }
        prop_assert_eq!(records, 1);
        closed.sort_unstable();
        // All opened ports, including those opened when no further attempt was wanted.
        prop_assert_eq!(closed, (0..ports.next).collect::<Vec<_>>());
        prop_assert!(call.is_over());
    });
}
