//! The rules for the fields of managed resources, in apply files and over HTTP.
//!
//! Each rule converts a text to its canonical form, or returns the required form: a lower-case fragment that
//! never repeats the text, because that may be a secret.

use std::ops::RangeInclusive;

use crate::directory::{Network, Srtp, StrictSource, Video};
use crate::language::Language;
use crate::money::{Amount, Currency};
use crate::rating::{FxRate, Prefix, Price};
use crate::trunk_address::TrunkAddress;

/// The form that a text must have, a lower-case fragment.
pub type Rule = String;

/// Checks a display name: not blank, on one line.
///
/// # Errors
/// The rule that the text breaks.
pub fn name(text: &str) -> Result<String, Rule> {
    if text.trim().is_empty() {
        return Err("must not be empty".to_owned());
    }
    label(text)
}

/// Checks a name that may be empty.
///
/// # Errors
/// The rule that the text breaks.
pub fn label(text: &str) -> Result<String, Rule> {
    if text.chars().count() > NAME_LEN_MAX || text.chars().any(char::is_control) {
        return Err(format!("must be at most {NAME_LEN_MAX} characters on one line"));
    }
    Ok(text.to_owned())
}

/// Checks the digits dialled for an extension.
///
/// # Errors
/// The rule that the text breaks.
pub fn extension_number(text: &str) -> Result<String, Rule> {
    if (1..=EXTENSION_LEN_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err(format!("must be 1 to {EXTENSION_LEN_MAX} digits"))
}

/// Checks the SIP domain of an organisation; returns it in lower case.
///
/// # Errors
/// The rule that the text breaks.
pub fn sip_domain(text: &str) -> Result<String, Rule> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() <= DOMAIN_LEN_MAX && text.split('.').all(label) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("must be a host name such as acme.test".to_owned())
}

/// Reads the rule for the source address of a leg's media.
///
/// # Errors
/// The rule that the text breaks.
pub fn strict_source(text: &str) -> Result<StrictSource, Rule> {
    StrictSource::from_name(text).ok_or_else(|| {
        let words: Vec<&str> = StrictSource::WORDS.iter().map(|(word, _)| *word).collect();
        format!("must be one of {}", words.join(", "))
    })
}

/// Reads whether the media of an extension is encrypted.
///
/// # Errors
/// The rule that the text breaks.
pub fn srtp(text: &str) -> Result<Srtp, Rule> {
    Srtp::from_name(text).ok_or_else(|| {
        let words: Vec<&str> = Srtp::WORDS.iter().map(|(word, _)| *word).collect();
        format!("must be one of {}", words.join(", "))
    })
}

/// Reads whether an extension or a trunk has video.
///
/// # Errors
/// The rule that the text breaks.
pub fn video(text: &str) -> Result<Video, Rule> {
    Video::from_name(text).ok_or_else(|| {
        let words: Vec<&str> = Video::WORDS.iter().map(|(word, _)| *word).collect();
        format!("must be one of {}", words.join(", "))
    })
}

/// Reads the language of prompts.
///
/// # Errors
/// The valid languages.
pub fn language(text: &str) -> Result<Language, Rule> {
    Language::from_name(text).ok_or_else(|| "must be de or en".to_owned())
}

/// Reads whether the media of a trunk is encrypted. `webrtc` is refused, because no carrier is a browser.
///
/// # Errors
/// The rule that the text breaks.
pub fn trunk_srtp(text: &str) -> Result<Srtp, Rule> {
    let rule = Srtp::from_name(text).filter(|rule| *rule != Srtp::Webrtc);
    rule.ok_or_else(|| "must be one of off, optional, required".to_owned())
}

/// Checks an ISO 4217 code.
///
/// # Errors
/// The rule that the text breaks.
pub fn currency(text: &str) -> Result<Currency, Rule> {
    text.parse().map_err(|_| "must be the three letters of a currency, such as EUR".to_owned())
}

/// Checks the credit of an organisation.
///
/// # Errors
/// The rule that the text breaks.
pub fn credit(text: &str) -> Result<Amount, Rule> {
    match text.parse::<Amount>() {
        Ok(amount) if amount >= Amount::ZERO => Ok(amount),
        _ => Err("must be a decimal in quotes that is not negative, such as \"25.00\"".to_owned()),
    }
}

