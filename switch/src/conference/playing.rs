//! A sound that a program plays into a live room: to all members, or to one of them. Only one sound plays at a time.
//!
//! The room gets the length of the sound and reports its end by its own timer: the media engine does not report it.

use std::time::Duration;

use sidetone_model::ids::LegId;
use sidetone_model::room::event::RoomChange;
use sidetone_model::room::{ControlRefused, PlayingSound};
use sidetone_model::time::Now;

use crate::conference::Output;
use crate::conference::live::Live;
use crate::conference::outputs::{Alarm, Outputs};

impl Live {
    /// Plays a sound.
    ///
    /// # Errors
    /// While another sound plays, and when there is no such member.
    pub(super) fn play_sound(
        &mut self,
        now: Now,
        sound: PlayingSound,
        duration_ms: u64,
        outputs: &mut Outputs,
    ) -> Result<(), ControlRefused> {
        if let Some(playing) = self.playing {
            return Err(ControlRefused::Playing(playing.prompt));
        }
        let leg = self.leg_of(sound.member).map_err(|()| ControlRefused::NoHearer)?;
        self.playing = Some(sound);
        let (mix, organisation) = (self.mix, self.organisation);
        outputs.push(Output::PlaySound { mix, leg, organisation, sound: sound.prompt });
        outputs.set(Alarm::Sound(self.name), now.instant + Duration::from_millis(duration_ms));
        self.tell(now, RoomChange::Playing(sound), outputs);
        Ok(())
    }

    /// Ends the sound that is played, if there is one.
    pub(super) fn stop_sound(&mut self, now: Now, outputs: &mut Outputs) {
        let Some(sound) = self.playing.take() else { return };
        // There is no sound to stop for a member who has left.
        if let Ok(leg) = self.leg_of(sound.member) {
            outputs.push(Output::StopSound(self.mix, leg));
        }
        outputs.clear(Alarm::Sound(self.name));
        self.tell(now, RoomChange::Played { sound, stopped: true }, outputs);
    }

    /// Ends the sound that is played to a member who leaves.
    pub(super) fn stop_sound_of(&mut self, now: Now, member: u32, outputs: &mut Outputs) {
        if self.playing.is_some_and(|sound| sound.member == Some(member)) {
            self.stop_sound(now, outputs);
        }
    }

    /// Handles the time at which the sound is over.
    pub(super) fn sound_over(&mut self, now: Now, outputs: &mut Outputs) {
        if let Some(sound) = self.playing.take() {
            self.tell(now, RoomChange::Played { sound, stopped: false }, outputs);
        }
    }

    /// The leg of a member; `None` for all members.
    fn leg_of(&self, member: Option<u32>) -> Result<Option<LegId>, ()> {
        let Some(member) = member else { return Ok(None) };
        self.members.get(&member).map(|member| Some(member.leg)).ok_or(())
    }
}
