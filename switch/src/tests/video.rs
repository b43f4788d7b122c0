//! Calls with video: the offers to each party, the commands to the video ports, and the refusals.

use expect_test::{Expect, expect};
use sidetone_sip::sdp::SrtpRule::Off;

use crate::tests::ladder::check_video;

/// Plays a script after the answer of a call with video on both sides.
pub(super) fn check_after(script: &str, expect: Expect) {
    const BEGUN: &str = "call 4000 PCMU+VP8 sendrecv -> 1
         100 answered 0 5000 PCMU+VP8 sendrecv
         110 journalled
        ";
    let play = |script: &str| crate::tests::ladder::play_video([Off; 2], [true; 2], script);
    let (played, begun) = (play(&format!("{BEGUN}{script}")), play(BEGUN));
    expect.assert_eq(played.strip_prefix(&begun).unwrap());
}

#[test]
fn video_passes_between_two_parties_that_may_have_it() {
    check_video(
        [Off; 2],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv -> 1
         50 ringing 0 183 5000 PCMU+VP8 sendrecv
         100 answered 0 5000 PCMU+VP8 sendrecv
         110 journalled
         5000 bye caller
         5010 report 3 video 20
         5010 report 1 video 10
         5010 report 2 PCMU
         5010 report 0 PCMU",
        expect![[r#"
                      INVITE fork 0 [20004 PCMU,opus,G722,PCMA sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
            50 ringing 0 183 5000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 1 to 3
                      media 3 to 1
                      183 caller [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
            100 answered 0 5000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 2 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
            5000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 3 close
                      media 2 close
                      media 1 close
                      media 0 close
            5010 report 3 video 20
            5010 report 1 video 10
            5010 report 2 PCMU
            5010 report 0 PCMU
                      record NORMAL_CLEARING answered 1970-01-01T00:00:00.110Z billsec 4 bridge NORMAL_CLEARING status 200 codecs PCMU/PCMU verdict -
        "#]],
    );
}

#[test]
fn video_is_refused_unless_both_may_have_it() {
    let script = "call 4000 PCMU+VP8 sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         1000 offer caller 4000 PCMU+VP8 sendrecv
         2000 offer 0 5000 PCMU+VP8 sendrecv
         5000 bye caller
         5010 report 0 PCMU";
    check_video(
        [Off; 2],
        [false; 2],
        script,
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
                  200 caller [20000 PCMU sendrecv in 1 of 2 v1]
        1000 offer caller 4000 PCMU+VP8 sendrecv
                  media 0 party 4000 receive true send true
                  media 1 party 5000 receive true send true
                  media 0 to 1
                  media 1 to 0
                  re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 v1]
        2000 offer 0 5000 PCMU+VP8 sendrecv
                  media 0 party 4000 receive true send true
                  media 1 party 5000 receive true send true
                  media 0 to 1
                  media 1 to 0
                  re-INVITE fork 0 200 [20002 PCMU sendrecv in 1 of 2 v2]
        5000 bye caller
                  BYE fork 0 NORMAL_CLEARING
                  media 1 close
                  media 0 close
        5010 report 0 PCMU
    "#]],
    );
    check_video(
        [Off; 2],
        [true, false],
        script,
        expect![[r#"
                  INVITE fork 0 [20004 PCMU,opus,G722,PCMA sendrecv v1]
        100 answered 0 5000 PCMU sendrecv
                  media 0 party 4000 receive true send true
                  media 2 party 5000 receive true send true
                  media 0 to 2
                  media 2 to 0
                  media 2 answered
                  journal
        110 journalled
                  media 0 answered
                  200 caller [20000 PCMU sendrecv in 1 of 2 v1]
        1000 offer caller 4000 PCMU+VP8 sendrecv
                  media 0 party 4000 receive true send true
                  media 2 party 5000 receive true send true
                  media 0 to 2
                  media 2 to 0
                  re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 v1]
        2000 offer 0 5000 PCMU+VP8 sendrecv
                  media 0 party 4000 receive true send true
                  media 2 party 5000 receive true send true
                  media 0 to 2
                  media 2 to 0
                  re-INVITE fork 0 200 [20004 PCMU sendrecv in 1 of 2 v2]
        5000 bye caller
                  BYE fork 0 NORMAL_CLEARING
                  media 2 close
                  media 1 close
                  media 0 close
        5010 report 0 PCMU
    "#]],
    );
    check_video(
        [Off; 2],
        [false, true],
        script,
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
                  200 caller [20000 PCMU sendrecv in 1 of 2 v1]
        1000 offer caller 4000 PCMU+VP8 sendrecv
                  media 0 party 4000 receive true send true
                  media 1 party 5000 receive true send true
                  media 0 to 1
                  media 1 to 0
                  re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 v1]
        2000 offer 0 5000 PCMU+VP8 sendrecv
                  media 0 party 4000 receive true send true
                  media 1 party 5000 receive true send true
                  media 0 to 1
                  media 1 to 0
                  re-INVITE fork 0 200 [20002 PCMU sendrecv in 1 of 2 v2]
        5000 bye caller
                  BYE fork 0 NORMAL_CLEARING
                  media 1 close
                  media 0 close
        5010 report 0 PCMU
    "#]],
    );
}

#[test]
fn a_party_holds_resumes_moves_drops_and_adds_video() {
    check_after(
        "1000 offer caller 4000 PCMU+VP8 sendonly
         1010 offered 0 5000 PCMU+VP8 recvonly
         1500 offer caller 4000 PCMU+VP8 sendrecv
         1510 offered 0 5000 PCMU+VP8 sendrecv
         1600 offer caller 4002 PCMU+VP8 sendrecv
         1700 offer caller 4002 PCMU+VP8-sendonly sendrecv
         1710 offered 0 5000 PCMU+VP8-recvonly sendrecv
         2000 offer 0 5000 PCMU+0VP8 sendrecv
         2010 offered caller 4002 PCMU+0VP8 sendrecv
         3000 offer 0 5000 PCMU+VP8 sendrecv
         3010 offered caller 4002 PCMU+VP8 sendrecv",
        expect![[r#"
            1000 offer caller 4000 PCMU+VP8 sendonly
                      re-INVITE fork 0 [20004 PCMU sendonly in 1 of 2 + 20006 VP8 sendonly RTP/AVPF lines 1 keys 0 v2]
            1010 offered 0 5000 PCMU+VP8 recvonly
                      media 0 party 4000 receive true send false
                      media 1 party 4010 receive true send false video
                      media 2 party 5000 receive false send true
                      media 3 party 5010 receive false send true video
                      media 0 to 2
                      media 2 to 0
                      re-INVITE caller 200 [20000 PCMU recvonly in 1 of 2 + 20002 VP8 recvonly RTP/AVPF lines 1 keys 0 v2]
            1500 offer caller 4000 PCMU+VP8 sendrecv
                      re-INVITE fork 0 [20004 PCMU sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v3]
            1510 offered 0 5000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v3]
            1600 offer caller 4002 PCMU+VP8 sendrecv
                      media 0 party 4002 receive true send true
                      media 1 party 4012 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v3]
            1700 offer caller 4002 PCMU+VP8-sendonly sendrecv
                      re-INVITE fork 0 [20004 PCMU sendrecv in 1 of 2 + 20006 VP8 sendonly RTP/AVPF lines 1 keys 0 v4]
            1710 offered 0 5000 PCMU+VP8-recvonly sendrecv
                      media 0 party 4002 receive true send true
                      media 1 party 4012 receive true send false video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive false send true video
                      media 0 to 2
                      media 2 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 recvonly RTP/AVPF lines 1 keys 0 v4]
            2000 offer 0 5000 PCMU+0VP8 sendrecv
                      re-INVITE caller [20000 PCMU sendrecv in 1 of 2 v5]
            2010 offered caller 4002 PCMU+0VP8 sendrecv
                      media 0 party 4002 receive true send true
                      media 2 party 5000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      media 1 to no one
                      media 3 to no one
                      re-INVITE fork 0 200 [20004 PCMU sendrecv in 1 of 2 v5]
            3000 offer 0 5000 PCMU+VP8 sendrecv
                      re-INVITE caller [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v6]
            3010 offered caller 4002 PCMU+VP8 sendrecv
                      media 0 party 4002 receive true send true
                      media 1 party 4012 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 1 to 3
                      media 3 to 1
                      re-INVITE fork 0 200 [20004 PCMU sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v6]
        "#]],
    );
}

#[test]
fn video_is_added_to_a_call_that_began_without_it() {
    check_video(
        [Off; 2],
        [true; 2],
        "call 4000 PCMU sendrecv -> 1
         100 answered 0 5000 PCMU sendrecv
         110 journalled
         1000 offer caller 4000 PCMU+VP8 sendrecv
         1010 offered 0 488
         2000 offer caller 4000 PCMU+VP8 sendrecv
         2010 offered 0 5000 PCMU+0VP8 sendrecv
         3000 offer 0 5000 PCMU+H264 sendrecv
         3010 offered caller 4000 PCMU+H264 sendrecv
         4000 refresh caller
         4010 offered caller 4000 PCMU+H264 sendrecv
         4500 offer caller
         4510 ack caller 4000 PCMU+0VP8 sendrecv
         4520 offered 0 5000 PCMU+0VP8 sendrecv",
        expect![[r#"
                      INVITE fork 0 [20004 PCMU,opus,G722,PCMA sendrecv v1]
            100 answered 0 5000 PCMU sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 5000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      media 2 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv v1]
            1000 offer caller 4000 PCMU+VP8 sendrecv
                      re-INVITE fork 0 [20004 PCMU sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v2]
            1010 offered 0 488
                      re-INVITE caller 488
            2000 offer caller 4000 PCMU+VP8 sendrecv
                      re-INVITE fork 0 [20004 PCMU sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v2]
            2010 offered 0 5000 PCMU+0VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 5000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 v2]
            3000 offer 0 5000 PCMU+H264 sendrecv
                      re-INVITE caller [20000 PCMU sendrecv in 1 of 2 + 20002 H264 sendrecv RTP/AVPF lines 1 keys 0 v3]
            3010 offered caller 4000 PCMU+H264 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 1 to 3
                      media 3 to 1
                      re-INVITE fork 0 200 [20004 PCMU sendrecv in 1 of 2 + 20006 H264 sendrecv RTP/AVPF lines 1 keys 0 v3]
            4000 refresh caller
                      re-INVITE caller [20000 PCMU sendrecv in 1 of 2 + 20002 H264 sendrecv RTP/AVPF lines 1 keys 0 v3]
            4010 offered caller 4000 PCMU+H264 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
            4500 offer caller
                      re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 + 20002 H264 sendrecv RTP/AVPF lines 1 keys 0 v3]
            4510 ack caller 4000 PCMU+0VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 1 to no one
                      media 3 to no one
                      re-INVITE fork 0 [20004 PCMU sendrecv in 1 of 2 v4]
            4520 offered 0 5000 PCMU+0VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 5000 receive true send true
                      media 0 to 2
                      media 2 to 0
        "#]],
    );
}

/// The video of the fork that answers is relayed; the ports of the others close. A caller that had an answer without
/// video is offered it after its ACK.
#[test]
fn each_fork_has_its_answer() {
    check_video(
        [Off; 2],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv -> 2
         50 ringing 0 183 5000 PCMU+0VP8 sendrecv
         100 answered 1 6000 PCMU+VP8 sendrecv
         110 journalled
         120 ack caller
         130 offered caller 4000 PCMU+VP8 sendrecv
         140 bye 0",
        expect![[r#"
                      INVITE fork 0 [20004 PCMU,opus,G722,PCMA sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
                      INVITE fork 1 [20008 PCMU,opus,G722,PCMA sendrecv in 1 of 2 + 20010 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
            50 ringing 0 183 5000 PCMU+0VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 2 party 5000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      183 caller [20000 PCMU sendrecv in 1 of 2 v1]
            100 answered 1 6000 PCMU+VP8 sendrecv
                      CANCEL fork 0 LOSE_RACE
                      media 3 close
                      media 2 close
                      media 0 party 4000 receive true send true
                      media 4 party 6000 receive true send true
                      media 5 party 6010 receive true send true video
                      media 0 to 4
                      media 4 to 0
                      media 4 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv in 1 of 2 v1]
            120 ack caller
                      re-INVITE caller [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVP lines 1 keys 0 v2]
            130 offered caller 4000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 4 party 6000 receive true send true
                      media 5 party 6010 receive true send true video
                      media 0 to 4
                      media 4 to 0
                      media 1 to 5
                      media 5 to 1
            140 bye 0
        "#]],
    );
    check_video(
        [Off; 2],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv -> trunks
         10 attempt 1
         20 failed 0 503
         30 attempt 2
         100 answered 1 6000 PCMU+VP8 sendrecv
         110 journalled",
        expect![[r#"
            10 attempt 1
                      INVITE fork 0 [20004 PCMU,opus,G722,PCMA sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
            20 failed 0 503
                      media 3 close
                      media 2 close
                      next after 503
            30 attempt 2
                      INVITE fork 1 [20008 PCMU,opus,G722,PCMA sendrecv in 1 of 2 + 20010 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
            100 answered 1 6000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 4 party 6000 receive true send true
                      media 5 party 6010 receive true send true video
                      media 0 to 4
                      media 4 to 0
                      media 1 to 5
                      media 5 to 1
                      media 4 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
        "#]],
    );
}
