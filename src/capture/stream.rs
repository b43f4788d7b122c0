//! One RTP stream: the packets of one SSRC from one source to one destination, judged as a leg of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use sidetone_media::rtp::{Packet, PayloadKind};
use sidetone_media::session::{Description, Payload, Report, Session, SessionConfig};
use sidetone_media::time::Micros;

use super::flows::Binding;
use super::payloads::Meanings;

/// A stream under measurement.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) ssrc: u32,
    /// The calls that announced it, the current one last; empty when nobody ever did.
    pub(super) bindings: Vec<Binding>,
    /// State of the endpoint table when the last binding was looked up.
    pub(super) generation: u32,
    packets: u64,
    last: Micros,
    session: Session,
    payloads: Meanings,
}

/// What a stream has come to.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) packets: u64,
    pub(super) report: Report,
    pub(super) codec: Option<String>,
    pub(super) clock_hz: Option<u32>,
}

impl Stream {
    /// A stream that begins now.
    pub(super) fn new(
        at: Micros,
        (source, destination): (SocketAddr, SocketAddr),
        ssrc: u32,
        payloads: Meanings,
        binding: Option<Binding>,
    ) -> Self {
        let config = SessionConfig { symmetric: false, ..SessionConfig::default() };
        let mut stream = Stream {
            source,
            destination,
            ssrc,
            bindings: Vec::from_iter(binding),
            generation: 0,
            packets: 0,
            last: at,
            session: Session::new(config),
            payloads,
        };
        stream.session.describe(at, stream.description((None, None)));
        stream.session.answer(at);
        stream
    }

    /// A stream is judged as an answered caller's leg: its own source alone is accepted, and nothing is
    /// expected in return.
    fn description(&self, (ptime_ms, own_ptime_ms): (Option<u32>, Option<u32>)) -> Description {
        Description {
            remote: Some(self.source),
            receive: true,
            payloads: self.payloads.to_vec(),
            ptime_ms,
            own_ptime_ms,
            signalling: Some(self.source.ip()),
            ..Description::default()
        }
    }

    /// Takes one packet of the stream.
    #[inline]
    pub(super) fn receive(&mut self, at: Micros, packet: &Packet) {
        self.packets += 1;
        self.last = self.last.max(at);
        self.session.receive_packet(at, self.source, packet);
    }

    /// Signalling announces the stream, or says anew what it carries.
    pub(super) fn bind(&mut self, at: Micros, binding: Binding, payloads: Option<Meanings>) {
        if self.bindings.len() < BINDINGS_MAX && !self.bindings.contains(&binding) {
            self.bindings.push(binding);
        }
        let Some(payloads) = payloads.filter(|payloads| !Arc::ptr_eq(payloads, &self.payloads)) else {
            return;
        };
        let changes = payloads != self.payloads;
        self.payloads = payloads;
        if changes {
            self.session.describe(at, self.description((None, None)));
        }
    }

    /// The judgement; `None` for packets that nobody announced and that are too few to be called a stream.
    ///
    /// `ptime_ms` is what the two parties advertised, the sender first.
    pub(super) fn finish(mut self, ptime_ms: (Option<u32>, Option<u32>)) -> Option<Finished> {
        let figures = self.session.report(self.last).figures;
        let announced = !self.bindings.is_empty();
        if !announced {
            // The rule for enough audio, and most of the numbers must be there: noise has neither.
            let real = figures.enough
                && figures.received * 20 >= figures.expected
                && figures.sequence_jumps * 20 <= figures.received;
            if !real {
                return None;
            }
        }
        // Without SDP no packet duration was advertised, so none can be wrong: the real one stands for it.
        let measured = figures.ptime_ms.and_then(|ms| u32::try_from((ms.0 + 50) / 100).ok());
        let ptime_ms = if announced { ptime_ms } else { (measured, None) };
        self.session.describe(self.last, self.description(ptime_ms));
        let report = self.session.close(self.last);
        let audio = |payload: &&Payload| payload.kind == PayloadKind::Audio;
        let seen = || {
            report
                .payload_types
                .iter()
                .filter_map(|number| self.payloads.iter().find(|payload| payload.number == *number))
        };
        let named = seen().find(audio).or_else(|| seen().next()).filter(|payload| !payload.name.is_empty());
        Some(Finished {
            packets: self.packets,
            codec: report.codec.clone().or_else(|| named.map(|payload| payload.name.clone())),
            clock_hz: report
                .clock_rate
                .or_else(|| named.map(|payload| payload.clock))
                .map(|clock| clock.hz()),
            report,
        })
    }
}

/// Calls that one stream is listed under; ports and SSRCs that are used again make more than one.
const BINDINGS_MAX: usize = 64;
