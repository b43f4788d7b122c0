//! Complete exchanges with ICE and DTLS-SRTP (RFC 8839, RFC 8842, RFC 8843).

use std::net::SocketAddr;
use std::sync::Arc;

use crate::sdp::{
    CodecPolicy, Direction, Fingerprint, KeySeed, Negotiated, NegotiationError, OfferAnswer,
    OfferAnswerError, SessionDescription, SrtpRule, answer, offer,
};

const PRINT: &str = "sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:\
    10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F";

/// The offer of a browser, as Chromium writes it; shortened.
const OFFER: &str = "v=0\no=- 46 2 IN IP4 127.0.0.1\ns=-\nt=0 0\na=group:BUNDLE 0 1\na=extmap-allow-mixed\n\
    a=msid-semantic: WMS a\nm=audio 9 UDP/TLS/RTP/SAVPF 111 63 0 110\nc=IN IP4 0.0.0.0\na=rtcp:9 IN IP4 0.0.0.0\n\
    a=ice-ufrag:Sp8M\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\na=ice-options:trickle\na=fingerprint:PRINT\n\
    a=setup:actpass\na=mid:0\na=sendrecv\na=rtcp-mux\na=rtcp-rsize\na=rtpmap:111 opus/48000/2\n\
    a=fmtp:111 minptime=10;useinbandfec=1\na=rtpmap:63 red/48000/2\na=rtpmap:110 telephone-event/48000\n\
    a=candidate:1 1 udp 2122260223 3f0d.local 50162 typ host generation 0\na=end-of-candidates\n\
    m=video 9 UDP/TLS/RTP/SAVPF 96\nc=IN IP4 0.0.0.0\na=mid:1\na=sendrecv\na=rtcp-mux\na=rtpmap:96 VP8/90000\n";

fn here() -> SocketAddr {
    "192.0.2.9:4000".parse().unwrap()
}

fn read(text: &str) -> SessionDescription {
    let text = text.replace("PRINT", PRINT).replace("\r\n", "\n").replace('\n', "\r\n");
    SessionDescription::parse(text.as_bytes()).unwrap()
}

fn dialog() -> OfferAnswer {
    let print = Fingerprint::parse(&PRINT.replace("00:01", "FF:FE")).unwrap();
    let seed = KeySeed::new([5; 32]).with_certificate(Some(Arc::new(print)));
    OfferAnswer::new(1).with_srtp(SrtpRule::Webrtc, seed)
}

/// The text of our answer.
fn answered(dialog: &mut OfferAnswer, offered: &str) -> Result<String, OfferAnswerError> {
    let offered = SrtpRule::Webrtc.admit(read(offered))?;
    dialog.receive_offer(offered.clone())?;
    let reply = answer(&offered, here(), &CodecPolicy::ANY, Direction::SendRecv);
    let reply = reply.map_err(OfferAnswerError::from).and_then(|reply| dialog.send_answer(reply));
    if reply.is_err() {
        dialog.roll_back();
    }
    Ok(String::from_utf8(reply?.to_bytes().to_vec()).unwrap())
}

fn settled(dialog: &OfferAnswer) -> &Negotiated {
    dialog.negotiated().unwrap()
}

fn line<'a>(text: &'a str, begins: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(begins))
}

#[test]
fn a_browser_is_answered_as_a_lite_agent_and_a_dtls_server() {
    assert!(read(OFFER).wants_webrtc());
    let mut dialog = dialog();
    let text = answered(&mut dialog, OFFER).unwrap();
    for expected in [
        "a=group:BUNDLE 0",
        "a=ice-lite",
        "a=setup:passive",
        "a=mid:0",
        "a=rtcp-mux",
        "a=sendrecv",
        "a=candidate:1 1 udp 2130706431 192.0.2.9 4000 typ host",
        "a=end-of-candidates",
        &format!("a=fingerprint:{}", PRINT.replace("00:01", "FF:FE")),
        // Chromium refuses an answer whose refused sections have other names.
        "m=video 0 UDP/TLS/RTP/SAVPF 96",
        "a=mid:1",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected} in {text}");
    }
    assert!(line(&text, "m=audio ").unwrap().starts_with("4000 UDP/TLS/RTP/SAVPF 111"), "{text}");
    let (ufrag, password) = (line(&text, "a=ice-ufrag:").unwrap(), line(&text, "a=ice-pwd:").unwrap());
    assert_eq!((ufrag.len(), password.len()), (8, 24));
    assert!(!text.contains("trickle") && !text.contains("a=crypto"), "{text}");
    let negotiated = settled(&dialog);
    let terms = negotiated.ice.as_ref().unwrap();
    let dtls = terms.dtls.unwrap();
    assert_eq!((&*terms.own.ufrag, &*terms.own.password, &*terms.theirs.ufrag), (ufrag, password, "Sp8M"));
    assert_eq!((Some(dtls.fingerprint), dtls.is_client), (Fingerprint::parse(PRINT), false));
    assert_eq!(
        (negotiated.direction, negotiated.rtcp_mux),
        (Direction::SendRecv, true),
        "0.0.0.0 is no hold"
    );
    assert_eq!(read(&text).media.len(), 2);
}

