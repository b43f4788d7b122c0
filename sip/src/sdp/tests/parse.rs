use proptest::prelude::*;

use crate::sdp::*;

fn parse(text: &str) -> SessionDescription {
    SessionDescription::parse(text.replace('\n', "\r\n").as_bytes()).unwrap()
}

#[test]
fn a_desk_phone_is_read_whole() {
    let description = parse(
        "v=0\no=alice 2890844526 2890844527 IN IP4 198.51.100.5\ns=Phone\nc=IN IP4 198.51.100.5\nb=AS:64\nt=0 0\n\
         m=audio 49170 RTP/AVP 96 9 0 8 101\na=rtpmap:96 opus/48000/2\na=fmtp:96 useinbandfec=1; stereo=0\n\
         a=rtpmap:101 telephone-event/8000\na=fmtp:101 0-16\na=ptime:20\na=maxptime:60\na=rtcp:53020\n\
         a=rtcp-mux\na=sendonly\nm=video 51372 RTP/AVP 99\na=rtpmap:99 H264/90000\n",
    );
    assert_eq!(description.origin.session_id, "2890844526");
    assert_eq!(description.origin.version, 2_890_844_527);
    let audio = &description.media[0];
    assert_eq!(
        (audio.kind.clone(), audio.port, audio.direction),
        (MediaKind::Audio, 49_170, Direction::SendOnly)
    );
    assert_eq!((audio.ptime_ms, audio.maxptime_ms, audio.rtcp_mux), (Some(20), Some(60), true));
    assert_eq!(audio.rtcp, Some(Box::new(Rtcp { port: 53_020, address: None })));
    let codecs: Vec<String> = audio.codecs.iter().map(|c| format!("{} {c}", c.payload_type)).collect();
    assert_eq!(
        codecs,
        ["96 opus/48000/2", "9 G722/8000", "0 PCMU/8000", "8 PCMA/8000", "101 telephone-event/8000"]
    );
    assert_eq!(audio.codecs[0].fmtp.as_deref(), Some("useinbandfec=1; stereo=0"));
    assert_eq!(description.media[1].kind, MediaKind::Video);
    assert_eq!(description.rtcp_address(audio, false).unwrap().port(), 53_020);
    assert_eq!(description.rtcp_address(audio, true).unwrap().port(), 49_170);
}

#[test]
fn a_description_prints_as_it_was_read() {
    let text = "v=0\r\no=- 1 2 IN IP6 2001:db8::1\r\ns=-\r\nc=IN IP6 2001:db8::1\r\nt=0 0\r\n\
                m=audio 4000 RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\n\
                a=fmtp:101 0-15\r\na=ptime:20\r\na=rtcp:5001 IN IP6 2001:db8::2\r\na=recvonly\r\n\
                m=image 0 udptl t38\r\nc=IN IP4 192.0.2.1\r\n";
    assert_eq!(SessionDescription::parse(text.as_bytes()).unwrap().to_string(), text);
}

#[test]
fn what_the_field_sends_is_read() {
    let ok = [
        (
            "line feeds only, no last line end",
            "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nt=0 0\nm=audio 4 RTP/AVP 0",
        ),
        ("a name with spaces", "v=0\no=Bob Smith 1 1 IN IP4 192.0.2.1\ns=-\nm=audio 4 RTP/AVP 0\n"),
        ("no time, no name", "v=0\no=- 1 1 IN IP4 192.0.2.1\nm=audio 4 RTP/AVP 0\n"),
        ("wrong bandwidth", "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nb=AS\nm=audio 4 RTP/AVP 0\n"),
        ("a wrong rtpmap", "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nm=audio 4 RTP/AVP 0\na=rtpmap:0 rubbish\n"),
        ("two ports", "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nm=audio 4/2 RTP/AVP 0\n"),
    ];
    for (name, text) in ok {
        let description =
            SessionDescription::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(description.media[0].codecs, [Codec::new(0, "PCMU", 8_000, 1)], "{name}");
    }
    // With a charset other than UTF-8 a letter of the name is lost, but not the call.
    let latin = b"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=caf\xe9\r\nm=audio 4 RTP/AVP 0\r\n";
    assert_eq!(SessionDescription::parse(latin).unwrap().media.len(), 1);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let head = "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\n";
    let table = [
        ("empty", String::new()),
        ("prose", "hello".to_owned()),
        ("no version", "o=- 1 1 IN IP4 192.0.2.1\ns=-\n".to_owned()),
        ("no origin", "v=0\ns=-\nm=audio 4 RTP/AVP 0\n".to_owned()),
        ("port over 65,535", format!("{head}m=audio 70000 RTP/AVP 0\n")),
        ("no format", format!("{head}m=audio 4 RTP/AVP\n")),
        ("empty format", format!("{head}m=audio 4 RTP/AVP \n")),
        ("a line that is none", format!("{head}m=audio 4 RTP/AVP 0\nrubbish\n")),
    ];
    for (name, text) in table {
        assert!(SessionDescription::parse(text.as_bytes()).is_err(), "{name}");
    }
}

