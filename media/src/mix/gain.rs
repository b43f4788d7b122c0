//! Loudness of one seat: a fixed gain, and automatic gain control, on its decoded audio.
//!
//! Automatic gain control brings speech to [`TARGET`]. It measures frames of speech only and its gain moves in these
//! frames only: a pause changes nothing, so the background between words does not rise. An error of more than
//! [`FAR`] is corrected fast, a smaller one slowly.
//!
//! *Pumping* is the largest change of the gain within one second, once the level was found: at most 1.5 dB on speech
//! of one loudness, and 0 dB in pauses.

use super::talk::Level;
use super::words::Gain;

/// Gain of one seat and the level of its speech.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loudness {
    settings: Gain,
    /// Mean square of the speech, relative to that of full scale.
    speech: f32,
    /// Frames that the mean counts, up to [`MEAN_FRAMES`].
    frames: u16,
    /// Frames of speech in a row that are too quiet for the mean.
    quiet: u8,
    /// Whether the error is being corrected fast.
    is_far: bool,
    /// The automatic part of the gain in decibels.
    automatic_db: f32,
    /// The factor of the last sample.
    factor: f32,
}

impl Loudness {
    /// No gain; the level is not known.
    pub(super) fn new() -> Self {
        Loudness {
            settings: Gain::default(),
            speech: 0.0,
            frames: 0,
            quiet: 0,
            is_far: false,
            automatic_db: 0.0,
            factor: 1.0,
        }
    }

    /// Changes the gain. Switching automatic control on or off restarts its measurement.
    pub(super) fn set(&mut self, settings: Gain) {
        if settings.automatic != self.settings.automatic {
            (self.speech, self.frames, self.quiet, self.is_far) = (0.0, 0, 0, false);
            self.automatic_db = 0.0;
        }
        let decibels = settings.decibels.clamp(-Gain::DECIBELS_MAX, Gain::DECIBELS_MAX);
        self.settings = Gain { decibels, ..settings };
    }

    /// Counts a frame of speech.
    pub(super) fn hear(&mut self, level: Level) {
        if !self.settings.automatic || level < SPEECH_MIN {
            return;
        }
        let power = 10_f32.powf(level.0 as f32 / 100.0);
        if self.frames > 0 && power < self.speech * QUIET_SHARE {
            self.quiet += 1;
            if self.quiet < QUIET_FRAMES {
                return;
            }
            self.frames = 0;
        }
        self.quiet = 0;
        if self.frames > 0 && power > self.speech * LOUD_SHARE {
            self.frames = self.frames.min(LOUD_FRAMES);
        }
        self.frames = (self.frames + 1).min(MEAN_FRAMES);
        self.speech += (power - self.speech) / f32::from(self.frames);
        self.approach();
    }

    /// Moves the automatic gain towards the target by one frame.
    fn approach(&mut self) {
        let wanted = (TARGET - 10.0 * self.speech.max(f32::MIN_POSITIVE).log10()).clamp(CUT_MAX, BOOST_MAX);
        let error = wanted - self.automatic_db;
        self.is_far = error.abs() > if self.is_far { NEAR } else { FAR };
        let (fall, rise) = if self.is_far { (FAST_FALL, FAST_RISE) } else { (SLOW_STEP, SLOW_STEP) };
        self.automatic_db += error.clamp(-fall, rise);
    }

    /// Applies the gain to a frame. A frame that would pass full scale gets less; the gain returns within a few frames.
    pub(super) fn apply(&mut self, pcm: &mut [i16]) {
        let decibels = f32::from(self.settings.decibels) + self.automatic_db;
        let wanted = 10_f32.powf(decibels / 20.0);
        if wanted == 1.0 && self.factor == 1.0 {
            return;
        }
        let peak = pcm.iter().fold(1, |peak, sample| sample.unsigned_abs().max(peak));
        let target = wanted.min(PEAK_MAX / f32::from(peak)).min(self.factor * RISE_MAX);
        let step = (target - self.factor) / pcm.len().max(1) as f32;
        for sample in pcm.iter_mut() {
            self.factor += step;
            // A float that is out of range becomes the nearest integer.
            *sample = (f32::from(*sample) * self.factor).round() as i16;
        }
        self.factor = target;
    }

    /// The automatic part of the gain, in decibels.
    #[cfg(test)]
    fn automatic_db(&self) -> f32 {
        self.automatic_db
    }
}

