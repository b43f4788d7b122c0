//! Media addresses that several sections of a description, or several calls, name.

use super::ladder::{
    ACK, Hop, INVITE, Line, OK, Rtp, analyzed, answered, audio, both_ways, later, sdp, verdicts,
};
use crate::Analysis;

const A: &str = "192.0.2.10:4000";
const B: &str = "192.0.2.20:6000";
const SOUND: (Option<&str>, Option<&str>) = (Some("ok"), Some("ok"));

fn directions(analysis: &Analysis) -> Vec<Option<&'static str>> {
    analysis.streams.iter().map(|stream| stream.direction).collect()
}

/// RFC 9143: sections of a bundle have one port. Other sections on the port of the audio may be refused.
#[test]
fn audio_is_found_on_a_port_that_several_sections_name() {
    let section = |kind: &str, port: u16| format!("m={kind} {port} RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n");
    let plain = |port: u16| format!("m=audio {port} RTP/AVP 0\r\n");
    let secure = |port: u16| format!("m=audio {port} RTP/SAVP 0\r\n");
    let cases = [
        ("a bundle", plain(4_000) + &section("video", 4_000), plain(6_000) + &section("video", 6_000)),
        ("video first", section("video", 4_000) + &plain(4_000), section("video", 6_000) + &plain(6_000)),
        ("the first of two audios", secure(4_000) + &plain(4_000), secure(6_000) + &plain(0)),
        ("the second of two audios", secure(4_000) + &plain(4_000), secure(0) + &plain(6_000)),
        (
            "refused data",
            plain(4_000) + &section("application", 4_000),
            plain(6_000) + &section("application", 0),
        ),
    ];
    for (name, offer, answer) in cases {
        let (offer, answer) = (sdp("192.0.2.10", &offer), sdp("192.0.2.20", &answer));
        let messages = Hop::new("one", "192.0.2.10", "192.0.2.20").frames(&answered(&offer, &answer, 5_000));
        let analysis = analyzed(&[messages, both_ways((A, B), (0, 5_000))]);
        assert_eq!(verdicts(&analysis), [SOUND], "{name}");
        assert_eq!(directions(&analysis), [Some("from_caller"), Some("to_caller")], "{name}");
        assert_eq!(analysis.streams[0].codec.as_deref(), Some("PCMU"), "{name}");
    }
}

/// A B2BUA whose RTP bypasses it: both calls have the same packets, and each its own signalling.
#[test]
fn two_calls_with_the_same_media_have_the_same_verdicts() {
    let (offer, answer) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let first = Hop::new("one", "192.0.2.10", "192.0.2.99");
    let second = Hop::new("two", "192.0.2.99", "192.0.2.20");
    for (lost, verdict) in [(None, "ok"), (Some(20), "lossy_inbound")] {
        let messages = [
            first.frames(&answered(&offer, &answer, 5_000)),
            second.frames(&later(answered(&offer, &answer, 4_995), 2)),
        ];
        let from_caller = Rtp { lost, ..Rtp::new(1) }.frames((A, B), (0, 5_000));
        let media = [from_caller, Rtp::new(2).frames((B, A), (0, 5_000))];
        let analysis = analyzed(&[messages.concat(), media.concat()]);
        assert_eq!(verdicts(&analysis), [(Some(verdict), Some("ok")); 2]);
        let figures = |place: usize| (analysis.calls[place].loss_pct, analysis.calls[place].jitter_ms);
        assert_eq!(figures(0), figures(1));
        assert!(analysis.calls.iter().all(|call| call.streams == [0, 1]), "{lost:?}");
    }
}

/// Both calls of a B2BUA get a re-INVITE that makes the parties send to each other.
#[test]
fn direct_media_counts_for_both_calls() {
    let (first, second) =
        (Hop::new("one", "192.0.2.10", "192.0.2.99"), Hop::new("two", "192.0.2.99", "192.0.2.20"));
    let (a, b) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let (to_a, to_b) = (audio("192.0.2.99", 7_000), audio("192.0.2.99", 7_002));
    let [invite, ok, ack, bye] = answered(&a, &to_a, 10_000);
    let from_b2bua = "INVITE sip:a@x SIP/2.0";
    let one = [
        invite,
        ok,
        ack,
        (2_000, false, from_b2bua, (101, "INVITE"), &b),
        (2_010, true, OK, (101, "INVITE"), &a),
        bye,
    ];
    let [invite, ok, ack, bye] = answered(&to_b, &b, 10_000);
    let two = [
        invite,
        ok,
        ack,
        (2_000, true, INVITE, (2, "INVITE"), &a),
        (2_010, false, OK, (2, "INVITE"), &b),
        bye,
    ];
    let media = [
        both_ways((A, "192.0.2.99:7000"), (0, 2_000)),
        both_ways(("192.0.2.99:7002", B), (0, 2_000)),
        both_ways((A, B), (2_020, 10_000)),
    ];
    let analysis = analyzed(&[first.frames(&one), second.frames(&two), media.concat()]);
    assert_eq!(verdicts(&analysis), [SOUND, SOUND]);
}

