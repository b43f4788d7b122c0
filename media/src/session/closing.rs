//! A session's report: the figures, the inputs of the verdict rules, and the verdict.

use crate::session::{Report, Session, SessionConfig, SessionCounters};
use crate::stats::{AudioFold, Figures, Hundredths, Stream, Timeline, e_model};
use crate::time::Micros;
use crate::verdict::address::{ip_text, is_unreachable, socket_text};
use crate::verdict::evidence::{count, flag, text};
use crate::verdict::{Evidence, Facts, Verdict, judge};

impl Session {
    /// The session's configuration.
    pub fn config(&self) -> &SessionConfig {
        &self.state.config
    }

    /// The report as of `now`; the session continues unchanged.
    pub fn report(&self, now: Micros) -> Report {
        let now = self.state.closed.unwrap_or(now);
        let mut stream = self.packets.stream();
        let facts = self.facts(now, &stream);
        let measured = stream.conclude(self.state.counters.local_drop, Some(now));
        self.judged(now, facts, measured)
    }

    /// Ends the leg; later input is discarded and changes nothing.
    pub fn close(&mut self, now: Micros) -> Report {
        let report = self.report(now);
        self.end(now);
        report
    }

    /// Like [`Session::close`], for a caller that does not need the session afterwards: nothing is copied.
    pub fn into_report(mut self, now: Micros) -> Report {
        self.end(now);
        let now = self.state.closed.unwrap_or(now);
        let facts = self.facts(now, self.packets.folded());
        let local_drop = self.state.counters.local_drop;
        let measured = self.packets.settled().stream.conclude(local_drop, Some(now));
        self.judged(now, facts, measured)
    }

    /// The current figures that come from the packets alone, without the worst ten seconds.
    pub fn outline(&self) -> Figures {
        self.packets.outline().into_figures(self.state.counters.local_drop)
    }

    /// Whether no SDP announced the audio format last received, so that its clock was inferred.
    pub fn is_clock_inferred(&self) -> bool {
        self.packets.payloads().received_audio().is_some_and(|audio| audio.name.is_empty())
    }

    /// The payload types received so far, in ascending order.
    pub fn payload_types(&self) -> Vec<u8> {
        self.packets.payloads().seen()
    }

    /// The report for these facts and measurements.
    fn judged(&self, now: Micros, facts: Facts, (figures, timeline): (Figures, Timeline)) -> Report {
        let rtcp = self.state.rtcp_view(&self.packets);
        let round_trip_ms = rtcp.round_trip.as_ref().map(|trip| trip.mean_ms);
        let figures = self.completed(figures, round_trip_ms);
        let mut evidence = Evidence::default();
        if self.state.description.is_some() {
            evidence = judge(&figures, &facts, &self.state.config.thresholds);
            self.add_circumstances(&mut evidence);
        }
        // The audio before a fax is often only its tones: when it is too short to find a fault, nothing was judged.
        let is_unjudged = !figures.enough && evidence.rule == Some(Verdict::Ok);
        if self.carries_video() || (is_unjudged && self.state.fax.is_some()) {
            evidence = Evidence::default();
        }
        let state = &self.state;
        let description = state.description.as_ref();
        let audio = self.packets.payloads().received_audio();
        let after_answer = state.first_after_answer.zip(state.answered);
        let counters =
            SessionCounters { received_after_answer: facts.received_after_answer, ..self.counters() };
        Report {
            at: now,
            verdict: evidence.rule,
            withheld: None,
            observed: state.config.observed,
            evidence,
            codec: audio.map(|audio| audio.name.clone()).filter(|name| !name.is_empty()),
            clock_rate: audio.map(|audio| audio.clock),
            ssrc: self.packets.gate().current(),
            is_clock_inferred: self.is_clock_inferred(),
            payload_types: self.packets.payloads().seen(),
            refused_types: self.packets.payloads().refused(),
            latched: self.packets.source().is_latched(),
            source: self.packets.source().accepted(),
            advertised: self.packets.source().described(),
            own_advertised: description.and_then(|description| description.own_advertised),
            signalling: self.signalling(),
            sent_to: state.sent_to,
            rejected_source: state.rejected_source,
            foreign: self.foreign(),
            receive_expected_ms: facts.receive_expected_us / 1000,
            send_expected_ms: facts.send_expected_us / 1000,
            tail_ms: facts.tail_us / 1000,
            first_after_answer_ms: after_answer
                .map(|(first, answered)| Hundredths::millis_from_us(first.since(answered))),
            latch_delay_ms: self.packets.source().latch_delay_us().map(Hundredths::millis_from_us),
            audio: state.audio.as_deref().and_then(AudioFold::evidence),
            rtcp,
            counters,
            fax: state.fax.as_ref().map(|fax| fax.counters),
            video: state.video.as_ref().map(|video| video.counters),
            figures,
            answered: state.answered,
            facts,
            thresholds: state.config.thresholds.clone(),
            timeline,
            trace: None,
        }
    }

