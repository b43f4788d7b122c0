//! DTMF in the audio of a party (ITU-T Q.23, Q.24): found by the Goertzel algorithm.
//!
//! For phones that negotiated no telephone events. The audio is read in blocks of 20 ms, a new one every 10 ms. A block
//! is a digit when two tones, one of each group, have nearly all of its energy, are about equally loud, and stand out
//! in their group. Three such blocks in a row with the same loudness are a press: tones of 50 ms or longer are found,
//! up to 1.5 % off their frequencies. Speech has its energy in more than two harmonics, and its loudness changes.

use crate::audio::resample::Resampler;

/// Finds key presses in PCM.
///
/// *Bounds*: constant memory; at most one key for 60 ms of audio. Nothing is allocated after [`DtmfDetector::new`] and
/// a change of the rate.
#[derive(Debug)]
pub struct DtmfDetector {
    /// The second half of the last block, then the frame, at 8 kHz.
    pcm: [f32; HALF + FRAME],
    window: [f32; BLOCK],
    /// 2·cos(2πf/8000) of each tone, and of the frequencies below them.
    coefficients: [f32; TONES + BELOW],
    resampler: Option<(u32, Resampler)>,
    /// The tones of the last block, if it was a digit.
    last: Option<Pair>,
    /// Blocks of this digit in a row.
    hits: u8,
    /// Pure blocks of it in a row.
    pure_hits: u8,
    /// Blocks since the last one of the digit that is pressed; those of silence count twice.
    misses: u8,
    /// The digit that was reported and is still pressed, and the energy of its blocks.
    pressed: Option<char>,
    loudness: f32,
}

/// The classification of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Block {
    /// Speech, or a tone that changes.
    Other,
    Pair(Pair),
    Silence,
}

/// Two tones that form a digit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    digit: char,
    /// The energy of both.
    energy: f32,
    /// Whether they have nearly all of the block's energy.
    is_pure: bool,
}

impl DtmfDetector {
    /// A detector before the first frame.
    pub fn new() -> Self {
        let angle = |n: usize| std::f32::consts::TAU * (n as f32 + 0.5) / BLOCK as f32;
        DtmfDetector {
            pcm: [0.0; HALF + FRAME],
            window: std::array::from_fn(|n| 0.5 - 0.5 * angle(n).cos()),
            coefficients: HZ.map(|hz| 2.0 * (std::f32::consts::TAU * hz / 8_000.0).cos()),
            resampler: None,
            last: None,
            hits: 0,
            pure_hits: 0,
            misses: 0,
            pressed: None,
            loudness: 0.0,
        }
    }

    /// Reads 20 ms of PCM at 8, 16 or 48 kHz. Returns the digit when this frame confirms its press. A frame of another
    /// length is silence.
    pub fn push(&mut self, frame: &[i16]) -> Option<char> {
        let mut narrow = [0; FRAME];
        if frame.len() == FRAME {
            narrow.copy_from_slice(frame);
        } else {
            self.resample(frame, &mut narrow);
        }
        self.pcm.copy_within(FRAME.., 0);
        for (kept, sample) in self.pcm.iter_mut().skip(HALF).zip(narrow) {
            *kept = f32::from(sample);
        }
        let first = self.block(0);
        let first = self.follow(first);
        let second = self.block(HALF);
        first.or(self.follow(second))
    }

    /// Reads 20 ms of silence.
    pub fn silence(&mut self) {
        if self.pressed.is_some() || self.last.is_some() {
            self.follow(Block::Silence);
            self.follow(Block::Silence);
        }
        self.pcm.fill(0.0);
    }

    /// Whether a reported key is still pressed.
    pub fn is_pressed(&self) -> bool {
        self.pressed.is_some()
    }

    fn resample(&mut self, frame: &[i16], narrow: &mut [i16; FRAME]) {
        let Some(hz) = u32::try_from(frame.len() * 50).ok().filter(|hz| [16_000, 48_000].contains(hz)) else {
            return;
        };
        if self.resampler.as_ref().is_none_or(|(from, _)| *from != hz) {
            self.resampler = Resampler::new(hz, 8_000).map(|resampler| (hz, resampler));
        }
        if let Some((_, resampler)) = &mut self.resampler {
            resampler.process(frame, narrow);
        }
    }

    /// Reads the block that begins at `start`.
    fn block(&self, start: usize) -> Block {
        let Some((tones, energy)) = self.tones(start) else { return Block::Silence };
        if self.pressed.is_some() && energy < self.loudness * SILENCE_SHARE {
            return Block::Silence;
        }
        pair(tones, energy).map_or(Block::Other, Block::Pair)
    }

    /// The energy of each tone and of the whole block; `None` for silence.
    fn tones(&self, start: usize) -> Option<([f32; TONES + BELOW], f32)> {
        let mut windowed = [0.0_f32; BLOCK];
        let pcm = self.pcm.get(start..start + BLOCK)?;
        for ((sample, pcm), weight) in windowed.iter_mut().zip(pcm).zip(&self.window) {
            *sample = pcm * weight;
        }
        let energy: f32 = windowed.iter().map(|sample| sample * sample).sum();
        if energy < ENERGY_MIN {
            return None;
        }
        Some((self.coefficients.map(|coefficient| goertzel(&windowed, coefficient) * TONE_ENERGY), energy))
    }

