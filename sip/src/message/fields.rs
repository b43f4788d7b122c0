//! The smaller structured headers: CSeq, RAck, Session-Expires, Replaces, Reason, Event.

use std::fmt;

use crate::message::limits::CSEQ_LIMIT;
use crate::message::scan::{self, Cursor, number};
use crate::message::{Malformed, Method, Params};

/// CSeq: the number of a request within its dialog, and its method (RFC 3261 §20.16).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CSeq {
    /// Below 2³¹.
    pub number: u32,
    /// The same as in the start line.
    pub method: Method,
}

impl CSeq {
    /// Parses `4711 INVITE`.
    ///
    /// # Errors
    ///
    /// When number or method are malformed, or the number is 2³¹ or more.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (number, method) = cseq_parts(text)?;
        Ok(Self { number, method: Method::from_bytes(method.as_bytes()).ok_or(Malformed("CSeq"))? })
    }
}

impl fmt::Display for CSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.method)
    }
}

/// RAck: the reliable provisional response that a PRACK acknowledges (RFC 3262 §7.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RAck {
    /// RSeq of the response.
    pub rseq: u32,
    /// CSeq of the request that the response answered.
    pub cseq: CSeq,
}

impl RAck {
    /// Parses `776656 1 INVITE`.
    ///
    /// # Errors
    ///
    /// When a part is malformed or missing.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (rseq, cseq) = text.split_once([' ', '\t']).ok_or(Malformed("RAck"))?;
        let rseq = number(rseq).and_then(|n| u32::try_from(n).ok()).ok_or(Malformed("RAck"))?;
        Ok(Self { rseq, cseq: CSeq::parse(cseq.trim_start_matches([' ', '\t']))? })
    }
}

impl fmt::Display for RAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.rseq, self.cseq)
    }
}

/// Session-Expires: the session timer of a dialog (RFC 4028 §4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionExpires {
    /// The interval in seconds.
    pub interval_s: u32,
    /// `Some(true)` for `refresher=uac`, `Some(false)` for `refresher=uas`.
    pub refresher_is_uac: Option<bool>,
}

impl SessionExpires {
    /// Parses `1800;refresher=uac`.
    ///
    /// # Errors
    ///
    /// When the interval is not a number or the refresher is neither `uac` nor `uas`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (head, params) = head_and_params(text, "Session-Expires")?;
        let interval_s = seconds(head).ok_or(Malformed("Session-Expires"))?;
        let refresher_is_uac = match params.get("refresher") {
            None => None,
            Some(who) if who.eq_ignore_ascii_case("uac") => Some(true),
            Some(who) if who.eq_ignore_ascii_case("uas") => Some(false),
            Some(_) => return Err(Malformed("Session-Expires")),
        };
        Ok(Self { interval_s, refresher_is_uac })
    }
}

impl fmt::Display for SessionExpires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refresher = match self.refresher_is_uac {
            None => "",
            Some(true) => ";refresher=uac",
            Some(false) => ";refresher=uas",
        };
        write!(f, "{}{refresher}", self.interval_s)
    }
}

/// Replaces: the dialog that a new one takes over (RFC 3891 §6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaces {
    /// Call-ID of the dialog.
    pub call_id: String,
    /// The peer's tag in it.
    pub to_tag: String,
    /// The sender's tag in it.
    pub from_tag: String,
    /// Only replace a dialog that is not confirmed yet.
    pub early_only: bool,
}

impl Replaces {
    /// Parses `call-id;to-tag=a;from-tag=b`.
    ///
    /// # Errors
    ///
    /// When the Call-ID or one of the tags is missing.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (call_id, params) = head_and_params(text, "Replaces")?;
        let tag = |name| {
            params.get(name).filter(|tag| !tag.is_empty()).map(str::to_owned).ok_or(Malformed("Replaces"))
        };
        Ok(Self {
            call_id: call_id.to_owned(),
            to_tag: tag("to-tag")?,
            from_tag: tag("from-tag")?,
            early_only: params.has("early-only"),
        })
    }
}

