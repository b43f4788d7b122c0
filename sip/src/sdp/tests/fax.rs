//! T.38 between two parties: the lines that are passed on, and their section.

use std::net::SocketAddr;

use crate::sdp::{
    CodecPolicy, Direction, Negotiated, NegotiationError, OfferAnswer, OfferAnswerError, Role,
    SessionDescription, answer_to, offer, offer_from,
};

const LINES: &str = "a=T38FaxVersion:3\na=T38MaxBitRate:14400\na=T38FaxFillBitRemoval\na=T38FaxRateManagement:transferredTCF\n\
    a=T38FaxMaxBuffer:262\na=T38FaxMaxDatagram:1400\na=T38FaxUdpEC:t38UDPRedundancy";

fn parse(media: &str) -> SessionDescription {
    let text = format!("v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\n{media}\n");
    SessionDescription::parse(text.replace('\n', "\r\n").as_bytes()).unwrap()
}

fn local() -> SocketAddr {
    "198.51.100.1:20000".parse().unwrap()
}

fn sections(description: &SessionDescription) -> Vec<String> {
    let section = |media: &crate::sdp::Media| format!("{} {}", media.kind.as_str(), media.port);
    description.media.iter().map(section).collect()
}

#[test]
fn the_lines_of_a_device_reach_the_other_with_our_address() {
    let offered =
        parse(&format!("m=image 4000 UDPTL t38\n{LINES}\na=sendonly\na=x-other:1\na=T38VendorInfo:\u{7f}"));
    let onward = offer_from(&offered, local(), &CodecPolicy::ANY, &CodecPolicy::ANY).unwrap();
    let text = onward.to_string();
    assert!(text.contains("m=image 20000 udptl t38\r\n") && text.contains("c=IN IP4 198.51.100.1"), "{text}");
    assert!(text.contains(&format!("{}\r\na=sendonly\r\n", LINES.replace('\n', "\r\n"))), "{text}");
    assert!(!text.contains("x-other") && !text.contains("Vendor"), "{text}");
    // A second round trip changes nothing.
    assert_eq!(SessionDescription::parse(text.as_bytes()).unwrap(), onward);

    let offered = parse(&format!("m=audio 0 RTP/AVP 0\nm=image 4000 udptl t38\n{LINES}"));
    let answered = parse("m=image 5000 udptl t38\na=T38FaxVersion:0\na=recvonly");
    let answer = answer_to(&offered, &answered, local()).unwrap();
    assert_eq!(sections(&answer), ["audio 0", "image 20000"]);
    assert!(answer.to_string().contains("t38\r\na=T38FaxVersion:0\r\na=recvonly\r\n"), "{answer}");
    let negotiated = Negotiated::with_fax(&offered, &answer, Role::Answerer).unwrap();
    assert_eq!(negotiated.remote, Some("192.0.2.1:4000".parse().unwrap()));
    assert_eq!((negotiated.remote_rtcp, negotiated.direction), (None, Direction::RecvOnly));
    assert!(negotiated.is_fax() && negotiated.payloads.is_empty());
}

#[test]
fn audio_comes_first_and_a_refusal_is_one() {
    let both = parse(&format!("m=audio 4000 RTP/AVP 0\nm=image 4002 udptl t38\n{LINES}"));
    let onward = offer_from(&both, local(), &CodecPolicy::ANY, &CodecPolicy::ANY).unwrap();
    assert_eq!(sections(&onward), ["audio 20000"]);
    let answer = answer_to(&both, &parse("m=audio 5000 RTP/AVP 0"), local()).unwrap();
    assert_eq!(sections(&answer), ["audio 20000", "image 0"]);
    assert!(!Negotiated::with_fax(&both, &answer, Role::Answerer).unwrap().is_fax());
    let fax = parse("m=image 4002 udptl t38");
    for (name, answered, expected) in [
        ("refused", "m=image 0 udptl t38", NegotiationError::Refused),
        ("audio", "m=audio 5000 RTP/AVP 0", NegotiationError::Refused),
    ] {
        assert_eq!(answer_to(&fax, &parse(answered), local()), Err(expected), "{name}");
    }
    for (name, offered) in [
        ("another transport", "m=image 4000 TCP/TLS t38"),
        ("another format", "m=image 4000 udptl png"),
        ("refused", "m=image 0 udptl t38"),
    ] {
        let refused = offer_from(&parse(offered), local(), &CodecPolicy::ANY, &CodecPolicy::ANY);
        assert_eq!(refused, Err(NegotiationError::NoAudio), "{name}");
    }
}

