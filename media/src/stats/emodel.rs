//! A mean opinion score by the E-model's short form (ITU-T G.107), in addition to the one derived from the
//! quality.
//!
//! Inputs are only what a receiver can measure. Everything else is an assumption that the result states: the
//! default values of G.107 for room, handset and echo, a delay when none was measured, and the codec's
//! impairment and robustness from ITU-T G.113 Appendix I. A codec without published values has no score, and
//! neither has a wideband codec, because this is the narrow-band model. How much delay and how many late
//! packets there are depends on the phone, so the score is the mean of two assumed phones.

use crate::stats::decimal::Hundredths;
use crate::stats::figures::{EModel, Figures, PhoneRating};
use crate::stats::players::{LONG_BUFFER_MS, SHORT_BUFFER_MS};

/// The score of audio in the codec that SDP calls `name`; `round_trip_ms` is RTCP's, if it was measured.
///
/// `heard` counts the audio packets of the encodings whose names match. `None` without enough packets, for
/// codecs without published values, and when fewer than nine in ten packets use the codec, because one
/// codec's values do not apply to another.
pub fn e_model(
    figures: &Figures,
    name: &str,
    heard: impl Fn(&dyn Fn(&str) -> bool) -> u64,
    round_trip_ms: Option<Hundredths>,
) -> Option<EModel> {
    let codec = CODECS.iter().find(|codec| codec.is(name))?;
    let of_codec = heard(&|name| codec.is(name));
    let of_any = figures.audio.saturating_add(figures.others);
    if of_codec.saturating_mul(100) < of_any.saturating_mul(OF_CODEC_MIN_PCT) {
        return None;
    }
    if !figures.enough || figures.expected == 0 {
        return None;
    }
    let network_ms = round_trip_ms.map_or(NETWORK_MS, |round_trip| round_trip.as_f64().max(0.0) / 2.0);
    let packet_ms = figures.ptime_ms.map_or(20.0, Hundredths::as_f64);
    let before_ms = network_ms + packet_ms;
    let sums = &figures.sums;
    let phones = [
        phone(codec, figures, before_ms, (SHORT_BUFFER_MS, figures.late_80, sums.late_80_runs))?,
        phone(codec, figures, before_ms, (LONG_BUFFER_MS, figures.late_200, sums.late_200_runs))?,
    ];
    let scores = phones.iter().map(|phone| score(phone.rating.as_f64()));
    Some(EModel {
        mos: hundredths(scores.sum::<f64>() / 2.0),
        codec: codec.name,
        impairment: codec.impairment,
        robustness: codec.robustness,
        is_delay_measured: round_trip_ms.is_some(),
        phones,
    })
}

/// The result for a phone with this buffer, which had to conceal `late` late packets in `late_runs` runs.
fn phone(
    codec: &Codec,
    figures: &Figures,
    before_ms: f64,
    (buffer_ms, late, late_runs): (u32, u64, u64),
) -> Option<PhoneRating> {
    let bad = figures.lost.saturating_add(late).min(figures.expected);
    let effective_loss_pct = Hundredths::ratio(i128::from(bad) * 100, i128::from(figures.expected))?;
    let burst_ratio = burst_ratio(figures, late, late_runs);
    let delay_ms = (before_ms + f64::from(buffer_ms)).min(DELAY_MAX_MS);
    let loss = effective_loss_pct.as_f64();
    let impairment = f64::from(codec.impairment);
    // G.107 (7-29), the effective equipment impairment factor.
    let robust = loss / burst_ratio.as_f64() + codec.robustness.as_f64();
    let equipment = impairment + (95.0 - impairment) * loss / robust;
    let rating = (R_DEFAULT - delay_impairment(delay_ms) - equipment).clamp(0.0, R_DEFAULT);
    Some(PhoneRating {
        buffer_ms,
        rating: hundredths(rating),
        effective_loss_pct,
        burst_ratio,
        delay_ms: hundredths(delay_ms),
    })
}

/// The mean opinion score of a rating (G.107 Annex B), between 1.0 and 4.5.
fn score(rating: f64) -> f64 {
    let score = 1.0 + 0.035 * rating + 0.000_007 * rating * (rating - 60.0) * (100.0 - rating);
    score.clamp(1.0, 4.5)
}

/// Mean length of a run of lost or late packets, relative to `1 / (1 − p)`, the value of random loss (G.107
/// §7.5).
fn burst_ratio(figures: &Figures, late: u64, late_runs: u64) -> Hundredths {
    let one = Hundredths::from_integer(1);
    let missing = figures.lost.saturating_add(figures.local_drop);
    let bad = missing.saturating_add(late).min(figures.expected);
    let good = figures.expected.saturating_sub(bad);
    let loss_runs: u64 = figures.loss_runs.iter().map(|count| u64::from(*count)).sum();
    let runs = loss_runs.saturating_add(late_runs);
    let ratio = Hundredths::ratio(
        i128::from(bad) * i128::from(good),
        i128::from(runs) * i128::from(figures.expected),
    );
    ratio.unwrap_or(one).clamp(one, BURST_RATIO_MAX)
}

/// The delay impairment Id of the short form, for a delay from mouth to ear in milliseconds.
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

