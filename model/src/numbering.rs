//! Dialled digits as E.164 numbers (ITU-T E.164), by the numbering settings of the caller's organisation.

/// How an organisation writes phone numbers, so that their E.164 form can be built (ITU-T E.164 §6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// The digits of its country code, such as `44`; without them national numbers are not recognised.
    pub country_code: Option<String>,
    /// The prefix of a national number that is not part of it, such as `0`; empty if there is none.
    pub national_prefix: String,
    /// The prefix before a country code instead of `+`, such as `00`.
    pub international_prefix: String,
}

impl Default for Numbering {
    /// The prefixes that ITU-T E.164 recommends, and no country.
    fn default() -> Self {
        Numbering { country_code: None, national_prefix: "0".into(), international_prefix: "00".into() }
    }
}

/// Why digits are not an E.164 number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFault {
    /// The digits are a national number, but the organisation has no country.
    NoCountry,
    /// The digits are not a telephone number, or too few for one.
    NoNumber,
}

/// Returns the E.164 form, with its `+`, of digits dialled in an organisation.
///
/// `+` and the international prefix introduce a country code; the national prefix introduces a number of the
/// organisation's own country. Other digits are refused, unless the organisation has no national prefix or is
/// in country 1: if they were guessed to be a number, a mistyped extension would ring abroad.
///
/// # Errors
/// [`NumberFault`].
pub fn normalise(numbering: &Numbering, dialled: &str) -> Result<String, NumberFault> {
    let digits = without_separators(dialled);
    let after = |prefix: &str| digits.strip_prefix(prefix).filter(|_| !prefix.is_empty());
    let international = after("+").or_else(|| after(&numbering.international_prefix));
    if let Some(number) = international {
        return e164(number);
    }
    let national = match &numbering.national_prefix {
        // Without a national prefix, all digits that are long enough are a national number.
        prefix if prefix.is_empty() => {
            Some(digits.as_str()).filter(|digits| digits.len() >= NATIONAL_LEN_MIN)
        }
        prefix => after(prefix).or_else(|| is_north_american(numbering, &digits).then_some(digits.as_str())),
    };
    let national = national.filter(|digits| !digits.is_empty()).ok_or(NumberFault::NoNumber)?;
    if !national.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberFault::NoNumber);
    }
    match &numbering.country_code {
        Some(country) => e164(&format!("{country}{national}")),
        None => Err(NumberFault::NoCountry),
    }
}

/// Removes the separators that people and phone books write between digits (RFC 3966 §5.1.1).
pub fn without_separators(dialled: &str) -> String {
    dialled.chars().filter(|c| !matches!(c, '-' | '.' | '(' | ')' | ' ')).collect()
}

fn e164(digits: &str) -> Result<String, NumberFault> {
    let plausible = (DIGITS_MIN..=DIGITS_MAX).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    if plausible { Ok(format!("+{digits}")) } else { Err(NumberFault::NoNumber) }
}

/// Whether the digits are a national number of country 1: there, ten digits are one even without a prefix.
fn is_north_american(numbering: &Numbering, digits: &str) -> bool {
    numbering.country_code.as_deref() == Some("1") && digits.len() == 10 && !digits.starts_with(['0', '1'])
}

/// The most digits of an E.164 number (ITU-T E.164 §6).
const DIGITS_MAX: usize = 15;
/// The fewest digits of a subscriber's number, country code included; shorter ones are service codes.
const DIGITS_MIN: usize = 7;
/// The fewest digits of a national number dialled without a prefix; only the length distinguishes it from an
/// extension.
const NATIONAL_LEN_MIN: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbering(country: &str, national: &str, international: &str) -> Numbering {
        Numbering {
            country_code: Some(country.to_owned()).filter(|code| !code.is_empty()),
            national_prefix: national.to_owned(),
            international_prefix: international.to_owned(),
        }
    }

    #[test]
    fn numbers_are_read_as_their_country_writes_them() {
        use NumberFault::{NoCountry, NoNumber};
        let (britain, nowhere) = (numbering("44", "0", "00"), numbering("", "0", "00"));
        let (america, italy) = (numbering("1", "1", "011"), numbering("39", "", "00"));
        let cases = [
            (&britain, "+442071230000", Ok("+442071230000")),
            (&britain, "00442071230000", Ok("+442071230000")),
            (&britain, "02071230000", Ok("+442071230000")),
            (&britain, "(020) 7123-00.00", Ok("+442071230000")),
            (&britain, "+44 20 7123 0000", Ok("+442071230000")),
            (&britain, "2071230000", Err(NoNumber)),
            (&britain, "112", Err(NoNumber)),
            (&britain, "0", Err(NoNumber)),
            (&britain, "00", Err(NoNumber)),
            (&britain, "+0442071230000", Err(NoNumber)),
            (&britain, "+44207123000a", Err(NoNumber)),
            (&britain, "020712300a0", Err(NoNumber)),
            (&britain, "+1234567890123456", Err(NoNumber)),
            (&britain, "+123456", Err(NoNumber)),
            (&britain, "", Err(NoNumber)),
            (&britain, "+", Err(NoNumber)),
            (&nowhere, "+33140000000", Ok("+33140000000")),
            (&nowhere, "0033140000000", Ok("+33140000000")),
            (&nowhere, "0140000000", Err(NoCountry)),
            (&nowhere, "140000000", Err(NoNumber)),
            (&america, "011442071230000", Ok("+442071230000")),
            (&america, "14155550100", Ok("+14155550100")),
            (&america, "4155550100", Ok("+14155550100")),
            (&america, "0155550100", Err(NoNumber)),
            (&america, "5550100", Err(NoNumber)),
            (&italy, "0612345678", Ok("+390612345678")),
            (&italy, "3331234567", Ok("+393331234567")),
            (&italy, "00442071230000", Ok("+442071230000")),
            (&italy, "1001", Err(NoNumber)),
        ];
        for (numbering, dialled, expected) in cases {
            assert_eq!(normalise(numbering, dialled), expected.map(str::to_owned), "{dialled:?}");
        }
    }
}
