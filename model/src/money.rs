//! Exact amounts: decimals, never floats and never JSON numbers.
//!
//! All arithmetic uses 128-bit integers and is checked: a result that does not fit is `None`, never wrapped
//! and never truncated. A quotient is rounded once, half to even, at the eighth decimal place. `rust_decimal`
//! reads and writes the texts; it is not used for products, because it silently rounds one of more than 96
//! bits.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An exact decimal with at most eight places, stored as a count of 10⁻⁸.
///
/// *Bounds*: ±92 thousand million; what does not fit is an error, never rounded silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = r"^-?\d+(\.\d{1,8})?$", example = "12.50"))]
pub struct Amount(i64);

/// Decimal places of the stored form.
const SCALE: u32 = 8;
/// The stored form of 1.
const ONE: i128 = 100_000_000;

impl Amount {
    /// Zero.
    pub const ZERO: Amount = Amount(0);
    /// One unit; the rate from a currency to itself.
    pub const ONE: Amount = Amount(100_000_000);
    /// The largest amount.
    pub const MAX: Amount = Amount(i64::MAX);

    /// An amount from its stored form, a count of 10⁻⁸.
    pub const fn from_scaled(scaled: i64) -> Self {
        Amount(scaled)
    }

    /// The stored form, a count of 10⁻⁸.
    pub const fn scaled(self) -> i64 {
        self.0
    }

    /// `self · numerator ÷ denominator`, rounded once, half to even; `None` when it does not fit or `denominator`
    /// is 0. The numerator is below 2⁶⁴, so no product leaves 128 bits.
    #[must_use]
    pub fn times(self, numerator: u64, denominator: u64) -> Option<Amount> {
        Self::sum_of_products(&[(self, numerator)], denominator)
    }

    /// `Σ price · quantity ÷ unit`, rounded once at the end, half to even: the amount for several quantities
    /// with prices for the same unit, such as tokens at prices per 1,000,000. `None` when it does not fit or
    /// `unit` is 0.
    #[must_use]
    pub fn sum_of_products(lines: &[(Amount, u64)], unit: u64) -> Option<Amount> {
        let sum = lines.iter().try_fold(0_i128, |sum, (price, quantity)| {
            sum.checked_add(i128::from(price.0).checked_mul(i128::from(*quantity))?)
        })?;
        half_even(sum, i128::from(unit)).map(Amount)
    }

    /// This amount in another currency; `rate` is one unit of this currency in the other. Rounded once, half
    /// to even. `None` when it does not fit.
    #[must_use]
    pub fn converted(self, rate: Amount) -> Option<Amount> {
        half_even(i128::from(self.0).checked_mul(i128::from(rate.0))?, ONE).map(Amount)
    }

    /// The sum; `None` when it does not fit.
    #[must_use]
    pub fn checked_add(self, other: Amount) -> Option<Amount> {
        self.0.checked_add(other.0).map(Amount)
    }

    /// The difference; `None` when it does not fit.
    #[must_use]
    pub fn checked_sub(self, other: Amount) -> Option<Amount> {
        self.0.checked_sub(other.0).map(Amount)
    }

    /// Whether it is below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The same number as a decimal.
    pub fn decimal(self) -> Decimal {
        Decimal::new(self.0, SCALE)
    }

    /// The text with at least `places` decimals, trailing zeros beyond them dropped, no exponent.
    pub fn to_text(self, places: u32) -> String {
        text(self.decimal(), places)
    }
}

fn text(decimal: Decimal, places: u32) -> String {
    let mut decimal = decimal.normalize();
    if decimal.scale() < places {
        decimal.rescale(places);
    }
    decimal.to_string()
}