/// Reason: why a request was sent, with the code of a protocol (RFC 3326).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// `SIP`, `Q.850` or another.
    pub protocol: String,
    /// The code of the protocol.
    pub cause: Option<u16>,
    /// The text without quotes.
    pub text: Option<String>,
}

impl Reason {
    /// Parses `Q.850;cause=16;text="normal"`.
    ///
    /// # Errors
    ///
    /// When the protocol is missing or a parameter is malformed.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (protocol, params) = head_and_params(text, "Reason")?;
        Ok(Self {
            protocol: protocol.to_owned(),
            cause: params.get("cause").and_then(|cause| cause.parse().ok()),
            text: params.unquoted("text").map(std::borrow::Cow::into_owned),
        })
    }
}

/// Event or Subscription-State: a word and parameters (RFC 6665 §8.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event package, or the state of the subscription.
    pub package: String,
    /// Its parameters: id, expires, reason and the others.
    pub params: Params,
}

impl Event {
    /// Parses `presence;id=1`.
    ///
    /// # Errors
    ///
    /// When the word is missing or a parameter is malformed.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (package, params) = head_and_params(text, "Event")?;
        Ok(Self { package: package.to_owned(), params })
    }
}

/// The number and the raw method of a CSeq.
pub(crate) fn cseq_parts(text: &str) -> Result<(u32, &str), Malformed> {
    let mut cursor = Cursor::new(text);
    let number = number(cursor.take_while(|b| b.is_ascii_digit()))
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| *n < CSEQ_LIMIT)
        .ok_or(Malformed("CSeq"))?;
    let digits_end = cursor.rest();
    cursor.skip_space();
    let spaced = digits_end.len() != cursor.rest().len();
    let method = cursor.token();
    if spaced && !method.is_empty() && cursor.is_done() {
        Ok((number, method))
    } else {
        Err(Malformed("CSeq"))
    }
}

/// Delta-seconds; a larger value becomes the largest one, as §20.19 requires of a registrar.
pub(crate) fn seconds(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| number(text).and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX))
}

/// Splits `word;name=value`.
pub(crate) fn head_and_params<'a>(text: &'a str, what: &'static str) -> Result<(&'a str, Params), Malformed> {
    let mut cursor = Cursor::new(text);
    cursor.skip_space();
    let head = cursor.take_while(|b| !matches!(b, b';' | b',' | b' ' | b'\t'));
    let mut params = Params::new();
    scan::params(&mut cursor, &mut |name, value| params.push(name, value))?;
    if head.is_empty() || !cursor.is_done() { Err(Malformed(what)) } else { Ok((head, params)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers() {
        for (text, expected) in [
            ("4711 INVITE", Some((4_711, "INVITE"))),
            ("0009  INVITE", Some((9, "INVITE"))),
            ("2147483647 ACK", Some((2_147_483_647, "ACK"))),
            ("2147483648 ACK", None),
            ("36893488147419103232 REGISTER", None),
            ("-1 ACK", None),
            ("1", None),
            ("1INVITE", None),
            ("1 INVITE x", None),
            ("", None),
        ] {
            let found = CSeq::parse(text).ok();
            assert_eq!(found.as_ref().map(|c| (c.number, c.method.as_str())), expected, "{text}");
        }
    }

    #[test]
    fn other_fields_read_and_print() {
        assert_eq!(RAck::parse("776656  1 INVITE").unwrap().to_string(), "776656 1 INVITE");
        assert!(RAck::parse("1 INVITE").is_err());
        let timer = SessionExpires::parse("1800 ; refresher=UAS").unwrap();
        assert_eq!(timer.to_string(), "1800;refresher=uas");
        assert!(SessionExpires::parse("1800;refresher=me").is_err());
        assert!(Replaces::parse("c@h;to-tag=1").is_err());
        assert!(Replaces::parse("c@h;from-tag=2;to-tag=1;early-only").unwrap().early_only);
        assert_eq!(
            Reason::parse("SIP;cause=200;text=\"Call completed elsewhere\"").unwrap().cause,
            Some(200)
        );
        assert_eq!(Event::parse("presence;id=\"1\"").unwrap().params.unquoted("id").as_deref(), Some("1"));
    }
}
