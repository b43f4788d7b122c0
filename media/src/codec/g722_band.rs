//! One sub-band of G.722: an adaptive quantiser around an adaptive predictor (ITU-T G.722 §3.2 to §3.6, §6.2).
//!
//! Names in capitals are the blocks of the Recommendation. Encoder and decoder compute the same state from
//! the same codes, so both use the same methods here.

/// The lower band, 0 to 4 kHz: six bits per sample, of which the upper four control the adaptation.
#[derive(Clone, Debug)]
pub(super) struct Lower {
    band: Band,
}

impl Default for Lower {
    fn default() -> Self {
        Lower { band: Band::new(32) }
    }
}

impl Lower {
    /// The six-bit code of one sample.
    pub(super) fn encode(&mut self, sample: i32) -> u8 {
        let difference = saturate(sample - self.band.prediction);
        let size = if difference >= 0 { difference } else { -(difference + 1) };
        // QUANTL: the first decision level that the difference does not reach.
        let level = LEVELS.iter().take_while(|level| size >= (**level * self.band.step) >> 12).count() as u8;
        // The codes of table 14: they count down as the level rises, first for one sign, then for the other.
        let code = match (difference < 0, level) {
            (true, 0..=1) => 63 - level,
            (true, _) => 33 - level,
            (false, _) => 61 - level,
        };
        self.adapt(code);
        code
    }

    /// The sample of a six-bit code.
    pub(super) fn decode(&mut self, code: u8) -> i32 {
        // INVQBL and LIMIT.
        let difference = (self.band.step * pick(&LOWER_BY_SIX, code)) >> 15;
        let sample = (self.band.prediction + difference).clamp(-16_384, 16_383);
        self.adapt(code);
        sample
    }

    fn adapt(&mut self, code: u8) {
        let code = code >> 2;
        let difference = (self.band.step * pick(&LOWER_BY_FOUR, code)) >> 15;
        // LOGSCL and SCALEL.
        self.band.scale(pick(&LOWER_SCALE, code), 18_432, 8);
        self.band.predict(difference);
    }
}

/// The upper band, 4 to 8 kHz: two bits per sample.
#[derive(Clone, Debug)]
pub(super) struct Upper {
    band: Band,
}

impl Default for Upper {
    fn default() -> Self {
        Upper { band: Band::new(8) }
    }
}

impl Upper {
    /// The two-bit code of one sample.
    pub(super) fn encode(&mut self, sample: i32) -> u8 {
        let difference = saturate(sample - self.band.prediction);
        let size = if difference >= 0 { difference } else { -(difference + 1) };
        // QUANTH.
        let large = size >= (564 * self.band.step) >> 12;
        let code = match (difference < 0, large) {
            (true, false) => 1,
            (true, true) => 0,
            (false, false) => 3,
            (false, true) => 2,
        };
        self.adapt(code);
        code
    }

    /// The sample of a two-bit code.
    pub(super) fn decode(&mut self, code: u8) -> i32 {
        let prediction = self.band.prediction;
        let difference = self.adapt(code);
        (prediction + difference).clamp(-16_384, 16_383)
    }

    fn adapt(&mut self, code: u8) -> i32 {
        // INVQAH, LOGSCH and SCALEH.
        let difference = (self.band.step * pick(&UPPER_BY_TWO, code)) >> 15;
        self.band.scale(pick(&UPPER_SCALE, code), 22_528, 10);
        self.band.predict(difference);
        difference
    }
}

/// Tracks only the quantiser's scale of the lower band, which follows from the codes without prediction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scale {
    step_log: i32,
}

impl Scale {
    /// The mean square of the prediction error of a payload, times [`PREDICTED`] to account for the predicted
    /// part.
    pub(super) fn power(&mut self, payload: &[u8]) -> u64 {
        let mut sum = 0_u64;
        for code in payload {
            let code = (code & 0x3f) >> 2;
            let difference = (step(self.step_log, 8) * pick(&LOWER_BY_FOUR, code)) >> 15;
            sum += u64::from(difference.unsigned_abs()).pow(2);
            self.step_log = (((self.step_log * 127) >> 7) + pick(&LOWER_SCALE, code)).clamp(0, 18_432);
        }
        (PREDICTED * sum / payload.len().max(1) as u64).saturating_sub(FLOOR)
    }
}

/// The predictor of two poles and six zeros, and the quantiser's scale.
#[derive(Clone, Debug)]
struct Band {
    /// The predicted sample, `s` of the Recommendation.
    prediction: i32,
    /// The zeros' part of it, `sz`.
    zeros_part: i32,
    /// The quantiser's scale and its logarithm, `det` and `nb`.
    step: i32,
    step_log: i32,
    /// The last reconstructed samples, newest first: `r`.
    samples: [i32; 2],
    /// The last partly reconstructed samples, newest first: `p`.
    partial: [i32; 2],
    /// The pole coefficients, `a`.
    poles: [i32; 2],
    /// The last quantised differences, newest first: `d`.
    differences: [i32; 6],
    /// The zero coefficients, `b`.
    zeros: [i32; 6],
}

impl Band {
    fn new(step: i32) -> Self {
        Band {
            prediction: 0,
            zeros_part: 0,
            step,
            step_log: 0,
            samples: [0; 2],
            partial: [0; 2],
            poles: [0; 2],
            differences: [0; 6],
            zeros: [0; 6],
        }
    }

    /// Moves the quantiser's scale by `weight` (LOGSCL, LOGSCH, SCALEL, SCALEH).
    fn scale(&mut self, weight: i32, limit: i32, shift: i32) {
        self.step_log = (((self.step_log * 127) >> 7) + weight).clamp(0, limit);
        self.step = step(self.step_log, shift);
    }