/// The branches of a fork offer one address; so does an INVITE during the call that is refused.
#[test]
fn a_call_keeps_an_address_that_a_refused_call_names_too() {
    let (offer, answer) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let elsewhere = audio("192.0.2.30", 8_000);
    let winner = Hop::new("one", "192.0.2.10", "192.0.2.20").frames(&answered(&offer, &answer, 5_000));
    let other = Hop::new("two", "192.0.2.10", "192.0.2.30");
    let fork = [
        (-400, true, INVITE, (1, "INVITE"), offer.as_str()),
        (-300, false, "SIP/2.0 183 Session Progress", (1, "INVITE"), &elsewhere),
        (100, true, "CANCEL sip:b@x SIP/2.0", (1, "CANCEL"), ""),
        (110, false, "SIP/2.0 487 Request Terminated", (1, "INVITE"), ""),
    ];
    let busy = [
        (2_000, true, INVITE, (1, "INVITE"), offer.as_str()),
        (2_100, false, "SIP/2.0 486 Busy Here", (1, "INVITE"), ""),
    ];
    for (name, lines) in [("a fork", &fork[..]), ("a refused INVITE", &busy)] {
        let analysis = analyzed(&[winner.clone(), other.frames(lines), both_ways((A, B), (0, 5_000))]);
        assert_eq!(verdicts(&analysis)[0], SOUND, "{name}");
        assert!(analysis.calls[1].answered_at.is_none(), "{name}");
    }
}

/// The end of the first call was not captured, and the second one uses its ports.
#[test]
fn ports_that_are_used_again_leave_a_call_without_an_end() {
    let (offer, answer) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let first = Hop::new("one", "192.0.2.10", "192.0.2.20").frames(&answered(&offer, &answer, 0)[..3]);
    let second = later(answered(&offer, &answer, 5_000), 10_000);
    let second = Hop::new("two", "192.0.2.10", "192.0.2.20").frames(&second);
    let lossy = Rtp { lost: Some(10), ..Rtp::new(3) }.frames((A, B), (10_000, 15_000));
    let media = [both_ways((A, B), (0, 5_000)), lossy, Rtp::new(4).frames((B, A), (10_000, 15_000))];
    let analysis = analyzed(&[first, second, media.concat()]);
    assert_eq!(verdicts(&analysis)[1], (Some("lossy_inbound"), Some("ok")));
    assert_eq!(analysis.calls[0].loss_pct.map(|loss| loss.0), Some(0));
    assert_eq!(analysis.calls[0].streams, [0, 1]);
}

/// RTP that begins seconds after a call has ended belongs to another one, whose signalling was not captured.
#[test]
fn a_stream_that_begins_after_the_call_is_not_the_calls() {
    let (offer, answer) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let messages = Hop::new("one", "192.0.2.10", "192.0.2.20").frames(&answered(&offer, &answer, 5_000));
    for (name, ends) in [("another party", (A, "192.0.2.77:9000")), ("the same ports", (A, B))] {
        let after = [
            Rtp::new(3).frames(ends, (10_000, 14_000)),
            Rtp::new(4).frames((ends.1, ends.0), (10_000, 14_000)),
        ];
        let analysis = analyzed(&[messages.clone(), both_ways((A, B), (0, 5_000)), after.concat()]);
        assert_eq!(analysis.calls[0].streams, [0, 1], "{name}");
        assert_eq!(directions(&analysis), [Some("from_caller"), Some("to_caller"), None, None], "{name}");
        // Within five seconds they may be late packets.
        let soon = Rtp::new(3).frames(ends, (9_000, 13_000));
        let analysis = analyzed(&[messages.clone(), both_ways((A, B), (0, 5_000)), soon]);
        assert_eq!(analysis.calls[0].streams, [0, 1, 2], "{name}");
    }
}

