//! Complete exchanges with SRTP: offered, accepted, refused and kept lines (RFC 4568, RFC 8643).

use std::net::SocketAddr;

use crate::sdp::{
    CodecPolicy, CryptoSuite, Direction, KeySeed, Media, NegotiationError, OfferAnswer, OfferAnswerError,
    SessionDescription, SrtpRule, SrtpTerms, answer, offer,
};

const KEY: &str = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
const OTHER_KEY: &str = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj";
const GCM_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw==";

fn here() -> SocketAddr {
    "192.0.2.9:4000".parse().unwrap()
}

fn dialog(rule: SrtpRule) -> OfferAnswer {
    OfferAnswer::new(1).with_srtp(rule, KeySeed::new([rule as u8; 32]))
}

/// A party's description with this protocol and these lines, parsed.
fn party(protocol: &str, lines: &[&str]) -> SessionDescription {
    let crypto: String = lines.iter().map(|line| format!("a=crypto:{line}\r\n")).collect();
    let text = format!(
        "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
         m=audio 5000 {protocol} 0\r\n{crypto}"
    );
    SessionDescription::parse(text.as_bytes()).unwrap()
}

fn line(tag: u32, suite: &str, key: &str) -> String {
    format!("{tag} {suite} inline:{key}")
}

fn audio(description: &SessionDescription) -> &Media {
    &description.media[0]
}

/// Our answer to the party's offer, as it is sent.
fn answered(
    dialog: &mut OfferAnswer,
    rule: SrtpRule,
    offered: SessionDescription,
) -> Result<SessionDescription, OfferAnswerError> {
    let offered = rule.admit(offered)?;
    dialog.receive_offer(offered.clone())?;
    let reply = answer(&offered, here(), &CodecPolicy::ANY, Direction::SendRecv);
    let reply = reply.map_err(OfferAnswerError::from).and_then(|reply| dialog.send_answer(reply));
    if reply.is_err() {
        dialog.roll_back();
    }
    reply.map(|reply| SessionDescription::parse(&reply.to_bytes()).unwrap())
}

fn terms(dialog: &OfferAnswer) -> Option<SrtpTerms> {
    dialog.negotiated().unwrap().srtp.as_deref().cloned()
}

fn offered(dialog: &mut OfferAnswer) -> SessionDescription {
    let ours = offer(here(), CodecPolicy::new(["PCMU"]).codecs(), Direction::SendRecv);
    let ours = dialog.send_offer(ours).unwrap();
    SessionDescription::parse(&ours.to_bytes()).unwrap()
}

#[test]
fn the_first_line_that_we_have_is_accepted_with_its_tag() {
    let lines = [
        line(1, "AES_256_CM_HMAC_SHA1_80", KEY),
        line(5, "AEAD_AES_128_GCM", GCM_KEY),
        line(7, "AES_CM_128_HMAC_SHA1_80", KEY),
    ];
    let lines = lines.each_ref().map(String::as_str);
    for protocol in ["RTP/SAVP", "RTP/SAVPF", "RTP/AVP", "RTP/AVPF"] {
        for rule in [SrtpRule::Optional, SrtpRule::Required] {
            let mut dialog = dialog(rule);
            let reply = answered(&mut dialog, rule, party(protocol, &lines)).unwrap();
            let reply = audio(&reply);
            assert_eq!((reply.protocol.as_str(), reply.crypto.len(), reply.port), (protocol, 1, 4000));
            assert_eq!((reply.crypto[0].tag, reply.crypto[0].suite), (5, CryptoSuite::AeadAes128Gcm));
            let terms = terms(&dialog).unwrap();
            assert_eq!(terms.receive.key.material()[..3], [0, 1, 2]);
            assert_eq!(terms.send, reply.crypto[0]);
            assert_ne!(terms.send.key, terms.receive.key);
        }
    }
}

