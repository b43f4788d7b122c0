//! Exact decimals with two places, the form of the figures in the record.

use std::fmt;

/// A decimal number with two places, stored as hundredths; `2096` is 20.96.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hundredths(pub i64);

impl Hundredths {
    /// The whole number `value`.
    pub const fn from_integer(value: i64) -> Self {
        Hundredths(value.saturating_mul(100))
    }

    /// `numerator / denominator` with two places, halves rounded to even; `None` for a denominator of zero.
    pub fn ratio(numerator: i128, denominator: i128) -> Option<Self> {
        let numerator = numerator.checked_mul(100)?;
        // Almost every figure fits into 64 bits, and a division of twice the width takes ten times as long.
        if let (Ok(numerator), Ok(denominator)) = (u64::try_from(numerator), u32::try_from(denominator)) {
            return divide_small(numerator, denominator);
        }
        i64::try_from(divide_half_even(numerator, denominator)?).ok().map(Hundredths)
    }

    /// `us` microseconds as milliseconds.
    pub fn millis_from_us(us: i64) -> Self {
        Hundredths::ratio(i128::from(us), 1000).unwrap_or_default()
    }

    /// The nearest binary floating-point number, for formats that have no decimals.
    #[allow(clippy::cast_precision_loss, reason = "figures stay far below 2^53 hundredths")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 100.0
    }
}

impl fmt::Display for Hundredths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let magnitude = self.0.unsigned_abs();
        f.pad(&format!("{sign}{}.{:02}", magnitude / 100, magnitude % 100))
    }
}

/// `numerator / denominator` as the nearest integer, halves rounded to even; `None` for a denominator of
/// zero.
pub(crate) fn divide_half_even(numerator: i128, denominator: i128) -> Option<i128> {
    let quotient = numerator.checked_div_euclid(denominator)?;
    let remainder = numerator.checked_rem_euclid(denominator)?;
    let doubled = remainder.checked_mul(2)?;
    let up = match doubled.cmp(&denominator.checked_abs()?) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => quotient.rem_euclid(2),
        std::cmp::Ordering::Greater => 1,
    };
    quotient.checked_add(if denominator < 0 { -up } else { up })
}

/// Like [`divide_half_even`], for numbers that are not negative.
fn divide_small(numerator: u64, denominator: u32) -> Option<Hundredths> {
    let denominator = u64::from(denominator);
    let quotient = numerator.checked_div(denominator)?;
    let doubled = numerator % denominator * 2;
    let up = doubled > denominator || (doubled == denominator && quotient % 2 == 1);
    i64::try_from(quotient + u64::from(up)).ok().map(Hundredths)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn small_numbers_are_divided_as_large_ones(
            numerator in prop_oneof![0_u64..100_000, any::<u64>()],
            denominator in prop_oneof![0_u32..100, any::<u32>()],
        ) {
            let expected = divide_half_even(numerator.into(), denominator.into());
            let expected = expected.and_then(|value| i64::try_from(value).ok()).map(Hundredths);
            prop_assert_eq!(divide_small(numerator, denominator), expected);
        }
    }

    #[test]
    fn halves_go_to_the_even_neighbour() {
        let cases: &[(i128, i128, Option<i64>)] = &[
            (1, 3, Some(33)),
            (2, 3, Some(67)),
            (1, 200, Some(0)),
            (3, 200, Some(2)),
            (5, 200, Some(2)),
            (-1, 200, Some(0)),
            (-3, 200, Some(-2)),
            (3, -200, Some(-2)),
            (-2, 3, Some(-67)),
            (1, 0, None),
            (i128::MAX, 1, None),
        ];
        for (numerator, denominator, expected) in cases {
            let actual = Hundredths::ratio(*numerator, *denominator).map(|value| value.0);
            assert_eq!(actual, *expected, "{numerator}/{denominator}");
        }
    }

    #[test]
    fn text_has_two_places() {
        let cases =
            [(0, "0.00"), (5, "0.05"), (2096, "20.96"), (-5, "-0.05"), (-123, "-1.23"), (10000, "100.00")];
        for (hundredths, text) in cases {
            assert_eq!(Hundredths(hundredths).to_string(), text);
        }
        assert_eq!(format!("{:>7}", Hundredths(450)), "   4.50");
        assert!((Hundredths(2096).as_f64() - 20.96).abs() < 1e-9);
    }
}
