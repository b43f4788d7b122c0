//! Reports the talking members of a room, at most twice a second.
//!
//! People start and stop talking frequently. A change that is reversed before it was reported is not reported. The
//! others are reported at two a second, and every event lists the members who talk at that time. So the last event
//! matches the live room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::ConferenceSessionId;
use sidetone_model::room::event::{RoomChange, RoomEvent};
use sidetone_model::room::rows::TalkChange;

/// The rooms in which a member talked.
///
/// *Bounds*: a set of the members of every live room.
#[derive(Debug, Default)]
pub struct TalkThrottle(BTreeMap<ConferenceSessionId, Room>);

#[derive(Debug)]
struct Room {
    /// The room's last change; the next report contains its revision.
    last: RoomEvent,
    talking: BTreeSet<u32>,
    /// Members whose own start was reported, and no stop since then.
    told: BTreeSet<u32>,
    /// The talking members in the last report.
    shown: BTreeSet<u32>,
    /// Members whose last change is not reported yet, in order of arrival.
    waiting: VecDeque<u32>,
    /// When the last two reports were sent.
    before: [Option<Instant>; 2],
}

impl TalkThrottle {
    /// Handles any change of a room; changes arrive in order.
    pub fn take(&mut self, event: &RoomEvent) {
        if event.what == RoomChange::Ended {
            self.0.remove(&event.session);
            return;
        }
        let is_start = matches!(event.what, RoomChange::Talking { talking: true, .. });
        let room = match self.0.get_mut(&event.session) {
            Some(room) => room,
            None if is_start => self.0.entry(event.session).or_insert_with(|| Room::new(event)),
            None => return,
        };
        if event.revision > room.last.revision {
            room.last = event.clone();
        }
        match event.what {
            RoomChange::Talking { member, talking } => room.set(member, talking),
            RoomChange::Left { member, .. } => room.forget(member),
            _ => {}
        }
    }

    /// Returns the reports that are due now, and counts them as sent.
    pub fn due(&mut self, now: Instant) -> Vec<TalkChange> {
        let mut due = Vec::new();
        for room in self.0.values_mut() {
            while room.due_at(now) == Some(now) {
                let Some(member) = room.waiting.pop_front() else { break };
                due.push(room.due_change(now, member));
            }
        }
        due
    }

    /// Returns when the next report is due; `now` if it is due already.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        self.0.values().filter_map(|room| room.due_at(now)).min()
    }
}

impl Room {
    fn new(event: &RoomEvent) -> Self {
        Room {
            last: event.clone(),
            talking: BTreeSet::new(),
            told: BTreeSet::new(),
            shown: BTreeSet::new(),
            waiting: VecDeque::new(),
            before: [None; 2],
        }
    }

    fn set(&mut self, member: u32, talking: bool) {
        if talking {
            self.talking.insert(member);
        } else {
            self.talking.remove(&member);
        }
        // A member may have appeared in another member's report and have stopped before its own start was reported.
        if self.told.contains(&member) == talking && self.shown.contains(&member) == talking {
            self.waiting.retain(|waiting| *waiting != member);
        } else if !self.waiting.contains(&member) {
            self.waiting.push_back(member);
        }
    }

    /// Drops a member who left: the report of the leave is enough.
    fn forget(&mut self, member: u32) {
        self.talking.remove(&member);
        self.told.remove(&member);
        self.shown.remove(&member);
        self.waiting.retain(|waiting| *waiting != member);
    }

    fn due_change(&mut self, now: Instant, member: u32) -> TalkChange {
        let talking = self.talking.contains(&member);
        if talking {
            self.told.insert(member);
        } else {
            self.told.remove(&member);
        }
        let Room { talking: all, told, shown, waiting, .. } = self;
        shown.clone_from(all);
        waiting.retain(|member| told.contains(member) != all.contains(member));
        let [_, last] = self.before;
        self.before = [last, Some(now)];
        TalkChange { event: self.last.clone(), member, talking, all: self.talking.iter().copied().collect() }
    }

    /// Returns when the next report may be sent: at most two in any second.
    fn due_at(&self, now: Instant) -> Option<Instant> {
        self.waiting.front()?;
        let [before_last, _] = self.before;
        Some(before_last.map_or(now, |told| now.max(told + PER_TWO)))
    }
}

