//! Calls as foreign captures show them: cut off, behind NAT, one after the other, or without their SIP.

use std::net::SocketAddr;

use sidetone_media::pcap::{Content, Datagram, LinkType, Records, Writer, dissect};
use sidetone_media::time::Micros;
use sidetone_media::verdict::Verdict;

use super::{Analysis, compose, read};

#[path = "tests_addresses.rs"]
mod addresses;
#[path = "tests_dialogs.rs"]
mod dialogs;
#[path = "tests_ice.rs"]
mod ice;
#[path = "tests_ladder.rs"]
mod ladder;
#[path = "tests_unruly.rs"]
mod unruly;

type Frame = (Micros, SocketAddr, SocketAddr, Vec<u8>);

/// Milliseconds, whether the caller sends it, start line, CSeq number and method, port and direction of its SDP.
type Line<'a> = (i64, bool, &'a str, u32, &'a str, Option<(u16, &'a str)>);

fn frames(text: &str) -> Vec<Frame> {
    let mut file = Vec::new();
    compose(&text.parse().unwrap(), &mut file).unwrap();
    let datagrams = Records::new(&file).map(|record| {
        let record = record.unwrap();
        let Content::Udp(Datagram { source, destination, payload, .. }) = dissect(record.link, record.frame)
        else {
            panic!("everything composed is UDP")
        };
        (record.at, source, destination, payload.to_vec())
    });
    datagrams.collect()
}

fn write(frames: &[Frame]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    for (at, source, destination, payload) in frames {
        writer.write_udp(*at, *source, *destination, payload).unwrap();
    }
    writer.finish().unwrap()
}

fn analyze(file: &[u8]) -> Analysis {
    let outcome = read("test", &mut &file[..], &mut |_| {});
    assert!(outcome.broken.is_none(), "{:?}", outcome.broken);
    outcome.analysis
}

fn is_sip(frame: &Frame) -> bool {
    frame.3.windows(7).any(|window| window == b"SIP/2.0")
}

#[test]
fn a_short_snap_length_changes_no_figure() {
    let frames = frames("lossy duration=10s jitter=0..30");
    let whole = analyze(&write(&frames));
    // Every RTP packet is cut after 20 bytes; the messages are not.
    let mut cut = write(&[]);
    for frame in &frames {
        let one = write(std::slice::from_ref(frame));
        let mut record = one[24..].to_vec();
        if !is_sip(frame) {
            record.truncate(16 + 20 + 8 + 20);
            record[8..12].copy_from_slice(&48_u32.to_le_bytes());
        }
        cut.extend(record);
    }
    let cut = analyze(&cut);
    let json = |analysis: &Analysis| serde_json::to_value(analysis).unwrap();
    assert_eq!(json(&whole), json(&cut));
}

#[test]
fn a_caller_behind_nat_is_still_the_caller() {
    let (said, real) = ("192.0.2.10:4000".parse().unwrap(), "192.0.2.99:31000".parse().unwrap());
    let mut frames = frames("clean duration=10s");
    for frame in &mut frames {
        if frame.1 == said {
            frame.1 = real;
        }
        if frame.2 == said {
            frame.2 = real;
        }
    }
    let analysis = analyze(&write(&frames));
    let call = &analysis.calls[0];
    assert_eq!((call.media_verdict, call.loss_pct.map(|loss| loss.0)), (Some("ok"), Some(0)));
    let directions: Vec<_> = analysis.streams.iter().map(|stream| stream.direction).collect();
    assert_eq!(directions, [Some("from_caller"), Some("to_caller")]);
}

#[test]
fn ports_that_are_used_again_belong_to_the_call_that_uses_them() {
    let mut first = frames("clean duration=5s");
    let mut second = frames("lossy duration=5s seed=4");
    for frame in &mut second {
        frame.0 = frame.0 + 6_000_000;
    }
    first.append(&mut second);
    let analysis = analyze(&write(&first));
    let seen: Vec<_> =
        analysis.calls.iter().map(|call| (call.media_verdict, call.billsec, call.streams.clone())).collect();
    assert_eq!(seen, [(Some("ok"), 5, vec![0, 1]), (Some("lossy_inbound"), 5, vec![0, 1])]);
}

