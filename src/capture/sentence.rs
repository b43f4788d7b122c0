//! A verdict's evidence as one sentence for a person.

use sidetone_media::session::{Evidence, Measure, Value, Verdict};

/// Says in one sentence why the verdict was given; `None` where there is nothing to explain.
pub fn sentence(evidence: &Evidence) -> Option<String> {
    let facts = Facts(evidence);
    Some(match (evidence.rule?, evidence.reason) {
        (Verdict::Ok, "too_little_audio") => {
            format!("{} packets are too few to judge, and nothing wrong was seen", facts.value("received"))
        }
        (Verdict::Ok, _) => return None,
        (Verdict::Unanswered, _) => "the call was never answered".to_owned(),
        (Verdict::NoInboundMedia, _) => format!(
            "{} packets arrived in the {} in which the caller should have been heard",
            facts.value("received_after_answer"),
            facts.seconds("receive_expected_ms")
        ),
        (Verdict::NoOutboundMedia, _) => format!(
            "{} packets were sent in the {} in which the caller should have heard somebody",
            facts.value("sent_after_answer"),
            facts.seconds("send_expected_ms")
        ),
        (Verdict::WrongAdvertisedAddress, reason) => facts.address(reason),
        (Verdict::LossyInbound, _) => format!(
            "{} of {} packets never arrived: {} %, the limit is {} %",
            facts.value("lost"),
            facts.value("expected"),
            facts.value("loss_pct"),
            facts.limit("loss_pct")
        ),
        (Verdict::JitteryInbound | Verdict::UnpacedSender | Verdict::PtimeMismatch, reason) => {
            facts.timing(reason)
        }
        (Verdict::DegradedAudio, "dead_tail") => {
            format!("audio stopped {} before the call ended", facts.seconds("tail_ms"))
        }
        (Verdict::DegradedAudio, _) => format!(
            "{} % of the packets were usable ({} flaws in {}), the limit is {} %",
            facts.value("quality_pct"),
            facts.value("flaws"),
            facts.value("received"),
            facts.limit("quality_pct")
        ),
    })
}

/// The measures of an evidence, as text; one that is missing is a question mark.
struct Facts<'a>(&'a Evidence);

impl Facts<'_> {
    fn address(&self, reason: &str) -> String {
        match reason {
            "rejected_source" => format!(
                "{} packets came from {}, while SDP says {}",
                self.value("rejected_source"),
                self.value("last_rejected_source"),
                self.value("advertised")
            ),
            "own_unreachable" => format!(
                "our SDP says {}, which {} cannot reach",
                self.value("own_advertised"),
                self.value("signalling")
            ),
            "relocated" => {
                format!(
                    "audio came from {}, while SDP says {}",
                    self.value("source"),
                    self.value("advertised")
                )
            }
            _ => format!(
                "SDP says {}, which leads nowhere from {}",
                self.value("advertised"),
                self.value("signalling")
            ),
        }
    }

    fn timing(&self, reason: &str) -> String {
        match reason {
            "late" => format!(
                "{} % of the packets came later than a 100 ms buffer can wait, the limit is {} %",
                self.value("late_pct"),
                self.limit("late_pct")
            ),
            "jitter" => format!(
                "jitter peaked at {} ms and was above {} ms in {} % of the packets",
                self.value("jitter_ms"),
                self.limit("jitter_ms"),
                self.value("high_jitter_pct")
            ),
            "clumps" => format!(
                "{} % of the packets were sent back to back, in clumps every {} ms",
                self.value("back_to_back_pct"),
                self.value("clump_spacing_ms")
            ),
            "pace" => format!(
                "audio came at {} % of real time, a packet every {} ms",
                self.value("pace_ratio_pct"),
                self.value("mean_interval_ms")
            ),
            "timestamps" => {
                format!(
                    "packets hold {} ms of audio, and their timestamps say otherwise",
                    self.value("ptime_ms")
                )
            }
            _ => format!(
                "packets hold {} ms of audio, SDP says {}",
                self.value("ptime_ms"),
                self.value("advertised_ptime_ms")
            ),
        }
    }

    fn find(&self, name: &str) -> Option<&Measure> {
        self.0.measures.iter().find(|measure| measure.name == name)
    }

    fn value(&self, name: &str) -> String {
        self.find(name).map_or_else(|| "?".to_owned(), |measure| measure.value.to_string())
    }

    fn limit(&self, name: &str) -> String {
        let threshold = self.find(name).and_then(|measure| measure.threshold.as_ref());
        threshold.map_or_else(|| "?".to_owned(), ToString::to_string)
    }

    fn seconds(&self, name: &str) -> String {
        match self.find(name).map(|measure| &measure.value) {
            Some(Value::Integer(ms)) => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
            Some(Value::Hundredths(ms)) => format!("{}.{} s", ms.0 / 100_000, ms.0 % 100_000 / 10_000),
            _ => "? s".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use sidetone_media::session::{Session, SessionConfig};
    use sidetone_media::simulate::{Scenario, play};

    use super::*;

    #[test]
    fn every_verdict_says_why() {
        let cases = [
            ("clean duration=5s", None),
            ("clean duration=400ms", Some("20 packets are too few to judge, and nothing wrong was seen")),
            ("unanswered", Some("the call was never answered")),
            (
                "no-inbound",
                Some("0 packets arrived in the 10.0 s in which the caller should have been heard"),
            ),
            (
                "no-outbound",
                Some("0 packets were sent in the 10.0 s in which the caller should have heard somebody"),
            ),
            ("loss-periodic", Some("999 of 2999 packets never arrived: 33.31 %, the limit is 2.00 %")),
            ("unpaced", Some("80.03 % of the packets were sent back to back, in clumps every 100.00 ms")),
            ("slow noise=0", Some("audio came at 80.00 % of real time, a packet every 25.00 ms")),
            ("wrong-ptime", Some("packets hold 30.00 ms of audio, SDP says 20.00")),
            ("degraded", Some("audio stopped 40.0 s before the call ended")),
        ];
        for (text, expected) in cases {
            let scenario: Scenario = text.parse().unwrap();
            let mut session = Session::new(SessionConfig::default());
            let report = play(&scenario, &mut session);
            assert_eq!(sentence(&report.evidence).as_deref(), expected, "{text}");
        }
        let empty = Evidence { rule: Some(Verdict::LossyInbound), ..Evidence::default() };
        assert!(sentence(&empty).is_some_and(|text| text.contains('?')), "no number, no panic");
    }
}
