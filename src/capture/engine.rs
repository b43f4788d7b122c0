//! The analysis machine: frames in, calls and streams out.
//!
//! A UDP payload is SIP when it begins with a SIP start line, and RTP when signalling announced its
//! destination or when it proves itself (see [`super::probation`]). Ports mean nothing here.

use std::net::SocketAddr;
use std::sync::Arc;

use sidetone_media::pcap::{Content, Datagram, Record, dissect};
use sidetone_media::rtp::Packet;
use sidetone_media::time::Micros;

use super::calls::Calls;
use super::flows::{Binding, Flows};
use super::payloads::{self, Meanings};
use super::probation::{CONTINUED_ANNOUNCED, CONTINUED_UNANNOUNCED, Waiting, is_known_type};
use super::report::{Analysis, Ptime, Shared, Skipped, StreamReport, decimal, verdict};
use super::stream::{Finished, Stream};

/// Takes the frames of one capture in order.
///
/// *Bounds*: a million flows, a hundred thousand streams and as many calls are kept; what is beyond is counted.
#[derive(Debug)]
pub struct Engine {
    packets: u64,
    bytes: u64,
    skipped: Skipped,
    flows: Flows,
    streams: Vec<Stream>,
    calls: Calls,
    /// What payload types mean where nobody announced them.
    unannounced: Meanings,
    /// A datagram under reconstruction.
    scratch: Vec<u8>,
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new()
    }
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new() -> Self {
        Engine {
            packets: 0,
            bytes: 0,
            skipped: Skipped::default(),
            flows: Flows::new(),
            streams: Vec::new(),
            calls: Calls::new(),
            unannounced: payloads::meanings(None),
            scratch: Vec::new(),
        }
    }

    /// Takes one frame.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) {
        self.packets += 1;
        self.bytes += u64::from(record.wire_len);
        match dissect(record.link, record.frame) {
            Content::Udp(datagram) | Content::Head(datagram) => self.datagram(record.at, &datagram),
            Content::Other | Content::Tcp(_) => {}
            Content::NotIp => self.skipped.not_ip += 1,
            Content::Fragment => self.skipped.fragments += 1,
            Content::Truncated => self.skipped.truncated += 1,
        }
    }

    /// Frames taken so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Closes every call and stream and judges them.
    pub fn finish(mut self, file: &str) -> Analysis {
        self.calls.close_all();
        let mut streams = Vec::new();
        let mut places: Vec<(u32, usize)> = Vec::new();
        for stream in self.streams {
            let bindings = stream.bindings.clone();
            let ends = (stream.source, stream.destination, stream.ssrc);
            let ptime_ms = bindings.last().map_or((None, None), |binding| self.calls.ptime_ms(*binding));
            if let Some(finished) = stream.finish(ptime_ms) {
                places.extend(bindings.iter().map(|binding| (binding.call, streams.len())));
                streams.push(stream_report(ends, bindings.last().copied(), finished));
            }
        }
        Analysis {
            file: file.to_owned(),
            packets: self.packets,
            bytes: self.bytes,
            skipped: self.skipped,
            calls: self.calls.reports(&places),
            streams,
        }
    }

    #[inline]
    fn datagram(&mut self, at: Micros, datagram: &Datagram<'_>) {
        match datagram.payload {
            // Version 2, and no payload type that collides with RTCP (RFC 5761 §4).
            [0x80..=0xbf, second, ..] if !(192..=223).contains(second) => self.rtp(at, datagram),
            [first, ..] if first.is_ascii_uppercase() && is_sip(datagram.payload) => {
                let whole = if datagram.payload.len() == datagram.payload_len {
                    datagram.payload
                } else {
                    pad_lines(datagram, &mut self.scratch)
                };
                match self.calls.message(at, datagram.source, datagram.destination, whole) {
                    Ok(()) => {}
                    Err(super::calls::Refused::Malformed) => self.skipped.malformed_sip += 1,
                    Err(super::calls::Refused::OverLimit) => self.skipped.over_limit += 1,
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn rtp(&mut self, at: Micros, datagram: &Datagram<'_>) {
        let parsed = if datagram.payload.len() == datagram.payload_len {
            Packet::parse(datagram.payload)
        } else {
            Packet::parse(pad(datagram, &mut self.scratch))
        };
        let Ok(packet) = parsed else { return };
        let Some(flow) = self.flows.find(datagram.source, datagram.destination) else {
            self.skipped.over_limit += 1;
            return;
        };
        if flow.generation != self.calls.generation() {
            flow.generation = self.calls.generation();
            let binding = self.calls.binding(datagram.source, datagram.destination);
            flow.binding = binding.or(flow.binding);
        }
        let (binding, generation) = (flow.binding, flow.generation);
        let found = match flow.streams.first() {
            Some((first, number)) if *first == packet.ssrc => Some(*number),
            _ => flow.streams.iter().position(|(known, _)| *known == packet.ssrc).and_then(|place| {
                flow.streams.swap(0, place);
                flow.streams.first().map(|(_, number)| *number)
            }),
        };
        match found.and_then(|number| self.streams.get_mut(number as usize)) {
            Some(stream) => {
                if stream.generation != generation {
                    stream.generation = generation;
                    if let Some(binding) = binding {
                        let payloads = self.calls.payloads(datagram.source, datagram.destination);
                        stream.bind(at, binding, payloads);
                    }
                }
                stream.receive(at, &packet);
            }
            None => self.unknown_ssrc(at, datagram, packet),
        }
        if let Some(binding) = binding {
            self.calls.packet(at, binding, datagram.source, datagram.destination, &packet);
        }
    }

    /// A packet of an SSRC that is no stream of its flow yet.
    #[cold]
    fn unknown_ssrc(&mut self, at: Micros, datagram: &Datagram<'_>, packet: Packet) {
        let (source, destination) = (datagram.source, datagram.destination);
        let Some(flow) = self.flows.find(source, destination) else { return };
        let binding = flow.binding;
        if binding.is_none() && !is_known_type(packet.payload_type) {
            return;
        }
        if flow.streams.len() >= STREAMS_PER_FLOW_MAX || self.streams.len() >= STREAMS_MAX {
            self.skipped.over_limit += 1;
            return;
        }
        // What signalling announced is RTP from its first packet on; only other SSRCs must prove themselves.
        let waiting = if binding.is_some() && flow.streams.is_empty() {
            let mut waiting = flow.probation.release(packet.ssrc);
            waiting.push(Waiting { at, packet });
            waiting
        } else {
            let needed = if binding.is_some() { CONTINUED_ANNOUNCED } else { CONTINUED_UNANNOUNCED };
            match flow.probation.examine(at, packet, needed) {
                Some(waiting) => waiting,
                None => return,
            }
        };
        flow.streams.insert(0, (packet.ssrc, self.streams.len() as u32));
        let begin = waiting.first().map_or(at, |first| first.at);
        let payloads = binding
            .and_then(|_| self.calls.payloads(source, destination))
            .unwrap_or_else(|| Arc::clone(&self.unannounced));
        let mut stream = Stream::new(begin, (source, destination), packet.ssrc, payloads, binding);
        stream.generation = flow.generation;
        for Waiting { at, packet } in &waiting {
            stream.receive(*at, packet);
        }
        self.streams.push(stream);
    }
}

/// Brings a datagram that the snap length has cut back to its length on the wire.
#[cold]
fn pad<'a>(datagram: &Datagram<'_>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    scratch.extend_from_slice(datagram.payload);
    // The length came from a 16-bit field or from the frame itself.
    scratch.resize(datagram.payload_len.min(PAYLOAD_LEN_MAX).max(datagram.payload.len()), 0);
    // The padding's own length was cut off with it.
    if let Some(first) = scratch.first_mut() {
        *first &= !0x20;
    }
    scratch
}

/// Brings a text message that was cut off, by the snap length or by fragmentation, back to its length with
/// empty lines; its last line is dropped, because half an address is a wrong one.
#[cold]
fn pad_lines<'a>(datagram: &Datagram<'_>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    let kept = datagram.payload.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    scratch.clear();
    scratch.extend_from_slice(datagram.payload.get(..kept).unwrap_or_default());
    scratch.resize(datagram.payload_len.min(PAYLOAD_LEN_MAX).max(kept), b'\n');
    scratch
}

/// Whether a payload begins with a SIP request line or status line (RFC 3261 §7.1, §7.2).
fn is_sip(payload: &[u8]) -> bool {
    if payload.starts_with(b"SIP/2.0 ") {
        return true;
    }
    let line = payload.iter().take(START_LINE_LEN_MAX).position(|byte| matches!(byte, b'\r' | b'\n'));
    line.and_then(|len| payload.get(..len)).is_some_and(|line| line.ends_with(b" SIP/2.0"))
}

fn stream_report(
    (source, destination, ssrc): (SocketAddr, SocketAddr, u32),
    binding: Option<Binding>,
    finished: Finished,
) -> StreamReport {
    let figures = &finished.report.figures;
    let shared = Shared::new(figures);
    StreamReport {
        src: source.to_string(),
        dst: destination.to_string(),
        ssrc: format!("0x{ssrc:08x}"),
        payload_types: finished.report.payload_types.clone(),
        codec: finished.codec,
        clock_rate: finished.clock_hz,
        packets: finished.packets,
        expected: figures.expected,
        lost: figures.lost,
        loss_pct: shared.loss_pct,
        duplicates: figures.duplicates,
        reordered: figures.reordered,
        jitter_ms: shared.jitter_ms,
        jitter_mean_ms: figures.jitter_mean_ms.map(decimal),
        mean_interval_ms: shared.mean_interval_ms,
        max_gap_ms: figures.max_gap_ms.map(decimal),
        ptime_ms: figures.ptime_ms.map(|ms| Ptime(decimal(ms))),
        quality_pct: shared.quality_pct,
        mos: shared.mos,
        verdict: verdict(&finished.report),
        direction: binding.map(|binding| if binding.from_caller { "from_caller" } else { "to_caller" }),
        evidence: finished.report.evidence,
    }
}

/// Streams of one flow; beyond them new SSRCs are noise.
const STREAMS_PER_FLOW_MAX: usize = 256;
/// Streams of one capture.
const STREAMS_MAX: usize = 100_000;
/// The largest UDP payload.
const PAYLOAD_LEN_MAX: usize = 65_535;
/// The longest SIP start line that is recognised.
const START_LINE_LEN_MAX: usize = 1_024;
