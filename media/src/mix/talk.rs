//! Whether a party talks: its level compared with its own noise; starts fast and ends slowly.
//!
//! There are two decisions. *Voiced* starts immediately with the first frame over the threshold and selects the parties
//! that are decoded and mixed, so that no first syllable is cut. *Talking* is the state shown to users: it starts when
//! three of five frames were voice (60 to 100 ms), so that a keyboard click does not show as talking. Both end 600 ms
//! after the last frame over the threshold, which covers the pauses between words.

use crate::audio::level;

/// A frame's level: its mean square relative to that of full scale, in tenths of a decibel (dBov, RFC 6464).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(pub(super) i32);

impl Level {
    /// Digital silence.
    pub(super) const SILENCE: Level = Level(-960);

    /// The level of a mean square.
    pub(super) fn of_power(mean_square: u64) -> Level {
        let decibels = level::dbov(mean_square).unwrap_or(f64::NEG_INFINITY);
        // A float that is out of range becomes the nearest integer.
        Level((decibels * 10.0).round() as i32).max(Level::SILENCE)
    }
}

/// The talk detector of one seat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Talk {
    /// Noise floor: the party's level when it is silent.
    floor: Level,
    /// One bit for each of the last frames, the newest lowest: whether it was over the threshold.
    voice: u8,
    /// Frames until silence ends the talking.
    hangover: u8,
    talking: bool,
    /// The level by which speakers are ranked: rises immediately, falls slowly.
    loudness: Level,
}

impl Talk {
    /// A party that has sent nothing yet.
    pub(super) fn new() -> Self {
        Talk { floor: FLOOR_START, voice: 0, hangover: 0, talking: false, loudness: Level::SILENCE }
    }

    /// Counts one frame; `Some` when the party began or stopped talking.
    pub(super) fn frame(&mut self, level: Level) -> Option<bool> {
        let over = level >= self.threshold();
        self.voice = (self.voice << 1) | u8::from(over);
        self.loudness = level.max(Level(self.loudness.0 - LOUDNESS_FALL));
        self.follow(level);
        if over {
            self.hangover = HANGOVER_FRAMES;
            if !self.talking && (self.voice & WINDOW).count_ones() >= VOICE_FRAMES {
                self.talking = true;
                return Some(true);
            }
            return None;
        }
        self.hangover = self.hangover.saturating_sub(1);
        (self.hangover == 0 && std::mem::take(&mut self.talking)).then_some(false)
    }

    /// Ends the voice, for example when the party is muted; `Some(false)` when it was talking.
    pub(super) fn silence(&mut self) -> Option<bool> {
        (self.voice, self.hangover, self.loudness) = (0, 0, Level::SILENCE);
        std::mem::take(&mut self.talking).then_some(false)
    }

    /// Whether the party may be heard.
    pub(super) fn is_voiced(&self) -> bool {
        self.hangover > 0
    }

    /// Whether the last frame was over the threshold.
    pub(super) fn is_speech(&self) -> bool {
        self.voice & 1 == 1
    }

    /// Whether the last word has ended: 300 ms after the last frame over the threshold.
    pub(super) fn is_pause(&self) -> bool {
        self.hangover <= HANGOVER_FRAMES / 2
    }

    /// Its recent loudness.
    pub(super) fn loudness(&self) -> Level {
        self.loudness
    }

    /// The level from which a frame counts as voice.
    fn threshold(&self) -> Level {
        Level(self.floor.0 + OVER_FLOOR).clamp(THRESHOLD_MIN, THRESHOLD_MAX)
    }

    /// Adapts the noise floor: it falls fast to quieter frames and rises slowly. It never reaches the level
    /// of speech, so a lasting tone or music is not taken for noise.
    fn follow(&mut self, level: Level) {
        if level < self.floor {
            self.floor.0 -= ((self.floor.0 - level.0) / 4).max(1);
        } else {
            self.floor.0 += FLOOR_RISE;
        }
        self.floor = self.floor.clamp(Level::SILENCE, FLOOR_MAX);
    }
}

