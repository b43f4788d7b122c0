//! Items that the database refuses permanently: one file for each, with the reason, so that nothing else waits for
//! it.
//!
//! `storing.rs` decides which items are refused. A letter is a file below the data directory. `sidetone dead-letters`
//! lists the letters and stores them again once the cause is removed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{EventId, OrganisationId, TeamId};
use sidetone_model::ports::CdrSink;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_store::Store;
use uuid::Uuid;

use crate::cdr::segment;

/// An item that can become a dead letter.
pub trait Letter: Sync {
    /// Its kind, for the file name and the metric.
    fn kind(&self) -> &'static str;

    /// Returns the complete content, to be stored again.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    fn content(&self) -> Result<Value, serde_json::Error>;
}

/// A dead letter, as in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Its kind: `call_record`, `event`, `note` or `room_history`.
    pub kind: String,
    /// Why the database refused it.
    pub reason: String,
    /// The complete content.
    pub content: Value,
}

/// The directory of the dead letters; clones share one state.
#[derive(Debug, Clone, Default)]
pub struct DeadLetters {
    /// `None` if no letters are written: refused items are then retried without end.
    dir: Option<PathBuf>,
    written: Arc<AtomicU64>,
}

impl DeadLetters {
    /// The letters of the node whose data are in `data_dir`; the directory is created with the first letter.
    pub fn below(data_dir: &Path) -> Self {
        Self { dir: Some(data_dir.join(DIR)), written: Arc::default() }
    }

    /// Letters written since the start.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns their directory.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Returns the existing letters, each with its file, in the order in which they were written. One that cannot be
    /// read does not prevent the others.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self) -> io::Result<Vec<(PathBuf, io::Result<DeadLetter>)>> {
        let letter = |path: &Path| {
            let text = fs::read(path)?;
            serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        };
        let letters = self.files()?.into_iter().map(|path| {
            let letter = letter(&path);
            (path, letter)
        });
        Ok(letters.collect())
    }

    /// Returns the files of the existing letters.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match self.dir.as_ref().map(fs::read_dir) {
            None => return Ok(Vec::new()),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Some(entries) => entries?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    /// Writes a refused item; `false` if it must be tried again, because letters are not written or the disk fails.
    pub(crate) fn bury(&self, letter: &impl Letter, error: &Problem) -> bool {
        self.write(letter, &error.to_string()).unwrap_or_else(|failed| {
            tracing::error!(error = %failed, "a dead letter cannot be written, trying again; check the disk");
            false
        })
    }

    /// Writes a refused item that the command cannot store again, in its log form; `false` when it must be
    /// tried again.
    pub(crate) fn bury_text(&self, kind: &'static str, what: &impl std::fmt::Debug, error: &Problem) -> bool {
        self.bury(&Shown { kind, text: format!("{what:?}") }, error)
    }

    /// Writes `letter` durably; `false` when letters are not written.
    fn write(&self, letter: &impl Letter, reason: &str) -> io::Result<bool> {
        let Some(dir) = &self.dir else { return Ok(false) };
        let kind = letter.kind();
        let content = letter.content().map_err(io::Error::other)?;
        let dead = DeadLetter { kind: kind.to_owned(), reason: reason.to_owned(), content };
        let bytes = serde_json::to_vec_pretty(&dead).map_err(io::Error::other)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let name = format!("{}-{kind}", Uuid::now_v7());
        let (path, unfinished) = (dir.join(format!("{name}.json")), dir.join(format!("{name}.tmp")));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        File::open(dir)?.sync_all()?;
        self.written.fetch_add(1, Ordering::Relaxed);
        tracing::error!(
            reason,
            file = %path.display(),
            "the database refuses a {kind}: it is a dead letter, the others go on; repair the cause, then run \
             `sidetone dead-letters --replay`"
        );
        Ok(true)
    }
}

/// An event as stored in a dead letter, including its team and its full timestamp.
#[derive(Debug, Serialize, Deserialize)]
struct WrittenEvent {
    id: EventId,
    organisation_id: OrganisationId,
    team_id: Option<TeamId>,
    kind: EventKind,
    at_us: i64,
    /// The text of its viewers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    viewers: Option<String>,
    data: Map<String, Value>,
}

/// The content of an event's letter.
pub(crate) fn event_to_json(event: &Event) -> Result<Value, serde_json::Error> {
    serde_json::to_value(WrittenEvent {
        id: event.id,
        organisation_id: event.organisation_id,
        team_id: event.team_id,
        kind: event.kind,
        at_us: event.timestamp.as_micros(),
        viewers: event.viewers.as_ref().map(ToString::to_string),
        data: event.data.clone(),
    })
}

/// The event of a letter's content.
fn event_of_json(content: &Value) -> Option<Event> {
    let WrittenEvent { id, organisation_id, team_id, kind, at_us, viewers, data } =
        serde_json::from_value(content.clone()).ok()?;
    let viewers = viewers.and_then(|viewers| viewers.parse().ok()).map(Arc::new);
    let timestamp = Timestamp::from_micros(at_us);
    Some(Event { id, kind, timestamp, organisation_id, team_id, viewers, data })
}

/// Stores a letter again; `false` when its kind cannot be stored again.
///
/// # Errors
/// Why the database refuses it.
pub async fn replay(store: &Store, letter: &DeadLetter) -> Result<bool, Problem> {
    match letter.kind.as_str() {
        "call_record" => match segment::of_json(&letter.content) {
            Some(cdr) => CdrSink::store(store, &[cdr]).await.map(|_| true),
            None => Ok(false),
        },
        "event" => match event_of_json(&letter.content) {
            Some(event) => store.store_events(&[event]).await.map_err(Problem::from).map(|()| true),
            None => Ok(false),
        },
        _ => Ok(false),
    }
}

/// An item that is listed and cannot be stored again.
struct Shown {
    kind: &'static str,
    text: String,
}

impl Letter for Shown {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn content(&self) -> Result<Value, serde_json::Error> {
        Ok(self.text.as_str().into())
    }
}

/// Below the data directory.
const DIR: &str = "dead-letters";
