//! Calls of browsers: ICE and DTLS on one side, plain RTP on the other.

use std::sync::Arc;

use sidetone_media::webrtc::Protection;
use sidetone_sip::sdp::{Fingerprint, KeySeed, SessionDescription, SrtpRule};

use crate::call::Call;
use crate::io::{CalleeAt, Callees, Input, MediaCommand, Output, Setup, Sides};
use crate::tests::ladder::{Counting, any_instant, setup};

/// The offer of a browser, and its answer to ours.
fn browser(setup: &str) -> String {
    let print = (0..32).map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n\
         m=audio 9 UDP/TLS/RTP/SAVPF 0\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=rtcp-mux\r\na=ice-ufrag:Sp8M\r\n\
         a=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\r\na=fingerprint:sha-256 {print}\r\na=setup:{setup}\r\n"
    )
}

/// A call with a browser on one side; the commands to the ports, in order, and the text of our last description.
fn with_a_browser(calls: bool, callee_rule: SrtpRule, is_browser: bool) -> (Vec<MediaCommand>, String) {
    let read = |text: &str| SessionDescription::parse(text.as_bytes()).unwrap();
    let plain =
        "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
    let callee = CalleeAt { at: "192.0.2.2".parse().unwrap(), is_browser, has_ice: false };
    let offer = if calls { read(&browser("actpass")) } else { read(plain) };
    let mut setup = setup(Some(offer), Callees::AtOnce(vec![callee]));
    setup.keys = KeySeed::new([7; 32]).with_certificate(Some(Arc::new(Fingerprint([9; 32]))));
    if let Sides::Bridge { callee, .. } = &mut setup.sides {
        callee.srtp = callee_rule;
    }
    let answer = |sent: &str| match sent.contains("UDP/TLS/RTP/SAVPF") {
        true => read(&browser("active")),
        false => read(plain),
    };
    let (commands, offered, answered) = played(setup, answer);
    (commands, if calls { answered } else { offered })
}

/// Plays a call that the callee answers: the commands to the ports, our offer and our answer.
fn played(setup: Setup, answer: impl Fn(&str) -> SessionDescription) -> (Vec<MediaCommand>, String, String) {
    let now = any_instant();
    let mut call = Call::new(now, setup);
    let (mut ports, mut commands) = (Counting { next: 0, left: 2 }, Vec::new());
    let (mut offered, mut answered) = (String::new(), String::new());
    let text = |sdp: SessionDescription| String::from_utf8(sdp.to_bytes().to_vec()).unwrap();
    while let Some(output) = call.poll_output() {
        match output {
            Output::OpenPort { video, .. } => call.handle_input(now, Input::PortOpened(ports.open(video))),
            Output::Invite(place, offer) => {
                offered = text(offer);
                call.handle_input(now, Input::Answered(place, Some(answer(&offered))));
            }
            Output::Journal(_) => call.handle_input(now, Input::Journalled),
            Output::Answer(answer) => answered = text(answer.unwrap()),
            Output::Media(_, command) => commands.push(command),
            _ => {}
        }
    }
    (commands, offered, answered)
}

/// The protection of the ports, in the order of the commands; no entry for plain RTP.
fn protections(commands: &[MediaCommand]) -> Vec<&Protection> {
    let mut found = Vec::new();
    for command in commands {
        if let MediaCommand::Secure(Some(protection)) = command {
            found.push(&**protection);
        }
    }
    found
}

#[test]
fn a_browser_calls_a_phone_whatever_the_setting_says() {
    for rule in [SrtpRule::Off, SrtpRule::Optional, SrtpRule::Webrtc] {
        let (commands, answer) = with_a_browser(true, rule, false);
        let found = protections(&commands);
        let [Protection::Webrtc(terms)] = found.as_slice() else { panic!("{rule:?}: {found:?}") };
        assert!(terms.ice.username.ends_with(":Sp8M") && !terms.is_client, "{terms:?}");
        assert_eq!(terms.fingerprint, std::array::from_fn(|byte| byte as u8));
        assert!(answer.contains("a=ice-lite\r\n") && answer.contains("a=setup:passive\r\n"), "{answer}");
        let hidden = terms.ice.password.clone();
        assert!(answer.contains(&hidden) && !format!("{commands:?}").contains(&hidden));
    }
}

