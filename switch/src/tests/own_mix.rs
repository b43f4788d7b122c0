//! Calls that a program puts on hold: the seats of both parties, and the offers to them.

use expect_test::expect;

use crate::tests::ladder::check;

const BEGUN: &str = "call 4000 PCMU sendrecv -> 1
    100 answered 0 5000 PCMU sendrecv
    110 journalled
";

/// Checks the outputs after the answer of a call.
pub(super) fn check_after(script: &str, expect: expect_test::Expect) {
    let played = crate::tests::ladder::play(&format!("{BEGUN}{script}"));
    let begun = crate::tests::ladder::play(BEGUN);
    expect.assert_eq(played.strip_prefix(&begun).unwrap());
}

#[test]
fn both_phones_are_asked_and_the_held_one_hears_music() {
    check_after(
        "1000 hold caller
         1010 offered caller 4000 PCMU inactive
         1020 offered 0 5000 PCMU recvonly
         5000 hold -
         5010 offered caller 4000 PCMU sendrecv
         5020 offered 0 5000 PCMU sendrecv",
        expect![[r#"
            1000 hold caller
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1010 offered caller 4000 PCMU inactive
                      media 0 party 4000 receive false send false
                      media 0 PCMU hears false speaks false
            1020 offered 0 5000 PCMU recvonly
                      media 1 party 5000 receive false send true
                      media 1 PCMU hears true speaks false
            5000 hold -
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller [20000 PCMU sendrecv v3]
                      re-INVITE fork 0 [20002 PCMU sendrecv v3]
            5010 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 0 to 1
                      media 1 to 0
            5020 offered 0 5000 PCMU sendrecv
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

#[test]
fn a_refused_offer_changes_nothing_and_is_not_repeated() {
    check_after(
        "1000 hold 0
         1010 offered caller 488
         1020 offered 0 488
         1030 ack caller
         5000 hold -",
        expect![[r#"
            1000 hold 0
                      media 0 joins mix 100 in PCMU muted hears Music
                      media 1 joins mix 100 in PCMU muted hears Nothing
                      re-INVITE caller [20000 PCMU sendonly v2]
                      re-INVITE fork 0 [20002 PCMU inactive v2]
            1010 offered caller 488
            1020 offered 0 488
            1030 ack caller
            5000 hold -
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller [20000 PCMU sendrecv v3]
                      re-INVITE fork 0 [20002 PCMU sendrecv v3]
        "#]],
    );
}

#[test]
fn an_offer_that_clashes_is_repeated() {
    check_after(
        "1000 hold caller
         1010 offered 0 491
         1020 offered caller 4000 PCMU inactive
         1030 offer 0 5002 PCMU sendrecv
         1500 due 0
         2000 hold -
         2010 offered caller 491
         2020 offered 0 491
         4000 due caller
         4010 offered caller 4000 PCMU sendrecv
         4020 offered 0 5000 PCMU sendrecv",
        expect![[r#"
            1000 hold caller
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1010 offered 0 491
            1020 offered caller 4000 PCMU inactive
                      media 0 party 4000 receive false send false
                      media 0 PCMU hears false speaks false
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1030 offer 0 5002 PCMU sendrecv
                      re-INVITE fork 0 491
            1500 due 0
            2000 hold -
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller [20000 PCMU sendrecv v3]
            2010 offered caller 491
            2020 offered 0 491
            4000 due caller
                      re-INVITE caller [20000 PCMU sendrecv v3]
                      re-INVITE fork 0 [20002 PCMU sendrecv v3]
            4010 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 0 to 1
                      media 1 to 0
            4020 offered 0 5000 PCMU sendrecv
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

#[test]
fn a_phone_on_hold_may_move_hold_and_ask_for_our_offer() {
    check_after(
        "1000 hold caller
         1010 offered caller 4000 PCMU inactive
         1020 offered 0 5000 PCMU recvonly
         2000 offer 0 5008 PCMU,G729 recvonly
         2100 offer 0 5008 G729 sendrecv
         3000 offer 0 5008 PCMU sendonly
         4000 hold -
         4010 offered caller 4000 PCMU sendonly
         5000 offer 0 5008 PCMU sendrecv
         5010 offered caller 4000 PCMU sendrecv
         6000 offer caller
         6010 ack caller 4004 PCMU sendrecv",
        expect![[r#"
            1000 hold caller
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1010 offered caller 4000 PCMU inactive
                      media 0 party 4000 receive false send false
                      media 0 PCMU hears false speaks false
            1020 offered 0 5000 PCMU recvonly
                      media 1 party 5000 receive false send true
                      media 1 PCMU hears true speaks false
            2000 offer 0 5008 PCMU,G729 recvonly
                      media 1 party 5008 receive false send true
                      media 1 PCMU hears true speaks false
                      re-INVITE fork 0 200 [20002 PCMU sendonly v2]
            2100 offer 0 5008 G729 sendrecv
                      re-INVITE fork 0 488
            3000 offer 0 5008 PCMU sendonly
                      media 1 party 5008 receive false send false
                      media 1 PCMU hears false speaks false
                      re-INVITE fork 0 200 [20002 PCMU inactive v3]
            4000 hold -
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller [20000 PCMU sendonly v3]
            4010 offered caller 4000 PCMU sendonly
                      media 0 party 4000 receive false send false
                      media 0 to 1
                      media 1 to 0
            5000 offer 0 5008 PCMU sendrecv
                      media 1 party 5008 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller [20000 PCMU sendrecv v4]
                      re-INVITE fork 0 200 [20002 PCMU sendrecv v4]
            5010 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 0 to 1
                      media 1 to 0
            6000 offer caller
                      re-INVITE caller 200 [20000 PCMU sendrecv v4]
            6010 ack caller 4004 PCMU sendrecv
                      media 0 party 4004 receive true send true
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

/// RFC 5057 §5.1: the dialog has ended.
#[test]
fn a_phone_that_does_not_know_the_dialog_ends_the_call() {
    check_after(
        "1000 hold caller
         1010 offered 0 481",
        expect![[r#"
            1000 hold caller
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1010 offered 0 481
                      BYE caller RECOVERY_ON_TIMER_EXPIRE
                      media 1 close
                      media 0 close
        "#]],
    );
}

#[test]
fn a_call_on_hold_is_resumed_in_a_room_also_while_an_offer_waits() {
    check_after(
        "1000 hold caller
         1001 merge
         1010 offered caller 4000 PCMU inactive
         1020 offered 0 5000 PCMU recvonly
         1030 offered caller 4000 PCMU sendrecv
         1040 offered 0 5000 PCMU sendrecv",
        expect![[r#"
            1000 hold caller
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            1001 merge
                      media 0 leaves its mix
                      media 1 leaves its mix
                      seat caller
                      seat fork 0
            1010 offered caller 4000 PCMU inactive
                      media 0 party 4000 receive false send false
                      media 0 PCMU hears false speaks false
                      caller holds
                      re-INVITE caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
            1020 offered 0 5000 PCMU recvonly
                      media 1 party 5000 receive false send true
                      media 1 PCMU hears true speaks false
                      re-INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
            1030 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 0 PCMU hears true speaks true
                      caller is back
            1040 offered 0 5000 PCMU sendrecv
                      media 1 party 5000 receive true send true
                      media 1 PCMU hears true speaks true
        "#]],
    );
}

#[test]
fn what_cannot_be_mixed_is_not_held() {
    check(
        "call 4000 G729 sendrecv -> 1
         200 answered 0 5000 G729 sendrecv
         210 journalled
         300 hold caller",
        expect![[r#"
                      INVITE fork 0 [20002 G729 sendrecv v1]
            200 answered 0 5000 G729 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            210 journalled
                      media 0 answered
                      200 caller [20000 G729 sendrecv v1]
            300 hold caller
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 1
         100 hold caller
         200 answered 0 5000 PCMU sendrecv
         205 hold caller
         210 journalled
         300 offer caller 4000 PCMU sendonly
         310 hold caller",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 hold caller
            200 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            205 hold caller
            210 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            300 offer caller 4000 PCMU sendonly
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            310 hold caller
        "#]],
    );
}

#[test]
fn a_recording_listens_to_both_sides_through_pause_and_hold() {
    check_after(
        "1000 record start
         1500 record start
         2000 record pause
         3000 record resume
         4000 hold caller
         4010 offered caller 4000 PCMU inactive
         4020 offered 0 5000 PCMU recvonly
         5000 hold -
         5010 offered caller 4000 PCMU sendrecv
         5020 offered 0 5000 PCMU sendrecv
         6000 record stop
         7000 record stop",
        expect![[r#"
            1000 record start
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      record mix 100 Some([PortId(0), PortId(1)])
            1500 record start
            2000 record pause
                      media 0 muted
                      media 1 muted
            3000 record resume
                      media 0 unmuted
                      media 1 unmuted
            4000 hold caller
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            4010 offered caller 4000 PCMU inactive
                      media 0 party 4000 receive false send false
                      media 0 PCMU hears false speaks false
            4020 offered 0 5000 PCMU recvonly
                      media 1 party 5000 receive false send true
                      media 1 PCMU hears true speaks false
            5000 hold -
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller [20000 PCMU sendrecv v3]
                      re-INVITE fork 0 [20002 PCMU sendrecv v3]
            5010 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 0 PCMU hears true speaks true
                      media 0 to 1
                      media 1 to 0
            5020 offered 0 5000 PCMU sendrecv
                      media 1 party 5000 receive true send true
                      media 1 PCMU hears true speaks true
                      media 0 to 1
                      media 1 to 0
            6000 record stop
                      mix 100 StopRecording
                      media 0 leaves its mix
                      media 1 leaves its mix
            7000 record stop
        "#]],
    );
}

#[test]
fn the_end_of_the_call_or_its_room_ends_the_recording() {
    check_after(
        "1000 record start
         2000 bye caller",
        expect![[r#"
            1000 record start
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      record mix 100 Some([PortId(0), PortId(1)])
            2000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      mix 100 StopRecording
                      media 1 close
                      media 0 close
        "#]],
    );
    check_after(
        "1000 record start
         2000 merge",
        expect![[r#"
            1000 record start
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      record mix 100 Some([PortId(0), PortId(1)])
            2000 merge
                      mix 100 StopRecording
                      media 0 leaves its mix
                      media 1 leaves its mix
                      seat caller
                      seat fork 0
        "#]],
    );
}
