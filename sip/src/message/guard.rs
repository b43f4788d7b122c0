//! The rules on headers that every message of the wire must meet before anyone sees it (RFC 3261 §8.1.1).
//!
//! One pass, no allocation on sound ASCII: what is checked here is read again only when somebody asks.

use crate::message::address;
use crate::message::fields::cseq_parts;
use crate::message::limits::{LIST_LEN_MAX, VIAS_MAX};
use crate::message::name::Known;
use crate::message::scan::{Cursor, number, quotes_balanced};
use crate::message::{Headers, Method, Rejection, via};

/// Which single headers have been seen, and how many Vias.
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
    // Absence and repetition come before the values: a second From makes the first one's soundness moot.
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
    if known.is_structured() && value.contains(&b'"') && !quotes_balanced(value) {
        return Err(Rejection::Quotes);
    }
    // Borrowed when it is UTF-8. A replaced byte is refused by every grammar but that of a display name.
    let text = String::from_utf8_lossy(value);
    let is_utf8 = matches!(text, std::borrow::Cow::Borrowed(_));
    if !is_utf8 && known.is_structured() && !known.has_display_name() {
        return Err(Rejection::Utf8);
    }
    match known {
        Known::CSeq => check_cseq(&text, method),
        Known::CallId => {
            let sound = is_utf8 && !text.is_empty() && !text.contains([' ', '\t']);
            if sound { Ok(()) } else { Err(Rejection::CallId) }
        }
        Known::Contact => check_contact(&text, seen),
        Known::From => check_address(&text, Rejection::From),
        Known::MaxForwards => match number(&text) {
            Some(0..=255) => Ok(()),
            _ => Err(Rejection::MaxForwards),
        },
        Known::To => check_address(&text, Rejection::To),
        Known::Via => check_vias(&text, &mut seen.vias),
        _ => Ok(()),
    }
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
        // `*` stands alone or not at all.
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
        if !cursor.eat(',') {
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
        if !cursor.eat(',') {
            return Ok(());
        }
    }
}