/// A phone with ICE, with or without keys in SDP; the callee gets an offer without ICE.
#[test]
fn a_phone_with_ice_is_answered_by_a_lite_agent() {
    let read = |text: &str| SessionDescription::parse(text.as_bytes()).unwrap();
    let ice = "a=ice-ufrag:Sp8M\r\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\r\n";
    let key = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\r\n";
    for (keys, has_keys) in [("", false), (key, true)] {
        let plain = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
                     m=audio 4000 RTP/AVP 0\r\n";
        let callee = CalleeAt { at: "192.0.2.2".parse().unwrap(), is_browser: false, has_ice: false };
        let offer = read(&format!("{plain}{ice}{keys}"));
        let mut setup = setup(Some(offer), Callees::AtOnce(vec![callee]));
        if let Sides::Bridge { caller, .. } = &mut setup.sides {
            caller.srtp = SrtpRule::Optional;
        }
        let (commands, offered, answered) = played(setup, |_| read(plain));
        assert!(!offered.contains("a=ice") && !offered.contains("candidate"), "{offered}");
        assert!(answered.contains("a=ice-lite\r\n") && answered.contains("m=audio "), "{answered}");
        assert_eq!(answered.contains("a=crypto:1 "), has_keys, "{answered}");
        let found = protections(&commands);
        let [Protection::Ice(terms, srtp)] = found.as_slice() else { panic!("{found:?}") };
        assert!(terms.username.ends_with(":Sp8M") && srtp.is_some() == has_keys, "{terms:?}");
        assert!(answered.contains(&terms.password) && !format!("{commands:?}").contains(&terms.password));
        assert_eq!(commands.iter().any(MediaCommand::has_readable_keys), has_keys);
    }
}

/// A phone that registered with ICE gets an offer with ICE; its answer decides.
#[test]
fn a_called_phone_with_ice_checks_a_lite_agent() {
    let read = |text: &str| SessionDescription::parse(text.as_bytes()).unwrap();
    let plain =
        "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
    let ice = "a=ice-ufrag:Sp8M\r\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\r\n";
    let callee = CalleeAt { at: "192.0.2.2".parse().unwrap(), is_browser: false, has_ice: true };
    for (answer, checks) in [(format!("{plain}{ice}"), true), (plain.to_owned(), false)] {
        let setup = setup(Some(read(plain)), Callees::AtOnce(vec![callee]));
        let (commands, offered, answered) = played(setup, |_| read(&answer));
        assert!(offered.contains("a=ice-lite\r\n") && offered.contains("a=candidate:1 1 udp "), "{offered}");
        assert!(!answered.contains("a=ice"), "the caller has none: {answered}");
        match protections(&commands).as_slice() {
            [Protection::Ice(terms, None)] if checks => {
                assert!(terms.username.ends_with(":Sp8M"), "{terms:?}");
                assert!(offered.contains(&terms.password));
            }
            [] if !checks => {}
            found => panic!("{checks}: {found:?}"),
        }
    }
}

#[test]
fn a_browser_is_offered_dtls_where_the_extension_is_set_up_for_it() {
    let (commands, offer) = with_a_browser(false, SrtpRule::Webrtc, true);
    assert!(offer.contains("UDP/TLS/RTP/SAVPF") && offer.contains("a=setup:actpass\r\n"), "{offer}");
    assert!(matches!(protections(&commands).as_slice(), [Protection::Webrtc(_)]));
    // Another phone of the same extension has SRTP if it can, and a WebSocket alone makes no browser.
    for (rule, is_browser, profile) in [
        (SrtpRule::Webrtc, false, "RTP/AVP 0"),
        (SrtpRule::Off, true, "RTP/AVP 0"),
        (SrtpRule::Required, true, "RTP/SAVP 0"),
    ] {
        let (commands, offer) = with_a_browser(false, rule, is_browser);
        assert!(offer.contains(&format!(" {profile}")), "{rule:?}: {offer}");
        assert_eq!(offer.contains("a=crypto:"), rule != SrtpRule::Off, "{rule:?}: {offer}");
        assert!(protections(&commands).is_empty());
    }
}
