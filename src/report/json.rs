//! JSON for people and programs: a field on each line, a row of numbers on one.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Writes `value` with a field on each line; lists of anything but objects and lists stay on theirs.
///
/// A timeline has a row for every second, and a line for each of its numbers would be most of the whole.
///
/// *Errors*: what `out` reports.
pub fn json(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Lines::default())).map_err(io::Error::from)
}

/// Where the writing is.
#[derive(Debug, Default)]
struct Lines {
    depth: usize,
    /// What comes next is in a list, and begins a line of its own if it is an object or a list.
    in_list: bool,
    /// What was written last ends a line of its own.
    breaks: bool,
}

impl Lines {
    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        let mut left = self.depth * INDENT;
        while left > 0 {
            let here = left.min(SPACES.len());
            out.write_all(SPACES.get(..here).unwrap_or_default())?;
            left -= here;
        }
        Ok(())
    }

    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.in_list) {
            self.line(out)?;
        }
        self.depth += 1;
        self.breaks = false;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.breaks {
            self.line(out)?;
        }
        out.write_all(bracket)
    }
}

impl Formatter for Lines {
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
        self.begin(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.breaks = true;
        Ok(())
    }
}

/// Spaces that each level stands further to the right.
const INDENT: usize = 2;
const SPACES: &[u8] = b"                                ";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn rows_of_numbers_are_one_line() {
        let value = json!({
            "name": "a\n\"b\"", "nothing": null, "none": [], "empty": {}, "types": [0, 101],
            "rows": [[1, 2.5, null], [3, true, "x"]], "calls": [{ "streams": [0, 1] }, {}],
        });
        let mut text = Vec::new();
        super::json(&mut text, &value).unwrap();
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
    {}
  ]
}"#;
        assert_eq!(str::from_utf8(&text).unwrap(), expected);
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), value);
    }
}
