//! Calls to default members of a room that opens, and to targets that are dialled in.

use std::collections::{BTreeSet, HashMap};

use sidetone_model::ids::{CallId, ExtensionId, RoomId};
use sidetone_model::room::event::RoomChange;
use sidetone_model::room::{
    ControlRefused, DialKind, DialRequest, InviteReason, InviteState, Role, RoomName,
};
use sidetone_model::time::Now;
use uuid::Uuid;

use crate::conference::invitation::{Invitation, POLL};
use crate::conference::live_rooms::LiveRooms;
use crate::conference::outputs::{Alarm, Outputs};
use crate::conference::{Dial, DialEnd, DialId, Output, RoomDirectory};

/// The calls that rooms place, and the default members who will be rung again.
#[derive(Debug)]
pub(super) struct Invites {
    dials: HashMap<DialId, Dialling>,
    /// Default members who will be rung again, and for which room.
    waiting: BTreeSet<(ExtensionId, RoomName)>,
    /// Calls that are being placed at once.
    dials_max: usize,
}

/// A call that is being placed for a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialling {
    pub(super) room: RoomId,
    kind: DialKind,
    target: String,
    pub(super) role: Role,
    /// Whether the target is asked for the key 1 before it is seated.
    pub(super) confirm: bool,
    /// The extension, if the target is a default member.
    pub(super) invite: Option<ExtensionId>,
}

/// What calling a member needs: the live rooms, the stored ones, and the outputs.
pub(super) struct Scene<'a> {
    pub(super) rooms: &'a mut LiveRooms,
    pub(super) directory: &'a RoomDirectory,
    pub(super) outputs: &'a mut Outputs,
}

impl Invites {
    /// Without calls; at most `dials_max` are placed at once.
    pub(super) fn new(dials_max: usize) -> Self {
        Invites { dials: HashMap::new(), waiting: BTreeSet::new(), dials_max }
    }

    /// Rings the default members of a room that opened.
    pub(super) fn ring_all(&mut self, now: Now, name: RoomName, scene: &mut Scene<'_>) {
        let Some(id) = name.room_id() else { return };
        let Some(room) = scene.rooms.get_mut(name) else { return };
        let config = scene.directory.room(id);
        for who in scene.directory.members(id) {
            let is_here = room.members.values().any(|member| member.extension == Some(who.extension_id));
            let state = if is_here { InviteState::Joined } else { InviteState::Pending };
            let role = config.and_then(|config| config.exempt(who.extension_id)).unwrap_or(Role::Participant);
            let invitation = Invitation::new(who.clone(), role, state);
            room.tell(now, RoomChange::Invited(invitation.published()), scene.outputs);
            room.invites.push(invitation);
        }
        let pending = room.invites.iter().filter(|invite| invite.state == InviteState::Pending);
        let extensions: Vec<_> = pending.map(|invite| invite.who.extension_id).collect();
        for extension in extensions {
            self.ring(now, name, extension, scene);
        }
    }

    /// Rings a default member, unless the room would refuse it now.
    pub(super) fn ring(&mut self, now: Now, name: RoomName, extension: ExtensionId, scene: &mut Scene<'_>) {
        let Some(room) = scene.rooms.get(name) else { return };
        let Some(role) = room.invite(extension).filter(|invite| invite.is_due()).map(|invite| invite.role)
        else {
            return;
        };
        let alarm = Alarm::Invite(name, extension);
        let Some(config) = name.room_id().and_then(|id| scene.directory.room(id)) else { return };
        let is_refused = scene.rooms.accepts(name, role, scene.directory).is_err();
        if is_refused || self.dials.len() >= self.dials_max {
            return scene.outputs.set(alarm, now.instant + POLL);
        }
        scene.outputs.clear(alarm);
        let id = scene.outputs.dial();
        let Some(invite) = scene.rooms.get_mut(name).and_then(|room| room.invite_mut(extension)) else {
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
            confirm: false,
            invite: Some(extension),
        };
        self.dials.insert(id, dialling);
        scene.outputs.push(Output::Dial(Dial {
            id,
            organisation: config.organisation_id,
            room: config.id,
            kind: DialKind::Extension,
            target,
            role,
            caller_name: config.name.clone(),
            caller_number: config.number.clone(),
            follows: false,
        }));
    }

    /// Dials a target for a room; returns the target. A target that is already being dialled for the room is not
    /// dialled twice; it gets the role of the latest request, and is
    /// asked to confirm as that one says.
    ///
    /// # Errors
    /// When the room is not stored, or when too many targets are being dialled.
    pub(super) fn dial(
        &mut self,
        room: RoomId,
        request: DialRequest,
        directory: &RoomDirectory,
        outputs: &mut Outputs,
    ) -> Result<String, ControlRefused> {
        let config = directory.room(room).ok_or(ControlRefused::NoRoom)?;
        let DialRequest { kind, target, role, confirm } = request;
        let is_rung = |dial: &&mut Dialling| dial.room == room && dial.kind == kind && dial.target == target;
        if let Some(dial) = self.dials.values_mut().find(is_rung) {
            (dial.role, dial.confirm) = (role, confirm);
            return Ok(target);
        }
        if self.dials.len() >= self.dials_max {
            return Err(ControlRefused::Busy);
        }
        let id = outputs.dial();
        self.dials.insert(id, Dialling { room, kind, target: target.clone(), role, confirm, invite: None });
        outputs.push(Output::Dial(Dial {
            id,
            organisation: config.organisation_id,
            room,
            kind,
            target: target.clone(),
            role,
            caller_name: config.name.clone(),
            caller_number: config.number.clone(),
            follows: true,
        }));
        Ok(target)
    }

