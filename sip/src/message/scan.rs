//! Character classes and the cursor for all header views (RFC 3261 §25.1).
//!
//! This module knows no specific header and never allocates.

use crate::message::Malformed;
use crate::message::limits::PARAMS_MAX;

/// A position in a header value; the value is unfolded, so white space is space and tab only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(crate) const fn rest(&self) -> &'a str {
        self.rest
    }

    pub(crate) const fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.as_bytes().first().copied()
    }

    pub(crate) fn skip_space(&mut self) {
        if matches!(self.peek(), Some(b' ' | b'\t')) {
            self.take_while(|b| matches!(b, b' ' | b'\t'));
        }
    }

    /// Consumes `wanted`, an ASCII character, when it is next.
    pub(crate) fn eat(&mut self, wanted: u8) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.take(1);
        }
        is_next
    }

    /// Consumes `wanted` with any white space on both sides, as SLASH, SEMI, EQUAL and COMMA allow.
    pub(crate) fn eat_spaced(&mut self, wanted: u8) -> bool {
        let before = *self;
        self.skip_space();
        let is_next = self.eat(wanted);
        if is_next {
            self.skip_space();
        } else {
            *self = before;
        }
        is_next
    }

    /// Consumes bytes while `keep` is true; it must stop at an ASCII byte or the end.
    pub(crate) fn take_while(&mut self, mut keep: impl FnMut(u8) -> bool) -> &'a str {
        let len = self.rest.bytes().position(|b| !keep(b)).unwrap_or(self.rest.len());
        self.take(len)
    }

    /// Consumes a token; empty when none is next.
    pub(crate) fn token(&mut self) -> &'a str {
        self.take_while(is_token_byte)
    }

    /// Consumes a quoted string with its quotes.
    ///
    /// # Errors
    ///
    /// When no quote is next or it is not closed.
    pub(crate) fn quoted(&mut self) -> Result<&'a str, Malformed> {
        let mut escaped = false;
        for (at, byte) in self.rest.bytes().enumerate() {
            match byte {
                b'"' if at == 0 => {}
                _ if at == 0 => break,
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => return Ok(self.take(at + 1)),
                _ => {}
            }
        }
        Err(Malformed("quoted string"))
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }
}

/// Parses one parameter after its semicolon: a name, and a raw value when `=` follows.
pub(crate) fn param<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, Option<&'a str>), Malformed> {
    let name = cursor.token();
    if name.is_empty() {
        return Err(Malformed("parameter"));
    }
    if !cursor.eat_spaced(b'=') {
        return Ok((name, None));
    }
    let value = if cursor.peek() == Some(b'"') {
        cursor.quoted()?
    } else {
        cursor.take_while(|b| !matches!(b, b';' | b',' | b'"' | b'<' | b'>' | b' ' | b'\t'))
    };
    // After replacement of bytes that were not UTF-8, two different tags would look equal.
    if !value.is_ascii() && !value.starts_with('"') && value.contains('\u{fffd}') {
        return Err(Malformed("parameter"));
    }
    Ok((name, Some(value)))
}

/// Parses `;name=value` up to a comma or the end, which must follow the last parameter.
pub(crate) fn params<'a>(
    cursor: &mut Cursor<'a>,
    sink: &mut impl FnMut(&'a str, Option<&'a str>),
) -> Result<(), Malformed> {
    let mut count = 0;
    while cursor.eat_spaced(b';') {
        count += 1;
        if count > PARAMS_MAX {
            return Err(Malformed("parameter"));
        }
        let (name, value) = param(cursor)?;
        sink(name, value);
    }
    cursor.skip_space();
    match cursor.peek() {
        None | Some(b',') => Ok(()),
        Some(_) => Err(Malformed("parameter")),
    }
}

/// Parses decimal digits with checked arithmetic; leading zeros are legal, signs are not.
pub(crate) fn number(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The elements of a comma-separated list; commas inside quotes and angle brackets do not separate.
#[derive(Clone, Debug)]
pub struct List<'a> {
    rest: Option<&'a str>,
}

impl<'a> List<'a> {
    /// Parses `text` as a list; an empty text is an empty list.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let text = text.trim_matches([' ', '\t']);
        Self { rest: (!text.is_empty()).then_some(text) }
    }

    /// The text after the elements that were taken.
    pub(crate) fn rest(&self) -> Option<&'a str> {
        self.rest
    }
}

impl<'a> Iterator for List<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        let (mut quoted, mut escaped, mut angled) = (false, false, false);
        let comma = rest.bytes().position(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'<' if !quoted => angled = true,
                b'>' if !quoted => angled = false,
                _ => {}
            }
            byte == b',' && !quoted && !angled
        });
        let (element, tail) = match comma.and_then(|at| rest.split_at_checked(at)) {
            Some((element, tail)) => (element, tail.strip_prefix(',')),
            None => (rest, None),
        };
        self.rest = tail;
        Some(element.trim_matches([' ', '\t']))
    }
}

/// Whether every quote in `text` is closed.
pub(crate) fn quotes_balanced(text: &[u8]) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
    !quoted
}

/// Whether `text` is a token: one or more token characters.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&b| is_token_byte(b))
}

/// `token` of RFC 3261 §25.1.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES.get(usize::from(byte)).copied().unwrap_or(false)
}

/// One look-up per byte of every name and parameter; the table has an entry for every byte, so no bounds
/// check is needed.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which would refuse a miss")]
static TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let alphabet = b"-.!%*_+`'~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut at = 0;
    while at < alphabet.len() {
        table[alphabet[at] as usize] = true;
        at += 1;
    }
    table
};

/// Splits text at the first occurrence of an ASCII byte, which is in neither part.
pub(crate) fn divide(text: &str, byte: u8) -> Option<(&str, &str)> {
    // Mostly too short for memchr to be faster: a scheme, a user, a parameter.
    let at = text.bytes().position(|b| b == byte)?;
    let (before, rest) = text.split_at_checked(at)?;
    Some((before, rest.get(1..)?))
}

/// Removes spaces and tabs at both ends.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    trim_start(trim_end(text))
}

/// Removes spaces and tabs at the start.
pub(crate) fn trim_start(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// Removes spaces and tabs at the end.
pub(crate) fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_with_checked_arithmetic() {
        for (name, input, expected) in [
            ("leading zeros", "0068", Some(68)),
            ("largest", "18446744073709551615", Some(u64::MAX)),
            ("one more", "18446744073709551616", None),
            ("sign", "+5", None),
            ("negative", "-5", None),
            ("empty", "", None),
            ("hex", "0x1", None),
        ] {
            assert_eq!(number(input), expected, "{name}");
        }
    }

    #[test]
    fn lists_divide_at_commas_outside_quotes_and_angles() {
        for (name, input, expected) in [
            ("plain", "a, b ,c", vec!["a", "b", "c"]),
            ("quoted", r#""x, \", y" <sip:a>, b"#, vec![r#""x, \", y" <sip:a>"#, "b"]),
            ("angled", "<sip:a;x=1,2>,<sip:b>", vec!["<sip:a;x=1,2>", "<sip:b>"]),
            ("empty", " ", vec![]),
            ("empty element", "a,,b", vec!["a", "", "b"]),
        ] {
            assert_eq!(List::new(input).collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn quotes() {
        for (input, expected) in [(r#""a" b"#, true), (r#""a\""#, false), (r#""a\"" x"#, true), ("\"", false)]
        {
            assert_eq!(quotes_balanced(input.as_bytes()), expected, "{input}");
        }
    }
}
