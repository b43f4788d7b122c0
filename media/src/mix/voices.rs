//! The voices that are heard: the loudest of the parties that talk, and their audio in this tick.

use super::ramp;
use super::rate::{ByRate, Rate};
use super::spread::Spread;
use super::words::SeatKey;

/// One party that is heard.
#[derive(Debug)]
pub(super) struct Voice {
    seat: SeatKey,
    /// The only seat that hears it; `None` for all.
    to: Option<SeatKey>,
    state: State,
    spread: Spread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Heard from this tick on.
    Begins,
    Speaks,
    /// Heard until the last tick; fades out in this one.
    Ends,
}

/// All voices that are heard in this tick.
#[derive(Debug, Default)]
pub(super) struct Voices {
    heard: Vec<Voice>,
    /// Voices that ended, kept for reuse.
    spare: Vec<Voice>,
}

impl Voices {
    /// Starts a tick: removes voices that faded out in the last one, and ends those that are no longer
    /// `chosen`.
    pub(super) fn begin(&mut self, chosen: impl Fn(SeatKey) -> bool) {
        self.spare.extend(self.heard.extract_if(.., |voice| voice.state == State::Ends));
        self.spare.truncate(SPEAKERS_MAX);
        for voice in &mut self.heard {
            voice.state = if chosen(voice.seat) { State::Speaks } else { State::Ends };
        }
    }

    /// Adds `seat` to the voices, if it is not among them; `to` is the only seat that hears it.
    pub(super) fn hear(&mut self, seat: SeatKey, to: Option<SeatKey>, native: Rate) {
        if let Some(voice) = self.of_mut(seat) {
            if voice.spread.native() != native {
                voice.spread.begin(native);
            }
            return;
        }
        let mut voice = self.spare.pop().unwrap_or_else(|| Voice {
            seat,
            to,
            state: State::Begins,
            spread: Spread::new(native),
        });
        voice.spread.begin(native);
        (voice.seat, voice.to, voice.state) = (seat, to, State::Begins);
        self.heard.push(voice);
    }

    /// Makes the samples of all voices at the needed rates; `decode` writes a seat's samples.
    pub(super) fn speak(&mut self, needed: &ByRate<bool>, mut decode: impl FnMut(SeatKey, &mut [i16])) {
        for voice in &mut self.heard {
            if voice.state == State::Ends {
                voice.spread.fall();
                continue;
            }
            let native = voice.spread.native();
            let pcm = voice.spread.source();
            decode(voice.seat, pcm);
            if voice.state == State::Begins {
                ramp::rise(pcm, native.ramp());
            }
            for rate in Rate::ALL.into_iter().filter(|rate| *needed.get(*rate)) {
                voice.spread.make(rate);
            }
        }
    }

    /// The samples of all voices in this tick that all seats hear, at `rate`.
    pub(super) fn public(&self, rate: Rate) -> impl Iterator<Item = &[i16]> {
        self.heard.iter().filter(|voice| voice.to.is_none()).map(move |voice| voice.spread.at(rate))
    }

    /// The same with the seat of each voice.
    pub(super) fn public_seats(&self, rate: Rate) -> impl Iterator<Item = (SeatKey, &[i16])> {
        let public = self.heard.iter().filter(|voice| voice.to.is_none());
        public.map(move |voice| (voice.seat, voice.spread.at(rate)))
    }

    /// The samples of `seat` in this tick, at `rate`; `None` when it is not among those that all seats hear.
    pub(super) fn of(&self, seat: SeatKey, rate: Rate) -> Option<&[i16]> {
        let own = self.heard.iter().find(|voice| voice.seat == seat && voice.to.is_none());
        own.map(|voice| voice.spread.at(rate))
    }

    /// The samples of the voices that only `seat` hears in this tick, at `rate`.
    pub(super) fn whispered(&self, seat: SeatKey, rate: Rate) -> impl Iterator<Item = &[i16]> {
        self.heard.iter().filter(move |voice| voice.to == Some(seat)).map(move |voice| voice.spread.at(rate))
    }

    /// How many voices all seats hear in this tick, without those that fade out.
    pub(super) fn public_count(&self) -> usize {
        self.heard.iter().filter(|voice| voice.to.is_none() && voice.state != State::Ends).count()
    }

    /// Whether the voice of `seat` fades out in this tick.
    pub(super) fn ends(&self, seat: SeatKey) -> bool {
        self.heard.iter().any(|voice| voice.seat == seat && voice.state == State::Ends)
    }

    /// Whether `seat` is heard by another seat than `to`, or by all.
    pub(super) fn is_elsewhere(&self, seat: SeatKey, to: Option<SeatKey>) -> bool {
        self.heard.iter().any(|voice| voice.seat == seat && voice.to != to)
    }

    /// Whether `seat` is heard in this tick, also when it fades out.
    pub(super) fn is_heard(&self, seat: SeatKey) -> bool {
        self.heard.iter().any(|voice| voice.seat == seat)
    }

    /// The seats that hear audio other than the sum in this tick: those whose voice is in it, and those that hear a
    /// whisper.
    pub(super) fn apart(&self) -> impl Iterator<Item = SeatKey> {
        self.heard.iter().map(|voice| voice.to.unwrap_or(voice.seat))
    }

    fn of_mut(&mut self, seat: SeatKey) -> Option<&mut Voice> {
        self.heard.iter_mut().find(|voice| voice.seat == seat)
    }
}

/// Voices heard at the same time: listeners cannot tell seventeen voices apart, and each costs a decoding.
pub(super) const SPEAKERS_MAX: usize = 16;
