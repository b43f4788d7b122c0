//! Calls whose sides have no common codec at first, or at all.

use expect_test::expect;

use crate::tests::ladder::check;

#[test]
fn sides_without_a_common_codec_are_transcoded_and_the_record_says_so() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 G722 sendrecv
         110 journalled
         2000 bye caller
         2010 report 1
         2010 report 0 PCMU",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 G722 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1 renumbered
                      media 1 to 0 renumbered
                      media 0 from PCMU to G722
                      media 1 from G722 to PCMU
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            2000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            2010 report 1
            2010 report 0 PCMU
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 1 bridge NORMAL_CLEARING status 200 codecs PCMU/G722 verdict -
        "#]],
    );
}

#[test]
fn a_codec_that_both_have_is_relayed_whatever_else_is_there() {
    check(
        "call 4000 PCMU,G722 sendrecv -> 1
         100 answered 0 5000 G722,PCMA sendrecv
         110 journalled
         2000 bye caller
         2010 report 1
         2010 report 0 G722",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,G722,opus,PCMA sendrecv v1]
            100 answered 0 5000 G722,PCMA sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0 renumbered
                      media 1 from PCMA to G722
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 G722 sendrecv v1]
            2000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            2010 report 1
            2010 report 0 G722
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 1 bridge NORMAL_CLEARING status 200 codecs G722/G722 verdict -
        "#]],
    );
}

#[test]
fn a_new_offer_begins_and_ends_transcoding() {
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         1000 offer caller 4000 G722 sendrecv
         1050 offered 0 5000 PCMU sendrecv
         2000 offer caller 4000 G722 sendonly
         2050 offered 0 5000 PCMU recvonly
         2500 offer caller 4000 G722 sendrecv
         2550 offered 0 5000 PCMU sendrecv
         3000 offer 0 5002 PCMU sendrecv
         4000 offer caller 4000 PCMU sendrecv
         4050 offered 0 5000 PCMU sendrecv
         5000 bye caller
         5010 report 1
         5010 report 0 PCMU",
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
            1000 offer caller 4000 G722 sendrecv
                      re-INVITE fork 0 [20002 G722,opus,PCMA,PCMU sendrecv v2]
            1050 offered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1 renumbered
                      media 1 to 0 renumbered
                      media 0 from G722 to PCMU
                      media 1 from PCMU to G722
                      re-INVITE caller 200 [20000 G722 sendrecv v2]
            2000 offer caller 4000 G722 sendonly
                      re-INVITE fork 0 [20002 G722,opus,PCMA,PCMU sendonly v3]
            2050 offered 0 5000 PCMU recvonly
                      media 0 party 4000 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1 renumbered
                      media 1 to 0 renumbered
                      media 0 from G722 to PCMU
                      media 1 from PCMU to G722
                      re-INVITE caller 200 [20000 G722 recvonly v3]
            2500 offer caller 4000 G722 sendrecv
                      re-INVITE fork 0 [20002 G722,opus,PCMA,PCMU sendrecv v4]
            2550 offered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1 renumbered
                      media 1 to 0 renumbered
                      media 0 from G722 to PCMU
                      media 1 from PCMU to G722
                      re-INVITE caller 200 [20000 G722 sendrecv v4]
            3000 offer 0 5002 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5002 receive true send true
                      media 0 to 1 renumbered
                      media 1 to 0 renumbered
                      media 0 from G722 to PCMU
                      media 1 from PCMU to G722
                      re-INVITE fork 0 200 [20002 PCMU sendrecv v5]
            4000 offer caller 4000 PCMU sendrecv
                      re-INVITE fork 0 [20002 PCMU sendrecv v5]
            4050 offered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 0 relayed alone
                      media 1 relayed alone
                      re-INVITE caller 200 [20000 PCMU sendrecv v5]
            5000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            5010 report 1
            5010 report 0 PCMU
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 4 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn early_media_are_transcoded_and_the_answer_may_need_none() {
    check(
        "call 4000 PCMA sendrecv -> 1
         100 ringing 0 183 5000 G722 sendrecv
         1000 answered 0 5000 PCMA sendrecv
         1010 journalled
         2000 bye 0
         2010 report 1
         2010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 PCMA,opus,G722,PCMU sendrecv v1]
            100 ringing 0 183 5000 G722 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1 renumbered
                      media 1 to 0 renumbered
                      media 0 from PCMA to G722
                      media 1 from G722 to PCMA
                      183 caller [20000 PCMA sendrecv v1]
            1000 answered 0 5000 PCMA sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 0 relayed alone
                      media 1 relayed alone
                      media 1 answered
                      journal
            1010 journalled
                      media 0 answered
                      200 caller [20000 PCMA sendrecv v1]
            2000 bye 0
                      BYE caller NORMAL_CLEARING
                      media 1 close
                      media 0 close
            2010 report 1
            2010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:01.010Z billsec 0 bridge NORMAL_CLEARING status 200 codecs PCMA/PCMA verdict -
        "#]],
    );
}

/// G.729 is relayed between two parties that share it, regardless of the callee's other codecs.
#[test]
fn a_codec_that_is_not_decoded_here_is_relayed() {
    check(
        "call 4000 G729 sendrecv -> 1
         100 answered 0 5000 G729 sendrecv
         110 journalled
         1000 offer caller 4002 G729 sendonly
         1050 offered 0 5000 G729 recvonly
         2000 bye caller",
        expect![[r#"
                      INVITE fork 0 [20002 G729 sendrecv v1]
            100 answered 0 5000 G729 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 G729 sendrecv v1]
            1000 offer caller 4002 G729 sendonly
                      re-INVITE fork 0 [20002 G729 sendonly v2]
            1050 offered 0 5000 G729 recvonly
                      media 0 party 4002 receive true send false
                      media 1 party 5000 receive false send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 G729 recvonly v2]
            2000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
        "#]],
    );
}

/// The callee may send G.722, which the caller can only get as PCMU.
#[test]
fn the_caller_is_answered_with_what_it_can_get_beside_a_codec_that_is_relayed() {
    check(
        "call 4000 G729,PCMU sendrecv -> 1
         100 answered 0 5000 G722,G729 sendrecv
         110 journalled",
        expect![[r#"
                      INVITE fork 0 [20002 G729,PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 G722,G729 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1 renumbered
                      media 1 to 0 renumbered
                      media 0 from PCMU to G722
                      media 1 from G722 to PCMU
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 G729,PCMU sendrecv v1]
        "#]],
    );
}

/// A room seats a party only with a codec that it can decode; before, the party gets an offer of such codecs.
#[test]
fn parties_on_g729_change_their_codec_before_a_room_seats_them() {
    check(
        "call 4000 G729 sendrecv -> 1
         100 answered 0 5000 G729 sendrecv
         110 journalled
         1000 merge
         1050 offered caller 4000 PCMA sendrecv
         1100 offered 0 488",
        expect![[r#"
                      INVITE fork 0 [20002 G729 sendrecv v1]
            100 answered 0 5000 G729 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 G729 sendrecv v1]
            1000 merge
                      re-INVITE caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v2]
                      re-INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v2]
            1050 offered caller 4000 PCMA sendrecv
                      media 0 party 4000 receive true send true
                      seat caller
            1100 offered 0 488
                      BYE fork 0 INCOMPATIBLE_DESTINATION
                      media 1 close
        "#]],
    );
}
