//! Verdicts in sentences that a support person can read to a customer: what happened, when, and who acts.
//!
//! No word of the trade stands without its meaning, and every number beside what is normal.

use crate::session::{Foreign, Report};
use crate::stats::Hundredths;
use crate::verdict::flags::{
    CLIPPED_AUDIO, COMFORT_NOISE_ONLY, FAR_END_DEAF, FAR_END_LOSS, LOCAL_DROP, SILENT_AUDIO,
};
use crate::verdict::rules::TOO_LITTLE_AUDIO;
use crate::verdict::{Affected, Blame, Explanation, Party, Verdict, not_audio};

/// The sentences on `report`, as far as `explanation` has been made.
pub(super) fn sentence(report: &Report, explanation: &Explanation, party: Party) -> String {
    let teller = Teller { report, explanation, party, who: Name::of(party) };
    let mut text = teller.verdict();
    for remark in teller.remarks() {
        text.push(' ');
        text.push_str(&remark);
    }
    text
}

/// What came from, and went to, addresses that are not the party's; `None` when that is not worth a word.
pub fn foreign_sentence(report: &Report, party: Party) -> Option<String> {
    let Name { within: who, .. } = Name::of(party);
    let foreign = report.foreign.filter(Foreign::is_notable)?;
    let source = text(foreign.source);
    let refused = match foreign.rejected_packets {
        0 => String::new(),
        count => {
            format!(" {} from there {} refused.", packets(count), if count == 1 { "was" } else { "were" })
        }
    };
    let taken = match (foreign.taken_back, foreign.accepted_packets, foreign.sent_packets) {
        (0, ..) => String::new(),
        (_, accepted, sent) => format!(
            " For a time that address was taken for {who}'s: {} from there {} heard, and {} of ours went there.",
            packets(accepted),
            if accepted == 1 { "was" } else { "were" },
            packets(sent),
        ),
    };
    Some(format!("Packets came from {source}, which is not {who}'s address for audio.{refused}{taken}"))
}

/// How a party is called within a sentence, and at its beginning.
#[derive(Clone, Copy)]
struct Name {
    within: &'static str,
    first: &'static str,
}

impl Name {
    fn of(party: Party) -> Name {
        let (within, first) = match party {
            Party::Called => ("the called party", "The called party"),
            Party::Caller => ("the caller", "The caller"),
            Party::Sender => ("the sender", "The sender"),
            Party::Unnamed => ("this party", "This party"),
        };
        Name { within, first }
    }
}

/// One leg, put into words.
struct Teller<'a> {
    report: &'a Report,
    explanation: &'a Explanation,
    party: Party,
    who: Name,
}