/// The floor before the first frame.
const FLOOR_START: Level = Level(-600);
/// Louder noise counts as speech.
const FLOOR_MAX: Level = Level(-450);
/// 5 dB a second.
const FLOOR_RISE: i32 = 1;
/// Speech is louder than the floor by at least this much.
const OVER_FLOOR: i32 = 90;
/// A quieter frame is never voice.
const THRESHOLD_MIN: Level = Level(-580);
/// A louder frame is always voice. This is below the quietest speech that a telephone sends (-40 dBov).
const THRESHOLD_MAX: Level = Level(-420);
/// The last five frames.
const WINDOW: u8 = 0b1_1111;
/// How many of them must be voice.
const VOICE_FRAMES: u32 = 3;
/// 600 ms.
const HANGOVER_FRAMES: u8 = 30;
/// 25 dB a second.
const LOUDNESS_FALL: i32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays `frames` of (count, level in dBov); returns when talking began and ended, in ms.
    fn play(frames: &[(usize, i32)]) -> Vec<(usize, bool)> {
        let (mut talk, mut changes, mut at) = (Talk::new(), Vec::new(), 0);
        for (count, level) in frames {
            for _ in 0..*count {
                at += 20;
                changes.extend(talk.frame(Level(level * 10)).map(|talking| (at, talking)));
            }
        }
        changes
    }

    #[test]
    fn talk_begins_quickly_and_ends_slowly() {
        type Case = (&'static str, &'static [(usize, i32)], &'static [(usize, bool)]);
        let cases: &[Case] = &[
            ("silence", &[(500, -96)], &[]),
            ("a voice", &[(50, -70), (50, -25), (100, -70)], &[(1_060, true), (2_600, false)]),
            ("a quiet voice", &[(50, -70), (50, -40), (100, -70)], &[(1_060, true), (2_600, false)]),
            ("a click", &[(50, -70), (1, -10), (100, -70)], &[]),
            ("two clicks", &[(50, -70), (1, -10), (1, -70), (1, -10), (100, -70)], &[]),
            (
                "pauses between words",
                &[(10, -70), (20, -25), (25, -70), (20, -25), (29, -70), (20, -25), (50, -70)],
                &[(260, true), (3_080, false)],
            ),
            ("steady noise of a fan", &[(1_000, -50)], &[(60, true), (820, false)]),
            ("a steady tone", &[(1_000, -20)], &[(60, true)]),
            (
                "a voice over a fan",
                &[(200, -50), (50, -30), (100, -50)],
                &[(60, true), (820, false), (4_060, true), (5_600, false)],
            ),
        ];
        for (name, frames, expected) in cases {
            assert_eq!(play(frames), *expected, "{name}");
        }
    }

    #[test]
    fn a_level_at_the_edge_does_not_flap() {
        let mut talk = Talk::new();
        let changes = (0..3_000).filter_map(|n: i32| talk.frame(Level(-420 + (n * 7) % 11 - 5))).count();
        assert!(changes <= 1, "{changes}");
    }

    #[test]
    fn who_is_silenced_stops_at_once() {
        let mut talk = Talk::new();
        assert_eq!((0..10).filter_map(|_| talk.frame(Level(-200))).collect::<Vec<_>>(), [true]);
        assert!(talk.is_voiced());
        assert_eq!((talk.silence(), talk.silence(), talk.is_voiced()), (Some(false), None, false));
    }

    #[test]
    fn levels_are_those_of_full_scale() {
        let cases = [(0, -960), (1 << 30, 0), (1 << 29, -30), ((1 << 30) / 1_000, -300), (1, -903)];
        for (power, level) in cases {
            assert_eq!(Level::of_power(power), Level(level), "{power}");
        }
    }
}
