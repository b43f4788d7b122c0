//! Calls to default members of a room that opens, and to targets that are dialled in.

use std::collections::{BTreeSet, HashMap};

use sidetone_model::ids::{CallId, ExtensionId, RoomId};
use sidetone_model::room::event::RoomChange;
use sidetone_model::room::{
    ControlRefused, DialFailure, DialKind, DialRequest, InviteReason, InviteState, Role, RoomDialled,
    RoomName,
};
use sidetone_model::time::Now;
use uuid::Uuid;

use crate::conference::dialling::Dialling;
use crate::conference::invitation::{Invitation, POLL};
use crate::conference::live_rooms::LiveRooms;
use crate::conference::outputs::{Alarm, Outputs};
use crate::conference::{DialEnd, DialId, Output, RoomDirectory};

/// The calls that rooms place, and the default members who will be rung again.
#[derive(Debug)]
pub(super) struct Invites {
    dials: HashMap<DialId, Dialling>,
    /// Default members who will be rung again, and for which room.
    waiting: BTreeSet<(ExtensionId, RoomName)>,
    /// Most calls that are being placed at the same time.
    dials_max: usize,
}

/// The context for a call to a member: the live rooms, the stored ones, and the outputs.
pub(super) struct Scene<'a> {
    pub(super) rooms: &'a mut LiveRooms,
    pub(super) directory: &'a RoomDirectory,
    pub(super) outputs: &'a mut Outputs,
}