impl Teller<'_> {
    fn verdict(&self) -> String {
        let Name { within: who, .. } = self.who;
        if let Some(sentence) = not_audio::sentence(self.report, who, &self.when(), &self.repair_path()) {
            return sentence;
        }
        match (self.report.verdict, self.report.evidence.reason) {
            (None, _) => {
                format!("No audio was ever agreed upon with {who}, so there is nothing to judge.")
            }
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
        let missing = match (figures.lost, figures.loss_pct) {
            (0, _) => "none was lost".to_owned(),
            (lost, Some(loss)) => format!(
                "{} lost ({} %; below {} % it is hardly heard)",
                counted(lost, "was", "were"),
                short(loss),
                short(self.report.thresholds.loss_pct)
            ),
            (lost, None) => format!("{} lost", counted(lost, "was", "were")),
        };
        let evenly = figures.jitter_ms.map_or_else(String::new, |jitter| self.evenness(jitter));
        format!(
            "Nothing was wrong with {who}'s audio where it was measured: of {} packets {missing}{evenly}. \
             What happens to it after that point cannot be seen from here.",
            grouped(figures.expected)
        )
    }

    /// How evenly a good stream arrived.
    fn evenness(&self, jitter: Hundredths) -> String {
        let limit = self.report.thresholds.jitter_ms;
        let rest = if jitter < limit {
            format!("below {} ms nobody hears it", short(limit))
        } else {
            format!("{} ms or more, but too rarely to be heard", short(limit))
        };
        format!(", and their delay varied by {} ms at most ({rest})", short(jitter))
    }

    fn too_little(&self) -> String {
        let (who, received) = (self.who.within, self.report.figures.received);
        match received {
            0 if self.report.facts.only_listens => format!(
                "The SDP of the call has {who} listen only (recvonly), so no audio was expected from {who} and there is \
                 nothing to judge."
            ),
            0 => format!(
                "The call was too short, or on hold for too long, for audio from {who} to be missed, so there is \
                 nothing to judge."
            ),
            _ => format!(
                "Only {} of {who}'s audio arrived, which is too little to judge; nothing was wrong with what came.",
                packets(received)
            ),
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
            Some(Blame::Network) if refused > 0 => format!(
                "{unheard} {} sent to {who} came back as undeliverable: the connection between {who} and here must \
                 be checked, firewalls first.",
                packets(refused)
            ),
            Some(Blame::Network) => format!(
                "{unheard} {who_first}'s device reports that it did send, so the audio was lost on the way: the \
                 firewalls and routers between {who} and here must be checked.",
                who_first = self.who.first,
            ),
            _ => format!(
                "{unheard} Either {who}'s device sent nothing, or a firewall in {who}'s own network blocked it: that \
                 is where to look first."
            ),
        }
    }

    fn unsent(&self) -> String {
        let (who, report) = (self.who.first, self.report);
        let sent = match report.counters.sent_after_answer {
            0 => "no audio was".to_owned(),
            1 => "only 1 packet was".to_owned(),
            sent => format!("only {} packets were", grouped(sent)),
        };
        format!(
            "{who} heard nothing: {sent} sent to them during the {} for which it was expected. Either the other \
             party's audio never reached us, or the fault is ours: look at the other party's side of this call first.",
            seconds_of_ms(report.send_expected_ms),
        )
    }

    fn address(&self, reason: &str) -> String {
        let (who, report) = (self.who.within, self.report);
        let advertised = text(report.advertised);
        match reason {
            "rejected_source" => format!(
                "{} {} came from {} instead of {advertised}, the address that {who}'s device had announced, and \
                 were refused. {who_first}'s device or router must announce its real address.",
                self.unheard(),
                packets(report.counters.rejected_source),
                text(report.rejected_source),
                who_first = self.who.first,
            ),
            "own_unreachable" => format!(
                "{} We had announced {} as our address for audio, which cannot be reached from {}, where {who} \
                 is. Our switch must be told its public address.",
                self.unheard(),
                text(report.own_advertised),
                text(report.signalling),
            ),
            "icmp_unreachable" => format!(
                "{} {who_first}'s device had announced {advertised} for its audio, but nothing listened there: {} \
                 came back as undeliverable. {who_first}'s device should be restarted, and its firewall checked.",
                self.unheard(),
                packets(report.counters.unreachable),
                who_first = self.who.first,
            ),
            "blackhole" => self.blackhole(),
            "relocated" => format!(
                "{who_first}'s device had announced {advertised} for its audio, which came from {} instead. It was \
                 found there all the same, so {who} could be heard; the device or its router must announce its real \
                 address.",
                text(report.source),
                who_first = self.who.first,
            ),
            _ => format!(
                "{} {who_first}'s device had announced {advertised} for its audio, an address that cannot be \
                 reached from outside its own network. {who_first}'s device or router must announce its \
                 public address.",
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
            "{} could be heard, but heard nothing for {} ({} % of the time): our audio went to {}, the address that \
             {}'s device had announced, which leads nowhere. The device or its router must announce its public \
             address.",
            self.who.first,
            seconds_of_ms(facts.blackhole_us / 1000),
            share.map_or_else(|| "?".to_owned(), short),
            text(report.sent_to),
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
            "{} of the {} packets of {}'s audio ({} %) were lost on the way here{}; from {} % on, words are \
             cut off.{gap} {}",
            grouped(figures.lost),
            grouped(figures.expected),
            self.who.within,
            figures.loss_pct.map_or_else(|| "?".to_owned(), short),
            self.when(),
            short(limit),
            self.repair_path(),
        )
    }

    fn jittery(&self, reason: &str) -> String {
        let (figures, limits) = (&self.report.figures, &self.report.thresholds);
        let (sums, who) = (&figures.sums, self.who.within);
        if reason == "late" {
            return format!(
                "{} of the {} packets of {who}'s audio arrived more than {} ms late{}. {} {}",
                grouped(sums.late_count),
                grouped(figures.received),
                short(limits.late_ms),
                self.when(),
                self.concealed(),
                self.repair_path(),
            );
        }
        format!(
            "{}'s audio arrived unevenly{}: the delay varied (jitter) by up to {} ms, and by {} ms or more in \
             {} % of the packets. {} {}",
            self.who.first,
            self.when(),
            figures.jitter_ms.map_or_else(|| "?".to_owned(), short),
            short(limits.jitter_ms),
            percent(sums.jitter_high_count, sums.jitter_count),
            self.concealed(),
            self.repair_path(),
        )
    }

    /// What phones with a small and with a large buffer had to conceal because packets came too late.
    fn concealed(&self) -> String {
        let figures = &self.report.figures;
        format!(
            "A phone with a buffer of 80 ms would have had to conceal {} of {} packets, one of 200 ms {}.",
            none_or(figures.late_80.min(figures.received)),
            grouped(figures.received),
            none_or(figures.late_200.min(figures.received)),
        )
    }

    /// Who mends a path that loses or delays.
    fn repair_path(&self) -> String {
        match self.explanation.blame {
            Some(Blame::Us) => {
                "Our own machine dropped at least as many because it was overloaded: that must be \
                mended first."
                    .to_owned()
            }
            _ => format!(
                "The network between {} and here must be repaired: a full internet line or poor Wi-Fi is the \
                 usual cause.",
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
                 the packets came right behind another. {} The device must be repaired: its software, or the power \
                 saving of its Wi-Fi.",
                self.who.first,
                spacing.map_or_else(|| "?".to_owned(), short),
                short(normal),
                percent(sums.short_gap_count, sums.gap_count),
                self.concealed(),
            );
        }
        let (pace, effect) = if sums.media_sum_us < sums.gap_sum_us {
            ("too slowly", "the audio had gaps")
        } else {
            ("too fast", "parts of the audio were dropped")
        };
        format!(
            "{}'s device sent its audio {pace}, at {} the speed of speech (a packet every {} ms instead of \
             every {} ms), so {effect}. The device or its software must be repaired, not the network.",
            self.who.first,
            speed(sums.media_sum_us, sums.gap_sum_us),
            figures.mean_interval_ms.map_or_else(|| "?".to_owned(), short),
            short(normal),
        )
    }

    fn ptime(&self, reason: &str) -> String {
        let (figures, facts) = (&self.report.figures, &self.report.facts);
        let measured = |ms: Option<Hundredths>| ms.map_or_else(|| "?".to_owned(), short);
        let what = match (reason, facts.own_maxptime_ms) {
            ("timestamps", _) => format!(
                "put {} ms of audio into each packet while its time stamps say {} ms",
                measured(figures.payload_ptime_ms),
                measured(figures.ptime_ms)
            ),
            ("maxptime", Some(most)) => format!(
                "put {} ms of audio into each packet, although {most} ms is the most that was allowed",
                measured(figures.ptime_ms)
            ),
            _ => format!(
                "put {} ms of audio into each packet, although {} ms had been announced",
                measured(figures.ptime_ms),
                facts.ptime_ms
            ),
        };
        format!(
            "{}'s device {what}; much equipment plays such audio chopped or at the wrong speed. The packet time in \
             the settings of the device must be corrected, or its software; the network is not the cause.",
            self.who.first
        )
    }

    fn degraded(&self) -> String {
        let report = self.report;
        let figures = &report.figures;
        let limit = short(report.thresholds.quality_pct);
        let cause = match self.explanation.blame {
            Some(Blame::Remote) => format!(
                "the clock of {}'s device jumped {}. The device must be repaired.",
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
            "Only {} % of {}'s audio could be played without a flaw (below {limit} % it is heard): {cause}",
            figures.quality_pct.map_or_else(|| "?".to_owned(), short),
            self.who.within,
        )
    }

    fn dead_tail(&self) -> String {
        let (who, report) = (self.who.within, self.report);
        let stopped = format!(
            "{}'s audio stopped {} before the call ended and never came back.",
            self.who.first,
            seconds_of_ms(report.tail_ms)
        );
        match self.explanation.blame {
            Some(Blame::Network) => format!(
                "{stopped} {}'s device reports that it went on sending: the network between {who} and here cut it \
                 off.",
                self.who.first
            ),
            _ => format!(
                "{stopped} Either {who}'s device stopped sending or its connection was cut: look at the device \
                 and its network first."
            ),
        }
    }

    /// Where the seconds are known: ", between second 12 and second 31".
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

    /// What the flags say, as far as a customer should hear it.
    fn remarks(&self) -> Vec<String> {
        let flags = &self.explanation.flags;
        let dropped = self.report.figures.local_drop;
        let mut remarks = Vec::new();
        if flags.contains(&COMFORT_NOISE_ONLY) {
            remarks.push(format!(
                "But {}'s device sent only marks of silence and no speech: the microphone was probably muted.",
                self.who.within
            ));
        }
        remarks.extend(not_audio::remark(self.report, self.who.within));
        remarks.extend(self.inferred());
        remarks.extend(self.heard());
        // The sentence on a wrong address says so already.
        if self.report.evidence.reason != "rejected_source" {
            remarks.extend(foreign_sentence(self.report, self.party));
        }
        if flags.contains(&FAR_END_DEAF) {
            remarks.push(format!(
                "{}'s device reports that it hears nothing of what is sent to it.",
                self.who.first
            ));
        }
        let far_end_loss = self.report.rtcp.far_end.as_ref().and_then(|far_end| far_end.loss_pct);
        if let (true, Some(loss)) = (flags.contains(&FAR_END_LOSS), far_end_loss) {
            remarks.push(format!(
                "The other way round, {}'s device reports that it lost {} % of what was sent to it.",
                self.who.within,
                short(loss)
            ));
        }
        if flags.contains(&LOCAL_DROP) && self.explanation.blame != Some(Blame::Us) {
            remarks.push(format!(
                "Our own machine dropped {} because it was overloaded.",
                counted(dropped, "more packet", "more packets")
            ));
        }
        remarks
    }

    /// How the clock is known where nobody announced it.
    fn inferred(&self) -> Option<String> {
        let report = self.report;
        let clock = report.clock_rate.filter(|_| report.is_clock_inferred)?;
        Some(format!(
            "No SDP says what {} sent; by its timestamps it is audio at {} Hz.",
            self.who.within,
            grouped(clock.hz().into())
        ))
    }

    /// What was heard in the packets, where that is not what a conversation sounds like.
    fn heard(&self) -> Option<String> {
        let (audio, flags) = (self.report.audio?, &self.explanation.flags);
        if flags.contains(&SILENT_AUDIO) {
            let sounds = Hundredths::from_integer(100).0.saturating_sub(audio.silent_share_pct.0);
            let heard = if sounds <= 0 {
                "nothing can be heard in any of them".to_owned()
            } else {
                format!("nothing can be heard in {} % of them", short(audio.silent_share_pct))
            };
            return Some(format!(
                "But what the packets carry is silence: {heard} ({} of audio were listened to, one packet in four). Either {}'s \
                 microphone is muted or broken, or the equipment that sends the packets gets no audio itself.",
                seconds_of_ms(i64::try_from(audio.looked_at_ms).unwrap_or(i64::MAX)),
                self.who.within
            ));
        }
        let clipped = audio.clipped_share_pct.filter(|_| flags.contains(&CLIPPED_AUDIO))?;
        Some(format!(
            "{}'s audio is overdriven: its loudest parts are cut off in {} % of the packets with sound, which is heard \
             as distortion. The microphone or the gateway must be set to a lower level.",
            self.who.first,
            short(clipped)
        ))
    }
}

fn packets(count: u64) -> String {
    counted(count, "packet", "packets")
}

pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// The number, or the word for none.
fn none_or(number: u64) -> String {
    if number == 0 { "none".to_owned() } else { grouped(number) }
}

/// Digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A decimal without the zeros at its end.
pub(super) fn short(number: Hundredths) -> String {
    let text = number.to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn seconds_of_ms(ms: i64) -> String {
    let tenths = (ms.max(0) + 50) / 100;
    match (tenths / 10, tenths % 10) {
        (1, 0) => "1 second".to_owned(),
        (whole, 0) => format!("{} seconds", grouped(whole.unsigned_abs())),
        (whole, tenth) => format!("{}.{tenth} seconds", grouped(whole.unsigned_abs())),
    }
}

/// `media` over `real` as a speed: "80 % of", or "600 times".
fn speed(media: i64, real: i64) -> String {
    let times = Hundredths::ratio(media.into(), real.into());
    match times {
        Some(times) if times.0 >= 200 => format!("{} times", short(times)),
        _ => {
            let share = Hundredths::ratio(i128::from(media) * 100, real.into());
            format!("{} % of", share.map_or_else(|| "?".to_owned(), short))
        }
    }
}

fn percent(part: u64, whole: u64) -> String {
    Hundredths::ratio(i128::from(part) * 100, whole.into()).map_or_else(|| "?".to_owned(), short)
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "an unknown address".to_owned(), |value| value.to_string())
}

/// A hole from this length on is told: it swallows a word.
const HOLE_MIN_MS: i64 = 300;
