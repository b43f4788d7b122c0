//! Signalling that a switch would refuse, or that is incomplete; the analysed call is the same.

use sidetone_media::verdict::Verdict;

use super::{Frame, analyze, frames, is_sip, with_messages_among, write};
use crate::Analysis;

fn figures(analysis: &Analysis) -> serde_json::Value {
    serde_json::to_value((&analysis.calls, &analysis.streams)).unwrap()
}

/// The same frames with changed message text; every message must change.
fn reworded(frames: &[Frame], change: &dyn Fn(&str) -> String) -> Vec<Frame> {
    let mut frames = frames.to_vec();
    for frame in frames.iter_mut().filter(|frame| is_sip(frame)) {
        let text = String::from_utf8(std::mem::take(&mut frame.3)).unwrap();
        let changed = change(&text);
        assert_ne!(changed, text);
        frame.3 = changed.into_bytes();
    }
    frames
}

/// A head with another body; an additional field makes it differ from the original even if the body is the
/// same.
fn with_body(head: &str, body: &str) -> String {
    let (before, _) = head.split_once("Content-Length: ").unwrap();
    format!("{before}X-Body: another\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// The messages of a call of 20 seconds, and its media until nine seconds after the first packet.
fn nine_seconds_of_media() -> Vec<Frame> {
    let mut media = frames("clean duration=20s");
    let begin = media.iter().find(|frame| !is_sip(frame)).unwrap().0;
    media.retain(|frame| is_sip(frame) || frame.0.since(begin) < 9_000_000);
    media
}

#[test]
fn what_a_switch_would_refuse_is_the_same_call() {
    let all = frames("lossy duration=5s");
    let expected = analyze(&write(&all));
    assert_eq!(expected.calls.len(), 1);
    type Change = fn(&str) -> String;
    let cases: [(&str, Change); 6] = [
        ("empty lines in front", |text| format!("\r\n\r\n{text}")),
        ("line feeds alone", |text| text.replace("\r\n", "\n")),
        ("a length that is no number", |text| text.replace("Content-Length: ", "Content-Length: about ")),
        ("a length beyond the datagram", |text| text.replace("Content-Length: ", "Content-Length: 9")),
        ("a name with quotes that close nothing", |text| text.replace("From: ", "From: \\\"Ada\\\" ")),
        ("no Via", |text| text.replace("Via: ", "X-Via: ")),
    ];
    for (name, change) in cases {
        let analysis = analyze(&write(&reworded(&all, &change)));
        assert_eq!(analysis.skipped.malformed_sip, 0, "{name}");
        assert_eq!(figures(&analysis), figures(&expected), "{name}");
    }
    // A message that cannot be assigned to a call is counted.
    let analysis = analyze(&write(&reworded(&all, &|text| text.replace("Call-ID: ", "Call: "))));
    assert_eq!((analysis.calls.len(), analysis.skipped.malformed_sip > 3), (0, true));
}

#[test]
fn a_description_among_other_parts_counts() {
    let all = frames("wrong-ptime duration=5s");
    let expected = analyze(&write(&all));
    let analysis = analyze(&write(&reworded(&all, &|text| {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let parts = format!(
            "--x\r\nContent-Type: text/plain\r\n\r\nnothing\r\n--x\r\nContent-Type: application/sdp\r\n\r\n\
             {body}\r\n--x\r\nContent-Type: application/pidf+xml\r\n\r\n<v/>\r\n--x--\r\n"
        );
        let head = head.replace("application/sdp", "Multipart/Mixed;boundary=x");
        with_body(&head, if body.is_empty() { "" } else { &parts })
    })));
    assert_eq!(expected.calls[0].media_verdict, Some("ptime_mismatch"));
    assert_eq!(figures(&analysis), figures(&expected));
}

/// RFC 3264 §8.4: a party that offers `0.0.0.0` does not want to receive, and the peer stops sending.
#[test]
fn a_hold_by_address_is_no_missing_audio() {
    let media = nine_seconds_of_media();
    let (caller, called) = (Some((4_000, "sendrecv")), Some((20_000, "sendrecv")));
    let invite = "INVITE sip:c@d SIP/2.0";
    for held_by_caller in [false, true] {
        let messages = [
            (0, true, invite, 1, "INVITE", caller),
            (100, false, "SIP/2.0 200 OK", 1, "INVITE", called),
            (9_000, held_by_caller, invite, 2, "INVITE", if held_by_caller { caller } else { called }),
            (
                9_010,
                !held_by_caller,
                "SIP/2.0 200 OK",
                2,
                "INVITE",
                if held_by_caller { called } else { caller },
            ),
            (30_000, true, "BYE sip:c@d SIP/2.0", 9, "BYE", None),
        ];
        let frames = with_messages_among(&media, &messages);
        let hold = |frame: &mut Frame| {
            let text = String::from_utf8_lossy(&frame.3).into_owned();
            if text.starts_with("INVITE") && text.contains("CSeq: 2 ") {
                let at = text.find("c=IN IP4 ").unwrap();
                let end = at + text[at..].find("\r\n").unwrap();
                // Padded to the old length, so that the Content-Length stays valid.
                let address = format!("c=IN IP4 {:<1$}", "0.0.0.0", end - at - 9);
                frame.3 = [&text[..at], &address, &text[end..]].concat().into_bytes();
            }
        };
        let mut held = frames.clone();
        held.iter_mut().filter(|frame| is_sip(frame)).for_each(hold);
        let verdict = |frames: &[Frame]| analyze(&write(frames)).calls[0].media_verdict;
        assert_eq!(verdict(&frames), Some("degraded_audio"), "who does not hold and sends nothing is missed");
        assert_eq!(verdict(&held), Some("ok"), "held by the caller: {held_by_caller}");
    }
}

/// The same frames with other session descriptions: `change` takes whether the caller sent it, and the body.
fn redescribed(frames: &[Frame], change: &dyn Fn(bool, &str) -> String) -> Vec<Frame> {
    let mut frames = frames.to_vec();
    for frame in frames.iter_mut().filter(|frame| is_sip(frame)) {
        let text = String::from_utf8(frame.3.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n").filter(|(_, body)| !body.is_empty()) {
            frame.3 = with_body(head, &change(text.starts_with("INVITE"), body)).into_bytes();
        }
    }
    frames
}

/// A body with another `c=` line.
fn with_address(body: &str, address: &str) -> String {
    let (before, rest) = body.split_once("c=").unwrap();
    let (_, after) = rest.split_once("\r\n").unwrap();
    format!("{before}c={address}\r\n{after}")
}

/// A host name or a multicast group in `c=` is no hold: both parties want to talk and to hear.
#[test]
fn an_address_that_cannot_be_used_is_no_hold() {
    let media = frames("clean duration=10s");
    let begin = media.iter().find(|frame| !is_sip(frame)).unwrap().0;
    // The milliseconds for which the caller and the called party send.
    let cases = [
        ("IN IP4 media.example", 0, 10_000, "no_inbound_media"),
        ("IN IP4 media.example", 10_000, 0, "no_outbound_media"),
        ("IN IP4 media.example", 2_000, 10_000, "degraded_audio"),
        ("IN IP4 media.example", 10_000, 10_000, "ok"),
        ("IN IP4 not_an_address!", 0, 10_000, "no_inbound_media"),
        ("IN IP4 224.2.1.1/127", 0, 10_000, "wrong_advertised_address"),
        ("IN IP4 224.2.1.1/127", 10_000, 10_000, "ok"),
        ("IN IP6 ff02::1", 0, 10_000, "wrong_advertised_address"),
        ("IN IP4 0.0.0.0", 0, 10_000, "ok"),
    ];
    for (address, sent_ms, returned_ms, expected) in cases {
        let change = |of_caller: bool, body: &str| {
            if of_caller { with_address(body, address) } else { body.to_owned() }
        };
        let mut frames = redescribed(&media, &change);
        frames.retain(|frame| {
            let sent_ms = if frame.1.port() == 4_000 { sent_ms } else { returned_ms };
            is_sip(frame) || frame.0.since(begin) < sent_ms * 1_000
        });
        let verdict = analyze(&write(&frames)).calls[0].media_verdict;
        assert_eq!(verdict, Some(expected), "{address}: {sent_ms} ms sent, {returned_ms} ms returned");
    }
}

/// The packets of two parties with host names belong to no call, so that their absence is no evidence.
#[test]
fn two_host_names_are_no_missing_audio() {
    let media = frames("clean duration=10s");
    let mut both = redescribed(&media, &|_, body| with_address(body, "IN IP4 media.example"));
    let mut next = frames("clean duration=5s seed=4");
    next.iter_mut().for_each(|frame| frame.0 = frame.0 + 20_000_000);
    both.append(&mut next);
    let verdicts: Vec<_> = analyze(&write(&both)).calls.iter().map(|call| call.media_verdict).collect();
    assert_eq!(verdicts, [Some("ok"), Some("ok")]);
}

/// RFC 3952 §5: without `a=ptime` a packet of iLBC has the duration of its mode; that is 20 ms if both sides write it.
#[test]
fn the_mode_of_ilbc_is_its_packet_duration() {
    let cases = [
        (Some(20), Some(20), 20, "ok"),
        (Some(20), Some(20), 30, "ptime_mismatch"),
        (Some(20), Some(30), 30, "ok"),
        (Some(20), None, 30, "ok"),
        (Some(30), Some(30), 30, "ok"),
        (None, None, 30, "ok"),
        (None, None, 20, "ptime_mismatch"),
    ];
    for (offered, answered, ptime_ms, expected) in cases {
        let change = |of_caller: bool, body: &str| {
            let mode = if of_caller { offered } else { answered };
            let fmtp = mode.map_or(String::new(), |mode: u32| format!("a=fmtp:97 mode={mode}\r\n"));
            let (head, lines) = body.split_once("m=audio ").unwrap();
            let port = lines.split(' ').next().unwrap();
            format!("{head}m=audio {port} RTP/AVP 97\r\na=rtpmap:97 iLBC/8000\r\n{fmtp}")
        };
        let mut frames = redescribed(&frames(&format!("clean duration=10s ptime={ptime_ms}")), &change);
        frames.iter_mut().filter(|frame| !is_sip(frame)).for_each(|frame| frame.3[1] = 97);
        let call = &analyze(&write(&frames)).calls[0];
        let seen = (call.codec_a.as_deref(), call.media_verdict);
        assert_eq!(seen, (Some("iLBC"), Some(expected)), "{offered:?}, {answered:?}: {ptime_ms} ms sent");
    }
}

#[test]
fn a_call_id_that_is_used_again_is_another_call() {
    let one_id = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("Call-ID: ")).unwrap();
        text.replace(line, "Call-ID: one")
    };
    let first = reworded(&frames("clean duration=5s"), &one_id);
    let again = |change: fn(&str) -> String| {
        let mut second = reworded(&frames("lossy duration=5s"), &|text| change(&one_id(text)));
        second.iter_mut().for_each(|frame| frame.0 = frame.0 + 6_000_000);
        let analysis = analyze(&write(&[first.clone(), second].concat()));
        analysis.calls.iter().map(|call| (call.media_verdict, call.billsec)).collect::<Vec<_>>()
    };
    let calls = again(|text| text.replace(";tag=", ";tag=again-"));
    assert_eq!(calls, [(Some("ok"), 5), (Some("lossy_inbound"), 5)]);
    assert_eq!(again(str::to_owned).len(), 1, "the same messages once more");
}