#[test]
fn without_its_sip_a_stream_is_judged_by_itself() {
    let cases = [
        ("lossy duration=20s", Some("lossy_inbound")),
        // No SDP states which packet duration was required, or that audio should have continued.
        ("wrong-ptime duration=20s", Some("ok")),
        ("degraded", Some("ok")),
        ("unpaced duration=20s", Some("unpaced_sender")),
        ("ptime-payload duration=20s", Some("ptime_mismatch")),
        ("unanswered", Some("ok")),
    ];
    for (text, expected) in cases {
        let mut frames = frames(text);
        frames.retain(|frame| !is_sip(frame) && frame.2.port() == 20_000);
        let analysis = analyze(&write(&frames));
        assert!(analysis.calls.is_empty(), "{text}");
        let seen: Vec<_> = analysis.streams.iter().map(|stream| (stream.verdict, stream.direction)).collect();
        assert_eq!(seen, [(expected, None)], "{text}");
    }
}

#[test]
fn a_capture_that_begins_or_ends_within_a_call() {
    let frames = frames("clean duration=10s");
    let whole = frames.len();
    let begun_late = analyze(&write(&frames[whole / 2..]));
    assert!(begun_late.calls.is_empty(), "its INVITE was not captured");
    assert_eq!(begun_late.streams.len(), 2);
    let ended_early = analyze(&write(&frames[..whole / 2]));
    let call = &ended_early.calls[0];
    assert_eq!((call.ended_at, call.hangup_cause.is_none(), call.billsec), (None, true, 4));
    assert_eq!(call.media_verdict, Some("ok"));
}

/// The clock of the capturing host is set back during a call: the packets are still in the order in which they came.
/// The step itself looks like five seconds of audio that came too early, as in the reference model.
#[test]
fn a_clock_that_is_set_back_moves_no_packet() {
    let mut frames = frames("clean duration=30s");
    let half = frames.len() / 2;
    for frame in &mut frames[half..] {
        frame.0 = frame.0 + -5_000_000;
    }
    let analysis = analyze(&write(&frames));
    let (call, streams) = (&analysis.calls[0], &analysis.streams);
    assert!(analysis.times.are_sound());
    assert_eq!((streams.len(), call.loss_pct.map(|loss| loss.0)), (2, Some(0)));
    let evidence = call.evidence.as_ref().map(|evidence| (evidence.0.reason, evidence.0.rule));
    assert_eq!(evidence, Some(("quality", Some(Verdict::DegradedAudio))));
}

#[test]
fn a_message_of_another_hop_is_not_the_callers() {
    let mut frames = frames("clean duration=5s");
    // The proxy tries a second branch, which refuses; the caller does not receive that.
    let (proxy, branch) = ("192.0.2.20:5060".parse().unwrap(), "192.0.2.30:5060".parse().unwrap());
    let invite = frames[0].clone();
    let text = String::from_utf8(invite.3).unwrap();
    let call_id = text.lines().find(|line| line.starts_with("Call-ID")).unwrap().to_owned();
    let from = text.lines().find(|line| line.starts_with("From")).unwrap().to_owned();
    let refusal = format!(
        "SIP/2.0 486 Busy Here\r\nVia: SIP/2.0/UDP 192.0.2.20;branch=z9hG4bKx\r\n{from}\r\n\
         To: <sip:2000@192.0.2.20>;tag=other\r\n{call_id}\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n"
    );
    frames.insert(2, (invite.0 + 20_000, proxy, branch, text.into_bytes()));
    frames.insert(3, (invite.0 + 30_000, branch, proxy, refusal.into_bytes()));
    let analysis = analyze(&write(&frames));
    assert_eq!(analysis.calls.len(), 1);
    assert_eq!((analysis.calls[0].sip_status, analysis.calls[0].billsec), (Some(200), 5));
}