/// Checks the price of a minute.
///
/// # Errors
/// The rule that the text breaks.
pub fn per_minute(text: &str) -> Result<Amount, Rule> {
    match text.parse::<Amount>() {
        Ok(amount) if (Amount::ZERO..=Price::PER_MINUTE_MAX).contains(&amount) => Ok(amount),
        _ => Err(format!(
            "must be a decimal in quotes, 0 to {} with at most 8 places, such as \"0.0120\"",
            Price::PER_MINUTE_MAX.to_text(0)
        )),
    }
}

/// Checks a conversion rate.
///
/// # Errors
/// The rule that the text breaks.
pub fn fx_rate(text: &str) -> Result<Amount, Rule> {
    match text.parse::<Amount>() {
        Ok(rate) if rate > Amount::ZERO && rate <= FxRate::MAX => Ok(rate),
        _ => Err(format!(
            "must be a decimal in quotes, above 0 and at most {} with at most 8 places, such as \"0.9200\"",
            FxRate::MAX.to_text(0)
        )),
    }
}

/// Checks the prefix of a rate.
///
/// # Errors
/// The rule that the text breaks.
pub fn prefix(text: &str) -> Result<Prefix, Rule> {
    text.parse().map_err(|_| {
        format!("must be the beginning of a number such as +44, at most {} digits", Prefix::DIGITS_MAX)
    })
}

/// Checks a password that this engine verifies, of a phone or of a user. This part does not depend on the
/// owner; [`phone_password`] and [`user_password`] check the complete rule.
///
/// # Errors
/// The rule that the text breaks.
pub fn password(text: &str) -> Result<String, Rule> {
    let long_enough = text.chars().count() >= PASSWORD_LEN_MIN && text.len() <= PASSWORD_LEN_MAX;
    if long_enough && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "must be {PASSWORD_LEN_MIN} characters to {PASSWORD_LEN_MAX} bytes on one line; without a password one is generated"
    ))
}

/// Checks the [`password`] of an extension's phone: neither its number nor its name, in any case.
///
/// # Errors
/// The rule that the text breaks.
pub fn phone_password(text: &str, number: &str, name: &str) -> Result<String, Rule> {
    let password = password(text)?;
    if is_one_of(&password, [number, name]) {
        return Err("must be neither the number nor the name of the extension".to_owned());
    }
    Ok(password)
}

/// Checks the [`password`] of a user: neither the email address nor its part before the `@`, nor the name, in
/// any case.
///
/// # Errors
/// The rule that the text breaks.
pub fn user_password(text: &str, email: &str, name: &str) -> Result<String, Rule> {
    let password = password(text)?;
    let local_part = email.rsplit_once('@').map_or(email, |(local_part, _)| local_part);
    if is_one_of(&password, [email, local_part, name]) {
        return Err("must be neither the email address, nor its first part, nor the name".to_owned());
    }
    Ok(password)
}

fn is_one_of<const N: usize>(password: &str, names: [&str; N]) -> bool {
    let password = password.trim().to_lowercase();
    names.iter().any(|name| name.trim().to_lowercase() == password)
}

/// Checks a password for a trunk, which the carrier has chosen; an empty one answers no challenge.
///
/// # Errors
/// The rule that the text breaks.
pub fn trunk_password(text: &str) -> Result<String, Rule> {
    if text.len() <= PASSWORD_LEN_MAX && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!("must be at most {PASSWORD_LEN_MAX} bytes on one line"))
}

/// Checks the codecs that a phone may use, in order of preference, by the switch's names.
///
/// # Errors
/// Every broken rule, one text each.
pub fn codecs<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, Vec<Rule>> {
    let (mut codecs, mut wrong): (Vec<String>, Vec<Rule>) = (Vec::new(), Vec::new());
    for name in names {
        match CODECS.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            Some(known) if codecs.iter().any(|codec| codec == known) => {
                wrong.push(format!("{known} is named twice"));
            }
            Some(known) => codecs.push((*known).to_owned()),
            None => {
                // Repeats the codec name, because it is not a secret, but shortens it, because the list may
                // be long.
                let name: String =
                    name.chars().filter(|c| !c.is_control()).take(CODEC_SHOWN_LEN_MAX).collect();
                wrong.push(format!("\"{name}\" is none of {}", CODECS.join(", ")));
            }
        }
    }
    if wrong.is_empty() { Ok(codecs) } else { Err(wrong) }
}

