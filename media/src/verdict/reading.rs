//! Comparisons with thresholds, evaluated in two ways: whether they hold, and how close they are.
//!
//! A condition is written once, generic over [`Reading`]. The verdict evaluates it as a `bool`, which costs
//! one comparison; an explanation evaluates the same condition as a [`Reach`].

use crate::stats::Hundredths;

/// The type to which a condition is evaluated.
pub(super) trait Reading: Copy {
    /// A condition that `holds` or not; `ratio` returns the value reached and the value needed.
    fn condition(holds: bool, ratio: impl FnOnce() -> (i128, i128)) -> Self;

    /// Conditions that must hold together.
    fn all<const N: usize>(conditions: [Self; N]) -> Self;
}

impl Reading for bool {
    #[inline]
    fn condition(holds: bool, _ratio: impl FnOnce() -> (i128, i128)) -> Self {
        holds
    }

    #[inline]
    fn all<const N: usize>(conditions: [Self; N]) -> Self {
        conditions.into_iter().all(|holds| holds)
    }
}

/// How much of its threshold a condition has reached, in hundredths of a percent; at least 100 % exactly when
/// the condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reach(pub(super) Hundredths);

impl Reading for Reach {
    fn condition(holds: bool, ratio: impl FnOnce() -> (i128, i128)) -> Self {
        let (part, whole) = ratio();
        // Rounding down never raises a ratio to its threshold. A threshold of zero has no ratio.
        let part = part.saturating_mul(WHOLE.into());
        let ratio = match (i64::try_from(part), i64::try_from(whole)) {
            // The usual case; a division of twice the width takes ten times as long.
            (Ok(part), Ok(whole)) if whole > 0 => i128::from(part / whole),
            _ => part.checked_div(whole).unwrap_or_default(),
        };
        let (least, most) = if holds { (WHOLE, REACH_MAX) } else { (0, WHOLE - 1) };
        let reached = ratio.clamp(least.into(), most.into());
        Reach(Hundredths(i64::try_from(reached).unwrap_or(least)))
    }

    fn all<const N: usize>(conditions: [Self; N]) -> Self {
        conditions.into_iter().min().unwrap_or(Reach(Hundredths(0)))
    }
}

/// A yes or no: reached fully or not at all.
pub(super) fn given<R: Reading>(holds: bool) -> R {
    R::condition(holds, || (holds.into(), 1))
}

/// A count is at least its threshold.
pub(super) fn reaches<R: Reading>(count: u64, threshold: Hundredths) -> R {
    let (part, whole) = (i128::from(count) * 100, i128::from(threshold.0));
    R::condition(part >= whole, || (part, whole))
}

/// A count is below its threshold; the closer it is, the more is reached.
pub(super) fn falls_short<R: Reading>(count: u64, threshold: Hundredths) -> R {
    let (value, limit) = (i128::from(count) * 100, i128::from(threshold.0));
    // A count of zero reaches any such threshold with the largest value.
    let (part, whole) = if value == 0 { (i128::from(REACH_MAX), 1) } else { (limit, value) };
    R::condition(value < limit, || (part, whole))
}

/// A time in microseconds is at least its threshold in milliseconds.
pub(super) fn lasts<R: Reading>(us: i64, threshold_ms: Hundredths) -> R {
    let (part, whole) = (i128::from(us), i128::from(threshold_ms.0) * 10);
    R::condition(part >= whole, || (part, whole))
}

/// `part` is at least this percentage of `whole`; false when `whole` is zero.
pub(super) fn makes_up<R: Reading>(part: i64, whole: i64, threshold_pct: Hundredths) -> R {
    let (value, limit) = (i128::from(part) * 10_000, i128::from(threshold_pct.0) * i128::from(whole));
    if whole > 0 { R::condition(value >= limit, || (value, limit)) } else { given(false) }
}

/// 100 %, in hundredths of a percent.
const WHOLE: i64 = 10_000;
/// Larger values are reported as this: a hundred times the threshold.
const REACH_MAX: i64 = 100 * WHOLE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reached_tells_how_far_a_condition_is() {
        let threshold = Hundredths(300);
        let cases: [(&str, Reach, i64); 13] = [
            ("a third", reaches(1, threshold), 3_333),
            ("just", reaches(3, threshold), 10_000),
            ("far beyond", reaches(u64::MAX, threshold), REACH_MAX),
            ("a threshold of zero always holds", reaches(0, Hundredths(0)), 10_000),
            ("nothing of a floor", falls_short(0, threshold), REACH_MAX),
            ("two of a floor of three", falls_short(2, threshold), 15_000),
            ("not below itself", falls_short(3, threshold), 9_999),
            ("never below zero", falls_short(0, Hundredths(0)), 9_999),
            ("half the time", lasts(1_500, threshold), 5_000),
            ("two percent of hundred", makes_up(2, 100, Hundredths(200)), 10_000),
            ("nothing of nothing", makes_up(0, 0, Hundredths(0)), 0),
            ("yes", given(true), 10_000),
            ("no", given(false), 0),
        ];
        for (name, reach, expected) in cases {
            assert_eq!(reach.0.0, expected, "{name}");
        }
        let both = [given::<Reach>(true), reaches(1, threshold)];
        assert_eq!(Reach::all(both).0.0, 3_333);
    }
}