/// A fax (T.38) or a disabled section removes the audio: no audio is reported as missing after it.
#[test]
fn removed_audio_is_no_missing_audio() {
    let media = nine_seconds_of_media();
    let (caller, called) = (Some((4_000, "sendrecv")), Some((20_000, "sendrecv")));
    let invite = "INVITE sip:c@d SIP/2.0";
    let messages = [
        (0, true, invite, 1, "INVITE", caller),
        (100, false, "SIP/2.0 200 OK", 1, "INVITE", called),
        (9_000, true, invite, 2, "INVITE", caller),
        (9_010, false, "SIP/2.0 200 OK", 2, "INVITE", called),
        (30_000, true, "BYE sip:c@d SIP/2.0", 9, "BYE", None),
    ];
    let frames = with_messages_among(&media, &messages);
    for (from, to) in [("audio", "image"), ("audio 20000", "audio 00000"), ("audio 4000", "audio 0000")] {
        let mut changed = frames.clone();
        for frame in changed.iter_mut().filter(|frame| is_sip(frame)) {
            let text = String::from_utf8_lossy(&frame.3).into_owned();
            if text.contains("CSeq: 2 ") {
                frame.3 = text.replace(from, to).into_bytes();
            }
        }
        assert_ne!(changed, frames);
        let call = &analyze(&write(&changed)).calls[0];
        assert_eq!((call.media_verdict, call.codec_a.as_deref()), (Some("ok"), Some("PCMU")), "{to}");
    }
}