impl Invites {
    /// Creates the state without calls; at most `dials_max` are being placed at the same time.
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
        let Some(invite) = scene.rooms.get_mut(name).and_then(|room| room.invite_mut(extension)) else {
            return;
        };
        invite.tried = Some(now.instant);
        let target = invite.who.number.clone();
        // A client has dialled it meanwhile: its phones ring once.
        let rung =
            self.dials.iter_mut().find(|(_, dial)| dial.calls(config.id, DialKind::Extension, &target));
        if let Some((id, dial)) = rung {
            invite.dial = Some(*id);
            dial.invite = Some(extension);
            return;
        }
        let id = scene.outputs.dial();
        invite.dial = Some(id);
        let dialling = Dialling {
            organisation: config.organisation_id,
            room: config.id,
            call: scene.outputs.call(now),
            kind: DialKind::Extension,
            target,
            role,
            confirm: false,
            invite: Some(extension),
            is_requested: false,
            has_rung: false,
        };
        let dial = dialling.dial(id, (config.name.clone(), config.number.clone()));
        scene.outputs.push(Output::Dial(dial));
        self.dials.insert(id, dialling);
    }

    /// Dials a target for a room; returns the target and its call. A target that is already being dialled for the room
    /// is not dialled twice; it gets the role and the confirmation setting of the latest request.
    ///
    /// # Errors
    /// When the room is not stored, or when too many targets are being dialled.
    pub(super) fn dial(
        &mut self,
        now: Now,
        room: RoomId,
        request: DialRequest,
        directory: &RoomDirectory,
        outputs: &mut Outputs,
    ) -> Result<RoomDialled, ControlRefused> {
        let config = directory.room(room).ok_or(ControlRefused::NoRoom)?;
        let DialRequest { kind, target, role, confirm } = request;
        let is_rung = |dial: &&mut Dialling| dial.calls(room, kind, &target);
        if let Some(dial) = self.dials.values_mut().find(is_rung) {
            (dial.role, dial.confirm, dial.is_requested) = (role, confirm, true);
            return Ok(dial.dialled());
        }
        if self.dials.len() >= self.dials_max {
            return Err(ControlRefused::Busy);
        }
        let id = outputs.dial();
        let dialling = Dialling {
            organisation: config.organisation_id,
            room,
            call: outputs.call(now),
            kind,
            target,
            role,
            confirm,
            invite: None,
            is_requested: true,
            has_rung: false,
        };
        outputs.push(Output::Dial(dialling.dial(id, (config.name.clone(), config.number.clone()))));
        let dialled = dialling.dialled();
        self.dials.insert(id, dialling);
        Ok(dialled)
    }

    /// Records that a phone rings.
    pub(super) fn ringing(&mut self, now: Now, dial: DialId, rooms: &mut LiveRooms, outputs: &mut Outputs) {
        let Some(dialling) = self.dials.get_mut(&dial) else { return };
        dialling.has_rung = true;
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
        dialling.report_end(now, end, outputs);
        let Some(extension) = dialling.invite else { return };
        let name = RoomName::Stored(dialling.room);
        let Some(room) = rooms.get_mut(name) else { return };
        let Some(invite) = room.invite_mut(extension) else { return };
        invite.dial = None;
        if end == DialEnd::Unregistered {
            invite.tried = None;
        }
        let again = invite.again(now.instant);
        let (state, reason) = match dialling.end(end) {
            DialEnd::Busy => (InviteState::Waiting, InviteReason::Busy),
            DialEnd::Declined => (InviteState::Declined, InviteReason::Declined),
            DialEnd::NoAnswer => (InviteState::NoAnswer, InviteReason::NoAnswer),
            // The extension forwards the call of a client to an outside number.
            DialEnd::NoCredit | DialEnd::NoRoute => (InviteState::Failed, InviteReason::None),
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

    /// Handles an extension that was seated: it is not rung any more, even if a client had dialled it.
    pub(super) fn joined(
        &mut self,
        now: Now,
        name: RoomName,
        extension: ExtensionId,
        rooms: &mut LiveRooms,
        outputs: &mut Outputs,
    ) {
        let Some(room) = rooms.get_mut(name) else { return };
        let seated = room.members.values().find(|member| member.extension == Some(extension));
        if let (Some(member), Some(id)) = (seated, name.room_id()) {
            let is_rung =
                |(_, dial): &(&DialId, &Dialling)| dial.calls(id, DialKind::Extension, &member.number);
            let dial = self.dials.iter().find(is_rung).map(|(dial, _)| *dial);
            self.cancel(now, dial, outputs);
        }
        let Some(invite) = room.invite_mut(extension) else { return };
        // The number of the extension may have changed since.
        let dial = invite.dial.take();
        self.cancel(now, dial, outputs);
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
        let (mut open, mut cancelled) = (Vec::new(), Vec::new());
        for invite in &mut room.invites {
            let extension = invite.who.extension_id;
            self.waiting.remove(&(extension, name));
            outputs.clear(Alarm::Invite(name, extension));
            let dial = invite.dial.take();
            // A party that a client dialled still opens the room when it answers.
            let requested = dial.and_then(|dial| self.dials.get_mut(&dial)).filter(|dial| dial.is_requested);
            match requested {
                Some(dialling) => dialling.invite = None,
                None => cancelled.extend(dial),
            }
            if matches!(invite.state, InviteState::Pending | InviteState::Ringing | InviteState::Waiting) {
                open.push(extension);
            }
        }
        for dial in cancelled {
            self.cancel(now, Some(dial), outputs);
        }
        for extension in open {
            let (state, reason) = (InviteState::Cancelled, InviteReason::RoomEnded);
            room.invite_is(now, extension, state, reason, outputs);
        }
    }

    /// Cancels every call for a room.
    pub(super) fn cancel_dials(&mut self, now: Now, room: RoomId, outputs: &mut Outputs) {
        let of_room = self.dials.iter().filter(|(_, dial)| dial.room == room);
        let mut cancelled: Vec<_> = of_room.map(|(id, _)| *id).collect();
        cancelled.sort_unstable();
        for dial in cancelled {
            self.cancel(now, Some(dial), outputs);
        }
    }

    fn cancel(&mut self, now: Now, dial: Option<DialId>, outputs: &mut Outputs) {
        if let Some((dial, dialling)) = dial.and_then(|dial| self.dials.remove_entry(&dial)) {
            outputs.push(Output::CancelDial(dial));
            dialling.report_failure(now, DialFailure::Cancelled, outputs);
        }
    }
}
