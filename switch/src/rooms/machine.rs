//! The machine of all live rooms of a node, and of all callers on the way into one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use sidetone_model::call::HangupCause;
use sidetone_model::ids::{ConferenceSessionId, ExtensionId, LegId, OrganisationId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::news::{RoomChange, RoomNews};
use sidetone_model::room::{LiveRoom, Role, RoomName};
use sidetone_model::time::{Now, Timestamp};

use crate::rooms::desk::{Alarm, Desk};
use crate::rooms::entry::{Caller, Leaving};
use crate::rooms::guard::Guard;
use crate::rooms::invites::Dialling;
use crate::rooms::live::Live;
use crate::rooms::{Arrival, DialId, Goal, Input, MixId, Output, RoomBook, RoomsConfig, Who};

/// All live rooms of a node, and all callers on the way into one.
///
/// Drain [`Rooms::poll_output`] after every call of a `&mut self` function, and feed [`Input::Timeout`] at
/// [`Rooms::next_timeout`]:
///
/// ```
/// # use sidetone_switch::rooms::{Input, Rooms, RoomsConfig};
/// # use sidetone_model::time::Now;
/// # fn carry_out(_: sidetone_switch::rooms::Output) {}
/// # fn example(now: Now) {
/// let mut rooms = Rooms::new(RoomsConfig::default(), 7);
/// rooms.handle_input(now, Input::Timeout);
/// while let Some(output) = rooms.poll_output() {
///     carry_out(output);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Rooms {
    pub(super) config: RoomsConfig,
    pub(super) book: Arc<RoomBook>,
    /// Callers who are asked for a number or a PIN.
    pub(super) callers: HashMap<LegId, Caller>,
    /// Callers who hear a last prompt before we hang up.
    pub(super) leaving: HashMap<LegId, Leaving>,
    /// The room and member id of each seated leg.
    pub(super) seats: HashMap<LegId, (RoomName, u32)>,
    pub(super) rooms: BTreeMap<RoomName, Live>,
    pub(super) dials: HashMap<DialId, Dialling>,
    /// Default members who will be rung again, and for which room.
    pub(super) waiting: BTreeSet<(ExtensionId, RoomName)>,
    pub(super) recordings: HashMap<ConferenceSessionId, Afterwards>,
    pub(super) guard: Guard,
    pub(super) desk: Desk,
}

/// A session that is over except for its recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Afterwards {
    pub(super) name: RoomName,
    pub(super) organisation: OrganisationId,
    pub(super) revision: u64,
    /// Recordings whose end is not reported yet.
    pub(super) open: usize,
}

impl Rooms {
    /// Creates the machine without rooms, and without stored rooms until [`Input::Book`]. The seed is for
    /// ids.
    pub fn new(config: RoomsConfig, seed: u64) -> Self {
        Rooms {
            config,
            book: Arc::new(RoomBook::default()),
            callers: HashMap::new(),
            leaving: HashMap::new(),
            seats: HashMap::new(),
            rooms: BTreeMap::new(),
            dials: HashMap::new(),
            waiting: BTreeSet::new(),
            recordings: HashMap::new(),
            guard: Guard::default(),
            desk: Desk::new(seed),
        }
    }

