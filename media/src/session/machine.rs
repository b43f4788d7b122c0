//! The session machine: combines one leg's packets, signalling and sending.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::rtcp::{Block, is_plausible};
use crate::rtp::{Datagram, Header, Packet, PayloadKind};
use crate::session::packets::{Packets, Settled};
use crate::session::payloads::{PTIME_DEFAULT_MS, is_static_noise};
use crate::session::rtcp;
use crate::session::run::Run;
use crate::session::source::{Admission, SourceFilter, replayed};
use crate::session::state::LegState;
use crate::session::udptl;
use crate::session::{
    Content, Description, Disposition, Foreign, Input, Output, Payload, Reason, SessionConfig,
    SessionCounters,
};
use crate::stats::{AudioFold, AudioSample, Stream, StreamConfig};
use crate::time::{ClockRate, Micros};
use crate::verdict::address::is_unreachable;

/// The media session of one leg, sans-I/O.
///
/// It never expires by itself: silence is judged when a report is requested.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Session {
    /// The first field, so that most packets touch only the first cache line and one of the two after it.
    pub(super) packets: Packets,
    /// Whether the first packet after the answer has not arrived yet.
    awaiting_first: bool,
    is_closed: bool,
    /// The content of the datagrams. Only a packet of audio is ever expected.
    content: Content,
    /// State that packets from the accepted source do not touch.
    pub(super) state: Box<LegState>,
}

impl Session {
    /// A session that expects nothing until SDP describes it.
    pub fn new(config: SessionConfig) -> Self {
        Session::with_shared(Arc::new(config))
    }

    /// Like [`Session::new`], with a configuration that many sessions share.
    pub fn with_shared(config: Arc<SessionConfig>) -> Self {
        let stream_config = StreamConfig::new(ClockRate::HZ_8000, PTIME_DEFAULT_MS, &config.thresholds);
        let source = SourceFilter::new(config.symmetric);
        Session {
            packets: Packets::new(source, Stream::new(&stream_config), config.audio_evidence),
            awaiting_first: false,
            is_closed: false,
            content: Content::Audio,
            state: Box::new(LegState {
                // Allocated here so that no packet allocates.
                audio: config.audio_evidence.then(Box::default),
                config,
                ..LegState::default()
            }),
        }
    }

    /// Reserves space in the timeline for this many seconds, allocated when the first second ends. Without
    /// this call the space is for a minute, so that a live leg rarely allocates.
    ///
    /// For a caller with thousands of short sessions for which allocations on the packet path do not matter.
    pub fn reserve_seconds(&mut self, seconds: u16) {
        self.packets.settled().stream.reserve_rows(seconds);
    }

    /// Processes an event at `now`; afterwards drain [`Session::poll_output`].
    pub fn handle_input(&mut self, now: Micros, input: Input<'_>) {
        match input {
            Input::Answered => self.answer(now),
            Input::LocalDrop { packets } => self.local_drop(packets),
            Input::Rtcp { source, datagram } => {
                self.receive_rtcp(now, source, datagram);
            }
            Input::Rtp { source, datagram } => {
                self.receive(now, source, datagram);
            }
            Input::Sends { ssrc } => self.sends(ssrc),
            Input::Sent { packets, to } => self.sent(now, packets, to),
            Input::SentRtcp { datagram } => self.sent_rtcp(now, datagram),
            Input::Signalled(description) => self.describe(now, *description),
            Input::Unauthenticated { packets } => self.unauthenticated(packets),
            Input::Unreachable => self.unreachable(),
        }
    }

    /// The next output for the driver; `None` when there is none.
    ///
    /// *Bounds*: one change of source is kept; a later one replaces it.
    pub fn poll_output(&mut self) -> Option<Output> {
        let remote = self.state.latched.take()?;
        let foreign_sent = std::mem::take(&mut self.state.foreign_sent);
        Some(Output::Latched { remote, foreign_sent })
    }

    /// Processes a datagram from the RTP port and returns its disposition.
    pub fn receive(&mut self, now: Micros, source: SocketAddr, datagram: &[u8]) -> Disposition {
        // Every call here is a tail call: keeping a value across a call would slow down expected packets.
        let SocketAddr::V4(known) = &source else { return self.receive_v6(now, &source, datagram) };
        if !self.packets.take(now, known, datagram) {
            return self.receive_undue(now, &source, datagram);
        }
        if self.packets.is_full() || (self.packets.listens() && AudioSample::may_be_due(datagram)) {
            return self.go_on_after(now, datagram);
        }
        Disposition::Relay
    }

