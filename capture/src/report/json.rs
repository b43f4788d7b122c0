//! JSON for people and programs, written call by call.
//!
//! A timeline has a row for every second; with a line for each number it would be most of the output. So each
//! row is one line, and every rule with its measures as well.

use std::io::{self, Write};

use serde::Serialize;

use crate::{Head, Part, Parts};

use super::layout::Layout;

/// Writes analyses: a field on each line; lists of plain values stay on one line, and so does an object in a
/// list of a call or a stream: a rule with its measures.
///
/// Only the call that is being written is in memory.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
    layout: Layout,
    is_list: bool,
    is_first: bool,
}

impl<W: Write> Json<W> {
    /// Writes one analysis.
    pub fn object(out: W) -> Self {
        Json { out, layout: Layout::new(RULES_DEPTH), is_list: false, is_first: true }
    }

    /// Writes several analyses as a list.
    pub fn list(out: W) -> Self {
        let mut layout = Layout::new(RULES_DEPTH + 1);
        layout.begin_list();
        Json { out, layout, is_list: true, is_first: true }
    }

    /// Writes an analysis as it is produced.
    ///
    /// *Errors*: write errors.
    pub fn parts(&mut self, parts: Parts) -> io::Result<()> {
        let head = parts.head.clone();
        self.each(&head, parts)
    }

    /// The same for parts from any source: the calls first, then the streams.
    ///
    /// *Errors*: write errors.
    pub fn each(&mut self, head: &Head, parts: impl Iterator<Item = Part>) -> io::Result<()> {
        self.begin(head)?;
        let mut in_calls = true;
        for part in parts {
            match part {
                Part::Call(call) => self.item(&*call)?,
                Part::Stream(stream) => {
                    if std::mem::take(&mut in_calls) {
                        self.next_list("streams")?;
                    }
                    self.item(&*stream)?;
                }
            }
        }
        if in_calls {
            self.next_list("streams")?;
        }
        self.end()
    }

    /// Ends the output, and returns the writer.
    ///
    /// *Errors*: write errors.
    pub fn finish(mut self) -> io::Result<W> {
        if self.is_list {
            self.layout.end_list();
        }
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes an analysis up to its calls.
    fn begin(&mut self, head: &Head) -> io::Result<()> {
        let Head { file, packets, bytes, skipped, times, registrations } = head;
        if self.is_list {
            self.layout.item(self.is_first);
        }
        self.is_first = true;
        self.layout.begin_object();
        self.field("file", file)?;
        self.field("packets", packets)?;
        self.field("bytes", bytes)?;
        self.field("skipped", skipped)?;
        if !times.are_sound() {
            self.field("times", times)?;
        }
        if !registrations.is_empty() {
            self.field("registrations", registrations)?;
        }
        self.key("calls");
        self.layout.begin_list();
        self.is_first = true;
        Ok(())
    }

    /// Ends a list, and starts another.
    fn next_list(&mut self, key: &'static str) -> io::Result<()> {
        self.layout.end_list();
        self.layout.end_value();
        self.is_first = false;
        self.key(key);
        self.layout.begin_list();
        self.is_first = true;
        Ok(())
    }

    /// Ends the last list and the analysis.
    fn end(&mut self) -> io::Result<()> {
        self.layout.end_list();
        self.layout.end_value();
        self.layout.end_object();
        if self.is_list {
            self.layout.end_item();
        }
        self.is_first = false;
        self.flush()
    }

    fn key(&mut self, key: &'static str) {
        self.layout.key(std::mem::take(&mut self.is_first), key);
    }

    fn field(&mut self, key: &'static str, value: &impl Serialize) -> io::Result<()> {
        self.key(key);
        value.serialize(&mut self.layout)?;
        self.layout.end_value();
        Ok(())
    }

    /// An item of a list.
    fn item(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.layout.item(std::mem::take(&mut self.is_first));
        value.serialize(&mut self.layout)?;
        self.layout.end_item();
        if self.layout.text.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.layout.text)?;
        self.layout.text.clear();
        Ok(())
    }
}

/// The depth of a list of rules: the analysis, its calls, a call.
const RULES_DEPTH: usize = 4;
/// Bytes of one write.
const WRITE_BYTES: usize = 64 << 10;

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
