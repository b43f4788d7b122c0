//! Remarks after the sentence on a verdict: packets missing at the start and the end, flags, foreign
//! addresses.

use crate::session::{Foreign, Report};
use crate::stats::Hundredths;
use crate::verdict::flags::{
    CLIPPED_AUDIO, COMFORT_NOISE_ONLY, FAR_END_DEAF, FAR_END_LOSS, LOCAL_DROP, SILENT_AUDIO,
};
use crate::verdict::phrase::{Name, counted, grouped, packets, seconds_of_ms, short, text};
use crate::verdict::wording::Wording;
use crate::verdict::{Blame, Party, Verdict, not_audio};

/// A sentence on packets from and to foreign addresses; `None` when they are not notable.
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

impl Wording<'_> {
    /// The remarks for the flags that matter to a customer.
    pub(super) fn remarks(&self) -> Vec<String> {
        let flags = &self.explanation.flags;
        let dropped = self.report.figures.local_drop;
        let mut remarks = Vec::new();
        remarks.extend(self.fax());
        remarks.extend(self.uncounted());
        if flags.contains(&COMFORT_NOISE_ONLY) {
            remarks.push(format!(
                "{}'s device sent comfort noise alone and no speech, as a muted microphone does.",
                self.who.first
            ));
        }
        remarks.extend(not_audio::remark(self.report, self.who.within));
        remarks.extend(self.inferred());
        remarks.extend(self.heard());
        remarks.extend(self.unauthenticated());
        // The sentence on a wrong address already covers this.
        if self.report.evidence.reason != "rejected_source" {
            remarks.extend(foreign_sentence(self.report, self.party));
        }
        if flags.contains(&FAR_END_DEAF) {
            remarks.push(format!(
                "{}'s device reports by RTCP that it receives none of the packets sent to it.",
                self.who.first
            ));
        }
        let far_end_loss = self.report.rtcp.far_end.as_ref().and_then(|far_end| far_end.loss_pct);
        if let (true, Some(loss)) = (flags.contains(&FAR_END_LOSS), far_end_loss) {
            remarks.push(format!(
                "In the other direction, {}'s device reports by RTCP that it lost {} % of what was sent to it.",
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

    /// The datagrams of a fax, which no rule judges.
    fn fax(&self) -> Option<String> {
        let fax = self.report.fax?;
        let missing = match fax.missing {
            0 => String::new(),
            missing => format!("; {} never came", counted(missing, "number", "numbers")),
        };
        Some(format!(
            "A fax (T.38) came from {} in {} and went to it in {}{missing}. These are counted and not judged.",
            self.who.within,
            counted(fax.received, "datagram", "datagrams"),
            grouped(fax.sent),
        ))
    }

    /// SRTP packets with wrong tags beside audio that arrived.
    fn unauthenticated(&self) -> Option<String> {
        let failed = self.report.counters.srtp_failed;
        // The sentence on silence already covers them.
        (failed > 0 && self.report.verdict != Some(Verdict::NoInboundMedia)).then(|| {
            format!(
                "{} that could not be authenticated (SRTP) came too, and {} refused.",
                packets(failed),
                if failed == 1 { "was" } else { "were" }
            )
        })
    }

    /// How the clock was inferred when no SDP announced it.
    fn inferred(&self) -> Option<String> {
        let report = self.report;
        let clock = report.clock_rate.filter(|_| report.is_clock_inferred)?;
        Some(format!(
            "No SDP says what {} sent; by its timestamps it is audio at {} Hz.",
            self.who.within,
            grouped(clock.hz().into())
        ))
    }

    /// The result of decoding payloads, when it does not match a conversation.
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
                "The packets carry silence: {heard} ({} of audio were listened to, one packet in four). Either {}'s \
                 microphone is muted or broken, or the equipment that sends the packets gets no audio itself.",
                seconds_of_ms(i64::try_from(audio.looked_at_ms).unwrap_or(i64::MAX)),
                self.who.within
            ));
        }
        let clipped = audio.clipped_share_pct.filter(|_| flags.contains(&CLIPPED_AUDIO))?;
        Some(format!(
            "{}'s audio is overdriven: its loudest parts are cut off in {} % of the packets with sound. Set the microphone or the gateway to a lower level.",
            self.who.first,
            short(clipped)
        ))
    }
}
