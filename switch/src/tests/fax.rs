//! Calls that change to T.38 and back: the offers to each party, the commands to the relay, and the refusals.

use expect_test::expect;
use sidetone_sip::sdp::SrtpRule::{Off, Optional, Required};

use crate::tests::ladder::{check, check_srtp};
use crate::tests::own_mix::check_after;

/// The usual fax: the answering device recognises the tones of the other, and offers T.38.
#[test]
fn the_callee_changes_to_fax_and_back() {
    check_after(
        "1000 offer 0 5002 T38 sendrecv
         1010 offered caller 4002 T38 sendrecv
         1020 offer 0 5002 T38 sendrecv
         2000 offer caller 4002 T38 sendonly
         2010 offered 0 5002 T38 recvonly
         2500 offer caller 4002 T38 sendrecv
         2510 offered 0 5002 T38 sendrecv
         3000 offer caller
         3010 ack caller 4004 T38 sendrecv
         4000 offer caller 4000 PCMU sendrecv
         4010 offered 0 5000 PCMU sendrecv
         5000 bye caller
         5010 report 1
         5010 report 0 PCMU",
        expect![[r#"
            1000 offer 0 5002 T38 sendrecv
                      re-INVITE caller [20000 T38 sendrecv lines 2 v2]
            1010 offered caller 4002 T38 sendrecv
                      media 0 party 4002 receive true send true fax
                      media 1 party 5002 receive true send true fax
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 T38 sendrecv lines 2 v2]
            1020 offer 0 5002 T38 sendrecv
                      media 0 party 4002 receive true send true fax
                      media 1 party 5002 receive true send true fax
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 T38 sendrecv lines 2 v2]
            2000 offer caller 4002 T38 sendonly
                      re-INVITE fork 0 [20002 T38 sendonly lines 2 v3]
            2010 offered 0 5002 T38 recvonly
                      media 0 party 4002 receive true send false fax
                      media 1 party 5002 receive false send true fax
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 T38 recvonly lines 2 v3]
            2500 offer caller 4002 T38 sendrecv
                      re-INVITE fork 0 [20002 T38 sendrecv lines 2 v4]
            2510 offered 0 5002 T38 sendrecv
                      media 0 party 4002 receive true send true fax
                      media 1 party 5002 receive true send true fax
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 T38 sendrecv lines 2 v4]
            3000 offer caller
                      re-INVITE caller 200 [20000 T38 sendrecv lines 2 v4]
            3010 ack caller 4004 T38 sendrecv
                      media 0 party 4004 receive true send true fax
                      media 1 party 5002 receive true send true fax
                      media 0 to 1
                      media 1 to 0
            4000 offer caller 4000 PCMU sendrecv
                      re-INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv v5]
            4010 offered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv v5]
            5000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            5010 report 1
            5010 report 0 PCMU
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 4 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict - fax
        "#]],
    );
}