    #[inline(never)]
    fn receive_v6(&mut self, now: Micros, source: &SocketAddr, datagram: &[u8]) -> Disposition {
        if self.packets.take_v6(now, source, datagram) {
            self.go_on_after(now, datagram)
        } else {
            self.receive_undue(now, source, datagram)
        }
    }

    /// Rare work after an expected packet.
    #[inline(never)]
    fn go_on_after(&mut self, now: Micros, datagram: &[u8]) -> Disposition {
        if self.packets.is_full() {
            self.packets.go_on();
        }
        if self.packets.listens() && AudioSample::may_be_due(datagram) {
            self.listen_to(now, datagram);
        }
        Disposition::Relay
    }

    /// Processes a datagram that is not the expected packet.
    #[inline(never)]
    fn receive_undue(&mut self, now: Micros, source: &SocketAddr, datagram: &[u8]) -> Disposition {
        if self.is_closed {
            return Disposition::Discard(Reason::Closed);
        }
        self.packets.count_datagram();
        if self.content == Content::Fax {
            return self.receive_fax(now, source, datagram);
        }
        match Packet::parse_frequent(datagram) {
            Some(packet) => self.take_heard(now, source, &packet, datagram),
            None => self.receive_other(now, *source, datagram),
        }
    }

    /// Processes a datagram while the leg carries a fax.
    #[inline(never)]
    fn receive_fax(&mut self, now: Micros, source: &SocketAddr, datagram: &[u8]) -> Disposition {
        let Some(sequence) = udptl::sequence(datagram) else {
            self.state.counters.malformed += 1;
            return Disposition::Discard(Reason::Malformed);
        };
        let packet = udptl::as_packet(sequence, datagram.len());
        if !self.packets.settled().source.admit_known(now, source)
            && let Err(reason) = self.admit_other(now, *source, &packet, true)
        {
            return Disposition::Discard(reason);
        }
        self.state.fax.get_or_insert_default().received(sequence);
        Disposition::Relay
    }

    /// Processes a packet of video. One without payload only pads the sender's bit rate, and is relayed too.
    #[inline(never)]
    fn take_video(&mut self, now: Micros, source: &SocketAddr, packet: &Packet) -> Disposition {
        let settled = self.packets.settled();
        let is_negotiated = settled.payloads.kind(packet.payload_type).is_some();
        if !settled.source.admit_known(now, source)
            && let Err(reason) = self.admit_other(now, *source, packet, is_negotiated)
        {
            return Disposition::Discard(reason);
        }
        if !is_negotiated {
            self.state.counters.payload_type += 1;
            return Disposition::Discard(Reason::PayloadType);
        }
        self.state.video.get_or_insert_default().received(packet);
        Disposition::Relay
    }

    /// Processes a datagram that is not RTP in its most frequent form.
    #[cold]
    fn receive_other(&mut self, now: Micros, source: SocketAddr, datagram: &[u8]) -> Disposition {
        match Datagram::classify(datagram) {
            Datagram::Rtp => {}
            Datagram::Rtcp => return self.receive_muxed(now, source, datagram),
            Datagram::Foreign => {
                self.state.counters.foreign += 1;
                return Disposition::Discard(Reason::Foreign);
            }
        }
        let Ok(packet) = Packet::parse(datagram) else {
            self.state.counters.malformed += 1;
            return Disposition::Discard(Reason::Malformed);
        };
        self.take_heard(now, &source, &packet, datagram)
    }

    /// Processes a packet, and decodes its payload when the configuration requires it.
    #[inline]
    fn take_heard(
        &mut self,
        now: Micros,
        source: &SocketAddr,
        packet: &Packet,
        datagram: &[u8],
    ) -> Disposition {
        if self.content == Content::Video {
            return self.take_video(now, source, packet);
        }
        let disposition = self.take(now, source, packet);
        if self.packets.listens() && disposition == Disposition::Relay && AudioSample::is_due(packet) {
            self.listen(now, packet, datagram);
        }
        disposition
    }

