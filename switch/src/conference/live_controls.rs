//! Carries out the controls of one member in a live room.
//!
//! A whisper is for one member. When that member leaves, the whisperer is muted, so that the room does not hear the
//! whisper because the listener hung up.

use sidetone_model::prompt::Prompt;
use sidetone_model::room::event::MemberChange;
use sidetone_model::room::{Control, ControlRefused, GainChange, MemberGain, Role};
use sidetone_model::time::Now;

use crate::conference::live::{Live, Member};
use crate::conference::outputs::Outputs;

impl Live {
    /// Carries out a control of one member: deaf, gain, hold, a locked mute, or a whisper. A control that requests the
    /// present state changes nothing; other controls are ignored.
    ///
    /// # Errors
    /// When there is no such member, or no such member to whisper to.
    pub(super) fn control_member(
        &mut self,
        now: Now,
        control: Control,
        outputs: &mut Outputs,
    ) -> Result<(), ControlRefused> {
        match control {
            Control::Deaf(id, deaf) => {
                let member = self.member(id)?;
                if std::mem::replace(&mut member.controls.deaf, deaf) != deaf {
                    self.tell_member(now, id, MemberChange::Deaf(deaf), outputs);
                }
            }
            Control::Gain(id, change) => self.change_gain(now, id, change, outputs)?,
            Control::Hold(id, on_hold) => {
                let member = self.member(id)?;
                if std::mem::replace(&mut member.controls.on_hold, on_hold) != on_hold {
                    self.tell_member(now, id, MemberChange::Hold(on_hold), outputs);
                    self.hush(now, outputs);
                }
            }
            Control::MuteLocked(id) => self.lock_mute(now, id, outputs)?,
            Control::Whisper(id, to) => {
                self.member(id)?;
                let is_listener = |to: u32| to != id && self.members.contains_key(&to);
                if to.is_some_and(|to| !is_listener(to)) {
                    return Err(ControlRefused::NoListener);
                }
                if std::mem::replace(&mut self.member(id)?.controls.whisper_to, to) != to {
                    self.tell_member(now, id, MemberChange::Whisper(to), outputs);
                }
            }
            Control::End
            | Control::Kick(_)
            | Control::Lock
            | Control::Mute(_)
            | Control::MuteAll
            | Control::Play { .. }
            | Control::Record(_)
            | Control::RecordChannels(_)
            | Control::StopSound
            | Control::Unlock
            | Control::Unmute(_) => {}
        }
        self.settle(outputs);
        Ok(())
    }

    /// Chooses the channels of the recording.
    ///
    /// # Errors
    /// When a recording of the session has others.
    pub(super) fn choose_channels(
        &mut self,
        channels: u16,
        outputs: &mut Outputs,
    ) -> Result<(), ControlRefused> {
        if !self.channels.choose(channels) {
            return Err(ControlRefused::Channels(self.channels.count()));
        }
        self.settle(outputs);
        Ok(())
    }

    /// Mutes the members who whispered to a member who left.
    pub(super) fn listener_left(&mut self, now: Now, gone: u32, outputs: &mut Outputs) {
        for id in self.whisperers_to(gone) {
            self.mute(now, id, true, outputs);
            if let Some(member) = self.members.get_mut(&id) {
                member.controls.whisper_to = None;
            }
            self.tell_member(now, id, MemberChange::Whisper(None), outputs);
        }
        self.settle(outputs);
    }

    fn change_gain(
        &mut self,
        now: Now,
        id: u32,
        change: GainChange,
        outputs: &mut Outputs,
    ) -> Result<(), ControlRefused> {
        let member = self.member(id)?;
        let before = member.controls.gain;
        let most = MemberGain::DECIBELS_MAX;
        let gain = MemberGain {
            gain_db: change.gain_db.map_or(before.gain_db, |decibels| decibels.clamp(-most, most)),
            automatic_gain: change.automatic_gain.unwrap_or(before.automatic_gain),
        };
        member.controls.gain = gain;
        if gain != before {
            self.tell_member(now, id, MemberChange::Gain(gain), outputs);
        }
        Ok(())
    }

    /// Mutes a member; a participant cannot unmute by keypad. The lock does not apply to moderators.
    fn lock_mute(&mut self, now: Now, id: u32, outputs: &mut Outputs) -> Result<(), ControlRefused> {
        let leg = self.member(id)?.leg;
        if self.mute(now, id, true, outputs) {
            outputs.play(leg, vec![Prompt::Muted]);
        }
        let member = self.member(id)?;
        if member.role == Role::Participant && !std::mem::replace(&mut member.controls.mute_locked, true) {
            // The end of "mute all" does not end the lock either.
            member.by_all = false;
            self.tell_member(now, id, MemberChange::MuteLock(true), outputs);
        }
        Ok(())
    }

    fn member(&mut self, id: u32) -> Result<&mut Member, ControlRefused> {
        self.members.get_mut(&id).ok_or(ControlRefused::NoMember)
    }
}