/// `dividend ÷ divisor` to the nearest integer, a half to the even one; `None` when that is not an `i64` or
/// the divisor is not positive.
fn half_even(dividend: i128, divisor: i128) -> Option<i64> {
    if divisor <= 0 {
        return None;
    }
    let (floor, rest) = (dividend.div_euclid(divisor), dividend.rem_euclid(divisor));
    // `rest` is below `divisor`, which is at most 2⁶⁴, so it can be doubled.
    let up = match (rest * 2).cmp(&divisor) {
        Ordering::Less => false,
        Ordering::Equal => floor % 2 != 0,
        Ordering::Greater => true,
    };
    i64::try_from(floor.checked_add(i128::from(up))?).ok()
}

/// A sum of amounts, wider than a single one: 2⁶⁴ of the largest amount fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Total(i128);

impl Total {
    /// A total from two sums of stored forms: of their quotients by [`Total::PART`] and of their remainders.
    /// A database with 64-bit numbers can add these without overflow, which the plain sum might cause.
    pub const fn from_parts(quotients: i64, remainders: i64) -> Self {
        Total(quotients as i128 * Self::PART as i128 + remainders as i128)
    }

    /// The divisor for [`Total::from_parts`].
    pub const PART: i64 = 1_000_000_000;

    /// The total with `amount` added.
    #[must_use]
    pub const fn plus(self, amount: Amount) -> Self {
        Total(self.0.saturating_add(amount.0 as i128))
    }

    /// The difference.
    #[must_use]
    pub const fn minus(self, other: Total) -> Self {
        Total(self.0.saturating_sub(other.0))
    }

    /// As [`Amount::to_text`].
    pub fn to_text(self, places: u32) -> String {
        match Decimal::try_from_i128_with_scale(self.0, SCALE) {
            Ok(decimal) => text(decimal, places),
            // More than 10⁹ records of the largest amount; still exact, with every decimal place.
            Err(_) => {
                let (sign, digits) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
                let one = ONE.unsigned_abs();
                format!("{sign}{}.{:08}", digits / one, digits % one)
            }
        }
    }
}

impl FromIterator<Amount> for Total {
    fn from_iter<I: IntoIterator<Item = Amount>>(amounts: I) -> Self {
        amounts.into_iter().fold(Total::default(), Total::plus)
    }
}

impl TryFrom<Decimal> for Amount {
    type Error = AmountError;

