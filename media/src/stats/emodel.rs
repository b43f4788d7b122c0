//! A mean opinion score by the E-model's short form (ITU-T G.107), beside the plain one of the quality.
//!
//! Only what a receiver can measure goes in, everything else is an assumption that the result names: the
//! default values of G.107 for room, handset and echo, a delay where none was measured, and the codec's
//! equipment impairment and robustness as ITU-T G.113 Appendix I publishes them. A codec without published
//! values has no score, nor a wideband one: this is the narrow-band model.

use crate::stats::Figures;
use crate::stats::decimal::Hundredths;
use crate::stats::stream::mos;

/// What a score by the E-model rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EModel {
    /// The score, 1.00 to 4.50.
    pub mos: Hundredths,
    /// The transmission rating R, 0.00 to 93.20.
    pub rating: Hundredths,
    /// The codec whose values were taken, as G.113 names it.
    pub codec: &'static str,
    /// Its equipment impairment factor Ie.
    pub impairment: u32,
    /// Its robustness against packet loss Bpl.
    pub robustness: Hundredths,
    /// Packets that a 100 ms playout buffer would have missed, lost and late together, in percent.
    pub effective_loss_pct: Hundredths,
    /// The burst ratio BurstR: mean loss run against that of random loss; 1.00 to 8.00.
    pub burst_ratio: Hundredths,
    /// Delay from mouth to ear in milliseconds.
    pub delay_ms: Hundredths,
    /// Whether the network's part of the delay was measured by RTCP; otherwise it is taken for 30 ms.
    pub is_delay_measured: bool,
}

/// The score of audio in the codec that SDP calls `name`; the round trip is RTCP's, if it told one.
///
/// `None` without enough packets, and for codecs without published values.
pub fn e_model(figures: &Figures, name: &str, round_trip_ms: Option<Hundredths>) -> Option<EModel> {
    let codec =
        CODECS.iter().find(|codec| codec.names.iter().any(|known| name.eq_ignore_ascii_case(known)))?;
    if !figures.enough || figures.expected == 0 {
        return None;
    }
    let bad = figures.lost.saturating_add(figures.sums.late_count).min(figures.expected);
    let effective_loss_pct = Hundredths::ratio(i128::from(bad) * 100, i128::from(figures.expected))?;
    let burst_ratio = burst_ratio(figures);
    let network_ms = round_trip_ms.map_or(NETWORK_MS, |round_trip| round_trip.as_f64().max(0.0) / 2.0);
    let packet_ms = figures.ptime_ms.map_or(20.0, Hundredths::as_f64);
    let delay_ms = (network_ms + packet_ms + BUFFER_MS).min(DELAY_MAX_MS);
    let loss = effective_loss_pct.as_f64();
    let impairment = f64::from(codec.impairment);
    // G.107 (7-29), the effective equipment impairment factor.
    let robust = loss / burst_ratio.as_f64() + codec.robustness.as_f64();
    let equipment = impairment + (95.0 - impairment) * loss / robust;
    let rating = (R_DEFAULT - delay_impairment(delay_ms) - equipment).clamp(0.0, R_DEFAULT);
    let rating = hundredths(rating);
    Some(EModel {
        mos: mos(rating),
        rating,
        codec: codec.name,
        impairment: codec.impairment,
        robustness: codec.robustness,
        effective_loss_pct,
        burst_ratio,
        delay_ms: hundredths(delay_ms),
        is_delay_measured: round_trip_ms.is_some(),
    })
}

/// Mean length of a loss run against `1 / (1 − p)`, what random loss gives (G.107 §7.5).
fn burst_ratio(figures: &Figures) -> Hundredths {
    let one = Hundredths::from_integer(1);
    let missing = figures.lost.saturating_add(figures.local_drop);
    let received = figures.expected.saturating_sub(missing);
    let runs: u64 = figures.loss_runs.iter().map(|count| u64::from(*count)).sum();
    let ratio = Hundredths::ratio(
        i128::from(missing) * i128::from(received),
        i128::from(runs) * i128::from(figures.expected),
    );
    ratio.unwrap_or(one).clamp(one, BURST_RATIO_MAX)
}

/// Id of the short form, in milliseconds from mouth to ear.
fn delay_impairment(delay_ms: f64) -> f64 {
    0.024 * delay_ms + 0.11 * (delay_ms - 177.3).max(0.0)
}

