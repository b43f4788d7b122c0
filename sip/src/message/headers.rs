//! The header lines of a message: an index over one buffer, and lines that were set later (RFC 3261 §7.3).

use std::fmt::{Display, Write as _};

use bytes::{Bytes, BytesMut};

use crate::message::limits::{HEADER_LINES_MAX, HEADER_VALUE_LEN_MAX};
use crate::message::name::{Known, Name};
use crate::message::scan::{List, is_token, number};

/// A value that the writer refuses, so that a caller cannot inject a header or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// CR, LF or NUL in a value.
    #[error("control character in a value")]
    Control,
    /// A header name or tag that is not a token.
    #[error("not a token")]
    Token,
    /// A value longer than [`HEADER_VALUE_LEN_MAX`].
    #[error("value too long")]
    TooLong,
    /// More lines than [`HEADER_LINES_MAX`].
    #[error("too many header lines")]
    TooMany,
    /// An invalid Request-URI.
    #[error("malformed Request-URI")]
    Uri,
}

/// One parsed header line: its name and its unfolded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name; known ones in their long form.
    pub name: Name<'a>,
    /// The value without surrounding white space; a fold becomes one space.
    pub value: &'a [u8],
}

/// The header lines of one message in order.
///
/// Received lines keep their bytes, including name case and folds, and are written unchanged.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// The message into which the index points; empty for a message that was built.
    raw: Bytes,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    known: Option<Known>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// Ranges in the buffer. `end` is the end of the line before its CRLF.
    Shared { start: u32, name_end: u32, value_start: u32, value_end: u32, end: u32 },
    /// A line with its own bytes: built, copied from another message, or folded. Boxed, because such lines
    /// are rare.
    Own(Box<Own>),
}

#[derive(Clone, Debug)]
struct Own {
    /// The line without its CRLF.
    text: Bytes,
    name_len: u32,
    value: Bytes,
}

impl Line {
    fn build(name: Name<'_>, value: impl Display) -> Result<Self, InvalidValue> {
        let mut text = BytesMut::with_capacity(64);
        let long = name.as_str();
        if !is_token(long.as_bytes()) {
            return Err(InvalidValue::Token);
        }
        // Writing to a BytesMut fails only when a Display fails; then the text is cut.
        if write!(text, "{long}: {value}").is_err() {
            return Err(InvalidValue::Control);
        }
        Self::checked(name, text.freeze())
    }

    fn build_bytes(name: Name<'_>, value: &[u8]) -> Result<Self, InvalidValue> {
        let long = name.as_str();
        if !is_token(long.as_bytes()) {
            return Err(InvalidValue::Token);
        }
        let mut text = BytesMut::with_capacity(long.len() + 2 + value.len());
        text.extend_from_slice(long.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        Self::checked(name, text.freeze())
    }

    fn checked(name: Name<'_>, text: Bytes) -> Result<Self, InvalidValue> {
        if text.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err(InvalidValue::Control);
        }
        let name_len = name.as_str().len();
        let value = text.slice_ref(crate::message::scan::trim(text.get(name_len + 1..).unwrap_or_default()));
        if value.len() > HEADER_VALUE_LEN_MAX {
            return Err(InvalidValue::TooLong);
        }
        let name_len = u32::try_from(name_len).map_err(|_| InvalidValue::TooLong)?;
        Ok(Self { known: name.known(), place: Place::Own(Box::new(Own { text, name_len, value })) })
    }

    fn name<'a>(&'a self, raw: &'a Bytes) -> Name<'a> {
        match self.known {
            Some(known) => Name::from(known),
            None => Name::Other(std::str::from_utf8(self.name_bytes(raw)).unwrap_or_default()),
        }
    }

    fn name_bytes<'a>(&'a self, raw: &'a Bytes) -> &'a [u8] {
        match &self.place {
            Place::Shared { start, name_end, .. } => range(raw, *start, *name_end),
            Place::Own(own) => range(&own.text, 0, own.name_len),
        }
    }

    fn value<'a>(&'a self, raw: &'a Bytes) -> &'a [u8] {
        match &self.place {
            Place::Shared { value_start, value_end, .. } => range(raw, *value_start, *value_end),
            Place::Own(own) => &own.value,
        }
    }

    fn text<'a>(&'a self, raw: &'a Bytes) -> &'a [u8] {
        match &self.place {
            Place::Shared { start, end, .. } => range(raw, *start, *end),
            Place::Own(own) => &own.text,
        }
    }

