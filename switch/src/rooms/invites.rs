//! Calls to default members of a room that opens, and to targets that are dialled in.
//!
//! A default member who is busy or not registered is rung again: at once when the phone is reported free;
//! else every 5 s while no phone of the extension is registered (nothing is sent then), and every 30 s while
//! the extension is busy. A phone that rang is not rung again for 30 s, and counts a report that it is free
//! only once in that time: otherwise a phone that answers every call with busy would be rung endlessly.

use std::time::{Duration, Instant};

use sidetone_model::call::HangupCause;
use sidetone_model::ids::{ExtensionId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::news::RoomChange;
use sidetone_model::room::{DialKind, Invite, InviteReason, InviteState, Role, RoomMember, RoomName};
use sidetone_model::time::Now;

use crate::rooms::desk::{Alarm, Desk};
use crate::rooms::live::Live;
use crate::rooms::{Arrival, Dial, DialEnd, DialId, Output, Rooms};

/// A call that is being placed for a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialling {
    pub(super) room: RoomId,
    pub(super) kind: DialKind,
    pub(super) target: String,
    pub(super) role: Role,
    /// The extension, if the target is a default member.
    pub(super) invite: Option<ExtensionId>,
}

/// A default member and the state of its invitation.
#[derive(Debug)]
pub(super) struct Ringing {
    who: RoomMember,
    role: Role,
    state: InviteState,
    reason: InviteReason,
    dial: Option<DialId>,
    /// The last attempt that sent anything.
    tried: Option<Instant>,
    /// When a phone last rang.
    rang: Option<Instant>,
    /// The last attempt that followed a report that the phone is free; may lie ahead.
    heard_free: Option<Instant>,
}

impl Rooms {
    /// Rings the default members of a room that opened.
    pub(super) fn invite_all(&mut self, now: Now, name: RoomName) {
        let Some(id) = name.room_id() else { return };
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let config = self.book.room(id);
        for who in self.book.members(id) {
            let is_here = room.members.values().any(|member| member.extension == Some(who.extension_id));
            let state = if is_here { InviteState::Joined } else { InviteState::Pending };
            let role = config.and_then(|config| config.exempt(who.extension_id)).unwrap_or(Role::Participant);
            let ringing = Ringing::new(who.clone(), role, state);
            room.tell(now, RoomChange::Invited(ringing.invite()), &mut self.desk);
            room.invites.push(ringing);
        }
        let pending = room.invites.iter().filter(|invite| invite.state == InviteState::Pending);
        let extensions: Vec<_> = pending.map(|invite| invite.who.extension_id).collect();
        for extension in extensions {
            self.ring(now, name, extension);
        }
    }

    /// Rings a default member, unless the room would refuse it now.
    pub(super) fn ring(&mut self, now: Now, name: RoomName, extension: ExtensionId) {
        let Some(room) = self.rooms.get(&name) else { return };
        let Some(role) = room.invite(extension).filter(|invite| invite.is_due()).map(|invite| invite.role)
        else {
            return;
        };
        let alarm = Alarm::Invite(name, extension);
        let Some(config) = name.room_id().and_then(|id| self.book.room(id)) else { return };
        if self.door(name, role).is_err() || self.dials.len() >= self.config.dials_max {
            return self.desk.set(alarm, now.instant + POLL);
        }
        self.desk.clear(alarm);
        let id = self.desk.dial();
        let Some(invite) = self.rooms.get_mut(&name).and_then(|room| room.invite_mut(extension)) else {
            return;
        };
        invite.dial = Some(id);
        invite.tried = Some(now.instant);
        let target = invite.who.number.clone();
        let dialling = Dialling {
            room: config.id,
            kind: DialKind::Extension,
            target: target.clone(),
            role,
            invite: Some(extension),
        };
        self.dials.insert(id, dialling);
        self.desk.push(Output::Dial(Dial {
            id,
            organisation: config.organisation_id,
            room: config.id,
            kind: DialKind::Extension,
            target,
            role,
            caller_name: config.name.clone(),
            caller_number: config.number.clone(),
        }));
    }