    /// Handles an input; drain [`Rooms::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Now, input: Input) {
        match input {
            Input::Arrived(who) => self.arrived(now, who),
            Input::Book(book) => {
                self.guard.keep(|room| book.room(room).is_some());
                self.book = book;
            }
            Input::DialFailed { dial, end } => self.dial_failed(now, dial, end),
            Input::Digit(leg, digit) => self.digit(now, leg, digit),
            Input::Free(extension) => self.free(now, extension),
            Input::Gone(leg) => self.gone(now, leg),
            Input::Held(leg, held) => self.held(now, leg, held),
            Input::Played(leg, token) => self.played(now, leg, token),
            Input::Recorded { session, bytes, error } => self.recorded(now, session, bytes, error),
            Input::Ringing(dial) => self.ringing(now, dial),
            Input::Talking(leg, talking) => self.talking(now, leg, talking),
            Input::Timeout => self.timeout(now),
        }
    }

    /// Returns the next action; drain to `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.desk.poll()
    }

    /// Returns when to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.desk.next_alarm()
    }

    /// Whether to answer a caller who dialled a room.
    ///
    /// # Errors
    /// The status to refuse the call with: 403 after too many wrong PINs, 503 when too many callers are on
    /// their way into rooms of this node.
    pub fn admits(&self, now: Instant, room: RoomId, who: &Who) -> Result<(), u16> {
        let Some(config) = self.book.room(room) else { return Ok(()) };
        let exempt = match who {
            Who::Extension(extension) => config.exempt(*extension).is_some(),
            Who::Number(_) => false,
        };
        if exempt || config.participant_pin.is_empty() {
            return Ok(());
        }
        if self.guard.refuses(now, room, who) {
            return Err(403);
        }
        if self.callers.len() >= self.config.callers_max { Err(503) } else { Ok(()) }
    }

    /// Returns the live rooms, ordered by name.
    pub fn live(&self, now: Timestamp) -> impl Iterator<Item = LiveRoom> {
        self.rooms.values().map(move |room| room.view(now))
    }

    /// Returns one live room.
    pub fn live_room(&self, now: Timestamp, name: RoomName) -> Option<LiveRoom> {
        self.rooms.get(&name).map(|room| room.view(now))
    }

    /// Returns the room of the member at a leg.
    pub fn room_of(&self, leg: LegId) -> Option<RoomName> {
        self.seats.get(&leg).map(|(room, _)| *room)
    }

    /// Returns the mix of a live room.
    pub fn mix_of(&self, name: RoomName) -> Option<MixId> {
        self.rooms.get(&name).map(|room| room.mix)
    }

    /// Whether the node has capacity for one more room.
    pub fn takes_another_room(&self) -> bool {
        self.rooms.len() < self.config.rooms_max
    }

    /// Returns how many sessions are over except for their recordings.
    pub fn open_recordings(&self) -> usize {
        self.recordings.len()
    }

    /// Returns the number of members of a room.
    pub fn members_in(&self, name: RoomName) -> usize {
        self.rooms.get(&name).map_or(0, |room| room.members.len())
    }

    /// Whether a leg is known: on its way in, in a room, or about to be hung up.
    pub fn knows(&self, leg: LegId) -> bool {
        self.seats.contains_key(&leg) || self.callers.contains_key(&leg) || self.leaving.contains_key(&leg)
    }

    fn arrived(&mut self, now: Now, who: Arrival) {
        if self.knows(who.leg) {
            return;
        }
        match who.goal {
            Goal::Ask => self.ask_room(now, who),
            Goal::Dialled { dial } => self.answered(now, who, dial),
            Goal::Merged { room, calls, by } => self.merge(now, who, room, calls, by),
            Goal::Room(room) => self.come_into(now, who, room, false),
        }
    }

    fn gone(&mut self, now: Now, leg: LegId) {
        self.desk.clear(Alarm::Caller(leg));
        if self.callers.remove(&leg).is_none() && self.leaving.remove(&leg).is_none() {
            self.leave(now, leg);
        }
    }

    fn digit(&mut self, now: Now, leg: LegId, digit: char) {
        if self.callers.contains_key(&leg) {
            self.caller_keyed(now, leg, digit);
        } else {
            self.member_keyed(now, leg, digit);
        }
    }

    fn played(&mut self, now: Now, leg: LegId, token: u64) {
        if let Some(leaving) = self.leaving.get(&leg) {
            if leaving.token == token {
                self.hang_up(leg);
            }
        } else if let Some(caller) = self.callers.get_mut(&leg) {
            caller.played(now.instant, token, &mut self.desk);
        }
    }

    fn held(&mut self, now: Now, leg: LegId, held: bool) {
        let Some((name, id)) = self.seats.get(&leg).copied() else { return };
        let Some(room) = self.rooms.get_mut(&name) else { return };
        if let Some(member) = room.members.get_mut(&id) {
            member.held = held;
        }
        room.hush(now, &mut self.desk);
    }

    fn talking(&mut self, now: Now, leg: LegId, talking: bool) {
        let Some((name, id)) = self.seats.get(&leg).copied() else { return };
        if let Some(room) = self.rooms.get_mut(&name) {
            room.talking(now, id, talking, &mut self.desk);
        }
    }

    fn recorded(&mut self, now: Now, session: ConferenceSessionId, bytes: u64, error: Option<String>) {
        if let Some(room) = self.rooms.values_mut().find(|room| room.session == session) {
            return room.recorded(now, bytes, error, &mut self.desk);
        }
        let Some(after) = self.recordings.get_mut(&session) else { return };
        after.revision += 1;
        after.open -= 1;
        let after = *after;
        if after.open == 0 {
            self.recordings.remove(&session);
            self.desk.clear(Alarm::Recording(session));
        }
        self.desk.push(Output::News(RoomNews {
            organisation_id: after.organisation,
            room: after.name,
            room_id: after.name.room_id(),
            session,
            at: now.wall,
            revision: after.revision,
            what: RoomChange::Recorded { bytes, error },
        }));
    }

    fn timeout(&mut self, now: Now) {
        while let Some(alarm) = self.desk.ring(now.instant) {
            match alarm {
                Alarm::Caller(leg) if self.leaving.contains_key(&leg) => self.hang_up(leg),
                Alarm::Caller(leg) => self.caller_due(now, leg),
                Alarm::Invite(name, extension) => self.ring(now, name, extension),
                Alarm::Claim(leg) => self.claim_due(now, leg),
                Alarm::Recording(session) => drop(self.recordings.remove(&session)),
            }
        }
    }

    /// Plays last prompts to a leg that is in a mix, then hangs up.
    pub(super) fn turn_away(&mut self, now: Now, leg: LegId, prompts: Vec<Prompt>, cause: HangupCause) {
        let token = self.desk.play(leg, prompts);
        self.leaving.insert(leg, Leaving { token, cause });
        self.desk.set(Alarm::Caller(leg), now.instant + Leaving::LONGEST);
    }

    fn hang_up(&mut self, leg: LegId) {
        self.desk.clear(Alarm::Caller(leg));
        if let Some(leaving) = self.leaving.remove(&leg) {
            self.desk.push(Output::HangUp(leg, leaving.cause));
        }
    }

    /// Checks whether a party with this role may join; the error is the prompt that gives the reason.
    pub(super) fn door(&self, name: RoomName, role: Role) -> Result<(), Prompt> {
        let Some(room) = self.rooms.get(&name) else {
            return if self.rooms.len() < self.config.rooms_max { Ok(()) } else { Err(Prompt::Full) };
        };
        let stored = name.room_id().and_then(|id| self.book.room(id)).map_or(0, |config| config.max_members);
        let own = usize::try_from(stored).ok().filter(|own| *own > 0);
        let most = own.map_or(self.config.members_max, |own| own.min(self.config.members_max));
        if room.locked && role == Role::Participant {
            Err(Prompt::Locked)
        } else if room.members.len() >= most {
            Err(Prompt::Full)
        } else {
            Ok(())
        }
    }
}
