//! Complete exchanges with ICE and without DTLS, as used by phones (RFC 8839).

use std::net::SocketAddr;

use crate::sdp::{
    CodecPolicy, Direction, IceRule, KeySeed, Negotiated, OfferAnswer, SessionDescription, SrtpRule, answer,
    offer,
};

/// The offer of a phone, as baresip writes it; shortened.
const OFFER: &str = "v=0\no=- 3 7 IN IP4 10.0.0.5\ns=-\nc=IN IP4 10.0.0.5\nt=0 0\n\
    m=audio 10122 RTP/AVP 8 101\na=rtpmap:8 PCMA/8000\na=rtpmap:101 telephone-event/8000\na=rtcp:10123\n\
    a=sendrecv\na=candidate:7f000001 1 UDP 2113929471 10.0.0.5 10122 typ host\n\
    a=candidate:7f000001 2 UDP 2113929470 10.0.0.5 10123 typ host\na=ice-ufrag:kQ3f\n\
    a=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\n";
const KEY: &str = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\n";

fn here() -> SocketAddr {
    "192.0.2.9:4000".parse().unwrap()
}

fn read(text: &str) -> SessionDescription {
    SessionDescription::parse(text.replace('\n', "\r\n").as_bytes()).unwrap()
}

fn dialog(srtp: SrtpRule, ice: IceRule) -> OfferAnswer {
    OfferAnswer::new(1).with_ice(srtp, ice, KeySeed::new([5; 32]))
}

/// The text of our answer.
fn answered(dialog: &mut OfferAnswer, rule: SrtpRule, offered: &str) -> String {
    let offered = rule.admit(read(offered)).unwrap();
    dialog.receive_offer(offered.clone()).unwrap();
    let reply = answer(&offered, here(), &CodecPolicy::ANY, Direction::SendRecv).unwrap();
    String::from_utf8(dialog.send_answer(reply).unwrap().to_bytes().to_vec()).unwrap()
}

/// The text of our offer.
fn offered(dialog: &mut OfferAnswer) -> String {
    let ours = offer(here(), CodecPolicy::new(["PCMA"]).codecs(), Direction::SendRecv);
    String::from_utf8(dialog.send_offer(ours).unwrap().to_bytes().to_vec()).unwrap()
}

fn settled(dialog: &OfferAnswer) -> &Negotiated {
    dialog.negotiated().unwrap()
}

fn line<'a>(text: &'a str, begins: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(begins))
}

fn credential(text: &str) -> (String, String) {
    let value = |name| line(text, name).unwrap_or_else(|| panic!("{name} in {text}")).to_owned();
    (value("a=ice-ufrag:"), value("a=ice-pwd:"))
}

#[test]
fn a_phone_with_ice_is_answered_as_a_lite_agent_with_two_components() {
    assert!(read(OFFER).wants_plain_ice() && !read(OFFER).wants_webrtc());
    let mut dialog = dialog(SrtpRule::Off, IceRule::WhenOffered);
    let text = answered(&mut dialog, SrtpRule::Off, OFFER);
    for expected in [
        "a=ice-lite",
        "m=audio 4000 RTP/AVP 8 101",
        "a=candidate:1 1 udp 2130706431 192.0.2.9 4000 typ host",
        "a=candidate:1 2 udp 2130706430 192.0.2.9 4001 typ host",
        "a=end-of-candidates",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected} in {text}");
    }
    assert!(!text.contains("fingerprint") && !text.contains("setup") && !text.contains("mid"), "{text}");
    let negotiated = settled(&dialog);
    let terms = negotiated.ice.as_ref().unwrap();
    assert_eq!((&*terms.theirs.ufrag, terms.dtls), ("kQ3f", None));
    assert_eq!(credential(&text), (terms.own.ufrag.to_string(), terms.own.password.to_string()));
    assert_eq!(negotiated.remote, Some("10.0.0.5:10122".parse().unwrap()), "until a check arrives");
    assert!(negotiated.srtp.is_none());
}

#[test]
fn one_port_for_rtp_and_rtcp_is_one_component() {
    let mut dialog = dialog(SrtpRule::Off, IceRule::WhenOffered);
    let text = answered(&mut dialog, SrtpRule::Off, &format!("{OFFER}a=rtcp-mux\n"));
    assert_eq!(text.matches("a=candidate:").count(), 1, "{text}");
    assert!(settled(&dialog).rtcp_mux && settled(&dialog).ice.is_some());
}

#[test]
fn ice_and_keys_in_sdp_go_together() {
    for (rule, profile) in [(SrtpRule::Optional, "RTP/AVP"), (SrtpRule::Required, "RTP/SAVP")] {
        let mut dialog = dialog(rule, IceRule::WhenOffered);
        let text = answered(&mut dialog, rule, &format!("{}{KEY}", OFFER.replace("RTP/AVP", profile)));
        assert!(text.contains("a=crypto:1 ") && text.contains("a=ice-lite"), "{text}");
        assert!(settled(&dialog).srtp.is_some() && settled(&dialog).ice.is_some());
    }
    let mut plain = dialog(SrtpRule::Off, IceRule::WhenOffered);
    let text = answered(&mut plain, SrtpRule::Off, &format!("{OFFER}{KEY}"));
    assert!(!text.contains("a=crypto") && text.contains("a=ice-lite"), "{text}");
}

