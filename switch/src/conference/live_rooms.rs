//! All live rooms of a node: the seat of each leg, members who join and leave, rooms that open and close.
//!
//! [`LiveRooms`] owns the rooms and the seats. It does not hang up and does not dial: it returns
//! the consequences of a change, and the machine passes them on to callers and invitations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, ConferenceSessionId, LegId, OrganisationId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::event::{MergedBy, RoomChange, RoomEvent};
use sidetone_model::room::{ControlRefused, Role, RoomName};
use sidetone_model::time::Now;

use crate::conference::channels::Channels;
use crate::conference::keypad::Keyed;
use crate::conference::live::{Live, Member, Rules};
use crate::conference::outputs::{Alarm, Outputs};
use crate::conference::{Arrival, Output, RoomDirectory, RoomsConfig};

/// The live rooms, and the seats of their members.
#[derive(Debug)]
pub(super) struct LiveRooms {
    rooms: BTreeMap<RoomName, Live>,
    /// The room and member id of each seated leg.
    seats: HashMap<LegId, (RoomName, u32)>,
    /// Sessions that are over except for their recordings.
    recordings: HashMap<ConferenceSessionId, EndedSession>,
    /// The legs whose spoken names are recorded.
    named: HashSet<LegId>,
    rooms_max: usize,
    members_max: usize,
}

/// A session that is over except for its recording.
#[derive(Clone, Copy, Debug)]
struct EndedSession {
    name: RoomName,
    organisation: OrganisationId,
    revision: u64,
    /// Recordings whose end is not reported yet.
    open: usize,
}

/// The consequence of a member's leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterLeaving {
    /// The room has no members and closes.
    Close(RoomName),
    /// The last moderator left a room that ends without one.
    End(RoomName),
    /// Nothing.
    Nothing,
}

/// A keyed command that the room cannot carry out alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyedCommand {
    /// End the room.
    End(RoomName),
    /// Check this as the moderator PIN.
    Pin(String),
}

impl LiveRooms {
    /// No rooms yet.
    pub(super) fn new(config: &RoomsConfig) -> Self {
        LiveRooms {
            rooms: BTreeMap::new(),
            seats: HashMap::new(),
            recordings: HashMap::new(),
            named: HashSet::new(),
            rooms_max: config.rooms_max,
            members_max: config.members_max,
        }
    }

