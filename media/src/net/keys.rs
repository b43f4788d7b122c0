//! Keys of two parties that use different forms of keys: telephone events, tones in the audio, or signalling.

use super::key_ear::KeyEar;
use super::key_presses::KeyPresses;
use super::key_tones::KeyTones;
use super::key_watch::KeyWatch;
use crate::dtmf::{KeyPress, KeySource, KeyTone};
use crate::time::Micros;

/// The keys of one leg.
#[derive(Default)]
pub(super) struct Keys {
    /// Keys to send to the leg's party as events.
    presses: KeyPresses,
    /// Keys to send to it as tones.
    tones: KeyTones,
    /// Finds the keys that the leg's party sends and its peer receives in another form.
    heard: Option<Heard>,
}

/// The finder of the keys that a party sends.
enum Heard {
    Audio(Box<KeyEar>),
    Events(Box<KeyWatch>),
}

impl Keys {
    /// Processes an accepted RTP packet of the party.
    pub(super) fn hear(&mut self, at: Micros, datagram: &mut [u8]) {
        match &mut self.heard {
            Some(Heard::Audio(ear)) => ear.hear(datagram),
            Some(Heard::Events(watch)) => watch.hear(at, datagram),
            None => {}
        }
    }

    /// Whether a key is being sent or waits.
    pub(super) fn has_any(&self) -> bool {
        !self.presses.is_idle() || !self.tones.is_idle()
    }

    /// Writes a key over an RTP packet of `len` bytes that is about to be sent. Returns the new length.
    pub(super) fn write_over(&mut self, buffer: &mut [u8], len: usize, now: Micros) -> usize {
        if let Some(packet) = buffer.get_mut(..len).filter(|_| !self.tones.is_idle()) {
            self.tones.write_over(packet, now);
        }
        self.presses.write_over(buffer, len, now).unwrap_or(len)
    }

    /// Queues a key to send to the party as a telephone event; drops it when the queue is full.
    pub(super) fn press(&mut self, key: KeyPress, now: Micros) {
        self.presses.press(key, now);
    }

    /// Queues a key to send to the party as tones; drops it when the queue is full.
    pub(super) fn play(&mut self, key: KeyTone, now: Micros) {
        self.tones.press(key, now);
    }

    /// Begins or ends reporting the party's keys of this source.
    pub(super) fn watch(&mut self, source: Option<KeySource>) {
        self.heard = source.map(|source| match source {
            KeySource::Audio => Heard::Audio(Box::new(KeyEar::new())),
            KeySource::Events { payload_type, clock_hz } => {
                Heard::Events(Box::new(KeyWatch::new(payload_type, clock_hz)))
            }
        });
    }

    /// The next key that the party has pressed, and its duration in milliseconds.
    pub(super) fn take(&mut self) -> Option<(char, u32)> {
        match self.heard.as_mut()? {
            Heard::Audio(ear) => ear.take(),
            Heard::Events(watch) => watch.take(),
        }
    }
}
