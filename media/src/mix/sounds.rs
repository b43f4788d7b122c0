//! All audio of a tick: the voices, their sum, announcements to all, and music.

use std::sync::Arc;

use super::comfort_noise::{ComfortNoise, Ear};
use super::player::{Music, Player};
use super::rate::{ByRate, FRAME_MAX, Frame, Rate};
use super::stream::Source;
use super::sum::Sum;
use super::voices::Voices;
use super::words::SeatKey;
use crate::audio::clip::Clip;

/// The audio sources of one mix.
#[derive(Debug)]
pub(super) struct Sounds {
    pub(super) voices: Voices,
    /// Clips for all seats that hear the mix.
    pub(super) announcements: Player,
    /// A longer clip for all seats that hear the mix; announcements do not wait for its end.
    pub(super) sound: Player,
    pub(super) noise: ComfortNoise,
    sum: Sum,
    music: Vec<Music>,
}

/// The rates at which the mix and each music clip have listeners.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needed {
    pub(super) mix: ByRate<bool>,
    music: [ByRate<bool>; MUSIC_MAX],
}

impl Needed {
    /// Adds a listener of this source.
    pub(super) fn add(&mut self, source: Source, rate: Rate) {
        match source {
            Source::Mix => *self.mix.get_mut(rate) = true,
            Source::Music(n) => {
                if let Some(needed) = self.music.get_mut(n) {
                    *needed.get_mut(rate) = true;
                }
            }
            Source::Silence => {}
        }
    }
}

impl Sounds {
    pub(super) fn new() -> Self {
        Sounds {
            voices: Voices::default(),
            announcements: Player::new(),
            sound: Player::new(),
            noise: ComfortNoise::default(),
            sum: Sum::default(),
            music: Vec::new(),
        }
    }

    /// The index of a music clip; `is_heard` returns whether the clip at an index has listeners. When all
    /// places are taken, the first clip is used instead of this one.
    pub(super) fn tune(&mut self, clip: &Arc<Clip>, is_heard: impl Fn(usize) -> bool) -> usize {
        if let Some(place) = self.music.iter().position(|music| music.plays(clip)) {
            return place;
        }
        if self.music.len() < MUSIC_MAX {
            self.music.push(Music::new(clip.clone()));
            return self.music.len() - 1;
        }
        let free = (0..MUSIC_MAX).find(|place| !is_heard(*place));
        if let Some(music) = free.and_then(|place| self.music.get_mut(place)) {
            *music = Music::new(clip.clone());
        }
        free.unwrap_or(0)
    }

    /// Makes the tick's audio at the rates that have listeners; `decode` writes a seat's samples.
    pub(super) fn tick(&mut self, needed: &Needed, decode: impl FnMut(SeatKey, &mut [i16])) {
        self.voices.speak(&needed.mix, decode);
        let announces = !self.announcements.is_idle();
        if announces {
            self.announcements.tick(|_| {});
        }
        let sounds = !self.sound.is_idle();
        if sounds {
            self.sound.tick(|_| {});
        }
        for rate in Rate::ALL.into_iter().filter(|rate| *needed.mix.get(*rate)) {
            self.sum.clear(rate);
            for voice in self.voices.public(rate) {
                self.sum.add(rate, voice);
            }
            if announces {
                self.sum.add(rate, self.announcements.heard(rate));
            }
            if sounds {
                self.sum.add(rate, self.sound.heard(rate));
            }
            self.sum.finish(rate);
            self.noise.make(rate);
            self.noise.add(Ear::Listener, rate, self.sum.heard_mut(rate));
        }
        for (music, needed) in self.music.iter_mut().zip(&needed.music) {
            if Rate::ALL.iter().any(|rate| *needed.get(*rate)) {
                music.tick(Rate::ALL.into_iter().filter(|rate| *needed.get(*rate)));
            }
        }
    }

    /// The audio of this source for every listener that is not heard itself; before [`Sounds::tick`] that of
    /// the previous tick.
    pub(super) fn heard(&self, source: Source, rate: Rate) -> &[i16] {
        match source {
            Source::Mix => self.sum.heard(rate),
            Source::Music(n) => self.music.get(n).map(|music| music.heard(rate)).unwrap_or_default(),
            Source::Silence => SILENCE.get(..rate.samples()).unwrap_or_default(),
        }
    }

    /// Writes the audio that all hear, without the voices that `leaves_out` names.
    pub(super) fn without_voices(&self, rate: Rate, leaves_out: impl Fn(SeatKey) -> bool, pcm: &mut [i16]) {
        let voices = self.voices.public_seats(rate).filter(|(seat, _)| leaves_out(*seat));
        self.sum.without_all(rate, voices.map(|(_, voice)| voice), pcm);
    }

    /// Writes the audio for `seat`: without its own voice, and with the voices that only it hears.
    pub(super) fn write(&self, seat: SeatKey, source: Source, rate: Rate, pcm: &mut [i16]) {
        match (source, self.voices.of(seat, rate)) {
            (Source::Mix, Some(own)) => {
                self.sum.without(rate, own, pcm);
                // While another voice continues, this party hears the noise of a listener.
                let listens = self.voices.ends(seat) && self.voices.public_count() > 0;
                self.noise.add(if listens { Ear::Listener } else { Ear::Talker }, rate, pcm);
            }
            _ => {
                pcm.fill(0);
                let heard = self.heard(source, rate);
                pcm.iter_mut().zip(heard).for_each(|(sample, heard)| *sample = *heard);
            }
        }
        if source == Source::Mix {
            for whisper in self.voices.whispered(seat, rate) {
                pcm.iter_mut()
                    .zip(whisper)
                    .for_each(|(sample, heard)| *sample = sample.saturating_add(*heard));
            }
        }
    }
}

static SILENCE: Frame = [0; FRAME_MAX];
/// Music clips of a mix; an organisation has one.
const MUSIC_MAX: usize = 8;
