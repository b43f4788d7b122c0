//! Video between two parties: passed sections, their positions and their keys.

use std::net::SocketAddr;

use crate::sdp::{
    CodecPolicy, Direction, KeySeed, OfferAnswer, SessionDescription, SrtpRule, answer_to, answer_video,
    offer_from, offer_video,
};

const SECTION: &str = "m=video 4010 RTP/AVPF 102 103\nb=AS:512\nb=TIAS:512000\na=rtpmap:102 H264/90000\n\
    a=fmtp:102 profile-level-id=42e01f;packetization-mode=1\na=rtpmap:103 rtx/90000\na=fmtp:103 apt=102\n\
    a=rtcp-fb:102 nack pli\na=rtcp-fb:* ccm fir\na=imageattr:102 send * recv [x=640,y=480]\na=framerate:30\na=rtcp-rsize";
const OWN_LINES: &str = "a=x-other:1\na=candidate:1 1 UDP 1 192.0.2.1 4010 typ host\na=rtcp:4444";
const KEY: &str = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj";
const OTHER_KEY: &str = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";

fn parse(media: &str) -> SessionDescription {
    let text = format!("v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\n{media}\n");
    SessionDescription::parse(text.replace('\n', "\r\n").as_bytes()).unwrap()
}

fn local() -> SocketAddr {
    "198.51.100.1:20000".parse().unwrap()
}

fn local_video() -> SocketAddr {
    "198.51.100.1:20002".parse().unwrap()
}

/// Our offer for the next leg.
fn onward(offered: &SessionDescription) -> SessionDescription {
    let mut offer = offer_from(offered, local(), &CodecPolicy::ANY, &CodecPolicy::ANY).unwrap();
    offer_video(&mut offer, offered, local_video());
    offer
}

/// Our answer for the offerer.
fn back(offered: &SessionDescription, answered: &SessionDescription) -> SessionDescription {
    let mut answer = answer_to(offered, answered, local()).unwrap();
    answer_video(&mut answer, offered, answered, local_video());
    answer
}

fn exchange(rule: SrtpRule, seed: u8) -> OfferAnswer {
    OfferAnswer::new(1).with_srtp(rule, KeySeed::new([seed; 32]))
}

#[test]
fn a_section_passes_with_its_numbers_and_lines() {
    let offered = parse(&format!("m=audio 4000 RTP/AVP 0\n{SECTION}\n{OWN_LINES}\na=rtcp-mux\na=sendonly"));
    let text = onward(&offered).to_string();
    let wanted = format!("{}\na=sendonly\n", SECTION.replace("4010", "20002"));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    let section = &text[text.find("m=video").unwrap()..];
    assert_eq!(lines(section), lines(&wanted), "{text}");
    assert_eq!(SessionDescription::parse(text.as_bytes()).unwrap(), onward(&offered), "a second round trip");

    // The answer accepts one of the formats, and its own lines reach the offerer, on the transport of the offer.
    let answered = parse(
        "m=audio 5000 RTP/AVP 0\nm=video 5010 RTP/AVPF 102\na=rtpmap:102 H264/90000\na=rtcp-fb:102 nack\na=recvonly",
    );
    let answer = back(&offered, &answered);
    let text = answer.to_string();
    assert!(
        text.contains("m=video 20002 RTP/AVPF 102\r\na=rtpmap:102 H264/90000\r\na=rtcp-fb:102 nack\r\n"),
        "{text}"
    );
    assert!(text.contains("a=rtcp-mux\r\na=recvonly\r\n") && !text.contains("fmtp"), "{text}");
    let mut own = exchange(SrtpRule::Off, 1);
    own.receive_offer(offered).unwrap();
    own.send_answer(answer).unwrap();
    let video = &own.negotiated().unwrap().video.as_ref().unwrap().terms;
    assert_eq!(video.local, Some(local_video()));
    assert_eq!(video.remote, Some("192.0.2.1:4010".parse().unwrap()));
    assert_eq!((video.remote_rtcp, video.rtcp_mux), (video.remote, true));
    assert_eq!(video.direction, Direction::RecvOnly);
    let numbers: Vec<u8> = video.payloads.iter().map(|payload| payload.receive).collect();
    assert_eq!(numbers, [102, 103]);
}

