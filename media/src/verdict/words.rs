//! The verdict in sentences that a support person can read to a customer: what happened, when, and who should
//! act.
//!
//! A sentence states only what the figures beside it show, not what a listener heard. Every number that a
//! rule compares is shown with its limit. `media/tests/integration/sentences.rs` checks this.

use crate::session::Withheld;
use crate::stats::Hundredths;
use crate::verdict::phrase::{
    Name, counted, grouped, none_or, packets, percent, seconds_of_ms, short, speed, text,
};
use crate::verdict::rules::TOO_LITTLE_AUDIO;
use crate::verdict::wording::Wording;
use crate::verdict::{Affected, Blame, Verdict, not_audio};

impl Wording<'_> {
    /// The sentence on the verdict.
    pub(super) fn verdict(&self) -> String {
        let Name { within: who, .. } = self.who;
        if let Some(sentence) = not_audio::sentence(self.report, who, &self.when(), &self.repair_path()) {
            return sentence;
        }
        if let (None, Some(why)) = (self.report.verdict, self.report.withheld) {
            return withheld(why).to_owned();
        }
        match (self.report.verdict, self.report.evidence.reason) {
            (None, _) if self.report.fax.is_some() => {
                format!("{}'s leg carried a fax (T.38), and too little audio to judge.", self.who.first)
            }
            (None, _) => format!("SDP settled no audio with {who}, so there is nothing to judge."),
            (Some(Verdict::Ok), TOO_LITTLE_AUDIO) => self.too_little(),
            (Some(Verdict::Ok), _) => self.fine(),
            (Some(Verdict::Unanswered), _) => {
                "The call was never answered, so there was no conversation to judge.".to_owned()
            }
            (Some(Verdict::NoInboundMedia), _) => self.silent(),
            (Some(Verdict::NoOutboundMedia), _) => self.unsent(),
            (Some(Verdict::WrongAdvertisedAddress), reason) => self.address(reason),
            (Some(Verdict::LossyInbound), _) => self.lossy(),
            (Some(Verdict::JitteryInbound), reason) => self.jittery(reason),
            (Some(Verdict::UnpacedSender), reason) => self.unpaced(reason),
            (Some(Verdict::PtimeMismatch), reason) => self.ptime(reason),
            (Some(Verdict::DegradedAudio), "dead_tail") => self.dead_tail(),
            (Some(Verdict::DegradedAudio), _) => self.degraded(),
        }
    }

    fn fine(&self) -> String {
        let (who, figures) = (self.who.within, &self.report.figures);
        let limit = short(self.report.thresholds.loss_pct);
        let missing = match (figures.lost, figures.loss_pct) {
            (0, _) if self.is_short() => "none is missing".to_owned(),
            (0, _) => "none was lost".to_owned(),
            (lost, Some(loss)) => {
                format!("{} lost ({} %, limit {limit} %)", counted(lost, "was", "were"), short(loss))
            }
            (lost, None) => format!("{} lost", counted(lost, "was", "were")),
        };
        let evenly = figures.jitter_ms.map_or_else(String::new, |jitter| self.evenness(jitter));
        // A remark about packets before the first and after the last one follows this sentence.
        if self.is_short() {
            return format!(
                "The packets of {who}'s audio that arrived were in order, but some are missing at the start or the end. Of the {} \
                 packets from the first to the last that arrived, {missing}{evenly}.",
                grouped(figures.expected)
            );
        }
        format!(
            "Nothing was wrong with {who}'s audio where it was measured: of {} packets {missing}{evenly}. \
             What happens to it after that point cannot be seen from here.",
            grouped(figures.expected)
        )
    }

    /// How evenly the packets of a good stream arrived.
    fn evenness(&self, jitter: Hundredths) -> String {
        let (sums, limits) = (&self.report.figures.sums, &self.report.thresholds);
        let limit = short(limits.jitter_ms);
        let jitter_text = short(jitter);
        if jitter < limits.jitter_ms {
            return format!(", and the jitter was {jitter_text} ms at most (limit {limit} ms)");
        }
        format!(
            ", and the jitter was {jitter_text} ms at most, {limit} ms or more in {} % of the packets (limit {} %)",
            percent(sums.jitter_high_count, sums.jitter_count),
            short(limits.jitter_share_pct)
        )
    }

    fn too_little(&self) -> String {
        let (who, report) = (self.who.within, self.report);
        match (report.figures.received, report.receive_expected_ms) {
            (0, _) if report.facts.only_listens => format!(
                "The SDP of the call has {who} listen only (recvonly), so no audio was expected from {who} and there is \
                 nothing to judge."
            ),
            (0, ..=0) => format!(
                "No audio from {who} was expected at any time (on hold), so there is nothing to \
                 judge."
            ),
            (0, expected_ms) => format!(
                "Audio from {who} was expected for {} only, too short a time to miss it, so there is nothing to judge.",
                seconds_of_ms(expected_ms)
            ),
            (received, _) => {
                format!("Only {} of {who}'s audio arrived, which is too little to judge.", packets(received))
            }
        }
    }

    /// "We heard nothing from the caller", with what was expected.
    fn unheard(&self) -> String {
        let report = self.report;
        let after = report.counters.received_after_answer;
        let arrived = if after == 0 { "no audio".to_owned() } else { format!("only {}", packets(after)) };
        let before = report.figures.received.saturating_sub(after);
        let earlier = match (before, &self.explanation.verdict) {
            (1.., Some(Verdict::NoInboundMedia)) => {
                format!(" ({} had come while the phone was still ringing)", packets(before))
            }
            _ => String::new(),
        };
        format!(
            "{} could not be heard: {arrived} arrived during the {} for which it was expected{earlier}.",
            self.who.first,
            seconds_of_ms(report.receive_expected_ms),
        )
    }

    fn silent(&self) -> String {
        let who = self.who.within;
        let unheard = self.unheard();
        let refused = self.report.counters.unreachable;
        match self.explanation.blame {
            _ if self.report.counters.srtp_failed > 0 => format!(
                "{unheard} {} came, none could be authenticated: they do not fit the key in the SDP of the \
                 call. Check the SRTP settings of {who}'s device, and whether a device between changes the SDP.",
                packets(self.report.counters.srtp_failed),
            ),
            Some(Blame::Network) if refused > 0 => format!(
                "{unheard} {} sent to {who} came back as undeliverable: check the connection between {who} and here, \
                 firewalls first.",
                packets(refused)
            ),
            Some(Blame::Network) => format!(
                "{unheard} {who_first}'s device reports by RTCP that it sent {}, so the audio was lost on the way: check \
                 the firewalls and routers between {who} and here.",
                self.report
                    .rtcp
                    .sent_by_party
                    .map_or_else(|| "audio".to_owned(), |sent| packets(sent.packets)),
                who_first = self.who.first,
            ),
            _ => format!(
                "{unheard} Either {who}'s device sent nothing, or something on its way blocked it, such as a firewall \
                 in {who}'s own network: that is where to look first."
            ),
        }
    }

    fn unsent(&self) -> String {
        let (who, report) = (self.who, self.report);
        let expected = seconds_of_ms(report.send_expected_ms);
        if report.observed {
            let passed = match report.counters.sent_after_answer {
                0 => "No audio".to_owned(),
                sent => format!("Only {}", packets(sent)),
            };
            return format!(
                "{passed} to {} passed the point of the capture during the {expected} for which audio was expected. \
                 Either the other side sent none, or it took another way: look at the other side of this call first.",
                who.within
            );
        }
        let sent = match report.counters.sent_after_answer {
            0 => "No audio was sent".to_owned(),
            1 => "Only 1 packet was sent".to_owned(),
            sent => format!("Only {} were sent", packets(sent)),
        };
        format!(
            "{sent} to {} during the {expected} for which audio was expected, so {} could hear nothing. Either the other \
             party's audio never reached us, or the fault is ours: look at the other party's side of this call first.",
            who.within, who.within
        )
    }

    fn address(&self, reason: &str) -> String {
        let (who, report) = (self.who.within, self.report);
        let advertised = text(report.advertised);
        match reason {
            "rejected_source" => format!(
                "{} {} came from {} instead of {advertised}, the address that {who}'s device had announced, and \
                 were refused. Check the address settings (NAT, STUN) of {who}'s device or router.",
                self.unheard(),
                packets(report.counters.rejected_source),
                text(report.rejected_source),
            ),
            "own_unreachable" => format!(
                "{} We had announced {} as our address for audio, which cannot be reached from {}, where {who} \
                 is. Set the public address in the configuration of our switch.",
                self.unheard(),
                text(report.own_advertised),
                text(report.signalling),
            ),
            "icmp_unreachable" => format!(
                "{} {who_first}'s device had announced {advertised} for its audio, but nothing listened there: {} \
                 came back as undeliverable. Restart {who}'s device, and check its firewall.",
                self.unheard(),
                packets(report.counters.unreachable),
                who_first = self.who.first,
            ),
            "blackhole" => self.blackhole(),
            "relocated" => format!(
                "{who_first}'s device had announced {advertised} for its audio, which came from {} instead. It was \
                 found there all the same, so {who} could be heard. Check the address settings (NAT, STUN) of the device \
                 or its router.",
                text(report.source),
                who_first = self.who.first,
            ),
            _ => format!(
                "{} {who_first}'s device had announced {advertised} for its audio, an address that cannot be \
                 reached from outside its own network. Check the address settings (NAT, STUN) of {who}'s device \
                 or router.",
                self.unheard(),
                who_first = self.who.first,
            ),
        }
    }

    fn blackhole(&self) -> String {
        let (report, facts) = (self.report, &self.report.facts);
        let share =
            Hundredths::ratio(i128::from(facts.blackhole_us) * 100, i128::from(facts.send_expected_us));
        format!(
            "{} could be heard, but the audio for {} went to {} for {} ({} % of the time): the address that {}'s device \
             had announced, which cannot be reached from outside its own network. Check the address settings \
             (NAT, STUN) of the device or its router.",
            self.who.first,
            self.who.within,
            text(report.sent_to),
            seconds_of_ms(facts.blackhole_us / 1000),
            share.map_or_else(|| "?".to_owned(), short),
            self.who.within,
        )
    }

    fn lossy(&self) -> String {
        let (figures, limit) = (&self.report.figures, self.report.thresholds.loss_pct);
        let gap = match figures.longest_loss_ms {
            HOLE_MIN_MS.. => {
                format!(" The longest gap lasted {}.", seconds_of_ms(figures.longest_loss_ms))
            }
            _ => String::new(),
        };
        format!(
            "{} of the {} packets of {}'s audio ({} %, limit {} %) were lost on the way here{}.{gap} {}",
            grouped(figures.lost),
            grouped(figures.expected),
            self.who.within,
            figures.loss_pct.map_or_else(|| "?".to_owned(), short),
            short(limit),
            self.when(),
            self.repair_path(),
        )
    }

    fn jittery(&self, reason: &str) -> String {
        let (figures, limits) = (&self.report.figures, &self.report.thresholds);
        let (sums, who) = (&figures.sums, self.who.within);
        if reason == "late" {
            return format!(
                "{} of the {} packets of {who}'s audio ({} %, limit {} %) arrived more than {} ms late{}. {} {}",
                grouped(sums.late_count),
                grouped(figures.received),
                percent(sums.late_count, figures.received),
                short(limits.late_share_pct),
                short(limits.late_ms),
                self.when(),
                self.concealed(),
                self.repair_path(),
            );
        }
        format!(
            "{}'s audio arrived unevenly{}: the jitter reached {} ms, and was {} ms or more in {} % of the packets \
             (limit {} %). {} {}",
            self.who.first,
            self.when(),
            figures.jitter_ms.map_or_else(|| "?".to_owned(), short),
            short(limits.jitter_ms),
            percent(sums.jitter_high_count, sums.jitter_count),
            short(limits.jitter_share_pct),
            self.concealed(),
            self.repair_path(),
        )
    }

    /// How many packets phones with a small and with a large buffer had to conceal because they were late.
    fn concealed(&self) -> String {
        let figures = &self.report.figures;
        let received = grouped(figures.received);
        match [figures.late_80, figures.late_200].map(|late| late.min(figures.received)) {
            [0, 0] => format!(
                "Phones with buffers of 80 ms and of 200 ms would have had to conceal none of {received} packets."
            ),
            [small, large] => format!(
                "A phone with a buffer of 80 ms would have had to conceal {} of {received} packets, one of 200 ms {}.",
                none_or(small),
                none_or(large),
            ),
        }
    }

    /// Where to look for the cause of loss or delay on the path.
    fn repair_path(&self) -> String {
        match self.explanation.blame {
            Some(Blame::Us) => format!(
                "Our own machine was overloaded and dropped {} more: look there first.",
                grouped(self.report.figures.local_drop)
            ),
            _ => format!(
                "Look at the network between {} and here: a full internet line or poor Wi-Fi is the usual cause.",
                self.who.within
            ),
        }
    }

    fn unpaced(&self, reason: &str) -> String {
        let figures = &self.report.figures;
        let sums = &figures.sums;
        let normal = Hundredths::millis_from_us(sums.step_us);
        if reason == "clumps" {
            let spacing = Hundredths::ratio(sums.clump_sum_us.into(), i128::from(sums.clump_count) * 1000);
            return format!(
                "{}'s device sent its audio in bursts, one every {} ms, instead of a packet every {} ms: {} % of \
                 the packets came right behind another (limit {} %). {} Look at the device: its software, or the power \
                 saving of its Wi-Fi.",
                self.who.first,
                spacing.map_or_else(|| "?".to_owned(), short),
                short(normal),
                percent(sums.short_gap_count, sums.gap_count),
                short(self.report.thresholds.clump_share_pct),
                self.concealed(),
            );
        }
        let pace = if sums.media_sum_us < sums.gap_sum_us { "too slowly" } else { "too fast" };
        format!(
            "{}'s device sent its audio {pace}, at {} the speed of speech (a packet every {} ms instead of \
             every {} ms). {} Look at the device and its software.",
            self.who.first,
            speed(sums.media_sum_us, sums.gap_sum_us),
            figures.mean_interval_ms.map_or_else(|| "?".to_owned(), short),
            short(normal),
            self.concealed(),
        )
    }

    fn ptime(&self, reason: &str) -> String {
        let (figures, facts) = (&self.report.figures, &self.report.facts);
        let measured = |ms: Option<Hundredths>| ms.map_or_else(|| "?".to_owned(), short);
        let (what, trusting) = match (reason, facts.own_maxptime_ms) {
            ("timestamps", _) => (
                format!(
                    "put {} ms of audio into each packet while its time stamps say {} ms",
                    measured(figures.payload_ptime_ms),
                    measured(figures.ptime_ms)
                ),
                "the time stamps",
            ),
            ("maxptime", Some(most)) => (
                format!(
                    "put {} ms of audio into each packet, although {most} ms is the most that was allowed",
                    measured(figures.ptime_ms)
                ),
                "the packet time that was agreed",
            ),
            _ => (
                format!(
                    "put {} ms of audio into each packet, although {} ms had been announced",
                    measured(figures.ptime_ms),
                    facts.ptime_ms
                ),
                "the packet time that was announced",
            ),
        };
        format!(
            "{}'s device {what}; equipment that goes by {trusting} may play such audio wrongly. Check the packet time in the \
             settings of the device, and its software.",
            self.who.first
        )
    }

    fn degraded(&self) -> String {
        let report = self.report;
        let figures = &report.figures;
        let limit = short(report.thresholds.quality_pct);
        let cause = match self.explanation.blame {
            Some(Blame::Remote) => format!(
                "the time stamps of {}'s device jumped {}. Look at the device and its software.",
                self.who.within,
                counted(figures.timestamp_resets, "time", "times")
            ),
            _ => {
                let when = self.when();
                let lost = format!(
                    "{} of {} packets {} lost",
                    grouped(figures.lost),
                    grouped(figures.expected),
                    if figures.lost == 1 { "was" } else { "were" },
                );
                let what = match (figures.lost, figures.late_80 | figures.late_200) {
                    (0, _) => format!("packets came too late{when}"),
                    (_, 0) => format!("{lost}{when}"),
                    (_, _) => format!("{lost}, and others came too late{when}"),
                };
                format!("{what}. {} {}", self.concealed(), self.repair_path())
            }
        };
        format!(
            "{} % of {}'s audio could be played without a flaw (limit {limit} %): {cause}",
            figures.quality_pct.map_or_else(|| "?".to_owned(), short),
            self.who.within,
        )
    }

    fn dead_tail(&self) -> String {
        let (who, report) = (self.who.within, self.report);
        let stopped = format!(
            "{}'s audio stopped {} before the end and did not come back.",
            self.who.first,
            seconds_of_ms(report.tail_ms)
        );
        match self.explanation.blame {
            Some(Blame::Network) => format!(
                "{stopped} {}'s device reports by RTCP that it sent {} after that: look at the network between {who} \
                 and here.",
                self.who.first,
                report
                    .rtcp
                    .sent_by_party
                    .map_or_else(|| "more".to_owned(), |sent| packets(sent.tail_missing)),
            ),
            _ => format!(
                "{stopped} Either {who}'s device stopped sending or its connection was cut: look at the device \
                 and its network first."
            ),
        }
    }

    /// The affected seconds, when they are known: ", between second 12 and second 31".
    fn when(&self) -> String {
        let Some(Affected { first_s, last_s, .. }) = self.explanation.affected else { return String::new() };
        let timeline = &self.report.timeline;
        let rows = u32::try_from(timeline.seconds.len()).unwrap_or(u32::MAX);
        let end_s = rows.saturating_mul(timeline.step_s).saturating_sub(1);
        match (first_s, last_s) {
            (0, last_s) if last_s >= end_s && end_s > 0 => ", from beginning to end".to_owned(),
            (first_s, last_s) if first_s == last_s => format!(", in second {first_s}"),
            _ => format!(", between second {first_s} and second {last_s}"),
        }
    }
}

/// The sentence on a leg whose verdict was removed.
fn withheld(why: Withheld) -> &'static str {
    match why {
        Withheld::NothingCaptured => "There is no audio in this capture, so none is judged.",
        Withheld::OutOfOrder => {
            "This capture is not in the order of time, so nothing in it is judged: sort it with reordercap."
        }
        Withheld::Untimed => {
            "Packets of this capture have no time, so nothing in it is judged: capture with tcpdump or Wireshark."
        }
    }
}

/// A gap from this length on is reported.
const HOLE_MIN_MS: i64 = 300;
