//! The machine of all live rooms of a node, and of all callers on the way into one.
//!
//! Each part owns its state and does not use the others: [`Callers`] the callers on their way in, [`LiveRooms`] the
//! members, [`Invites`] the calls that rooms place. [`Rooms`] takes inputs and commands, and passes the results of one
//! part on to another.

use std::sync::Arc;
use std::time::Instant;

use sidetone_model::call::HangupCause;
#[cfg(test)]
use sidetone_model::ids::OrganisationId;
use sidetone_model::ids::{CallId, ExtensionId, LegId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::event::MergedBy;
use sidetone_model::room::{
    Control, ControlDone, ControlRefused, DialFailure, DialRequest, InviteReason, InviteState, LiveRoom,
    Role, RoomDialled, RoomName,
};
use sidetone_model::time::{Now, Timestamp};

use crate::conference::dialling::Dialling;
use crate::conference::entry::{Callers, Checks, Entrant};
use crate::conference::invites::{Invites, Scene};
use crate::conference::live_rooms::{AfterLeaving, KeyedCommand, LiveRooms};
use crate::conference::moderator_pin;
use crate::conference::moving::Expected;
use crate::conference::naming::{Named, Namings};
use crate::conference::outputs::{Alarm, Outputs};
#[cfg(test)]
use crate::conference::pin_attempts::Attempt;
use crate::conference::pin_attempts::PinAttempts;
use crate::conference::returning;
use crate::conference::{
    Arrival, DialId, Goal, Hears, Input, MixId, Output, PinCaller, RoomDirectory, RoomsConfig,
};
use crate::room_state::RoomState;

/// All live rooms of a node, and all callers on the way into one.
///
/// Drain [`Rooms::poll_output`] after every call of a `&mut self` function, and feed [`Input::Timeout`] at
/// [`Rooms::next_timeout`]:
///
/// ```
/// # use sidetone_switch::conference::{Input, Rooms, RoomsConfig};
/// # use sidetone_model::time::Now;
/// # fn carry_out(_: sidetone_switch::conference::Output) {}
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
    directory: Arc<RoomDirectory>,
    callers: Callers,
    live: LiveRooms,
    invites: Invites,
    namings: Namings,
    pin_attempts: PinAttempts,
    outputs: Outputs,
    /// The rooms that other nodes hand over to this one.
    expected: Expected,
    /// Whether other nodes may own rooms.
    seeks: bool,
}

impl Rooms {
    /// Creates the machine without rooms, and without stored rooms until [`Input::Directory`]. The seed is for
    /// ids.
    pub fn new(config: RoomsConfig, seed: u64) -> Self {
        Rooms {
            directory: Arc::new(RoomDirectory::default()),
            callers: Callers::new(config.callers_max),
            live: LiveRooms::new(&config),
            invites: Invites::new(config.dials_max),
            namings: Namings::default(),
            pin_attempts: PinAttempts::default(),
            outputs: Outputs::new(seed),
            expected: Expected::default(),
            seeks: false,
        }
    }

    /// Enables the search for the node that owns a room after a caller keyed the room's number.
    pub fn seek_owners(&mut self) {
        self.seeks = true;
    }

