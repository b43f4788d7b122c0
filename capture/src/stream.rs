//! One RTP stream: the packets of one SSRC from one source to one destination, judged as a leg of its own.

use std::sync::{Arc, LazyLock};

use sidetone_media::rtp::{Header, Packet, PayloadKind};
use sidetone_media::session::{
    AudioSample, Description, Payload, Report, Run, Session, SessionConfig, StrictSource,
};
use sidetone_media::time::Micros;

use super::clock_inference::{self, Inferred};
use super::payloads::{self, Meanings};
use super::rtcp::{About, ReceiverView};
use super::signal::{Ends, LegEnd};

/// A stream being measured; most packets touch only the run of its session, which is the first field.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Stream {
    session: Session,
    /// The leg that processes the packets that wait in the run.
    pub(super) leg: LegEnd,
    ends: Ends,
    /// The number of packets, the time of the last and of the first; packets that wait are not counted.
    packets: u64,
    last: Micros,
    begun: Micros,
    payloads: Meanings,
    receiver: ReceiverView,
    /// The items that wait until the clock of an unannounced type is inferred.
    undecided: Option<Box<Undecided>>,
    /// Whether that was tried with enough packets of unannounced types; it is not tried again.
    is_decided: bool,
    inferred: Option<Inferred>,
}

/// Packets and RTCP of a stream whose clock is not known yet.
#[derive(Debug, Default)]
struct Undecided {
    held: Vec<Held>,
    /// Packets among them.
    packets: usize,
    /// Bytes of the RTCP among them.
    rtcp_bytes: usize,
}

/// One waiting item.
#[derive(Debug)]
enum Held {
    Packet(Micros, Packet, Option<AudioSample>),
    /// With the number of packets before it.
    Rtcp(Micros, About, Box<[u8]>, u64),
}

/// The result of a stream.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) report: Box<Report>,
    pub(super) codec: Option<String>,
    pub(super) clock_hz: Option<u32>,
    /// Whether the clock was inferred because no SDP announced it.
    pub(super) is_clock_inferred: bool,
}

/// A summary of a finished stream before its report is created.
#[derive(Debug)]
pub(super) struct Outline {
    /// The first and the last packet.
    pub(super) span: (Micros, Micros),
    /// In ascending order.
    pub(super) payload_types: Vec<u8>,
}

/// The packet durations that the sender and the receiver of a stream advertised, in milliseconds; `None` when the
/// description of one of them was not captured, and the other names none.
pub(super) type AdvertisedPtime = Option<(Option<u32>, Option<u32>)>;

impl Stream {
    /// Returns a stream that begins now.
    pub(super) fn new(at: Micros, ends: Ends, payloads: Meanings) -> Self {
        let mut session = Session::with_shared(Arc::clone(&CONFIG));
        session.reserve_seconds(SECONDS_RESERVED);
        let mut stream = Stream {
            session,
            leg: LegEnd::NONE,
            ends,
            packets: 0,
            last: at,
            begun: at,
            payloads,
            receiver: ReceiverView::default(),
            undecided: None,
            is_decided: false,
            inferred: None,
        };
        stream.advertise(at, (None, None));
        stream.session.answer(at);
        stream
    }

    /// Takes one packet of the stream, and its audio sample; the run is empty before and after.
    pub(super) fn receive(&mut self, at: Micros, packet: &Packet, heard: Option<&AudioSample>) {
        let waits = self.undecided.is_some() || self.is_decided;
        if !waits && payloads::is_unannounced(&self.payloads, packet.payload_type) {
            // No packet may overtake those that wait.
            self.session.expect_nothing();
            self.undecided = Some(Box::default());
        }
        self.packets += 1;
        self.last = self.last.max(at);
        if let Some(undecided) = &mut self.undecided {
            undecided.held.push(Held::Packet(at, *packet, heard.copied()));
            undecided.packets += 1;
            self.consider();
        } else {
            self.fold(at, packet, heard);
        }
    }