    /// Processes an RTP packet whose header the driver has already parsed, as the analysis of a capture does.
    #[inline]
    pub fn receive_packet(&mut self, now: Micros, source: SocketAddr, packet: &Packet) -> Disposition {
        if !self.packets.take_packet(now, &source, packet) {
            return self.receive_undue_packet(now, &source, packet);
        }
        if self.packets.is_full() {
            self.packets.go_on();
        }
        Disposition::Relay
    }

    /// Processes a packet that is not the expected one.
    #[inline(never)]
    fn receive_undue_packet(&mut self, now: Micros, source: &SocketAddr, packet: &Packet) -> Disposition {
        if self.is_closed {
            return Disposition::Discard(Reason::Closed);
        }
        self.packets.count_datagram();
        if self.content == Content::Video {
            return self.take_video(now, source, packet);
        }
        self.take(now, source, packet)
    }

    /// Processes a packet that has the same source as the one before it, if it is the expected one; otherwise
    /// returns false and changes nothing.
    ///
    /// For a driver that tracks sources itself. Call [`Session::go_on`] when this [`Session::is_full`].
    #[inline(always)]
    pub fn take_next(&mut self, now: Micros, header: Header, payload_len: usize) -> bool {
        self.packets.take_next(now, header, payload_len)
    }

