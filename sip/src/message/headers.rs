//! The header lines of a message: an index over one buffer, and lines that were set later (RFC 3261 §7.3).

use std::fmt::{self, Display, Write as _};

use bytes::{Bytes, BytesMut};
use memchr::memchr3;

use crate::message::limits::{HEADER_LINES_MAX, HEADER_VALUE_LEN_MAX};
use crate::message::name::{Known, Name};
use crate::message::scan::{List, is_token, number, trim_end, trim_start};

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
/// Received lines keep their bytes, including name case and folds, and are written unchanged. Lines that are set later,
/// or copied from another message, are stored one after the other in a separate buffer: a line costs no allocation, and
/// a copied line does not keep the other message alive.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// The message into which received lines point; empty for a message that was built.
    raw: Bytes,
    /// The lines that were set or copied, without CRLFs, and the values of folded lines. The bytes of replaced lines
    /// stay in it unused.
    own: Vec<u8>,
    lines: Vec<Line>,
}

/// One line: ranges in the buffers of its [`Headers`].
#[derive(Clone, Copy, Debug)]
struct Line {
    known: Option<Known>,
    text_in: Buffer,
    /// Differs from `text_in` for a folded line.
    value_in: Buffer,
    /// The name, and the line, begin here.
    start: u32,
    name_end: u32,
    value_start: u32,
    value_end: u32,
    /// The end of the line before its CRLF.
    end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffer {
    Own,
    Raw,
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
        Self { raw: Bytes::new(), own: Vec::new(), lines: Vec::new() }
    }

    /// No header lines, with space for some.
    pub(crate) fn with_capacity(lines: usize, bytes: usize) -> Self {
        Self { raw: Bytes::new(), own: Vec::with_capacity(bytes), lines: Vec::with_capacity(lines) }
    }

    pub(crate) fn over(raw: Bytes) -> Self {
        Self { raw, own: Vec::new(), lines: Vec::with_capacity(16) }
    }

    /// Appends a received line that the indexer has checked.
    pub(crate) fn push_at(&mut self, at: LineAt) {
        let known = Known::from_bytes(self.raw.get(at.start..at.name_end).unwrap_or_default());
        let mut line = Line {
            known,
            text_in: Buffer::Raw,
            value_in: Buffer::Raw,
            start: narrow(at.start),
            name_end: narrow(at.name_end),
            value_start: narrow(at.value_start),
            value_end: narrow(at.value_end),
            end: narrow(at.end),
        };
        if let Some(value) = at.unfolded {
            line.value_in = Buffer::Own;
            line.value_start = narrow(self.own.len());
            self.own.extend_from_slice(&value);
            line.value_end = narrow(self.own.len());
        }
        self.lines.push(line);
    }