/// The period in which two reports may be sent.
const PER_TWO: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use sidetone_model::call::HangupCause;
    use sidetone_model::ids::{OrganisationId, RoomId};
    use sidetone_model::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    /// A room that sends every due report immediately.
    struct Ladder {
        talk: TalkThrottle,
        began: Instant,
        now: Duration,
        revision: u64,
        told: Vec<(u64, u32, bool, Vec<u32>)>,
    }

    #[expect(clippy::disallowed_methods, reason = "any instant will do to count from")]
    fn ladder() -> Ladder {
        Ladder {
            talk: TalkThrottle::default(),
            began: Instant::now(),
            now: Duration::ZERO,
            revision: 0,
            told: Vec::new(),
        }
    }

    impl Ladder {
        fn take(&mut self, what: RoomChange) {
            self.revision += 1;
            self.talk.take(&RoomEvent {
                organisation_id: OrganisationId(Uuid::from_u128(1)),
                room: "svc-room-00000000-0000-0000-0000-000000000009".parse().unwrap(),
                room_id: Some(RoomId(Uuid::from_u128(9))),
                session: ConferenceSessionId(Uuid::from_u128(2)),
                at: Timestamp::from_micros(0),
                revision: self.revision,
                what,
            });
            self.drain();
        }

        fn talking(&mut self, member: u32, talking: bool) {
            self.take(RoomChange::Talking { member, talking });
        }

        fn drain(&mut self) {
            let at = self.now.as_millis() as u64;
            let due = self.talk.due(self.began + self.now);
            self.told.extend(due.into_iter().map(|told| (at, told.member, told.talking, told.all)));
        }

        fn pass(&mut self, millis: u64) {
            let until = self.now + Duration::from_millis(millis);
            while let Some(due) = self.talk.next_due(self.began + self.now) {
                let due = due - self.began;
                if due > until {
                    break;
                }
                self.now = due;
                self.drain();
            }
            self.now = until;
        }
    }

    #[test]
    fn two_are_told_at_once_and_the_third_when_their_second_is_over() {
        let mut room = ladder();
        room.talking(1, true);
        room.pass(100);
        room.talking(2, true);
        room.pass(100);
        room.talking(3, true);
        room.talking(1, false);
        assert_eq!(room.told, [(0, 1, true, vec![1]), (100, 2, true, vec![1, 2])]);
        room.pass(5_000);
        assert_eq!(room.told[2..], [(1_000, 3, true, vec![2, 3]), (1_100, 1, false, vec![2, 3])]);
    }

    #[test]
    fn what_is_undone_before_it_is_told_is_not_told() {
        let mut room = ladder();
        room.talking(1, true);
        room.talking(2, true);
        room.talking(1, false);
        room.talking(1, true);
        room.talking(3, true);
        room.talking(3, false);
        room.pass(5_000);
        assert_eq!(room.told.len(), 2);
        room.talking(2, true);
        assert_eq!(room.told.len(), 2, "known already");
    }

    /// The report of 2 already listed 3 as talking, so the stop of 3 is reported although its start never was.
    #[test]
    fn the_last_that_is_told_is_what_is() {
        let mut room = ladder();
        room.talking(1, true);
        room.talking(1, false);
        room.talking(2, true);
        room.talking(3, true);
        room.pass(1_000);
        assert_eq!(room.told[2], (1_000, 2, true, vec![2, 3]));
        room.talking(3, false);
        room.talking(2, false);
        room.pass(5_000);
        assert_eq!(room.told.last().unwrap().3, Vec::<u32>::new(), "{:?}", room.told);
        room.talking(4, true);
        room.pass(5_000);
        let told = room.told.len();
        room.pass(5_000);
        assert_eq!((room.told.len(), room.told[told - 1].3.clone()), (told, vec![4]));
    }

    #[test]
    fn nothing_is_told_of_who_left_or_of_a_room_that_ended() {
        let mut room = ladder();
        room.talking(1, true);
        room.talking(2, true);
        room.talking(3, true);
        room.take(RoomChange::Left { member: 3, cause: HangupCause::NormalClearing, talked_ms: 0 });
        room.take(RoomChange::Left { member: 1, cause: HangupCause::NormalClearing, talked_ms: 0 });
        room.talking(2, false);
        room.pass(5_000);
        assert_eq!(room.told[2..], [(1_000, 2, false, vec![])]);
        room.talking(2, true);
        room.talking(2, false);
        room.talking(4, true);
        room.take(RoomChange::Ended);
        let told = room.told.len();
        room.pass(5_000);
        assert_eq!((room.told.len(), room.talk.0.len()), (told, 0));
    }

    /// W12: 200 changes a second for ten seconds.
    #[test]
    fn no_second_has_more_than_two_and_the_last_one_is_true() {
        (0..100).for_each(talk_for_ten_seconds);
    }

    fn talk_for_ten_seconds(seed: u64) {
        let mut room = ladder();
        let mut talking = BTreeSet::new();
        let mut seed = seed;
        for _ in 0..2_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let member = (seed >> 33) as u32 % 50;
            let on = talking.insert(member);
            if !on {
                talking.remove(&member);
            }
            room.talking(member, on);
            room.pass(5);
        }
        room.pass(60_000);
        let seconds: Vec<u64> = room.told.iter().map(|told| told.0).collect();
        assert!(seconds.windows(3).all(|three| three[2] - three[0] >= 1_000), "{seconds:?}");
        assert!(room.told.len() >= 20);
        let mut seen = BTreeSet::new();
        for (_, member, on, _) in &room.told {
            if *on {
                seen.insert(*member)
            } else {
                seen.remove(member)
            };
        }
        assert_eq!(seen, talking, "whoever reads the members one by one");
        let last: BTreeSet<u32> = room.told.last().unwrap().3.iter().copied().collect();
        assert_eq!(last, talking, "whoever reads the last one");
    }
}
