//! Calls as captures show them from elsewhere: cut, behind NAT, one after the other, or without their SIP.

use std::net::SocketAddr;

use sidetone_media::pcap::{Content, Datagram, LinkType, Records, Writer, dissect};
use sidetone_media::time::Micros;

use super::{Analysis, compose, read};

type Frame = (Micros, SocketAddr, SocketAddr, Vec<u8>);

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
    // Every RTP packet is cut behind 20 bytes; the messages stay.
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
        // Nobody said what the packet duration should be, or that audio should have gone on.
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

#[test]
fn a_message_of_another_hop_is_not_the_callers() {
    let mut frames = frames("clean duration=5s");
    // The proxy tries a second branch, which refuses; the caller never hears of it.
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
