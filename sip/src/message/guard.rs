//! The rules for headers that every received message must satisfy (RFC 3261 §8.1.1).
//!
//! One pass, without allocation for valid ASCII; values are parsed again only when they are requested.

use std::borrow::Cow;

use memchr::memchr;

use crate::message::address;
use crate::message::fields::cseq_parts;
use crate::message::limits::{LIST_LEN_MAX, VIAS_MAX};
use crate::message::name::Known;
use crate::message::scan::{Cursor, number, quotes_balanced};
use crate::message::{Headers, Method, Rejection, via};

/// The headers seen so far that may occur only once, and the number of Vias.
#[derive(Default)]
struct Seen {
    vias: usize,
    contacts: usize,
    star: bool,
    from: bool,
    to: bool,
    call_id: bool,
    cseq: bool,
    max_forwards: bool,
}

/// Checks the headers of a request with this method, or of a response.
pub(crate) fn check(method: Option<&Method>, headers: &Headers) -> Result<(), Rejection> {
    let mut seen = Seen::default();
    // Absence and repetition are checked before the values: with a second From the validity of the first is
    // irrelevant.
    for (known, _) in headers.known() {
        seen.note(known)?;
    }
    seen.complete()?;
    for (known, value) in headers.known() {
        check_value(known, value, method, &mut seen)?;
    }
    Ok(())
}

impl Seen {
    fn note(&mut self, known: Known) -> Result<(), Rejection> {
        let flag = match known {
            Known::CallId => &mut self.call_id,
            Known::CSeq => &mut self.cseq,
            Known::From => &mut self.from,
            Known::MaxForwards => &mut self.max_forwards,
            Known::To => &mut self.to,
            Known::Via => {
                self.vias = 1;
                return Ok(());
            }
            _ => return Ok(()),
        };
        if std::mem::replace(flag, true) { Err(Rejection::Duplicate) } else { Ok(()) }
    }

    fn complete(&mut self) -> Result<(), Rejection> {
        for (present, missing) in [
            (self.vias > 0, Rejection::ViaMissing),
            (self.from, Rejection::FromMissing),
            (self.to, Rejection::ToMissing),
            (self.call_id, Rejection::CallIdMissing),
            (self.cseq, Rejection::CSeqMissing),
        ] {
            if !present {
                return Err(missing);
            }
        }
        self.vias = 0;
        Ok(())
    }
}

fn check_value(
    known: Known,
    value: &[u8],
    method: Option<&Method>,
    seen: &mut Seen,
) -> Result<(), Rejection> {
    let fault = match known {
        Known::CSeq => Rejection::CSeq,
        Known::CallId => Rejection::CallId,
        Known::Contact => Rejection::Contact,
        Known::From => Rejection::From,
        Known::MaxForwards => Rejection::MaxForwards,
        Known::To => Rejection::To,
        Known::Via => Rejection::Via,
        _ => return check_other(known, value),
    };
    // The grammar of an address refuses a replaced byte everywhere except within quotes.
    let text = match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) if known.has_display_name() => String::from_utf8_lossy(value),
        Err(_) => return Err(Rejection::Utf8),
    };
    let outcome = match known {
        Known::CSeq => return check_cseq(&text, method),
        Known::CallId => (!text.is_empty() && !text.contains([' ', '\t'])).then_some(()).ok_or(fault),
        Known::Contact => check_contact(&text, seen),
        Known::MaxForwards => number(&text).filter(|hops| *hops <= 255).map(|_| ()).ok_or(fault),
        Known::Via => check_vias(&text, &mut seen.vias),
        _ => check_address(&text, fault),
    };
    match outcome {
        Err(_) if known.is_structured() && !quotes_balanced(value) => Err(Rejection::Quotes),
        outcome => outcome,
    }
}

/// Headers that are parsed only on request: their quotes must close, and only text may contain arbitrary
/// bytes.
fn check_other(known: Known, value: &[u8]) -> Result<(), Rejection> {
    if !known.is_structured() {
        return Ok(());
    }
    if memchr(b'"', value).is_some() && !quotes_balanced(value) {
        return Err(Rejection::Quotes);
    }
    if !value.is_ascii() && !known.has_display_name() && std::str::from_utf8(value).is_err() {
        return Err(Rejection::Utf8);
    }
    Ok(())
}

fn check_cseq(text: &str, method: Option<&Method>) -> Result<(), Rejection> {
    let (_, cseq_method) = cseq_parts(text).map_err(|_| Rejection::CSeq)?;
    match method {
        Some(method) if method.as_str() != cseq_method => Err(Rejection::CSeqMethod),
        _ => Ok(()),
    }
}

fn check_address(text: &str, fault: Rejection) -> Result<(), Rejection> {
    let mut cursor = Cursor::new(text);
    address::check(&mut cursor).map_err(|_| fault)?;
    if cursor.is_done() { Ok(()) } else { Err(fault) }
}

fn check_contact(text: &str, seen: &mut Seen) -> Result<(), Rejection> {
    if text == "*" {
        // `*` must be the only Contact.
        let alone = seen.contacts == 0 && !std::mem::replace(&mut seen.star, true);
        return if alone { Ok(()) } else { Err(Rejection::Contact) };
    }
    let mut cursor = Cursor::new(text);
    loop {
        seen.contacts += 1;
        if seen.star || seen.contacts > LIST_LEN_MAX {
            return Err(Rejection::Contact);
        }
        address::check(&mut cursor).map_err(|_| Rejection::Contact)?;
        if !cursor.eat(b',') {
            return Ok(());
        }
    }
}

fn check_vias(text: &str, hops: &mut usize) -> Result<(), Rejection> {
    let mut cursor = Cursor::new(text);
    loop {
        *hops += 1;
        if *hops > VIAS_MAX {
            return Err(Rejection::TooManyVias);
        }
        via::take_parts(&mut cursor, &mut |_, _| {}).map_err(|_| Rejection::Via)?;
        if !cursor.eat(b',') {
            return Ok(());
        }
    }
}
