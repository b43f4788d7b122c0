//! Limits on guessing PINs.
//!
//! A caller who failed ten times in ten minutes at one room is refused there before the answer: the first
//! time for ten minutes, and each further time for twice as long. This is counted per room and caller, so
//! that one caller cannot lock out others. An extension is counted by its id, not by its number, because a
//! trunk can pretend any number.
//!
//! A room with many failures, from any callers, becomes slow: one try per call, and a pause before each
//! result. For callers who never keyed the right PIN there, the results come one after another, so that
//! parallel calls gain nothing: such a room checks at most 1,200 PINs an hour. Extensions, and callers who
//! keyed the right PIN before, do not queue. The room never closes.
//!
//! The same is counted for each trunk over all rooms. Otherwise a carrier whose callers show a new number
//! each time could guess faster at many rooms than at one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::{ExtensionId, RoomId, TrunkId};

/// The identity for which wrong PINs are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// An extension that the directory authenticated.
    Extension(ExtensionId),
    /// A caller with that number; all callers who withhold their number count as one.
    Number(String),
}

impl Who {
    /// Returns the identity of a caller with that extension and number.
    pub fn new(extension: Option<ExtensionId>, number: &str) -> Self {
        match extension {
            Some(extension) => Who::Extension(extension),
            None => Who::Number(number.chars().take(NUMBER_MAX).collect()),
        }
    }
}

/// The failures that are remembered.
#[derive(Debug, Default)]
pub(super) struct Guard {
    callers: HashMap<(RoomId, Who), Record>,
    /// The callers; the one whose last failure is oldest comes first.
    order: BTreeMap<u64, (RoomId, Who)>,
    /// Failures of all callers at each room, and of all callers over each trunk.
    places: HashMap<Place, VecDeque<Instant>>,
    /// When the latest queued result of a slow place is due; only unknown callers queue.
    verdicts: HashMap<Place, Instant>,
    /// Callers who keyed the right PIN, the latest last.
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
    /// The failures within the window, at most [`FAILURES_MAX`].
    recent: VecDeque<Instant>,
    refused_until: Option<Instant>,
    /// How often the caller was refused; decides how long the next refusal lasts.
    refusals: u32,
    last: Option<Instant>,
    turn: u64,
}

impl Guard {
    /// Counts a wrong PIN of a caller, for the caller, the room and the trunk.
    pub(super) fn failed_by(&mut self, now: Instant, room: RoomId, who: &Who, trunk: Option<TrunkId>) {
        self.failed(now, room, who);
        if let Some(trunk) = trunk {
            self.count(now, Place::Trunk(trunk));
        }
    }

    /// Counts a wrong PIN of a caller, for the caller and the room.
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

    /// Whether the caller is refused at present.
    pub(super) fn refuses(&self, now: Instant, room: RoomId, who: &Who) -> bool {
        let record = self.callers.get(&(room, who.clone()));
        record.and_then(|record| record.refused_until).is_some_and(|until| now < until)
    }

    /// Whether the room is slow because of many failures.
    pub(super) fn is_slow(&self, now: Instant, room: RoomId) -> bool {
        self.is_slow_at(now, Place::Room(room))
    }

    fn is_slow_at(&self, now: Instant, place: Place) -> bool {
        // The queue holds only the latest failures: if it is full, its oldest entry decides.
        self.places.get(&place).is_some_and(|failures| {
            failures.len() == place.slow_at()
                && failures.front().is_some_and(|oldest| now.saturating_duration_since(*oldest) < WINDOW)
        })
    }

    /// Records that a caller keyed the right PIN.
    pub(super) fn succeeded(&mut self, room: RoomId, who: &Who) {
        // All callers who withhold their number would count as one known caller. An extension never queues
        // anyway.
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

    /// Returns when a caller hears the result of a PIN: `None` means at once; `Some(None)` means that too
    /// many wait and the caller has to call again.
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

    /// Forgets the rooms that are no longer stored.
    pub(super) fn keep(&mut self, is_stored: impl Fn(RoomId) -> bool) {
        let is_kept = |place: &Place| match place {
            Place::Room(room) => is_stored(*room),
            // Bounded by the number of trunks.
            Place::Trunk(_) => true,
        };
        self.verdicts.retain(|place, _| is_kept(place));
        self.known.retain(|(room, _)| is_stored(*room));
        self.places.retain(|place, _| is_kept(place));
    }

    /// Returns how many wrong PINs were counted.
    #[cfg(test)]
    pub(super) fn failures_total(&self) -> u64 {
        self.turn
    }

    /// Returns how many callers are remembered.
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

/// How long a failure counts, and how long the first refusal lasts.
const WINDOW: Duration = Duration::from_secs(600);

/// Failures of one caller at one room that cause a refusal.
const FAILURES_MAX: usize = 10;

/// A refusal lasts at most ten minutes times two to this power: about a day.
const DOUBLINGS_MAX: u32 = 7;

/// A caller without a failure for this long starts again with the shortest refusal.
const FORGIVEN_AFTER: Duration = Duration::from_secs(48 * 3600);

/// Failures of all callers at one room that make it slow.
const SLOW_AT: usize = 50;

/// Failures over one trunk at all rooms that make the trunk slow; higher, because honest callers mistype too.
const TRUNK_SLOW_AT: usize = 200;

/// Callers that are remembered; the one whose last failure is oldest is dropped first.
const CALLERS_MAX: usize = 10_000;

/// Time between the results of a slow room.
const VERDICT_EVERY: Duration = Duration::from_secs(3);

/// How long a caller may wait for a result.
const VERDICT_WAIT_MAX: Duration = Duration::from_secs(30);

/// Callers remembered for having keyed the right PIN, over all rooms.
const KNOWN_MAX: usize = 4_096;

/// Characters of a number that are compared.
const NUMBER_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::rooms::tests::any_instant;

    fn number(n: u32) -> Who {
        Who::new(None, &format!("+4477009{n:05}"))
    }

    /// Many concurrent calls, each from a new number, get 1,200 results an hour; known callers do not queue.
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
            // Every checked PIN is wrong, so the room stays slow.
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

    /// Each call comes from a new number to another room, over one trunk: no room becomes slow, and the slow
    /// trunk gets 1,200 results an hour.
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
