//! One RTP stream: the packets of one SSRC from one source to one destination, judged as a leg of its own.

use std::net::SocketAddr;

use sidetone_media::rtp::{Packet, PayloadKind};
use sidetone_media::session::{Description, Payload, Report, Session, SessionConfig};
use sidetone_media::time::Micros;

use super::flows::Binding;

/// A stream under measurement.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) ssrc: u32,
    /// The call it belongs to, as of its last packet.
    pub(super) binding: Option<Binding>,
    /// Whether signalling ever announced it.
    announced: bool,
    packets: u64,
    last: Micros,
    session: Session,
    description: Description,
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
    ///
    /// It is judged as an answered caller's leg, so its description accepts its own source alone and expects
    /// nothing in return.
    pub(super) fn new(
        at: Micros,
        (source, destination): (SocketAddr, SocketAddr),
        ssrc: u32,
        payloads: Vec<Payload>,
        binding: Option<Binding>,
    ) -> Self {
        let config = SessionConfig { symmetric: false, ..SessionConfig::default() };
        let mut session = Session::new(config);
        let description = Description {
            remote: Some(source),
            receive: true,
            payloads,
            signalling: Some(source.ip()),
            ..Description::default()
        };
        session.describe(at, description.clone());
        session.answer(at);
        Stream {
            source,
            destination,
            ssrc,
            binding,
            announced: binding.is_some(),
            packets: 0,
            last: at,
            session,
            description,
        }
    }

    /// Takes one packet of the stream.
    #[inline]
    pub(super) fn receive(&mut self, at: Micros, packet: &Packet) {
        self.packets += 1;
        self.last = self.last.max(at);
        self.session.receive_packet(at, self.source, packet);
    }

    /// Takes what new signalling says of the stream.
    pub(super) fn bind(&mut self, at: Micros, binding: Option<Binding>, payloads: Option<Vec<Payload>>) {
        self.binding = binding.or(self.binding);
        self.announced |= binding.is_some();
        if let Some(payloads) = payloads.filter(|payloads| *payloads != self.description.payloads) {
            self.description.payloads = payloads;
            self.session.describe(at, self.description.clone());
        }
    }

    /// The judgement; `None` for packets that nobody announced and that are too few to be called a stream.
    ///
    /// `ptime_ms` is what the two parties advertised, the sender first.
    pub(super) fn finish(mut self, ptime_ms: (Option<u32>, Option<u32>)) -> Option<Finished> {
        let figures = self.session.report(self.last).figures;
        if !self.announced {
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
        (self.description.ptime_ms, self.description.own_ptime_ms) = match ptime_ms {
            (None, None) if !self.announced => (measured, None),
            stated => stated,
        };
        self.session.describe(self.last, self.description.clone());
        let report = self.session.close(self.last);
        let audio = |payload: &&Payload| payload.kind == PayloadKind::Audio;
        let seen = || {
            report.payload_types.iter().filter_map(|number| {
                self.description.payloads.iter().find(|payload| payload.number == *number)
            })
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