    /// Counts a block; returns the digit when its press is confirmed.
    fn follow(&mut self, block: Block) -> Option<char> {
        let pair = match block {
            Block::Pair(pair) => Some(pair),
            Block::Other | Block::Silence => None,
        };
        let goes_on = matches!((self.last, pair), (Some(last), Some(now)) if last.goes_on_as(now));
        let count = |before: u8, is_hit: bool| match (is_hit, goes_on) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => before.saturating_add(1),
        };
        self.hits = count(self.hits, pair.is_some());
        self.pure_hits = count(self.pure_hits, pair.is_some_and(|pair| pair.is_pure));
        self.last = pair;
        if self.pressed.is_some() {
            self.misses = match block {
                Block::Pair(pair) if Some(pair.digit) == self.pressed => 0,
                Block::Pair(_) | Block::Other => self.misses + 1,
                Block::Silence => self.misses + 2,
            };
            if self.misses >= MISSES {
                self.pressed = None;
            }
        }
        let is_certain = self.hits >= HITS || self.pure_hits >= PURE_HITS;
        let pair = pair.filter(|pair| is_certain && self.pressed != Some(pair.digit))?;
        (self.pressed, self.loudness, self.misses) = (Some(pair.digit), pair.energy, 0);
        Some(pair.digit)
    }
}

impl Pair {
    /// Whether the next block is the same press.
    fn goes_on_as(&self, next: Pair) -> bool {
        let (more, less) = (self.energy.max(next.energy), self.energy.min(next.energy));
        self.digit == next.digit && more < less * CHANGE_MAX
    }
}

impl Default for DtmfDetector {
    fn default() -> Self {
        DtmfDetector::new()
    }
}

/// The digit of a block.
fn pair(tones: [f32; TONES + BELOW], energy: f32) -> Option<Pair> {
    let (tones, below) = tones.split_at(TONES);
    let (low_tones, high_tones) = tones.split_at(GROUP);
    let ((row, low), (column, high)) = (loudest(low_tones)?, loudest(high_tones)?);
    let is_twisted = high > low * TWIST_MAX || low > high * REVERSE_TWIST_MAX;
    let is_voice = below.iter().sum::<f32>() > energy * BELOW_MAX;
    if is_twisted || is_voice || low + high < energy * SHARE_MIN {
        return None;
    }
    let digit = *KEYS.get(row)?.get(column)?;
    Some(Pair { digit, energy: low + high, is_pure: low + high > energy * PURE_SHARE })
}

/// The squared magnitude of one frequency.
fn goertzel(pcm: &[f32; BLOCK], coefficient: f32) -> f32 {
    let (mut one, mut two) = (0.0_f32, 0.0_f32);
    for sample in pcm {
        (one, two) = (sample + coefficient * one - two, one);
    }
    one * one + two * two - coefficient * one * two
}

/// The loudest tone of a group and its energy; `None` when another tone of the group is less than 6 dB below it.
fn loudest(tones: &[f32]) -> Option<(usize, f32)> {
    let (place, most) = tones.iter().copied().enumerate().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let rivals = tones.iter().enumerate().filter(|(other, tone)| *other != place && **tone * 4.0 > most);
    (rivals.count() == 0).then_some((place, most))
}

/// Samples of a frame of 20 ms at 8 kHz.
const FRAME: usize = 160;
/// Samples of a block.
const BLOCK: usize = 160;
const HALF: usize = BLOCK / 2;
/// Tones of a group.
const GROUP: usize = 4;
const TONES: usize = 2 * GROUP;
/// Frequencies below the tones, where a voice has its pitch.
const BELOW: usize = 4;
/// The rows, then the columns (ITU-T Q.23 §5), then those below.
const HZ: [f32; TONES + BELOW] =
    [697.0, 770.0, 852.0, 941.0, 1_209.0, 1_336.0, 1_477.0, 1_633.0, 200.0, 300.0, 400.0, 500.0];
const KEYS: [[char; GROUP]; GROUP] =
    [['1', '2', '3', 'A'], ['4', '5', '6', 'B'], ['7', '8', '9', 'C'], ['*', '0', '#', 'D']];
/// The energy of a sine in a block of n samples under a Hann window is its squared magnitude times 3/n.
const TONE_ENERGY: f32 = 3.0 / BLOCK as f32;
/// A block at -42 dBov: a mean square of 67,748 under a window whose mean square is 3/8.
const ENERGY_MIN: f32 = 67_748.0 * BLOCK as f32 * 0.375;
/// Minimum share of the energy in the two tones: a tone that is 1.5 % off its frequency loses 1.2 dB.
const SHARE_MIN: f32 = 0.72;
/// Maximum share of the energy in the frequencies below the tones.
const BELOW_MAX: f32 = 0.006;
/// The column is at most 6 dB louder than the row; ITU-T Q.24 requires 4 dB.
const TWIST_MAX: f32 = 4.0;
/// The row is at most 8 dB louder than the column (ITU-T Q.24).
const REVERSE_TWIST_MAX: f32 = 6.31;
/// From block to block the loudness changes by at most 2 dB.
const CHANGE_MAX: f32 = 1.6;
/// Two tones with this share are on their frequencies and without noise.
const PURE_SHARE: f32 = 0.93;
/// Number of consecutive blocks that are a press when all of them are pure.
const PURE_HITS: u8 = 3;
/// Number of consecutive blocks that are a press otherwise.
const HITS: u8 = 6;
/// Below this share of its loudness a press is over.
const SILENCE_SHARE: f32 = 0.063;
/// Three blocks of silence or six blocks of other audio end a press; a gap in the tone does not.
const MISSES: u8 = 6;
