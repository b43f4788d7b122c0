//! Comfort noise: the audio that parties hear while no party talks, at the level of the background heard before.
//!
//! *Level law.* The background of a party is the average level of its frames, in dB over about a third of a second,
//! beginning 300 ms after its last word. Frames without audio do not count; for codecs with memory a frame counts only
//! when it was decoded together with the frames before it. The noise has the level of the loudest background among the
//! parties that all others may hear: not muted, not on hold, not whispering. It follows that level by 20 dB a second
//! and is at most [`LEVEL_MAX`]. There is no noise when that background is below [`LEVEL_MIN`], or when a party is
//! alone. While no party may be heard, the level stays.
//!
//! *Pauses.* A voice includes the background of its party. So listeners hear the noise only while no voice is heard,
//! and a party that talks hears it while no other party talks. It fades in and out within 5 ms, as voices do.
//!
//! *Samples* come from a generator of period 2^64 - 1 at each rate, so that nothing repeats, through a low pass of
//! the first order at 2 kHz: the noise of rooms falls towards high frequencies. A tick makes them at the rates that
//! have listeners, and only when the noise is heard.

use super::rate::{ByRate, Frames, Rate};
use super::talk::Level;

/// The level of a party's frames that are no voice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Background {
    /// In 1/16 of a tenth of a decibel; `None` before the first frame.
    average: Option<i32>,
}

impl Background {
    /// Counts a frame that is no voice.
    pub(super) fn frame(&mut self, level: Level) {
        // No audio arrived, or only the codec's silence.
        if level <= Level::SILENCE {
            return;
        }
        let level = level.0 * 16;
        self.average = Some(self.average.map_or(level, |average| average + (level - average) / 16));
    }

    /// Its level; `None` before the first frame.
    pub(super) fn level(self) -> Option<Level> {
        self.average.map(|average| Level(average / 16))
    }
}

/// The comfort noise of a mix.
#[derive(Debug, Default)]
pub(super) struct ComfortNoise {
    /// The level of the last background that was heard.
    level: Option<Level>,
    /// The amplitude at the end of the last tick, and of this one.
    amplitude: (f32, f32),
    /// Whether listeners heard it in the last tick, and in this one.
    for_listeners: (bool, bool),
    /// The same for a party that talks.
    for_talkers: (bool, bool),
    generators: ByRate<Generator>,
    frames: Frames,
}

/// The kind of party that a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ear {
    /// A party whose voice is not heard.
    Listener,
    /// A party whose voice is heard.
    Talker,
}

impl ComfortNoise {
    /// Starts a tick. `background` is the loudest background that may be heard, `None` when no party may be heard.
    /// `is_wanted` is whether there is another party to hear. `voices` is the number of voices that all parties hear.
    pub(super) fn begin(&mut self, background: Option<Level>, is_wanted: bool, voices: usize) {
        if let Some(background) = background {
            let level = self.level.map_or(background, |level| {
                Level(background.0.clamp(level.0 - LEVEL_STEP, level.0 + LEVEL_STEP))
            });
            self.level = Some(level);
        }
        let level =
            self.level.filter(|level| is_wanted && *level >= LEVEL_MIN).map(|level| level.min(LEVEL_MAX));
        self.amplitude = (self.amplitude.1, level.map_or(0.0, amplitude));
        self.for_listeners = (self.for_listeners.1, voices == 0);
        self.for_talkers = (self.for_talkers.1, voices <= 1);
    }

    /// Makes the tick's samples at a rate.
    pub(super) fn make(&mut self, rate: Rate) {
        let (from, to) = self.amplitude;
        if !self.is_heard(Ear::Talker) {
            return;
        }
        let generator = self.generators.get_mut(rate);
        let pcm = self.frames.at_mut(rate);
        let (step, smoothing) = ((to - from) / pcm.len().max(1) as f32, smoothing(rate));
        let mut now = from;
        for sample in pcm {
            now += step;
            // A float that is out of range becomes the nearest integer.
            *sample = (generator.next(smoothing) * now).round() as i16;
        }
    }