    fn try_from(decimal: Decimal) -> Result<Self, AmountError> {
        let mut exact = decimal.normalize();
        if exact.scale() > SCALE {
            return Err(AmountError::Places);
        }
        exact.rescale(SCALE);
        i64::try_from(exact.mantissa()).map(Amount).map_err(|_| AmountError::Range)
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    /// Reads `-?\d+(\.\d{1,8})?`; no exponent, no sign but minus, no spaces.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) {
            return Err(AmountError::Text);
        }
        if fraction.len() > SCALE as usize {
            return Err(AmountError::Places);
        }
        Decimal::from_str_exact(text).map_err(|_| AmountError::Range)?.try_into()
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text(0))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Why a text or a decimal is not an [`Amount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// More than eight decimal places.
    #[error("more than 8 decimal places")]
    Places,
    /// Too large to store.
    #[error("too large")]
    Range,
    /// Not of the form `-?digits(.digits)?`.
    #[error("not a decimal number such as 12.50")]
    Text,
}

/// An ISO 4217 alphabetic currency code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[A-Z]{3}$", example = "EUR"))]
pub struct Currency([u8; 3]);

impl Currency {
    /// Decimal places of the currency's minor unit (ISO 4217).
    pub fn places(self) -> u32 {
        match self.as_str() {
            "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI"
            | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
            "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
            "CLF" | "UYW" => 4,
            _ => 2,
        }
    }

    /// The three letters.
    pub fn as_str(&self) -> &str {
        // Three ASCII letters by construction; XXX is "no currency" (ISO 4217).
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        match text.as_bytes() {
            &[a, b, c] if [a, b, c].iter().all(u8::is_ascii_uppercase) => Ok(Currency([a, b, c])),
            _ => Err(CurrencyError),
        }
    }
}

/// The text is not a currency code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an ISO 4217 currency code such as EUR")]
pub struct CurrencyError;

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exact_decimals_only() {
        let cases = [
            ("0", Ok(0)),
            ("25.00", Ok(2_500_000_000)),
            ("-0.00000001", Ok(-1)),
            ("0.000000001", Err(AmountError::Places)),
            ("1e3", Err(AmountError::Text)),
            ("+1", Err(AmountError::Text)),
            (".5", Err(AmountError::Text)),
            ("5.", Err(AmountError::Text)),
            ("", Err(AmountError::Text)),
            ("99999999999999", Err(AmountError::Range)),
        ];
        for (text, scaled) in cases {
            assert_eq!(text.parse::<Amount>().map(Amount::scaled), scaled, "{text}");
        }
    }

    #[test]
    fn quotients_are_rounded_half_to_even() {
        let cases = [
            (5, 2, 2),
            (7, 2, 4),
            (-5, 2, -2),
            (-7, 2, -4),
            (1, 2, 0),
            (3, 2, 2),
            (-1, 2, 0),
            (10, 4, 2),
            (11, 4, 3),
            (-11, 4, -3),
            (7, 60, 0),
            (30, 60, 0),
            (31, 60, 1),
            (90, 60, 2),
        ];
        for (dividend, divisor, quotient) in cases {
            assert_eq!(half_even(dividend, divisor), Some(quotient), "{dividend}/{divisor}");
        }
        assert_eq!(half_even(1, 0), None);
        assert_eq!(half_even(i128::MAX, 1), None);
    }

    #[test]
    fn arithmetic_is_exact_or_nothing() {
        let amount = |text: &str| text.parse::<Amount>().unwrap();
        assert_eq!(amount("0.0120").times(61, 60), Some(amount("0.0122")));
        assert_eq!(amount("0.8").converted(amount("0.92")), Some(amount("0.736")));
        assert_eq!(amount("-0.00000001").converted(amount("0.5")), Some(Amount::ZERO));
        let lines = [(amount("2.5"), 1_000), (amount("10"), 3)];
        assert_eq!(Amount::sum_of_products(&lines, 1_000_000), Some(amount("0.00253")));
        assert_eq!(Amount::MAX.times(u64::MAX, 1), None);
        assert_eq!(Amount::MAX.times(u64::MAX, u64::MAX), Some(Amount::MAX));
        assert_eq!(Amount::MAX.times(1, 0), None);
        assert_eq!(Amount::MAX.converted(Amount::MAX), None);
        assert_eq!(Amount::MAX.checked_add(Amount::from_scaled(1)), None);
        assert_eq!(Amount::from_scaled(i64::MIN).checked_sub(Amount::from_scaled(1)), None);
    }

    #[test]
    fn totals_are_wider_than_amounts() {
        let many = std::iter::repeat_n(Amount::MAX, 3).collect::<Total>();
        assert_eq!(many.to_text(2), "276701161105.64327421");
        let scaled = i64::MAX;
        let parts = Total::from_parts(3 * (scaled / Total::PART), 3 * (scaled % Total::PART));
        assert_eq!(parts, many);
        assert_eq!(Total::default().to_text(2), "0.00");
        let loss = Total::default().minus([Amount::from_scaled(150_000_000)].into_iter().collect());
        assert_eq!(loss.to_text(2), "-1.50");
        let huge = Total(i128::MAX).to_text(2);
        assert_eq!(huge, "1701411834604692317316873037158.84105727");
    }

    #[test]
    fn writes_at_least_the_scale_of_the_currency() {
        let cases =
            [(0, 2, "0.00"), (1_250_000, 2, "0.0125"), (-250_000_000, 2, "-2.50"), (700_000_000, 0, "7")];
        for (scaled, places, text) in cases {
            assert_eq!(Amount::from_scaled(scaled).to_text(places), text);
        }
    }
}
