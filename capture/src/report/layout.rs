//! The layout of JSON: a field on each line, a row of numbers on one, and a rule with its measures on one.
//!
//! The output is built in memory in one pass: a capture of a thousand calls has 27 MB.

use serde_json::Error;

/// JSON under construction.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) text: Vec<u8>,
    depth: usize,
    /// The next value is in a list, and starts a new line if it is an object or a list.
    in_list: bool,
    /// The last value ends its line.
    breaks: bool,
    /// Objects in lists of this depth and deeper are written on one line.
    flat_from: usize,
    /// The depth of the object that is being written on one line.
    flat: Option<usize>,
}

impl Layout {
    /// An empty output; objects in lists at depth `flat_from` or deeper are one line each.
    pub(super) fn new(flat_from: usize) -> Self {
        Layout { text: Vec::new(), depth: 0, in_list: false, breaks: false, flat_from, flat: None }
    }

    /// Starts a new line.
    fn line(&mut self) {
        self.line_from(1);
    }

    /// Starts a new line with the part of [`LINE`] from `begin` on; its beginning is a comma.
    fn line_from(&mut self, begin: usize) {
        let end = 2 + self.depth * INDENT;
        match LINE.get(begin..end) {
            Some(line) => self.text.extend_from_slice(line),
            None => {
                self.text.extend_from_slice(LINE.get(begin..).unwrap_or_default());
                self.text.resize(self.text.len() + end - LINE.len(), b' ');
            }
        }
    }

    fn begin(&mut self, bracket: u8) {
        if std::mem::take(&mut self.in_list) && self.flat.is_none() {
            self.line();
        }
        self.depth += 1;
        self.breaks = false;
        self.text.push(bracket);
    }

    fn end(&mut self, bracket: u8) {
        let is_flat = self.flat.is_some();
        if self.flat == Some(self.depth) {
            self.flat = None;
        }
        self.depth = self.depth.saturating_sub(1);
        if self.breaks && !is_flat {
            self.line();
        }
        self.text.push(bracket);
    }

    pub(super) fn begin_list(&mut self) {
        self.begin(b'[');
    }

    /// Continues with an item of a list.
    #[inline]
    pub(super) fn item(&mut self, is_first: bool) {
        if !is_first {
            self.text.push(b',');
        }
        self.in_list = true;
    }

    /// An item was written.
    #[inline]
    pub(super) fn end_item(&mut self) {
        // Only objects and lists have reset it.
        self.breaks = !std::mem::take(&mut self.in_list);
    }

    pub(super) fn end_list(&mut self) {
        self.end(b']');
    }

    pub(super) fn begin_object(&mut self) {
        let is_flat = self.in_list && self.depth >= self.flat_from;
        self.begin(b'{');
        if is_flat && self.flat.is_none() {
            self.flat = Some(self.depth);
        }
    }

    /// Starts a field, up to its value. The key is an identifier of the code, which needs no escapes.
    #[inline]
    pub(super) fn key(&mut self, is_first: bool, key: &'static str) {
        debug_assert!(is_plain(key.as_bytes()), "no name of a field: {key}");
        match (self.flat, is_first) {
            (Some(_), false) => self.text.extend_from_slice(b", \""),
            _ => {
                self.begin_key(is_first);
                self.text.push(b'"');
            }
        }
        self.text.extend_from_slice(key.as_bytes());
        self.text.extend_from_slice(b"\": ");
    }

    /// Starts a key.
    #[inline]
    pub(super) fn begin_key(&mut self, is_first: bool) {
        match (self.flat, is_first) {
            (Some(_), true) => {}
            (Some(_), false) => self.text.extend_from_slice(b", "),
            (None, true) => self.line(),
            (None, false) => self.line_from(0),
        }
    }

    /// Continues from a key to its value.
    #[inline]
    pub(super) fn end_key(&mut self) {
        self.text.extend_from_slice(b": ");
    }

    /// A value with its key was written.
    #[inline]
    pub(super) fn end_value(&mut self) {
        self.breaks = true;
    }

    pub(super) fn end_object(&mut self) {
        self.end(b'}');
    }

    /// Writes a text in quotes.
    #[inline]
    pub(super) fn text(&mut self, text: &str) -> Result<(), Error> {
        if is_plain(text.as_bytes()) {
            self.text.push(b'"');
            self.text.extend_from_slice(text.as_bytes());
            self.text.push(b'"');
            Ok(())
        } else {
            self.other(text)
        }
    }

    /// Writes an identifier of the code in quotes; it needs no escapes.
    #[inline]
    pub(super) fn name(&mut self, name: &'static str) {
        debug_assert!(is_plain(name.as_bytes()), "not a name: {name}");
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.push(b'"');
    }

    /// Writes a whole number.
    #[inline]
    pub(super) fn integer(&mut self, number: i64) {
        self.digits(number.unsigned_abs(), 0, number < 0);
    }