    fn fold(&mut self, at: Micros, packet: &Packet, heard: Option<&AudioSample>) {
        self.session.receive_heard(at, self.ends.0, packet, heard);
        if !self.session.run().is_empty() {
            self.session.go_on();
        }
    }

    /// Infers the clock if enough packets wait for it.
    fn consider(&mut self) {
        let Some(undecided) = &self.undecided else { return };
        let stage = clock_inference::STAGES.iter().find(|(packets, _)| *packets == undecided.packets);
        let Some((packets, within_pct)) = stage else { return };
        let is_passing = undecided.is_mostly_announced(&self.payloads);
        let inferred = undecided.infer(*within_pct, &self.payloads);
        let is_last = clock_inference::STAGES.last().is_some_and(|(last, _)| last == packets);
        if is_last || is_passing || undecided.is_full() || inferred.is_some() {
            // Digits in announced audio, for example, do not prevent a later attempt.
            self.is_decided = !is_passing;
            self.decide(inferred);
        }
    }

    /// Processes the waiting items, with the inferred clock if there is one.
    fn decide(&mut self, inferred: Option<(u8, Inferred)>) {
        let Some(undecided) = self.undecided.take() else { return };
        if let Some((number, inferred)) = inferred {
            self.inferred = Some(inferred);
            if inferred.is_audio {
                self.payloads = payloads::with_clock(&self.payloads, number, inferred.clock);
                self.advertise(undecided.begun().unwrap_or(self.begun), (None, None));
            }
        }
        for held in undecided.held {
            match held {
                Held::Packet(at, packet, heard) => self.fold(at, &packet, heard.as_ref()),
                Held::Rtcp(at, about, datagram, packets) => self.take_rtcp(at, about, &datagram, packets),
            }
        }
    }

    /// Infers the clock from the packets so far.
    fn settle_clock(&mut self) {
        let inferred = self.infer_now();
        self.decide(inferred);
    }

    fn infer_now(&self) -> Option<(u8, Inferred)> {
        self.undecided.as_ref()?.infer(clock_inference::LEAST_PCT, &self.payloads)
    }

    /// Notes the packet if it is the next one; otherwise returns false and changes nothing.
    #[inline(always)]
    pub(super) fn take_next(&mut self, at: Micros, header: Header, payload_len: usize) -> bool {
        self.session.take_next(at, header, payload_len)
    }