    /// Records that a phone rings.
    pub(super) fn ringing(&mut self, now: Now, dial: DialId, rooms: &mut LiveRooms, outputs: &mut Outputs) {
        let Some(dialling) = self.dials.get(&dial) else { return };
        let Some(extension) = dialling.invite else { return };
        let Some(room) = rooms.get_mut(dialling.room.into()) else { return };
        if let Some(invite) = room.invite_mut(extension) {
            invite.rang = Some(now.instant);
        }
        room.invite_is(now, extension, InviteState::Ringing, InviteReason::None, outputs);
    }

    /// Handles a call that was not answered.
    pub(super) fn failed(
        &mut self,
        now: Now,
        dial: DialId,
        end: DialEnd,
        rooms: &mut LiveRooms,
        outputs: &mut Outputs,
    ) {
        let Some(dialling) = self.dials.remove(&dial) else { return };
        let Some(extension) = dialling.invite else { return };
        let name = RoomName::Stored(dialling.room);
        let Some(room) = rooms.get_mut(name) else { return };
        let Some(invite) = room.invite_mut(extension) else { return };
        invite.dial = None;
        if end == DialEnd::Unregistered {
            invite.tried = None;
        }
        let again = invite.again(now.instant);
        // Phones that stop ringing by themselves answer 480, some 408.
        let end = match end {
            DialEnd::Status(408 | 480) if invite.has_rung() => DialEnd::NoAnswer,
            end => end,
        };
        let (state, reason) = match end {
            DialEnd::Busy => (InviteState::Waiting, InviteReason::Busy),
            DialEnd::Declined => (InviteState::Declined, InviteReason::Declined),
            DialEnd::NoAnswer => (InviteState::NoAnswer, InviteReason::NoAnswer),
            DialEnd::Status(code) => (InviteState::Failed, InviteReason::Sip(code)),
            DialEnd::Unregistered => (InviteState::Waiting, InviteReason::Unregistered),
        };
        room.invite_is(now, extension, state, reason, outputs);
        if state == InviteState::Waiting {
            self.waiting.insert((extension, name));
            outputs.set(Alarm::Invite(name, extension), again);
        } else {
            self.waiting.remove(&(extension, name));
        }
    }

    /// Handles a report that an extension may be reachable.
    pub(super) fn free(&mut self, now: Now, extension: ExtensionId, scene: &mut Scene<'_>) {
        let first = (extension, RoomName::Merged(CallId(Uuid::nil())));
        let rooms: Vec<_> = self
            .waiting
            .range(first..)
            .take_while(|(waiting, _)| *waiting == extension)
            .map(|(_, name)| *name)
            .collect();
        for name in rooms {
            let Some(invite) = scene.rooms.get_mut(name).and_then(|room| room.invite_mut(extension)) else {
                continue;
            };
            let is_planned = invite.heard_free.is_some_and(|at| at > now.instant);
            if is_planned || !invite.is_due() {
                continue;
            }
            let at = invite.earliest(now.instant);
            invite.heard_free = Some(at);
            if at <= now.instant {
                self.ring(now, name, extension, scene);
            } else {
                scene.outputs.set_sooner(Alarm::Invite(name, extension), at);
            }
        }
    }

    /// Handles an answered call of ours; returns it unless it was cancelled.
    pub(super) fn answered(&mut self, dial: DialId, rooms: &mut LiveRooms) -> Option<Dialling> {
        let dialling = self.dials.remove(&dial)?;
        if let Some(extension) = dialling.invite
            && let Some(invite) =
                rooms.get_mut(dialling.room.into()).and_then(|room| room.invite_mut(extension))
        {
            invite.dial = None;
        }
        Some(dialling)
    }

    /// Handles an extension that was seated: it is not rung any more.
    pub(super) fn joined(
        &mut self,
        now: Now,
        name: RoomName,
        extension: ExtensionId,
        rooms: &mut LiveRooms,
        outputs: &mut Outputs,
    ) {
        let Some(room) = rooms.get_mut(name) else { return };
        let Some(invite) = room.invite_mut(extension) else { return };
        if let Some(dial) = invite.dial.take() {
            self.dials.remove(&dial);
            outputs.push(Output::CancelDial(dial));
        }
        self.waiting.remove(&(extension, name));
        outputs.clear(Alarm::Invite(name, extension));
        room.invite_is(now, extension, InviteState::Joined, InviteReason::None, outputs);
    }

    /// Cancels all invitations, because the room ends.
    pub(super) fn cancel_all(
        &mut self,
        now: Now,
        name: RoomName,
        rooms: &mut LiveRooms,
        outputs: &mut Outputs,
    ) {
        let Some(room) = rooms.get_mut(name) else { return };
        let mut open = Vec::new();
        for invite in &mut room.invites {
            let extension = invite.who.extension_id;
            self.waiting.remove(&(extension, name));
            outputs.clear(Alarm::Invite(name, extension));
            if let Some(dial) = invite.dial.take() {
                self.dials.remove(&dial);
                outputs.push(Output::CancelDial(dial));
            }
            if matches!(invite.state, InviteState::Pending | InviteState::Ringing | InviteState::Waiting) {
                open.push(extension);
            }
        }
        for extension in open {
            let (state, reason) = (InviteState::Cancelled, InviteReason::RoomEnded);
            room.invite_is(now, extension, state, reason, outputs);
        }
    }

    /// Cancels every call for a room.
    pub(super) fn cancel_dials(&mut self, room: RoomId, outputs: &mut Outputs) {
        let mut cancelled: Vec<_> =
            self.dials.extract_if(|_, dial| dial.room == room).map(|(id, _)| id).collect();
        cancelled.sort_unstable();
        for dial in cancelled {
            outputs.push(Output::CancelDial(dial));
        }
    }
}
