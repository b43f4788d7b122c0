//! The page: its parts and its size limits.

use std::io;

use sidetone_report::{Html, document, shown};

use crate::{Group, Head};

use super::contents::{Entry, contents};
use super::file::{FilePart, Room};

/// Builds one self-contained page from analyses.
///
/// Calls are rendered as they arrive and then dropped. *Bounds*: ten thousand rows, and sections for the first 1,500
/// calls and as many streams without signalling, faulty ones first. Plots have as many points as fit into 6 MB, at most
/// 600 each. Memory is limited to this output, whatever the size of the captures.
#[derive(Debug)]
pub struct Page {
    /// The number of remaining captures, including the open one.
    files_left: usize,
    room: Room,
    open: Option<FilePart>,
    entries: Vec<Entry>,
    /// The parts of the complete captures.
    parts: Vec<String>,
}

impl Page {
    /// A page for this number of captures.
    pub fn new(files: usize) -> Self {
        let room = Room { rows: ROWS_MAX, sections: SECTIONS_MAX, plot_bytes: PLOT_BYTES_MAX };
        Page { files_left: files, room, open: None, entries: Vec::new(), parts: Vec::new() }
    }

    /// Starts a capture with these numbers of calls and streams.
    pub fn begin(&mut self, head: &Head, calls: usize, streams: usize) {
        self.end();
        let share = self.room.share(self.files_left.max(1));
        self.open = Some(FilePart::new(self.entries.len(), head.clone(), (calls, streams), share));
    }

    /// Takes a call with its streams, or streams without signalling, of the current capture.
    pub fn group(&mut self, group: &Group) {
        if let Some(open) = &mut self.open {
            open.group(group);
        }
    }

    /// Ends the current capture.
    fn end(&mut self) {
        let Some(open) = self.open.take() else { return };
        let is_only = self.files_left == 1 && self.entries.is_empty();
        let (part, entry, used) = open.finish(is_only);
        self.room.use_up(used);
        self.files_left = self.files_left.saturating_sub(1);
        self.parts.extend(part);
        self.entries.push(entry);
    }

    /// Writes the page.
    ///
    /// *Errors*: write errors.
    pub fn finish<W: io::Write>(mut self, mut out: W) -> io::Result<W> {
        self.end();
        let mut html = Html::default();
        let title = match self.entries.as_slice() {
            [one] => shown(&one.name),
            several => format!("{} captures", several.len()),
        };
        document::begin(&mut html, &title, MEASURED, sidetone_media::verdict::RULES_VERSION);
        contents(&mut html, &self.entries);
        out.write_all(html.into_string().as_bytes())?;
        for part in self.parts {
            out.write_all(part.as_bytes())?;
        }
        let mut html = Html::default();
        document::end(&mut html);
        out.write_all(html.into_string().as_bytes())?;
        out.flush()?;
        Ok(out)
    }
}

/// Rows of all tables of calls; and as many of streams.
const ROWS_MAX: usize = 10_000;
/// Calls, and streams without signalling, that have a section of their own.
const SECTIONS_MAX: usize = 1_500;
/// The total size of all plots.
const PLOT_BYTES_MAX: usize = 6_000_000;
/// A note on the place of the measurement.
const MEASURED: &str = "Measured at the capture point: later loss and delay are not included.";