    /// Adds one quantised difference and predicts the next sample (block 4).
    fn predict(&mut self, difference: i32) {
        // RECONS and PARREC.
        let sample = saturate(self.prediction + difference);
        let partial = saturate(self.zeros_part + difference);
        self.adapt_poles(partial);
        self.adapt_zeros(difference);
        // DELAYA.
        self.samples = [sample, self.samples[0]];
        self.partial = [partial, self.partial[0]];
        self.differences.copy_within(..5, 1);
        self.differences[0] = difference;
        // FILTEP, FILTEZ and PREDIC.
        let product = |factor: i32, value: i32| (factor * saturate(value + value)) >> 15;
        let poles_part =
            saturate(product(self.poles[0], self.samples[0]) + product(self.poles[1], self.samples[1]));
        let zeros_part =
            self.zeros.iter().zip(self.differences).map(|(factor, value)| product(*factor, value));
        self.zeros_part = saturate(zeros_part.sum());
        self.prediction = saturate(poles_part + self.zeros_part);
    }

    /// UPPOL2, then UPPOL1.
    fn adapt_poles(&mut self, partial: i32) {
        let alike = |past: i32| (partial < 0) == (past < 0);
        let push = saturate(self.poles[0] << 2);
        let push = if alike(self.partial[0]) { (-push).min(32_767) } else { push };
        let second = (push >> 7) + if alike(self.partial[1]) { 128 } else { -128 };
        let second = (second + ((self.poles[1] * 32_512) >> 15)).clamp(-12_288, 12_288);
        let first = if alike(self.partial[0]) { 192 } else { -192 } + ((self.poles[0] * 32_640) >> 15);
        let limit = saturate(15_360 - second);
        self.poles = [saturate(first).clamp(-limit, limit), second];
    }

    /// UPZERO.
    fn adapt_zeros(&mut self, difference: i32) {
        let weight = if difference == 0 { 0 } else { 128 };
        for (zero, past) in self.zeros.iter_mut().zip(self.differences) {
            let push = if (difference < 0) == (past < 0) { weight } else { -weight };
            *zero = saturate(push + ((*zero * 32_640) >> 15));
        }
    }
}

/// The scale for its logarithm (SCALEL, SCALEH).
fn step(step_log: i32, shift: i32) -> i32 {
    let mantissa = pick(&ANTILOG, ((step_log >> 6) & 31) as u8);
    let shift = shift - (step_log >> 11);
    (if shift < 0 { mantissa << -shift } else { mantissa >> shift }) << 2
}

/// Saturates to 16 bits, as the arithmetic of the Recommendation does.
pub(super) fn saturate(value: i32) -> i32 {
    value.clamp(-32_768, 32_767)
}

/// A table's value for a code; the callers mask codes to the table's length.
#[inline]
fn pick<const N: usize>(table: &[i32; N], code: u8) -> i32 {
    table.get(usize::from(code)).copied().unwrap_or_default()
}

/// The band has half the amplitude of the PCM, a factor of 4; prediction removes about 9 dB of a voice, a
/// factor of 8.
const PREDICTED: u64 = 32;
/// The value of silence at the smallest scale.
const FLOOR: u64 = 700;
/// Decision levels of the lower band, from the second on (table 14, LL6).
const LEVELS: [i32; 29] = [
    35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1_023, 1_121,
    1_219, 1_339, 1_458, 1_612, 1_765, 1_980, 2_195, 2_557, 2_919,
];
/// The values of the six-bit codes of the lower band (table 17, QM6).
const LOWER_BY_SIX: [i32; 64] = [
    -136, -136, -136, -136, -24_808, -21_904, -19_008, -16_704, -14_984, -13_512, -12_280, -11_192, -10_232,
    -9_360, -8_576, -7_856, -7_192, -6_576, -6_000, -5_456, -4_944, -4_464, -4_008, -3_576, -3_168, -2_776,
    -2_400, -2_032, -1_688, -1_360, -1_040, -728, 24_808, 21_904, 19_008, 16_704, 14_984, 13_512, 12_280,
    11_192, 10_232, 9_360, 8_576, 7_856, 7_192, 6_576, 6_000, 5_456, 4_944, 4_464, 4_008, 3_576, 3_168,
    2_776, 2_400, 2_032, 1_688, 1_360, 1_040, 728, 432, 136, -432, -136,
];
/// The values of their upper four bits (QM4).
const LOWER_BY_FOUR: [i32; 16] = [
    0, -20_456, -12_896, -8_968, -6_288, -4_240, -2_584, -1_200, 20_456, 12_896, 8_968, 6_288, 4_240, 2_584,
    1_200, 0,
];
/// Their changes of the scale: WL of RL4.
const LOWER_SCALE: [i32; 16] =
    [-60, 3_042, 1_198, 538, 334, 172, 58, -30, 3_042, 1_198, 538, 334, 172, 58, -30, -60];
/// The values of the two-bit codes of the upper band (QM2).
const UPPER_BY_TWO: [i32; 4] = [-7_408, -1_616, 7_408, 1_616];
/// Their changes of the scale: WH of RH2.
const UPPER_SCALE: [i32; 4] = [798, -214, 798, -214];
/// The antilogarithm of the scale (table 15, ILB).
const ANTILOG: [i32; 32] = [
    2_048, 2_093, 2_139, 2_186, 2_233, 2_282, 2_332, 2_383, 2_435, 2_489, 2_543, 2_599, 2_656, 2_714, 2_774,
    2_834, 2_896, 2_960, 3_025, 3_091, 3_158, 3_228, 3_298, 3_371, 3_444, 3_520, 3_597, 3_676, 3_756, 3_838,
    3_922, 4_008,
];
