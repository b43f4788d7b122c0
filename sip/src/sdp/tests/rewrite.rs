use std::net::SocketAddr;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::sdp::*;

fn parse(media: &str) -> SessionDescription {
    let head = "v=0\r\no=phone 7 7 IN IP4 198.51.100.5\r\ns=-\r\nc=IN IP4 198.51.100.5\r\nt=0 0\r\n";
    SessionDescription::parse(format!("{head}{}\r\n", media.trim().replace('\n', "\r\n")).as_bytes()).unwrap()
}

fn local() -> SocketAddr {
    "192.0.2.1:20000".parse().unwrap()
}

/// The media part of a description or the error, one line each.
fn check(result: Result<SessionDescription, NegotiationError>, expected: Expect) {
    let text = match result {
        Ok(description) => {
            let text = description.to_string().replace("\r\n", "\n");
            text.split_once("t=0 0\n").unwrap().1.to_owned()
        }
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&text);
}

const BROWSER: &str = "
m=audio 9 RTP/SAVPF 111
a=rtpmap:111 opus/48000/2
m=audio 40000 RTP/AVP 18 111 0 8 101
a=rtpmap:111 opus/48000/2
a=fmtp:111 useinbandfec=1
a=rtpmap:101 telephone-event/8000
a=fmtp:101 0-16
a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x
a=candidate:1 1 UDP 1 198.51.100.5 40000 typ host
a=ptime:20
a=rtcp-mux
m=video 40002 RTP/AVP 96
a=rtpmap:96 H264/90000
m=image 40004 udptl t38";

