//! Who has keyed too many wrong PINs.
//!
//! A caller who failed ten times in ten minutes at one room is refused there before the answer, at first for ten
//! minutes, each time for twice as long. That is counted per room and caller, so that nobody locks others out; an
//! extension is counted as itself and not by a number, which a trunk may pretend. A room where many fail, whoever they
//! are, becomes slow for everybody: one try a call, and a pause before each verdict. It never closes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::{ExtensionId, RoomId};

/// A caller, as wrong PINs are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// An extension that the directory authenticated.
    Extension(ExtensionId),
    /// Somebody of that number; all who withhold theirs are one.
    Number(String),
}

impl Who {
    /// The caller of that extension and number.
    pub fn new(extension: Option<ExtensionId>, number: &str) -> Self {
        match extension {
            Some(extension) => Who::Extension(extension),
            None => Who::Number(number.chars().take(NUMBER_MAX).collect()),
        }
    }
}

/// What is known of failures.
#[derive(Debug, Default)]
pub(super) struct Guard {
    callers: HashMap<(RoomId, Who), Record>,
    /// The callers, the one that failed longest ago first.
    order: BTreeMap<u64, (RoomId, Who)>,
    rooms: HashMap<RoomId, VecDeque<Instant>>,
    turn: u64,
}

#[derive(Debug, Default)]
struct Record {
    /// The failures that count, at most [`FAILURES_MAX`].
    recent: VecDeque<Instant>,
    refused_until: Option<Instant>,
    /// How often the caller was refused, which is how long it is next.
    refusals: u32,
    last: Option<Instant>,
    turn: u64,
}

impl Guard {
    /// Somebody keyed a wrong PIN.
    pub(super) fn failed(&mut self, now: Instant, room: RoomId, who: &Who) {
        let failures = self.rooms.entry(room).or_default();
        forget_old(failures, now);
        if failures.len() == SLOW_AT {
            failures.pop_front();
        }
        failures.push_back(now);

        let key = (room, who.clone());
        self.turn += 1;
        let record = self.callers.entry(key.clone()).or_default();
        self.order.remove(&record.turn);
        record.failed(now);
        record.turn = self.turn;
        self.order.insert(self.turn, key);
        if self.callers.len() > CALLERS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.callers.remove(&oldest);
        }
    }

    /// Whether the caller has to wait before the next try.
    pub(super) fn refuses(&self, now: Instant, room: RoomId, who: &Who) -> bool {
        let record = self.callers.get(&(room, who.clone()));
        record.and_then(|record| record.refused_until).is_some_and(|until| now < until)
    }

    /// Whether so many failed at the room that everybody has to be slow.
    pub(super) fn is_slow(&self, now: Instant, room: RoomId) -> bool {
        // The window holds the latest failures alone, so the oldest of a full one tells.
        self.rooms.get(&room).is_some_and(|failures| {
            failures.len() == SLOW_AT
                && failures.front().is_some_and(|oldest| now.saturating_duration_since(*oldest) < WINDOW)
        })
    }

    /// Forgets the rooms that are stored no more.
    pub(super) fn keep(&mut self, is_stored: impl Fn(RoomId) -> bool) {
        self.rooms.retain(|room, _| is_stored(*room));
    }

    /// How many callers are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.callers.len()
    }
}

impl Record {
    fn failed(&mut self, now: Instant) {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > FORGIVEN_AFTER) {
            self.refusals = 0;
        }
        self.last = Some(now);
        forget_old(&mut self.recent, now);
        self.recent.push_back(now);
        if self.recent.len() >= FAILURES_MAX {
            self.refused_until = Some(now + WINDOW * 2_u32.pow(self.refusals.min(DOUBLINGS_MAX)));
            self.refusals += 1;
            self.recent.clear();
        }
    }
}

fn forget_old(failures: &mut VecDeque<Instant>, now: Instant) {
    while failures.front().is_some_and(|at| now.saturating_duration_since(*at) >= WINDOW) {
        failures.pop_front();
    }
}

/// How long a failure counts, and for how long a caller is refused the first time.
const WINDOW: Duration = Duration::from_secs(600);

/// Failures of one caller at one room that are too many.
const FAILURES_MAX: usize = 10;

/// A caller is refused for ten minutes times two to the power of this, at most: about a day.
const DOUBLINGS_MAX: u32 = 7;

/// Without a failure for so long a caller starts anew.
const FORGIVEN_AFTER: Duration = Duration::from_secs(48 * 3600);

/// Failures at one room, whoever's, that make it slow.
const SLOW_AT: usize = 50;

/// Callers that are remembered; the one whose failure is oldest goes first.
const CALLERS_MAX: usize = 10_000;

/// Characters of a number that count.
const NUMBER_MAX: usize = 64;