    /// Writes an integer that may be larger.
    #[inline]
    pub(super) fn unsigned(&mut self, number: u64) {
        self.digits(number, 0, false);
    }

    /// Writes a number in the format of `serde_json`.
    #[inline]
    pub(super) fn decimal(&mut self, number: f64) -> Result<(), Error> {
        // Almost every decimal of a report has two places; the general conversion takes a third of the time.
        match hundredths(number) {
            Some(scaled) => {
                self.digits(scaled.unsigned_abs(), 2, scaled < 0);
                Ok(())
            }
            None => self.other(&number),
        }
    }

    /// Writes a rare kind of value.
    #[cold]
    pub(super) fn other(&mut self, value: &(impl serde::Serialize + ?Sized)) -> Result<(), Error> {
        serde_json::to_writer(&mut self.text, value)
    }

    /// Writes digits; the last `places` of them, none or two, after the decimal point.
    #[inline]
    fn digits(&mut self, number: u64, places: usize, is_negative: bool) {
        // Many counts are zero or small.
        if number < 10 && places == 0 && !is_negative {
            self.text.push(b'0' + number as u8);
            return;
        }
        let mut digits = Digits { bytes: [0; DIGITS_MAX], begin: DIGITS_MAX };
        let (mut end, mut whole) = (DIGITS_MAX, number);
        if places > 0 {
            let fraction = (number % 100) as u8;
            whole = number / 100;
            digits.put(b'0' + fraction % 10);
            digits.put(b'0' + fraction / 10);
            // The second decimal is left out when it is a zero.
            end -= usize::from(fraction.is_multiple_of(10));
            digits.put(b'.');
        }
        // Each turn writes a digit; there are at most twenty.
        loop {
            digits.put(b'0' + (whole % 10) as u8);
            whole /= 10;
            if whole == 0 {
                break;
            }
        }
        if is_negative {
            digits.put(b'-');
        }
        self.text.extend_from_slice(digits.bytes.get(digits.begin..end).unwrap_or_default());
    }
}

/// The digits of a number, the last one first.
struct Digits {
    bytes: [u8; DIGITS_MAX],
    begin: usize,
}

impl Digits {
    /// Puts a byte before the others.
    #[inline]
    fn put(&mut self, byte: u8) {
        self.begin = self.begin.saturating_sub(1);
        if let Some(slot) = self.bytes.get_mut(self.begin) {
            *slot = byte;
        }
    }
}

/// A number with at most two decimals, in hundredths; `None` for any other.
#[inline]
fn hundredths(number: f64) -> Option<i64> {
    let scaled = number * 100.0;
    if scaled.is_nan() || scaled.abs() > HUNDREDTHS_MAX || (number == 0.0 && number.is_sign_negative()) {
        return None;
    }
    // If this is not the nearest integer, the number has more than two decimals.
    let whole = (scaled + 0.5_f64.copysign(scaled)) as i64;
    (whole as f64 / 100.0 == number).then_some(whole)
}

/// Whether a text can be written to JSON without escapes.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let marks = words.iter().fold(0, |marks, word| marks | escaped(u64::from_le_bytes(*word)));
    // The last eight bytes overlap with those before; a shorter text is checked byte by byte.
    match text.last_chunk() {
        Some(last) => marks | escaped(u64::from_le_bytes(*last)) == 0,
        None => rest.iter().all(|byte| *byte >= b' ' && *byte != b'"' && *byte != b'\\'),
    }
}

/// Sets the highest bit of each byte that needs an escape: a control character, a quote or a backslash. Bytes above
/// such a byte may be marked wrongly.
#[inline]
fn escaped(word: u64) -> u64 {
    let below = |word: u64, limit: u8| word.wrapping_sub(EACH * u64::from(limit)) & !word;
    let quotes = below(word ^ (EACH * u64::from(b'"')), 1);
    let backslashes = below(word ^ (EACH * u64::from(b'\\')), 1);
    (below(word, b' ') | quotes | backslashes) & (EACH << 7)
}

/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;
/// Spaces of indentation for each level.
const INDENT: usize = 2;
/// A comma, the end of a line, and the spaces in front of the next.
const LINE: &[u8] = b",\n                                ";
/// Hundredths beyond this are written the general way.
const HUNDREDTHS_MAX: f64 = 1e14;
/// A sign and twenty digits; or a sign, thirteen digits, the point and two more.
const DIGITS_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_that_need_no_escape_are_found(
            text in prop::collection::vec(prop_oneof![9 => 0x20_u8.., 1 => any::<u8>(), 1 => Just(b'"')], 0..40),
        ) {
            let expected = text.iter().all(|byte| *byte >= b' ' && !matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(is_plain(&text), expected);
        }
    }
}
