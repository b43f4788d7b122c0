//! The directories of traces: one for each day, deleted after the retention time.

use std::fs::ReadDir;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sidetone_model::time::Timestamp;

/// Deletes old traces, a few files at a time.
#[derive(Debug)]
pub(super) struct Days {
    dir: PathBuf,
    /// The day that is being emptied.
    open: Option<(PathBuf, ReadDir)>,
    next_look: Timestamp,
}

impl Days {
    pub(super) fn new(dir: PathBuf, now: Timestamp) -> Days {
        Days { dir, open: None, next_look: now }
    }

    /// Deletes some files of a day before the last `days`; returns how many. All days are listed once an
    /// hour; one day is processed at a time.
    pub(super) fn step(&mut self, now: Timestamp, days: u32) -> io::Result<u64> {
        let mut deleted = 0;
        if self.open.is_none() {
            if now < self.next_look {
                return Ok(0);
            }
            let kept_from = day_of(now.plus_micros(-i64::from(days) * DAY_US));
            self.open = self.oldest_before(&kept_from)?;
            if self.open.is_none() {
                self.next_look = now.plus_micros(LOOK_EVERY.as_micros() as i64);
            }
        }
        let Some((path, files)) = &mut self.open else { return Ok(0) };
        for entry in files {
            let file = entry?.path();
            // Only traces are deleted.
            if is_trace(&file) {
                std::fs::remove_file(file)?;
                deleted += 1;
            }
            if deleted == FILES_MAX {
                return Ok(deleted);
            }
        }
        let emptied = std::fs::remove_dir(path);
        self.open = None;
        match emptied {
            // It contains other files; the day is skipped from now on.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            emptied => emptied?,
        }
        Ok(deleted)
    }

    /// Stops with the current day until the next listing.
    pub(super) fn rest(&mut self, now: Timestamp) {
        self.open = None;
        self.next_look = now.plus_micros(LOOK_EVERY.as_micros() as i64);
    }

    fn oldest_before(&self, kept_from: &str) -> io::Result<Option<(PathBuf, ReadDir)>> {
        let entries = match std::fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let mut oldest: Option<String> = None;
        for entry in entries {
            let Ok(name) = entry?.file_name().into_string() else { continue };
            let older = oldest.as_ref().is_none_or(|oldest| name < *oldest);
            if is_day(&name) && name.as_str() < kept_from && older && !self.is_stuck(&name) {
                oldest = Some(name);
            }
        }
        let Some(name) = oldest else { return Ok(None) };
        let path = self.dir.join(name);
        let files = std::fs::read_dir(&path)?;
        Ok(Some((path, files)))
    }

    /// Whether a day contains only foreign files.
    fn is_stuck(&self, name: &str) -> bool {
        let mut entries = std::fs::read_dir(self.dir.join(name)).into_iter().flatten().flatten().peekable();
        entries.peek().is_some() && !entries.any(|entry| is_trace(&entry.path()))
    }
}

/// The UTC day of `at`, as the name of a directory.
pub(super) fn day_of(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

fn is_trace(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "trace")
}

fn is_day(name: &str) -> bool {
    let shape = name.bytes().enumerate().all(|(place, byte)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    name.len() == 10 && shape
}

/// Files that are deleted between two checks for data to write.
const FILES_MAX: u64 = 64;
const LOOK_EVERY: Duration = Duration::from_secs(3_600);
const DAY_US: i64 = 24 * 3_600 * 1_000_000;
