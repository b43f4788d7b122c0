//! Who has keyed too many wrong PINs.
//!
//! A caller who failed ten times in ten minutes at one room is refused there before the answer, at first for ten
//! minutes, each time for twice as long. That is counted per room and caller, so that nobody locks others out; an
//! extension is counted as itself and not by a number, which a trunk may pretend. A room where many fail, whoever they
//! are, becomes slow: one try a call, and a pause before each verdict. Verdicts on callers whose PIN was never right
//! there come one after another then, so that the number of calls at once buys no guesses: 1,200 an hour for a room in
//! all. Extensions, and callers whose PIN was right before, do not wait for them. The room never closes.
//!
//! The same is counted for each trunk over all rooms, so that a carrier whose callers show ever other numbers guesses no
//! faster at many rooms than at one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::{ExtensionId, RoomId, TrunkId};

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
    /// Failures of all callers at each room, and of all callers over each trunk.
    places: HashMap<Place, VecDeque<Instant>>,
    /// When a slow place has a verdict for the next caller that is not known there.
    verdicts: HashMap<Place, Instant>,
    /// Callers whose PIN was right, the latest last.
    known: VecDeque<(RoomId, Who)>,
    turn: u64,
}

/// Where the failures of all callers are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Room(RoomId),
    Trunk(TrunkId),
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
    /// A caller that came by `trunk` keyed a wrong PIN.
    pub(super) fn failed_by(&mut self, now: Instant, room: RoomId, who: &Who, trunk: Option<TrunkId>) {
        self.failed(now, room, who);
        if let Some(trunk) = trunk {
            self.count(now, Place::Trunk(trunk));
        }
    }

    /// A caller keyed a wrong PIN.
    pub(super) fn failed(&mut self, now: Instant, room: RoomId, who: &Who) {
        self.count(now, Place::Room(room));
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

    fn count(&mut self, now: Instant, place: Place) {
        let failures = self.places.entry(place).or_default();
        forget_old(failures, now);
        if failures.len() == place.slow_at() {
            failures.pop_front();
        }
        failures.push_back(now);
    }

    /// Whether the caller has to wait before the next try.
    pub(super) fn refuses(&self, now: Instant, room: RoomId, who: &Who) -> bool {
        let record = self.callers.get(&(room, who.clone()));
        record.and_then(|record| record.refused_until).is_some_and(|until| now < until)
    }

    /// Whether so many failed at the room that everybody has to be slow.
    pub(super) fn is_slow(&self, now: Instant, room: RoomId) -> bool {
        self.is_slow_at(now, Place::Room(room))
    }

    fn is_slow_at(&self, now: Instant, place: Place) -> bool {
        // The window holds the latest failures alone, so the oldest of a full one tells.
        self.places.get(&place).is_some_and(|failures| {
            failures.len() == place.slow_at()
                && failures.front().is_some_and(|oldest| now.saturating_duration_since(*oldest) < WINDOW)
        })
    }

    /// A caller keyed the right PIN.
    pub(super) fn succeeded(&mut self, room: RoomId, who: &Who) {
        // All that withhold their number would be one caller; an extension needs no past.
        if !matches!(who, Who::Number(number) if !number.is_empty()) {
            return;
        }
        let caller = (room, who.clone());
        if self.known.contains(&caller) {
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.pop_front();
        }
        self.known.push_back(caller);
    }

    /// When a caller hears the verdict on a PIN: `None` at once; `Some(None)` when so many wait that the caller has to
    /// call again.
    pub(super) fn verdict_at(
        &mut self,
        now: Instant,
        room: RoomId,
        who: &Who,
        trunk: Option<TrunkId>,
    ) -> Option<Option<Instant>> {
        let places = [Some(Place::Room(room)), trunk.map(Place::Trunk)].into_iter().flatten();
        let slow: Vec<Place> = places.filter(|place| self.is_slow_at(now, *place)).collect();
        if slow.is_empty() {
            return None;
        }
        let is_known = match who {
            Who::Extension(_) => true,
            number => self.known.iter().any(|(known, caller)| *known == room && caller == number),
        };
        if is_known {
            return Some(Some(now + VERDICT_EVERY));
        }
        let last = slow.iter().filter_map(|place| self.verdicts.get(place)).max();
        let due = last.map_or(now, |last| now.max(*last)) + VERDICT_EVERY;
        if due.saturating_duration_since(now) > VERDICT_WAIT_MAX {
            return Some(None);
        }
        self.verdicts.extend(slow.into_iter().map(|place| (place, due)));
        Some(Some(due))
    }

    /// Forgets the rooms that are stored no more.
    pub(super) fn keep(&mut self, is_stored: impl Fn(RoomId) -> bool) {
        let is_kept = |place: &Place| match place {
            Place::Room(room) => is_stored(*room),
            // As many as there are trunks.
            Place::Trunk(_) => true,
        };
        self.verdicts.retain(|place, _| is_kept(place));
        self.known.retain(|(room, _)| is_stored(*room));
        self.places.retain(|place, _| is_kept(place));
    }

    /// How many callers are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.callers.len()
    }
}