#[test]
fn what_our_ports_cannot_carry_is_refused() {
    let audio = "m=audio 4000 RTP/AVP 0";
    let ice = "a=ice-ufrag:Sp8M\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c";
    let plain = "m=video 4010 RTP/AVP 102\na=rtpmap:102 VP8/90000";
    for (name, media) in [
        ("a refused section", format!("{audio}\nm=video 0 RTP/AVP 102\na=rtpmap:102 VP8/90000")),
        ("ICE", format!("{audio}\n{plain}\n{ice}")),
        ("DTLS", format!("{audio}\n{}", plain.replace("RTP/AVP", "UDP/TLS/RTP/SAVPF"))),
        ("SRTP without a key", format!("{audio}\n{}", plain.replace("AVP", "SAVP"))),
        ("unknown numbers", format!("{audio}\nm=video 4010 RTP/AVP 99")),
        ("no audio", format!("m=audio 0 RTP/AVP 0\n{plain}")),
        ("another medium", format!("{audio}\nm=text 4010 RTP/AVP 98\na=rtpmap:98 t140/1000")),
    ] {
        let offered = parse(&media);
        assert_eq!(offered.carried_video(), None, "{name}");
        if offered.carried_audio().is_some() {
            assert_eq!(onward(&offered).media.len(), 1, "{name}");
            let answer = back(&offered, &parse(&format!("{audio}\n{plain}")));
            assert_eq!(answer.media[1].port, 0, "{name}");
        }
    }
    // Of two video sections, one is passed on.
    let two = parse(&format!("{audio}\n{plain}\n{plain}"));
    let answer = back(&two, &parse(&format!("{audio}\n{plain}")));
    let ports: Vec<u16> = answer.media.iter().map(|media| media.port).collect();
    assert_eq!(ports, [20_000, 20_002, 0]);
    // An answer refuses it, or accepts a format that was not offered.
    let offered = parse(&format!("{audio}\n{plain}"));
    for refused in ["m=video 0 RTP/AVP 102", "m=video 5010 RTP/AVP 104\na=rtpmap:104 VP9/90000"] {
        assert_eq!(back(&offered, &parse(&format!("{audio}\n{refused}"))).media[1].port, 0, "{refused}");
    }
}

/// A section never moves: our video takes the section that the party gave to video, or the last one (RFC 3264 §8).
#[test]
fn our_offer_finds_the_section_of_video() {
    let ours = || onward(&parse("m=audio 4000 RTP/AVP 0\nm=video 4010 RTP/AVP 102\na=rtpmap:102 VP8/90000"));
    let kinds = |sent: &SessionDescription| {
        sent.media.iter().map(|media| format!("{} {}", media.kind.as_str(), media.port)).collect::<Vec<_>>()
    };
    let mut own = exchange(SrtpRule::Off, 1);
    let theirs =
        "m=application 9 TCP/BFCP *\nm=video 5010 RTP/SAVP 99\na=rtpmap:99 VP8/90000\nm=audio 5000 RTP/AVP 0";
    let offered = parse(theirs);
    own.receive_offer(offered.clone()).unwrap();
    own.send_answer(back(&offered, &parse("m=audio 4000 RTP/AVP 0"))).unwrap();
    assert!(own.negotiated().unwrap().video.is_none());
    let sent = own.send_offer(ours()).unwrap();
    assert_eq!(kinds(&sent), ["application 0", "video 20002", "audio 20000"]);
    assert_eq!(&*sent.media[1].protocol, "RTP/AVP", "not that of the section that was refused");
    let answer = "m=application 0 TCP/BFCP *\nm=video 5010 RTP/AVP 102\na=rtpmap:102 VP8/90000\nm=audio 5000 RTP/AVP 0";
    assert!(own.receive_answer(parse(answer)).unwrap().video.is_some());
    // An offer with audio only ends it, and another one restores it.
    let alone = offer_from(&parse("m=audio 4000 RTP/AVP 0"), local(), &CodecPolicy::ANY, &CodecPolicy::ANY);
    assert_eq!(kinds(&own.send_offer(alone.unwrap()).unwrap()), ["application 0", "video 0", "audio 20000"]);
    own.roll_back();
    assert!(own.negotiated().unwrap().video.is_some(), "it was refused");

    let mut own = exchange(SrtpRule::Off, 1);
    own.receive_offer(parse("m=audio 5000 RTP/AVP 0")).unwrap();
    own.send_answer(back(&parse("m=audio 5000 RTP/AVP 0"), &parse("m=audio 4000 RTP/AVP 0"))).unwrap();
    assert_eq!(kinds(&own.send_offer(ours()).unwrap()), ["audio 20000", "video 20002"]);
}

