//! Calls with video whose parties no longer see each other: rooms, holds, transfers, faxes; and their keys and ports.

use expect_test::expect;
use sidetone_media::session::StrictSource;
use sidetone_model::directory::{StrictSource as Rule, Trunk, Video};
use sidetone_sip::sdp::SrtpRule::{Off, Optional, Required};

use crate::call::Call;
use crate::io::{Input, Linking, MediaCommand, Output, Party, PortId, Sides};
use crate::link::peer_of;
use crate::tests::carrier::VIDEO;
use crate::tests::ladder::{Counting, any_instant, check_video, description, drain, forks, setup};
use crate::tests::network::{Net, OfRooms, Plan, SDP, acme, trunk};
use crate::tests::video::check_after;

#[test]
fn a_room_has_no_video() {
    check_video(
        [Off; 2],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv -> room
         10 journalled
         20 offer caller 4000 PCMU+VP8 sendrecv",
        expect![[r#"
                      media 0 party 4000 receive true send true
                      journal
            10 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv in 1 of 2 v1]
                      seat caller
            20 offer caller 4000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 0 PCMU hears true speaks true
                      re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 v1]
        "#]],
    );
    check_after(
        "2000 merge
         2010 offered caller 4000 PCMU+0VP8 sendrecv
         2020 offered 0 5000 PCMU+0VP8 sendrecv",
        expect![[r#"
            2000 merge
                      media 3 to no one
                      media 1 to no one
                      seat caller
                      re-INVITE caller [20000 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv in 1 of 2 v2]
                      seat fork 0
                      re-INVITE fork 0 [20004 opus,G722,PCMA,PCMU,telephone-event,CN sendrecv in 1 of 2 v2]
            2010 offered caller 4000 PCMU+0VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 0 PCMU hears true speaks true
            2020 offered 0 5000 PCMU+0VP8 sendrecv
                      media 2 party 5000 receive true send true
                      media 2 PCMU hears true speaks true
        "#]],
    );
}

/// A recording has the audio alone; while a program holds a party, no video is relayed.
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
        expect![[r#"
            1000 record start
                      media 0 is heard by mix 100 in PCMU
                      media 2 is heard by mix 100 in PCMU
                      record mix 100 Some([PortId(0), PortId(2)])
            1500 offer caller 4000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 0 PCMU hears true speaks true
                      media 0 to 2
                      media 2 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
            2000 record stop
                      mix 100 StopRecording
                      media 0 leaves its mix
                      media 2 leaves its mix
            3000 hold caller
                      media 3 to no one
                      media 1 to no one
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 2 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive in 1 of 2 + 20002 VP8 inactive RTP/AVPF lines 1 keys 0 v2]
                      re-INVITE fork 0 [20004 PCMU sendonly in 1 of 2 + 20006 VP8 inactive RTP/AVPF lines 1 keys 0 v2]
            3010 offered caller 4000 PCMU+VP8 inactive
                      media 0 party 4000 receive false send false
                      media 1 party 4010 receive false send false video
                      media 0 PCMU hears false speaks false
            3020 offered 0 5000 PCMU+VP8-inactive recvonly
                      media 2 party 5000 receive false send true
                      media 3 party 5010 receive false send false video
                      media 2 PCMU hears true speaks false
            4000 hold -
                      media 0 leaves its mix
                      media 2 leaves its mix
                      media 0 to 2
                      media 2 to 0
                      media 1 to 3
                      media 3 to 1
                      re-INVITE caller [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v3]
                      re-INVITE fork 0 [20004 PCMU sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v3]
            4010 offered caller 4000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 0 to 2
                      media 2 to 0
            4020 offered 0 5000 PCMU+VP8 sendrecv
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
        "#]],
    );
}

#[test]
fn the_video_of_a_parked_party_is_not_relayed() {
    check_after(
        "1000 park 0
         1010 dismiss caller
         1020 bye 0
         1030 report 2
         1030 report 0",
        expect![[r#"
            1000 park 0
                      media 3 to no one
                      media 1 to no one
                      media 2 joins mix 100 in PCMU muted hears Music
            1010 dismiss caller
                      BYE caller NORMAL_CLEARING
                      media 1 close
                      media 0 close
            1020 bye 0
                      fork 0 left its seat
                      media 3 close
                      media 2 close
            1030 report 2
            1030 report 0
        "#]],
    );
}

#[test]
fn a_fax_takes_the_place_of_audio_and_video() {
    check_after(
        "1000 offer 0 5002 T38+0VP8 sendrecv
         1010 offered caller 4002 T38+0VP8 sendrecv
         2000 offer 0 5000 PCMU+VP8 sendrecv
         2010 offered caller 4000 PCMU+VP8 sendrecv",
        expect![[r#"
            1000 offer 0 5002 T38+0VP8 sendrecv
                      re-INVITE caller [20000 T38 sendrecv lines 2 in 1 of 2 v2]
            1010 offered caller 4002 T38+0VP8 sendrecv
                      media 0 party 4002 receive true send true fax
                      media 2 party 5002 receive true send true fax
                      media 0 to 2
                      media 2 to 0
                      media 1 to no one
                      media 3 to no one
                      re-INVITE fork 0 200 [20004 T38 sendrecv lines 2 in 1 of 2 v2]
            2000 offer 0 5000 PCMU+VP8 sendrecv
                      re-INVITE caller [20000 PCMU,opus,G722,PCMA sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v3]
            2010 offered caller 4000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 1 to 3
                      media 3 to 1
                      re-INVITE fork 0 200 [20004 PCMU sendrecv in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 0 v3]
        "#]],
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
        expect![[r#"
                      INVITE fork 0 [20004 PCMU,opus,G722,PCMA sendrecv RTP/SAVP keys 2 in 1 of 2 + 20006 VP8 sendrecv RTP/SAVPF lines 1 keys 2 v1]
            100 answered 0 5000 PCMU+VP8 sendrecv SAVP B
                      media 0 secured by AES_CM_128_HMAC_SHA1_80
                      media 0 party 4000 receive true send true
                      media 1 secured by AES_CM_128_HMAC_SHA1_80
                      media 1 party 4010 receive true send true video
                      media 2 secured by AES_CM_128_HMAC_SHA1_80
                      media 2 party 5000 receive true send true
                      media 3 secured by AES_CM_128_HMAC_SHA1_80
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 1 to 3
                      media 3 to 1
                      media 2 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv RTP/SAVP keys 1 in 1 of 2 + 20002 VP8 sendrecv RTP/SAVPF lines 1 keys 1 v1]
            1000 offer caller 4000 PCMU+VP8 sendrecv SAVP A
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      re-INVITE caller 200 [20000 PCMU sendrecv RTP/SAVP keys 1 in 1 of 2 + 20002 VP8 sendrecv RTP/SAVPF lines 1 keys 1 v1]
            2000 offer 0 5000 PCMU+0VP8 sendrecv SAVP B
                      re-INVITE caller [20000 PCMU sendrecv RTP/SAVP keys 1 in 1 of 2 v2]
            2010 offered caller 4000 PCMU+0VP8 sendrecv SAVP A
                      media 0 party 4000 receive true send true
                      media 2 party 5000 receive true send true
                      media 0 to 2
                      media 2 to 0
                      media 1 to no one
                      media 3 to no one
                      re-INVITE fork 0 200 [20004 PCMU sendrecv RTP/SAVP keys 1 in 1 of 2 v2]
            3000 offer 0 5000 PCMU+VP8 sendrecv SAVP B
                      re-INVITE caller [20000 PCMU sendrecv RTP/SAVP keys 1 in 1 of 2 + 20002 VP8 sendrecv RTP/SAVPF lines 1 keys 1 v3]
            3010 offered caller 4000 PCMU+VP8 sendrecv SAVP A
                      media 0 party 4000 receive true send true
                      media 1 secured by AES_CM_128_HMAC_SHA1_80
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 secured by AES_CM_128_HMAC_SHA1_80
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 1 to 3
                      media 3 to 1
                      re-INVITE fork 0 200 [20004 PCMU sendrecv RTP/SAVP keys 1 in 1 of 2 + 20006 VP8 sendrecv RTP/SAVPF lines 1 keys 1 v3]
        "#]],
    );
    check_video(
        [Off, Optional],
        [true; 2],
        "call 4000 PCMU+VP8 sendrecv -> 1
         100 answered 0 5000 PCMU+VP8 sendrecv
         110 journalled",
        expect![[r#"
                      INVITE fork 0 [20004 PCMU,opus,G722,PCMA sendrecv RTP/AVP keys 2 in 1 of 2 + 20006 VP8 sendrecv RTP/AVPF lines 1 keys 2 v1]
            100 answered 0 5000 PCMU+VP8 sendrecv
                      media 0 party 4000 receive true send true
                      media 1 party 4010 receive true send true video
                      media 2 party 5000 receive true send true
                      media 3 party 5010 receive true send true video
                      media 0 to 2
                      media 2 to 0
                      media 1 to 3
                      media 3 to 1
                      media 2 answered
                      journal
            110 journalled
                      media 0 answered
                      200 caller [20000 PCMU sendrecv in 1 of 2 + 20002 VP8 sendrecv RTP/AVPF lines 1 keys 0 v1]
        "#]],
    );
}

/// A call of two phones with video that is up, and its ports.
fn up(ports: &mut Counting) -> Call {
    let now = any_instant();
    let mut setup = setup(Some(description("4000 PCMU+VP8 sendrecv")), forks(1));
    if let Sides::Bridge { caller, callee } = &mut setup.sides {
        for policy in [&mut caller.policy, &mut callee.policy] {
            *policy = policy.clone().with_video(true);
        }
    }
    let mut call = Call::new(now, setup);
    drain(&mut call, now, ports);
    for input in [Input::Answered(0, Some(description("5000 PCMU+VP8 sendrecv"))), Input::Journalled] {
        call.handle_input(now, input);
        drain(&mut call, now, ports);
    }
    assert!(call.parties().leg(Party::Callee(0)).unwrap().has_video());
    call
}

/// A party that a transfer links with a party of another call receives no video, and gets an offer without video.
#[test]
fn a_transferred_party_is_asked_to_end_its_video() {
    let now = any_instant();
    let mut ports = Counting { next: 0, left: 8 };
    let (mut call, other) = (up(&mut ports), up(&mut ports));
    let peer = peer_of(other.parties(), Party::Caller).unwrap();
    assert!(peer.negotiated.video.is_none() && peer.settled.media.len() == 1);
    let linking = Linking { peer, from: None, to: None, of_both: false };
    call.handle_input(now, Input::Link(Party::Callee(0), Box::new(linking)));
    let outputs = drain(&mut call, now, &mut ports);
    let hidden = outputs
        .iter()
        .filter(|output| matches!(output, Output::Media(PortId(1 | 3), MediaCommand::Unbridge)));
    assert_eq!(hidden.count(), 2, "{outputs:?}");
    let offers = outputs.iter().filter_map(|output| match output {
        Output::Offer(party, offer) => Some((*party, offer.media.len(), offer.media[1].port)),
        _ => None,
    });
    assert_eq!(offers.collect::<Vec<_>>(), [(Party::Callee(0), 2, 0)]);
    // It no longer has video, and gets no further offer.
    call.handle_input(
        now,
        Input::Offered(Party::Callee(0), Ok(Some(description("5000 PCMU+0VP8 sendrecv")))),
    );
    let outputs = drain(&mut call, now, &mut ports);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Offer(..))), "{outputs:?}");
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

/// The source rules of the extension and the trunk also apply to their video.
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