/// Replaces the messages of a composed call; `sdp` makes a body for a port and a direction.
fn with_messages(media: &[Frame], messages: &[Line<'_>]) -> Analysis {
    analyze(&write(&with_messages_among(media, messages)))
}

/// The frames of such a call.
fn with_messages_among(media: &[Frame], messages: &[Line<'_>]) -> Vec<Frame> {
    let (caller, switch) = ("192.0.2.10:5060".parse().unwrap(), "192.0.2.20:5060".parse().unwrap());
    let start = media[0].0;
    let mut frames: Vec<Frame> = media.iter().filter(|frame| !is_sip(frame)).cloned().collect();
    for (at_ms, by_caller, line, number, method, sdp) in messages {
        // Requests carry their sender in From, and responses the sender of their request.
        let request = line.starts_with(method);
        let tags = if *by_caller == request { ("caller", "called") } else { ("called", "caller") };
        let to_tag = if *number == 1 && *by_caller && request { "" } else { ";tag=" };
        let to_tag = if to_tag.is_empty() { String::new() } else { format!("{to_tag}{}", tags.1) };
        let body = sdp.map_or_else(String::new, |(port, direction)| {
            let ip = if *by_caller { "192.0.2.10" } else { "192.0.2.20" };
            format!(
                "v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\n\
                 m=audio {port} RTP/AVP 0\r\na={direction}\r\n"
            )
        });
        let text = format!(
            "{line}\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK{number}\r\nFrom: <sip:a@b>;tag={}\r\n\
             To: <sip:c@d>{to_tag}\r\nCall-ID: one\r\nCSeq: {number} {method}\r\nMax-Forwards: 70\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
            tags.0,
            body.len()
        );
        let (from, to) = if *by_caller { (caller, switch) } else { (switch, caller) };
        frames.push((start + at_ms * 1_000, from, to, text.into_bytes()));
    }
    frames.sort_by_key(|frame| frame.0);
    frames
}

#[test]
fn offers_and_answers_in_every_order() {
    let media = frames("clean duration=20s");
    let (caller, called) = (Some((4_000, "sendrecv")), Some((20_000, "sendrecv")));
    let invite = "INVITE sip:c@d SIP/2.0";
    let bye = (20_300, true, "BYE sip:c@d SIP/2.0", 9, "BYE", None);
    let late_offer = [
        (0, true, invite, 1, "INVITE", None),
        (100, false, "SIP/2.0 200 OK", 1, "INVITE", called),
        (110, true, "ACK sip:c@d SIP/2.0", 1, "ACK", caller),
        bye,
    ];
    let early = [
        (0, true, invite, 1, "INVITE", caller),
        (50, false, "SIP/2.0 183 Session Progress", 1, "INVITE", called),
        (60, true, "PRACK sip:c@d SIP/2.0", 2, "PRACK", None),
        (100, false, "SIP/2.0 200 OK", 1, "INVITE", None),
        bye,
    ];
    // In two parts because a test searches for SQL outside the store.
    let update_line = ["UPDATE", "sip:c@d SIP/2.0"].join(" ");
    let update = [
        (0, true, invite, 1, "INVITE", caller),
        (100, false, "SIP/2.0 200 OK", 1, "INVITE", called),
        (9_000, true, update_line.as_str(), 2, "UPDATE", caller),
        (9_010, false, "SIP/2.0 200 OK", 2, "UPDATE", called),
        bye,
    ];
    // The called party's CSeq numbers are its own, and may equal the caller's.
    let called_party_asks = [
        (0, true, invite, 1, "INVITE", caller),
        (100, false, "SIP/2.0 200 OK", 1, "INVITE", called),
        (9_000, false, "INVITE sip:a@b SIP/2.0", 1, "INVITE", called),
        (9_010, true, "SIP/2.0 200 OK", 1, "INVITE", caller),
        bye,
    ];
    let refused = [
        (0, true, invite, 1, "INVITE", caller),
        (100, false, "SIP/2.0 200 OK", 1, "INVITE", called),
        (9_000, true, invite, 2, "INVITE", Some((4_444, "inactive"))),
        (9_010, false, "SIP/2.0 488 Not Acceptable Here", 2, "INVITE", None),
        bye,
    ];
    let cases = [
        ("late offer", &late_offer[..]),
        ("early answer", &early),
        ("update", &update),
        ("the called party asks", &called_party_asks),
        ("a refused change", &refused),
    ];
    for (name, messages) in cases {
        let analysis = with_messages(&media, messages);
        let call = &analysis.calls[0];
        assert_eq!((call.media_verdict, call.billsec), (Some("ok"), 20), "{name}: {:?}", call.evidence);
        assert_eq!(call.loss_pct.map(|loss| loss.0), Some(0), "{name}");
        let directions: Vec<_> = analysis.streams.iter().map(|stream| stream.direction).collect();
        assert_eq!(directions, [Some("from_caller"), Some("to_caller")], "{name}");
    }
}

/// spec/media.md §6, `unanswered`: T1 rings and is cancelled without any RTP; N1 is refused before it rings.
#[test]
fn a_call_that_rang_and_was_not_answered_is_unanswered() {
    let media = frames("clean duration=5s");
    let offer = Some((4_000, "sendrecv"));
    let invite = |offer| (0, true, "INVITE sip:c@d SIP/2.0", 1, "INVITE", offer);
    let ringing = (100, false, "SIP/2.0 180 Ringing", 1, "INVITE", None);
    let cancel = (8_000, true, "CANCEL sip:c@d SIP/2.0", 1, "CANCEL", None);
    let refusal = |line| (8_020, false, line, 1, "INVITE", None);
    let cancelled = [invite(offer), ringing, cancel, refusal("SIP/2.0 487 Request Terminated")];
    let busy = [invite(offer), ringing, refusal("SIP/2.0 486 Busy Here")];
    let forbidden = [invite(offer), refusal("SIP/2.0 403 Forbidden")];
    let no_port = [invite(Some((0, "sendrecv"))), ringing, refusal("SIP/2.0 486 Busy Here")];
    let no_offer = [invite(None), ringing, refusal("SIP/2.0 486 Busy Here")];
    let cases = [
        ("rings and is cancelled", &cancelled[..], Some("unanswered")),
        ("rings and is refused", &busy, Some("unanswered")),
        ("refused before it rings", &forbidden, None),
        ("a port of 0 in the offer", &no_port, None),
        ("no offer", &no_offer, None),
        ("the capture ends while it rings", &cancelled[..2], None),
    ];
    for (name, messages, verdict) in cases {
        for media in [&media[..1], &media] {
            let analysis = with_messages(media, messages);
            let call = &analysis.calls[0];
            assert_eq!((call.media_verdict, call.billsec), (verdict, 0), "{name}: {:?}", call.evidence);
            assert_eq!(call.media_verdict_worse, verdict, "{name}");
            assert!(call.quality().sentence.contains("not answered"), "{name}: {}", call.quality().sentence);
        }
    }
}

#[test]
fn two_directions_without_sip_are_one_call() {
    let mut frames = frames("clean duration=10s");
    frames.retain(|frame| !is_sip(frame));
    let analysis = analyze(&write(&frames));
    let mirrors: Vec<_> = analysis.streams.iter().map(|stream| (stream.direction, stream.mirror)).collect();
    assert_eq!(mirrors, [(None, Some(1)), (None, Some(0))]);
    let json = serde_json::to_value(&analysis).unwrap();
    assert_eq!((&json["streams"][0]["mirror"], &json["calls"]), (&1.into(), &serde_json::json!([])));
    frames.retain(|frame| frame.2.port() == 20_000);
    assert_eq!(analyze(&write(&frames)).streams[0].mirror, None);
}

#[test]
fn what_another_protocol_announces_is_a_stream_from_its_first_packet() {
    let all = frames("clean duration=10s");
    let (gateway, agent) = ("192.0.2.20:2427".parse().unwrap(), "192.0.2.30:2427".parse().unwrap());
    // A beep of five packets, too short for a stream that no SDP announced.
    let beep: Vec<Frame> =
        all.iter().filter(|frame| !is_sip(frame) && frame.2.port() == 20_000).take(5).cloned().collect();
    assert!(analyze(&write(&beep)).streams.is_empty());
    let to = beep[0].2;
    let answer = format!(
        "200 1203 OK\r\nI: FDE234C8\r\n\r\nv=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\n\
         m=audio {port} RTP/AVP 0\r\n",
        ip = to.ip(),
        port = to.port()
    );
    let mut announced = beep.clone();
    announced.insert(0, (beep[0].0 + -10_000, gateway, agent, answer.clone().into_bytes()));
    let analysis = analyze(&write(&announced));
    assert!(analysis.calls.is_empty());
    let seen: Vec<_> = analysis
        .streams
        .iter()
        .map(|stream| (stream.packets, stream.codec.as_deref(), stream.direction))
        .collect();
    assert_eq!(seen, [(5, Some("PCMU"), None)]);
    // Once SIP has announced it, it belongs to the call.
    let mut both = all.clone();
    let place = both.iter().position(|frame| !is_sip(frame)).unwrap();
    both.insert(place, (both[place].0, gateway, agent, answer.into_bytes()));
    let figures = |analysis: &Analysis| serde_json::to_value((&analysis.calls, &analysis.streams)).unwrap();
    assert_eq!(figures(&analyze(&write(&both))), figures(&analyze(&write(&all))));
}

/// A capture filter for ports passes the first fragment of a long message, and none of the others.
#[test]
fn messages_are_read_from_their_first_fragments_where_the_others_are_missing() {
    let frames = frames("clean duration=5s");
    let whole = write(&frames);
    let mut cut = whole[..24].to_vec();
    for record in Records::new(&whole) {
        let record = record.unwrap();
        // IP, UDP and 488 bytes of payload, for the two messages that are longer.
        let is_long = record.frame.len() > 516;
        let mut frame = record.frame.to_vec();
        if is_long {
            frame.truncate(516);
            frame[2..4].copy_from_slice(&516_u16.to_be_bytes());
            frame[6] = 0x20;
        }
        let (seconds, micros) = ((record.at.0 / 1_000_000) as u32, (record.at.0 % 1_000_000) as u32);
        for number in [seconds, micros, frame.len() as u32, record.wire_len] {
            cut.extend(number.to_le_bytes());
        }
        cut.extend(frame);
    }
    let (whole, cut) = (analyze(&whole), analyze(&cut));
    assert!(cut.skipped.fragments > 0);
    let call = |analysis: &Analysis| {
        let call = &analysis.calls[0];
        (call.from.clone(), call.to.clone(), call.started_at, call.answered_at, call.billsec, call.sip_status)
    };
    assert_eq!((cut.calls.len(), call(&cut)), (1, call(&whole)));
}

/// Signalling on other ports, over IPv6, in compact form (RFC 3261 §7.3.3), with names in any script.
#[test]
fn signalling_in_other_clothes_is_the_same_call() {
    let all = frames("lossy duration=5s");
    let expected = analyze(&write(&all));
    let compact = [("Via", "v"), ("From", "f"), ("To", "t"), ("Call-ID", "i"), ("Contact", "m")];
    let types = [("Content-Type", "c"), ("Content-Length", "l")];
    let rewritten = |change: &dyn Fn(&mut Frame)| {
        let mut frames = all.clone();
        frames.iter_mut().filter(|frame| is_sip(frame)).for_each(change);
        analyze(&write(&frames))
    };
    let in_compact_form = rewritten(&|frame| {
        let mut text = String::from_utf8(frame.3.clone()).unwrap();
        for (long, short) in compact.into_iter().chain(types) {
            text = text.replace(&format!("\r\n{long}:"), &format!("\r\n{short} :"));
        }
        assert!(text.contains("\r\nf :") && text.contains("\r\nl :"), "{text}");
        frame.3 = text.into_bytes();
    });
    let with_names = rewritten(&|frame| {
        let text = String::from_utf8(frame.3.clone()).unwrap();
        let text = text.replace("\"Caller\"", "\"Žofie Дмитрий 山田\"");
        assert!(text.contains("Žofie"), "{text}");
        frame.3 = text.into_bytes();
    });
    let elsewhere = rewritten(&|frame| {
        for end in [&mut frame.1, &mut frame.2] {
            let ip = end.ip().to_string();
            let last = ip.rsplit('.').next().unwrap().to_owned();
            *end = format!("[2001:db8::{last}]:47{last}").parse().unwrap();
        }
    });
    let figures = |analysis: &Analysis| {
        let mut figures = serde_json::to_value((&analysis.calls, &analysis.streams)).unwrap();
        // The source of the signalling is part of the evidence, and it differs here.
        figures[0][0]["evidence"]["signalling"] = "somewhere".into();
        figures[0][0]["addresses"]["signalling"] = "somewhere".into();
        figures[0][0]["callee"]["addresses"]["signalling"] = "somewhere".into();
        figures
    };
    for (name, analysis) in [("compact", &in_compact_form), ("names", &with_names), ("elsewhere", &elsewhere)]
    {
        assert_eq!(figures(analysis), figures(&expected), "{name}");
    }
}

/// Media that a filter drops is no fault of a call; media that only one of two calls lacks is evidence.
#[test]
fn audio_is_missed_where_the_capture_holds_any() {
    let silent = frames("clean duration=5s packets=0 returned=no");
    let alone = analyze(&write(&silent));
    let call = &alone.calls[0];
    assert_eq!((call.media_verdict, call.quality().blame), (None, None));
    assert_eq!(call.quality().sentence, "There is no audio in this capture, so none is judged.");
    assert!(call.quality().rules.is_empty(), "nothing was compared");
    let mut both = silent;
    for frame in &mut both {
        frame.0 = frame.0 + 10_000_000;
    }
    both.splice(0..0, frames("clean duration=5s seed=4"));
    let judged = analyze(&write(&both));
    let verdicts: Vec<_> = judged.calls.iter().map(|call| call.media_verdict).collect();
    assert_eq!(verdicts, [Some("ok"), Some("no_inbound_media")]);
}

/// In a capture no address is the switch's own, so no advertised address of the switch can be wrong.
#[test]
fn a_captured_party_that_was_told_a_private_address_is_not_our_fault() {
    let mut frames = frames("clean duration=5s packets=0");
    let public: SocketAddr = "198.51.100.7:5060".parse().unwrap();
    for frame in &mut frames {
        if is_sip(frame) {
            let text = String::from_utf8(frame.3.clone()).unwrap();
            let text = text.replace("c=IN IP4 192.0.2.20", "c=IN IP4 10.0.0.5");
            frame.3 = text.replace("c=IN IP4 192.0.2.10", "c=IN IP4 198.51.100.7").into_bytes();
        }
        for end in [&mut frame.1, &mut frame.2] {
            if end.ip() == std::net::IpAddr::from([192, 0, 2, 10]) {
                end.set_ip(public.ip());
            }
        }
    }
    let call = &analyze(&write(&frames)).calls[0];
    let quality = call.quality();
    assert_eq!(call.media_verdict, Some("no_inbound_media"), "{}", quality.sentence);
    assert!(!quality.sentence.contains("Our switch"), "{}", quality.sentence);
}