#[test]
fn what_the_rule_excludes_is_refused() {
    let known = line(1, "AES_CM_128_HMAC_SHA1_80", KEY);
    let foreign = line(1, "F8_128_HMAC_SHA1_80", KEY);
    let (known, foreign): (&[&str], &[&str]) = (&[&known], &[&foreign]);
    let (no_audio, no_srtp) = (Some(NegotiationError::NoAudio), Some(NegotiationError::NoSrtp));
    for (rule, protocol, lines, expected) in [
        (SrtpRule::Off, "RTP/AVP", known, None),
        (SrtpRule::Off, "RTP/SAVP", known, no_audio),
        (SrtpRule::Optional, "RTP/AVP", &[], None),
        (SrtpRule::Optional, "RTP/AVP", foreign, None),
        (SrtpRule::Optional, "RTP/SAVP", foreign, no_audio),
        (SrtpRule::Required, "RTP/AVP", &[], no_srtp),
        (SrtpRule::Required, "RTP/AVP", foreign, no_srtp),
        (SrtpRule::Required, "RTP/SAVP", foreign, no_srtp),
    ] {
        let mut dialog = dialog(rule);
        let reply = answered(&mut dialog, rule, party(protocol, lines));
        let expected = expected.map(OfferAnswerError::from);
        assert_eq!(reply.as_ref().err(), expected.as_ref(), "{rule:?} {protocol} {lines:?}");
        if let Ok(reply) = reply {
            assert_eq!((audio(&reply).crypto.len(), terms(&dialog)), (0, None));
        }
    }
    // The offer was not checked before: there is still no SRTP answer without a key.
    let mut unchecked = dialog(SrtpRule::Off);
    let secure = party("RTP/SAVP", known);
    unchecked.receive_offer(secure.clone()).unwrap();
    let reply = answer(&secure, here(), &CodecPolicy::ANY, Direction::SendRecv).unwrap();
    assert_eq!(unchecked.send_answer(reply).err(), Some(NegotiationError::NoAudio.into()));
}

#[test]
fn of_two_sections_the_one_with_srtp_is_required() {
    let both = |crypto: &str| {
        let text = format!(
            "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 5000 RTP/AVP 0\r\n\
             m=audio 6000 RTP/SAVP 0\r\n{crypto}"
        );
        SessionDescription::parse(text.as_bytes()).unwrap()
    };
    let crypto = format!("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}\r\n");
    let mut dialog = dialog(SrtpRule::Required);
    let reply = answered(&mut dialog, SrtpRule::Required, both(&crypto)).unwrap();
    let ports: Vec<u16> = reply.media.iter().map(|media| media.port).collect();
    assert_eq!(ports, [0, 4000]);
    assert_eq!(dialog.negotiated().unwrap().remote, Some("192.0.2.1:6000".parse().unwrap()));
    assert!(terms(&dialog).is_some());
}

#[test]
fn our_offer_follows_the_rule_and_the_answer_decides() {
    let first = |rule| {
        let mut dialog = dialog(rule);
        let ours = offered(&mut dialog);
        let audio = audio(&ours).clone();
        (dialog, audio)
    };
    let (_, plain) = first(SrtpRule::Off);
    assert_eq!((plain.protocol.as_str(), plain.crypto.len()), ("RTP/AVP", 0));
    for (rule, protocol) in [(SrtpRule::Optional, "RTP/AVP"), (SrtpRule::Required, "RTP/SAVP")] {
        let (mut dialog, ours) = first(rule);
        let suites: Vec<_> = ours.crypto.iter().map(|line| (line.tag, line.suite.as_str())).collect();
        assert_eq!(suites, [(1, "AES_CM_128_HMAC_SHA1_80"), (2, "AEAD_AES_128_GCM")]);
        assert_eq!(ours.protocol, protocol);
        // A phone without SRTP answers without a line; an answer with a wrong tag gives no SRTP either.
        for wrong in [
            vec![],
            vec![line(3, "AES_CM_128_HMAC_SHA1_80", KEY)],
            vec![line(1, "AEAD_AES_128_GCM", GCM_KEY)],
        ] {
            let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
            let heard = dialog.receive_answer(party(protocol, &wrong)).map(|heard| heard.srtp.clone());
            match rule {
                SrtpRule::Required => assert_eq!(heard, Err(NegotiationError::NoSrtp.into()), "{wrong:?}"),
                _ => assert_eq!(heard, Ok(None), "{wrong:?}"),
            }
        }
        let taken = line(2, "AEAD_AES_128_GCM", GCM_KEY);
        dialog.receive_answer(party(protocol, &[&taken])).unwrap();
        let terms = terms(&dialog).unwrap();
        assert_eq!((&terms.send, terms.receive.tag), (&ours.crypto[1], 2));
    }
}