    /// Records that a phone rings.
    pub(super) fn ringing(&mut self, now: Now, dial: DialId) {
        let Some(dialling) = self.dials.get(&dial) else { return };
        let Some(extension) = dialling.invite else { return };
        let Some(room) = self.rooms.get_mut(&dialling.room.into()) else { return };
        if let Some(invite) = room.invite_mut(extension) {
            invite.rang = Some(now.instant);
        }
        room.invite_is(now, extension, InviteState::Ringing, InviteReason::None, &mut self.desk);
    }

    /// Handles a call that was not answered.
    pub(super) fn dial_failed(&mut self, now: Now, dial: DialId, end: DialEnd) {
        let Some(dialling) = self.dials.remove(&dial) else { return };
        let Some(extension) = dialling.invite else { return };
        let name = RoomName::Stored(dialling.room);
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let Some(invite) = room.invite_mut(extension) else { return };
        invite.dial = None;
        if end == DialEnd::Unregistered {
            invite.tried = None;
        }
        let again = invite.again(now.instant);
        let (state, reason) = match end {
            DialEnd::Busy => (InviteState::Waiting, InviteReason::Busy),
            DialEnd::Declined => (InviteState::Declined, InviteReason::Declined),
            DialEnd::NoAnswer => (InviteState::NoAnswer, InviteReason::NoAnswer),
            DialEnd::Status(code) => (InviteState::Failed, InviteReason::Sip(code)),
            DialEnd::Unregistered => (InviteState::Waiting, InviteReason::Unregistered),
        };
        room.invite_is(now, extension, state, reason, &mut self.desk);
        if state == InviteState::Waiting {
            self.waiting.insert((extension, name));
            self.desk.set(Alarm::Invite(name, extension), again);
        } else {
            self.waiting.remove(&(extension, name));
        }
    }

    /// Handles a report that an extension may be reachable.
    pub(super) fn free(&mut self, now: Now, extension: ExtensionId) {
        let first = (extension, RoomName::Merged(sidetone_model::ids::CallId(uuid::Uuid::nil())));
        let rooms: Vec<_> = self
            .waiting
            .range(first..)
            .take_while(|(waiting, _)| *waiting == extension)
            .map(|(_, name)| *name)
            .collect();
        for name in rooms {
            let Some(invite) = self.rooms.get_mut(&name).and_then(|room| room.invite_mut(extension)) else {
                continue;
            };
            let is_planned = invite.heard_free.is_some_and(|at| at > now.instant);
            if is_planned || !invite.is_due() {
                continue;
            }
            let at = invite.earliest(now.instant);
            invite.heard_free = Some(at);
            if at <= now.instant {
                self.ring(now, name, extension);
            } else {
                self.desk.set_sooner(Alarm::Invite(name, extension), at);
            }
        }
    }

    /// Handles an answered call of ours.
    pub(super) fn answered(&mut self, now: Now, who: Arrival, dial: DialId) {
        let Some(dialling) = self.dials.remove(&dial) else {
            // The call was cancelled; the answer crossed the CANCEL.
            return self.desk.push(Output::HangUp(who.leg, HangupCause::NormalClearing));
        };
        let name = RoomName::Stored(dialling.room);
        if let Some(extension) = dialling.invite
            && let Some(invite) = self.rooms.get_mut(&name).and_then(|room| room.invite_mut(extension))
        {
            invite.dial = None;
        }
        if self.book.room(dialling.room).is_none() {
            return self.refuse(now, &who, false, vec![Prompt::NoSuchRoom, Prompt::Goodbye]);
        }
        let is_seated = self.admit(now, who, dialling.room, dialling.role, true, false);
        if !is_seated
            && let Some(extension) = dialling.invite
            && let Some(room) = self.rooms.get_mut(&name)
        {
            room.invite_is(now, extension, InviteState::Failed, InviteReason::None, &mut self.desk);
        }
    }

