//! Members who join and leave, and the rooms that open and end with them.

use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, ExtensionId, LegId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::news::RoomChange;
use sidetone_model::room::{Role, RoomName};
use sidetone_model::time::Now;

use crate::rooms::desk::Alarm;
use crate::rooms::entry::{TRIES_MAX, is_pin};
use crate::rooms::live::Member;
use crate::rooms::live::{Live, Rules};
use crate::rooms::machine::Afterwards;
use crate::rooms::{Arrival, Output, Rooms};

impl Rooms {
    /// Seats a member; opens the room if it is not live.
    pub(super) fn take_seat(&mut self, now: Now, who: Arrival, name: RoomName, role: Role, unasked: bool) {
        let (leg, organisation, extension) = (who.leg, who.organisation, who.extension);
        let opens = !self.rooms.contains_key(&name);
        if opens {
            self.open(now, name, &who);
        }
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let desk = &mut self.desk;
        let waited = room.waits();
        if room.is_announced() && !waited {
            room.say(vec![Prompt::Joined], desk);
        }
        let (id, seat) = room.seat(now, who, role, unasked, desk);
        self.seats.insert(leg, (name, id));
        let (mix, muted, hears) = (room.mix, seat.muted, seat.hears);
        desk.push(Output::Join { leg, mix, organisation, muted, hears });
        if waited && !room.waits() {
            room.settle(desk);
        }
        room.greet(id, leg, desk);
        if let Some(name) = room.members.get(&id).map(|member| member.shown().to_owned()) {
            room.note_join(id, &name, desk);
        }
        room.note_roster(id, desk);
        if opens {
            self.opened(now, name);
        }
        if let Some(extension) = extension {
            self.invited_came(now, name, extension);
        }
    }

    fn open(&mut self, now: Now, name: RoomName, who: &Arrival) {
        let config = name.room_id().and_then(|id| self.book.room(id));
        let rules = config.map_or(Rules::default(), |config| Rules {
            waits: config.wait_for_moderator,
            ends: config.end_when_moderator_leaves,
        });
        let title = config.map_or(String::new(), |config| config.name.clone());
        let room = Live::open(now, name, who.organisation, title, rules, &mut self.desk);
        self.rooms.insert(name, room);
    }

    /// Starts the recording and rings the default members, once the first member is seated.
    fn opened(&mut self, now: Now, name: RoomName) {
        let Some(config) = name.room_id().and_then(|id| self.book.room(id)) else { return };
        if config.record
            && let Some(room) = self.rooms.get_mut(&name)
        {
            room.record(now, true, &mut self.desk);
        }
        self.invite_all(now, name);
    }

    /// Seats a party of two calls that are merged.
    pub(super) fn merge(
        &mut self,
        now: Now,
        who: Arrival,
        name: RoomName,
        calls: [CallId; 2],
        by: Option<ExtensionId>,
    ) {
        let is_foreign = self.rooms.get(&name).is_some_and(|room| room.organisation != who.organisation);
        if is_foreign || self.door(name, Role::Participant).is_err() {
            return self.desk.push(Output::HangUp(who.leg, HangupCause::SwitchCongestion));
        }
        if !self.rooms.contains_key(&name) {
            self.open(now, name, &who);
            if let Some(room) = self.rooms.get_mut(&name) {
                room.tell(now, RoomChange::Merged { calls, by }, &mut self.desk);
            }
        }
        self.take_seat(now, who, name, Role::Participant, false);
    }

    /// Removes a member whose leg is over, or about to be.
    pub(super) fn leave(&mut self, now: Now, leg: LegId) {
        let Some((name, id)) = self.seats.remove(&leg) else { return };
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let desk = &mut self.desk;
        let Some(member) = room.unseat(now, id, desk) else { return };
        room.note_leave(id, member.shown(), desk);
        if room.members.is_empty() {
            return self.finish(now, name, false);
        }
        let is_last_moderator = member.role == Role::Moderator && !room.is_moderated();
        if is_last_moderator && room.rules.ends {
            return self.end(now, name);
        }
        if is_last_moderator && room.rules.waits {
            room.hush(now, desk);
            room.settle(desk);
            for leg in room.members.values().map(|member| member.leg) {
                desk.play(leg, vec![Prompt::WaitForModerator]);
            }
        } else if room.is_announced() && !room.waits() {
            room.say(vec![Prompt::Left], desk);
        }
    }

    /// Hangs a member up.
    pub(super) fn kick(&mut self, now: Now, leg: LegId) {
        self.desk.push(Output::HangUp(leg, HangupCause::NormalClearing));
        self.leave(now, leg);
    }

    /// Hangs up all members. The room is gone at once, while its members still hear the prompt.
    pub(super) fn end(&mut self, now: Now, name: RoomName) {
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let members: Vec<_> = room.members.values().map(|member| (member.id, member.leg)).collect();
        for (id, leg) in members {
            let Some(room) = self.rooms.get_mut(&name) else { return };
            room.unseat(now, id, &mut self.desk);
            self.seats.remove(&leg);
            self.desk.push(Output::Mute(leg, true));
            self.turn_away(now, leg, vec![Prompt::Ended], HangupCause::NormalClearing);
        }
        self.finish(now, name, true);
    }