/// RFC 3264 §8.3.3: the audio section becomes the fax, and audio again.
#[test]
fn a_dialog_keeps_its_sections_over_a_fax() {
    let mut leg = OfferAnswer::new(1);
    let audio = || offer(local(), CodecPolicy::new(["PCMU"]).codecs(), Direction::SendRecv);
    let fax = || {
        let offered = parse("m=image 4000 udptl t38");
        offer_from(&offered, local(), &CodecPolicy::ANY, &CodecPolicy::ANY).unwrap()
    };
    leg.send_offer(audio()).unwrap();
    leg.receive_answer(parse("m=audio 5000 RTP/AVP 0")).unwrap();
    let sent = leg.send_offer(fax()).unwrap();
    assert_eq!((sections(&sent), sent.origin.version), (vec!["image 20000".to_owned()], 2));
    // Refused: a refresh repeats the audio.
    leg.roll_back();
    let present = leg.in_force().unwrap().clone();
    let repeated = leg.send_offer(present).unwrap();
    assert_eq!((sections(&repeated), repeated.origin.version), (vec!["audio 20000".to_owned()], 3));
    leg.receive_answer(parse("m=audio 5000 RTP/AVP 0")).unwrap();
    let sent = leg.send_offer(fax()).unwrap();
    assert_eq!(sent.origin.version, 4, "never a version twice");
    assert!(leg.receive_answer(parse("m=image 5000 udptl t38")).unwrap().is_fax());
    let sent = leg.send_offer(audio()).unwrap();
    assert_eq!(sections(&sent), ["audio 20000"]);
    assert!(sent.to_string().contains("m=audio 20000 RTP/AVP 0"), "{sent}");
    let negotiated = leg.receive_answer(parse("m=audio 5000 RTP/AVP 0")).unwrap();
    assert!(!negotiated.is_fax());

    // The party adds a section for its fax, and our audio returns to the first.
    leg.receive_offer(parse("m=audio 0 RTP/AVP 0\nm=image 4000 udptl t38")).unwrap();
    let offered = leg.remote_offer().unwrap().clone();
    let answer = answer_to(&offered, &parse("m=image 6000 udptl t38"), local()).unwrap();
    assert_eq!(sections(&leg.send_answer(answer).unwrap()), ["audio 0", "image 20000"]);
    assert_eq!(sections(&leg.send_offer(audio()).unwrap()), ["audio 20000", "image 0"]);
}

#[test]
fn a_party_that_must_have_srtp_is_offered_no_fax() {
    use crate::sdp::{KeySeed, SrtpRule};
    for (rule, may) in [(SrtpRule::Optional, true), (SrtpRule::Required, false), (SrtpRule::Webrtc, false)] {
        let mut leg = OfferAnswer::new(1).with_srtp(rule, KeySeed::new([7; 32]));
        let offered = parse("m=image 4000 udptl t38");
        let fax = offer_from(&offered, local(), &CodecPolicy::ANY, &CodecPolicy::ANY).unwrap();
        let sent = leg.send_offer(fax).map(|_| ());
        let refused = Err(OfferAnswerError::Negotiation(NegotiationError::NoSrtp));
        assert_eq!(sent, if may { Ok(()) } else { refused }, "{rule:?}");
        assert_eq!(rule.admit(offered).is_ok(), may, "{rule:?}");
    }
}