#[test]
fn a_hold_keeps_the_keys_and_a_new_key_changes_both() {
    let (rule, known) = (SrtpRule::Optional, line(1, "AES_CM_128_HMAC_SHA1_80", KEY));
    let mut dialog = dialog(rule);
    answered(&mut dialog, rule, party("RTP/SAVP", &[&known])).unwrap();
    let before = terms(&dialog).unwrap();
    // The second answer of the same exchange: a 200 after a 183.
    let open = party("RTP/SAVP", &[&known]);
    let again = answer(&open, here(), &CodecPolicy::ANY, Direction::SendRecv).unwrap();
    dialog.send_answer(again).unwrap();
    assert_eq!(terms(&dialog), Some(before.clone()));
    // A re-INVITE with the same key among others, under another tag.
    let moved = [line(1, "AEAD_AES_128_GCM", GCM_KEY), line(2, "AES_CM_128_HMAC_SHA1_80", KEY)];
    let moved = moved.each_ref().map(String::as_str);
    let reply = answered(&mut dialog, rule, party("RTP/SAVP", &moved)).unwrap();
    assert_eq!(audio(&reply).crypto[0].tag, 2);
    let kept = terms(&dialog).unwrap();
    assert_eq!((&kept.receive.key, &kept.send.key), (&before.receive.key, &before.send.key));
    // Our own offer repeats our key, in the protocol of the dialog, and its version stays.
    let version = dialog.local().unwrap().origin.version;
    let current = dialog.local().unwrap().clone();
    let ours = dialog.send_offer(current).unwrap();
    assert_eq!(audio(&ours).protocol, "RTP/SAVP");
    assert_eq!((&audio(&ours).crypto, ours.origin.version), (&vec![kept.send.clone()], version));
    let taken = line(2, "AES_CM_128_HMAC_SHA1_80", KEY);
    dialog.receive_answer(party("RTP/SAVP", &[&taken])).unwrap();
    assert_eq!(terms(&dialog).unwrap().send.key, before.send.key);
    // A re-INVITE with a new key.
    let fresh = line(1, "AES_CM_128_HMAC_SHA1_80", OTHER_KEY);
    answered(&mut dialog, rule, party("RTP/SAVP", &[&fresh])).unwrap();
    let changed = terms(&dialog).unwrap();
    assert_ne!(changed.receive.key, before.receive.key);
    assert_ne!(changed.send.key, before.send.key);
    // Our own offer with a new key, in the suite that was agreed.
    dialog.renew_key();
    let current = dialog.local().unwrap().clone();
    let ours = dialog.send_offer(current).unwrap();
    let line = &audio(&ours).crypto[0];
    assert_eq!((audio(&ours).crypto.len(), line.suite), (1, changed.send.suite));
    assert_ne!(line.key, changed.send.key);
    dialog.roll_back();
    // A re-INVITE that ends SRTP, and our offer after it.
    answered(&mut dialog, rule, party("RTP/AVP", &[])).unwrap();
    assert_eq!(terms(&dialog), None);
    let current = dialog.local().unwrap().clone();
    assert_eq!(audio(&dialog.send_offer(current).unwrap()).crypto, []);
}

#[test]
fn keys_are_not_in_the_debug_text_of_a_dialog() {
    let (rule, known) = (SrtpRule::Optional, line(1, "AES_CM_128_HMAC_SHA1_80", KEY));
    let mut dialog = dialog(rule);
    let reply = answered(&mut dialog, rule, party("RTP/SAVP", &[&known])).unwrap();
    let printed = format!("{dialog:?} {reply:?}");
    let sent = reply.to_bytes();
    let sent = String::from_utf8_lossy(&sent);
    let ours = sent.split("inline:").nth(1).and_then(|rest| rest.split("\r\n").next()).unwrap();
    assert!(!printed.contains(KEY) && !printed.contains(ours) && !printed.contains("YS__"), "{printed}");
    assert!(printed.contains("CryptoKey(..)"));
}
