//! The trace of a leg on real sockets gives the report of the leg.

use std::sync::{Arc, Mutex};

use sidetone_media::net::{Command, Port, Relay};
use sidetone_media::session::Report;
use sidetone_media::trace::{Replay, TraceHead, TraceSink};

use super::{Phone, V4, bridge, close, describe, description, receive, receiver_report, snapshot, start};

/// A file in memory with space for a number of pieces.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) bytes: Mutex<Vec<u8>>,
    room: Mutex<usize>,
}

impl Memory {
    pub(super) fn with_room(pieces: usize) -> Arc<Memory> {
        Arc::new(Memory { bytes: Mutex::default(), room: Mutex::new(pieces) })
    }
}

impl TraceSink for Memory {
    fn append(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let mut room = self.room.lock().unwrap();
        *room = room.checked_sub(1)?;
        self.bytes.lock().unwrap().extend(bytes);
        Some(Vec::new())
    }

    fn name(&self) -> &str {
        "memory"
    }
}

fn traced_call(relay: &Relay, phones: [&Phone; 2], sinks: [&Arc<Memory>; 2]) -> [Port; 2] {
    let ports = [relay.open(3, V4).unwrap(), relay.open(3, V4).unwrap()];
    for ((port, sink), leg) in ports.iter().zip(sinks).zip(["a", "b"]) {
        let head = TraceHead { leg: leg.to_owned(), ..TraceHead::default() };
        let trace = Command::Trace { head: Box::new(head), sink: sink.clone() };
        relay.command(port.id, trace).unwrap();
    }
    for (port, phone) in ports.iter().zip(phones) {
        describe(relay, *port, description(phone));
    }
    bridge(relay, ports[0], ports[1]);
    bridge(relay, ports[1], ports[0]);
    for port in &ports {
        relay.command(port.id, Command::Answered).unwrap();
        // Until all commands have run, a packet would wait here.
        snapshot(relay, port.id);
    }
    ports
}

#[test]
fn a_trace_of_real_packets_gives_the_same_report() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(0xaaaa), Phone::new(0xbbbb));
    let stranger = Phone::new(0xcccc);
    let sinks = [Memory::with_room(usize::MAX), Memory::with_room(usize::MAX)];
    let [one, other] = traced_call(&relay, [&caller, &callee], [&sinks[0], &sinks[1]]);
    for n in 0..1_200_u16 {
        if n % 100 == 7 {
            caller.seq += 3;
        }
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp));
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive(), (packet, one.rtp));
        if n % 300 == 0 {
            stranger.rtp.send_to(b"\x00STUN?", one.rtp).unwrap();
            let report = receiver_report(0xaaaa);
            caller.rtcp.send_to(&report, one.rtcp).unwrap();
            assert_eq!(receive(&callee.rtcp), (report, other.rtcp));
        }
    }
    for ((port, sink), leg) in [one, other].into_iter().zip(&sinks).zip(["a", "b"]) {
        let mut live = *close(&relay, port.id);
        let trace = live.trace.take().unwrap();
        let file = sink.bytes.lock().unwrap();
        assert_eq!((trace.name.as_str(), trace.bytes, trace.missing), ("memory", file.len() as u64, 0));
        let mut replay = Replay::new();
        let used = replay.feed(&file).unwrap();
        let replayed = replay.finish(file.len() - used).unwrap();
        assert!(replayed.head.zero_us > 1_600_000_000_000_000, "{}", replayed.head.zero_us);
        assert_eq!((replayed.head.leg.as_str(), replayed.missing, replayed.closed), (leg, Some(0), true));
        assert_eq!(replayed.report, live);
        assert_eq!(live.figures.received, 1_200);
        assert!(file.len() < 1_200 * 10, "{} bytes of 1,200 packets each way", file.len());
    }
}

#[test]
fn a_sink_without_room_costs_the_trace_and_no_packet() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(0xaaaa), Phone::new(0xbbbb));
    let sinks = [Memory::with_room(2), Memory::with_room(0)];
    let [one, other] = traced_call(&relay, [&caller, &callee], [&sinks[0], &sinks[1]]);
    for _ in 0..3_000 {
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp));
    }
    *sinks[0].room.lock().unwrap() = 1;
    let report: Report = *close(&relay, one.id);
    assert_eq!((report.figures.received, report.figures.lost), (3_000, 0));
    let missing = report.trace.unwrap().missing;
    assert!(missing > 0);
    let file = sinks[0].bytes.lock().unwrap();
    let mut replay = Replay::new();
    let used = replay.feed(&file).unwrap();
    let replayed = replay.finish(file.len() - used).unwrap();
    assert_eq!((replayed.missing, replayed.closed), (Some(missing), false), "it says that it is not whole");
    assert!(replayed.report.figures.received > 100);
    assert!(close(&relay, other.id).trace.unwrap().missing > 3_000);
    assert!(sinks[1].bytes.lock().unwrap().is_empty());
}
