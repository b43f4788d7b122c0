//! Numbers as carriers write them, by the settings of the trunk.

use sidetone_model::directory::Trunk;
use sidetone_model::numbering::without_separators;
use sidetone_model::trunk_interop::{InboundNumbers, OutboundNumbers, TrunkInterop};

/// Returns the E.164 form, with its `+`, of a number that a carrier wrote.
///
/// `+` and `00` introduce a country code. A national number gets the trunk's country code.
pub fn from_carrier(interop: &TrunkInterop, written: &str) -> Option<String> {
    let digits = without_separators(written);
    let bare = match digits.strip_prefix('+').or_else(|| digits.strip_prefix("00")) {
        Some(international) => international.to_owned(),
        None => match national(interop, &digits) {
            Some(national) => format!("{}{national}", interop.country_code),
            None => digits,
        },
    };
    let plausible = (1..=DIGITS_MAX).contains(&bare.len()) && bare.bytes().all(|b| b.is_ascii_digit());
    plausible.then(|| format!("+{bare}"))
}

/// Returns the number of a caller in E.164 form if the trunk has a country and the number is long enough;
/// else the number as the carrier wrote it.
pub fn caller_from_carrier(trunk: &Trunk, written: String) -> String {
    if trunk.interop.country_code.is_empty() {
        return written;
    }
    let is_long_enough = |number: &String| number.len() > SUBSCRIBER_LEN_MIN;
    from_carrier(&trunk.interop, &written).filter(is_long_enough).unwrap_or(written)
}

/// Returns a number as the carrier of a trunk wants it. A short number has no `+` and stays as dialled.
pub fn to_carrier(interop: &TrunkInterop, number: &str) -> String {
    let Some(bare) = number.strip_prefix('+') else { return number.to_owned() };
    let of_country = bare.strip_prefix(&interop.country_code).filter(|_| !interop.country_code.is_empty());
    match (interop.outbound_numbers, of_country) {
        (OutboundNumbers::E164, _) => number.to_owned(),
        (OutboundNumbers::Digits, _) => bare.to_owned(),
        (OutboundNumbers::National, Some(national)) => format!("{}{national}", interop.national_prefix),
        (OutboundNumbers::National, None) | (OutboundNumbers::Prefixed, _) => format!("00{bare}"),
    }
}

/// Returns the part after the national prefix if the digits are a national number.
fn national<'a>(interop: &TrunkInterop, digits: &'a str) -> Option<&'a str> {
    if interop.country_code.is_empty() {
        return None;
    }
    let prefix = Some(interop.national_prefix.as_str()).filter(|prefix| !prefix.is_empty());
    let after_prefix = prefix.and_then(|prefix| digits.strip_prefix(prefix));
    match interop.inbound_numbers {
        InboundNumbers::International => after_prefix.filter(|_| !digits.starts_with(&interop.country_code)),
        InboundNumbers::National => Some(after_prefix.unwrap_or(digits)),
    }
}

/// Most digits of an E.164 number (ITU-T E.164 §6).
const DIGITS_MAX: usize = 15;
/// Fewest digits of a subscriber's number; shorter ones are service codes.
const SUBSCRIBER_LEN_MIN: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    fn interop(country: &str, prefix: &str, inbound: InboundNumbers) -> TrunkInterop {
        TrunkInterop {
            country_code: country.to_owned(),
            national_prefix: prefix.to_owned(),
            inbound_numbers: inbound,
            ..TrunkInterop::default()
        }
    }

    #[test]
    fn numbers_are_read_as_the_carrier_writes_them() {
        use InboundNumbers::{International, National};
        let plain = TrunkInterop::default();
        let (britain, bare) = (interop("44", "0", International), interop("44", "0", National));
        let (italy, america) = (interop("39", "", National), interop("1", "1", National));
        let american = interop("1", "1", International);
        let cases = [
            (&plain, "+442071230000", Some("+442071230000")),
            (&plain, "0044 20 7123-0000", Some("+442071230000")),
            (&plain, "442071230000", Some("+442071230000")),
            (&plain, "02071230000", Some("+02071230000")),
            (&britain, "02071230000", Some("+442071230000")),
            (&britain, "(020) 7123-0000", Some("+442071230000")),
            (&britain, "442071230000", Some("+442071230000")),
            (&britain, "0033140000000", Some("+33140000000")),
            (&britain, "+33140000000", Some("+33140000000")),
            (&bare, "2071230000", Some("+442071230000")),
            (&bare, "02071230000", Some("+442071230000")),
            (&bare, "00442071230000", Some("+442071230000")),
            (&italy, "0612345678", Some("+390612345678")),
            (&america, "4155550100", Some("+14155550100")),
            (&america, "14155550100", Some("+14155550100")),
            (&american, "14155550100", Some("+14155550100")),
            (&britain, "anonymous", None),
            (&britain, "", None),
            (&britain, "+1234567890123456", None),
        ];
        for (interop, written, expected) in cases {
            assert_eq!(from_carrier(interop, written).as_deref(), expected, "{written:?} {interop:?}");
        }
    }

    #[test]
    fn numbers_are_written_as_the_carrier_wants_them() {
        use OutboundNumbers::{Digits, E164, National, Prefixed};
        let cases = [
            (E164, "+442071230000", "+442071230000"),
            (Digits, "+442071230000", "442071230000"),
            (Prefixed, "+442071230000", "00442071230000"),
            (National, "+442071230000", "02071230000"),
            (National, "+33140000000", "0033140000000"),
            (National, "112", "112"),
            (Digits, "112", "112"),
        ];
        for (format, number, expected) in cases {
            let britain = interop("44", "0", InboundNumbers::International);
            let interop = TrunkInterop { outbound_numbers: format, ..britain };
            assert_eq!(to_carrier(&interop, number), expected, "{format:?} {number}");
        }
    }
}