    /// Whether there is no space for another expected packet.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.packets.is_full()
    }

    /// The expected packets that are not folded yet.
    pub fn run(&self) -> &Run {
        self.packets.run()
    }

    /// Folds the waiting packets and computes the next expected one.
    pub fn go_on(&mut self) {
        self.packets.go_on();
    }

    /// Like [`Session::go_on`], and `other` processes the same packets, which came from `source`, like
    /// [`Session::receive_packet`] for each of them.
    ///
    /// Parts that are equal for the two sessions are computed once.
    pub fn go_on_with(&mut self, source: SocketAddr, other: &mut Session) {
        if !self.packets.go_on_with(&source, &mut other.packets) {
            for (at, packet) in self.packets.run().packets() {
                other.receive_packet(at, source, &packet);
            }
            self.packets.go_on();
        }
    }

    /// Makes the next packet take the slow path, whatever it is.
    pub fn expect_nothing(&mut self) {
        self.packets.expect_nothing();
    }

    /// Like [`Session::receive_packet`], for a packet whose payload the driver may have decoded.
    #[inline]
    pub fn receive_heard(
        &mut self,
        now: Micros,
        source: SocketAddr,
        packet: &Packet,
        sample: Option<&AudioSample>,
    ) -> Disposition {
        let disposition = self.receive_packet(now, source, packet);
        if let Some(sample) = sample
            && disposition == Disposition::Relay
        {
            self.hear(now, packet, sample);
        }
        disposition
    }

    /// Processes a datagram from the RTCP port; only RTCP of the party is relayed.
    pub fn receive_rtcp(&mut self, now: Micros, source: SocketAddr, datagram: &[u8]) -> Disposition {
        if self.is_closed {
            return Disposition::Discard(Reason::Closed);
        }
        if !is_plausible(datagram) {
            self.state.counters.malformed += 1;
            return Disposition::Discard(Reason::Malformed);
        }
        if !self.state.admits_rtcp(&self.packets, now, source) {
            self.state.counters.rtcp_rejected += 1;
            return Disposition::Discard(Reason::Source);
        }
        self.state.counters.rtcp += 1;
        self.state.rtcp_source = Some((source, now));
        self.state.hear_rtcp(&mut self.packets, now, datagram);
        Disposition::Relay
    }

    /// Records RTCP sent to the party: our own report, or a relayed one.
    ///
    /// The party's next report then gives the round trip.
    pub fn sent_rtcp(&mut self, now: Micros, datagram: &[u8]) {
        if !self.is_closed {
            self.state.rtcp.sent(now, datagram);
        }
    }

    /// Sets the SSRC of the RTP sent to the party; report blocks about other SSRCs are ignored.
    #[inline]
    pub fn sends(&mut self, ssrc: u32) {
        // UDPTL has no SSRC, and video has several.
        if self.content == Content::Audio {
            self.state.rtcp.sends(ssrc);
        }
    }

    /// Whether the leg carries UDPTL in place of RTP.
    pub fn carries_fax(&self) -> bool {
        self.content == Content::Fax
    }

    /// Whether the leg carries video in place of audio.
    pub fn carries_video(&self) -> bool {
        self.content == Content::Video
    }

    /// The report block about the party's stream for a report sent at `now`; the next one counts from here. `None`
    /// before the first packet.
    pub fn report_block(&mut self, now: Micros) -> Option<Block> {
        self.state.report_block(&mut self.packets, now)
    }

    /// The clock of the audio last received; before any, of the first that was negotiated.
    pub fn clock_rate(&self) -> Option<ClockRate> {
        rtcp::clock_rate(&self.packets)
    }

    /// Counts of packets from and to addresses that are not the party's; `None` without any, and for a capture.
    pub fn foreign(&self) -> Option<Foreign> {
        self.state.foreign(&self.packets)
    }

    /// Processes an SDP result, the first or a later one.
    pub fn describe(&mut self, now: Micros, mut description: Description) {
        let payloads = std::mem::take(&mut description.payloads);
        self.describe_shared(now, description, payloads.into());
    }

    /// Like [`Session::describe`], with separate payload types, because many streams share them.
    pub fn describe_shared(&mut self, now: Micros, mut description: Description, payloads: Arc<[Payload]>) {
        description.payloads = Vec::new();
        self.state.described_at.get_or_insert(now);
        // Port 0 is not an address (RFC 3264 §5.1).
        description.remote = description.remote.filter(|remote| remote.port() != 0);
        let ptime_ms = description.ptime_ms.or(description.own_ptime_ms);
        let settled = self.packets.settled();
        let same_payloads = settled.payloads.is(&payloads);
        if !same_payloads || self.state.description.as_ref() != Some(&description) {
            settled.stream.begin_segment();
        }
        settled.transit = description.xr.summary.then(|| settled.transit.take().unwrap_or_default());
        let rule = description.strict_source.unwrap_or(self.state.config.strict_source);
        settled.source.describe(now, description.remote, description.signalling, rule);
        self.content = Content::of(&description);
        if description.udptl {
            // The formats of the audio before it are kept for the report.
            self.state.fax.get_or_insert_default().begin();
        } else {
            if description.video {
                // Allocated here so that no packet allocates.
                self.state.video.get_or_insert_default();
            }
            settled.payloads.replace(payloads, ptime_ms, settled.stream.audio());
        }
        self.state.description = Some(description);
        self.configure_stream();
        self.set_clocks(now);
    }

    /// The leg was answered; a second answer changes nothing.
    pub fn answer(&mut self, now: Micros) {
        if self.state.answered.is_some() {
            return;
        }
        self.state.answered = Some(now);
        let stream = &mut self.packets.settled().stream;
        self.state.received_at_answer = stream.accepted();
        stream.begin_segment();
        self.awaiting_first = true;
        // Audio that the network plays while it rings is not part of the conversation.
        if let Some(audio) = &mut self.state.audio {
            **audio = AudioFold::default();
        }
        self.set_clocks(now);
    }

    /// Counts RTP packets sent to the party.
    pub fn sent(&mut self, now: Micros, packets: u32, to: SocketAddr) {
        let beside_audio = match self.content {
            Content::Audio => None,
            Content::Fax => Some(&mut self.state.fax.get_or_insert_default().counters.sent),
            Content::Video => Some(&mut self.state.video.get_or_insert_default().counters.sent),
        };
        if let Some(sent) = beside_audio {
            *sent = sent.saturating_add(packets.into());
            self.state.sent_to = Some(to);
            return;
        }
        self.state.counters.sent = self.state.counters.sent.saturating_add(packets.into());
        if self.state.answered.is_some() {
            self.state.counters.sent_after_answer =
                self.state.counters.sent_after_answer.saturating_add(packets.into());
        }
        if self.state.sent_to != Some(to) {
            self.state.sent_to = Some(to);
            self.set_clocks(now);
        }
    }

    /// Counts packets that our own receive queue dropped.
    pub fn local_drop(&mut self, packets: u32) {
        self.state.counters.local_drop = self.state.counters.local_drop.saturating_add(packets.into());
    }

    /// Counts SRTP packets whose tag is wrong. They may be from any source, so that they change nothing else.
    pub fn unauthenticated(&mut self, packets: u32) {
        let counters = &mut self.state.counters;
        counters.srtp_failed = counters.srtp_failed.saturating_add(packets.into());
    }

    /// Counts an ICMP error: the destination is unreachable.
    pub fn unreachable(&mut self) {
        self.state.counters.unreachable = self.state.counters.unreachable.saturating_add(1);
    }

    /// The counters that are not part of the statistics.
    pub(super) fn counters(&self) -> SessionCounters {
        SessionCounters {
            datagrams: self.packets.datagrams(),
            source_changes: self.packets.source().changes().into(),
            ..self.state.counters
        }
    }

    /// Ends the leg at `now`: later input is discarded, and every later report is as of this moment.
    pub fn end(&mut self, now: Micros) {
        // No packet is expected from now on.
        self.packets.settled();
        self.is_closed = true;
        self.state.closed.get_or_insert(now);
    }

    /// Whether the leg has ended.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn signalling(&self) -> Option<IpAddr> {
        self.state.description.as_ref().and_then(|description| description.signalling)
    }

    /// RTCP on the RTP port (RFC 5761).
    #[cold]
    fn receive_muxed(&mut self, now: Micros, source: SocketAddr, datagram: &[u8]) -> Disposition {
        if !self.state.description.as_ref().is_some_and(|description| description.rtcp_mux) {
            self.state.counters.rtcp_rejected += 1;
            return Disposition::Discard(Reason::Rtcp);
        }
        match self.receive_rtcp(now, source, datagram) {
            Disposition::Relay => Disposition::RelayRtcp,
            discarded => discarded,
        }
    }

    /// Processes a packet that is not the expected one.
    #[inline]
    fn take(&mut self, now: Micros, source: &SocketAddr, packet: &Packet) -> Disposition {
        let settled = self.packets.settled();
        let kind = settled.payloads.kind(packet.payload_type);
        if !settled.source.admit_known(now, source)
            && let Err(reason) = self.admit_other(now, *source, packet, kind.is_some())
        {
            return Disposition::Discard(reason);
        }
        let Some(kind) = kind.filter(|_| packet.payload_len > 0) else {
            return Disposition::Discard(self.refuse_payload(now, packet, kind));
        };
        self.fold(now, packet, kind);
        self.packets.expect(source, packet);
        Disposition::Relay
    }

    /// Counts a packet of the party that is discarded because of its payload. Its sequence number still
    /// counts as received, so that it is not reported as lost.
    #[cold]
    fn refuse_payload(&mut self, now: Micros, packet: &Packet, kind: Option<PayloadKind>) -> Reason {
        let counters = &mut self.state.counters;
        let reason = match kind {
            Some(_) => {
                counters.empty += 1;
                Reason::Empty
            }
            None => {
                counters.payload_type += 1;
                Reason::PayloadType
            }
        };
        let Settled { gate, stream, payloads, .. } = self.packets.settled();
        if kind.is_none() {
            payloads.note_refused(packet.payload_type);
        }
        if kind.is_none() && packet.payload_len > 0 && is_static_noise(packet.payload_type) {
            self.state.noise_unannounced += 1;
            payloads.note_noise(packet.payload_type);
            gate.fold(stream, now, packet, PayloadKind::ComfortNoise);
            self.note_first(now);
        } else {
            gate.pass_over(stream, now, packet);
        }
        reason
    }

    /// Decodes the payload of an expected packet, if that packet is selected; its source is confirmed.
    fn listen_to(&mut self, now: Micros, datagram: &[u8]) {
        let Some(packet) = Packet::parse_frequent(datagram).filter(AudioSample::is_due) else { return };
        if let Some(sample) = AudioSample::of(packet.payload_in(datagram, datagram.len())) {
            self.add_heard(now, &packet, &sample);
        }
    }

    /// Decodes the payload of an accepted packet.
    #[inline(never)]
    fn listen(&mut self, now: Micros, packet: &Packet, datagram: &[u8]) {
        if let Some(sample) = AudioSample::of(packet.payload_in(datagram, datagram.len())) {
            self.hear(now, packet, &sample);
        }
    }

    /// Records a decoded payload when the SSRC is confirmed; packets of other SSRCs may be from any sender.
    fn hear(&mut self, now: Micros, packet: &Packet, sample: &AudioSample) {
        if self.packets.gate().current() == Some(packet.ssrc) {
            self.add_heard(now, packet, sample);
        }
    }

    fn add_heard(&mut self, now: Micros, packet: &Packet, sample: &AudioSample) {
        if let Some(power) = self.state.audio.get_or_insert_default().push(packet, sample) {
            self.packets.hear(now, power);
        }
    }

    /// Decides about a packet that is not from the accepted source but may be the party's.
    #[cold]
    fn admit_other(
        &mut self,
        now: Micros,
        source: SocketAddr,
        packet: &Packet,
        negotiated: bool,
    ) -> Result<(), Reason> {
        let usable = negotiated && packet.payload_len > 0;
        let settled = self.packets.settled();
        let before = settled.source.accepted();
        let continues = settled.continues(packet);
        let admission = settled.source.admit_other(now, source, packet, (usable, continues));
        let is_new = settled.source.accepted() != before;
        let received = settled.stream.received();
        let sent = self.state.counters.sent;
        match admission {
            // The address in SDP is where the party is, and so no dead end.
            Admission::Accepted if is_new => self.set_clocks(now),
            Admission::Accepted => {}
            Admission::Held | Admission::Rejected => {
                let is_foreign = admission == Admission::Rejected;
                self.state.counters.rejected_source += 1;
                self.state.rejected_source = Some(source);
                if is_foreign {
                    self.state.foreign.rejected(now, source);
                }
                return Err(if is_foreign { Reason::Source } else { Reason::Probation });
            }
            Admission::TakenBack { foreign } => {
                let lost = self.state.foreign.lost_the_leg(now, foreign, received, sent);
                self.state.foreign_sent = self.state.foreign_sent.saturating_add(lost);
                self.state.foreign.begin(received, sent);
                self.source_changed(now);
            }
            Admission::Latched => {
                self.state.foreign.begin(received, sent);
                self.source_changed(now);
            }
            Admission::Found { replay, copies } => {
                self.state.foreign.begin(received, sent);
                for held in replayed(replay, copies) {
                    let refused = &mut self.state.counters.rejected_source;
                    *refused = refused.saturating_sub(1);
                    let kind = self.packets.payloads().kind(held.packet.payload_type);
                    if let Some(kind) = kind.filter(|_| self.content == Content::Audio) {
                        self.fold(held.at, &held.packet, kind);
                    }
                }
                self.source_changed(now);
            }
        }
        Ok(())
    }

    #[inline]
    fn fold(&mut self, now: Micros, packet: &Packet, kind: PayloadKind) {
        let Settled { payloads, stream, .. } = self.packets.settled();
        if payloads.note(packet.payload_type, kind, || stream.audio()) {
            self.configure_stream();
        }
        let settled = self.packets.settled();
        settled.hear_transit(now, packet, kind);
        settled.gate.fold(&mut settled.stream, now, packet, kind);
        self.note_first(now);
    }

    /// Records the first packet after the answer.
    #[inline]
    fn note_first(&mut self, now: Micros) {
        if self.awaiting_first {
            self.awaiting_first = false;
            self.state.first_after_answer = Some(now);
        }
    }

    /// Sets the stream's clock and frame size from the audio received.
    #[cold]
    fn configure_stream(&mut self) {
        let Settled { payloads, stream, .. } = self.packets.settled();
        let is_tagged = self.state.config.observed
            && self.state.description.as_ref().is_some_and(|description| description.protected);
        if let Some(config) = payloads.stream_config(&self.state.config.thresholds, is_tagged) {
            stream.reconfigure(&config);
        }
    }

    #[cold]
    fn source_changed(&mut self, now: Micros) {
        self.state.rtcp_source = None;
        let source = self.packets.source();
        if source.is_latched() || source.changes() > 0 {
            self.state.latched = source.target();
        }
        self.set_clocks(now);
    }

    /// Starts and stops the clocks of expected audio; call it after every change that may affect them.
    pub(super) fn set_clocks(&mut self, now: Micros) {
        let state = &mut self.state;
        let Settled { source, stream, .. } = self.packets.settled();
        let live = !self.is_closed && state.answered.is_some();
        let (receive, send) = match &state.description {
            Some(description) if live && description.names_address() && self.content == Content::Audio => {
                // A party that only sends has put us on hold; many phones then send nothing at all.
                (description.receive && description.send, description.send)
            }
            _ => (false, false),
        };
        let signalling = state.description.as_ref().and_then(|description| description.signalling);
        let dead_end = state.sent_to.zip(signalling).is_some_and(|(to, from)| {
            source.accepted() != Some(to) && is_unreachable(to.ip(), from, &state.config.own_addresses)
        });
        state.receive_clock.set(now, receive);
        stream.expect_audio(now, receive);
        state.send_clock.set(now, send);
        state.blackhole_clock.set(now, send && dead_end);
    }
}