/// The called party may refuse the first audio section and accept the next (RFC 3264 §6).
#[test]
fn the_call_is_judged_by_the_audio_that_was_taken() {
    let all = frames("lossy duration=5s");
    let expected = analyze(&write(&all));
    let frames = reworded(&all, &|text| {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let body = match text.starts_with("INVITE") {
            true => body.replace("m=audio", "m=audio 4444 RTP/SAVP 0\r\nm=audio"),
            false => body.replace("m=audio", "m=audio 0 RTP/SAVP 0\r\nm=audio"),
        };
        with_body(head, &body)
    });
    let analysis = analyze(&write(&frames));
    let seen = |analysis: &Analysis| {
        let call = &analysis.calls[0];
        (call.media_verdict, call.loss_pct.map(|loss| loss.0), call.codec_a.clone(), call.billsec)
    };
    assert_eq!(seen(&analysis), seen(&expected));
    assert_eq!(figures(&analysis)[1], figures(&expected)[1]);
}

#[test]
fn what_is_settled_in_a_call_that_began_before_is_announced() {
    let all = frames("clean duration=5s");
    // A beep of five packets, too short for a stream that no SDP announced.
    let beep: Vec<Frame> =
        all.iter().filter(|frame| !is_sip(frame) && frame.2.port() == 20_000).take(5).cloned().collect();
    assert!(analyze(&write(&beep)).streams.is_empty());
    let heard = |method: &str| {
        let mut frames: Vec<Frame> =
            all.iter().filter(|frame| is_sip(frame) && frame.3.starts_with(b"SIP/2.0 ")).cloned().collect();
        frames.retain(|frame| frame.0 <= beep[0].0);
        frames = reworded(&frames, &|text| text.replace(" INVITE\r\n", &format!(" {method}\r\nX: 1\r\n")));
        frames.extend(beep.iter().cloned());
        let analysis = analyze(&write(&frames));
        assert!(analysis.calls.is_empty());
        analysis.streams.iter().map(|stream| (stream.packets, stream.codec.clone())).collect::<Vec<_>>()
    };
    assert_eq!(heard("INVITE"), [(5, Some("PCMU".to_owned()))]);
    assert_eq!(heard("UPDATE"), [(5, Some("PCMU".to_owned()))]);
    assert_eq!(heard("OPTIONS"), [], "what a host could do");
}