#[test]
fn bounds_hold() {
    let head = "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\n";
    let media = "m=audio 4 RTP/AVP 0\n";
    let table = [
        ("attributes", format!("{head}{media}{}", "a=x\n".repeat(ATTRIBUTES_MAX)), true),
        ("too many attributes", format!("{head}{media}{}", "a=x\n".repeat(ATTRIBUTES_MAX + 1)), false),
        ("media", format!("{head}{}", media.repeat(MEDIA_MAX)), true),
        ("too many media", format!("{head}{}", media.repeat(MEDIA_MAX + 1)), false),
        ("too many lines", format!("{head}{}", "b=AS:1\n".repeat(LINES_MAX)), false),
        ("too long", format!("{head}s={}", "x".repeat(BODY_BYTES_MAX)), false),
    ];
    for (name, text, expected) in table {
        assert_eq!(SessionDescription::parse(text.as_bytes()).is_ok(), expected, "{name}");
    }
}

#[test]
fn no_line_can_be_smuggled_out() {
    let mut description = parse("v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nm=audio 4 RTP/AVP 0\n");
    description.name = "x\r\nm=audio 1 RTP/AVP 0".into();
    description.media[0].codecs[0].fmtp = Some("a\r\nc=IN IP4 203.0.113.66".into());
    let again = SessionDescription::parse(description.to_string().as_bytes()).unwrap();
    assert_eq!((again.media.len(), again.connection), (1, None));
}

/// Lines that are difficult for a parser, in any order and number.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("v=0".to_owned()),
        "o=[a-z ]{0,8} [0-9]{1,22} [0-9]{1,21} IN IP[46] [0-9a-f.:]{0,15}",
        "c=IN IP[46] [0-9a-z.:/]{0,15}",
        "m=(audio|video|image|x) [0-9]{1,6}(/[0-9]{1,5})? (RTP/AVP|RTP/SAVPF|udptl|[A-Z/ ]{0,6})( [0-9]{1,4}| t38| ){0,4}",
        "a=(rtpmap|fmtp|ptime|maxptime|rtcp|rtcp-mux|sendonly|inactive)(:[0-9]{1,4}[ -~]{0,20})?",
        "a=rtpmap:[0-9]{1,3} [!-~]{1,10}/[0-9]{1,6}(/[0-9]{1,3})?",
        "[a-z]=\\PC{0,20}",
        "\\PC{0,12}",
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_survived(body in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = SessionDescription::parse(&body);
    }

    #[test]
    fn printing_what_was_read_reads_the_same(lines in prop::collection::vec(line(), 0..24), lead in any::<bool>()) {
        let head = if lead { "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\n" } else { "" };
        let text = format!("{head}{}\r\n", lines.join("\r\n"));
        if let Ok(first) = SessionDescription::parse(text.as_bytes()) {
            let printed = first.to_string();
            let second = SessionDescription::parse(printed.as_bytes());
            prop_assert_eq!(second.as_ref(), Ok(&first), "{}", printed);
        }
    }
}