    /// Appends a header line.
    ///
    /// # Errors
    ///
    /// When the name is not a token, the value contains CR, LF or NUL, or a limit is reached.
    pub fn push<'a>(&mut self, name: impl Into<Name<'a>>, value: impl Display) -> Result<(), InvalidValue> {
        let line = self.build(name.into(), value)?;
        self.insert(self.lines.len(), line)
    }

    /// Appends a header line whose value need not be UTF-8.
    ///
    /// # Errors
    ///
    /// As [`Headers::push`].
    pub fn push_bytes<'a>(&mut self, name: impl Into<Name<'a>>, value: &[u8]) -> Result<(), InvalidValue> {
        let line = self.build_bytes(name.into(), value)?;
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
        let at = self.place_of(name).unwrap_or(0);
        let line = self.build(name, value)?;
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
        let line = self.build(name, value)?;
        self.replace(name, line)
    }

    /// Sets the only line of this name to the value of its first line with a suffix.
    pub(crate) fn extend_value(&mut self, name: Name<'_>, suffix: &[&[u8]]) -> Result<(), InvalidValue> {
        let (start, long) = (self.own.len(), name.as_str());
        self.begin_line(long);
        if let Some(line) = self.place_of(name).and_then(|at| self.lines.get(at)).copied() {
            match line.value_in {
                Buffer::Own => {
                    let end = line.value_end as usize;
                    let range = (line.value_start as usize).min(end)..end.min(start);
                    self.own.extend_from_within(range);
                }
                Buffer::Raw => self.own.extend_from_slice(line.value(&self.raw, &[])),
            }
        }
        suffix.iter().for_each(|part| self.own.extend_from_slice(part));
        let line = self.checked(name, start)?;
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
        let line = self.build(name, value)?;
        match self.place_of(name) {
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
        let (raw, own) = (&self.raw, &self.own);
        self.lines.retain(|line| !line.is(raw, own, name));
    }

    /// Removes the first element of the list of this name, over its lines: the top Via, the top Route.
    pub(crate) fn pop_first(&mut self, name: Name<'_>) -> Result<(), InvalidValue> {
        let Some(at) = self.place_of(name) else { return Ok(()) };
        let mut elements = List::new(self.header(name).ok_or(InvalidValue::Control)?);
        elements.next();
        match elements.rest().map(str::to_owned) {
            Some(rest) => self.set_first(name, rest),
            None => {
                self.lines.remove(at);
                Ok(())
            }
        }
    }

    /// Appends every line of this name of another message, bytes unchanged.
    pub fn copy_from<'a>(&mut self, other: &Self, name: impl Into<Name<'a>>) {
        let name = name.into();
        for line in other.lines.iter().filter(|line| line.is(&other.raw, &other.own, name)) {
            if self.lines.len() < HEADER_LINES_MAX {
                self.copy(other, line);
            }
        }
    }

    /// Appends the first line of this name of another message, bytes unchanged.
    pub(crate) fn copy_first_from(&mut self, other: &Self, name: Name<'_>) {
        if let Some(line) = other.place_of(name).and_then(|at| other.lines.get(at)) {
            self.copy(other, line);
        }
    }

    /// All lines in order.
    pub fn iter(&self) -> impl Iterator<Item = Header<'_>> {
        self.lines.iter().map(|line| Header {
            name: line.name(&self.raw, &self.own),
            value: line.value(&self.raw, &self.own),
        })
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
        let line = self.place_of(name.into()).and_then(|at| self.lines.get(at))?;
        Some(line.value(&self.raw, &self.own))
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
        self.lines
            .iter()
            .filter(move |line| line.is(&self.raw, &self.own, name))
            .map(|line| line.value(&self.raw, &self.own))
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
            .filter(|line| line.is(&self.raw, &self.own, name))
            .filter_map(|line| std::str::from_utf8(line.value(&self.raw, &self.own)).ok())
            .any(|value| List::new(value).any(|element| element.eq_ignore_ascii_case(token)))
    }

    /// Whether there is a line of this name.
    #[must_use]
    pub fn contains<'a>(&self, name: impl Into<Name<'a>>) -> bool {
        self.header_bytes(name).is_some()
    }

    /// All known headers with their values, for the guard's single pass.
    pub(crate) fn known(&self) -> impl Iterator<Item = (Known, &[u8])> {
        self.lines.iter().filter_map(|line| Some((line.known?, line.value(&self.raw, &self.own))))
    }

    /// Length of all lines as they are written, CRLFs included.
    pub(crate) fn wire_len(&self) -> usize {
        self.lines.iter().map(|line| line.end.saturating_sub(line.start) as usize + 2).sum()
    }

    /// Length of the lines of this name as they are written, CRLFs included.
    pub(crate) fn lines_len(&self, name: Name<'_>) -> usize {
        let of_name = self.lines.iter().filter(|line| line.is(&self.raw, &self.own, name));
        of_name.map(|line| line.end.saturating_sub(line.start) as usize + 2).sum()
    }

    /// The maximum length that [`Headers::write`] adds to [`Headers::wire_len`]: a Content-Length and the empty line.
    pub(crate) fn end_len(&self, body_len: usize) -> usize {
        let length = self.place_of(Name::ContentLength).is_none().then(|| length_len(body_len));
        2 + length.unwrap_or_default()
    }

    /// Appends all lines of `other`.
    pub(crate) fn append(&mut self, other: &Self) -> Result<(), InvalidValue> {
        other.lines.iter().try_for_each(|line| self.copy_to(other, line, self.lines.len()))
    }

    /// Copies the lines of `other` over existing ones: the first of a name replaces, further ones are added.
    pub(crate) fn overlay(&mut self, other: &Self) -> Result<(), InvalidValue> {
        for (at, line) in other.lines.iter().enumerate() {
            let name = line.name(&other.raw, &other.own);
            let is_first =
                !other.lines.iter().take(at).any(|earlier| earlier.is(&other.raw, &other.own, name));
            let place = if is_first { self.place_of(name) } else { None };
            if let Some(place) = place {
                self.remove(name);
                self.copy_to(other, line, place)?;
            } else {
                self.copy_to(other, line, self.lines.len())?;
            }
        }
        Ok(())
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
                let value = std::str::from_utf8(line.value(&self.raw, &self.own)).ok().and_then(number);
                if value != u64::try_from(body_len).ok() {
                    write_length(out, body_len);
                    continue;
                }
            }
            out.extend_from_slice(line.text(&self.raw, &self.own));
            out.extend_from_slice(b"\r\n");
        }
        if !length_written {
            write_length(out, body_len);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes a line into the own buffer; it is not in the list yet.
    fn build(&mut self, name: Name<'_>, value: impl Display) -> Result<Line, InvalidValue> {
        let (start, long) = (self.own.len(), name.as_str());
        if !is_token(long.as_bytes()) {
            return Err(InvalidValue::Token);
        }
        self.begin_line(long);
        // Writing fails only when a Display fails; then the text is cut.
        if write!(Text(&mut self.own), "{value}").is_err() {
            self.own.truncate(start);
            return Err(InvalidValue::Control);
        }
        self.checked(name, start)
    }

    fn build_bytes(&mut self, name: Name<'_>, value: &[u8]) -> Result<Line, InvalidValue> {
        let (start, long) = (self.own.len(), name.as_str());
        if !is_token(long.as_bytes()) {
            return Err(InvalidValue::Token);
        }
        self.begin_line(long);
        self.own.extend_from_slice(value);
        self.checked(name, start)
    }

    fn begin_line(&mut self, name: &str) {
        // A value is written in many small pieces, for each of which the buffer could have to grow.
        self.own.reserve(LINE_LIKELY);
        self.own.extend_from_slice(name.as_bytes());
        self.own.extend_from_slice(b": ");
    }

    /// Checks the line that was written last; removes it when it is refused.
    fn checked(&mut self, name: Name<'_>, start: usize) -> Result<Line, InvalidValue> {
        let line = self.check(name, start);
        if line.is_err() {
            self.own.truncate(start);
        }
        line
    }

    fn check(&self, name: Name<'_>, start: usize) -> Result<Line, InvalidValue> {
        let text = self.own.get(start..).unwrap_or_default();
        if memchr3(b'\r', b'\n', 0, text).is_some() {
            return Err(InvalidValue::Control);
        }
        let name_len = name.as_str().len();
        let value = trim_start(text.get(name_len + 1..).unwrap_or_default());
        let value_at = text.len() - value.len();
        let value = trim_end(value);
        if value.len() > HEADER_VALUE_LEN_MAX {
            return Err(InvalidValue::TooLong);
        }
        let place = |at: usize| u32::try_from(start + at).map_err(|_| InvalidValue::TooLong);
        Ok(Line {
            known: name.known(),
            text_in: Buffer::Own,
            value_in: Buffer::Own,
            start: place(0)?,
            name_end: place(name_len)?,
            value_start: place(value_at)?,
            value_end: place(value_at + value.len())?,
            end: place(text.len())?,
        })
    }

    fn copy_to(&mut self, other: &Self, line: &Line, at: usize) -> Result<(), InvalidValue> {
        if self.lines.len() >= HEADER_LINES_MAX {
            return Err(InvalidValue::TooMany);
        }
        self.copy(other, line);
        if let Some(line) = self.lines.pop() {
            self.lines.insert(at.min(self.lines.len()), line);
        }
        Ok(())
    }

    /// Appends a line of another message.
    fn copy(&mut self, other: &Self, line: &Line) {
        let start = self.own.len();
        self.own.extend_from_slice(line.text(&other.raw, &other.own));
        let end = self.own.len();
        let moved = |at: u32| narrow(start + at.saturating_sub(line.start) as usize);
        let (mut value_start, mut value_end) = (moved(line.value_start), moved(line.value_end));
        if line.value_in != line.text_in {
            self.own.extend_from_slice(line.value(&other.raw, &other.own));
            (value_start, value_end) = (narrow(end), narrow(self.own.len()));
        }
        self.lines.push(Line {
            known: line.known,
            text_in: Buffer::Own,
            value_in: Buffer::Own,
            start: narrow(start),
            name_end: moved(line.name_end),
            value_start,
            value_end,
            end: narrow(end),
        });
    }

    /// The index of the first line of this name.
    fn place_of(&self, name: Name<'_>) -> Option<usize> {
        match name.known() {
            Some(known) => self.lines.iter().position(|line| line.known == Some(known)),
            None => self.lines.iter().position(|line| line.is(&self.raw, &self.own, name)),
        }
    }

    fn insert(&mut self, at: usize, line: Line) -> Result<(), InvalidValue> {
        if self.lines.len() >= HEADER_LINES_MAX {
            return Err(InvalidValue::TooMany);
        }
        self.lines.insert(at.min(self.lines.len()), line);
        Ok(())
    }

    fn replace(&mut self, name: Name<'_>, line: Line) -> Result<(), InvalidValue> {
        let Some(at) = self.place_of(name) else {
            return self.insert(self.lines.len(), line);
        };
        self.remove(name);
        self.insert(at, line)
    }
}

