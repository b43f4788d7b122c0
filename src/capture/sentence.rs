//! A verdict's evidence as one sentence for a person.

use sidetone_media::session::{Evidence, Value, Verdict};

/// Says in one sentence why the verdict was given; `None` where there is nothing to explain.
pub fn sentence(evidence: &Evidence) -> Option<String> {
    let get = |name: &str| evidence.measures.iter().find(|measure| measure.name == name);
    let value = |name: &str| get(name).map_or_else(|| "?".to_owned(), |measure| measure.value.to_string());
    let limit = |name: &str| {
        let threshold = get(name).and_then(|measure| measure.threshold.as_ref());
        threshold.map_or_else(|| "?".to_owned(), ToString::to_string)
    };
    let seconds = |name: &str| match get(name).map(|measure| &measure.value) {
        Some(Value::Integer(ms)) => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        Some(Value::Hundredths(ms)) => format!("{}.{} s", ms.0 / 100_000, ms.0 % 100_000 / 10_000),
        _ => "? s".to_owned(),
    };
    let text = match (evidence.rule?, evidence.reason) {
        (Verdict::Ok, "too_little_audio") => {
            format!("{} packets are too few to judge, and nothing wrong was seen", value("received"))
        }
        (Verdict::Ok, _) => return None,
        (Verdict::Unanswered, _) => "the call was never answered".to_owned(),
        (Verdict::NoInboundMedia, _) => format!(
            "{} packets arrived in the {} in which the caller should have been heard",
            value("received_after_answer"),
            seconds("receive_expected_ms")
        ),
        (Verdict::NoOutboundMedia, _) => format!(
            "{} packets were sent in the {} in which the caller should have heard somebody",
            value("sent_after_answer"),
            seconds("send_expected_ms")
        ),
        (Verdict::WrongAdvertisedAddress, "rejected_source") => format!(
            "{} packets came from {}, while SDP says {}",
            value("rejected_source"),
            value("last_rejected_source"),
            value("advertised")
        ),
        (Verdict::WrongAdvertisedAddress, "own_unreachable") => {
            format!("our SDP says {}, which {} cannot reach", value("own_advertised"), value("signalling"))
        }
        (Verdict::WrongAdvertisedAddress, _) => {
            format!("SDP says {}, which leads nowhere from {}", value("advertised"), value("signalling"))
        }
        (Verdict::LossyInbound, _) => format!(
            "{} of {} packets never arrived: {} %, the limit is {} %",
            value("lost"),
            value("expected"),
            value("loss_pct"),
            limit("loss_pct")
        ),
        (Verdict::JitteryInbound, "late") => format!(
            "{} % of the packets came later than a 100 ms buffer can wait, the limit is {} %",
            value("late_pct"),
            limit("late_pct")
        ),
        (Verdict::JitteryInbound, _) => format!(
            "jitter peaked at {} ms and was above {} ms in {} % of the packets",
            value("jitter_ms"),
            limit("jitter_ms"),
            value("high_jitter_pct")
        ),
        (Verdict::UnpacedSender, "clumps") => format!(
            "{} % of the packets were sent back to back, in clumps every {} ms",
            value("back_to_back_pct"),
            value("clump_spacing_ms")
        ),
        (Verdict::UnpacedSender, _) => format!(
            "audio came at {} % of real time, a packet every {} ms",
            value("pace_ratio_pct"),
            value("mean_interval_ms")
        ),
        (Verdict::PtimeMismatch, "timestamps") => {
            format!("packets hold {} ms of audio, and their timestamps say otherwise", value("ptime_ms"))
        }
        (Verdict::PtimeMismatch, _) => {
            format!(
                "packets hold {} ms of audio, SDP says {}",
                value("ptime_ms"),
                value("advertised_ptime_ms")
            )
        }
        (Verdict::DegradedAudio, "dead_tail") => {
            format!("audio stopped {} before the call ended", seconds("tail_ms"))
        }
        (Verdict::DegradedAudio, _) => format!(
            "{} % of the packets were usable ({} flaws in {}), the limit is {} %",
            value("quality_pct"),
            value("flaws"),
            value("received"),
            limit("quality_pct")
        ),
    };
    Some(text)
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