impl Codec {
    fn is(&self, name: &str) -> bool {
        self.names.iter().any(|known| name.eq_ignore_ascii_case(known))
    }
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

/// Percentage of packets that must use the codec whose values are applied.
const OF_CODEC_MIN_PCT: u64 = 90;
/// R of the short form without any impairment.
const R_DEFAULT: f64 = 93.2;
/// One-way network delay that is assumed when RTCP did not measure it.
const NETWORK_MS: f64 = 30.0;
/// Above this delay R is always 0.
const DELAY_MAX_MS: f64 = 1_000.0;
/// The model is not published for higher ratios.
const BURST_RATIO_MAX: Hundredths = Hundredths(800);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Sums;

    /// Ten thousand packets: `lost` missing in runs of one, and `late` too late for both phones.
    fn figures(lost: u32, late: u64) -> Figures {
        let mut loss_runs = [0; 10];
        loss_runs[0] = lost;
        Figures {
            expected: 10_000,
            received: 10_000 - u64::from(lost),
            lost: lost.into(),
            enough: true,
            loss_runs,
            late_80: late,
            late_200: late,
            sums: Sums { late_80_runs: late, late_200_runs: late, ..Sums::default() },
            ..Figures::default()
        }
    }

    /// The score when all audio uses one codec.
    fn score_of(figures: &Figures, name: &str, round_trip_ms: Option<Hundredths>) -> Option<EModel> {
        e_model(figures, name, |_| figures.received, round_trip_ms)
    }

    #[test]
    fn one_codecs_values_say_nothing_of_another() {
        let figures = Figures { audio: 900, others: 100, ..figures(0, 0) };
        let score =
            |packets| e_model(&figures, "PCMU", |is_one| if is_one("PCMA") { packets } else { 0 }, None);
        assert!(score(900).is_some());
        assert_eq!(score(899), None);
        assert_eq!(e_model(&figures, "PCMU", |is_one| u64::from(is_one("G722")) * 1_000, None), None);
    }

    #[test]
    fn known_points_of_the_model() {
        // (codec, lost of 10,000, late, round trip in ms, R of both phones, score)
        let cases = [
            ("PCMU", 0, 0, None, [9_008, 7_920], 417),
            ("pcma", 0, 0, Some(60), [9_008, 7_920], 417),
            ("PCMU", 0, 0, Some(0), [9_080, 8_322], 425),
            ("PCMU", 500, 0, None, [7_430, 6_342], 353),
            ("PCMU", 250, 250, None, [7_430, 6_342], 353),
            ("G729", 0, 0, None, [7_908, 6_820], 375),
            ("PCMU", 0, 0, Some(500), [6_580, 4_972], 298),
        ];
        for (codec, lost, late, round_trip, ratings, score) in cases {
            let round_trip = round_trip.map(Hundredths::from_integer);
            let found = score_of(&figures(lost, late), codec, round_trip).unwrap();
            let name = format!("{codec}, {lost} lost, {late} late, {round_trip:?}");
            let near = |phone: &PhoneRating, rating: i64| (phone.rating.0 - rating).abs() <= 2;
            assert!(
                found.phones.iter().zip(ratings).all(|(phone, rating)| near(phone, rating)),
                "{name}: {found:?}"
            );
            assert!((found.mos.0 - score).abs() <= 1, "{name}: {}", found.mos);
            assert_eq!(found.is_delay_measured, round_trip.is_some(), "{name}");
        }
    }

    #[test]
    fn each_phone_is_rated_by_what_came_too_late_for_it() {
        let figures = Figures { late_200: 0, ..figures(0, 500) };
        let [short, long] = score_of(&figures, "PCMU", None).unwrap().phones;
        assert_eq!((short.buffer_ms, short.effective_loss_pct), (80, Hundredths(500)));
        assert_eq!((long.buffer_ms, long.effective_loss_pct), (200, Hundredths(0)));
    }

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(score_of(&figures(0, 0), "opus", None), None);
        assert_eq!(score_of(&figures(0, 0), "G722", None), None, "wideband");
        assert_eq!(score_of(&Figures { enough: false, ..figures(0, 0) }, "PCMU", None), None);
        let all = score_of(&figures(9_999, 9_999), "PCMU", Some(Hundredths(i64::MAX))).unwrap();
        assert!((100..=450).contains(&all.mos.0) && all.phones.iter().all(|phone| phone.rating.0 >= 0));
    }

    #[test]
    fn bursts_are_worse_than_single_losses() {
        let single = figures(300, 0);
        let mut loss_runs = [0; 10];
        loss_runs[2] = 100;
        let burst = Figures { loss_runs, ..single.clone() };
        let score = |figures: &Figures| score_of(figures, "PCMU", None).unwrap();
        assert!(score(&burst).mos < score(&single).mos);
        let ratio = |figures: &Figures| score(figures).phones[0].burst_ratio;
        assert_eq!(ratio(&burst), Hundredths(291));
        assert_eq!(ratio(&single), Hundredths(100));
        let late = figures(0, 300);
        let runs = Sums { late_80_runs: 100, ..late.sums };
        assert_eq!(ratio(&Figures { sums: runs, ..late }), Hundredths(291));
    }
}
