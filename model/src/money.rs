//! Exact amounts: decimals that are never a float and never a JSON number.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An exact decimal with at most eight places, stored as a count of 10⁻⁸.
///
/// *Bounds*: ±92 thousand million; what does not fit is an error, never rounded silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

/// Decimal places of the stored form.
const SCALE: u32 = 8;

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount(0);

    /// An amount from its stored form, a count of 10⁻⁸.
    pub const fn from_scaled(scaled: i64) -> Self {
        Amount(scaled)
    }

    /// The stored form, a count of 10⁻⁸.
    pub const fn scaled(self) -> i64 {
        self.0
    }

    /// The same number as a decimal.
    pub fn decimal(self) -> Decimal {
        Decimal::new(self.0, SCALE)
    }

    /// The text with at least `places` decimals, trailing zeros beyond them dropped, no exponent.
    pub fn to_text(self, places: u32) -> String {
        let mut decimal = self.decimal().normalize();
        if decimal.scale() < places {
            decimal.rescale(places);
        }
        decimal.to_string()
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

/// Why a text or a decimal is no [`Amount`].
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

/// The text is no currency code.
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
    fn writes_at_least_the_scale_of_the_currency() {
        let cases =
            [(0, 2, "0.00"), (1_250_000, 2, "0.0125"), (-250_000_000, 2, "-2.50"), (700_000_000, 0, "7")];
        for (scaled, places, text) in cases {
            assert_eq!(Amount::from_scaled(scaled).to_text(places), text);
        }
    }
}