/// The level of speech that automatic gain control aims at, in dBov.
const TARGET: f32 = -24.0;
/// The largest automatic gain in decibels: for speech at -48 dBov.
const BOOST_MAX: f32 = 24.0;
/// The smallest automatic gain in decibels: for speech at -6 dBov.
const CUT_MAX: f32 = -18.0;
/// Quieter frames are not speech.
const SPEECH_MIN: Level = Level(-500);
/// Frames of speech that are 15 dB below its mean are the ends of words and do not count.
const QUIET_SHARE: f32 = 0.031_6;
/// After one second of such frames the party speaks more quietly: the measurement of its level restarts.
const QUIET_FRAMES: u8 = 50;
/// A frame 10 dB above the mean does not belong to speech of that level: the party speaks louder, and the mean follows
/// soon.
const LOUD_SHARE: f32 = 10.0;
/// Number of frames that the mean then keeps.
const LOUD_FRAMES: u16 = 5;
/// The mean is that of the last two seconds of speech.
const MEAN_FRAMES: u16 = 100;
/// From this error in decibels on the gain moves fast.
const FAR: f32 = 4.0;
/// It moves fast until the error is this small.
const NEAR: f32 = 1.0;
/// 30 dB per second of speech: a party that is too loud is a nuisance to all.
const FAST_FALL: f32 = 0.6;
/// 16 dB per second of speech.
const FAST_RISE: f32 = 0.32;
/// 1.5 dB per second of speech.
const SLOW_STEP: f32 = 0.03;
/// The largest rise of the factor within a frame: 25 dB a second.
const RISE_MAX: f32 = 1.06;
/// The largest sample after a gain.
const PEAK_MAX: f32 = 30_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds syllables of 200 ms with a level that rises and falls by 12 dB, words of 600 ms and pauses of 400 ms;
    /// returns the automatic gain after each frame.
    fn speak(loudness: &mut Loudness, level_dbov: i32, seconds: usize) -> Vec<f32> {
        let frame = |n: usize| {
            let syllable = [-90, -30, 0, 20, 30, 20, 0, -30, -60, -90];
            let is_pause = n % 50 >= 30;
            if !is_pause {
                loudness.hear(Level(10 * level_dbov + syllable[n % 10]));
            }
            loudness.automatic_db()
        };
        (0..50 * seconds).map(frame).collect()
    }

    fn automatic() -> Loudness {
        let mut loudness = Loudness::new();
        loudness.set(Gain { decibels: 0, automatic: true });
        loudness
    }

    #[test]
    fn speech_comes_to_the_target_within_three_seconds() {
        for level in [-44, -40, -30, -24, -16, -10, -8] {
            let mut loudness = automatic();
            let gain = *speak(&mut loudness, level, 3).last().unwrap();
            let reached = level as f32 + gain;
            assert!((reached - TARGET).abs() < 2.5, "{level}: {gain:.1} dB, {reached:.1} dBov");
        }
    }

    #[test]
    fn it_does_not_pump() {
        for level in [-44, -30, -10] {
            let gains = speak(&mut automatic(), level, 30);
            let settled = &gains[200..];
            let span = |second: &[f32]| {
                second.iter().copied().fold(f32::MIN, f32::max)
                    - second.iter().copied().fold(f32::MAX, f32::min)
            };
            let most = settled.windows(50).map(span).fold(0.0, f32::max);
            assert!(most <= 1.5, "{level}: {most:.2} dB within a second");
        }
    }

    #[test]
    fn a_party_that_changes_its_loudness_is_followed() {
        let mut loudness = automatic();
        speak(&mut loudness, -12, 5);
        let quieter = *speak(&mut loudness, -38, 6).last().unwrap();
        assert!((-38.0 + quieter - TARGET).abs() < 3.0, "{quieter:.1} dB");
        let louder = *speak(&mut loudness, -12, 3).last().unwrap();
        assert!((-12.0 + louder - TARGET).abs() < 3.0, "{louder:.1} dB");
    }

    #[test]
    fn a_gain_is_bounded_and_never_wraps() {
        let mut loudness = Loudness::new();
        let mut pcm = [1_000_i16; 160];
        loudness.apply(&mut pcm);
        assert_eq!(pcm, [1_000; 160], "no gain changes no sample");
        loudness.set(Gain { decibels: 127, automatic: false });
        for _ in 0..100 {
            pcm = [1_000; 160];
            loudness.apply(&mut pcm);
        }
        // 24 dB.
        assert!((15_800..=15_900).contains(&pcm[159]), "{}", pcm[159]);
        for _ in 0..10 {
            let mut loud = [i16::MIN; 160];
            loudness.apply(&mut loud);
            assert!(loud.iter().all(|sample| *sample < -29_000), "{loud:?}");
        }
        loudness.set(Gain { decibels: -128, automatic: false });
        for _ in 0..2 {
            pcm = [10_000; 160];
            loudness.apply(&mut pcm);
        }
        assert_eq!(pcm[159], 631);
    }
}