    /// Whether the run is full.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.session.is_full()
    }

    /// The packets that wait to be processed.
    pub(super) fn run(&self) -> &Run {
        self.session.run()
    }

    /// Processes the packets that wait.
    pub(super) fn go_on(&mut self) {
        self.count_run();
        self.session.go_on();
    }

    /// Processes the packets that wait, for the session of a leg too.
    pub(super) fn go_on_with(&mut self, leg: &mut Session) {
        self.count_run();
        self.session.go_on_with(self.ends.0, leg);
    }

    fn count_run(&mut self) {
        let run = self.session.run();
        self.packets += u64::from(run.len());
        self.last = self.last.max(run.last().unwrap_or(self.last));
    }

    /// Makes the next packet take the slow path, so that no packet waits in the run before it.
    pub(super) fn expect_nothing(&mut self) {
        self.session.expect_nothing();
    }

    /// The source and destination of the packets.
    pub(super) fn ends(&self) -> Ends {
        self.ends
    }

    /// Takes RTCP about the stream.
    pub(super) fn rtcp(&mut self, at: Micros, about: About, datagram: &[u8]) {
        if let Some(undecided) = &mut self.undecided {
            undecided.held.push(Held::Rtcp(at, about, datagram.into(), self.packets));
            undecided.rtcp_bytes += datagram.len();
            if undecided.is_full() {
                self.settle_clock();
            }
        } else {
            self.take_rtcp(at, about, datagram, self.packets);
        }
    }

    fn take_rtcp(&mut self, at: Micros, About { ssrc, by_sender }: About, datagram: &[u8], packets: u64) {
        if by_sender {
            self.session.receive_rtcp(at, self.ends.0, datagram);
            self.receiver.sender_told(at, ssrc, datagram);
        } else {
            let clock = self.session.clock_rate();
            self.receiver.receiver_told(at, (ssrc, packets), clock, datagram);
        }
    }

    /// Takes a new meaning of the payload types from signalling.
    pub(super) fn describe(&mut self, at: Micros, payloads: Meanings) {
        self.payloads = payloads;
        self.advertise(at, (None, None));
        // It applies to the packets that waited as well.
        let unknown = self.infer_now();
        self.decide(unknown);
    }

    /// Ends a stream that no call announced, before its report is requested; `None` as for
    /// [`Stream::finish`].
    pub(super) fn conclude(&mut self, announced: bool, ptime_ms: AdvertisedPtime) -> Option<Outline> {
        self.end(announced, ptime_ms)?;
        Some(Outline { span: (self.begun, self.last), payload_types: self.session.payload_types() })
    }

    /// Returns the judgement; `None` for packets that no SDP announced and that are too few for a stream.
    ///
    /// `ptime_ms` are the packet durations that the two parties advertised.
    pub(super) fn finish(mut self, announced: bool, ptime_ms: AdvertisedPtime) -> Option<Finished> {
        self.end(announced, ptime_ms)?;
        let is_clock_inferred = self.is_clock_inferred();
        let mut report = Box::new(self.session.into_report(self.last));
        tighten(&mut report);
        self.receiver.complete(&mut report.rtcp);
        let audio = |payload: &&Payload| payload.kind == PayloadKind::Audio;
        let seen = || {
            report
                .payload_types
                .iter()
                .filter_map(|number| self.payloads.iter().find(|payload| payload.number == *number))
        };
        let named = seen().find(audio).or_else(|| seen().next()).filter(|payload| !payload.name.is_empty());
        Some(Finished {
            codec: report.codec.clone().or_else(|| named.map(|payload| payload.name.clone())),
            clock_hz: report
                .clock_rate
                .or_else(|| named.map(|payload| payload.clock))
                .or_else(|| self.inferred.map(|inferred| inferred.clock))
                .map(|clock| clock.hz()),
            is_clock_inferred,
            report,
        })
    }

    /// Whether the clock of its packets, or of most of them, was inferred.
    fn is_clock_inferred(&self) -> bool {
        let Some(inferred) = self.inferred else { return false };
        // A later announcement may name the type.
        !inferred.is_audio || self.session.is_clock_inferred()
    }

    /// Ends the stream; sets the packet duration that it is judged by, unless that was done already.
    fn end(&mut self, announced: bool, ptime_ms: AdvertisedPtime) -> Option<()> {
        self.settle_clock();
        if !self.session.is_closed() {
            let ptime_ms = match ptime_ms {
                Some(ptime_ms) if announced => ptime_ms,
                None if announced => self.unannounced_ptime_ms().unwrap_or_default(),
                _ => self.unannounced_ptime_ms()?,
            };
            self.advertise(self.last, ptime_ms);
            self.session.end(self.last);
        }
        Some(())
    }

    /// Whether the packets so far are a stream, although no SDP announced them.
    pub(super) fn is_confirmed(&self) -> bool {
        self.unannounced_ptime_ms().is_some()
    }

    /// The packet duration of packets that no SDP announced, if they are a stream.
    ///
    /// Without SDP no duration was advertised, so none can be wrong: the measured one is used.
    fn unannounced_ptime_ms(&self) -> Option<(Option<u32>, Option<u32>)> {
        let figures = self.session.outline();
        // There must be enough audio for the rule, at least one packet of twenty must be present, and at most
        // one of twenty may jump; other traffic fails.
        let is_real = figures.enough
            && figures.received * 20 >= figures.expected
            && figures.sequence_jumps * 20 <= figures.received;
        let measured = figures.ptime_ms.and_then(|ms| u32::try_from((ms.0 + 50) / 100).ok());
        is_real.then_some((measured, None))
    }

    /// A stream is judged as an answered caller's leg: only its own source is accepted, and nothing is
    /// expected in return.
    fn advertise(&mut self, at: Micros, (ptime_ms, own_ptime_ms): (Option<u32>, Option<u32>)) {
        let description = Description {
            remote: Some(self.ends.0),
            receive: true,
            ptime_ms,
            own_ptime_ms,
            signalling: Some(self.ends.0.ip()),
            ..Description::default()
        };
        self.session.describe_shared(at, description, Arc::clone(&self.payloads));
    }
}

