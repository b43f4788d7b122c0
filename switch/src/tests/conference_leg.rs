//! Calls with a room on one side, and calls whose parties are moved into a room.

use expect_test::expect;

use crate::tests::ladder::check;

#[test]
fn a_room_takes_a_call() {
    check(
        "call 4000 PCMU,G729,PCMA sendrecv -> room
         10 journalled
         50 ack caller
         60000 bye caller
         60010 report 0 PCMA",
        expect![[r#"
                      media 0 party 4000 receive true send true
                      journal
            10 journalled
                      media 0 answered
                      200 caller [20000 PCMU,PCMA sendrecv v1]
                      seat caller
            50 ack caller
            60000 bye caller
                      caller left its seat
                      media 0 close
            60010 report 0 PCMA
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.010Z billsec 59 bridge - status - codecs PCMA/- verdict -
        "#]],
    );
}

#[test]
fn a_caller_without_an_offer_is_seated_with_its_ack() {
    check(
        "call - -> room
         10 journalled
         50 ack caller 4000 PCMA sendrecv
         60000 dismiss caller
         60010 report 0",
        expect![[r#"
                      journal
            10 journalled
                      media 0 answered
                      200 caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            50 ack caller 4000 PCMA sendrecv
                      media 0 party 4000 receive true send true
                      seat caller
            60000 dismiss caller
                      BYE caller NORMAL_CLEARING
                      caller left its seat
                      media 0 close
            60010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.010Z billsec 59 bridge - status - codecs PCMA/- verdict -
        "#]],
    );
    check(
        "call - -> room
         10 journalled
         50 ack caller
         60 report 0",
        expect![[r#"
                      journal
            10 journalled
                      media 0 answered
                      200 caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            50 ack caller
                      BYE caller INCOMPATIBLE_DESTINATION
                      media 0 close
            60 report 0
                      record INCOMPATIBLE_DESTINATION answered 1970-01-01T00:00:00.010Z billsec 0 bridge - status - codecs -/- verdict -
        "#]],
    );
}

#[test]
fn a_room_has_no_other_codecs_than_the_mix() {
    check(
        "call 4000 G729 sendrecv -> room",
        expect![[r#"
        stillborn 488 ports 1
    "#]],
    );
}

/// The party hung up or cancelled while the journal was being written: it was never seated.
#[test]
fn who_gives_up_before_the_answer_is_not_seated() {
    check(
        "call 4000 PCMU sendrecv -> room
         10 cancel
         20 journalled
         30 report 0",
        expect![[r#"
                      media 0 party 4000 receive true send true
                      journal
            10 cancel
                      487 caller -
                      media 0 close
            20 journalled
            30 report 0
                      record ORIGINATOR_CANCEL answered - billsec 0 bridge - status - codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call room -> 1
         3000 answered 0 5000 PCMU sendrecv
         3005 bye 0
         3010 journalled
         3020 report 0",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            3000 answered 0 5000 PCMU sendrecv
                      media 0 party 5000 receive true send true
                      media 0 answered
                      journal
            3005 bye 0
                      480 caller NORMAL_CLEARING
                      media 0 close
            3010 journalled
            3020 report 0
                      record NORMAL_CLEARING answered - billsec 0 bridge NORMAL_CLEARING status 200 codecs -/- verdict unanswered
        "#]],
    );
}

#[test]
fn hold_and_resume_in_a_room() {
    check(
        "call 4000 PCMU sendrecv -> room
         10 journalled
         1000 offer caller 4000 PCMU sendonly
         2000 offer caller 4000 PCMU inactive
         3000 offer caller 4002 PCMA sendrecv
         4000 offer caller 4002 PCMA recvonly
         5000 offer caller 4002 G729 sendrecv
         6000 offer caller
         6050 ack caller 4002 PCMU sendrecv",
        expect![[r#"
                      media 0 party 4000 receive true send true
                      journal
            10 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
                      seat caller
            1000 offer caller 4000 PCMU sendonly
                      media 0 party 4000 receive true send false
                      media 0 PCMU hears false speaks false
                      caller holds
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
            2000 offer caller 4000 PCMU inactive
                      media 0 party 4000 receive false send false
                      media 0 PCMU hears false speaks false
                      re-INVITE caller 200 [20000 PCMU inactive v3]
            3000 offer caller 4002 PCMA sendrecv
                      media 0 party 4002 receive true send true
                      media 0 PCMA hears true speaks true
                      caller is back
                      re-INVITE caller 200 [20000 PCMA sendrecv v4]
            4000 offer caller 4002 PCMA recvonly
                      media 0 party 4002 receive false send true
                      media 0 PCMA hears true speaks false
                      re-INVITE caller 200 [20000 PCMA sendonly v5]
            5000 offer caller 4002 G729 sendrecv
                      re-INVITE caller 488
            6000 offer caller
                      re-INVITE caller 200 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v6]
            6050 ack caller 4002 PCMU sendrecv
                      media 0 party 4002 receive true send true
                      media 0 PCMU hears true speaks true
        "#]],
    );
}

#[test]
fn a_room_calls_an_extension() {
    check(
        "call room -> 2
         100 ringing 0 180
         120 ringing 1 183 5002 PCMU sendrecv
         3000 answered 1 5002 PCMU sendrecv
         3005 answered 0 5000 PCMU sendrecv
         3010 journalled
         60000 bye 1
         60010 report 1 PCMU",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
                      INVITE fork 1 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            100 ringing 0 180
                      180 caller
            120 ringing 1 183 5002 PCMU sendrecv
                      183 caller
            3000 answered 1 5002 PCMU sendrecv
                      CANCEL fork 0 LOSE_RACE
                      media 0 close
                      media 1 party 5002 receive true send true
                      media 1 answered
                      journal
            3005 answered 0 5000 PCMU sendrecv
                      BYE fork 0 LOSE_RACE
            3010 journalled
                      up
                      seat fork 1
            60000 bye 1
                      fork 1 left its seat
                      media 1 close
            60010 report 1 PCMU
                      record NORMAL_CLEARING answered 1970-01-01T00:00:03.010Z billsec 56 bridge NORMAL_CLEARING status 200 codecs PCMU/- verdict -
        "#]],
    );
}

#[test]
fn nobody_takes_the_call_of_a_room() {
    check(
        "call room -> 2
         100 failed 0 486
         200 failed 1 480",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
                      INVITE fork 1 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            100 failed 0 486
                      media 0 close
            200 failed 1 480
                      media 1 close
                      486 caller USER_BUSY
                      record USER_BUSY answered - billsec 0 bridge USER_BUSY status 486 codecs -/- verdict unanswered
        "#]],
    );
    check(
        "call room -> 1
         100 ringing 0 180
         60000 timeout
         60010 failed 0 487",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            100 ringing 0 180
                      180 caller
            60000 timeout
                      CANCEL fork 0 NO_ANSWER
                      media 0 close
                      480 caller NO_ANSWER
                      record NO_ANSWER answered - billsec 0 bridge - status - codecs -/- verdict unanswered
            60010 failed 0 487
        "#]],
    );
    check(
        "call room -> 1
         100 ringing 0 180
         200 end
         210 answered 0 5000 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            100 ringing 0 180
                      180 caller
            200 end
                      CANCEL fork 0 NORMAL_CLEARING
                      media 0 close
                      503 caller NORMAL_CLEARING
                      record NORMAL_CLEARING answered - billsec 0 bridge - status - codecs -/- verdict unanswered
            210 answered 0 5000 PCMU sendrecv
                      BYE fork 0 LOSE_RACE
        "#]],
    );
}

#[test]
fn a_room_calls_the_world() {
    check(
        "call room -> trunks
         10 attempt 1
         100 failed 0 503
         110 attempt 2
         3000 answered 1 5002 PCMA sendrecv
         3010 journalled
         9000 end
         9010 report 1 PCMA",
        expect![[r#"
            10 attempt 1
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            100 failed 0 503
                      media 0 close
                      next after 503
            110 attempt 2
                      INVITE fork 1 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            3000 answered 1 5002 PCMA sendrecv
                      media 1 party 5002 receive true send true
                      media 1 answered
                      journal
            3010 journalled
                      up
                      seat fork 1
            9000 end
                      BYE fork 1 NORMAL_CLEARING
                      fork 1 left its seat
                      media 1 close
            9010 report 1 PCMA
                      record NORMAL_CLEARING answered 1970-01-01T00:00:03.010Z billsec 5 bridge NORMAL_CLEARING status 200 codecs PCMA/- verdict - trunk 2
        "#]],
    );
    check(
        "call room -> trunks
         10 attempt 1
         100 failed 0 503
         110 exhausted",
        expect![[r#"
            10 attempt 1
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v1]
            100 failed 0 503
                      media 0 close
                      next after 503
            110 exhausted
                      500 caller NORMAL_TEMPORARY_FAILURE
                      record NORMAL_TEMPORARY_FAILURE answered - billsec 0 bridge NORMAL_TEMPORARY_FAILURE status 503 codecs -/- verdict unanswered trunk 1
        "#]],
    );
}

/// Each party of a merged call leaves separately; the record describes the caller's leg and ends with the
/// last party.
#[test]
fn merged_parties_leave_one_by_one() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         5000 merge
         9000 bye caller
         9010 report 0 PCMU
         20000 bye 0
         20010 report 1",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            5000 merge
                      seat caller
                      seat fork 0
            9000 bye caller
                      caller left its seat
                      media 0 close
            9010 report 0 PCMU
            20000 bye 0
                      fork 0 left its seat
                      media 1 close
            20010 report 1
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 19 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         5000 merge
         9000 dismiss 0
         9010 dismiss 0
         9020 report 1
         20000 bye caller
         20010 report 0 PCMU",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            5000 merge
                      seat caller
                      seat fork 0
            9000 dismiss 0
                      BYE fork 0 NORMAL_CLEARING
                      fork 0 left its seat
                      media 1 close
            9010 dismiss 0
            9020 report 1
            20000 bye caller
                      caller left its seat
                      media 0 close
            20010 report 0 PCMU
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 19 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn who_is_on_hold_is_asked_back_into_the_room() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         1000 offer caller 4000 PCMU sendonly
         1010 offered 0 5000 PCMU recvonly
         5000 merge
         5010 offered caller 491
         5020 offered 0 5000 PCMU sendrecv
         5030 offer caller 4000 PCMU sendonly
         7000 due caller
         7050 offered caller 4000 PCMU sendrecv
         7060 due caller",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            1000 offer caller 4000 PCMU sendonly
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1010 offered 0 5000 PCMU recvonly
                      media 0 party 4000 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
            5000 merge
                      seat caller
                      caller holds
                      re-INVITE caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
                      seat fork 0
                      re-INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
            5010 offered caller 491
            5020 offered 0 5000 PCMU sendrecv
                      media 1 party 5000 receive true send true
                      media 1 PCMU hears true speaks true
            5030 offer caller 4000 PCMU sendonly
                      media 0 party 4000 receive true send false
                      media 0 PCMU hears false speaks false
                      re-INVITE caller 200 [20000 PCMU recvonly v4]
            7000 due caller
                      re-INVITE caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v5]
            7050 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 0 PCMU hears true speaks true
                      caller is back
            7060 due caller
        "#]],
    );
}

/// A party in both calls is seated once: this leg of it is hung up.
#[test]
fn one_leg_may_be_left_out_of_a_merge() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         5000 merge without caller
         5010 report 0 PCMU
         9000 end
         9010 report 1",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            5000 merge without caller
                      seat fork 0
                      BYE caller NORMAL_CLEARING
                      media 0 close
            5010 report 0 PCMU
            9000 end
                      BYE fork 0 NORMAL_CLEARING
                      fork 0 left its seat
                      media 1 close
            9010 report 1
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 8 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn what_is_not_up_or_is_being_changed_is_not_merged() {
    check(
        "call 4000 PCMU sendrecv -> 1
         50 merge
         100 answered 0 5000 PCMU sendrecv
         105 merge
         110 journalled
         1000 offer caller 4000 PCMU sendonly
         1005 merge
         1010 offered 0 5000 PCMU recvonly
         1020 merge
         1030 merge",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            50 merge
            100 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            105 merge
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            1000 offer caller 4000 PCMU sendonly
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1005 merge
            1010 offered 0 5000 PCMU recvonly
                      media 0 party 4000 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
            1020 merge
                      seat caller
                      caller holds
                      re-INVITE caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
                      seat fork 0
                      re-INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
            1030 merge
        "#]],
    );
}

#[test]
fn a_dialog_that_is_gone_leaves_the_room() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         1000 offer caller 4000 PCMU sendonly
         1010 offered 0 5000 PCMU recvonly
         5000 merge
         5010 offered 0 481
         5020 offered caller 403",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            1000 offer caller 4000 PCMU sendonly
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1010 offered 0 5000 PCMU recvonly
                      media 0 party 4000 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
            5000 merge
                      seat caller
                      caller holds
                      re-INVITE caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
                      seat fork 0
                      re-INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
            5010 offered 0 481
                      fork 0 left its seat
                      media 1 close
            5020 offered caller 403
        "#]],
    );
}

/// The relay closes a port after a panic: the party would hear nothing more, so it is hung up.
#[test]
fn a_party_without_a_port_is_hung_up() {
    check(
        "call 4000 PCMA sendrecv -> room
         10 journalled
         50 ack caller
         5000 report 0 PCMA",
        expect![[r#"
                      media 0 party 4000 receive true send true
                      journal
            10 journalled
                      media 0 answered
                      200 caller [20000 PCMA sendrecv v1]
                      seat caller
            50 ack caller
            5000 report 0 PCMA
                      BYE caller NORMAL_TEMPORARY_FAILURE
                      caller left its seat
                      media 0 close
                      record NORMAL_TEMPORARY_FAILURE answered 1970-01-01T00:00:00.010Z billsec 4 bridge - status - codecs PCMA/- verdict -
        "#]],
    );
    check(
        "call 4000 PCMA sendrecv -> 1
         1000 answered 0 6000 PCMA sendrecv
         1010 journalled
         1050 ack caller
         5000 report 1
         5010 report 0 PCMA",
        expect![[r#"
                      INVITE fork 0 [20002 PCMA,opus,G722,PCMU sendrecv v1]
            1000 answered 0 6000 PCMA sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 6000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMA sendrecv v1]
            1050 ack caller
            5000 report 1
                      BYE fork 0 NORMAL_TEMPORARY_FAILURE
                      BYE caller NORMAL_TEMPORARY_FAILURE
                      media 1 close
                      media 0 close
            5010 report 0 PCMA
                      record NORMAL_TEMPORARY_FAILURE answered 1970-01-01T00:00:01.010Z billsec 3 bridge NORMAL_TEMPORARY_FAILURE status 200 codecs PCMA/PCMA verdict -
        "#]],
    );
}