/// Checks a phone number in E.164 form, with its `+`.
///
/// # Errors
/// The rule that the text breaks.
pub fn e164(text: &str) -> Result<String, Rule> {
    let digits = text.strip_prefix('+').unwrap_or_default();
    let fits = (2..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    if fits { Ok(text.to_owned()) } else { Err("must be written like +442071230000".to_owned()) }
}

/// Checks an address or a block and makes it canonical; never the whole Internet.
///
/// # Errors
/// The rule that the text breaks.
pub fn network(text: &str) -> Result<Network, Rule> {
    match text.parse::<Network>() {
        Ok(network) if network.prefix_len == 0 => {
            Err("is the whole Internet, name the addresses that call".to_owned())
        }
        Ok(network) => Ok(network),
        Err(_) => Err("must be an address or a network, such as 192.0.2.0/24".to_owned()),
    }
}

/// Checks the server address of a trunk, in the form of [`TrunkAddress`].
///
/// # Errors
/// The rule that the text breaks.
pub fn trunk_address(text: &str) -> Result<String, Rule> {
    text.parse::<TrunkAddress>().map(|address| address.to_string()).map_err(|error| error.to_string())
}

/// Checks the switch's user name at a trunk, or the realm for it; may be empty.
///
/// # Errors
/// The rule that the text breaks.
pub fn trunk_identity(text: &str) -> Result<String, Rule> {
    if text.len() > IDENTITY_LEN_MAX || text.chars().any(char::is_control) {
        return Err(format!("must be at most {IDENTITY_LEN_MAX} bytes on one line"));
    }
    Ok(text.to_owned())
}

/// Checks a number that is sent as dialled, such as `112`.
///
/// # Errors
/// The rule that the text breaks.
pub fn short_number(text: &str) -> Result<String, Rule> {
    let fits = (1..=SHORT_NUMBER_LEN_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'*' | b'#'));
    if fits {
        return Ok(text.to_owned());
    }
    Err(format!("must be 1 to {SHORT_NUMBER_LEN_MAX} digits, such as \"112\""))
}

/// Checks the digits of a country code; may be empty.
///
/// # Errors
/// The rule that the text breaks.
pub fn country_code(text: &str) -> Result<String, Rule> {
    if text.starts_with('0') {
        return Err("must be written without + and leading zeros, such as \"44\"".to_owned());
    }
    digits(text, 0..=COUNTRY_CODE_LEN_MAX)
}

/// Checks the prefix of a national number; may be empty.
///
/// # Errors
/// The rule that the text breaks.
pub fn national_prefix(text: &str) -> Result<String, Rule> {
    digits(text, 0..=PREFIX_LEN_MAX)
}

/// Checks the prefix before a country code instead of `+`.
///
/// # Errors
/// The rule that the text breaks.
pub fn international_prefix(text: &str) -> Result<String, Rule> {
    digits(text, 1..=PREFIX_LEN_MAX)
}

fn digits(text: &str, len: RangeInclusive<usize>) -> Result<String, Rule> {
    if len.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err(format!("must be {} to {} digits in quotes", len.start(), len.end()))
}

/// The codecs allowed in the list of an extension or a trunk. The switch encodes and decodes G722, L16, PCMA, PCMU and
/// opus; it relays the others between two parties that share them.
pub const CODECS: [&str; 14] = [
    "AMR", "AMR-WB", "EVS", "G722", "G723", "G726-32", "G729", "GSM", "L16", "PCMA", "PCMU", "iLBC", "opus",
    "speex",
];
/// The highest limit of simultaneous outbound calls of an organisation.
pub const OUTBOUND_CALLS_MAX: u32 = 1_000_000;
/// The range of limits for the duration of an answered call: a minute to a day.
pub const CALL_SECONDS: RangeInclusive<i64> = 60..=86_400;
/// The longest retention of an organisation's recordings, in days: a century.
pub const RETENTION_DAYS_MAX: u32 = 36_500;
/// The default currency of an organisation.
pub const CURRENCY_DEFAULT: &str = "EUR";
/// Characters of a name.
pub const NAME_LEN_MAX: usize = 100;
/// The most networks in a list.
pub const NETWORKS_MAX: usize = 64;
/// The default priority of a trunk.
pub const PRIORITY_DEFAULT: u16 = 10;
/// The most numbers that a trunk may send as dialled.
pub const SHORT_NUMBERS_MAX: usize = 64;

