//! Calls whose parties have SRTP: the offers, the commands to the relay, and the refusals.

use expect_test::expect;
use sidetone_sip::sdp::SrtpRule::{Off, Optional, Required};

use crate::tests::ladder::check_srtp;

#[test]
fn both_legs_have_their_own_keys() {
    check_srtp(
        [Optional, Required],
        "call 4000 PCMU sendrecv SAVP A -> 1
         100 answered 0 5000 PCMU sendrecv SAVP B
         110 journalled
         120 ack caller
         200 offer caller 4000 PCMU sendrecv SAVP A
         300 offer caller 4002 PCMU sendrecv SAVP C
         400 offer caller 4000 PCMU sendrecv
         500 offer 0 5000 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv RTP/SAVP keys 2 v1]
            100 answered 0 5000 PCMU sendrecv SAVP B
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4000 receive true send true
                      media 1 secured by AES_CM_128_HMAC_SHA1_80
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv RTP/SAVP keys 1 v1]
            120 ack caller
            200 offer caller 4000 PCMU sendrecv SAVP A
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv RTP/SAVP keys 1 v1]
            300 offer caller 4002 PCMU sendrecv SAVP C
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4002 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv RTP/SAVP keys 1 v2]
            400 offer caller 4000 PCMU sendrecv
                      media 0 secured by nothing
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv v3]
            500 offer 0 5000 PCMU sendrecv
                      re-INVITE fork 0 488
        "#]],
    );
}

#[test]
fn srtp_on_one_side_is_plain_on_the_other() {
    check_srtp(
        [Off, Optional],
        "call 4000 PCMU sendrecv -> 2
         100 ringing 0 183 5000 PCMU sendrecv AVP B
         200 answered 1 6000 PCMU sendrecv
         210 journalled
         220 offer caller 4000 PCMU sendonly
         230 offered 1 6000 PCMU recvonly",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv RTP/AVP keys 2 v1]
                      INVITE fork 1 [20004 PCMU,opus,G722,PCMA sendrecv RTP/AVP keys 2 v1]
            100 ringing 0 183 5000 PCMU sendrecv AVP B
                      media 0 party 4000 receive true send true
                      media 1 secured by AES_CM_128_HMAC_SHA1_80
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      183 caller [20000 PCMU sendrecv v1]
            200 answered 1 6000 PCMU sendrecv
                      CANCEL fork 0 LOSE_RACE
                      media 1 close
                      media 0 party 4000 receive true send true
                      media 2 party 6000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      media 2 answered
                      journal
            210 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            220 offer caller 4000 PCMU sendonly
                      re-INVITE fork 1 [20004 PCMU sendonly v2]
            230 offered 1 6000 PCMU recvonly
                      media 0 party 4000 receive true send false
                      media 2 party 6000 receive false send true
                      media 0 to 2
                      media 2 to 0
                      re-INVITE caller 200 [20000 PCMU recvonly v2]
        "#]],
    );
}

#[test]
fn what_is_required_and_missing_is_refused() {
    check_srtp(
        [Required, Off],
        "call 4000 PCMU sendrecv -> 1",
        expect![[r#"
        stillborn 488 ports 1
    "#]],
    );
    check_srtp(
        [Off, Off],
        "call 4000 PCMU sendrecv SAVP A -> 1",
        expect![[r#"
        stillborn 488 ports 2
    "#]],
    );
    check_srtp(
        [Required, Off],
        "call 4000 PCMU sendrecv -> room",
        expect![[r#"
        stillborn 488 ports 1
    "#]],
    );
    check_srtp(
        [Off, Required],
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv RTP/SAVP keys 2 v1]
            100 answered 0 5000 PCMU sendrecv
                      BYE fork 0 INCOMPATIBLE_DESTINATION
                      media 1 close
                      488 caller INCOMPATIBLE_DESTINATION
                      media 0 close
        "#]],
    );
}

#[test]
fn rooms_have_srtp_with_those_who_call_and_those_who_are_called() {
    check_srtp(
        [Required, Off],
        "call 4000 PCMU sendrecv SAVP A -> room
         10 journalled
         100 offer caller 4000 PCMU sendrecv SAVP C
         200 offer caller 4000 PCMU sendrecv",
        expect![[r#"
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4000 receive true send true
                      journal
            10 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv RTP/SAVP keys 1 v1]
                      seat caller
            100 offer caller 4000 PCMU sendrecv SAVP C
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4000 receive true send true
                      media 0 PCMU hears true speaks true
                      re-INVITE caller 200 [20000 PCMU sendrecv RTP/SAVP keys 1 v2]
            200 offer caller 4000 PCMU sendrecv
                      re-INVITE caller 488
        "#]],
    );
    check_srtp(
        [Off, Required],
        "call room -> 1
         100 answered 0 5000 PCMU sendrecv SAVP B
         110 journalled",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv RTP/SAVP keys 2 v1]
            100 answered 0 5000 PCMU sendrecv SAVP B
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 5000 receive true send true
                      media 0 answered
                      journal
            110 journalled
                      up
                      seat fork 0
        "#]],
    );
}

/// The calling party's keys reach the relay with its answer. Its rule applies to its later offers; the target has its
/// own rule.
#[test]
fn a_requested_call_has_srtp_on_both_sides() {
    check_srtp(
        [Required, Required],
        "call request -> 1
         100 answered 0 4000 PCMU sendrecv SAVP A
         101 onward 1
         200 offer caller 4002 PCMU sendrecv SAVP C
         300 offer caller 4002 PCMU sendrecv
         400 answered 0 5000 PCMU sendrecv SAVP B
         410 journalled",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv RTP/SAVP keys 2 v1]
            100 answered 0 4000 PCMU sendrecv SAVP A
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4000 receive true send true
                      caller is fork 0
            101 onward 1
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv RTP/SAVP keys 2 v1]
            200 offer caller 4002 PCMU sendrecv SAVP C
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4002 receive true send true
                      re-INVITE caller 200 [20000 PCMU sendrecv RTP/SAVP keys 1 v2]
            300 offer caller 4002 PCMU sendrecv
                      re-INVITE caller 488
            400 answered 0 5000 PCMU sendrecv SAVP B
                      media 0 party 4002 receive true send true
                      media 1 secured by AES_CM_128_HMAC_SHA1_80
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            410 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v0]
        "#]],
    );
    check_srtp(
        [Required, Off],
        "call request -> 1
         100 answered 0 4000 PCMU sendrecv SAVP A
         101 onward room
         110 journalled
         200 offer caller 4000 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv RTP/SAVP keys 2 v1]
            100 answered 0 4000 PCMU sendrecv SAVP A
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4000 receive true send true
                      caller is fork 0
            101 onward room
                      journal
            110 journalled
                      media 0 answered
                      up
                      seat caller
            200 offer caller 4000 PCMU sendrecv
                      re-INVITE caller 488
        "#]],
    );
}

/// The party that answers a ringing call instead of its phone is in another call: only the caller's keys are new.
#[test]
fn a_call_that_is_picked_up_has_the_keys_of_its_caller() {
    check_srtp(
        [Required, Off],
        "call 4000 PCMU sendrecv SAVP A -> 1
         100 ringing 0 180
         200 pickup 6000 PCMU sendrecv
         210 journalled",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v1]
            100 ringing 0 180
                      180 caller
            200 pickup 6000 PCMU sendrecv
                      CANCEL fork 0 LOSE_RACE
                      media 1 close
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4000 receive true send true
                      journal
            210 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv RTP/SAVP keys 1 v1]
                      reached caller
        "#]],
    );
}
