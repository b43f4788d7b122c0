//! Commands to a mix. They run between two ticks and apply from the next packet on.

use super::line::Line;
use super::machine::{Channels, Mix, Recording};
use super::player::Announcer;
use super::words::{MixCommand, MixEvent, SeatCommand, SeatError, SeatKey};

impl Mix {
    /// Runs a command for one seat.
    ///
    /// # Errors
    /// Fails when the seat is not taken or a codec has no rate of a mix; then nothing has changed.
    pub fn command(&mut self, key: SeatKey, command: SeatCommand) -> Result<(), SeatError> {
        let source = match &command {
            SeatCommand::Hear(hears) => self.source(hears),
            _ => None,
        };
        let place = self.index.get(&key).copied();
        let member = place.and_then(|place| self.members.get_mut(place)).ok_or(SeatError::Unknown)?;
        match command {
            SeatCommand::Format(formats) => member.format(*formats, self.position)?,
            SeatCommand::Gain(gain) => member.loudness.set(gain),
            SeatCommand::Hear(_) => member.source = source,
            SeatCommand::Left(left) => member.left = left,
            SeatCommand::Mute(muted) => member.muted = muted,
            SeatCommand::Play { clips, token } => {
                let announcer = member.announcer.get_or_insert_with(|| Box::new(Announcer::new()));
                if !announcer.player().play(clips, Some(token)) {
                    self.events.tell(MixEvent::Played { seat: key, token });
                }
            }
            SeatCommand::PlaySound(clip) => {
                let sound = member.sound.get_or_insert_with(|| Box::new(Announcer::new()));
                sound.player().replace(clip);
            }
            SeatCommand::StopSound => {
                if let Some(sound) = &mut member.sound {
                    sound.player().stop();
                    if let Line::Own(own) = &mut member.line {
                        own.cut();
                    }
                }
            }
            SeatCommand::StopPlaying => {
                if let Some(announcer) = &mut member.announcer {
                    announcer.player().stop();
                }
                if let Line::Own(own) = &mut member.line {
                    own.cut();
                }
            }
            SeatCommand::Whisper(to) => member.whispers_to = to,
        }
        self.refresh();
        Ok(())
    }

    /// Runs a command for the whole mix. Clips that do not fit into the queue are not played.
    pub fn mix_command(&mut self, command: MixCommand) {
        match command {
            MixCommand::Play(clips) => {
                self.sounds.announcements.play(clips, None);
            }
            MixCommand::PlaySound(clip) => {
                self.sounds.sound.replace(clip);
            }
            MixCommand::Record(sink) => {
                self.recording = Some(Recording { sink, channels: Channels::Mix });
            }
            MixCommand::RecordChannels(sink) => {
                self.recording = Some(Recording { sink, channels: Channels::Sides });
            }
            MixCommand::RecordSides { sink, sides } => {
                self.recording = Some(Recording { sink, channels: Channels::Seats(sides) });
            }
            MixCommand::StopRecording => self.recording = None,
            MixCommand::StopSound => self.sounds.sound.fade_out(),
        }
        self.refresh();
    }
}