/// Every section has its own `a=ptime`, and a call may begin before the capture or end unanswered.
#[test]
fn streams_are_judged_by_the_packet_duration_of_their_section() {
    let thirty = |ip: &str, port: u16| sdp(ip, &format!("m=audio {port} RTP/AVP 0\r\na=ptime:30\r\n"));
    let (offer, answer) = (thirty("192.0.2.10", 4_000), thirty("192.0.2.20", 6_000));
    let hop = Hop::new("one", "192.0.2.10", "192.0.2.20");
    let whole = answered(&offer, &answer, 10_000);
    let (plain_a, plain_b) = (audio("192.0.2.10", 4_000), audio("192.0.2.20", 6_000));
    let plain = answered(&plain_a, &plain_b, 10_000);
    let refreshed =
        [(3_000, true, INVITE, (2, "INVITE"), offer.as_str()), (3_010, false, OK, (2, "INVITE"), &answer)];
    let refused = [whole[0], (10_000, false, "SIP/2.0 486 Busy Here", (1, "INVITE"), "")];
    let cases: [(&str, &[Line<'_>], &str); 7] = [
        ("the whole call", &whole, "ok"),
        ("the whole call without a ptime", &plain, "ptime_mismatch"),
        ("only the answer", &whole[1..], "ok"),
        ("only the answer, without a ptime", &plain[1..], "ok"),
        ("a later offer", &refreshed, "ok"),
        ("early audio", &refused, "ok"),
        ("an acknowledgement", &[(1, true, ACK, (1, "ACK"), "")], "ok"),
    ];
    for (name, lines, verdict) in cases {
        let media = [1, 2].map(|ssrc| {
            let ends = if ssrc == 1 { (A, B) } else { (B, A) };
            Rtp { ptime_ms: 30, ..Rtp::new(ssrc) }.frames(ends, (0, 10_000))
        });
        let analysis = analyzed(&[hop.frames(lines), media.concat()]);
        let seen: Vec<_> = analysis.streams.iter().map(|stream| stream.verdict).collect();
        assert_eq!(seen, [Some(verdict); 2], "{name}");
    }
    let two = |ip: &str, port: u16| {
        audio(ip, port) + &format!("m=audio {} RTP/AVP 8 0\r\na=ptime:30\r\n", port + 10)
    };
    let (offer, answer) = (two("192.0.2.10", 4_000), two("192.0.2.20", 6_000));
    let second =
        Rtp { ptime_ms: 30, ..Rtp::new(3) }.frames(("192.0.2.10:4010", "192.0.2.20:6010"), (0, 5_000));
    let messages = hop.frames(&answered(&offer, &answer, 5_000));
    let analysis = analyzed(&[messages, both_ways((A, B), (0, 5_000)), second]);
    assert!(analysis.streams.iter().all(|stream| stream.verdict == Some("ok")), "a second audio section");
    assert_eq!(analysis.streams.len(), 3);
}

/// A proxy with a media relay: the streams of its other side are not the call's, but their codec is known.
#[test]
fn streams_of_another_hop_have_their_codec() {
    let fixed =
        |ip: &str, port: u16| sdp(ip, &format!("m=audio {port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"));
    let dynamic =
        |ip: &str, port: u16| sdp(ip, &format!("m=audio {port} RTP/AVP 100\r\na=rtpmap:100 PCMA/8000\r\n"));
    let (offer, answer) = (fixed("192.0.2.10", 4_000), fixed("192.0.2.99", 7_000));
    let (offered_on, answered_there) = (dynamic("192.0.2.99", 7_002), dynamic("192.0.2.20", 6_000));
    let first = Hop::new("one", "192.0.2.10", "192.0.2.99").frames(&answered(&offer, &answer, 5_000));
    let lines = later(answered(&offered_on, &answered_there, 4_999), 1);
    let second = Hop::new("one", "192.0.2.99", "192.0.2.20").frames(&lines);
    let mut behind = both_ways(("192.0.2.99:7002", B), (0, 5_000));
    behind.iter_mut().for_each(|frame| frame.3[1] = 100);
    let analysis = analyzed(&[first, second, both_ways((A, "192.0.2.99:7000"), (0, 5_000)), behind]);
    assert_eq!(verdicts(&analysis), [SOUND]);
    assert_eq!(analysis.calls[0].streams, [0, 1]);
    let codecs: Vec<_> = analysis.streams.iter().map(|stream| stream.codec.as_deref()).collect();
    assert_eq!(codecs, [Some("PCMU"), Some("PCMU"), Some("PCMA"), Some("PCMA")]);
    assert!(analysis.streams.iter().all(|stream| !stream.clock_rate_inferred));
}
