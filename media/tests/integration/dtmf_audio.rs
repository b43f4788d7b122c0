//! Digits in the audio: how many are found, and how many are found in speech.

use sidetone_media::dtmf_audio::DtmfDetector;
use sidetone_media::simulate::Random;

use crate::support::speech::Speech;

const KEYS: &str = "123A456B789C*0#D";
const ROWS: [f64; 4] = [697.0, 770.0, 852.0, 941.0];
const COLUMNS: [f64; 4] = [1_209.0, 1_336.0, 1_477.0, 1_633.0];

/// A press, and the silence after it.
#[derive(Clone, Copy)]
struct Press {
    ms: usize,
    gap_ms: usize,
    /// Of each tone, in dBov.
    level_dbov: f64,
    /// How much louder the column is than the row.
    twist_db: f64,
    /// The noise, below both tones together; white.
    snr_db: f64,
    /// Factor of both frequencies.
    detune: f64,
}

const USUAL: Press =
    Press { ms: 80, gap_ms: 80, level_dbov: -20.0, twist_db: 0.0, snr_db: 20.0, detune: 1.0 };

/// Presses `count` random keys; returns the pressed and the found keys. Frames are not in step with presses.
fn press(seed: u64, count: usize, of: impl Fn(&mut Random) -> Press) -> (String, String) {
    let mut random = Random::new(seed);
    let (mut pcm, mut pressed) = (Vec::new(), String::new());
    for _ in 0..count {
        let key = random.integer(0, 15) as usize;
        pressed.push(KEYS.chars().nth(key).unwrap());
        let press = of(&mut random);
        let amplitude = |db: f64| 32_768.0 * 10_f64.powf(db / 20.0) * std::f64::consts::SQRT_2;
        let low = amplitude(press.level_dbov - press.twist_db / 2.0);
        let high = amplitude(press.level_dbov + press.twist_db / 2.0);
        // Uniform noise of ±a has the power a²/3.
        let noise = ((low * low + high * high) / 2.0 * 10_f64.powf(-press.snr_db / 10.0) * 3.0).sqrt();
        let phases = [random.uniform(0.0, 6.0), random.uniform(0.0, 6.0)];
        let tone = |n: usize, hz: f64, phase: f64| {
            (std::f64::consts::TAU * hz * press.detune * n as f64 / 8_000.0 + phase).sin()
        };
        let tail = random.integer(0, 159) as usize;
        for n in 0..8 * (press.ms + press.gap_ms) + tail {
            let tones = low * tone(n, ROWS[key / 4], phases[0]) + high * tone(n, COLUMNS[key % 4], phases[1]);
            let sounding = if n < 8 * press.ms { tones } else { 0.0 };
            pcm.push((sounding + random.uniform(-noise, noise)) as i16);
        }
    }
    let mut detector = DtmfDetector::new();
    (pressed, pcm.chunks(160).filter_map(|frame| detector.push(frame)).collect())
}

/// How many of the pressed keys were found in order, and how many were found that were not pressed.
fn compare(pressed: &str, found: &str) -> (usize, usize) {
    let (pressed, found): (Vec<char>, Vec<char>) = (pressed.chars().collect(), found.chars().collect());
    // The longest common subsequence.
    let mut row = vec![0; found.len() + 1];
    for key in &pressed {
        let mut before = 0;
        for (n, other) in found.iter().enumerate() {
            let here = row[n + 1];
            row[n + 1] = if key == other { before + 1 } else { row[n + 1].max(row[n]) };
            before = here;
        }
    }
    (row[found.len()], found.len() - row[found.len()])
}

#[test]
fn ninety_nine_of_a_hundred_digits_are_found_at_20_db() {
    let (pressed, found) = press(1, 4_000, |_| USUAL);
    let (right, wrong) = compare(&pressed, &found);
    println!("digits at 20 dB: {right} of 4000 found, {wrong} wrong");
    assert!(right >= 3_960 && wrong == 0, "{right} found, {wrong} wrong");
}

#[test]
fn digits_of_every_permitted_form_are_found() {
    let cases: [(&str, Press); 9] = [
        ("50 ms", Press { ms: 50, gap_ms: 50, ..USUAL }),
        ("a second", Press { ms: 1_000, gap_ms: 100, ..USUAL }),
        ("quiet", Press { level_dbov: -38.0, ..USUAL }),
        ("loud", Press { level_dbov: -7.0, ..USUAL }),
        ("1.5 % high", Press { detune: 1.015, ..USUAL }),
        ("1.5 % low", Press { detune: 0.985, ..USUAL }),
        ("4 dB of twist", Press { twist_db: 4.0, ..USUAL }),
        ("8 dB of reverse twist", Press { twist_db: -7.5, ..USUAL }),
        ("15 dB of noise", Press { snr_db: 15.0, ..USUAL }),
    ];
    for (name, form) in cases {
        let (pressed, found) = press(7, 300, |_| form);
        let (right, wrong) = compare(&pressed, &found);
        println!("digits, {name}: {right} of 300, {wrong} wrong");
        assert!(right >= 297 && wrong == 0, "{name}: {right} found, {wrong} wrong");
    }
}

#[test]
fn what_is_no_digit_is_not_found() {
    let cases: [(&str, Press); 4] = [
        ("20 ms", Press { ms: 20, ..USUAL }),
        ("3.5 % high", Press { detune: 1.035, ..USUAL }),
        ("12 dB of twist", Press { twist_db: 12.0, ..USUAL }),
        ("one tone", Press { twist_db: 90.0, level_dbov: -60.0, ..USUAL }),
    ];
    for (name, form) in cases {
        assert_eq!(press(9, 200, |_| form).1, "", "{name}");
    }
}

/// The requirement: less than one false digit in an hour of speech.
#[test]
fn an_hour_of_speech_has_no_digit() {
    let mut speech = Speech::new(18, None);
    let mut detector = DtmfDetector::new();
    let mut found = String::new();
    let mut power = 0.0;
    for _ in 0..50 * 3_600 {
        let frame = speech.frame();
        power += frame.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / 160.0;
        found.extend(detector.push(&frame));
    }
    let level = 10.0 * (power / (50.0 * 3_600.0) / 32_768.0_f64.powi(2)).log10();
    println!("an hour of speech at {level:.1} dBov: false digits {found:?}");
    assert!((-30.0..-15.0).contains(&level), "{level}");
    assert_eq!(found, "");
}

/// Frames of other rates are found too; a frame of a length that no mix has is silence.
#[test]
fn digits_are_found_at_every_rate() {
    for hz in [8_000_u32, 16_000, 48_000] {
        let mut detector = DtmfDetector::new();
        let tone = |n: u32, f: f64| (std::f64::consts::TAU * f * f64::from(n) / f64::from(hz)).sin();
        let pcm: Vec<i16> =
            (0..hz / 5).map(|n| (3_000.0 * (tone(n, 852.0) + tone(n, 1_336.0))) as i16).collect();
        let found: String = pcm.chunks(hz as usize / 50).filter_map(|frame| detector.push(frame)).collect();
        assert_eq!(found, "8", "{hz}");
        assert!(detector.is_pressed());
        detector.push(&[0; 7]);
        detector.silence();
        detector.silence();
        assert!(!detector.is_pressed());
    }
}
