//! Calls with video: what each party is offered, what the relay is given for the ports of video, and what is refused.

use expect_test::{Expect, expect};
use sidetone_media::session::StrictSource;
use sidetone_model::directory::{StrictSource as Rule, Trunk, Video};
use sidetone_sip::sdp::SrtpRule::{Off, Optional, Required};

use crate::call::Call;
use crate::io::{MediaCommand, Output, Sides};
use crate::tests::carrier::VIDEO;
use crate::tests::ladder::{Counting, any_instant, check_video, description, drain, forks, setup};
use crate::tests::network::{Net, OfRooms, Plan, SDP, acme, trunk};

/// Plays a script after the answer of a call with video on both sides.
fn check_after(script: &str, expect: Expect) {
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
        expect![[r#""#]],
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
    check_video([Off; 2], [false; 2], script, expect![[r#""#]]);
    check_video([Off; 2], [true, false], script, expect![[r#""#]]);
    check_video([Off; 2], [false, true], script, expect![[r#""#]]);
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
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}

/// The video of the fork that answers is relayed; the ports of the others close.
#[test]
fn each_fork_has_its_answer() {
    check_video(
        [Off; 2],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv -> 2
         50 ringing 0 183 5000 PCMU+0VP8 sendrecv
         100 answered 1 6000 PCMU+VP8 sendrecv
         110 journalled
         120 bye 0",
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}

#[test]
fn a_room_has_no_video() {
    check_video(
        [Off; 2],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv -> room
         10 journalled
         20 offer caller 4000 PCMU+VP8 sendrecv",
        expect![[r#""#]],
    );
    check_after(
        "2000 merge
         2010 offered caller 4000 PCMU+0VP8 sendrecv
         2020 offered 0 5000 PCMU+0VP8 sendrecv",
        expect![[r#""#]],
    );
}

/// A recording listens to the audio alone; on hold by a program nobody is seen.
#[test]
fn a_recording_leaves_video_alone_and_a_hold_ends_it() {
    check_after(
        "1000 record start
         1500 offer caller 4000 PCMU+VP8 sendrecv
         2000 record stop
         3000 hold caller
         3010 offered caller 4000 PCMU+VP8 inactive
         3020 offered 0 5000 PCMU+VP8-inactive recvonly
         4000 hold -
         4010 offered caller 4000 PCMU+VP8 sendrecv
         4020 offered 0 5000 PCMU+VP8 sendrecv",
        expect![[r#""#]],
    );
}

#[test]
fn a_parked_party_is_asked_to_end_its_video() {
    check_after(
        "1000 park 0
         1010 dismiss caller
         1020 bye 0
         1030 report 2
         1030 report 0",
        expect![[r#""#]],
    );
}

#[test]
fn a_fax_takes_the_place_of_audio_and_video() {
    check_after(
        "1000 offer 0 5002 T38 sendrecv
         1010 offered caller 4002 T38 sendrecv
         2000 offer 0 5000 PCMU+VP8 sendrecv
         2010 offered caller 4000 PCMU+VP8 sendrecv",
        expect![[r#""#]],
    );
}

#[test]
fn video_is_encrypted_where_the_audio_is() {
    check_video(
        [Optional, Required],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv SAVP A -> 1
         100 answered 0 5000 PCMU+VP8 sendrecv SAVP B
         110 journalled
         1000 offer caller 4000 PCMU+VP8 sendrecv SAVP A
         2000 offer 0 5000 PCMU+0VP8 sendrecv SAVP B
         2010 offered caller 4000 PCMU+0VP8 sendrecv SAVP A
         3000 offer 0 5000 PCMU+VP8 sendrecv SAVP B
         3010 offered caller 4000 PCMU+VP8 sendrecv SAVP A",
        expect![[r#""#]],
    );
    check_video(
        [Off, Optional],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv -> 1
         100 answered 0 5000 PCMU+VP8 sendrecv
         110 journalled",
        expect![[r#""#]],
    );
}

/// A call whose only free ports are those of its audio has no video.
#[test]
fn a_call_without_ports_for_video_has_audio() {
    let now = any_instant();
    let mut setup = setup(Some(description("4000 PCMU+VP8 sendrecv")), forks(1));
    if let Sides::Bridge { caller, callee } = &mut setup.sides {
        for policy in [&mut caller.policy, &mut callee.policy] {
            *policy = policy.clone().with_video(true);
        }
    }
    let mut call = Call::new(now, setup);
    let mut ports = Counting { next: 0, left: 3 };
    let outputs = drain(&mut call, now, &mut ports);
    let [Output::Invite(0, offer)] = outputs.as_slice() else { panic!("{outputs:?}") };
    assert_eq!((offer.media.len(), offer.carried_video()), (1, None));
    assert_eq!(call.ports().count(), 3);
}

/// The rule for sources of the extension and the trunk is valid for their video too.
#[test]
fn video_is_taken_by_the_rule_of_its_party() {
    const CARRIER: &str = "203.0.113.1:5060";
    let carrier = Trunk { video: Video::Pass, strict_source: Some(Rule::Any), ..trunk(1, CARRIER) };
    let mut directory = acme(vec![carrier]);
    (directory.extensions[0].video, directory.extensions[0].strict_source) = (Video::Pass, Some(Rule::Sdp));
    let mut net = Net::new(directory);
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial("+447700900123");
    net.offer_anew(&format!("{SDP}{VIDEO}"));
    let described = net.of_rooms.iter().filter_map(|order| match order {
        OfRooms::Media(port, MediaCommand::Describe(description)) if description.video => {
            Some((port.0, description.strict_source, description.remote.map(|remote| remote.port())))
        }
        _ => None,
    });
    let expected = [(2, Some(StrictSource::Sdp), Some(6010)), (4, Some(StrictSource::Any), Some(6010))];
    assert_eq!(described.collect::<Vec<_>>(), expected);
    net.hang_up();
    assert_eq!((net.records.len(), net.ports.0.len()), (1, 4));
}