    /// The verdict at `now`, without its evidence; `None` when there is not enough to judge.
    pub(super) fn verdict_so_far(&self, now: Micros) -> Option<Verdict> {
        self.state.description.as_ref()?;
        let stream = self.packets.outline();
        let facts = self.facts(now, &stream);
        let figures = stream.into_figures(self.state.counters.local_drop);
        let verdict = judge(&figures, &facts, &self.state.config.thresholds).rule?;
        (figures.enough || verdict != Verdict::Ok).then_some(verdict)
    }

    /// Since when audio from the party is expected; `None` before the answer and on hold.
    pub(super) fn expects_audio_since(&self) -> Option<Micros> {
        self.state.receive_clock.since()
    }

    /// Arrival of the last packet of the party.
    pub(super) fn last_packet(&self) -> Option<Micros> {
        self.packets.last()
    }

    /// Whether the sender suppresses silence: it announced that, or has paused before and continued.
    pub(super) fn may_be_silent(&self) -> bool {
        self.packets.may_be_silent()
    }

    /// Adds the figures that do not come from the packets of one stream.
    fn completed(&self, mut figures: Figures, round_trip_ms: Option<Hundredths>) -> Figures {
        figures.ssrc_changes = self.packets.gate().changes();
        figures.stray_ssrc = self.packets.gate().strays();
        let payloads = self.packets.payloads();
        let codec = payloads.received_audio().map_or("", |audio| audio.name.as_str());
        let heard = |is_one_of: &dyn Fn(&str) -> bool| payloads.heard(figures.audio, is_one_of);
        figures.e_model = e_model(&figures, codec, heard, round_trip_ms);
        figures.mos_e_model = figures.e_model.as_ref().map(|score| score.mos);
        figures
    }

    fn facts(&self, now: Micros, stream: &Stream) -> Facts {
        let state = &self.state;
        let description = state.description.as_ref();
        let source = self.packets.source().accepted().map(|source| source.ip().to_canonical());
        let advertised = self.packets.source().described().map(|described| described.ip().to_canonical());
        let from = self.signalling();
        let own_advertised = description.and_then(|description| description.own_advertised);
        let dead_end = |address, own| from.is_some_and(|from| is_unreachable(address, from, own));
        let received = stream.accepted();
        let answered = state.answered.is_some();
        Facts {
            answered,
            receive_expected_us: state.receive_clock.read(now),
            send_expected_us: state.send_clock.read(now),
            received_after_answer: if answered {
                received.saturating_sub(state.received_at_answer)
            } else {
                0
            },
            sent_after_answer: self.state.counters.sent_after_answer,
            rejected_source: self.state.counters.rejected_source,
            advertised_unreachable: advertised
                .is_some_and(|address| dead_end(address, &self.state.config.own_addresses)),
            // In a capture the advertised address belongs to another system that we do not configure.
            own_unreachable: !state.config.observed
                && own_advertised.is_some_and(|address| dead_end(address, &[])),
            unreachable_errors: self.state.counters.unreachable,
            blackhole_us: state.blackhole_clock.read(now),
            relocated: self.packets.source().is_latched() && source != advertised,
            tail_us: self.tail_us(now, stream.last()),
            ptime_ms: self.packets.payloads().ptime_ms(),
            own_ptime_ms: description.and_then(|description| description.own_ptime_ms),
            own_maxptime_ms: description.and_then(|description| description.own_maxptime_ms),
            only_listens: description.is_some_and(|description| {
                description.names_address() && description.send && !description.receive
            }),
        }
    }

    /// Time since the last packet, or since audio was expected again; 0 on hold.
    fn tail_us(&self, now: Micros, last: Option<Micros>) -> i64 {
        let since = self.state.receive_clock.since();
        since.zip(last).map_or(0, |(since, last)| now.since(since.max(last)).max(0))
    }

    /// Adds the circumstances of the verdict: which sources sent, and which were rejected.
    fn add_circumstances(&self, evidence: &mut Evidence) {
        let state = &self.state;
        let measures = &mut evidence.measures;
        let own = state.description.as_ref().and_then(|description| description.own_advertised);
        let addresses = [
            ("source", self.packets.source().accepted()),
            ("advertised", self.packets.source().described()),
            ("sent_to", state.sent_to),
            ("last_rejected_source", state.rejected_source),
        ];
        for (name, address) in addresses {
            measures.extend(address.map(|address| text(name, socket_text(address))));
        }
        measures.extend(self.signalling().map(|address| text("signalling", ip_text(address))));
        measures.extend(own.map(|address| text("own_advertised", ip_text(address))));
        let counts = [
            ("rejected_packets", self.state.counters.rejected_source),
            ("local_drop", self.state.counters.local_drop),
            ("srtp_failed", self.state.counters.srtp_failed),
            ("source_changes", self.packets.source().changes().into()),
        ];
        let foreign = self.foreign().unwrap_or_default();
        let counts = counts
            .into_iter()
            .chain([("foreign_accepted", foreign.accepted_packets), ("foreign_sent", foreign.sent_packets)]);
        for (name, value) in counts {
            measures.extend((value > 0).then(|| count(name, value)));
        }
        if self.packets.source().is_latched() && evidence.reason != "relocated" {
            measures.push(flag("latched", true));
        }
    }
}