impl Undecided {
    /// Whether no further item is kept.
    fn is_full(&self) -> bool {
        self.held.len() >= HELD_MAX || self.rtcp_bytes >= RTCP_BYTES_MAX
    }

    /// Arrival of the first packet.
    fn begun(&self) -> Option<Micros> {
        self.held().next().map(|(at, _)| at)
    }

    fn held(&self) -> impl Iterator<Item = (Micros, Packet)> {
        self.held.iter().filter_map(|held| match held {
            Held::Packet(at, packet, _) => Some((*at, *packet)),
            Held::Rtcp(..) => None,
        })
    }

    /// Whether `payloads` announces the types of at least half of the packets.
    fn is_mostly_announced(&self, payloads: &[Payload]) -> bool {
        let unannounced =
            self.held().filter(|(_, packet)| payloads::is_unannounced(payloads, packet.payload_type));
        unannounced.count() * 2 <= self.packets
    }

    /// The payload type that most packets have, if `payloads` does not announce it, and its clock.
    fn infer(&self, within_pct: f64, payloads: &[Payload]) -> Option<(u8, Inferred)> {
        let mut counts = [0_usize; 128];
        for (_, packet) in self.held() {
            if let Some(count) = counts.get_mut(usize::from(packet.payload_type)) {
                *count += 1;
            }
        }
        let number = counts.iter().position(|count| count * 2 > self.packets)?;
        let number =
            u8::try_from(number).ok().filter(|number| payloads::is_unannounced(payloads, *number))?;
        let of_it: Vec<(Micros, Packet)> =
            self.held().filter(|(_, packet)| packet.payload_type == number).collect();
        clock_inference::infer(&of_it, within_pct).map(|inferred| (number, inferred))
    }
}

/// Frees what a report does not need: a large capture holds many of them.
pub(super) fn tighten(report: &mut Report) {
    report.timeline.seconds.shrink_to_fit();
    report.evidence.measures.shrink_to_fit();
}

/// The configuration for every stream of every capture.
static CONFIG: LazyLock<Arc<SessionConfig>> = LazyLock::new(|| {
    let strict_source = StrictSource::Observed;
    Arc::new(SessionConfig { symmetric: false, strict_source, observed: true, ..SessionConfig::default() })
});
/// Packets and RTCP that may wait for one stream's clock.
const HELD_MAX: usize = 640;
/// Bytes of RTCP that may wait, plus at most one datagram: the reports of ten seconds take a few hundred.
const RTCP_BYTES_MAX: usize = 16 << 10;
/// Seconds for which memory is reserved at a time; most streams of a large capture are short.
pub(super) const SECONDS_RESERVED: u16 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtcp_that_waits_for_a_clock_is_bounded_in_bytes() {
        let ends = (([192, 0, 2, 1], 4000).into(), ([192, 0, 2, 2], 5000).into());
        let packet = Packet::parse(&[0x80, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4]).unwrap();
        let mut stream = Stream::new(Micros(0), ends, [payloads::unannounced(111)].into());
        stream.receive(Micros(0), &packet, None);
        let report = vec![0; 8 << 10];
        let about = About { ssrc: 7, by_sender: true };
        stream.rtcp(Micros(1), about, &report);
        assert!(stream.undecided.is_some(), "8 KiB may wait");
        stream.rtcp(Micros(2), about, &report);
        assert!(stream.undecided.is_none(), "with 16 KiB the clock is settled, and nothing waits");
    }
}