    /// Handles an input; drain [`Rooms::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Now, input: Input) {
        let outputs = &mut self.outputs;
        match input {
            Input::Arrived(who) => self.arrived(now, who),
            Input::DialFailed { dial, end } => self.invites.failed(now, dial, end, &mut self.live, outputs),
            Input::Digit(leg, digit) => self.digit(now, leg, digit),
            Input::Directory(directory) => {
                self.pin_attempts.keep(|room| directory.room(room).is_some());
                self.directory = directory;
            }
            Input::Free(extension) => {
                let (invites, mut scene) = self.scene();
                invites.free(now, extension, &mut scene);
            }
            Input::Gone(leg, cause) => {
                let entrant = self.namings.gone(leg, outputs);
                self.callers.gone(now, leg, outputs);
                // Also without a seat: a leg that the room refused may have a name.
                self.leave(now, leg, cause);
                self.namings.forget(leg, &mut self.outputs);
                self.gone_before_its_seat(now, entrant);
            }
            Input::Held(leg, held) => self.live.held(now, leg, held, outputs),
            Input::Name(leg, is_known) => {
                let named = self.namings.found(now, leg, is_known, outputs);
                self.named(now, named);
            }
            Input::Played(leg, token) if self.namings.is_asked(leg) => {
                self.namings.played(now, leg, token, outputs);
            }
            Input::Played(leg, token) => self.callers.played(now, leg, token, outputs),
            Input::Recorded { session, bytes, error } => {
                self.live.recorded(now, session, bytes, error, outputs);
            }
            Input::Ringing(dial) => self.invites.ringing(now, dial, &mut self.live, outputs),
            Input::Silent(leg, silent) => self.live.silent(leg, silent),
            Input::Sought(leg, found) => {
                let (callers, _, checks) = self.checks();
                let entrant = callers.sought(now, leg, found, checks);
                self.enter(now, entrant);
            }
            Input::Talking(leg, talking) => self.live.talking(now, leg, talking, outputs),
            Input::Timeout => self.timeout(now),
        }
    }

    /// Returns the next action; drain to `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.poll()
    }

    /// Returns when to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.outputs.next_alarm()
    }

    /// Applies a command to a live room. A command that requests the present state changes nothing.
    ///
    /// # Errors
    /// When the room is not live, or has no such member.
    pub fn control(
        &mut self,
        now: Now,
        name: RoomName,
        control: Control,
    ) -> Result<ControlDone, ControlRefused> {
        let outputs = &mut self.outputs;
        let room = self.live.get_mut(name).ok_or(ControlRefused::NotLive)?;
        match control {
            Control::Deaf(..)
            | Control::Gain(..)
            | Control::Hold(..)
            | Control::MuteLocked(_)
            | Control::Whisper(..) => room.control_member(now, control, outputs)?,
            Control::End => self.end(now, name),
            Control::Kick(member) => {
                let leg = room.members.get(&member).ok_or(ControlRefused::NoMember)?.leg;
                self.kick(now, leg);
            }
            Control::Lock => room.lock(now, true, outputs),
            Control::Mute(member) => self.live.mute(now, name, member, true, outputs)?,
            Control::MuteAll => return Ok(ControlDone::AllMuted(room.mute_all(now, outputs))),
            Control::Play { sound, duration_ms } => room.play_sound(now, sound, duration_ms, outputs)?,
            Control::Record(on) => room.record(now, on, outputs),
            Control::RecordChannels(channels) => room.choose_channels(channels, outputs)?,
            Control::StopSound => room.stop_sound(now, outputs),
            Control::Unlock => room.lock(now, false, outputs),
            Control::Unmute(member) => self.live.mute(now, name, member, false, outputs)?,
        }
        Ok(ControlDone::Done)
    }

    /// Dials a target for a room and seats it once it answers; returns the target and its call. A target that is
    /// already being dialled for the room is not dialled twice; it gets the role of the latest request.
    ///
    /// # Errors
    /// When the room is not stored or would refuse the target, when the target is in it, or when too many targets are
    /// being dialled.
    pub fn dial(
        &mut self,
        now: Now,
        room: RoomId,
        request: DialRequest,
    ) -> Result<RoomDialled, ControlRefused> {
        if self.directory.room(room).is_none() {
            return Err(ControlRefused::NoRoom);
        }
        if self.live.get(room.into()).is_some_and(|room| room.has_extension(&request)) {
            return Err(ControlRefused::Seated(request.target));
        }
        self.live.accepts(room.into(), request.role, &self.directory).map_err(|reason| match reason {
            Prompt::Locked => ControlRefused::Locked,
            _ => ControlRefused::Full,
        })?;
        self.invites.dial(now, room, request, &self.directory, &mut self.outputs)
    }

    /// Whether to answer a caller who dialled a room.
    ///
    /// # Errors
    /// The status to refuse the call with: 403 after too many wrong PINs, 503 when too many callers are on
    /// their way into rooms of this node.
    pub fn admits(&self, now: Instant, room: RoomId, who: &PinCaller) -> Result<(), u16> {
        let Some(config) = self.directory.room(room) else { return Ok(()) };
        let exempt = match who {
            PinCaller::Extension(extension) => config.exempt(*extension).is_some(),
            PinCaller::Number(_) => false,
        };
        if exempt || config.participant_pin.is_empty() {
            return Ok(());
        }
        if self.pin_attempts.refuses(now, room, who) {
            return Err(403);
        }
        if self.callers.is_full() { Err(503) } else { Ok(()) }
    }

    /// Returns the live rooms, ordered by name.
    pub fn live(&self, now: Timestamp) -> impl Iterator<Item = LiveRoom> {
        self.live.iter().map(move |room| room.view(now))
    }

    /// Returns the stored rooms that are live.
    pub fn live_ids(&self) -> impl Iterator<Item = RoomId> {
        self.live.iter().filter_map(|room| room.name.room_id())
    }

    /// The stored rooms that callers are about to enter.
    pub fn entered(&self) -> impl Iterator<Item = RoomId> {
        self.callers.rooms().chain(self.namings.rooms())
    }

    /// The callers who wait until the node that owns a room is found.
    pub fn seekers(&self, room: RoomId) -> Vec<LegId> {
        self.callers.seekers(room)
    }

    /// The legs of a room's members.
    pub fn legs_in(&self, name: RoomName) -> Vec<LegId> {
        self.live
            .get(name)
            .into_iter()
            .flat_map(|room| room.members.values().map(|member| member.leg))
            .collect()
    }

    /// Begins to hand a live room over to another node, and returns its state; `seat` returns the name of a leg's seat.
    /// Unanswered calls of the room are cancelled.
    pub fn let_go(&mut self, now: Now, room: RoomId, seat: impl Fn(LegId) -> String) -> Option<RoomState> {
        let name = RoomName::from(room);
        let state = self.live.get(name)?.state(room, seat);
        self.invites.cancel_all(now, name, &mut self.live, &mut self.outputs);
        self.invites.cancel_dials(now, room, &mut self.outputs);
        self.live.get_mut(name)?.moves(now, true, &mut self.outputs);
        Some(state)
    }

    /// Cancels the handover of a room; the room stays here.
    pub fn keep(&mut self, now: Now, room: RoomId) {
        if let Some(room) = self.live.get_mut(room.into()) {
            room.moves(now, false, &mut self.outputs);
        }
    }

    /// Expects the members of a room that another node hands over; returns whether this node accepts them.
    pub fn expect(&mut self, now: Now, state: RoomState) -> bool {
        let is_stored = self.directory.room(state.room).is_some();
        let is_free = self.live.get(state.room.into()).is_none() && self.live.takes_another();
        is_stored && is_free && self.expected.expect(now, state, &mut self.outputs)
    }

    /// Whether the member with this seat name is expected from a room at another node.
    pub fn expects(&self, room: RoomId, seat: &str) -> bool {
        self.expected.has(room, seat)
    }

    /// Seats a member of a room that another node has handed over; returns whether the party is such a member.
    fn comes_back(&mut self, now: Now, who: &Arrival) -> bool {
        let (Goal::Room(room) | Goal::Moved { room }) = who.goal else { return false };
        let parts = (&mut self.live, &*self.directory);
        who.returns.is_some() && self.expected.seat(now, who, room, parts, &mut self.outputs)
    }

    /// Returns the number of live rooms.
    pub fn live_len(&self) -> usize {
        self.live.iter().count()
    }

    /// Returns one live room.
    pub fn live_room(&self, now: Timestamp, name: RoomName) -> Option<LiveRoom> {
        self.live.get(name).map(|room| room.view(now))
    }

    /// Returns the room of the member at a leg.
    pub fn room_of(&self, leg: LegId) -> Option<RoomName> {
        self.live.seat_of(leg).map(|(room, _)| room)
    }

    /// Returns the mix of a live room.
    pub fn mix_of(&self, name: RoomName) -> Option<MixId> {
        self.live.get(name).map(|room| room.mix)
    }

    /// Whether the node has capacity for one more room.
    pub fn takes_another_room(&self) -> bool {
        self.live.takes_another()
    }

    /// Returns how many sessions are over except for their recordings.
    pub fn open_recordings(&self) -> usize {
        self.live.open_recordings()
    }

    /// Returns the number of members of a room.
    pub fn members_in(&self, name: RoomName) -> usize {
        self.live.get(name).map_or(0, |room| room.members.len())
    }

    /// Whether a leg is known: on its way in, in a room, or about to be hung up.
    pub fn knows(&self, leg: LegId) -> bool {
        self.live.seat_of(leg).is_some() || self.callers.knows(leg) || self.namings.is_asked(leg)
    }

    /// Returns how many wrong PINs were counted, and whether many of them were keyed at a room.
    #[cfg(test)]
    pub(super) fn wrong_pins(&self, now: Instant, room: RoomId) -> (u64, bool) {
        let (organisation, who) = (OrganisationId(uuid::Uuid::nil()), PinCaller::new(None, "0"));
        let attempt = Attempt { organisation, room, who, trunk: None };
        (self.pin_attempts.failures_total(), self.pin_attempts.is_slow(now, &attempt))
    }

    fn arrived(&mut self, now: Now, who: Arrival) {
        if self.knows(who.leg) || self.comes_back(now, &who) {
            return;
        }
        match who.goal {
            Goal::Ask => self.callers.ask_room(now, who, &mut self.outputs),
            Goal::Dialled { dial } => self.answered(now, who, dial),
            Goal::Merged { room, calls, by } => self.merge(now, who, room, (calls, by)),
            Goal::Moved { room } => self.move_in(now, who, room),
            Goal::Room(room) => {
                let (callers, _, checks) = self.checks();
                let entrant = callers.come_into(now, who, room, false, checks);
                self.enter(now, entrant);
            }
        }
    }

    fn digit(&mut self, now: Now, leg: LegId, digit: char) {
        if self.callers.is_asked(leg) {
            let (callers, _, checks) = self.checks();
            let entrant = callers.keyed(now, leg, digit, checks);
            return self.enter(now, entrant);
        }
        if self.namings.is_asked(leg) {
            let named = self.namings.keyed(now, leg, digit, &mut self.outputs);
            return self.named(now, named);
        }
        match self.live.keyed(now, leg, digit, &mut self.outputs) {
            Some(KeyedCommand::End(name)) => self.end(now, name),
            Some(KeyedCommand::Pin(digits)) => {
                let (_, live, checks) = self.checks();
                moderator_pin::claim(now, live, leg, &digits, checks);
            }
            None => {}
        }
    }

    fn timeout(&mut self, now: Now) {
        while let Some(alarm) = self.outputs.ring(now.instant) {
            match alarm {
                Alarm::Alone(name) => self.end(now, name),
                Alarm::Caller(leg) => {
                    let (callers, _, checks) = self.checks();
                    let entrant = callers.due(now, leg, checks);
                    self.enter(now, entrant);
                }
                Alarm::Expected(room) => self.expected.over(now, room, &mut self.live, &mut self.outputs),
                Alarm::Invite(name, extension) => {
                    let (invites, mut scene) = self.scene();
                    invites.ring(now, name, extension, &mut scene);
                }
                Alarm::Claim(leg) => {
                    let (_, live, checks) = self.checks();
                    moderator_pin::claim_due(now, live, leg, checks);
                }
                Alarm::Name(leg) => {
                    let named = self.namings.due(now, leg, &mut self.outputs);
                    self.named(now, named);
                }
                Alarm::Recording(session) => self.live.recording_due(session),
                Alarm::Sound(name) => {
                    if let Some(room) = self.live.get_mut(name) {
                        room.sound_over(now, &mut self.outputs);
                    }
                }
            }
        }
    }

    /// Admits a caller who has completed entry.
    fn enter(&mut self, now: Now, entrant: Option<Entrant>) {
        if let Some(entrant) = entrant {
            self.admit(now, entrant);
        }
    }

    /// Seats a caller whose name prompt has ended.
    fn named(&mut self, now: Now, named: Option<Named>) {
        let Some(Named { entrant, is_known }) = named else { return };
        if is_known {
            self.live.is_named(entrant.who.leg);
        }
        self.seat(now, entrant);
    }

    /// Admits a caller who passed the PIN check or needs no PIN. A room that announces names first asks for the name.
    fn admit(&mut self, now: Now, entrant: Entrant) {
        let room = entrant.room;
        let names = self.directory.room(room).is_some_and(|config| config.announce_names);
        let is_awaited = names
            && self.live.announces(room.into())
            && !returning::has_old_seat(&self.live, &entrant.who, room.into())
            && self.live.accepts(room.into(), entrant.role, &self.directory).is_ok();
        let entrant =
            if is_awaited { self.namings.begin(now, entrant, &mut self.outputs) } else { Some(entrant) };
        if let Some(entrant) = entrant {
            self.seat(now, entrant);
        }
    }

    /// Handles a party that hung up while it was asked for its name.
    fn gone_before_its_seat(&mut self, now: Now, entrant: Option<Entrant>) {
        let Some(Entrant { room, dialling: Some(dialling), .. }) = entrant else { return };
        dialling.report_failure(now, DialFailure::Cancelled, &mut self.outputs);
        self.not_reached(now, room, dialling.invite);
    }

    /// Seats a caller, if the room accepts the caller.
    fn seat(&mut self, now: Now, entrant: Entrant) {
        let Entrant { who, room, role, unasked, in_mix, dialling } = entrant;
        let accepted = match returning::has_old_seat(&self.live, &who, room.into()) {
            true => Ok(()),
            // Deleted during the naming or the confirmation.
            false if self.directory.room(room).is_none() => Err(Prompt::NoSuchRoom),
            false => self.live.accepts(room.into(), role, &self.directory),
        };
        let Err(reason) = accepted else {
            return self.take_seat(now, who, room.into(), role, unasked);
        };
        let invited = dialling.as_ref().and_then(|dialling| dialling.invite);
        if let Some(dialling) = dialling {
            dialling.report_failure(now, DialFailure::Refused, &mut self.outputs);
        }
        let prompts = vec![reason, Prompt::Goodbye];
        self.callers.refuse(now, &who, in_mix, prompts, &mut self.outputs);
        self.not_reached(now, room, invited);
    }

    /// Seats a member. The default members of a room that opens are rung.
    fn take_seat(&mut self, now: Now, who: Arrival, name: RoomName, role: Role, unasked: bool) {
        let extension = who.extension;
        if returning::retake(now, &mut self.live, &who, (name, role), &mut self.outputs) {
            return;
        }
        returning::doubt_others(&self.live, &who, name, &mut self.outputs);
        let opened = self.live.take_seat(now, (who, role, unasked), name, &self.directory, &mut self.outputs);
        if opened {
            let (invites, mut scene) = self.scene();
            invites.ring_all(now, name, &mut scene);
        }
        if let Some(extension) = extension {
            self.invites.joined(now, name, extension, &mut self.live, &mut self.outputs);
        }
    }

    /// Seats a party of two calls that are merged.
    fn merge(&mut self, now: Now, who: Arrival, name: RoomName, merged: ([CallId; 2], MergedBy)) {
        if self.live.open_merged(now, &who, name, merged, &self.directory, &mut self.outputs) {
            self.take_seat(now, who, name, Role::Participant, false);
        } else {
            self.outputs.push(Output::HangUp(who.leg, HangupCause::SwitchCongestion));
        }
    }

    /// Seats a party that a program moved into a room.
    fn move_in(&mut self, now: Now, who: Arrival, room: RoomId) {
        let role = Role::Participant;
        self.admit(now, Entrant { who, room, role, unasked: true, in_mix: false, dialling: None });
    }

    /// Whether a room takes one more participant now.
    pub fn accepts(&self, room: RoomId) -> bool {
        self.live.accepts(room.into(), Role::Participant, &self.directory).is_ok()
    }

    /// Handles an answered call of ours.
    fn answered(&mut self, now: Now, who: Arrival, dial: DialId) {
        let Some(dialling) = self.invites.answered(dial, &mut self.live) else {
            // The call was cancelled; the answer crossed the CANCEL.
            return self.outputs.push(Output::HangUp(who.leg, HangupCause::NormalClearing));
        };
        let room = dialling.room;
        if self.directory.room(room).is_none() {
            dialling.report_failure(now, DialFailure::Refused, &mut self.outputs);
            let prompts = vec![Prompt::NoSuchRoom, Prompt::Goodbye];
            return self.callers.refuse(now, &who, false, prompts, &mut self.outputs);
        }
        if who.is_forwarded {
            // A mailbox or another person may have answered: the default member counts as not reached.
            self.not_reached(now, room, dialling.invite);
            let dialling = Dialling { role: Role::Participant, ..dialling };
            return self.callers.ask_confirmation(now, who, dialling, &mut self.outputs);
        }
        if dialling.confirm {
            return self.callers.ask_confirmation(now, who, dialling, &mut self.outputs);
        }
        let role = dialling.role;
        let dialling = Some(Box::new(dialling));
        self.admit(now, Entrant { who, room, role, unasked: true, in_mix: false, dialling });
    }

    /// Records that the call to a default member did not reach it.
    fn not_reached(&mut self, now: Now, room: RoomId, invite: Option<ExtensionId>) {
        if let Some(extension) = invite
            && let Some(live) = self.live.get_mut(room.into())
        {
            live.invite_is(now, extension, InviteState::Failed, InviteReason::None, &mut self.outputs);
        }
    }

    /// Removes a member whose leg is over, or about to be.
    fn leave(&mut self, now: Now, leg: LegId, cause: HangupCause) {
        match self.live.leave(now, leg, cause, &mut self.outputs) {
            AfterLeaving::Close(name) => self.close(now, name, false),
            AfterLeaving::End(name) => self.end(now, name),
            AfterLeaving::Nothing => {}
        }
    }

    /// Removes a member. The member hears a prompt about it outside of the room and is then hung up.
    fn kick(&mut self, now: Now, leg: LegId) {
        let Some(room) = self.live.seat_of(leg).and_then(|(name, _)| self.live.get(name)) else { return };
        let (organisation, mix) = (room.organisation, self.outputs.mix());
        self.outputs.push(Output::Join { leg, mix, organisation, muted: true, hears: Hears::Room });
        let cause = HangupCause::NormalClearing;
        self.callers.turn_away(now, leg, vec![Prompt::Kicked], cause, &mut self.outputs);
        self.leave(now, leg, cause);
    }

    /// Hangs up all members. The room is removed immediately, while its members still hear the prompt.
    fn end(&mut self, now: Now, name: RoomName) {
        if self.live.get(name).is_none() {
            return;
        }
        let outputs = &mut self.outputs;
        while let Some(leg) = self.live.unseat_first(now, name, outputs) {
            outputs.push(Output::Mute(leg, true));
            let cause = HangupCause::NormalClearing;
            self.callers.turn_away(now, leg, vec![Prompt::Ended], cause, outputs);
        }
        self.close(now, name, true);
    }

    /// Removes a room without members. A room that was ended cancels all its calls; a room whose last member
    /// left cancels only the calls to its default members.
    fn close(&mut self, now: Now, name: RoomName, was_ended: bool) {
        self.invites.cancel_all(now, name, &mut self.live, &mut self.outputs);
        if was_ended && let Some(room) = name.room_id() {
            self.invites.cancel_dials(now, room, &mut self.outputs);
            self.callers.cancel_confirmations(now, room, &mut self.outputs);
            for Entrant { who, in_mix, dialling, .. } in self.namings.cancel(room, &mut self.outputs) {
                if let Some(dialling) = dialling {
                    dialling.report_failure(now, DialFailure::Cancelled, &mut self.outputs);
                }
                self.callers.refuse(now, &who, in_mix, vec![Prompt::Ended], &mut self.outputs);
            }
        }
        self.live.close(now, name, &mut self.outputs);
    }

    /// The callers, the live rooms, and the context for checks of numbers and PINs.
    fn checks(&mut self) -> (&mut Callers, &mut LiveRooms, Checks<'_>) {
        let checks = Checks {
            directory: &self.directory,
            pin_attempts: &mut self.pin_attempts,
            outputs: &mut self.outputs,
            seeks: self.seeks,
        };
        (&mut self.callers, &mut self.live, checks)
    }

    /// The invitations, and the context for a call to a member.
    fn scene(&mut self) -> (&mut Invites, Scene<'_>) {
        let scene = Scene { rooms: &mut self.live, directory: &self.directory, outputs: &mut self.outputs };
        (&mut self.invites, scene)
    }
}