    fn is(&self, raw: &Bytes, name: Name<'_>) -> bool {
        match (self.known, name.known()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => self.name_bytes(raw).eq_ignore_ascii_case(name.as_str().as_bytes()),
            _ => false,
        }
    }

    /// A copy of the line that owns its bytes, for another message.
    fn detached(&self, raw: &Bytes) -> Self {
        let place = match &self.place {
            Place::Shared { start, name_end, .. } => Place::Own(Box::new(Own {
                text: raw.slice_ref(self.text(raw)),
                name_len: name_end - start,
                value: raw.slice_ref(self.value(raw)),
            })),
            own @ Place::Own(_) => own.clone(),
        };
        Self { known: self.known, place }
    }
}

/// Position of a received line in its buffer, created by the indexer.
pub(crate) struct LineAt {
    pub(crate) start: usize,
    pub(crate) name_end: usize,
    pub(crate) value_start: usize,
    pub(crate) value_end: usize,
    pub(crate) end: usize,
    /// The value of a folded line without its folds.
    pub(crate) unfolded: Option<Bytes>,
}

impl Headers {
    /// No header lines.
    #[must_use]
    pub const fn new() -> Self {
        Self { raw: Bytes::new(), lines: Vec::new() }
    }

    pub(crate) fn over(raw: Bytes) -> Self {
        Self { raw, lines: Vec::with_capacity(16) }
    }

    /// Appends a received line, which the indexer has checked.
    pub(crate) fn push_at(&mut self, at: LineAt) {
        let known = Known::from_bytes(self.raw.get(at.start..at.name_end).unwrap_or_default());
        let narrow = |wide: usize| u32::try_from(wide).unwrap_or(u32::MAX);
        let place = match at.unfolded {
            Some(value) => Place::Own(Box::new(Own {
                text: self.raw.slice(at.start.min(at.end)..at.end),
                name_len: narrow(at.name_end - at.start),
                value,
            })),
            None => Place::Shared {
                start: narrow(at.start),
                name_end: narrow(at.name_end),
                value_start: narrow(at.value_start),
                value_end: narrow(at.value_end),
                end: narrow(at.end),
            },
        };
        self.lines.push(Line { known, place });
    }