    /// Adds the noise to what a party hears at a rate; call [`ComfortNoise::make`] before.
    pub(super) fn add(&self, ear: Ear, rate: Rate, pcm: &mut [i16]) {
        if !self.is_heard(ear) {
            return;
        }
        let ramp = i32::try_from(rate.ramp()).unwrap_or(1).max(1);
        let gate = self.gate(ear);
        for ((n, sample), noise) in (1..).zip(pcm.iter_mut()).zip(self.frames.at(rate)) {
            let share = match gate {
                (true, true) => ramp,
                (false, true) => n.min(ramp),
                (true, false) => (ramp - n).max(0),
                (false, false) => 0,
            };
            *sample = sample.saturating_add((i32::from(*noise) * share / ramp) as i16);
        }
    }

    /// Whether this kind of party hears noise in this tick. When a talker hears none, a listener hears none either.
    fn is_heard(&self, ear: Ear) -> bool {
        let (was, is) = self.gate(ear);
        (was || is) && self.amplitude != (0.0, 0.0)
    }

    fn gate(&self, ear: Ear) -> (bool, bool) {
        match ear {
            Ear::Listener => self.for_listeners,
            Ear::Talker => self.for_talkers,
        }
    }
}

/// White noise through the low pass (xorshift64*, S. Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled", 2016).
#[derive(Clone, Copy, Debug)]
struct Generator {
    state: u64,
    last: f32,
}

impl Default for Generator {
    fn default() -> Self {
        Generator { state: 0x9E37_79B9_7F4A_7C15, last: 0.0 }
    }
}

impl Generator {
    /// The next sample; their mean square is 1.
    fn next(&mut self, (share, gain): (f32, f32)) -> f32 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let bits = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40;
        let white = bits as f32 / HALF_RANGE - 1.0;
        self.last += share * (white - self.last);
        self.last * gain
    }
}

/// The share of a new sample in the low pass at 2 kHz, 1 - exp(-2π · 2,000 / rate), and the gain after it: uniform
/// noise has a mean square of 1/3, and the low pass leaves share / (2 - share) of it.
fn smoothing(rate: Rate) -> (f32, f32) {
    let share: f32 = match rate {
        Rate::Narrow => 0.792,
        Rate::Wide => 0.544,
        Rate::Full => 0.230,
    };
    (share, (3.0 * (2.0 - share) / share).sqrt())
}

/// The effective value of a level.
fn amplitude(level: Level) -> f32 {
    32_768.0 * 10_f32.powf(level.0 as f32 / 200.0)
}

