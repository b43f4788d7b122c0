//! JSON for people and programs: a field on each line, a row of numbers on one, and a rule with its measures on one.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::capture::Analysis;

/// Writes one analysis with a field on each line; lists of anything but objects and lists stay on theirs, and so does
/// an object in a list of a call or a stream: a rule with its measures.
///
/// A timeline has a row for every second, and a line for each of its numbers would be most of the whole.
///
/// *Errors*: what `out` reports.
pub fn json(out: impl Write, analysis: &Analysis) -> io::Result<()> {
    lines(out, analysis, RULES_DEPTH)
}

/// Writes several analyses as a list.
///
/// *Errors*: what `out` reports.
pub fn json_list(out: impl Write, analyses: &[Analysis]) -> io::Result<()> {
    lines(out, &analyses, RULES_DEPTH + 1)
}

/// Writes `value`; objects in lists that stand `flat_from` levels deep are a line each.
fn lines(out: impl Write, value: &impl Serialize, flat_from: usize) -> io::Result<()> {
    let lines = Lines { flat_from, ..Lines::default() };
    value.serialize(&mut Serializer::with_formatter(out, lines)).map_err(io::Error::from)
}

/// Where the writing is.
#[derive(Debug, Default)]
struct Lines {
    depth: usize,
    /// What comes next is in a list, and begins a line of its own if it is an object or a list.
    in_list: bool,
    /// What was written last ends a line of its own.
    breaks: bool,
    /// Objects in lists of this depth and deeper are written on one line.
    flat_from: usize,
    /// The depth of the object that is being written on one line.
    flat: Option<usize>,
}

impl Lines {
    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        let (line, more) = (1 + self.depth * INDENT, LINE.len());
        out.write_all(LINE.get(..line).unwrap_or(LINE))?;
        for _ in more..line {
            out.write_all(b" ")?;
        }
        Ok(())
    }

    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.in_list) && self.flat.is_none() {
            self.line(out)?;
        }
        self.depth += 1;
        self.breaks = false;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        let is_flat = self.flat.is_some();
        if self.flat == Some(self.depth) {
            self.flat = None;
        }
        self.depth = self.depth.saturating_sub(1);
        if self.breaks && !is_flat {
            self.line(out)?;
        }
        out.write_all(bracket)
    }
}

impl Formatter for Lines {
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        match decimal(value) {
            Some(digits) => out.write_all(digits.text()),
            None => serde_json::ser::CompactFormatter.write_f64(out, value),
        }
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.in_list = true;
        if first { Ok(()) } else { out.write_all(b",") }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _out: &mut W) -> io::Result<()> {
        // Only objects and lists have used it up.
        self.breaks = !std::mem::take(&mut self.in_list);
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let is_flat = self.in_list && self.depth >= self.flat_from;
        self.begin(out, b"{")?;
        if is_flat && self.flat.is_none() {
            self.flat = Some(self.depth);
        }
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        match (self.flat, first) {
            (Some(_), true) => Ok(()),
            (Some(_), false) => out.write_all(b", "),
            (None, true) => self.line(out),
            (None, false) => {
                out.write_all(b",")?;
                self.line(out)
            }
        }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.breaks = true;
        Ok(())
    }
}

/// The digits of a number with two decimals.
struct Digits {
    bytes: [u8; DIGITS_MAX],
    begin: usize,
    end: usize,
}

impl Digits {
    fn text(&self) -> &[u8] {
        self.bytes.get(self.begin..self.end).unwrap_or_default()
    }

    /// Puts a byte in front of the others.
    fn put(&mut self, byte: u8) {
        if let Some(place) = self.begin.checked_sub(1) {
            if let Some(slot) = self.bytes.get_mut(place) {
                *slot = byte;
            }
            self.begin = place;
        }
    }
}

/// A number of no more than two decimals as it is always written, `20.0` or `12.34`; `None` for any other.
///
/// Almost every decimal of a report is one, and its digits are found in a third of the time of any number's.
fn decimal(value: f64) -> Option<Digits> {
    let scaled = (value * 100.0).round();
    if scaled.abs() > HUNDREDTHS_MAX || scaled / 100.0 != value || (scaled == 0.0 && value.is_sign_negative())
    {
        return None;
    }
    let hundredths = (scaled.abs() as u64 % 100) as u8;
    let mut whole = scaled.abs() as u64 / 100;
    let mut digits = Digits { bytes: [0; DIGITS_MAX], begin: DIGITS_MAX, end: DIGITS_MAX };
    digits.put(b'0' + hundredths % 10);
    digits.put(b'0' + hundredths / 10);
    // The second decimal is left out when it is a zero.
    digits.end -= usize::from(hundredths.is_multiple_of(10));
    digits.put(b'.');
    // Each turn is a digit, of which there are no more than twelve.
    loop {
        digits.put(b'0' + (whole % 10) as u8);
        whole /= 10;
        if whole == 0 {
            break;
        }
    }
    if scaled < 0.0 {
        digits.put(b'-');
    }
    Some(digits)
}

/// Spaces that each level stands further to the right.
const INDENT: usize = 2;
const LINE: &[u8] = b"\n                                ";
/// How deep a list of rules stands: the analysis, its calls, a call.
const RULES_DEPTH: usize = 4;
/// Hundredths beyond this are written the general way.
const HUNDREDTHS_MAX: f64 = 1e14;
/// A sign, twelve digits, the point and two more.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    proptest! {
        #[test]
        fn decimals_are_written_as_ever(hundredths in prop_oneof![-10_000_i64..10_000_000, any::<i64>()], other: f64) {
            for value in [hundredths as f64 / 100.0, other, f64::from(other as f32), -0.0, hundredths as f64] {
                let mut text = Vec::new();
                lines(&mut text, &value, 9).unwrap();
                prop_assert_eq!(String::from_utf8(text).unwrap(), serde_json::to_string(&value).unwrap());
            }
        }
    }

    #[test]
    fn rows_of_numbers_are_one_line() {
        let value = json!({
            "name": "a\n\"b\"", "nothing": null, "none": [], "empty": {}, "types": [0, 101],
            "rows": [[1, 2.5, null], [3, true, "x"]], "calls": [{ "streams": [0, 1] }, {
                "rules": [{ "rule": "ok", "measures": [{ "name": "a", "of": [1, 2] }, {}] }, {}], "why": {},
            }],
        });
        let mut text = Vec::new();
        lines(&mut text, &value, RULES_DEPTH).unwrap();
        let expected = r#"{
  "name": "a\n\"b\"",
  "nothing": null,
  "none": [],
  "empty": {},
  "types": [0,101],
  "rows": [
    [1,2.5,null],
    [3,true,"x"]
  ],
  "calls": [
    {
      "streams": [0,1]
    },
    {
      "rules": [
        {"rule": "ok", "measures": [{"name": "a", "of": [1,2]},{}]},
        {}
      ],
      "why": {}
    }
  ]
}"#;
        assert_eq!(str::from_utf8(&text).unwrap(), expected);
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), value);
    }
}