impl Place {
    fn slow_at(self) -> usize {
        match self {
            Place::Room(_) => SLOW_AT,
            Place::Trunk(_) => TRUNK_SLOW_AT,
        }
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

/// Failures over one trunk at all rooms that make it slow: a carrier's callers mistype too.
const TRUNK_SLOW_AT: usize = 200;

/// Callers that are remembered; the one whose failure is oldest goes first.
const CALLERS_MAX: usize = 10_000;

/// How far apart the verdicts of a slow room are.
const VERDICT_EVERY: Duration = Duration::from_secs(3);

/// How long a caller waits for a verdict.
const VERDICT_WAIT_MAX: Duration = Duration::from_secs(30);

/// Callers that are known to have had the right PIN, over all rooms.
const KNOWN_MAX: usize = 4_096;

/// Characters of a number that count.
const NUMBER_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::rooms::tests::any_instant;

    fn number(n: u32) -> Who {
        Who::new(None, &format!("+4477009{n:05}"))
    }

    /// Many calls at once from ever other numbers get 1,200 verdicts an hour, and callers that are known do not wait.
    #[test]
    fn a_room_under_attack_judges_strangers_one_after_another() {
        let (room, start) = (RoomId(Uuid::from_u128(1)), any_instant());
        let mut guard = Guard::default();
        guard.succeeded(room, &number(0));
        assert_eq!(guard.verdict_at(start, room, &number(1), None), None, "at once while few fail");
        for n in 0..u32::try_from(SLOW_AT).unwrap() {
            guard.failed(start, room, &number(n + 1));
        }
        let (mut verdicts, mut latest) = (0, Duration::ZERO);
        for second in 0..3_600 {
            let now = start + Duration::from_secs(second);
            // What is judged is wrong, and the room stays slow.
            for n in 0..10 {
                let who = number(1_000 + n + 10 * u32::try_from(second).unwrap());
                if let Some(due) = guard.verdict_at(now, room, &who, None).unwrap() {
                    verdicts += 1;
                    latest = latest.max(due - now);
                    guard.failed(now, room, &who);
                }
            }
            let known = guard.verdict_at(now, room, &number(0), None).unwrap();
            assert_eq!(known, Some(now + VERDICT_EVERY), "second {second}");
        }
        println!("rooms: 36000 calls in an hour from 36000 numbers, {verdicts} PINs judged");
        assert!((1_150..=1_210).contains(&verdicts), "{verdicts}");
        assert!(latest <= VERDICT_WAIT_MAX);
    }

    /// Ever other numbers at ever other rooms, by one trunk: no room becomes slow, and the trunk gets 1,200 verdicts an hour.
    #[test]
    fn a_trunk_guesses_no_faster_at_many_rooms_than_at_one() {
        let (trunk, start) = (TrunkId(Uuid::from_u128(7)), any_instant());
        let mut guard = Guard::default();
        let mut verdicts = 0;
        for second in 0..3_600_u32 {
            let now = start + Duration::from_secs(second.into());
            for n in 0..10 {
                let (room, who) =
                    (RoomId(Uuid::from_u128((n + 10 * (second % 100)).into())), number(n + 10 * second));
                let verdict = guard.verdict_at(now, room, &who, Some(trunk));
                if verdict.is_none_or(|due| due.is_some()) {
                    verdicts += 1;
                    guard.failed_by(now, room, &who, Some(trunk));
                }
            }
        }
        println!("rooms: 36000 calls in an hour by one trunk to 1000 rooms, {verdicts} PINs judged");
        assert!((1_350..=1_420).contains(&verdicts), "{verdicts}");
        let (room, other) = (RoomId(Uuid::from_u128(1)), TrunkId(Uuid::from_u128(8)));
        let now = start + Duration::from_secs(3_600);
        assert_eq!(guard.verdict_at(now, room, &number(1), Some(other)), None, "another trunk is not slow");
        assert_eq!(guard.verdict_at(now, room, &number(1), None), None, "nor is who comes by none");
    }
}
