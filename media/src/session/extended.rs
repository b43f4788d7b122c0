//! The extended RTCP reports (RFC 3611) that the party of a leg wants in addition to our reports.

use crate::rtcp::{ExtendedContent, VoipMetrics};
use crate::session::{Session, XrReports};
use crate::time::Micros;

impl Session {
    /// The extended report that the party wants, to accompany the latest report block.
    pub fn report_extended(&mut self, now: Micros) -> ExtendedContent {
        let XrReports { round_trip, summary, voip } = self.wanted_extended();
        if !round_trip && !summary && !voip {
            return ExtendedContent::default();
        }
        let content = self.state.rtcp.report_extended(now);
        ExtendedContent {
            delay: content.delay.filter(|_| round_trip),
            summary: content.summary.filter(|_| summary),
            // Computed every few seconds, and only for a party that wants it.
            voip: if voip { self.voip_metrics(now) } else { None },
            ..content
        }
    }

    fn voip_metrics(&self, now: Micros) -> Option<(u32, VoipMetrics)> {
        let report = self.report(now);
        let metrics = VoipMetrics::of(&report.figures, report.rtcp.round_trip);
        report.ssrc.filter(|_| report.figures.received > 0).map(|ssrc| (ssrc, metrics))
    }

    /// Whether the party answers our reference times.
    pub fn wants_reference_times(&self) -> bool {
        self.wanted_extended().round_trip
    }

    fn wanted_extended(&self) -> XrReports {
        self.state.description.as_ref().map(|description| description.xr).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Delay, SummaryContent};
    use crate::session::{Description, Disposition, Payload, PayloadKind, SessionConfig};
    use crate::stats::Hundredths;
    use crate::time::ClockRate;

    /// A party that wants them receives the answer to its reference time once, and the losses since the last report.
    #[test]
    fn what_the_party_wants_is_reported() {
        let source = ([192, 0, 2, 1], 4_000).into();
        let wish = |round_trip, summary, voip| Description {
            remote: Some(source),
            receive: true,
            send: true,
            payloads: vec![Payload {
                number: 0,
                kind: PayloadKind::Audio,
                clock: ClockRate::HZ_8000,
                bytes_per_ms: Some(8),
                default_ptime_ms: None,
                name: "PCMU".into(),
            }],
            xr: XrReports { round_trip, summary, voip },
            ..Description::default()
        };
        let delay = Some(Delay { ssrc: 9, last_report: 0x0102_0304, delay: 32_768 });
        // Number 30 arrives twice, and 40 ten milliseconds late: two differences of 80 ticks among 58.
        let jitter_ticks = Some([0, 80, 2, 14]);
        let lost = Some((9, SummaryContent { begin: 1, end: 61, lost: 2, duplicates: 1, jitter_ticks }));
        for wants in 0..8 {
            let [round_trip, summary, voip] = [wants & 1 != 0, wants & 2 != 0, wants & 4 != 0];
            let mut session = Session::new(SessionConfig::default());
            session.describe(Micros(0), wish(round_trip, summary, voip));
            for sequence in (1..61_u16).filter(|sequence| ![20, 21].contains(sequence)) {
                let mut datagram = vec![0x80, 0];
                datagram.extend(sequence.to_be_bytes());
                datagram.extend((u32::from(sequence) * 160).to_be_bytes());
                datagram.extend([0, 0, 0, 9]);
                datagram.extend([0xd5; 160]);
                let late_us = if sequence == 40 { 10_000 } else { 0 };
                let at = Micros(i64::from(sequence) * 20_000 + late_us);
                for _ in 0..=u8::from(sequence == 30) {
                    assert_eq!(session.receive(at, source, &datagram), Disposition::Relay);
                }
            }
            // An empty receiver report, and an extended report with a reference time.
            let rtcp = [
                0x80, 201, 0, 1, 0, 0, 0, 9, 0x80, 207, 0, 4, 0, 0, 0, 9, 4, 0, 0, 2, 0, 0, 1, 2, 3, 4, 0, 0,
            ];
            session.receive_rtcp(Micros(1_500_000), ([192, 0, 2, 1], 4_001).into(), &rtcp);
            session.report_block(Micros(2_000_000));
            let content = session.report_extended(Micros(2_000_000));
            assert_eq!(content.delay, delay.filter(|_| round_trip));
            assert_eq!(content.summary, lost.filter(|_| summary));
            let metrics =
                content.voip.map(|(ssrc, metrics)| (ssrc, metrics.loss_pct, metrics.r_factor.is_some()));
            assert_eq!(metrics, voip.then_some((9, Hundredths(333), true)));
            assert_eq!(session.wants_reference_times(), round_trip);
            session.report_block(Micros(7_000_000));
            let later = ExtendedContent { voip: None, ..session.report_extended(Micros(7_000_000)) };
            assert_eq!(later, ExtendedContent::default());
        }
    }
}