    /// Appends a header line.
    ///
    /// # Errors
    ///
    /// When the name is not a token, the value contains CR, LF or NUL, or a limit is reached.
    pub fn push<'a>(&mut self, name: impl Into<Name<'a>>, value: impl Display) -> Result<(), InvalidValue> {
        let line = Line::build(name.into(), value)?;
        self.insert(self.lines.len(), line)
    }

    /// Appends a header line whose value need not be UTF-8.
    ///
    /// # Errors
    ///
    /// As [`Headers::push`].
    pub fn push_bytes<'a>(&mut self, name: impl Into<Name<'a>>, value: &[u8]) -> Result<(), InvalidValue> {
        let line = Line::build_bytes(name.into(), value)?;
        self.insert(self.lines.len(), line)
    }

    /// Inserts a header line before the first of its name, or before all others; for Via and Record-Route.
    ///
    /// # Errors
    ///
    /// As [`Headers::push`].
    pub fn prepend<'a>(
        &mut self,
        name: impl Into<Name<'a>>,
        value: impl Display,
    ) -> Result<(), InvalidValue> {
        let name = name.into();
        let at = self.lines.iter().position(|line| line.is(&self.raw, name)).unwrap_or(0);
        let line = Line::build(name, value)?;
        self.insert(at, line)
    }

    /// Sets the only line of this name: it replaces the first one and removes the others, or is appended when
    /// there is none.
    ///
    /// # Errors
    ///
    /// As [`Headers::push`].
    pub fn set<'a>(&mut self, name: impl Into<Name<'a>>, value: impl Display) -> Result<(), InvalidValue> {
        let name = name.into();
        let line = Line::build(name, value)?;
        self.replace(name, line)
    }

    pub(crate) fn set_bytes(&mut self, name: Name<'_>, value: &[u8]) -> Result<(), InvalidValue> {
        let line = Line::build_bytes(name, value)?;
        self.replace(name, line)
    }

    /// Replaces the first line of this name and keeps the others; appended when there is none.
    ///
    /// # Errors
    ///
    /// As [`Headers::push`].
    pub fn set_first<'a>(
        &mut self,
        name: impl Into<Name<'a>>,
        value: impl Display,
    ) -> Result<(), InvalidValue> {
        let name = name.into();
        let line = Line::build(name, value)?;
        match self.lines.iter().position(|line| line.is(&self.raw, name)) {
            Some(at) => {
                if let Some(place) = self.lines.get_mut(at) {
                    *place = line;
                }
                Ok(())
            }
            None => self.insert(self.lines.len(), line),
        }
    }

    /// Removes every line of this name.
    pub fn remove<'a>(&mut self, name: impl Into<Name<'a>>) {
        let name = name.into();
        let raw = &self.raw;
        self.lines.retain(|line| !line.is(raw, name));
    }

    /// Appends every line of this name of another message, bytes unchanged.
    pub fn copy_from<'a>(&mut self, other: &Self, name: impl Into<Name<'a>>) {
        let name = name.into();
        for line in other.lines.iter().filter(|line| line.is(&other.raw, name)) {
            if self.lines.len() < HEADER_LINES_MAX {
                self.lines.push(line.detached(&other.raw));
            }
        }
    }

    /// Appends the first line of this name of another message, bytes unchanged.
    pub(crate) fn copy_first_from(&mut self, other: &Self, name: Name<'_>) {
        if let Some(line) = other.lines.iter().find(|line| line.is(&other.raw, name)) {
            self.lines.push(line.detached(&other.raw));
        }
    }

    /// All lines in order.
    pub fn iter(&self) -> impl Iterator<Item = Header<'_>> {
        self.lines.iter().map(|line| Header { name: line.name(&self.raw), value: line.value(&self.raw) })
    }

    /// Number of lines.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is no line.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The first value of this name; `None` when it is absent or not UTF-8. Names match in any case and form.
    #[must_use]
    pub fn header<'a>(&self, name: impl Into<Name<'a>>) -> Option<&str> {
        std::str::from_utf8(self.header_bytes(name)?).ok()
    }

    /// The first value of this name, as bytes.
    #[must_use]
    pub fn header_bytes<'a>(&self, name: impl Into<Name<'a>>) -> Option<&[u8]> {
        let name = name.into();
        self.lines.iter().find(|line| line.is(&self.raw, name)).map(|line| line.value(&self.raw))
    }

    /// Every value of this name that is UTF-8, line by line; a line may contain a list.
    pub fn header_all<'s, 'a: 's>(&'s self, name: impl Into<Name<'a>>) -> impl Iterator<Item = &'s str> {
        self.header_all_bytes(name).filter_map(|value| std::str::from_utf8(value).ok())
    }

    /// Every value of this name, line by line, as bytes.
    pub fn header_all_bytes<'s, 'a: 's>(
        &'s self,
        name: impl Into<Name<'a>>,
    ) -> impl Iterator<Item = &'s [u8]> {
        let name = name.into();
        self.lines.iter().filter(move |line| line.is(&self.raw, name)).map(|line| line.value(&self.raw))
    }

    /// Every element of the lists of this name, over all its lines: Allow, Supported, Require and the like.
    pub fn list<'s, 'a: 's>(&'s self, name: impl Into<Name<'a>>) -> impl Iterator<Item = &'s str> {
        self.header_all(name).flat_map(List::new).filter(|element| !element.is_empty())
    }

    /// Whether a list of this name contains this token, in any case.
    #[must_use]
    pub fn lists<'a>(&self, name: impl Into<Name<'a>>, token: &str) -> bool {
        let name = name.into();
        self.lines
            .iter()
            .filter(|line| line.is(&self.raw, name))
            .filter_map(|line| std::str::from_utf8(line.value(&self.raw)).ok())
            .any(|value| List::new(value).any(|element| element.eq_ignore_ascii_case(token)))
    }

    /// Whether a line of this name is there.
    #[must_use]
    pub fn contains<'a>(&self, name: impl Into<Name<'a>>) -> bool {
        self.header_bytes(name).is_some()
    }

    /// All known headers with their values, for the guard's single pass.
    pub(crate) fn known(&self) -> impl Iterator<Item = (Known, &[u8])> {
        self.lines.iter().filter_map(|line| Some((line.known?, line.value(&self.raw))))
    }

    /// Length of all lines as they are written, CRLFs included.
    pub(crate) fn wire_len(&self) -> usize {
        self.lines.iter().map(|line| line.text(&self.raw).len() + 2).sum()
    }

    /// Writes all lines, the Content-Length of the body, and the empty line.
    pub(crate) fn write(&self, out: &mut BytesMut, body_len: usize) {
        let mut length_written = false;
        for line in &self.lines {
            if line.known == Some(Known::ContentLength) {
                if length_written {
                    continue;
                }
                length_written = true;
                let value = std::str::from_utf8(line.value(&self.raw)).ok().and_then(number);
                if value != u64::try_from(body_len).ok() {
                    write_length(out, body_len);
                    continue;
                }
            }
            out.extend_from_slice(line.text(&self.raw));
            out.extend_from_slice(b"\r\n");
        }
        if !length_written {
            write_length(out, body_len);
        }
        out.extend_from_slice(b"\r\n");
    }

    fn insert(&mut self, at: usize, line: Line) -> Result<(), InvalidValue> {
        if self.lines.len() >= HEADER_LINES_MAX {
            return Err(InvalidValue::TooMany);
        }
        self.lines.insert(at.min(self.lines.len()), line);
        Ok(())
    }

    fn replace(&mut self, name: Name<'_>, line: Line) -> Result<(), InvalidValue> {
        let Some(at) = self.lines.iter().position(|line| line.is(&self.raw, name)) else {
            return self.insert(self.lines.len(), line);
        };
        self.remove(name);
        self.insert(at, line)
    }
}

