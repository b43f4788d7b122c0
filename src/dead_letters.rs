//! What the database refuses permanently: one file for each item, with the reason, so that nothing else waits
//! for it.
//!
//! A failure that can pass (no connection, a lock, a full disk) is retried for as long as it lasts. A row
//! that the database refuses three times on its own is written as a dead letter below the data directory and
//! skipped. `sidetone dead-letters` lists the letters and stores them again once the cause is removed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{EventId, OrganisationId, TeamId};
use sidetone_model::ports::{CdrSink, PortFuture};
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_store::Store;
use uuid::Uuid;

use crate::cdr::segment;

/// Something that can become a dead letter.
pub trait Letter: Sync {
    /// Its kind, for the file name and the metric.
    fn kind(&self) -> &'static str;

    /// Returns the complete content, to be stored again.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    fn content(&self) -> Result<Value, serde_json::Error>;
}

/// Stores items, many in one transaction.
pub trait Storing<T, R>: Sync {
    /// Stores all of `items` or none.
    fn store<'a>(&'a self, items: &'a [T]) -> PortFuture<'a, R>;
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

/// The directory of the dead letters; clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct DeadLetters {
    /// `None` where no letters are written: refused items are then retried without end.
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

    /// Returns the existing letters, each with its file, in the order in which they were written.
    ///
    /// # Errors
    /// When the directory or a file cannot be read.
    pub fn list(&self) -> io::Result<Vec<(PathBuf, DeadLetter)>> {
        let mut letters = Vec::new();
        for path in self.files()? {
            let letter = serde_json::from_slice(&fs::read(&path)?)
                .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
            letters.push((path, letter));
        }
        Ok(letters)
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

    /// Writes a refused item that the command cannot store again, in its log form; `false` when it must be
    /// tried again.
    pub(crate) fn bury_text(&self, kind: &'static str, what: &impl std::fmt::Debug, error: &Problem) -> bool {
        buried(self, &Shown { kind, text: format!("{what:?}") }, error)
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

/// Stores `items` however long the database is unavailable. Items that it refuses permanently become dead
/// letters; the result of the others is returned.
pub async fn store_all<T: Letter, R>(
    storing: &impl Storing<T, R>,
    items: &[T],
    pause: Duration,
    letters: &DeadLetters,
    waiting: &str,
) -> Vec<R> {
    let mut failing = false;
    loop {
        let error = match storing.store(items).await {
            Ok(result) => {
                if failing {
                    tracing::info!("the database goes on: {waiting} are stored");
                }
                return vec![result];
            }
            Err(error) => error,
        };
        if failing {
            tracing::debug!(%error, "{waiting} still wait for the database");
        } else {
            tracing::error!(%error, "{waiting} wait for the database");
        }
        failing = true;
        tokio::time::sleep(pause).await;
        if Fault::of(&error) != Fault::Passing {
            return one_by_one(storing, items, pause, letters).await;
        }
    }
}

/// Stores each of `items` separately.
async fn one_by_one<T: Letter, R>(
    storing: &impl Storing<T, R>,
    items: &[T],
    pause: Duration,
    letters: &DeadLetters,
) -> Vec<R> {
    let mut results = Vec::new();
    let mut pending: Vec<(&T, u32)> = items.iter().map(|item| (item, 0)).collect();
    // Whether the database stores anything at all: if not, a refusal is not the fault of an item.
    let mut works = false;
    let mut rounds = 0_u32;
    while !pending.is_empty() {
        let mut left = Vec::new();
        for (item, tries) in pending {
            let error = match patiently(storing, std::slice::from_ref(item), pause).await {
                Ok(result) => {
                    works = true;
                    results.push(result);
                    continue;
                }
                Err(error) => error,
            };
            let tries = if works || Fault::of(&error) == Fault::Refused { tries + 1 } else { tries };
            if tries < TRIES_MAX || !buried(letters, item, &error) {
                left.push((item, tries));
            }
        }
        pending = left;
        if !pending.is_empty() {
            rounds = rounds.saturating_add(1);
            works = works || rounds >= ROUNDS_MAX && patiently(storing, &[], pause).await.is_ok();
            tokio::time::sleep(pause).await;
        }
    }
    results
}

/// Stores `items` as soon as the database is available; returns its result.
async fn patiently<T, R>(storing: &impl Storing<T, R>, items: &[T], pause: Duration) -> Result<R, Problem> {
    loop {
        match storing.store(items).await {
            Err(error) if Fault::of(&error) == Fault::Passing => tokio::time::sleep(pause).await,
            outcome => return outcome,
        }
    }
}

/// Writes a dead letter; if the disk fails, the item is tried again.
fn buried(letters: &DeadLetters, item: &impl Letter, error: &Problem) -> bool {
    letters.write(item, &error.to_string()).unwrap_or_else(|failed| {
        tracing::error!(error = %failed, "a dead letter cannot be written, trying again; check the disk");
        false
    })
}

/// An event as stored in a dead letter, including its team and its full timestamp.
#[derive(Debug, Serialize, Deserialize)]
struct WrittenEvent {
    id: EventId,
    organisation_id: OrganisationId,
    team_id: Option<TeamId>,
    kind: EventKind,
    at_us: i64,
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
        data: event.data.clone(),
    })
}

/// The event of a letter's content.
fn event_of_json(content: &Value) -> Option<Event> {
    let WrittenEvent { id, organisation_id, team_id, kind, at_us, data } =
        serde_json::from_value(content.clone()).ok()?;
    Some(Event { id, kind, timestamp: Timestamp::from_micros(at_us), organisation_id, team_id, data })
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

/// The cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The database, temporarily.
    Passing,
    /// The item.
    Refused,
    /// Not known.
    Unknown,
}

impl Fault {
    /// Returns the cause of `problem`.
    pub(crate) fn of(problem: &Problem) -> Self {
        match problem {
            Problem::Busy { .. } | Problem::Unavailable { .. } => Fault::Passing,
            Problem::Internal(_) => Fault::Unknown,
            Problem::Conflict(_)
            | Problem::Forbidden(_)
            | Problem::InvalidRequest(_)
            | Problem::NotFound(_)
            | Problem::Refused(_) => Fault::Refused,
        }
    }
}

/// Below the data directory.
const DIR: &str = "dead-letters";
/// How often an item is tried separately before it becomes a dead letter.
const TRIES_MAX: u32 = 3;
/// Rounds without a success after which the database is checked for whether it stores anything at all.
const ROUNDS_MAX: u32 = 10;

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    struct Number(u32);