/// A body with other formats of the audio, over another profile.
fn with_formats(body: &str, formats: &str) -> String {
    let (head, lines) = body.split_once("m=audio ").unwrap();
    let port = lines.split(' ').next().unwrap();
    format!("{head}m=audio {port} {formats}\r\n")
}

/// RFC 3711 §3.1: the tag follows the payload, and the analysis, which has no key, cannot tell them apart.
#[test]
fn the_tag_of_srtp_is_no_audio() {
    let key = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
    let all = frames("clean duration=10s");
    for (profile, tag, expected) in [
        (format!("RTP/SAVP 18\r\n{key}"), 10, "ok"),
        ("UDP/TLS/RTP/SAVPF 18\r\na=setup:active".to_owned(), 16, "ok"),
        ("RTP/AVP 18".to_owned(), 10, "ptime_mismatch"),
        ("RTP/AVP 18".to_owned(), 0, "ok"),
    ] {
        let mut frames = redescribed(&all, &|_, body| with_formats(body, &profile));
        for frame in frames.iter_mut().filter(|frame| !is_sip(frame)) {
            frame.3[1] = frame.3[1] & 0x80 | 18;
            frame.3.resize(12 + 20 + tag, 0xd5);
        }
        let analysis = analyze(&write(&frames));
        let callee = analysis.calls[0].callee().and_then(|callee| callee.verdict).map(Verdict::as_str);
        assert_eq!((analysis.calls[0].media_verdict, callee), (Some(expected), Some(expected)), "{profile}");
        let streams: Vec<_> = analysis.streams.iter().map(|stream| stream.verdict).collect();
        assert_eq!(streams, [Some(expected); 2], "{profile}");
        // Without SIP the packets may be SRTP.
        frames.retain(|frame| !is_sip(frame));
        let streams: Vec<_> = analyze(&write(&frames)).streams.iter().map(|stream| stream.verdict).collect();
        assert_eq!(streams, [Some("ok"); 2], "{profile}");
    }
}

