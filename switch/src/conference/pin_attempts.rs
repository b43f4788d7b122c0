//! Limits on guessing PINs.
//!
//! A caller who failed ten times in ten minutes at one room is refused there before the answer: the first
//! time for ten minutes, and each further time for twice as long. This is counted per room and caller, so
//! that one caller cannot lock out others. An extension is counted by its id, not by its number, because a
//! trunk can send any number. Callers who withhold their number are not refused, because they cannot be
//! distinguished.
//!
//! A room with many failures within an hour becomes slow: one try per call, and the results come one after
//! another, so that parallel calls gain nothing. Extensions, and callers who keyed the right PIN before, do
//! not queue until they have failed often themselves. Callers without a number have a separate count and a
//! separate queue. From all callers together, a room checks at most 200 wrong PINs an hour: 60 before
//! it is slow and 80 after that, 20 of known callers, and 10 and 30 of callers without a number. The room
//! never closes.
//!
//! The same is counted for each trunk, and for each organisation over all its rooms. Otherwise callers who show
//! a new number each time could guess faster at many rooms than at one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::{ExtensionId, OrganisationId, RoomId, TrunkId};
use sidetone_model::pin_guessing::PinLimit;

/// The identity for which wrong PINs are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PinCaller {
    /// An extension that the directory authenticated.
    Extension(ExtensionId),
    /// A caller with that number; all callers who withhold their number count as one.
    Number(String),
}

impl PinCaller {
    /// Returns the identity of a caller with that extension and number.
    pub fn new(extension: Option<ExtensionId>, number: &str) -> Self {
        match extension {
            Some(extension) => PinCaller::Extension(extension),
            None => PinCaller::Number(number.chars().take(NUMBER_MAX).collect()),
        }
    }
}

/// A PIN that a caller keyed at a room.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) organisation: OrganisationId,
    pub(super) room: RoomId,
    pub(super) who: PinCaller,
    /// The trunk that the call came by.
    pub(super) trunk: Option<TrunkId>,
}

/// A limit that was reached: so many wrong PINs within that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) limit: PinLimit,
    pub(super) failures: usize,
    pub(super) window: Duration,
}

/// The failures that are remembered.
#[derive(Debug, Default)]
pub(super) struct PinAttempts {
    callers: HashMap<(RoomId, PinCaller), Record>,
    /// The callers; the one whose last failure is oldest comes first.
    order: BTreeMap<u64, (RoomId, PinCaller)>,
    /// Failures of many callers.
    places: HashMap<Place, Failures>,
    /// Callers who keyed the right PIN, the latest last.
    known: VecDeque<(RoomId, PinCaller)>,
    turn: u64,
}

/// A scope in which the failures of many callers are counted together. Callers without a number are counted
/// separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// Extensions and callers who keyed the right PIN before, at a room.
    Known(RoomId),
    Organisation(OrganisationId, Shown),
    Room(RoomId, Shown),
    Trunk(TrunkId, Shown),
}

/// Whether callers show a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shown {
    Number,
    Withheld,
}

/// The failures at one place.
#[derive(Debug, Default)]
struct Failures {
    /// The latest within the window, at most [`Place::slow_at`].
    recent: VecDeque<Instant>,
    /// When the latest queued result is due.
    verdict: Option<Instant>,
    /// When it was last reported that the place is slow.
    reported: Option<Instant>,
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

impl PinCaller {
    fn shown(&self) -> Shown {
        match self {
            PinCaller::Number(number) if number.is_empty() => Shown::Withheld,
            PinCaller::Extension(_) | PinCaller::Number(_) => Shown::Number,
        }
    }
}

impl Attempt {
    /// The places where its failure counts, and where its result may have to wait.
    fn places(&self) -> impl Iterator<Item = Place> {
        let shown = self.who.shown();
        let trunk = self.trunk.map(|trunk| Place::Trunk(trunk, shown));
        [Place::Room(self.room, shown), Place::Organisation(self.organisation, shown)]
            .into_iter()
            .chain(trunk)
    }
}

impl PinAttempts {
    /// Counts a wrong PIN; returns the limits that it reaches.
    pub(super) fn failed(&mut self, now: Instant, attempt: &Attempt) -> Vec<Reached> {
        let known = self.knows(attempt).then_some(Place::Known(attempt.room));
        let mut reached: Vec<Reached> =
            attempt.places().chain(known).filter_map(|place| self.count(now, place)).collect();
        let key = (attempt.room, attempt.who.clone());
        self.turn += 1;
        let record = self.callers.entry(key.clone()).or_default();
        self.order.remove(&record.turn);
        if record.failed(now) && attempt.who.shown() == Shown::Number {
            reached.push(Reached { limit: PinLimit::Caller, failures: FAILURES_MAX, window: WINDOW });
        }
        record.turn = self.turn;
        self.order.insert(self.turn, key);
        if self.callers.len() > CALLERS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.callers.remove(&oldest);
        }
        reached
    }