#[test]
fn a_party_that_checks_nothing_or_may_not_is_answered_without_ice() {
    let lite = OFFER.replace("t=0 0\n", "t=0 0\na=ice-lite\n");
    let without = OFFER.replace("a=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\n", "");
    let short = OFFER.replace("kQ3f", "kQ3");
    for (name, rule, offered) in [
        ("a lite agent", IceRule::WhenOffered, lite.as_str()),
        ("no password", IceRule::WhenOffered, &without),
        ("a short fragment", IceRule::WhenOffered, &short),
        ("a leg without ICE", IceRule::Never, OFFER),
    ] {
        let mut dialog = dialog(SrtpRule::Off, rule);
        let text = answered(&mut dialog, SrtpRule::Off, offered);
        assert!(!text.contains("ice") && !text.contains("candidate"), "{name}: {text}");
        assert!(settled(&dialog).ice.is_none(), "{name}");
    }
}

#[test]
fn a_restart_gets_a_new_credential_and_a_hold_keeps_the_old_one() {
    let mut dialog = dialog(SrtpRule::Off, IceRule::WhenOffered);
    let mut answer = |offered: &str| answered(&mut dialog, SrtpRule::Off, offered);
    let first = answer(OFFER);
    let hold = answer(&OFFER.replace("a=sendrecv", "a=sendonly"));
    // RFC 8840 §4.1.3: the address of an agent that has no candidates yet.
    let trickled = answer(&OFFER.replace("c=IN IP4 10.0.0.5", "c=IN IP4 0.0.0.0"));
    let restart = answer(&OFFER.replace("kQ3f", "N3wU"));
    assert_eq!(credential(&first), credential(&hold));
    assert_eq!((line(&hold, "a=recvonly"), line(&trickled, "a=sendrecv")), (Some(""), Some("")));
    assert_ne!(credential(&first).0, credential(&restart).0);
    assert_ne!(credential(&first).1, credential(&restart).1);
    // Our own offer keeps the credential; an offer without ICE ends it.
    let again = offered(&mut dialog);
    assert_eq!(credential(&again), credential(&restart));
    assert_eq!(again.matches("a=candidate:").count(), 2, "{again}");
    dialog.receive_answer(read(&OFFER.replace("8 101", "8"))).unwrap();
    let plain: String =
        OFFER.lines().filter(|line| !line.starts_with("a=ice")).map(|line| format!("{line}\n")).collect();
    let text = answered(&mut dialog, SrtpRule::Off, &plain);
    assert!(!text.contains("a=ice") && settled(&dialog).ice.is_none(), "{text}");
    assert!(!offered(&mut dialog).contains("a=ice"));
}

#[test]
fn a_phone_is_offered_ice_where_the_rule_says_so_and_may_answer_without() {
    for (answer, has_ice) in [(OFFER.to_owned(), true), (OFFER.replace("a=ice", "a=x"), false)] {
        let mut dialog = dialog(SrtpRule::Off, IceRule::Offered);
        let text = offered(&mut dialog);
        assert!(text.contains("a=ice-lite\r\n") && text.contains("a=candidate:1 2 udp "), "{text}");
        let negotiated = dialog.receive_answer(read(&answer.replace("8 101", "8"))).unwrap();
        assert_eq!(negotiated.ice.is_some(), has_ice);
        assert_eq!(offered(&mut dialog).contains("a=ice-ufrag"), has_ice, "what was settled stays");
    }
    assert!(!offered(&mut dialog(SrtpRule::Off, IceRule::WhenOffered)).contains("a=ice"));
}

/// RFC 8839 §5.1: what a party writes, and what is kept of it.
#[test]
fn candidates_over_udp_with_an_address_are_read() {
    let lines = [
        "1 1 UDP 2130706431 10.0.0.5 10122 typ host generation 0",
        "1 2 udp 2130706430 10.0.0.5 10123 typ host",
        "2 1 udp 1694498815 203.0.113.5 40122 typ srflx raddr 10.0.0.5 rport 10122",
        "3 1 udp 2130706431 2001:db8::5 10122 typ host",
        "3 1 udp 2130706431 ::ffff:192.0.2.5 10122 typ host",
        // None of these: TCP, a name, no port, an address of no host, further components, an unknown form.
        "4 1 tcp 1518280447 10.0.0.5 9 typ host tcptype active",
        "5 1 udp 2122260223 3f0d.local 50162 typ host",
        "6 1 udp 2130706431 10.0.0.5 0 typ host",
        "7 1 udp 2130706431 0.0.0.0 9 typ host",
        "8 3 udp 2130706431 10.0.0.5 10124 typ host",
        "9 1 udp 2130706431",
        "",
    ];
    let more = (0..40).map(|n| format!("m{n} 1 udp 1 192.0.2.{n} 4000 typ host"));
    let lines: String = lines
        .into_iter()
        .map(str::to_owned)
        .chain(more)
        .map(|line| format!("a=candidate:{line}\n"))
        .collect();
    let offer = OFFER.replace("a=candidate:7f000001 1 UDP 2113929471 10.0.0.5 10122 typ host\n", "");
    let offer = offer.replace("a=candidate:7f000001 2 UDP 2113929470 10.0.0.5 10123 typ host\n", &lines);
    let read = read(&offer);
    let candidates: Vec<_> = read.media[0]
        .candidates()
        .iter()
        .map(|candidate| (candidate.rtp.to_string(), candidate.rtcp.map(|rtcp| rtcp.to_string())))
        .collect();
    assert_eq!(candidates.len(), 16);
    let expected = [
        ("10.0.0.5:10122", Some("10.0.0.5:10123")),
        ("203.0.113.5:40122", None),
        ("[2001:db8::5]:10122", None),
        ("192.0.2.5:10122", None),
    ];
    for ((rtp, rtcp), (expected_rtp, expected_rtcp)) in candidates.iter().zip(expected) {
        assert_eq!((rtp.as_str(), rtcp.as_deref()), (expected_rtp, expected_rtcp));
    }
    // Without ICE they mean nothing.
    let plain = offer.replace("a=ice-ufrag:kQ3f\n", "");
    assert_eq!(self::read(&plain).media[0].candidates(), []);
}
