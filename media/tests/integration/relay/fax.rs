//! UDPTL in place of RTP: relayed unchanged, by the same rules for sources, and counted apart from the audio.

use std::sync::Arc;

use sidetone_media::net::Command;
use sidetone_media::session::{Description, FaxCounters, StrictSource};
use sidetone_media::trace::{Replay, TraceHead};

use super::traced::Memory;
use super::{Phone, call, close, describe, description, receiver_report, snapshot, start};

/// A datagram with one octet of a primary packet and no redundancy.
fn udptl(sequence: u16) -> Vec<u8> {
    let [high, low] = sequence.to_be_bytes();
    vec![high, low, 1, 0x5a, 0, 0]
}

fn fax(phone: &Phone) -> Description {
    Description { udptl: true, payloads: Vec::new(), remote_rtcp: None, ..description(phone) }
}

#[test]
fn a_fax_is_relayed_unchanged_and_is_no_audio() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(0xaaaa), Phone::new(0xbbbb));
    let (one, other) = call(&relay, 7, &caller, &callee);
    for _ in 0..60 {
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp));
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive(), (packet, one.rtp));
    }
    describe(&relay, one, fax(&caller));
    describe(&relay, other, fax(&callee));
    relay.command(one.id, Command::Tone).unwrap();
    snapshot(&relay, other.id);
    // Datagrams whose first octets look like RTP, RTCP or STUN pass too; three numbers are missing.
    for sequence in [0, 1, 5, 0x4000, 0x8000, 0x80c8] {
        let datagram = udptl(sequence);
        caller.rtp.send_to(&datagram, one.rtp).unwrap();
        assert_eq!(callee.receive(), (datagram.clone(), other.rtp));
        callee.rtp.send_to(&datagram, other.rtp).unwrap();
        assert_eq!(caller.receive(), (datagram, one.rtp));
    }
    caller.rtcp.send_to(&receiver_report(0xaaaa), one.rtcp).unwrap();
    caller.rtp.send_to(&[0, 9], one.rtp).unwrap();
    for port in [one, other] {
        describe(&relay, port, description(if port == one { &caller } else { &callee }));
    }
    snapshot(&relay, other.id);
    for _ in 0..60 {
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp));
        let packet = callee.send(other.rtp);
        let (heard, from) = caller.receive();
        // The beep that was ordered during the fax is in the audio after it.
        assert_eq!((&heard[..12], from), (&packet[..12], one.rtp));
    }
    let report = close(&relay, one.id);
    // The jump of 199 numbers counts as missing; jumps of thousands count as another fax.
    assert_eq!(report.fax, Some(FaxCounters { received: 6, sent: 6, missing: 3 + 199 }));
    assert_eq!((report.figures.received, report.figures.lost), (120, 0));
    assert_eq!((report.counters.sent, report.counters.malformed), (120, 1));
    assert_eq!(report.codec.as_deref(), Some("PCMU"));
    let report = close(&relay, other.id);
    assert_eq!((report.figures.received, report.figures.lost, report.counters.sent), (120, 0, 120));
}

/// A source that SDP does not name is proven by four consecutive numbers; packets of a stranger are not relayed.
#[test]
fn a_fax_is_taken_from_its_party_alone() {
    let relay = start();
    let (caller, callee) = (Phone::new(1), Phone::new(2));
    let (moved, stranger) = (Phone::new(3), Phone::new(4));
    let (one, other) = call(&relay, 7, &caller, &callee);
    describe(&relay, one, Description { strict_source: Some(StrictSource::Sdp), ..fax(&caller) });
    describe(&relay, other, fax(&callee));
    snapshot(&relay, other.id);
    for sequence in 0..8 {
        stranger.rtp.send_to(&udptl(sequence), one.rtp).unwrap();
    }
    caller.rtp.send_to(&udptl(900), one.rtp).unwrap();
    assert_eq!(callee.receive().0, udptl(900), "nothing of the stranger came before");
    // The callee is behind a NAT, and its datagrams come from another port.
    for sequence in 0..4 {
        moved.rtp.send_to(&udptl(sequence), other.rtp).unwrap();
    }
    assert_eq!(caller.receive().0, udptl(3));
    caller.rtp.send_to(&udptl(901), one.rtp).unwrap();
    assert_eq!(moved.receive().0, udptl(901), "symmetric, as RTP");
    let report = close(&relay, one.id);
    assert_eq!((report.fax.unwrap().received, report.counters.rejected_source), (2, 8));
    assert_eq!(report.verdict, None, "nothing but a fax: {:?}", report.evidence);
    assert!(close(&relay, other.id).latched);
}

#[test]
fn a_trace_of_a_fax_gives_the_same_report() {
    let relay = start();
    let (mut caller, callee, stranger) = (Phone::new(1), Phone::new(2), Phone::new(3));
    let sink = Memory::with_room(usize::MAX);
    let one = relay.open(1, caller.addr().ip()).unwrap();
    let other = relay.open(1, callee.addr().ip()).unwrap();
    let head = TraceHead { leg: "a".to_owned(), ..TraceHead::default() };
    relay.command(one.id, Command::Trace { head: Box::new(head), sink: Arc::clone(&sink) as _ }).unwrap();
    describe(&relay, one, description(&caller));
    describe(&relay, other, description(&callee));
    super::bridge(&relay, one, other);
    relay.command(one.id, Command::Answered).unwrap();
    snapshot(&relay, one.id);
    snapshot(&relay, other.id);
    for _ in 0..60 {
        caller.send(one.rtp);
        callee.receive();
    }
    describe(&relay, one, fax(&caller));
    describe(&relay, other, fax(&callee));
    snapshot(&relay, one.id);
    snapshot(&relay, other.id);
    for sequence in [0, 1, 4, 5] {
        caller.rtp.send_to(&udptl(sequence), one.rtp).unwrap();
        callee.receive();
        callee.rtp.send_to(&udptl(sequence), other.rtp).unwrap();
        caller.receive();
        stranger.rtp.send_to(&udptl(sequence), one.rtp).unwrap();
        caller.rtp.send_to(b"\x00\x00", one.rtp).unwrap();
    }
    let mut live = *close(&relay, one.id);
    let trace = live.trace.take().unwrap();
    let file = sink.bytes.lock().unwrap();
    assert_eq!(trace.missing, 0);
    let mut replay = Replay::new();
    let used = replay.feed(&file).unwrap();
    let replayed = replay.finish(file.len() - used).unwrap();
    assert_eq!(live.fax.unwrap().received, 4);
    assert_eq!((live.counters.malformed, live.counters.rejected_source), (4, 4));
    assert_eq!(replayed.report, live);
}