/// Equal names and values in the same order. Content-Length is ignored, because it belongs to the body.
impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        let counted = |header: &Header<'_>| !matches!(header.name, Name::ContentLength);
        self.iter().filter(counted).eq(other.iter().filter(counted))
    }
}

impl Eq for Headers {}

fn write_length(out: &mut BytesMut, body_len: usize) {
    // Writing to a BytesMut cannot fail.
    let _ = write!(out, "Content-Length: {body_len}\r\n");
}

fn range(bytes: &Bytes, start: u32, end: u32) -> &[u8] {
    bytes.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(headers: &Headers) -> String {
        headers.iter().map(|h| format!("{}={}|", h.name, String::from_utf8_lossy(h.value))).collect()
    }

    #[test]
    fn lines_are_pushed_set_prepended_and_removed() {
        let mut headers = Headers::new();
        headers.push("v", "SIP/2.0/UDP a").unwrap();
        headers.push("X-A", 1).unwrap();
        headers.push(Name::Via, "SIP/2.0/UDP b").unwrap();
        headers.prepend(Name::Via, "SIP/2.0/UDP c").unwrap();
        assert_eq!(text(&headers), "Via=SIP/2.0/UDP c|Via=SIP/2.0/UDP a|X-A=1|Via=SIP/2.0/UDP b|");
        headers.set("Via", "SIP/2.0/UDP d").unwrap();
        headers.set("x-a", 2).unwrap();
        assert_eq!(text(&headers), "Via=SIP/2.0/UDP d|x-a=2|");
        headers.remove("X-A");
        headers.set_first("Route", "<sip:r>").unwrap();
        assert_eq!(text(&headers), "Via=SIP/2.0/UDP d|Route=<sip:r>|");
    }

    #[test]
    fn what_would_break_a_line_is_refused() {
        let mut headers = Headers::new();
        for (name, value, expected) in [
            ("X", "a\r\nb", InvalidValue::Control),
            ("X", "a\0", InvalidValue::Control),
            ("X:", "a", InvalidValue::Token),
            ("", "a", InvalidValue::Token),
            ("X Y", "a", InvalidValue::Token),
        ] {
            assert_eq!(headers.push(name, value), Err(expected), "{name:?}: {value:?}");
        }
        assert_eq!(headers.push("X", "a".repeat(HEADER_VALUE_LEN_MAX + 1)), Err(InvalidValue::TooLong));
        for _ in 0..HEADER_LINES_MAX {
            headers.push("X", "a").unwrap();
        }
        assert_eq!(headers.push("X", "a"), Err(InvalidValue::TooMany));
    }

    #[test]
    fn lists_run_over_lines() {
        let mut headers = Headers::new();
        headers.push("k", "timer, 100rel").unwrap();
        headers.push("Supported", "").unwrap();
        headers.push("Supported", "replaces").unwrap();
        assert_eq!(headers.list(Name::Supported).collect::<Vec<_>>(), ["timer", "100rel", "replaces"]);
        assert!(headers.lists("supported", "REPLACES") && !headers.lists("Supported", "path"));
    }
}