#[test]
fn an_offer_for_the_next_leg_is_ours() {
    check(
        offer_from(&parse(BROWSER), local(), &CodecPolicy::ANY, &CodecPolicy::ANY),
        expect![[r#"
            m=audio 20000 RTP/AVP 18 111 0 8 101
            a=rtpmap:18 G729/8000
            a=rtpmap:111 opus/48000/2
            a=fmtp:111 useinbandfec=1
            a=rtpmap:0 PCMU/8000
            a=rtpmap:8 PCMA/8000
            a=rtpmap:101 telephone-event/8000
            a=fmtp:101 0-16
            a=ptime:20
            a=sendrecv
        "#]],
    );
    check(
        offer_from(
            &parse(BROWSER),
            local(),
            &CodecPolicy::new(["PCMU", "PCMA"]),
            &CodecPolicy::new(["PCMA", "PCMU"]),
        ),
        expect![[r#"
            m=audio 20000 RTP/AVP 8 0 101
            a=rtpmap:8 PCMA/8000
            a=rtpmap:0 PCMU/8000
            a=rtpmap:101 telephone-event/8000
            a=fmtp:101 0-16
            a=ptime:20
            a=sendrecv
        "#]],
    );
}

#[test]
fn an_offer_that_leaves_nothing_is_488() {
    let (any, opus) = (CodecPolicy::ANY, CodecPolicy::new(["opus"]));
    let table = [
        ("no audio", "m=video 4 RTP/AVP 31", &any, NegotiationError::NoAudio),
        ("secure only", "m=audio 4 RTP/SAVP 0", &any, NegotiationError::NoAudio),
        ("switched off", "m=audio 0 RTP/AVP 0", &any, NegotiationError::NoAudio),
        ("too large for a packet", "m=audio 4 RTP/AVP 10", &any, NegotiationError::NoCommonCodec),
        ("not the party's", "m=audio 4 RTP/AVP 0 8", &opus, NegotiationError::NoCommonCodec),
        (
            "events alone",
            "m=audio 4 RTP/AVP 101\na=rtpmap:101 telephone-event/8000",
            &any,
            NegotiationError::NoCommonCodec,
        ),
    ];
    for (name, media, policy, expected) in table {
        assert_eq!(offer_from(&parse(media), local(), &any, policy), Err(expected), "{name}");
        assert_eq!(expected.status(), 488);
    }
}

#[test]
fn an_answer_keeps_the_offers_sections_and_numbers() {
    let answered = parse(
        "m=audio 5000 RTP/AVP 8 96 100\na=rtpmap:96 opus/48000/2\na=rtpmap:100 telephone-event/8000\na=fmtp:100 0-15\na=ptime:30",
    );
    check(
        answer_to(&parse(BROWSER), &answered, local()),
        expect![[r#"
            m=audio 0 RTP/SAVPF 111
            m=audio 20000 RTP/AVP 8 111 101
            a=rtpmap:8 PCMA/8000
            a=rtpmap:111 opus/48000/2
            a=rtpmap:101 telephone-event/8000
            a=fmtp:101 0-15
            a=ptime:30
            a=rtcp-mux
            a=sendrecv
            m=video 0 RTP/AVP 96
            m=image 0 udptl t38
        "#]],
    );
    check(
        answer_to(&parse(BROWSER), &parse("m=audio 0 RTP/AVP 0"), local()),
        expect![[r#"
        agree on media: the answer refuses the audio
    "#]],
    );
    check(
        answer_to(&parse(BROWSER), &parse("m=audio 4 RTP/AVP 9"), local()),
        expect![[r#"
        agree on media: no codec in common
    "#]],
    );
}

#[test]
fn our_own_answer_keeps_the_offerers_order() {
    check(
        answer(
            &parse("m=audio 4 RTP/AVP 8 9 0\na=sendonly"),
            local(),
            &CodecPolicy::new(["PCMU", "PCMA"]),
            Direction::SendRecv,
        ),
        expect![[r#"
            m=audio 20000 RTP/AVP 8 0
            a=rtpmap:8 PCMA/8000
            a=rtpmap:0 PCMU/8000
            a=recvonly
        "#]],
    );
}

#[test]
fn our_own_answer_has_no_codec_that_is_only_relayed() {
    let own = |media: &str| answer(&parse(media), local(), &CodecPolicy::ANY, Direction::SendRecv);
    assert_eq!(own("m=audio 4 RTP/AVP 18 3"), Err(NegotiationError::NoCommonCodec));
    let numbers = |answer: SessionDescription| {
        answer.media[0].codecs.iter().map(|codec| codec.payload_type).collect::<Vec<_>>()
    };
    assert_eq!(own("m=audio 4 RTP/AVP 18 0").map(numbers), Ok(vec![0]));
}

const MOBILE: &str = "
m=audio 40000 RTP/AVP 104 105 106 97
a=rtpmap:104 AMR-WB/16000
a=fmtp:104 mode-change-capability=2;max-red=0
a=rtpmap:105 AMR-WB/16000
a=fmtp:105 octet-align=1
a=rtpmap:106 x-codec/24000/2
a=fmtp:106 profile=7
a=rtpmap:97 telephone-event/16000
a=fmtp:97 0-15
a=maxptime:240";

#[test]
fn codecs_that_we_do_not_know_keep_their_parameters_and_configurations() {
    let onward = offer_from(&parse(MOBILE), local(), &CodecPolicy::ANY, &CodecPolicy::ANY);
    check(
        onward.clone(),
        expect![[r#"
            m=audio 20000 RTP/AVP 104 105 106 97
            a=rtpmap:104 AMR-WB/16000
            a=fmtp:104 mode-change-capability=2;max-red=0
            a=rtpmap:105 AMR-WB/16000
            a=fmtp:105 octet-align=1
            a=rtpmap:106 x-codec/24000/2
            a=fmtp:106 profile=7
            a=rtpmap:97 telephone-event/16000
            a=fmtp:97 0-15
            a=maxptime:240
            a=sendrecv
        "#]],
    );
    let taken = parse(
        "m=audio 5000 RTP/AVP 100 106\na=rtpmap:100 AMR-WB/16000\na=fmtp:100 octet-align=1; mode-set=0,1,2\n\
         a=rtpmap:106 x-codec/24000/2\na=fmtp:106 profile=7;low",
    );
    let back = answer_to(&parse(MOBILE), &taken, local());
    check(
        back.clone(),
        expect![[r#"
            m=audio 20000 RTP/AVP 105 106
            a=rtpmap:105 AMR-WB/16000
            a=fmtp:105 octet-align=1; mode-set=0,1,2
            a=rtpmap:106 x-codec/24000/2
            a=fmtp:106 profile=7;low
            a=sendrecv
        "#]],
    );
    let callee = Negotiated::new(&onward.unwrap(), &taken, Role::Offerer).unwrap();
    let caller = Negotiated::new(&parse(MOBILE), &back.unwrap(), Role::Answerer).unwrap();
    let (there, here) = (payload_map(&caller, &callee).unwrap(), payload_map(&callee, &caller).unwrap());
    assert_eq!((there[105], there[106]), (100, 106));
    assert_eq!((here[105], here[100], here[106]), (105, 105, 106));
    let other = parse("m=audio 5000 RTP/AVP 104\na=rtpmap:104 AMR-WB/16000\na=fmtp:104 octet-align=1;crc=1");
    assert_eq!(answer_to(&parse(MOBILE), &other, local()), Err(NegotiationError::NoCommonCodec));
}

#[test]
fn hold_crosses_the_switch_in_every_spelling() {
    let table = [
        ("sendonly", "m=audio 4 RTP/AVP 0\na=sendonly", Direction::SendOnly, Direction::RecvOnly, true),
        ("inactive", "m=audio 4 RTP/AVP 0\na=inactive", Direction::Inactive, Direction::Inactive, true),
        ("recvonly", "m=audio 4 RTP/AVP 0\na=recvonly", Direction::RecvOnly, Direction::SendOnly, true),
        ("0.0.0.0", "m=audio 4 RTP/AVP 0\nc=IN IP4 0.0.0.0", Direction::SendOnly, Direction::RecvOnly, false),
        (
            "::",
            "m=audio 4 RTP/AVP 0\nc=IN IP6 ::\na=recvonly",
            Direction::Inactive,
            Direction::Inactive,
            false,
        ),
    ];
    for (name, media, next_leg, ours, addressed) in table {
        let offered = parse(media);
        let next = offer_from(&offered, local(), &CodecPolicy::ANY, &CodecPolicy::ANY).unwrap();
        assert_eq!(next.media[0].direction, next_leg, "{name}");
        let mut leg = OfferAnswer::new(1);
        leg.receive_offer(offered.clone()).unwrap();
        leg.send_answer(answer(&offered, local(), &CodecPolicy::ANY, Direction::SendRecv).unwrap()).unwrap();
        let negotiated = leg.negotiated().unwrap();
        assert_eq!(negotiated.direction, ours, "{name}");
        assert_eq!(negotiated.remote.is_some(), addressed, "{name}");
    }
}

#[test]
fn what_is_settled_has_both_numbers() {
    let offered = parse(
        "m=audio 4000 RTP/AVP 96 0 101\na=rtpmap:96 opus/48000/2\na=rtpmap:101 telephone-event/8000\na=rtcp:4009\na=rtcp-mux",
    );
    let answered = parse(
        "m=audio 5000 RTP/AVP 111 100\na=rtpmap:111 OPUS/48000/2\na=fmtp:111 cbr=1\na=rtpmap:100 telephone-event/8000\na=ptime:40\na=maxptime:80",
    );
    let us = Negotiated::new(&offered, &answered, Role::Offerer).unwrap();
    let numbers = |leg: &Negotiated| leg.payloads.iter().map(|p| (p.send, p.receive)).collect::<Vec<_>>();
    // An answerer that sends with its own numbers is accepted, too.
    assert_eq!(numbers(&us), [(111, 96), (100, 101), (111, 111), (100, 100)]);
    assert_eq!((us.ptime_ms, us.maxptime_ms, us.rtcp_mux), (Some(40), Some(80), false));
    assert_eq!(us.codec().unwrap().fmtp.as_deref(), Some("cbr=1"));
    assert_eq!(us.telephone_event().unwrap().send, 100);
    assert_eq!(us.remote_rtcp.unwrap().port(), 5001);
    let them = Negotiated::new(&offered, &answered, Role::Answerer).unwrap();
    // So is an offerer that does.
    assert_eq!(numbers(&them), [(96, 111), (101, 100), (96, 96), (101, 101)]);
    assert_eq!(them.remote_rtcp.unwrap().port(), 4009);
    assert_eq!((them.own_ptime_ms, them.local), (Some(40), us.remote));

    // `them` receives 111, which is 111 on `us` too, and so on; only numbers of the party's own are mapped. Two legs that
    // both renumbered map all.
    let map = payload_map(&them, &us).unwrap();
    assert_eq!((map[111], map[100], map[96], map[101]), (111, 100, 111, 100));
    let map = payload_map(&us, &us).unwrap();
    assert_eq!((map[96], map[101], map[0], map[127]), (111, 100, 0, 127));
    assert_eq!((map[111], map[100]), (111, 100));
    // A number that the offer gave to another codec keeps that meaning, if the answer has this codec.
    let taken =
        parse("m=audio 5000 RTP/AVP 101 0 96\na=rtpmap:101 opus/48000/2\na=rtpmap:96 telephone-event/8000");
    let crossed = Negotiated::new(&offered, &taken, Role::Offerer).unwrap();
    assert_eq!(numbers(&crossed), [(101, 96), (0, 0), (96, 101)]);
    let free = parse("m=audio 5000 RTP/AVP 0 96\na=rtpmap:96 telephone-event/8000");
    let renumbered = Negotiated::new(&offered, &free, Role::Offerer).unwrap();
    assert_eq!(numbers(&renumbered), [(0, 0), (96, 101), (96, 96)], "the number of Opus, which was refused");
}

#[test]
fn equal_numbers_need_no_map() {
    let both = parse("m=audio 4000 RTP/AVP 0 101\na=rtpmap:101 telephone-event/8000");
    let leg = Negotiated::new(&both, &both, Role::Offerer).unwrap();
    assert_eq!(payload_map(&leg, &leg), None);
}

#[test]
fn turns_are_kept() {
    let ours = || offer(local(), CodecPolicy::ANY.codecs(), Direction::SendRecv);
    let theirs = || parse("m=audio 4000 RTP/AVP 0");
    let mut leg = OfferAnswer::new(5);
    assert_eq!(leg.receive_answer(theirs()).unwrap_err(), OfferAnswerError::NoOffer);
    leg.send_offer(ours()).unwrap();
    assert_eq!(leg.receive_offer(theirs()), Err(OfferAnswerError::Pending), "glare");
    assert_eq!(leg.send_offer(ours()), Err(OfferAnswerError::Pending));
    assert_eq!(leg.send_answer(ours()), Err(OfferAnswerError::NoOffer));
    let two = parse("m=audio 4000 RTP/AVP 0\nm=video 0 RTP/AVP 31");
    assert_eq!(leg.receive_answer(two).unwrap_err(), OfferAnswerError::Shape);
    let refused = parse("m=audio 0 RTP/AVP 0");
    assert_eq!(
        leg.receive_answer(refused).unwrap_err(),
        OfferAnswerError::Negotiation(NegotiationError::Refused)
    );
    leg.receive_answer(theirs()).unwrap();
    // The 200 comes from another branch than the 183.
    assert_eq!(leg.receive_answer(parse("m=audio 6000 RTP/AVP 8")).unwrap().remote.unwrap().port(), 6000);
    // A failed re-INVITE changes nothing.
    leg.receive_offer(parse("m=audio 7000 RTP/AVP 0")).unwrap();
    leg.roll_back();
    assert_eq!(leg.negotiated().unwrap().remote.unwrap().port(), 6000);
    assert_eq!(leg.send_answer(ours()), Err(OfferAnswerError::NoOffer), "the last offer was ours");
}

#[test]
fn versions_count_changes_and_sections_stay() {
    let mut leg = OfferAnswer::new(5);
    leg.receive_offer(parse("m=video 4 RTP/AVP 31\nm=audio 4000 RTP/AVP 0")).unwrap();
    let reply = answer(leg.remote_offer().unwrap(), local(), &CodecPolicy::ANY, Direction::SendRecv).unwrap();
    let first = leg.send_answer(reply.clone()).unwrap();
    assert_eq!((first.origin.session_id.as_str(), first.origin.version), ("5", 1));
    let again = leg.send_answer(reply).unwrap();
    assert_eq!(again.origin.version, 1, "the same description is the same version");

    let hold = offer(local(), vec![Codec::new(0, "PCMU", 8_000, 1)], Direction::SendOnly);
    let second = leg.send_offer(hold).unwrap();
    assert_eq!(second.origin.version, 2);
    assert_eq!(second.media.len(), 2);
    assert_eq!((second.media[0].port, second.media[1].port), (0, 20_000));
    assert_eq!(second.media[1].direction, Direction::SendOnly);
    leg.receive_answer(parse("m=video 0 RTP/AVP 31\nm=audio 4000 RTP/AVP 0\na=recvonly")).unwrap();
    assert_eq!(leg.negotiated().unwrap().direction, Direction::SendOnly);
}

proptest! {
    /// For any order of offers and answers of both sides: no panic, and everything we send is our own
    /// description.
    #[test]
    fn any_order_of_turns_is_survived(turns in prop::collection::vec((0_u8..6, 0_usize..6), 0..30)) {
        let bodies = [
            parse("m=audio 4000 RTP/AVP 0 8"),
            parse(BROWSER),
            parse("m=video 4 RTP/AVP 31"),
            parse("m=audio 0 RTP/AVP 0"),
            parse("m=audio 4000 RTP/AVP 0\nc=IN IP4 0.0.0.0"),
            offer(local(), CodecPolicy::ANY.codecs(), Direction::SendOnly),
        ];
        let (mut leg, mut version) = (OfferAnswer::new(9), 0);
        for (turn, body) in turns {
            let body = bodies[body].clone();
            let sent = match turn {
                0 => leg.send_offer(body).ok(),
                1 => leg.send_answer(body).ok(),
                2 => leg.receive_offer(body).err().and_then(|_| leg.local().cloned()),
                3 => leg.receive_answer(body).err().and_then(|_| leg.local().cloned()),
                4 => match leg.remote_offer().cloned().map(|offer| answer(&offer, local(), &CodecPolicy::ANY, Direction::SendRecv)) {
                    Some(Ok(ours)) => Some(leg.send_answer(ours).unwrap()),
                    _ => None,
                },
                _ => {
                    leg.roll_back();
                    None
                }
            };
            if let Some(sent) = sent {
                prop_assert_eq!(sent.origin.session_id.as_str(), "9");
                prop_assert!(sent.origin.version >= version);
                version = sent.origin.version;
                prop_assert!(SessionDescription::parse(&sent.to_bytes()).is_ok());
            }
        }
    }
}

/// RFC 3611 §5.2: a party that measures round trips takes part on both sides; other blocks are its own request.
#[test]
fn an_answer_repeats_round_trips_and_no_other_extended_report() {
    for (value, echo, xr) in [
        (
            "rcvr-rtt=all:100 stat-summary=loss,dup",
            true,
            XrWish { round_trip: true, summary: true, voip: false },
        ),
        ("voip-metrics", false, XrWish { voip: true, ..XrWish::default() }),
    ] {
        let offered = parse(&format!("m=audio 4000 RTP/AVP 0\na=rtcp-xr:{value}"));
        let ours = answer(&offered, local(), &CodecPolicy::ANY, Direction::SendRecv).unwrap();
        assert_eq!(ours.to_string().contains("\r\na=rtcp-xr:rcvr-rtt=all\r\n"), echo, "{ours}");
        assert!(!ours.to_string().contains("summary"), "{ours}");
        assert_eq!(Negotiated::new(&offered, &ours, Role::Answerer).unwrap().xr, xr);
    }
}

#[test]
fn an_ipv4_mapped_address_is_an_ipv4_address() {
    let media = "m=audio 4000 RTP/AVP 0\nc=IN IP6 ::ffff:192.0.2.1";
    let mapped = parse(media);
    assert_eq!(mapped.rtp_address(&mapped.media[0]), Some("192.0.2.1:4000".parse().unwrap()));
}

#[test]
fn what_is_protected() {
    let key = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
    let cases = [
        ("plain", "m=audio 4000 RTP/AVP 0".to_owned(), false),
        ("keys in SDP", format!("m=audio 4000 RTP/SAVP 0\n{key}"), true),
        ("a key in plain RTP", format!("m=audio 4000 RTP/AVP 0\n{key}"), true),
        ("keys in SDP, with feedback", format!("m=audio 4000 rtp/savpf 0\n{key}"), true),
        ("keys of a handshake", "m=audio 4000 UDP/TLS/RTP/SAVPF 0".to_owned(), true),
    ];
    for (name, media, expected) in cases {
        let description = parse(&media);
        let negotiated = Negotiated::new(&description, &description, Role::Answerer).unwrap();
        assert_eq!(negotiated.protected, expected, "{name}");
    }
}