    /// Removes a room without members. A room that was ended cancels all its calls; a room whose last member
    /// left cancels only the calls to its default members.
    fn finish(&mut self, now: Now, name: RoomName, was_ended: bool) {
        self.cancel_invites(now, name);
        if was_ended && let Some(room) = name.room_id() {
            self.cancel_dials(room);
        }
        let Some(mut room) = self.rooms.remove(&name) else { return };
        let desk = &mut self.desk;
        room.record(now, false, desk);
        room.tell(now, RoomChange::Ended, desk);
        if room.recordings > 0 {
            let after = Afterwards {
                name,
                organisation: room.organisation,
                revision: room.revision,
                open: room.recordings,
            };
            self.recordings.insert(room.session, after);
            desk.set(Alarm::Recording(room.session), now.instant + RECORDING_END);
        }
    }

    fn cancel_dials(&mut self, room: RoomId) {
        let desk = &mut self.desk;
        let mut cancelled: Vec<_> =
            self.dials.extract_if(|_, dial| dial.room == room).map(|(id, _)| id).collect();
        cancelled.sort_unstable();
        for dial in cancelled {
            desk.push(Output::CancelDial(dial));
        }
    }

    /// Handles a PIN keyed in the room by a participant who was seated without being asked for one. The same
    /// limits apply as on the way in.
    pub(super) fn claim(&mut self, now: Now, leg: LegId, digits: &str) {
        let Some((room_id, member)) = self.claimant(leg) else { return };
        let who = member.counted();
        let tries_max = if self.guard.is_slow(now.instant, room_id) { 1 } else { TRIES_MAX };
        let Some((_, member)) = self.claimant(leg) else { return };
        if member.claim.is_some() || member.tries >= tries_max {
            return;
        }
        let trunk = member.trunk;
        if self.guard.refuses(now.instant, room_id, &who) {
            return;
        }
        match self.guard.verdict_at(now.instant, room_id, &who, trunk) {
            None => self.judge_claim(now, leg, digits),
            Some(Some(due)) => {
                if let Some((_, member)) = self.claimant(leg) {
                    member.claim = Some(digits.to_owned());
                    self.desk.set(Alarm::Claim(leg), due);
                }
            }
            // Too many results are due before this one: the PIN is not checked.
            Some(None) => {}
        }
    }

    /// The result of a PIN keyed in a slow room is due.
    pub(super) fn claim_due(&mut self, now: Now, leg: LegId) {
        let digits = self.claimant(leg).and_then(|(_, member)| member.claim.take());
        if let Some(digits) = digits {
            self.judge_claim(now, leg, &digits);
        }
    }

    /// The room of a participant who may key the moderator PIN there.
    fn claimant(&mut self, leg: LegId) -> Option<(RoomId, &mut Member)> {
        let (name, id) = self.seats.get(&leg).copied()?;
        let room_id = name.room_id()?;
        self.book.room(room_id).filter(|config| !config.moderator_pin.is_empty())?;
        let member = self.rooms.get_mut(&name)?.members.get_mut(&id)?;
        (member.unasked && member.role == Role::Participant).then_some((room_id, member))
    }

    /// Checks the PIN: makes the member a moderator, or counts the wrong PIN.
    fn judge_claim(&mut self, now: Now, leg: LegId, digits: &str) {
        let Some((name, id)) = self.seats.get(&leg).copied() else { return };
        let Some((room_id, member)) = self.claimant(leg) else { return };
        let (who, trunk) = (member.counted(), member.trunk);
        let is_right =
            self.book.room(room_id).is_some_and(|config| is_pin(&config.moderator_pin, digits).into());
        if !is_right {
            if let Some((_, member)) = self.claimant(leg) {
                member.tries += 1;
            }
            self.guard.failed_by(now.instant, room_id, &who, trunk);
            self.desk.play(leg, vec![Prompt::WrongPin]);
            return;
        }
        self.guard.succeeded(room_id, &who);
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let Some((before, new)) = room.promote(now, id, &mut self.desk) else { return };
        self.seats.insert(leg, (name, new));
        if let Some(member) = room.members.get(&new) {
            let shown = member.shown().to_owned();
            room.note_leave(before.member, &shown, &mut self.desk);
            room.note_join(new, &shown, &mut self.desk);
        }
        room.note_roster(new, &mut self.desk);
    }
}

impl Live {
    /// Whether joins and leaves are announced; in a large room the announcements would never stop.
    fn is_announced(&self) -> bool {
        matches!(self.name, RoomName::Stored(_)) && self.members.len() <= ANNOUNCED_MAX
    }

    /// Plays the state of the room to a member who was just seated.
    fn greet(&self, id: u32, leg: LegId, desk: &mut crate::rooms::desk::Desk) {
        let Some(member) = self.members.get(&id) else { return };
        let is_stored = matches!(self.name, RoomName::Stored(_));
        let waits = self.waits() && member.role == Role::Participant;
        let is_alone = is_stored && !waits && self.members.len() == 1;
        let words = [
            (waits, Prompt::WaitForModerator),
            (is_alone, Prompt::Alone),
            (member.muted, Prompt::AllMuted),
            (self.recording, Prompt::RecordingOn),
        ];
        let prompts: Vec<_> =
            words.into_iter().filter_map(|(holds, prompt)| holds.then_some(prompt)).collect();
        if !prompts.is_empty() {
            desk.play(leg, prompts);
        }
    }
}

/// Members of a room up to which joins and leaves are announced.
const ANNOUNCED_MAX: usize = 12;

/// How long after the end of a room a recorder may report the end of its recording.
const RECORDING_END: std::time::Duration = std::time::Duration::from_secs(300);