    impl Letter for Number {
        fn kind(&self) -> &'static str {
            "number"
        }

        fn content(&self) -> Result<Value, serde_json::Error> {
            Ok(self.0.into())
        }
    }

    /// A database with a result for each number, by the index of the attempt; every other attempt succeeds.
    struct Sink {
        refuses: fn(number: u32, tries: usize) -> Option<Problem>,
        tries: Mutex<Vec<u32>>,
        stored: Mutex<Vec<u32>>,
    }

    impl Storing<Number, usize> for Sink {
        fn store<'a>(&'a self, items: &'a [Number]) -> PortFuture<'a, usize> {
            Box::pin(async move {
                for Number(number) in items {
                    let mut tries = self.tries.lock();
                    tries.push(*number);
                    let count = tries.iter().filter(|tried| *tried == number).count();
                    if let Some(problem) = (self.refuses)(*number, count) {
                        return Err(problem);
                    }
                }
                self.stored.lock().extend(items.iter().map(|Number(number)| number));
                Ok(items.len())
            })
        }
    }

    /// Stores 0 to 9; returns what was stored, and the numbers of the dead letters.
    fn store(refuses: fn(u32, usize) -> Option<Problem>) -> (Vec<u32>, Vec<Value>) {
        let dir = std::env::temp_dir().join(format!("sidetone-letters-{}", Uuid::new_v4()));
        let letters = DeadLetters::below(&dir);
        let sink = Sink { refuses, tries: Mutex::default(), stored: Mutex::default() };
        let items: Vec<Number> = (0..10).map(Number).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(store_all(&sink, &items, Duration::ZERO, &letters, "numbers"));
        let dead = letters.list().unwrap();
        assert_eq!(letters.written(), dead.len() as u64);
        let _ = fs::remove_dir_all(&dir);
        let mut stored = sink.stored.into_inner();
        stored.sort_unstable();
        (stored, dead.into_iter().map(|(_, letter)| letter.content).collect())
    }

    fn refused() -> Option<Problem> {
        Some(Problem::Refused("too long".to_owned()))
    }

    fn unavailable() -> Option<Problem> {
        Some(Problem::Unavailable { reason: "away".to_owned(), retry_after_s: 1 })
    }

    #[test]
    fn what_is_refused_for_good_becomes_a_letter_and_the_rest_is_stored() {
        let all: Vec<u32> = (0..10).collect();
        let but_3: Vec<u32> = all.iter().copied().filter(|number| *number != 3).collect();
        let none: [Value; 0] = [];
        assert_eq!(store(|_, _| None), (all.clone(), none.to_vec()), "no fault");
        assert_eq!(
            store(|number, _| if number == 3 { refused() } else { None }),
            (but_3.clone(), vec![3.into()])
        );
        let unknown = |number, _| (number == 3).then(|| Problem::Internal("corrupt".to_owned()));
        assert_eq!(store(unknown), (but_3, vec![3.into()]), "the others are stored: it is its own fault");
        let passing = |number, tries| if number == 3 && tries < 50 { unavailable() } else { None };
        assert_eq!(store(passing), (all.clone(), none.to_vec()), "however long it takes");
        let twice = |number, tries| if number == 3 && tries < 3 { refused() } else { None };
        assert_eq!(store(twice), (all, none.to_vec()), "refused once by itself, then taken");
        let every = |_, _| refused();
        assert_eq!(store(every).1.len(), 10);
    }
}
