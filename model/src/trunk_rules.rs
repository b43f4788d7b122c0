//! The rules for the carrier-specific fields of a trunk, in apply files and over HTTP.

use std::ops::RangeInclusive;

use crate::rules::{self, CODECS, Rule};
use crate::trunk_interop::{InboundNumbers, OutboundNumbers};

/// Checks the domain in From; empty means none.
///
/// # Errors
/// The rule that the text breaks.
pub fn from_domain(text: &str) -> Result<String, Rule> {
    if text.is_empty() { Ok(String::new()) } else { rules::sip_domain(text) }
}

/// Reads the format of numbers from a carrier.
///
/// # Errors
/// The rule that the text breaks.
pub fn inbound_numbers(text: &str) -> Result<InboundNumbers, Rule> {
    InboundNumbers::from_name(text).ok_or_else(|| one_of(&InboundNumbers::WORDS.map(|(word, _)| word)))
}

/// Reads the format of numbers to a carrier.
///
/// # Errors
/// The rule that the text breaks.
pub fn outbound_numbers(text: &str) -> Result<OutboundNumbers, Rule> {
    OutboundNumbers::from_name(text).ok_or_else(|| one_of(&OutboundNumbers::WORDS.map(|(word, _)| word)))
}

/// Returns a check for the codecs of a list, one after the other: each must be known, and none may be
/// repeated.
pub fn codec_of_list() -> impl FnMut(&str) -> Result<String, Rule> {
    let mut seen: Vec<String> = Vec::new();
    move |text| {
        let mut codecs = rules::codecs([text]).map_err(|wrong| wrong.join("; "))?;
        let codec = codecs.pop().unwrap_or_default();
        if seen.contains(&codec) {
            return Err(format!("{codec} is named twice"));
        }
        seen.push(codec.clone());
        Ok(codec)
    }
}

/// Checks a header of INVITEs; returns it as `Name: value`.
///
/// # Errors
/// The rule that the text breaks.
pub fn header(text: &str) -> Result<String, Rule> {
    let (name, value) = text.split_once(':').ok_or("must be written like \"X-Account: 42\"")?;
    let (name, value) = (name.trim(), value.trim());
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&byte);
    if name.is_empty() || name.len() > HEADER_NAME_LEN_MAX || !name.bytes().all(is_token) {
        return Err(format!(
            "must begin with a header name of at most {HEADER_NAME_LEN_MAX} letters and digits"
        ));
    }
    // One letter is the short form of a standard header (RFC 3261 §7.3.3).
    if name.len() == 1 || SWITCH_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(format!("sets {name}, which the switch writes itself; choose another header"));
    }
    if value.is_empty() || value.len() > HEADER_VALUE_LEN_MAX || value.chars().any(char::is_control) {
        return Err(format!("must have a value of 1 to {HEADER_VALUE_LEN_MAX} bytes on one line"));
    }
    Ok(format!("{name}: {value}"))
}

fn one_of(words: &[&str]) -> Rule {
    format!("must be one of {}", words.join(", "))
}

/// The range of the time within which a trunk must answer with more than 100.
pub const PROGRESS_SECONDS: RangeInclusive<i64> = 5..=120;
/// The range of the interval of OPTIONS; values between 0 and
/// [`QUALIFY_SECONDS_MIN`](crate::trunk_interop::QUALIFY_SECONDS_MIN) are refused.
pub const QUALIFY_SECONDS: RangeInclusive<i64> = 0..=3_600;
/// The most backup servers of a trunk.
pub const BACKUP_ADDRESSES_MAX: usize = 8;
/// The most codecs of a trunk.
pub const CODECS_MAX: usize = CODECS.len();
/// The most headers of a trunk.
pub const HEADERS_MAX: usize = 16;

const HEADER_NAME_LEN_MAX: usize = 64;
const HEADER_VALUE_LEN_MAX: usize = 256;
/// Headers that the switch writes itself, or that change how a peer treats a request.
const SWITCH_HEADERS: [&str; 66] = [
    "Accept",
    "Accept-Contact",
    "Accept-Encoding",
    "Accept-Language",
    "Allow",
    "Allow-Events",
    "Answer-Mode",
    "Authentication-Info",
    "Authorization",
    "Call-ID",
    "Contact",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Type",
    "CSeq",
    "Date",
    "Diversion",
    "Event",
    "Expires",
    "Flow-Timer",
    "From",
    "History-Info",
    "Identity",
    "Identity-Info",
    "Join",
    "Max-Breadth",
    "Max-Forwards",
    "MIME-Version",
    "Min-Expires",
    "Min-SE",
    "P-Asserted-Identity",
    "P-Preferred-Identity",
    "Path",
    "Priv-Answer-Mode",
    "Privacy",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Require",
    "RAck",
    "Reason",
    "Record-Route",
    "Refer-Sub",
    "Refer-To",
    "Referred-By",
    "Reject-Contact",
    "Remote-Party-ID",
    "Replaces",
    "Request-Disposition",
    "Require",
    "Retry-After",
    "Route",
    "RSeq",
    "Server",
    "Service-Route",
    "Session-Expires",
    "Subscription-State",
    "Supported",
    "Target-Dialog",
    "Timestamp",
    "To",
    "Unsupported",
    "User-Agent",
    "Via",
    "WWW-Authenticate",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_one_line_and_none_of_the_switch() {
        let cases = [
            ("X-Account:42", Ok("X-Account: 42")),
            (
                "  P-Charging-Vector :  icid-value=1;a=\"b: c\" ",
                Ok("P-Charging-Vector: icid-value=1;a=\"b: c\""),
            ),
            ("X-Account", Err("written like")),
            (": 42", Err("header name")),
            ("X Account: 42", Err("header name")),
            ("X-Account: ", Err("value")),
            ("X-Account: 1\r\nRoute: <sip:evil>", Err("value")),
            ("X-Account: 1\nVia: x", Err("value")),
            ("route: <sip:other>", Err("the switch writes")),
            ("VIA: x", Err("the switch writes")),
            ("f: <sip:other>", Err("the switch writes")),
            ("p-asserted-identity: <sip:+1@x>", Err("the switch writes")),
        ];
        for (text, expected) in cases {
            match (header(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(rule), Err(part)) => assert!(rule.contains(part), "{text:?}: {rule}"),
                (found, _) => panic!("{text:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn codecs_come_once() {
        let mut check = codec_of_list();
        assert_eq!(check("pcma").as_deref(), Ok("PCMA"));
        assert_eq!(check("PCMA"), Err("PCMA is named twice".to_owned()));
        assert!(check("speexx").is_err());
    }
}
