//! One seat: its inbound audio, whether it talks, and the audio sent to it.

use super::comfort_noise::Background;
use super::gain::Loudness;
use super::inbound::Inbound;
use super::line::{Line, Want};
use super::player::Announcer;
use super::sender::Sender;
use super::stream::{Coding, Source};
use super::talk::{Level, Talk};
use super::words::{Formats, Seat, SeatError, SeatKey};
use crate::time::Micros;

/// A seat that is taken.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: SeatKey,
    pub(super) formats: Formats,
    pub(super) coding: Coding,
    pub(super) muted: bool,
    /// The source that it hears when no clip plays; `None` for no audio.
    pub(super) source: Option<Source>,
    pub(super) inbound: Inbound,
    pub(super) talk: Talk,
    /// Its level while it does not talk.
    pub(super) background: Background,
    pub(super) loudness: Loudness,
    /// The only seat that hears it; `None` for all.
    pub(super) whispers_to: Option<SeatKey>,
    /// Whether it is on the left channel of a two-channel recording.
    pub(super) left: bool,
    /// Whether it is among the parties that are decoded in this tick.
    pub(super) chosen: bool,
    /// Whether it hears audio other than the sum in this tick: its own audio is in the sum, or another party whispers
    /// to it.
    pub(super) hears_apart: bool,
    pub(super) line: Line,
    pub(super) sender: Sender,
    /// The clips that play for this seat only.
    pub(super) announcer: Option<Box<Announcer>>,
    /// The clip that was chosen for this seat only; prompts do not end it.
    pub(super) sound: Option<Box<Announcer>>,
}

impl Member {
    /// A seat that has sent and received nothing yet.
    ///
    /// # Errors
    /// Fails when a codec refuses its parameters or has a rate that no mix has.
    pub(super) fn new(key: SeatKey, seat: Seat, source: Option<Source>) -> Result<Member, SeatError> {
        let Seat { formats, muted, seed, .. } = seat;
        Ok(Member {
            key,
            coding: Coding::new(formats.send.1, formats.ptime_ms)?,
            muted,
            source,
            inbound: Inbound::new(&formats, seed)?,
            talk: Talk::new(),
            background: Background::default(),
            loudness: Loudness::new(),
            whispers_to: None,
            left: false,
            chosen: false,
            hears_apart: false,
            line: Line::Idle,
            sender: Sender::new(seed, formats.send),
            announcer: None,
            sound: None,
            formats,
        })
    }

    /// Continues with a new SDP answer from `position` on.
    ///
    /// # Errors
    /// Fails as [`Member::new`] does; then nothing has changed.
    pub(super) fn format(&mut self, formats: Formats, position: u64) -> Result<(), SeatError> {
        let coding = Coding::new(formats.send.1, formats.ptime_ms)?;
        self.inbound.format(&formats)?;
        if self.formats.send != formats.send {
            self.sender.format(formats.send, position);
        }
        (self.coding, self.formats) = (coding, formats);
        Ok(())
    }

    /// Finds a digit in the audio of this tick; also of a party that is not heard.
    pub(super) fn tone(&mut self, at: Micros) -> Option<char> {
        if self.formats.speaks { self.inbound.tone(at) } else { None }
    }

    /// Counts the frame of this tick. Returns whether the party may be heard, and whether talking began or
    /// ended. A party that waits with music takes no part in the conversation: it is not heard and not
    /// recorded.
    pub(super) fn listen(&mut self, at: Micros) -> (bool, Option<bool>) {
        (self.chosen, self.hears_apart) = (false, false);
        if !self.may_be_heard() {
            return (false, self.talk.silence());
        }
        let Some((level, is_exact)) = self.inbound.level(at, self.talk.is_voiced()) else {
            return (false, None);
        };
        let change = self.talk.frame(level);
        if self.talk.is_speech() {
            self.loudness.hear(level);
        }
        if is_exact && self.talk.is_pause() {
            self.background.frame(level);
        }
        (self.talk.is_voiced() && !self.inbound.is_pressing(at), change)
    }

    /// Whether its voice reaches others when it talks.
    fn may_be_heard(&self) -> bool {
        let waits = matches!(self.source, Some(Source::Music(_)));
        !self.muted && self.formats.speaks && !waits
    }

    /// The party's background, as all others hear it; `None` when not all others hear the party.
    pub(super) fn public_background(&self) -> Option<Level> {
        let is_public = self.may_be_heard() && self.whispers_to.is_none();
        self.background.level().filter(|_| is_public)
    }

    /// The audio to send to it in this tick.
    pub(super) fn wants(&self) -> Want {
        match (self.formats.hears, self.source, self.has_clips()) {
            (false, ..) | (true, None, false) => Want::Nothing,
            (true, source, true) => Want::Own(source.unwrap_or(Source::Silence)),
            (true, Some(Source::Mix), false) if self.hears_apart => Want::Own(Source::Mix),
            (true, Some(source), false) => Want::Shared(source),
        }
    }

    /// Whether clips play for this seat only.
    fn has_clips(&self) -> bool {
        self.announcer.is_some() || self.sound.is_some()
    }

    /// Whether every tick has work to do for this seat.
    pub(super) fn needs_ticks(&self) -> bool {
        self.has_clips() || (self.formats.hears && self.source.is_some())
    }
}