/// Writes text to the end of a buffer.
struct Text<'a>(&'a mut Vec<u8>);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl Line {
    fn name<'a>(&self, raw: &'a [u8], own: &'a [u8]) -> Name<'a> {
        match self.known {
            Some(known) => Name::from(known),
            None => Name::Other(std::str::from_utf8(self.name_bytes(raw, own)).unwrap_or_default()),
        }
    }

    fn name_bytes<'a>(&self, raw: &'a [u8], own: &'a [u8]) -> &'a [u8] {
        range(self.text_in.of(raw, own), self.start, self.name_end)
    }

    fn value<'a>(&self, raw: &'a [u8], own: &'a [u8]) -> &'a [u8] {
        range(self.value_in.of(raw, own), self.value_start, self.value_end)
    }

    fn text<'a>(&self, raw: &'a [u8], own: &'a [u8]) -> &'a [u8] {
        range(self.text_in.of(raw, own), self.start, self.end)
    }

    fn is(&self, raw: &[u8], own: &[u8], name: Name<'_>) -> bool {
        match (self.known, name.known()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => self.name_bytes(raw, own).eq_ignore_ascii_case(name.as_str().as_bytes()),
            _ => false,
        }
    }
}

impl Buffer {
    const fn of<'a>(self, raw: &'a [u8], own: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Own => own,
            Self::Raw => raw,
        }
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

/// Length of the line that [`write_length`] writes.
fn length_len(body_len: usize) -> usize {
    let digits = body_len.checked_ilog10().map_or(1, |digits| digits as usize + 1);
    "Content-Length: ".len() + digits + 2
}

fn write_length(out: &mut BytesMut, body_len: usize) {
    // Writing to a BytesMut cannot fail.
    let _ = write!(out, "Content-Length: {body_len}\r\n");
}

fn range(bytes: &[u8], start: u32, end: u32) -> &[u8] {
    bytes.get(start as usize..end as usize).unwrap_or_default()
}

/// Length of most lines.
const LINE_LIKELY: usize = 128;

/// Every position is within the limits of a message, which are far below 4 GiB.
fn narrow(wide: usize) -> u32 {
    u32::try_from(wide).unwrap_or(u32::MAX)
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
