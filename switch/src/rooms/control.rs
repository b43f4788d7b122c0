//! Moderation: commands that arrive by the members' keypads and by the HTTP API run the same code.

use sidetone_model::ids::{LegId, RoomId};
use sidetone_model::prompt::Prompt;
use sidetone_model::room::{Control, ControlDone, ControlRefused, DialRequest, Role, RoomName};
use sidetone_model::time::Now;

use crate::rooms::invites::Dialling;
use crate::rooms::keypad::Keyed;
use crate::rooms::{Dial, Output, Rooms};

impl Rooms {
    /// Applies a command to a live room. A command that asks for the present state changes nothing.
    ///
    /// # Errors
    /// When the room is not live, or has no such member.
    pub fn control(
        &mut self,
        now: Now,
        name: RoomName,
        control: Control,
    ) -> Result<ControlDone, ControlRefused> {
        let room = self.rooms.get_mut(&name).ok_or(ControlRefused::NotLive)?;
        match control {
            Control::End => self.end(now, name),
            Control::Kick(member) => {
                let leg = room.members.get(&member).ok_or(ControlRefused::NoMember)?.leg;
                self.kick(now, leg);
            }
            Control::Lock => room.lock(now, true, &mut self.desk),
            Control::Mute(member) => self.mute(now, name, member, true)?,
            Control::MuteAll => return Ok(ControlDone::AllMuted(room.mute_all(now, &mut self.desk))),
            Control::Record(on) => room.record(now, on, &mut self.desk),
            Control::Unlock => room.lock(now, false, &mut self.desk),
            Control::Unmute(member) => self.mute(now, name, member, false)?,
        }
        Ok(ControlDone::Done)
    }

    fn mute(&mut self, now: Now, name: RoomName, member: u32, muted: bool) -> Result<(), ControlRefused> {
        let room = self.rooms.get_mut(&name).ok_or(ControlRefused::NotLive)?;
        let leg = room.members.get(&member).ok_or(ControlRefused::NoMember)?.leg;
        if room.mute(now, member, muted, &mut self.desk) {
            self.desk.play(leg, vec![if muted { Prompt::Muted } else { Prompt::Unmuted }]);
        }
        Ok(())
    }

    /// Dials a target for a room and seats it once it answers; returns the target. A target that is already
    /// being dialled for the room is not dialled twice; it gets the role of the latest request.
    ///
    /// # Errors
    /// When the room is not stored or would refuse the target, or when too many targets are being dialled.
    pub fn dial(&mut self, room: RoomId, request: DialRequest) -> Result<String, ControlRefused> {
        let config = self.book.room(room).ok_or(ControlRefused::NoRoom)?;
        let DialRequest { kind, target, role } = request;
        self.door(room.into(), role).map_err(|reason| match reason {
            Prompt::Locked => ControlRefused::Locked,
            _ => ControlRefused::Full,
        })?;
        let is_rung = |dial: &&mut Dialling| dial.room == room && dial.kind == kind && dial.target == target;
        if let Some(dial) = self.dials.values_mut().find(is_rung) {
            dial.role = role;
            return Ok(target);
        }
        if self.dials.len() >= self.config.dials_max {
            return Err(ControlRefused::Busy);
        }
        let id = self.desk.dial();
        self.dials.insert(id, Dialling { room, kind, target: target.clone(), role, invite: None });
        self.desk.push(Output::Dial(Dial {
            id,
            organisation: config.organisation_id,
            room,
            kind,
            target: target.clone(),
            role,
            caller_name: config.name.clone(),
            caller_number: config.number.clone(),
        }));
        Ok(target)
    }

    /// Handles a digit that a member keyed.
    pub(super) fn member_keyed(&mut self, now: Now, leg: LegId, digit: char) {
        let Some((name, id)) = self.seats.get(&leg).copied() else { return };
        let Some(room) = self.rooms.get_mut(&name) else { return };
        let Some(member) = room.members.get_mut(&id) else { return };
        let Some(keyed) = member.keypad.press(now.instant, digit) else { return };
        let moderates = member.role == Role::Moderator;
        let desk = &mut self.desk;
        match keyed {
            Keyed::Mute | Keyed::Unmute => {
                let muted = keyed == Keyed::Mute;
                room.mute(now, id, muted, desk);
                // Played even if nothing changed: the member asked and expects an answer.
                desk.play(leg, vec![if muted { Prompt::Muted } else { Prompt::Unmuted }]);
            }
            Keyed::Lock if moderates => room.lock(now, !room.locked, desk),
            Keyed::MuteAll if moderates => drop(room.mute_all(now, desk)),
            Keyed::End if moderates => self.end(now, name),
            // No prompt is played, so that a participant cannot find out what the keys do.
            Keyed::Lock | Keyed::MuteAll | Keyed::End => {}
            Keyed::Pin(digits) => self.claim(now, leg, &digits),
        }
    }
}