    /// Returns the rooms, ordered by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Live> {
        self.rooms.values()
    }

    /// Returns a room.
    pub(super) fn get(&self, name: RoomName) -> Option<&Live> {
        self.rooms.get(&name)
    }

    /// Returns a room.
    pub(super) fn get_mut(&mut self, name: RoomName) -> Option<&mut Live> {
        self.rooms.get_mut(&name)
    }

    /// Returns the room and the member id of a seated leg.
    pub(super) fn seat_of(&self, leg: LegId) -> Option<(RoomName, u32)> {
        self.seats.get(&leg).copied()
    }

    /// Whether another room may open.
    pub(super) fn takes_another(&self) -> bool {
        self.rooms.len() < self.rooms_max
    }

    /// How many sessions are over except for their recordings.
    pub(super) fn open_recordings(&self) -> usize {
        self.recordings.len()
    }

    /// Checks whether a party with this role may join; the error is the prompt that gives the reason.
    pub(super) fn accepts(
        &self,
        name: RoomName,
        role: Role,
        directory: &RoomDirectory,
    ) -> Result<(), Prompt> {
        let Some(room) = self.rooms.get(&name) else {
            return if self.takes_another() { Ok(()) } else { Err(Prompt::Full) };
        };
        let stored = name.room_id().and_then(|id| directory.room(id)).map_or(0, |config| config.max_members);
        let own = usize::try_from(stored).ok().filter(|own| *own > 0);
        let most = own.map_or(self.members_max, |own| own.min(self.members_max));
        if room.locked && role == Role::Participant {
            Err(Prompt::Locked)
        } else if room.members.len() >= most {
            Err(Prompt::Full)
        } else {
            Ok(())
        }
    }

    /// Seats a member. Opens the room if it is not live, and starts its recording if the stored room requires one.
    /// Returns whether the room opened.
    pub(super) fn take_seat(
        &mut self,
        now: Now,
        (who, role, unasked): (Arrival, Role, bool),
        name: RoomName,
        directory: &RoomDirectory,
        outputs: &mut Outputs,
    ) -> bool {
        let (leg, organisation) = (who.leg, who.organisation);
        let opens = !self.rooms.contains_key(&name);
        if opens {
            self.open(now, name, &who, directory, outputs);
        }
        let Some(room) = self.rooms.get_mut(&name) else { return false };
        let waited = room.waits();
        if room.is_announced() && !waited {
            let named = self.named.contains(&leg).then_some(leg);
            room.announce(now, true, named, outputs);
        }
        let (id, seat) = room.seat(now, who, role, unasked, outputs);
        outputs.clear(Alarm::Alone(name));
        self.seats.insert(leg, (name, id));
        let (mix, muted, hears) = (room.mix, seat.muted, seat.hears);
        outputs.push(Output::Join { leg, mix, organisation, muted, hears });
        if waited && !room.waits() || room.channels.have_sides() {
            room.settle(outputs);
        }
        // The greeting reports the recording, once the audio path to the phone is open.
        let is_recorded =
            name.room_id().and_then(|id| directory.room(id)).is_some_and(|config| config.record);
        if opens && is_recorded {
            room.record_silently(now, true, outputs);
        }
        room.greet(id, leg, outputs);
        if let Some(name) = room.members.get(&id).map(|member| member.shown().to_owned()) {
            room.note_join(id, &name, outputs);
        }
        room.note_roster(id, outputs);
        opens
    }

    /// Opens a room without members.
    pub(super) fn open(
        &mut self,
        now: Now,
        name: RoomName,
        who: &Arrival,
        directory: &RoomDirectory,
        outputs: &mut Outputs,
    ) {
        let config = name.room_id().and_then(|id| directory.room(id));
        let rules = config.map_or(Rules::default(), |config| Rules {
            waits: config.wait_for_moderator,
            ends: config.end_when_moderator_leaves,
        });
        let title = config.map_or(String::new(), |config| config.name.clone());
        let mut room = Live::open(now, name, who.organisation, title, rules, outputs);
        room.channels = Channels::of(config.map_or(1, |config| config.record_channels));
        self.rooms.insert(name, room);
    }

    /// Prepares a room for a party of two calls that are merged: opens it for the first one. Returns whether the
    /// room accepts the party.
    pub(super) fn open_merged(
        &mut self,
        now: Now,
        who: &Arrival,
        name: RoomName,
        (calls, by): ([CallId; 2], MergedBy),
        directory: &RoomDirectory,
        outputs: &mut Outputs,
    ) -> bool {
        let is_foreign = self.rooms.get(&name).is_some_and(|room| room.organisation != who.organisation);
        if is_foreign || self.accepts(name, Role::Participant, directory).is_err() {
            return false;
        }
        if !self.rooms.contains_key(&name) {
            self.open(now, name, who, directory, outputs);
            if let Some(room) = self.rooms.get_mut(&name) {
                room.tell(now, RoomChange::Merged { calls, by }, outputs);
            }
        }
        true
    }

    /// Removes a member whose leg is over, or about to be.
    pub(super) fn leave(
        &mut self,
        now: Now,
        leg: LegId,
        cause: HangupCause,
        outputs: &mut Outputs,
    ) -> AfterLeaving {
        let is_named = self.named.remove(&leg);
        let Some((name, id)) = self.seats.remove(&leg) else { return AfterLeaving::Nothing };
        let Some(room) = self.rooms.get_mut(&name) else { return AfterLeaving::Nothing };
        room.stop_sound_of(now, id, outputs);
        let Some(member) = room.unseat(now, id, cause, outputs) else { return AfterLeaving::Nothing };
        room.note_leave(id, member.shown(), outputs);
        if room.members.is_empty() {
            return AfterLeaving::Close(name);
        }
        room.listener_left(now, id, outputs);
        let is_last_moderator = member.role == Role::Moderator && !room.is_moderated() && !room.is_moving;
        if is_last_moderator && room.rules.ends {
            return AfterLeaving::End(name);
        }
        if is_last_moderator && room.rules.waits {
            room.hush(now, outputs);
            room.settle(outputs);
            for leg in room.members.values().map(|member| member.leg) {
                outputs.play(leg, vec![Prompt::WaitForModerator]);
            }
        } else if room.is_announced() && !room.waits() {
            room.announce(now, false, is_named.then_some(leg), outputs);
        }
        if let (RoomName::Merged(_), Some(last)) = (name, room.only_member()) {
            outputs.play(last, vec![Prompt::OthersLeft]);
            outputs.set(Alarm::Alone(name), now.instant + ALONE_MAX);
        }
        AfterLeaving::Nothing
    }

    /// Announces a leg by its name from now on.
    pub(super) fn is_named(&mut self, leg: LegId) {
        self.named.insert(leg);
    }

    /// Whether a member who joins this room now is announced.
    pub(super) fn announces(&self, name: RoomName) -> bool {
        self.rooms.get(&name).is_none_or(Live::is_announced)
    }

    /// Removes the first member of a room that ends; returns the member's leg, which is still in the mix.
    pub(super) fn unseat_first(&mut self, now: Now, name: RoomName, outputs: &mut Outputs) -> Option<LegId> {
        let room = self.rooms.get_mut(&name)?;
        let (id, leg) = room.members.values().next().map(|member| (member.id, member.leg))?;
        room.stop_sound_of(now, id, outputs);
        room.unseat(now, id, HangupCause::NormalClearing, outputs);
        self.seats.remove(&leg);
        self.named.remove(&leg);
        Some(leg)
    }

    /// Removes a room without members. Its recording may still be written.
    pub(super) fn close(&mut self, now: Now, name: RoomName, outputs: &mut Outputs) {
        let Some(mut room) = self.rooms.remove(&name) else { return };
        outputs.clear(Alarm::Alone(name));
        room.stop_sound(now, outputs);
        room.record(now, false, outputs);
        room.tell(now, RoomChange::Ended, outputs);
        if room.recordings > 0 {
            let after = EndedSession {
                name,
                organisation: room.organisation,
                revision: room.revision,
                open: room.recordings,
            };
            self.recordings.insert(room.session, after);
            outputs.set(Alarm::Recording(room.session), now.instant + RECORDING_END);
        }
    }

    /// Handles the end of a recording.
    pub(super) fn recorded(
        &mut self,
        now: Now,
        session: ConferenceSessionId,
        bytes: u64,
        error: Option<String>,
        outputs: &mut Outputs,
    ) {
        if let Some(room) = self.rooms.values_mut().find(|room| room.session == session) {
            let place = (room.organisation, room.name, session);
            outputs.report_recording(now, place, bytes, error.as_deref());
            return room.recorded(now, bytes, error, outputs);
        }
        let Some(after) = self.recordings.get_mut(&session) else { return };
        after.revision += 1;
        after.open -= 1;
        let after = *after;
        if after.open == 0 {
            self.recordings.remove(&session);
            outputs.clear(Alarm::Recording(session));
        }
        outputs.report_recording(now, (after.organisation, after.name, session), bytes, error.as_deref());
        outputs.push(Output::Event(RoomEvent {
            organisation_id: after.organisation,
            room: after.name,
            room_id: after.name.room_id(),
            session,
            at: now.wall,
            revision: after.revision,
            what: RoomChange::Recorded { bytes, error },
        }));
    }

    /// Gives up on a recording whose end was not reported in time.
    pub(super) fn recording_due(&mut self, session: ConferenceSessionId) {
        self.recordings.remove(&session);
    }

    /// Handles a party that put us on hold, or resumed.
    pub(super) fn held(&mut self, now: Now, leg: LegId, held: bool, outputs: &mut Outputs) {
        let Some((room, id)) = self.seated(leg) else { return };
        if let Some(member) = room.members.get_mut(&id) {
            member.held = held;
        }
        room.hush(now, outputs);
    }

    /// Notes the seat of a leg.
    pub(super) fn seat_is(&mut self, leg: LegId, name: RoomName, id: u32) {
        self.seats.insert(leg, (name, id));
    }

    /// Passes the seat of one leg to another.
    pub(super) fn pass_seat(&mut self, from: LegId, to: LegId) {
        if let Some(seat) = self.seats.remove(&from) {
            self.seats.insert(to, seat);
        }
    }

    /// Handles a party that sends neither RTP nor RTCP, or sends again.
    pub(super) fn silent(&mut self, leg: LegId, silent: bool) {
        if let Some((room, id)) = self.seated(leg)
            && let Some(member) = room.members.get_mut(&id)
        {
            member.silent = silent;
        }
    }

    /// Handles a party that began or stopped to talk.
    pub(super) fn talking(&mut self, now: Now, leg: LegId, talking: bool, outputs: &mut Outputs) {
        if let Some((room, id)) = self.seated(leg) {
            room.talking(now, id, talking, outputs);
        }
    }

    /// Mutes or unmutes a member, and plays the member a prompt about it.
    ///
    /// # Errors
    /// When the room is not live, or has no such member.
    pub(super) fn mute(
        &mut self,
        now: Now,
        name: RoomName,
        member: u32,
        muted: bool,
        outputs: &mut Outputs,
    ) -> Result<(), ControlRefused> {
        let room = self.rooms.get_mut(&name).ok_or(ControlRefused::NotLive)?;
        let leg = room.members.get(&member).ok_or(ControlRefused::NoMember)?.leg;
        if room.mute(now, member, muted, outputs) {
            outputs.play(leg, vec![mute_prompt(muted)]);
        }
        Ok(())
    }

    /// Handles a digit that a member keyed; returns a command that is not the room's own.
    pub(super) fn keyed(
        &mut self,
        now: Now,
        leg: LegId,
        digit: char,
        outputs: &mut Outputs,
    ) -> Option<KeyedCommand> {
        let (room, id) = self.seated(leg)?;
        let member = room.members.get_mut(&id)?;
        let keyed = member.keypad.press(now.instant, digit)?;
        let moderates = member.role == Role::Moderator;
        match keyed {
            // A mute that only a moderator ends.
            Keyed::Unmute if member.controls.mute_locked && !moderates => {
                outputs.play(leg, vec![Prompt::Muted]);
            }
            Keyed::Mute | Keyed::Unmute => {
                let muted = keyed == Keyed::Mute;
                room.mute(now, id, muted, outputs);
                // Played even if nothing changed: the member pressed a key and expects a response.
                outputs.play(leg, vec![mute_prompt(muted)]);
            }
            Keyed::Lock if moderates => room.lock(now, !room.locked, outputs),
            Keyed::MuteAll if moderates => drop(room.mute_all(now, outputs)),
            Keyed::End if moderates => return Some(KeyedCommand::End(room.name)),
            // No prompt is played, so that a participant cannot find out what the keys do.
            Keyed::Lock | Keyed::MuteAll | Keyed::End => {}
            Keyed::Pin(digits) => return Some(KeyedCommand::Pin(digits)),
        }
        None
    }

    /// Returns the stored room and the member at a leg.
    pub(super) fn member_at(&mut self, leg: LegId) -> Option<(RoomId, &mut Member)> {
        let (room, id) = self.seated(leg)?;
        Some((room.name.room_id()?, room.members.get_mut(&id)?))
    }

    /// Makes the participant at a leg a moderator, who joins under a new member id.
    pub(super) fn promote(&mut self, now: Now, leg: LegId, outputs: &mut Outputs) {
        let Some((name, id)) = self.seat_of(leg) else { return };
        let Some(room) = self.rooms.get_mut(&name) else { return };
        room.stop_sound_of(now, id, outputs);
        let Some((before, new)) = room.promote(now, id, outputs) else { return };
        self.seats.insert(leg, (name, new));
        if let Some(member) = room.members.get(&new) {
            let shown = member.shown().to_owned();
            room.note_leave(before.member, &shown, outputs);
            room.note_join(new, &shown, outputs);
        }
        room.note_roster(new, outputs);
    }

    fn seated(&mut self, leg: LegId) -> Option<(&mut Live, u32)> {
        let (name, id) = self.seat_of(leg)?;
        Some((self.rooms.get_mut(&name)?, id))
    }
}

fn mute_prompt(muted: bool) -> Prompt {
    if muted { Prompt::Muted } else { Prompt::Unmuted }
}

/// How long the last party of merged calls may stay.
const ALONE_MAX: Duration = Duration::from_secs(60);

/// How long after the end of a room a recorder may report the end of its recording.
const RECORDING_END: Duration = Duration::from_secs(300);