#[allow(clippy::cast_possible_truncation, reason = "ratings and delays are small")]
fn hundredths(value: f64) -> Hundredths {
    Hundredths((value * 100.0).round() as i64)
}

/// One codec of ITU-T G.113 Appendix I.
struct Codec {
    /// Its encoding names in SDP.
    names: &'static [&'static str],
    name: &'static str,
    impairment: u32,
    robustness: Hundredths,
}

/// Ie and Bpl of G.113 Appendix I, tables I.1 to I.4.
const CODECS: &[Codec] = &[
    Codec {
        names: &["PCMU", "PCMA"],
        name: "G.711 with packet loss concealment",
        impairment: 0,
        robustness: Hundredths(2_510),
    },
    Codec { names: &["G729"], name: "G.729A with VAD", impairment: 11, robustness: Hundredths(1_900) },
    Codec {
        names: &["G723"],
        name: "G.723.1 with VAD, 6.3 kbit/s",
        impairment: 15,
        robustness: Hundredths(1_610),
    },
    Codec { names: &["GSM-EFR"], name: "GSM EFR", impairment: 5, robustness: Hundredths(1_000) },
];

/// R of the short form without any impairment.
const R_DEFAULT: f64 = 93.2;
/// One way through the network where RTCP did not measure it.
const NETWORK_MS: f64 = 30.0;
/// The playout buffer by which packets are late.
const BUFFER_MS: f64 = 100.0;
/// Beyond it R is 0 anyway.
const DELAY_MAX_MS: f64 = 1_000.0;
/// The model is not published for a higher ratio.
const BURST_RATIO_MAX: Hundredths = Hundredths(800);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Sums;

    /// Ten thousand packets of which `lost` are missing in runs of one.
    fn figures(lost: u32, late_count: u64) -> Figures {
        let mut loss_runs = [0; 10];
        loss_runs[0] = lost;
        Figures {
            expected: 10_000,
            received: 10_000 - u64::from(lost),
            lost: lost.into(),
            enough: true,
            loss_runs,
            sums: Sums { late_count, ..Sums::default() },
            ..Figures::default()
        }
    }

    #[test]
    fn known_points_of_the_model() {
        // (codec, lost of 10,000, late, round trip in ms, R, score)
        let cases = [
            ("PCMU", 0, 0, None, 8_960, 433),
            ("pcma", 0, 0, Some(60), 8_960, 433),
            ("PCMU", 0, 0, Some(0), 9_032, 435),
            ("PCMU", 500, 0, None, 7_382, 377),
            ("PCMU", 250, 250, None, 7_382, 377),
            ("G729", 0, 0, None, 7_860, 397),
            ("PCMU", 0, 0, Some(500), 6_312, 326),
        ];
        for (codec, lost, late, round_trip, rating, score) in cases {
            let round_trip = round_trip.map(Hundredths::from_integer);
            let found = e_model(&figures(lost, late), codec, round_trip).unwrap();
            let name = format!("{codec}, {lost} lost, {late} late, {round_trip:?}");
            assert!((found.rating.0 - rating).abs() <= 2, "{name}: R {}", found.rating);
            assert!((found.mos.0 - score).abs() <= 1, "{name}: {}", found.mos);
            assert_eq!(found.is_delay_measured, round_trip.is_some(), "{name}");
        }
    }

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(e_model(&figures(0, 0), "opus", None), None);
        assert_eq!(e_model(&figures(0, 0), "G722", None), None, "wideband");
        assert_eq!(e_model(&Figures { enough: false, ..figures(0, 0) }, "PCMU", None), None);
        let all = e_model(&figures(9_999, 9_999), "PCMU", Some(Hundredths(i64::MAX))).unwrap();
        assert!((100..=450).contains(&all.mos.0) && all.rating.0 >= 0);
    }

    #[test]
    fn bursts_are_worse_than_single_losses() {
        let single = figures(300, 0);
        let mut loss_runs = [0; 10];
        loss_runs[2] = 100;
        let burst = Figures { loss_runs, ..single.clone() };
        let score = |figures: &Figures| e_model(figures, "PCMU", None).unwrap();
        assert!(score(&burst).mos < score(&single).mos);
        assert_eq!(score(&burst).burst_ratio, Hundredths(291));
        assert_eq!(score(&single).burst_ratio, Hundredths(100));
    }
}