#[test]
fn video_has_keys_of_its_own_and_none_only_beside_plain_audio() {
    let keyed = format!(
        "m=audio 4000 RTP/SAVP 0\n{KEY}\nm=video 4010 RTP/SAVPF 102\na=rtpmap:102 VP8/90000\n{OTHER_KEY}"
    );
    let plain = "m=audio 4000 RTP/AVP 0\nm=video 4010 RTP/AVPF 102\na=rtpmap:102 VP8/90000";
    // We offer: both sections use the transport that the rule requires, with different keys.
    let mut own = exchange(SrtpRule::Required, 1);
    let sent = own.send_offer(onward(&parse(plain))).unwrap();
    let protocols: Vec<&str> = sent.media.iter().map(|media| &*media.protocol).collect();
    assert_eq!(protocols, ["RTP/SAVP", "RTP/SAVPF"]);
    assert!(sent.media.iter().all(|media| media.crypto.len() == 2));
    assert_ne!(sent.media[0].crypto[0].key, sent.media[1].crypto[0].key);
    let settled = own.receive_answer(parse(&keyed)).unwrap();
    let video = settled.video.clone().unwrap().terms.srtp.unwrap();
    assert_eq!(video.send, sent.media[1].crypto[0]);
    assert_ne!(Some(&video.receive), settled.srtp.as_ref().map(|terms| &terms.receive));
    // A later offer of ours keeps the keys.
    let again = own.send_offer(onward(&parse(plain))).unwrap();
    assert_eq!(again.media[1].crypto, [video.send]);
    assert_eq!(&*again.media[1].protocol, "RTP/SAVPF");

    // We answer, with a key for each.
    let mut own = exchange(SrtpRule::Optional, 2);
    own.receive_offer(parse(&keyed)).unwrap();
    let answer = own.send_answer(back(&parse(&keyed), &parse(plain))).unwrap();
    assert!(answer.media.iter().all(|media| media.crypto.len() == 1 && media.port != 0), "{answer}");
    assert_ne!(answer.media[0].crypto[0].key, answer.media[1].crypto[0].key);

    // Video is not sent unencrypted beside encrypted audio, nor the reverse.
    let mixed = keyed.replace("RTP/SAVPF", "RTP/AVPF").replace(OTHER_KEY, "a=x:1");
    let mut own = exchange(SrtpRule::Optional, 3);
    own.receive_offer(parse(&mixed)).unwrap();
    let answer = own.send_answer(back(&parse(&mixed), &parse(plain))).unwrap();
    assert_eq!((answer.media[1].port, own.negotiated().unwrap().video.is_some()), (0, false));
    let mut own = exchange(SrtpRule::Optional, 4);
    own.send_offer(onward(&parse(plain))).unwrap();
    assert!(
        own.receive_answer(parse(&keyed.replace("SAVP", "AVP").replace(OTHER_KEY, "a=x:1")))
            .unwrap()
            .video
            .is_none()
    );
    // A leg without SRTP accepts none.
    let offered = SrtpRule::Off.admit(parse(&keyed.replace("m=audio 4000 RTP/SAVP", "m=audio 4000 RTP/AVP")));
    assert_eq!(offered.unwrap().carried_video(), None);
}

#[test]
fn lines_of_bandwidth_are_read_of_video_alone_and_where_they_are_well_formed() {
    let offered = parse(
        "m=audio 4000 RTP/AVP 0\nb=AS:80\nm=video 4010 RTP/AVP 102\nb=X-odd:1\nb=AS:-1\nb=AS:\nb=RS:800\n\
        c=IN IP4 192.0.2.9\na=rtpmap:102 VP8/90000\nb=AS:9\na=framerate:15\na=extmap:3 urn:x y\na=ssrc:1 cname:a",
    );
    let text = onward(&offered).to_string();
    assert_eq!(text.matches("b=").count(), 1, "{text}");
    assert!(text.contains("m=video 20002 RTP/AVP 102\r\nb=RS:800\r\na=rtpmap:102 VP8/90000\r\na=framerate:15\r\na=extmap:3 urn:x y\r\na=ssrc:1 cname:a\r\n"), "{text}");
    assert_eq!(offered.rtp_address(&offered.media[1]), Some("192.0.2.9:4010".parse().unwrap()));
    let long = format!(
        "m=audio 4000 RTP/AVP 0\nm=video 4010 RTP/AVP 102\na=rtpmap:102 VP8/90000\na=imageattr:{}",
        "x".repeat(300)
    );
    assert!(!onward(&parse(&long)).to_string().contains("imageattr"));
}
