//! RTCP on a leg: the party's reports, RTCP sent to it, and the content of our own reports about its stream.

use crate::rtcp::{Block, Heard, Reception, RtcpView};
use crate::session::Session;
use crate::session::packets::Settled;
use crate::time::{ClockRate, Micros};

impl Session {
    /// Records RTCP sent to the party: our own report, or a relayed one.
    ///
    /// The party's next report then gives the round trip.
    pub fn sent_rtcp(&mut self, now: Micros, datagram: &[u8]) {
        if !self.is_closed() {
            self.state.rtcp.sent(now, datagram);
        }
    }

    /// Sets the SSRC of the RTP sent to the party; report blocks about other SSRCs are ignored.
    #[inline]
    pub fn sends(&mut self, ssrc: u32) {
        self.state.rtcp.sends(ssrc);
    }

    /// The report block about the party's stream for a report sent at `now`; the next block counts from here.
    /// `None` while no packet has arrived.
    pub fn report_block(&mut self, now: Micros) -> Option<Block> {
        let clock = self.audio_clock();
        let Settled { gate, stream, .. } = self.packets.settled();
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
        };
        Some(self.state.rtcp.report_block(now, &reception))
    }

    /// The clock of the audio last received; before any, of the first that was negotiated.
    pub fn clock_rate(&self) -> Option<ClockRate> {
        self.packets.payloads().audio().map(|audio| audio.clock)
    }

    /// Processes an accepted RTCP datagram of the party.
    #[cold]
    pub(super) fn hear_rtcp(&mut self, now: Micros, datagram: &[u8]) {
        let heard = self.heard();
        self.state.rtcp.received(now, datagram, &heard);
    }

    pub(super) fn rtcp_view(&self) -> RtcpView {
        self.state.rtcp.view(self.packets.gate().current())
    }

    fn heard(&mut self) -> Heard {
        let clock = Some(self.audio_clock());
        let state = &self.state;
        let counters = &state.counters;
        let mut heard = Heard { sent: counters.sent, clock, ..Heard::default() };
        let refused = counters.payload_type.saturating_add(counters.empty);
        let Settled { gate, stream, .. } = self.packets.settled();
        // Packets whose sequence numbers the stream counts are already among the received ones.
        heard.refused = refused.saturating_sub(stream.refused()).saturating_sub(state.noise_unannounced);
        if let Some(source) = gate.source() {
            let since = source.last_before.or(state.described_at).unwrap_or(source.begun_at);
            heard.ssrc = Some(source.ssrc);
            heard.received = stream.received().saturating_sub(source.received_before);
            heard.expected = stream.expected().saturating_sub(source.expected_before);
            heard.last = stream.last();
            heard.unseen_us = source.begun_at.since(since);
        }
        heard
    }

    fn audio_clock(&self) -> ClockRate {
        self.clock_rate().unwrap_or(ClockRate::HZ_8000)
    }
}