const CODEC_SHOWN_LEN_MAX: usize = 32;
const COUNTRY_CODE_LEN_MAX: usize = 3;
/// RFC 1035 §2.3.4.
const DOMAIN_LEN_MAX: usize = 253;
const EXTENSION_LEN_MAX: usize = 15;
const IDENTITY_LEN_MAX: usize = 128;
/// Bounds the work of hashing.
pub const PASSWORD_LEN_MAX: usize = 128;
/// NIST SP 800-63B §5.1.1.2.
pub const PASSWORD_LEN_MIN: usize = 8;
const PREFIX_LEN_MAX: usize = 5;
/// Shorter than any E.164 number.
const SHORT_NUMBER_LEN_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_canonical_or_are_refused() {
        type Check = fn(&str) -> Result<String, Rule>;
        let cases: &[(Check, &str, Option<&str>)] = &[
            (name, "Ada", Some("Ada")),
            (name, "  ", None),
            (label, "", Some("")),
            (label, "a\nb", None),
            (extension_number, "1001", Some("1001")),
            (extension_number, "10a1", None),
            (extension_number, "1234567890123456", None),
            (extension_number, "", None),
            (sip_domain, "ACME.test", Some("acme.test")),
            (sip_domain, "acme..test", None),
            (sip_domain, "-acme.test", None),
            (password, "", None),
            (password, "1234567", None),
            (password, "12345678", Some("12345678")),
            (password, "pässwör", None),
            (password, "password\u{7f}", None),
            (trunk_password, "", Some("")),
            (trunk_password, "hush", Some("hush")),
            (trunk_password, "hush\n", None),
            (e164, "+442071230000", Some("+442071230000")),
            (e164, "442071230000", None),
            (e164, "+0123", None),
            (trunk_address, "sip:Carrier.example", Some("sip:carrier.example")),
            (trunk_address, "sips:carrier.example", None),
            (short_number, "112", Some("112")),
            (short_number, "1234567", None),
            (country_code, "", Some("")),
            (country_code, "044", None),
            (international_prefix, "", None),
        ];
        for (check, text, expected) in cases {
            assert_eq!(check(text).ok().as_deref(), *expected, "{text:?}");
        }
    }

    #[test]
    fn a_password_is_nothing_that_everybody_knows_of_its_owner() {
        for (text, is_good) in [
            ("1234567890", false),
            ("Ada Lovelace", false),
            (" ADA lovelace ", false),
            ("ada.lovelace", true),
            ("1001", false),
        ] {
            assert_eq!(phone_password(text, "1234567890", "Ada Lovelace").is_ok(), is_good, "{text}");
        }
        for (text, is_good) in [
            ("ada.lovelace@acme.test", false),
            ("Ada.Lovelace", false),
            ("ada lovelace", false),
            ("correct horse", true),
            ("horse", false),
        ] {
            let checked = user_password(text, "ada.lovelace@acme.test", "Ada Lovelace");
            assert_eq!(checked.is_ok(), is_good, "{text}");
        }
    }

    #[test]
    fn every_wrong_codec_is_named() {
        assert_eq!(codecs(["OPUS", "pcma"]).unwrap(), ["opus", "PCMA"]);
        let wrong = codecs(["opus", "Opus", "speexx"]).unwrap_err();
        let none = format!("\"speexx\" is none of {}", CODECS.join(", "));
        assert_eq!(wrong, ["opus is named twice".to_owned(), none]);
    }

    #[test]
    fn networks_are_canonical_and_never_everything() {
        let cases = [
            ("192.0.2.7", Some("192.0.2.7/32")),
            ("192.0.2.7/24", Some("192.0.2.0/24")),
            ("::ffff:192.0.2.7/120", Some("192.0.2.0/24")),
            ("2001:db8::1/32", Some("2001:db8::/32")),
            ("::ffff:0:0/64", Some("::/64")),
            ("0.0.0.0/0", None),
            ("::/0", None),
            ("::ffff:0:0/96", None),
            ("192.0.2.0/33", None),
            ("192.0.2.0/+8", None),
            ("example", None),
        ];
        for (text, expected) in cases {
            let found = network(text).ok().map(|network| network.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
