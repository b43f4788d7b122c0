//! Finds the lines of a head (RFC 3261 §7.3.1).
//!
//! A line that breaks a rule is omitted and reported as the fault; the other lines stay, so that the refusal
//! can still be sent along the Vias.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr_iter, memchr2};

use crate::message::headers::{Headers, LineAt};
use crate::message::limits::{HEADER_LINES_MAX, HEADER_VALUE_LEN_MAX};
use crate::message::name::Known;
use crate::message::scan::{is_token, trim, trim_end, trim_start};
use crate::message::{Name, Rejection};

/// A head split into lines.
pub(crate) struct Indexed {
    pub(crate) start_line: Range<usize>,
    pub(crate) headers: Headers,
    /// The first rule that a line broke.
    pub(crate) fault: Option<Rejection>,
}

/// Splits a head into its start line and header lines; `head` ends with the CRLF of its last line.
pub(crate) fn index(raw: &Bytes, head: Range<usize>) -> Indexed {
    let mut indexed =
        Indexed { start_line: head.start..head.start, headers: Headers::over(raw.clone()), fault: None };
    let bytes = raw.get(..head.end).unwrap_or_default();
    // Nearly every head is clean; two scans of the complete head detect that faster than a check of each line.
    let swept = bytes.get(head.start..).unwrap_or_default();
    let is_clean =
        memchr(0, swept).is_none() && memchr_iter(b'\r', swept).count() == memchr_iter(b'\n', swept).count();
    let mut at = head.start;
    let mut is_start_line = true;
    while at < bytes.len() {
        let line = take_line(bytes, at, is_clean);
        at = line.next;
        let outcome = match line.fault {
            Some(fault) => Err(fault),
            None if is_start_line && line.folded => Err(Rejection::NoColon),
            None if is_start_line && line.has_nul => Err(Rejection::Nul),
            None if is_start_line => {
                indexed.start_line = line.range.clone();
                Ok(())
            }
            None if indexed.headers.len() >= HEADER_LINES_MAX => {
                indexed.fault.get_or_insert(Rejection::TooManyHeaders);
                break;
            }
            None => push_line(raw, &mut indexed.headers, &line),
        };
        is_start_line = false;
        if let Err(fault) = outcome {
            indexed.fault.get_or_insert(fault);
        }
    }
    // The writer of the message adds Content-Length, for which a line must be free.
    let is_full = indexed.headers.len() >= HEADER_LINES_MAX;
    if is_full && !indexed.headers.contains(Name::ContentLength) {
        indexed.fault.get_or_insert(Rejection::TooManyHeaders);
    }
    indexed
}

/// A line with its continuations.
struct Line {
    /// Without the last CRLF.
    range: Range<usize>,
    next: usize,
    folded: bool,
    has_nul: bool,
    fault: Option<Rejection>,
}

/// A clean head has no NUL and as many CRs as LFs: when every LF has its CR, there is no bare CR.
fn take_line(bytes: &[u8], start: usize, is_clean: bool) -> Line {
    let mut line =
        Line { range: start..start, next: bytes.len(), folded: false, has_nul: false, fault: None };
    let mut at = start;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(lf) = memchr(b'\n', rest) else {
            line.range.end = bytes.len();
            line.fault.get_or_insert(Rejection::NoHeadEnd);
            return line;
        };
        let segment = rest.get(..lf).unwrap_or_default();
        let end = at + lf;
        at = end + 1;
        let Some((b'\r', segment)) = segment.split_last() else {
            line.fault.get_or_insert(Rejection::BareLf);
            continue;
        };
        if !is_clean && memchr2(b'\r', 0, segment).is_some() {
            line.has_nul |= segment.contains(&0);
            if segment.contains(&b'\r') {
                line.fault.get_or_insert(Rejection::BareCr);
            }
        }
        line.range.end = end - 1;
        line.next = at;
        if !matches!(bytes.get(at), Some(b' ' | b'\t')) {
            return line;
        }
        line.folded = true;
    }
}

fn push_line(raw: &Bytes, headers: &mut Headers, line: &Line) -> Result<(), Rejection> {
    let text = raw.get(line.range.clone()).unwrap_or_default();
    // Names are too short for memchr to be faster.
    let colon = text.iter().position(|&b| b == b':').ok_or(Rejection::NoColon)?;
    let (name, value) = text.split_at_checked(colon).ok_or(Rejection::NoColon)?;
    // White space before the colon is legal and not part of the name: `X-Internal :` is `X-Internal`.
    let name = trim_end(name);
    if !is_token(name) {
        return Err(Rejection::HeaderName);
    }
    let value = value.get(1..).unwrap_or_default();
    if line.has_nul && !(quoted_strings_may_hold_nul(name) && nuls_are_quoted_pairs(value)) {
        return Err(Rejection::Nul);
    }
    let unfolded = line.folded.then(|| unfold(value));
    let started = trim_start(value);
    let leading = value.len() - started.len();
    let trimmed = trim_end(started);
    if unfolded.as_ref().map_or(trimmed.len(), Bytes::len) > HEADER_VALUE_LEN_MAX {
        return Err(Rejection::ValueTooLong);
    }
    let value_start = line.range.start + colon + 1 + leading;
    headers.push_at(LineAt {
        start: line.range.start,
        name_end: line.range.start + name.len(),
        value_start,
        value_end: value_start + trimmed.len(),
        end: line.range.end,
        unfolded,
    });
    Ok(())
}

/// Whether the header's grammar has a quoted string of text, in which `\` and NUL are a legal pair (§25.1).
fn quoted_strings_may_hold_nul(name: &[u8]) -> bool {
    Known::from_bytes(name).is_some_and(Known::has_display_name)
}

/// Whether every NUL follows a backslash inside quotes, as in RFC 4475 §3.1.1.2.
fn nuls_are_quoted_pairs(value: &[u8]) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    value.iter().all(|&byte| {
        let sound = byte != 0 || escaped;
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        sound
    })
}

/// Replaces every fold, with the white space around it, by one space.
fn unfold(value: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(value.len());
    for segment in value.split(|&b| b == b'\n') {
        let segment = trim(segment.strip_suffix(b"\r").unwrap_or(segment));
        if !out.is_empty() && !segment.is_empty() {
            out.extend_from_slice(b" ");
        }
        out.extend_from_slice(segment);
    }
    out.freeze()
}