    /// Handles an extension that was seated: it is not rung any more.
    pub(super) fn invited_came(&mut self, now: Now, name: RoomName, extension: ExtensionId) {
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let Some(invite) = room.invite_mut(extension) else { return };
        if let Some(dial) = invite.dial.take() {
            self.dials.remove(&dial);
            self.desk.push(Output::CancelDial(dial));
        }
        self.waiting.remove(&(extension, name));
        self.desk.clear(Alarm::Invite(name, extension));
        room.invite_is(now, extension, InviteState::Joined, InviteReason::None, &mut self.desk);
    }

    /// Cancels all invitations, because the room ends.
    pub(super) fn cancel_invites(&mut self, now: Now, name: RoomName) {
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let mut open = Vec::new();
        for invite in &mut room.invites {
            let extension = invite.who.extension_id;
            self.waiting.remove(&(extension, name));
            self.desk.clear(Alarm::Invite(name, extension));
            if let Some(dial) = invite.dial.take() {
                self.dials.remove(&dial);
                self.desk.push(Output::CancelDial(dial));
            }
            if matches!(invite.state, InviteState::Pending | InviteState::Ringing | InviteState::Waiting) {
                open.push(extension);
            }
        }
        for extension in open {
            let (state, reason) = (InviteState::Cancelled, InviteReason::RoomEnded);
            room.invite_is(now, extension, state, reason, &mut self.desk);
        }
    }
}

impl Live {
    fn invite(&self, extension: ExtensionId) -> Option<&Ringing> {
        self.invites.iter().find(|invite| invite.who.extension_id == extension)
    }

    fn invite_mut(&mut self, extension: ExtensionId) -> Option<&mut Ringing> {
        self.invites.iter_mut().find(|invite| invite.who.extension_id == extension)
    }

    /// Sets the state of an invitation; publishes it if it changed.
    fn invite_is(
        &mut self,
        now: Now,
        extension: ExtensionId,
        state: InviteState,
        reason: InviteReason,
        desk: &mut Desk,
    ) {
        let Some(invite) = self.invite_mut(extension) else { return };
        if (invite.state, invite.reason) == (state, reason) {
            return;
        }
        (invite.state, invite.reason) = (state, reason);
        let told = invite.invite();
        self.tell(now, RoomChange::Invited(told), desk);
    }
}

impl Ringing {
    fn new(who: RoomMember, role: Role, state: InviteState) -> Self {
        let reason = InviteReason::None;
        Ringing { who, role, state, reason, dial: None, tried: None, rang: None, heard_free: None }
    }

    /// The invitation as it is published.
    fn invite(&self) -> Invite {
        Invite {
            extension_id: self.who.extension_id,
            number: self.who.number.clone(),
            name: self.who.name.clone(),
            state: self.state,
            last_reason: self.reason,
        }
    }

    /// Whether it should be rung and is not being rung.
    fn is_due(&self) -> bool {
        self.dial.is_none() && matches!(self.state, InviteState::Pending | InviteState::Waiting)
    }

    /// When to try again if no report arrives.
    fn again(&self, now: Instant) -> Instant {
        let sent = self.tried.map(|at| at + REST);
        let rang = self.rang.map(|at| at + REST);
        [sent, rang].into_iter().flatten().fold(now + POLL, Instant::max)
    }

    /// When to try again after a report that the phone is free now.
    fn earliest(&self, now: Instant) -> Instant {
        let sent = self.tried.map(|at| at + POLL);
        let rests = [self.rang, self.heard_free].map(|at| at.map(|at| at + REST));
        rests.into_iter().chain([sent]).flatten().fold(now, Instant::max)
    }
}

/// Interval of attempts while no phone is registered or the room accepts no further member.
const POLL: Duration = Duration::from_secs(5);

/// How long a phone that rang, or was busy, is not rung again.
const REST: Duration = Duration::from_secs(30);
