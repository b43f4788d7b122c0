//! What dialled digits mean as a number of the world (ITU-T E.164), by the habits of who dialled them.

use sidetone_model::directory::Numbering;

/// Why digits are no number of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFault {
    /// A national number, and the organisation names no country.
    NoCountry,
    /// No telephone number at all, or one too short to be one.
    NoNumber,
}

/// The E.164 form of what a person of an organisation dialled, with its `+`.
///
/// `+` and the international prefix introduce a country code, the national prefix a number of the organisation's own
/// country. Anything else is no number of the world: were it guessed at, a mistyped extension would ring abroad.
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
        // Where nothing stands before a national number, every number long enough is one.
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

/// The E.164 form of a number as carriers write it: `+44…`, `0044…`, `44…`, with or without separators.
pub fn from_carrier(dialled: &str) -> Option<String> {
    let digits = without_separators(dialled);
    let bare = digits.strip_prefix('+').or_else(|| digits.strip_prefix("00")).unwrap_or(&digits);
    let plausible = (1..=DIGITS_MAX).contains(&bare.len()) && bare.bytes().all(|b| b.is_ascii_digit());
    plausible.then(|| format!("+{bare}"))
}

/// Digits without the separators that people and phone books put between them (RFC 3966 §5.1.1).
pub fn without_separators(dialled: &str) -> String {
    dialled.chars().filter(|c| !matches!(c, '-' | '.' | '(' | ')' | ' ')).collect()
}

fn e164(digits: &str) -> Result<String, NumberFault> {
    let plausible = (DIGITS_MIN..=DIGITS_MAX).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    if plausible { Ok(format!("+{digits}")) } else { Err(NumberFault::NoNumber) }
}

/// Ten digits dialled in country 1 are a whole national number there, with or without its prefix.
fn is_north_american(numbering: &Numbering, digits: &str) -> bool {
    numbering.country_code.as_deref() == Some("1") && digits.len() == 10 && !digits.starts_with(['0', '1'])
}

/// Digits of the longest E.164 number (ITU-T E.164 §6).
const DIGITS_MAX: usize = 15;
/// Fewer digits, country code included, are a service code of somebody and no subscriber.
const DIGITS_MIN: usize = 7;
/// The shortest national number that is told from an extension by nothing but its length.
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