/// The caller refuses its audio section and adds one for the fax; the callee has a single section.
#[test]
fn a_fax_beside_refused_audio_keeps_the_sections_of_each_dialog() {
    check_after(
        "1000 offer caller 4002 0+T38 sendrecv
         1010 offered 0 5002 T38 sendrecv
         2000 offer 0 5000 PCMU sendrecv
         2010 offered caller 4000 PCMU+0T38 sendrecv
         3000 bye 0
         3010 report 1
         3010 report 0 PCMU",
        expect![[r#"
            1000 offer caller 4002 0+T38 sendrecv
                      re-INVITE fork 0 [20002 T38 sendrecv lines 2 v2]
            1010 offered 0 5002 T38 sendrecv
                      media 0 party 4002 receive true send true fax
                      media 1 party 5002 receive true send true fax
                      media 0 to 1
                      media 1 to 0
                      re-INVITE caller 200 [20000 T38 sendrecv lines 2 in 2 of 2 v2]
            2000 offer 0 5000 PCMU sendrecv
                      re-INVITE caller [20000 PCMU,opus,G722,PCMA sendrecv in 1 of 2 v3]
            2010 offered caller 4000 PCMU+0T38 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 PCMU sendrecv v3]
            3000 bye 0
                      BYE caller NORMAL_CLEARING
                      media 1 close
                      media 0 close
            3010 report 1
            3010 report 0 PCMU
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 2 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict - fax
        "#]],
    );
}

/// The far end refuses T.38: the call keeps its audio, and a later refresh does not repeat the fax.
#[test]
fn a_refused_fax_keeps_the_audio() {
    check_after(
        "1000 offer 0 5002 T38 sendrecv
         1010 offered caller 488
         2000 refresh caller
         2010 offered caller 4000 PCMU sendrecv
         3000 offer 0 5002 T38 sendrecv
         3010 offered caller 0 T38 sendrecv
         3020 offered caller 4000 PCMU sendrecv
         4000 bye caller
         4010 report 1
         4010 report 0 PCMU",
        expect![[r#"
            1000 offer 0 5002 T38 sendrecv
                      re-INVITE caller [20000 T38 sendrecv lines 2 v2]
            1010 offered caller 488
                      re-INVITE fork 0 488
            2000 refresh caller
                      re-INVITE caller [20000 PCMU sendrecv v3]
            2010 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
            3000 offer 0 5002 T38 sendrecv
                      re-INVITE caller [20000 T38 sendrecv lines 2 v4]
            3010 offered caller 0 T38 sendrecv
                      re-INVITE fork 0 488
                      re-INVITE caller [20000 PCMU sendrecv v5]
            3020 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
            4000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 1 close
                      media 0 close
            4010 report 1
            4010 report 0 PCMU
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 3 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn a_call_that_begins_as_a_fax() {
    check(
        "call 4000 T38 sendrecv -> 1
         100 answered 0 5000 T38 sendrecv
         110 journalled
         2000 bye 0
         2010 report 1
         2010 report 0",
        expect![[r#"
                      INVITE fork 0 [20002 T38 sendrecv lines 2 v1]
            100 answered 0 5000 T38 sendrecv
                      media 0 party 4000 receive true send true fax
                      media 1 party 5000 receive true send true fax
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 T38 sendrecv lines 2 v1]
            2000 bye 0
                      BYE caller NORMAL_CLEARING
                      media 1 close
                      media 0 close
            2010 report 1
            2010 report 0
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 1 bridge NORMAL_CLEARING status 200 codecs T38/T38 verdict - fax
        "#]],
    );
    check(
        "call 4000 T38 sendrecv -> 1
         100 failed 0 488",
        expect![[r#"
                      INVITE fork 0 [20002 T38 sendrecv lines 2 v1]
            100 failed 0 488
                      media 1 close
                      488 caller INCOMPATIBLE_DESTINATION
                      media 0 close
        "#]],
    );
    check(
        "call 4000 T38 sendrecv -> room",
        expect![[r#"
        stillborn 488 ports 1
    "#]],
    );
}

/// A mix or a transcoder cannot process a fax.
#[test]
fn a_recorded_or_transcoded_leg_refuses_a_fax() {
    check_after(
        "1000 record start
         2000 offer 0 5002 T38 sendrecv
         3000 bye caller",
        expect![[r#"
            1000 record start
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      record mix 100 Some([PortId(0), PortId(1)])
            2000 offer 0 5002 T38 sendrecv
                      re-INVITE fork 0 488
            3000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      mix 100 StopRecording
                      media 1 close
                      media 0 close
        "#]],
    );
    check(
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 G722 sendrecv
         110 journalled
         1000 offer 0 5002 T38 sendrecv
         2000 offer caller 4002 T38 sendrecv",
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
            1000 offer 0 5002 T38 sendrecv
                      re-INVITE fork 0 488
            2000 offer caller 4002 T38 sendrecv
                      re-INVITE caller 488
        "#]],
    );
}

/// UDPTL has no encryption: a party that must have SRTP neither sends nor gets a fax.
#[test]
fn a_fax_needs_a_leg_that_may_be_plain() {
    let script = "call 4000 PCMU sendrecv SAVP A -> 1
         100 answered 0 5000 PCMU sendrecv SAVP B
         110 journalled
         1000 offer 0 5002 T38 sendrecv
         2000 offer caller 4002 T38 sendrecv";
    check_srtp(
        [Required, Optional],
        script,
        expect![[r#"
                  INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv RTP/AVP keys 2 v1]
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
        1000 offer 0 5002 T38 sendrecv
                  re-INVITE fork 0 488
        2000 offer caller 4002 T38 sendrecv
                  re-INVITE caller 488
    "#]],
    );
    check_srtp(
        [Off, Required],
        "call 4000 T38 sendrecv -> 1",
        expect![[r#"
        stillborn 488 ports 2
    "#]],
    );
    check_srtp(
        [Off, Optional],
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv AVP B
         110 journalled
         1000 offer 0 5002 T38 sendrecv
         1010 offered caller 4002 T38 sendrecv
         2000 offer 0 5000 PCMU sendrecv AVP B
         2010 offered caller 4000 PCMU sendrecv",
        expect![[r#"
                      INVITE fork 0 [20002 PCMU,opus,G722,PCMA sendrecv RTP/AVP keys 2 v1]
            100 answered 0 5000 PCMU sendrecv AVP B
                      media 0 party 4000 receive true send true
                      media 1 secured by AES_CM_128_HMAC_SHA1_80
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      media 1 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            1000 offer 0 5002 T38 sendrecv
                      re-INVITE caller [20000 T38 sendrecv lines 2 v2]
            1010 offered caller 4002 T38 sendrecv
                      media 0 party 4002 receive true send true fax
                      media 1 secured by nothing
                      media 1 party 5002 receive true send true fax
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 T38 sendrecv lines 2 v2]
            2000 offer 0 5000 PCMU sendrecv AVP B
                      re-INVITE caller [20000 PCMU,opus,G722,PCMA sendrecv v3]
            2010 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 1 secured by AES_CM_128_HMAC_SHA1_80
                      media 1 party 5000 receive true send true
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 PCMU sendrecv RTP/AVP keys 1 v3]
        "#]],
    );
}

/// A room needs audio: parties that are merged during a fax get an offer of audio.
#[test]
fn a_fax_ends_where_its_parties_enter_a_room() {
    check_after(
        "1000 offer 0 5002 T38 sendrecv
         1010 offered caller 4002 T38 sendrecv
         1500 hold caller
         2000 merge
         2010 offered caller 4000 PCMU sendrecv",
        expect![[r#"
            1000 offer 0 5002 T38 sendrecv
                      re-INVITE caller [20000 T38 sendrecv lines 2 v2]
            1010 offered caller 4002 T38 sendrecv
                      media 0 party 4002 receive true send true fax
                      media 1 party 5002 receive true send true fax
                      media 0 to 1
                      media 1 to 0
                      re-INVITE fork 0 200 [20002 T38 sendrecv lines 2 v2]
            1500 hold caller
            2000 merge
                      re-INVITE caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
                      re-INVITE fork 0 [20002 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv v3]
            2010 offered caller 4000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      seat caller
        "#]],
    );
}
