//! RTCP on a leg: the party's reports, RTCP sent to it, and the content of our own reports about its stream.

use crate::rtcp::{Block, Heard, Reception, RtcpView};
use crate::session::packets::{Packets, Settled};
use crate::session::state::LegState;
use crate::time::{ClockRate, Micros};

impl LegState {
    /// The report block about the party's stream for a report sent at `now`; the next block counts from here.
    /// `None` while no packet has arrived.
    pub(super) fn report_block(&mut self, packets: &mut Packets, now: Micros) -> Option<Block> {
        let clock = audio_clock(packets);
        let Settled { gate, stream, transit, .. } = packets.settled();
        let source = gate.source()?;
        let (newest, in_segment, segment) = stream.numbering()?;
        let reception = Reception {
            ssrc: source.ssrc,
            newest,
            in_segment,
            segment,
            expected: stream.expected().saturating_sub(source.expected_before),
            received: stream.received().saturating_sub(source.received_before),
            jitter_us: stream.jitter_us(),
            clock,
            duplicates: stream.duplicates(),
            transit_ticks: transit.as_mut().and_then(|transit| transit.take(clock)),
        };
        Some(self.rtcp.report_block(now, &reception))
    }

    /// Processes an accepted RTCP datagram of the party.
    #[cold]
    pub(super) fn hear_rtcp(&mut self, packets: &mut Packets, now: Micros, datagram: &[u8]) {
        let heard = self.heard(packets);
        self.rtcp.received(now, datagram, &heard);
    }

    /// The figures from RTCP so far.
    pub(super) fn rtcp_view(&self, packets: &Packets) -> RtcpView {
        self.rtcp.view(packets.gate().current())
    }

    fn heard(&self, packets: &mut Packets) -> Heard {
        let clock = Some(audio_clock(packets));
        let counters = &self.counters;
        let mut heard = Heard { sent: counters.sent, clock, ..Heard::default() };
        let refused = counters.payload_type.saturating_add(counters.empty);
        let Settled { gate, stream, .. } = packets.settled();
        // Packets whose sequence numbers the stream counts are already among the received ones.
        heard.refused = refused.saturating_sub(stream.refused()).saturating_sub(self.noise_unannounced);
        if let Some(source) = gate.source() {
            let since = source.last_before.or(self.described_at).unwrap_or(source.begun_at);
            heard.ssrc = Some(source.ssrc);
            heard.received = stream.received().saturating_sub(source.received_before);
            heard.expected = stream.expected().saturating_sub(source.expected_before);
            heard.last = stream.last();
            heard.unseen_us = source.begun_at.since(since);
        }
        heard
    }
}

/// The clock of the audio last received, or of the first that was negotiated.
pub(super) fn clock_rate(packets: &Packets) -> Option<ClockRate> {
    packets.payloads().audio().map(|audio| audio.clock)
}

fn audio_clock(packets: &Packets) -> ClockRate {
    clock_rate(packets).unwrap_or(ClockRate::HZ_8000)
}