#[test]
fn roles_follow_the_setup_of_the_offer() {
    for (offered, answer, is_client) in [
        ("actpass", Some("passive"), false),
        ("active", Some("passive"), false),
        ("passive", Some("active"), true),
        ("holdconn", None, false),
    ] {
        let mut dialog = dialog();
        let text = answered(&mut dialog, &OFFER.replace("setup:actpass", &format!("setup:{offered}")));
        match answer {
            Some(answer) => {
                assert_eq!(line(&text.unwrap(), "a=setup:"), Some(answer));
                assert_eq!(settled(&dialog).ice.as_ref().unwrap().dtls.unwrap().is_client, is_client);
            }
            None => assert_eq!(text, Err(NegotiationError::NoSrtp.into())),
        }
    }
}

#[test]
fn an_offer_without_what_a_browser_must_have_is_refused() {
    for (name, without) in [
        ("a fragment", "a=ice-ufrag:Sp8M\n"),
        ("a password", "a=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\n"),
        ("a fingerprint", "a=fingerprint:PRINT\n"),
        ("one port", "a=rtcp-mux\n"),
    ] {
        let offered = OFFER.replacen(without, "", 1);
        assert!(!read(&offered).wants_webrtc(), "{name}");
        assert_eq!(answered(&mut dialog(), &offered), Err(NegotiationError::NoSrtp.into()), "{name}");
    }
    let lite = OFFER.replace("t=0 0\n", "t=0 0\na=ice-lite\n");
    assert_eq!(
        answered(&mut dialog(), &lite),
        Err(NegotiationError::NoSrtp.into()),
        "neither side would check"
    );
    let sha1 = OFFER.replace("PRINT", "sha-1 00:01");
    assert_eq!(answered(&mut dialog(), &sha1), Err(NegotiationError::NoSrtp.into()));
    // A node without a certificate.
    let mut bare = OfferAnswer::new(1).with_srtp(SrtpRule::Webrtc, KeySeed::new([1; 32]));
    assert_eq!(answered(&mut bare, OFFER), Err(NegotiationError::NoSrtp.into()));
    // A leg without a browser does not use the section.
    for rule in [SrtpRule::Off, SrtpRule::Optional] {
        assert!(rule.admit(read(OFFER)).unwrap().carried_audio().is_none(), "{rule:?}");
    }
}

#[test]
fn lines_of_the_session_count_for_its_sections() {
    let transport =
        "a=ice-ufrag:Sp8M\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\na=fingerprint:PRINT\na=setup:active\n";
    let section = OFFER.replacen("a=ice-ufrag:Sp8M\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\n", "", 1).replacen(
        "a=fingerprint:PRINT\na=setup:actpass\n",
        "",
        1,
    );
    let text = section.replace("t=0 0\n", &format!("t=0 0\n{transport}"));
    assert_eq!(line(&answered(&mut dialog(), &text).unwrap(), "a=setup:"), Some("passive"));
}

#[test]
fn a_restart_gets_a_new_credential_and_a_hold_keeps_the_old_one() {
    let mut dialog = dialog();
    let first = answered(&mut dialog, OFFER).unwrap();
    let hold = answered(&mut dialog, &OFFER.replacen("a=sendrecv", "a=sendonly", 1)).unwrap();
    let restart = answered(&mut dialog, &OFFER.replace("Sp8M", "N3wU")).unwrap();
    let credential = |text: &str| {
        (line(text, "a=ice-ufrag:").map(str::to_owned), line(text, "a=ice-pwd:").map(str::to_owned))
    };
    assert_eq!(credential(&first), credential(&hold));
    assert_ne!(credential(&first).0, credential(&restart).0);
    assert_ne!(credential(&first).1, credential(&restart).1);
    assert_eq!(line(&hold, "a=recvonly"), Some(""));
    // Our own offers keep the credential and the position of the audio, and leave the choice of the role open.
    let ours = offer(here(), CodecPolicy::new(["PCMU"]).codecs(), Direction::SendRecv);
    let again = String::from_utf8(dialog.send_offer(ours).unwrap().to_bytes().to_vec()).unwrap();
    assert_eq!(credential(&again), credential(&restart));
    assert_eq!((line(&again, "a=setup:"), line(&again, "a=mid:")), (Some("actpass"), Some("0")));
    assert!(again.contains("m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:1"), "{again}");
}

#[test]
fn a_browser_is_offered_the_same_and_its_answer_decides_the_role() {
    for (setup, is_client) in [("active", false), ("passive", true)] {
        let mut dialog = dialog();
        let ours = offer(here(), CodecPolicy::new(["PCMU"]).codecs(), Direction::SendRecv);
        let text = String::from_utf8(dialog.send_offer(ours).unwrap().to_bytes().to_vec()).unwrap();
        assert!(text.contains("m=audio 4000 UDP/TLS/RTP/SAVPF 0"), "{text}");
        assert!(text.contains("a=group:BUNDLE 0\r\na=ice-lite\r\n"), "{text}");
        assert_eq!(line(&text, "a=setup:"), Some("actpass"));
        let answered = OFFER
            .split("m=video")
            .next()
            .unwrap()
            .replace("BUNDLE 0 1", "BUNDLE 0")
            .replace("111 63 0 110", "0")
            .replace("setup:actpass", &format!("setup:{setup}"));
        let negotiated = dialog.receive_answer(read(&answered)).unwrap();
        assert_eq!(negotiated.ice.as_ref().unwrap().dtls.unwrap().is_client, is_client, "{setup}");
        for without in ["a=rtcp-mux\n", "a=fingerprint:PRINT\n"] {
            let refused = dialog.receive_answer(read(&answered.replacen(without, "", 1)));
            assert_eq!(refused.err(), Some(NegotiationError::NoSrtp.into()), "{without}");
        }
    }
}