/// RFC 3264 §6.1: a party sends with the numbers of the other description; some send with their own.
#[test]
fn a_party_may_send_with_its_own_numbers() {
    for (sent, returned) in [(107, 96), (96, 107), (107, 107), (96, 96)] {
        let change = |of_caller: bool, body: &str| {
            let number = if of_caller { 96 } else { 107 };
            with_formats(body, &format!("RTP/AVP {number}\r\na=rtpmap:{number} PCMA/8000"))
        };
        let mut frames = redescribed(&frames("clean duration=10s"), &change);
        for frame in frames.iter_mut().filter(|frame| !is_sip(frame)) {
            let number = if frame.1.port() == 4_000 { sent } else { returned };
            frame.3[1] = frame.3[1] & 0x80 | number;
        }
        let call = &analyze(&write(&frames)).calls[0];
        let callee = call.callee().and_then(|callee| callee.verdict).map(Verdict::as_str);
        assert_eq!(
            (call.media_verdict, callee),
            (Some("ok"), Some("ok")),
            "{sent} sent, {returned} returned"
        );
    }
}

/// RFC 5109 §7: error correction has an SSRC of its own.
#[test]
fn error_correction_is_no_audio() {
    let change = |_: bool, body: &str| {
        with_formats(body, "RTP/AVP 0 98\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:98 ulpfec/8000")
    };
    let mut frames = redescribed(&frames("clean duration=20s"), &change);
    let sent = frames.iter().filter(|frame| !is_sip(frame) && frame.1.port() == 4_000);
    let mut repair: Vec<Frame> = sent.step_by(5).cloned().collect();
    for (n, frame) in (1_u16..).zip(&mut repair) {
        frame.0 = frame.0 + 5;
        frame.3[1] = 98;
        frame.3[2..4].copy_from_slice(&n.to_be_bytes());
        frame.3[8..12].copy_from_slice(&[0, 0, 0x44, 0x44]);
    }
    frames.append(&mut repair);
    frames.sort_by_key(|frame| frame.0);
    let analysis = analyze(&write(&frames));
    let call = &analysis.calls[0];
    let interval = call.mean_interval_ms.map(|interval| interval.0);
    assert_eq!((call.media_verdict, interval), (Some("ok"), Some(2_000)));
    assert_eq!(analysis.streams.len(), 3);
}

/// A stream that no SDP announces may begin with packets of another type: comfort noise, digits, or its old format.
#[test]
fn a_clock_is_inferred_whatever_a_stream_begins_with() {
    let mut stream = frames("clean duration=10s");
    stream.retain(|frame| !is_sip(frame) && frame.1.port() == 4_000);
    let of_type = |range: std::ops::Range<usize>, number: u8| {
        let mut stream = stream.clone();
        let begin = stream[range.start].3[4..8].to_vec();
        for (n, frame) in stream.iter_mut().enumerate() {
            frame.3[1] = if range.contains(&n) { number } else { 111 };
            if range.contains(&n) && number == 101 {
                // All packets of a digit have the timestamp of its begin (RFC 4733 §2.2.1).
                frame.3[4..8].copy_from_slice(&begin);
            }
        }
        stream
    };
    for (name, frames) in [
        ("comfort noise", of_type(0..1, 13)),
        ("another dynamic type", of_type(0..1, 100)),
        ("digits", of_type(0..8, 101)),
        ("digits for a second", of_type(0..50, 101)),
        ("PCMU", of_type(0..50, 0)),
        ("digits within", of_type(200..208, 101)),
    ] {
        let analysis = analyze(&write(&frames));
        let seen: Vec<_> = analysis
            .streams
            .iter()
            .map(|stream| (stream.clock_rate, stream.clock_rate_inferred, stream.verdict))
            .collect();
        assert_eq!(seen, [(Some(8_000), true, Some("ok"))], "{name}");
        assert!(analysis.streams[0].mos.is_some(), "{name}");
    }
    // Digits in a stream of a known type change nothing.
    let mut known = of_type(200..208, 101);
    known.iter_mut().filter(|frame| frame.3[1] == 111).for_each(|frame| frame.3[1] = 0);
    let analysis = analyze(&write(&known));
    let stream = &analysis.streams[0];
    assert_eq!((stream.packets, stream.clock_rate, stream.clock_rate_inferred), (500, Some(8_000), false));
    assert_eq!((stream.verdict, stream.mos.is_some()), (Some("ok"), true));
}