    /// Counts a failure at a place; returns the limit if the place is slow from now on.
    fn count(&mut self, now: Instant, place: Place) -> Option<Reached> {
        let failures = self.places.entry(place).or_default();
        forget_old(&mut failures.recent, now, PLACE_WINDOW);
        if failures.recent.len() == place.slow_at() {
            failures.recent.pop_front();
        }
        failures.recent.push_back(now);
        let was_reported =
            failures.reported.is_some_and(|reported| now.saturating_duration_since(reported) < PLACE_WINDOW);
        if was_reported || failures.recent.len() < place.slow_at() {
            return None;
        }
        failures.reported = Some(now);
        Some(Reached { limit: place.limit(), failures: place.slow_at(), window: PLACE_WINDOW })
    }

    /// Whether the caller is refused at present.
    pub(super) fn refuses(&self, now: Instant, room: RoomId, who: &PinCaller) -> bool {
        if who.shown() == Shown::Withheld {
            return false;
        }
        let record = self.callers.get(&(room, who.clone()));
        record.and_then(|record| record.refused_until).is_some_and(|until| now < until)
    }

    /// Whether the room is slow for such callers because of many failures.
    pub(super) fn is_slow(&self, now: Instant, attempt: &Attempt) -> bool {
        self.is_slow_at(now, Place::Room(attempt.room, attempt.who.shown()))
    }

    fn is_slow_at(&self, now: Instant, place: Place) -> bool {
        // The queue holds only the latest failures: if it is full, its oldest entry decides.
        self.places.get(&place).is_some_and(|failures| {
            failures.recent.len() == place.slow_at()
                && failures
                    .recent
                    .front()
                    .is_some_and(|oldest| now.saturating_duration_since(*oldest) < PLACE_WINDOW)
        })
    }