/// 2²³: half of the values of 24 bits.
const HALF_RANGE: f32 = 8_388_608.0;
/// Louder backgrounds are a disturbance; comfort noise does not imitate them.
const LEVEL_MAX: Level = Level(-500);
/// Quieter backgrounds are inaudible.
const LEVEL_MIN: Level = Level(-800);
/// 20 dB a second.
const LEVEL_STEP: i32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::level;

    /// The level that this kind of party hears after this number of ticks, in tenths of a decibel.
    fn heard(noise: &mut ComfortNoise, ticks: usize, voices: usize, (ear, rate): (Ear, Rate)) -> Level {
        let mut all = Vec::new();
        for _ in 0..ticks {
            noise.begin(None, true, voices);
            noise.make(rate);
            let mut pcm = vec![0; rate.samples()];
            noise.add(ear, rate, &mut pcm);
            all.extend(pcm);
        }
        Level::of_power(level::power(&all))
    }

    fn settled(background: i32) -> ComfortNoise {
        let mut noise = ComfortNoise::default();
        noise.begin(Some(Level(background)), true, 0);
        noise.begin(None, true, 0);
        noise
    }

    #[test]
    fn the_level_is_that_of_the_background_within_bounds_at_every_rate() {
        for rate in Rate::ALL {
            for (background, expected) in
                [(-720, Some(-720)), (-600, Some(-600)), (-520, Some(-520)), (-450, Some(-500)), (-810, None)]
            {
                let level = heard(&mut settled(background), 250, 0, (Ear::Listener, rate));
                match expected {
                    Some(expected) => {
                        assert!((level.0 - expected).abs() <= 10, "{rate:?} {background}: {level:?}")
                    }
                    None => assert_eq!(level, Level::SILENCE),
                }
            }
        }
    }

    #[test]
    fn a_voice_ends_the_noise_and_a_talker_alone_keeps_it() {
        let cases = [
            (0, Ear::Listener, true),
            (0, Ear::Talker, true),
            (1, Ear::Listener, false),
            (1, Ear::Talker, true),
            (2, Ear::Talker, false),
        ];
        for (voices, ear, is_heard) in cases {
            let mut noise = settled(-600);
            heard(&mut noise, 1, voices, (ear, Rate::Narrow)); // The fade.
            let level = heard(&mut noise, 50, voices, (ear, Rate::Narrow));
            assert_eq!(level > Level::SILENCE, is_heard, "{voices} {ear:?}");
        }
    }

    #[test]
    fn it_fades_over_five_milliseconds() {
        let mut noise = settled(-500);
        noise.begin(None, true, 1);
        noise.make(Rate::Wide);
        let mut pcm = [0; 320];
        noise.add(Ear::Listener, Rate::Wide, &mut pcm);
        assert!(pcm[..40].iter().any(|sample| *sample != 0) && pcm[80..] == [0; 240], "{pcm:?}");
        let early = level::power(&pcm[..20]);
        assert!(early > 4 * level::power(&pcm[60..80]), "{pcm:?}");
    }

    /// The correlation of ten seconds with themselves at any later place is that of noise.
    #[test]
    fn nothing_repeats() {
        let mut noise = settled(-500);
        let mut all: Vec<f64> = Vec::new();
        for _ in 0..500 {
            noise.begin(None, true, 0);
            noise.make(Rate::Narrow);
            let mut pcm = [0; 160];
            noise.add(Ear::Listener, Rate::Narrow, &mut pcm);
            all.extend(pcm.iter().map(|sample| f64::from(*sample)));
        }
        let window = &all[..2_000];
        let power: f64 = window.iter().map(|sample| sample * sample).sum();
        for lag in 40..all.len() - window.len() {
            let product: f64 = window.iter().zip(&all[lag..]).map(|(one, other)| one * other).sum();
            assert!((product / power).abs() < 0.25, "{lag}: {}", product / power);
        }
    }

    #[test]
    fn a_background_follows_frames_with_audio() {
        let mut background = Background::default();
        background.frame(Level::SILENCE);
        assert_eq!(background.level(), None);
        background.frame(Level(-600));
        assert_eq!(background.level(), Some(Level(-600)));
        (0..100).for_each(|_| background.frame(Level(-650)));
        background.frame(Level::SILENCE);
        let level = background.level().unwrap();
        assert!((level.0 + 650).abs() <= 2, "{level:?}");
    }

    #[test]
    fn the_level_follows_slowly_and_stays_without_a_background() {
        let mut noise = settled(-700);
        for _ in 0..25 {
            noise.begin(Some(Level(-500)), true, 0);
        }
        assert_eq!(noise.level, Some(Level(-600)));
        for _ in 0..1_000 {
            noise.begin(None, true, 0);
        }
        assert_eq!(noise.level, Some(Level(-600)));
        assert_eq!(heard(&mut noise, 5, 0, (Ear::Listener, Rate::Full)).0 / 20, -30);
        for _ in 0..2 {
            noise.begin(None, false, 0);
        }
        let mut pcm = [0; 160];
        noise.make(Rate::Narrow);
        noise.add(Ear::Listener, Rate::Narrow, &mut pcm);
        assert_eq!(pcm, [0; 160], "a party alone hears no noise");
    }
}
