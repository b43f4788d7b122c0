//! Synthetic speech at 8 kHz: a source and four formants.
//!
//! A voice has a pitch of 80 to 350 Hz that falls and rises within a phrase, with 1 % of jitter; a glottal pulse with
//! a slope of -12 dB per octave excites four resonators. Their frequencies move from vowel to vowel, 60 to 250 ms
//! each, among the eleven vowels of Peterson and Barney (1952), scaled by 0.85 to 1.3 for men, women and children; one
//! vowel in twenty is held for a second, as in "ehm" and singing. Between vowels there are fricatives (filtered
//! noise) and stops (silence of 30 to 90 ms). A phrase lasts 0.5 to 3 s and a pause 0.2 to 1 s, with room noise.
#![allow(clippy::indexing_slicing, reason = "a test may stop where it fails")]

use sidetone_media::simulate::Random;

/// F1 to F3 of the vowels, in Hz.
const VOWELS: [[f64; 3]; 11] = [
    [270.0, 2_290.0, 3_010.0],
    [390.0, 1_990.0, 2_550.0],
    [530.0, 1_840.0, 2_480.0],
    [660.0, 1_720.0, 2_410.0],
    [730.0, 1_090.0, 2_440.0],
    [570.0, 840.0, 2_410.0],
    [440.0, 1_020.0, 2_240.0],
    [300.0, 870.0, 2_240.0],
    [640.0, 1_190.0, 2_390.0],
    [490.0, 1_350.0, 1_690.0],
    [500.0, 1_500.0, 2_500.0],
];

/// One person after the other, without end.
pub(crate) struct Speech {
    random: Random,
    /// The level of the phrases, in dBov; a new one for each phrase when there is none.
    level_dbov: Option<f64>,
    pitch_hz: f64,
    size: f64,
    formants: [f64; 4],
    wanted: [f64; 4],
    state: [[f64; 2]; 4],
    phase: f64,
    slope: [f64; 2],
    kind: Kind,
    left: u32,
    phrase_left: u32,
    scale: f64,
    power: f64,
    loudness: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Fricative,
    Pause,
    Stop,
    Vowel,
}

impl Speech {
    pub(crate) fn new(seed: u64, level_dbov: Option<f64>) -> Speech {
        Speech {
            random: Random::new(seed),
            level_dbov,
            pitch_hz: 120.0,
            size: 1.0,
            formants: [500.0, 1_500.0, 2_500.0, 3_500.0],
            wanted: [500.0, 1_500.0, 2_500.0, 3_500.0],
            state: [[0.0; 2]; 4],
            phase: 0.0,
            slope: [0.0; 2],
            kind: Kind::Pause,
            left: 0,
            phrase_left: 0,
            scale: 1.0,
            power: 1.0,
            loudness: -20.0,
        }
    }

    /// The next 20 ms.
    pub(crate) fn frame(&mut self) -> [i16; 160] {
        let mut pcm = [0; 160];
        let mut sum = 0.0;
        let raw: Vec<f64> = (0..160).map(|_| self.sample()).collect();
        for sample in &raw {
            sum += sample * sample;
        }
        // The level of the phrase is reached within 50 ms, whatever the resonators amplify.
        if self.kind == Kind::Vowel {
            self.power += (sum / 160.0 - self.power) * 0.5;
        }
        // A vowel whose formants meet is at most 6 dB louder than the others.
        let level = 32_768.0 * 10_f64.powf(self.loudness / 20.0);
        let most = 2.0 * level / (sum / 160.0_f64).sqrt().max(1e-9);
        let wanted = (level / self.power.max(1e-9).sqrt()).min(most);
        self.scale = self.scale.min(most);
        for (place, sample) in raw.iter().enumerate() {
            self.scale += (wanted - self.scale) * 0.01;
            let room = self.random.uniform(-12.0, 12.0);
            pcm[place] = (sample * self.scale + room) as i16;
        }
        pcm
    }

    fn next(&mut self) {
        let random = &mut self.random;
        if self.phrase_left == 0 {
            let is_pause = self.kind != Kind::Pause;
            if is_pause {
                self.kind = Kind::Pause;
                self.left = random.integer(1_600, 8_000);
                return;
            }
            self.phrase_left = random.integer(4_000, 24_000);
            self.pitch_hz = random.uniform(80.0, 350.0);
            self.size = random.uniform(0.85, 1.3);
            self.loudness = self.level_dbov.unwrap_or_else(|| random.uniform(-34.0, -14.0));
        }
        self.kind = match random.integer(0, 9) {
            0..=1 if self.kind == Kind::Vowel => Kind::Fricative,
            2..=3 if self.kind == Kind::Vowel => Kind::Stop,
            _ => Kind::Vowel,
        };
        let is_held = random.integer(0, 19) == 0;
        let length = match self.kind {
            Kind::Vowel if is_held => random.integer(4_000, 8_000),
            Kind::Vowel => random.integer(480, 2_000),
            Kind::Fricative => random.integer(400, 1_000),
            Kind::Stop | Kind::Pause => random.integer(240, 720),
        };
        self.left = length;
        self.phrase_left = self.phrase_left.saturating_sub(length);
        let vowel = VOWELS[random.integer(0, 10) as usize];
        for (wanted, hz) in self.wanted.iter_mut().zip(vowel.into_iter().chain([3_500.0])) {
            *wanted = (hz * self.size * random.uniform(0.95, 1.05)).min(3_800.0);
        }
    }

    fn sample(&mut self) -> f64 {
        if self.left == 0 {
            self.next();
        }
        self.left -= 1;
        for (formant, wanted) in self.formants.iter_mut().zip(self.wanted) {
            *formant += (wanted - *formant) * 0.004;
        }
        let excitation = match self.kind {
            Kind::Vowel => {
                self.pitch_hz *= 1.0 + self.random.uniform(-0.000_3, 0.000_3);
                self.phase += self.pitch_hz / 8_000.0;
                let pulse = if self.phase >= 1.0 {
                    self.phase -= self.random.uniform(0.99, 1.01);
                    1.0
                } else {
                    0.0
                };
                self.slope[0] += (pulse - self.slope[0]) * 0.3;
                self.slope[1] += (self.slope[0] - self.slope[1]) * 0.5;
                self.slope[1]
            }
            Kind::Fricative => self.random.uniform(-0.02, 0.02),
            Kind::Stop | Kind::Pause => 0.0,
        };
        // Four resonators one after the other (Klatt 1980), with bandwidths of 60 to 200 Hz.
        let mut sample = excitation;
        for (n, (state, hz)) in self.state.iter_mut().zip(self.formants).enumerate() {
            let width = 60.0 + 45.0 * n as f64;
            let r = (-std::f64::consts::PI * width / 8_000.0).exp();
            let b = 2.0 * r * (std::f64::consts::TAU * hz / 8_000.0).cos();
            let c = -r * r;
            let out = (1.0 - b - c) * sample + b * state[0] + c * state[1];
            (state[1], state[0]) = (state[0], out);
            sample = out;
        }
        sample
    }
}