    /// Records that a caller keyed the right PIN.
    pub(super) fn succeeded(&mut self, room: RoomId, who: &PinCaller) {
        // All callers who withhold their number would count as one known caller. An extension is known anyway.
        if !matches!(who, PinCaller::Number(number) if !number.is_empty()) {
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

    fn knows(&self, attempt: &Attempt) -> bool {
        match &attempt.who {
            PinCaller::Extension(_) => true,
            number => self.known.iter().any(|(room, caller)| *room == attempt.room && caller == number),
        }
    }

    /// Returns when a caller hears the result of a PIN: `None` means immediately; `Some(None)` means that too
    /// many callers wait and this one has to call again.
    pub(super) fn verdict_at(&mut self, now: Instant, attempt: &Attempt) -> Option<Option<Instant>> {
        let slow: Vec<Place> = attempt.places().filter(|place| self.is_slow_at(now, *place)).collect();
        if slow.is_empty() {
            return None;
        }
        if self.knows(attempt) && !self.is_slow_at(now, Place::Known(attempt.room)) {
            return Some(Some(now + KNOWN_VERDICT));
        }
        let free_at = |place: &Place| {
            let last = self.places.get(place).and_then(|failures| failures.verdict);
            last.map_or(now, |last| now.max(last)) + place.pace()
        };
        let due = slow.iter().map(free_at).fold(now, Instant::max);
        if due.saturating_duration_since(now) > VERDICT_WAIT_MAX {
            return Some(None);
        }
        for place in slow {
            self.places.entry(place).or_default().verdict = Some(due);
        }
        Some(Some(due))
    }

    /// Forgets the rooms that are no longer stored.
    pub(super) fn keep(&mut self, is_stored: impl Fn(RoomId) -> bool) {
        self.known.retain(|(room, _)| is_stored(*room));
        self.places.retain(|place, _| match place {
            Place::Known(room) | Place::Room(room, _) => is_stored(*room),
            // Bounded by the number of organisations and trunks.
            Place::Organisation(..) | Place::Trunk(..) => true,
        });
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
    /// The failures within [`PLACE_WINDOW`] that make it slow.
    fn slow_at(self) -> usize {
        match self {
            Place::Known(_) => 20,
            Place::Organisation(_, Shown::Number) => 1_000,
            Place::Organisation(_, Shown::Withheld) => 200,
            Place::Room(_, Shown::Number) => 60,
            Place::Room(_, Shown::Withheld) => 10,
            // Higher than a room's, because honest callers mistype too.
            Place::Trunk(_, Shown::Number) => 400,
            Place::Trunk(_, Shown::Withheld) => 100,
        }
    }

    /// Time between the results while it is slow.
    fn pace(self) -> Duration {
        match self {
            Place::Organisation(_, Shown::Number) => Duration::from_secs(4),
            Place::Organisation(_, Shown::Withheld) => Duration::from_secs(20),
            Place::Known(_) | Place::Room(_, Shown::Number) => Duration::from_secs(45),
            Place::Room(_, Shown::Withheld) => Duration::from_secs(120),
            Place::Trunk(_, Shown::Number) => Duration::from_secs(6),
            Place::Trunk(_, Shown::Withheld) => Duration::from_secs(24),
        }
    }

    fn limit(self) -> PinLimit {
        match self {
            Place::Known(_) => PinLimit::Known,
            Place::Organisation(..) => PinLimit::Organisation,
            Place::Room(_, Shown::Number) => PinLimit::Room,
            Place::Room(_, Shown::Withheld) => PinLimit::Withheld,
            Place::Trunk(..) => PinLimit::Trunk,
        }
    }
}

impl Record {
    /// Counts a failure; returns whether the caller is refused from now on.
    fn failed(&mut self, now: Instant) -> bool {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > FORGIVEN_AFTER) {
            self.refusals = 0;
        }
        self.last = Some(now);
        forget_old(&mut self.recent, now, WINDOW);
        self.recent.push_back(now);
        if self.recent.len() < FAILURES_MAX {
            return false;
        }
        self.refused_until = Some(now + WINDOW * 2_u32.pow(self.refusals.min(DOUBLINGS_MAX)));
        self.refusals += 1;
        self.recent.clear();
        true
    }
}

fn forget_old(failures: &mut VecDeque<Instant>, now: Instant, window: Duration) {
    while failures.front().is_some_and(|at| now.saturating_duration_since(*at) >= window) {
        failures.pop_front();
    }
}

/// How long a failure of a caller counts, and how long the first refusal lasts.
const WINDOW: Duration = Duration::from_secs(600);

/// Failures of one caller at one room that cause a refusal.
const FAILURES_MAX: usize = 10;

/// A refusal lasts at most ten minutes times two to this power: about a day.
const DOUBLINGS_MAX: u32 = 7;

/// A caller without a failure for this long starts again with the shortest refusal.
const FORGIVEN_AFTER: Duration = Duration::from_secs(48 * 3600);

/// How long a failure counts at a place.
const PLACE_WINDOW: Duration = Duration::from_secs(3_600);

/// Callers that are remembered; the one whose last failure is oldest is dropped first.
const CALLERS_MAX: usize = 10_000;

/// How long a known caller waits for a result in a slow room.
const KNOWN_VERDICT: Duration = Duration::from_secs(3);

/// How long a caller may wait for a result; longer than every pace but the slowest.
const VERDICT_WAIT_MAX: Duration = Duration::from_secs(120);

/// Most callers remembered for a right PIN, over all rooms.
const KNOWN_MAX: usize = 4_096;

/// Characters of a number that are compared.
const NUMBER_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::conference::tests::any_instant;

    fn attempt(room: u32, trunk: Option<u128>, number: &str) -> Attempt {
        Attempt {
            organisation: OrganisationId(Uuid::from_u128(1)),
            room: RoomId(Uuid::from_u128(room.into())),
            who: PinCaller::new(None, number),
            trunk: trunk.map(|trunk| TrunkId(Uuid::from_u128(trunk))),
        }
    }

    fn number(n: u32) -> String {
        format!("+4477009{n:05}")
    }

    /// All kinds of callers guess at one room: callers with a new number each time, callers without a number, callers
    /// who keyed the right PIN before, and extensions.
    #[test]
    fn the_whole_world_guesses_200_pins_an_hour_at_one_room() {
        let start = any_instant();
        let mut pin_attempts = PinAttempts::default();
        for known in 0..100 {
            pin_attempts.succeeded(attempt(1, None, "").room, &PinCaller::new(None, &number(90_000 + known)));
        }
        let mut checked: Vec<u64> = Vec::new();
        let mut limits = Vec::new();
        for second in 0..4 * 3_600_u32 {
            let now = start + Duration::from_secs(second.into());
            let mut all = vec![attempt(1, Some(7), ""), attempt(1, Some(8), ""), attempt(1, None, "")];
            all.extend((0..5).map(|n| attempt(1, Some(7), &number(n + 5 * second))));
            all.push(attempt(1, Some(7), &number(90_000 + second % 100)));
            let who = PinCaller::Extension(ExtensionId(Uuid::from_u128((second % 50).into())));
            all.push(Attempt { who, ..attempt(1, None, "") });
            for one in all {
                if pin_attempts.refuses(now, one.room, &one.who) {
                    continue;
                }
                // A result that is due later counts when it is due.
                let due = match pin_attempts.verdict_at(now, &one) {
                    None => now,
                    Some(Some(due)) => due,
                    Some(None) => continue,
                };
                checked.push((due - start).as_secs());
                limits.extend(pin_attempts.failed(now, &one).into_iter().map(|reached| reached.limit));
            }
        }
        checked.sort_unstable();
        let hours = |from: u64| checked.iter().filter(|at| (from..from + 3_600).contains(at)).count();
        let most = (0..3 * 3_600).step_by(10).map(hours).max().unwrap();
        println!("rooms: {} PINs checked in 4 h, at most {most} in an hour, {limits:?}", checked.len());
        assert!((150..=200).contains(&most), "{most}");
        for limit in [PinLimit::Known, PinLimit::Room, PinLimit::Withheld] {
            // Each is reported once an hour at most.
            let reports = limits.iter().filter(|other| **other == limit).count();
            assert!((1..=4).contains(&reports), "{limit} {reports}");
        }
    }

    #[test]
    fn callers_without_a_number_delay_no_other_caller() {
        let now = any_instant();
        let mut pin_attempts = PinAttempts::default();
        for _ in 0..10_000 {
            pin_attempts.failed(now, &attempt(1, Some(7), ""));
        }
        let honest = attempt(1, Some(7), &number(1));
        assert!(!pin_attempts.refuses(now, honest.room, &honest.who));
        assert_eq!(pin_attempts.verdict_at(now, &honest), None, "at once");
        let withheld = attempt(1, Some(7), "");
        assert!(!pin_attempts.refuses(now, withheld.room, &withheld.who), "and they are not refused either");
        let due = pin_attempts.verdict_at(now, &withheld).unwrap();
        assert_eq!(due, Some(now + Duration::from_secs(120)));
    }

    #[test]
    fn known_callers_do_not_queue_behind_strangers() {
        let now = any_instant();
        let mut pin_attempts = PinAttempts::default();
        let known = attempt(1, Some(7), &number(90_000));
        pin_attempts.succeeded(known.room, &known.who);
        for n in 0..60 {
            assert_eq!(pin_attempts.verdict_at(now, &attempt(1, None, &number(n))), None, "while few fail");
            pin_attempts.failed(now, &attempt(1, None, &number(n)));
        }
        while pin_attempts.verdict_at(now, &attempt(1, None, &number(61))) != Some(None) {}
        assert_eq!(pin_attempts.verdict_at(now, &known), Some(Some(now + KNOWN_VERDICT)));
    }

    /// Each call comes from a new number to another room of another organisation, over one trunk: no room becomes
    /// slow, but the trunk.
    #[test]
    fn a_trunk_guesses_no_faster_at_many_rooms() {
        let start = any_instant();
        let mut pin_attempts = PinAttempts::default();
        let (mut verdicts, mut limits) = (0, Vec::new());
        for second in 0..3_600_u32 {
            let now = start + Duration::from_secs(second.into());
            for n in 0..10 {
                let room = n + 10 * (second % 100);
                let organisation = OrganisationId(Uuid::from_u128(room.into()));
                let one = Attempt { organisation, ..attempt(room, Some(7), &number(n + 10 * second)) };
                if pin_attempts.verdict_at(now, &one).is_none_or(|due| due.is_some()) {
                    verdicts += 1;
                    limits.extend(pin_attempts.failed(now, &one).into_iter().map(|reached| reached.limit));
                }
            }
        }
        println!("rooms: 36000 calls in an hour by one trunk to 1000 rooms, {verdicts} PINs judged");
        assert!((900..=1_020).contains(&verdicts), "{verdicts}");
        assert_eq!(limits, [PinLimit::Trunk]);
        let now = start + Duration::from_secs(3_600);
        assert_eq!(
            pin_attempts.verdict_at(now, &attempt(1, Some(8), &number(1))),
            None,
            "another trunk is not slow"
        );
    }

    /// Guesses over many trunks at all rooms of one organisation; the rooms of another organisation are not slow.
    #[test]
    fn an_organisation_has_a_limit_over_all_its_rooms_and_trunks() {
        let start = any_instant();
        let mut pin_attempts = PinAttempts::default();
        let mut verdicts = 0;
        for second in 0..3_600_u32 {
            let now = start + Duration::from_secs(second.into());
            for n in 0..10 {
                let one =
                    attempt(n + 10 * (second % 100), Some((second % 50).into()), &number(n + 10 * second));
                if pin_attempts.verdict_at(now, &one).is_none_or(|due| due.is_some()) {
                    verdicts += 1;
                    pin_attempts.failed(now, &one);
                }
            }
        }
        assert!((1_700..=1_940).contains(&verdicts), "{verdicts}");
        let other =
            Attempt { organisation: OrganisationId(Uuid::from_u128(2)), ..attempt(5_000, Some(60), "+441") };
        assert_eq!(pin_attempts.verdict_at(start + Duration::from_secs(3_600), &other), None);
    }
}
