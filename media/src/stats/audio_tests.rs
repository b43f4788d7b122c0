//! Tests of the evidence for known sounds and for arbitrary bytes.

use proptest::prelude::*;

use super::*;
use crate::audio::level::power_at_dbov;
use crate::codec::g711::{pcm_to_pcma, pcm_to_pcmu};

/// Twenty seconds of packets of 20 ms whose sample number `n` is `sound(n)`.
fn heard(payload_type: u8, mut sound: impl FnMut(usize) -> i16) -> AudioEvidence {
    let encode = if payload_type == PCMA { pcm_to_pcma } else { pcm_to_pcmu };
    heard_bytes(payload_type, |n| encode(sound(n)))
}

fn heard_bytes(payload_type: u8, mut byte: impl FnMut(usize) -> u8) -> AudioEvidence {
    let mut fold = AudioFold::default();
    for n in 0..1_000 {
        let payload: Vec<u8> = (n * 160..(n + 1) * 160).map(&mut byte).collect();
        push(&mut fold, n as u16, payload_type, &payload);
    }
    fold.evidence().unwrap()
}

fn push(fold: &mut AudioFold, sequence: u16, payload_type: u8, payload: &[u8]) {
    let packet = Packet { sequence, payload_type, payload_len: payload.len() as u32, ..Packet::default() };
    if AudioSample::is_due(&packet)
        && let Some(sample) = AudioSample::of(payload)
    {
        fold.push(&packet, &sample);
    }
}

fn sine(peak: f64, hz: f64) -> impl Fn(usize) -> i16 {
    move |n| {
        (peak * (std::f64::consts::TAU * hz * n as f64 / 8_000.0).sin()).clamp(-32_768.0, 32_767.0) as i16
    }
}

/// Noise from -`peak` to `peak`, the same in every run.
fn noise(peak: i16) -> impl FnMut(usize) -> i16 {
    let mut state = 1_u32;
    move |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 16) as i32 % (2 * i32::from(peak) + 1) - i32::from(peak)) as i16
    }
}

#[test]
fn tones_of_every_pitch_are_heard_at_their_level() {
    for payload_type in [PCMU, PCMA] {
        for hz in [50.0, 100.0, 400.0, 425.0, 440.0, 800.0, 1_000.0, 1_600.0, 2_000.0, 3_200.0] {
            let evidence = heard(payload_type, sine(3_276.7, hz));
            assert_eq!(evidence.looked_at_packets, 250, "{hz} Hz");
            assert_eq!(evidence.looked_at_ms, 20_000, "{hz} Hz");
            assert_eq!(evidence.silent_share_pct, Hundredths(0), "{hz} Hz");
            assert_eq!(evidence.clipped_share_pct, Some(Hundredths(0)), "{hz} Hz");
            assert_eq!(evidence.longest_silence_ms, 0, "{hz} Hz");
            assert!((evidence.level_dbov.0 + 2_301).abs() < 250, "{hz} Hz: {}", evidence.level_dbov);
            assert!((evidence.peak_dbov.0 + 2_000).abs() < 150, "{hz} Hz: {}", evidence.peak_dbov);
        }
    }
}

#[test]
fn silence_is_silence_in_each_of_its_codes() {
    let alternating = |one: u8, other: u8| move |n: usize| if n.is_multiple_of(3) { one } else { other };
    type Case = (&'static str, u8, Box<dyn FnMut(usize) -> u8>);
    let cases: [Case; 7] = [
        ("PCMU", PCMU, Box::new(|_| 0xff)),
        ("PCMU, negative zero", PCMU, Box::new(|_| 0x7f)),
        ("PCMU, both", PCMU, Box::new(alternating(0xff, 0x7f))),
        ("PCMA", PCMA, Box::new(|_| 0xd5)),
        ("PCMA, both", PCMA, Box::new(alternating(0xd5, 0x55))),
        ("a constant far from zero", PCMU, Box::new(|_| 0x00)),
        ("PCMU silence in PCMA, a constant", PCMA, Box::new(|_| 0xff)),
    ];
    for (name, payload_type, byte) in cases {
        let evidence = heard_bytes(payload_type, byte);
        assert_eq!(evidence.silent_share_pct, Hundredths(10_000), "{name}");
        assert_eq!(evidence.clipped_share_pct, None, "{name}");
        assert_eq!(evidence.longest_silence_ms, 20_000, "{name}");
        assert!(evidence.level_dbov.0 <= -7_000, "{name}: {}", evidence.level_dbov);
    }
}

#[test]
fn comfort_noise_is_silence_and_speech_level_noise_is_not() {
    // Uniform noise with these peaks has levels of -64 dBov and -34 dBov.
    let quiet = heard(PCMU, noise(35));
    assert_eq!(quiet.silent_share_pct, Hundredths(10_000));
    assert!(quiet.level_dbov < Hundredths(-6_000), "{}", quiet.level_dbov);
    let loud = heard(PCMA, noise(1_100));
    assert_eq!(loud.silent_share_pct, Hundredths(0));
    assert!((loud.level_dbov.0 + 3_425).abs() < 150, "{}", loud.level_dbov);
}

#[test]
fn clipping_is_seen_and_loudness_is_not_clipping() {
    for payload_type in [PCMU, PCMA] {
        let clipped = heard(payload_type, sine(65_000.0, 440.0));
        assert!(clipped.clipped_share_pct >= Some(Hundredths(9_500)), "{clipped:?}");
        let loud = heard(payload_type, sine(28_000.0, 440.0));
        assert_eq!(loud.clipped_share_pct, Some(Hundredths(0)));
    }
}

#[test]
fn bytes_without_a_key_are_neither_silent_nor_clipped() {
    let mut random = noise(32_767);
    let evidence = heard_bytes(PCMU, |n| (random(n) >> 3) as u8);
    assert_eq!(evidence.silent_share_pct, Hundredths(0));
    assert!(evidence.clipped_share_pct < Some(Hundredths(500)), "{evidence:?}");
}

#[test]
fn the_longest_silence_is_between_two_sounds() {
    let tone = sine(5_000.0, 440.0);
    // Sound, 8 seconds of silence, sound, 3 seconds of silence.
    let second = |n: usize| n / 8_000;
    let evidence = heard(PCMU, |n| if matches!(second(n), 4..=11 | 17..=19) { 0 } else { tone(n) });
    assert_eq!(evidence.longest_silence_ms, 8_000);
    assert_eq!(evidence.silent_share_pct, Hundredths(5_480));
}

#[test]
fn copies_and_other_payloads_and_stumps_are_not_looked_at() {
    let mut fold = AudioFold::default();
    for _ in 0..3 {
        push(&mut fold, 8, PCMU, &[0xff; 160]);
    }
    assert_eq!(fold.evidence().unwrap().looked_at_packets, 1);
    let mut fold = AudioFold::default();
    push(&mut fold, 4, 13, &[0xff; 160]);
    push(&mut fold, 8, 101, &[0xff; 160]);
    push(&mut fold, 9, PCMU, &[0xff; 160]);
    push(&mut fold, 12, PCMU, &[0xff; 15]);
    assert_eq!(fold.evidence(), None);
}

#[test]
fn silence_ends_where_minus_60_dbov_begins() {
    assert_eq!(SILENT_POWER, power_at_dbov(-60.0));
    assert_eq!(PCMU_FULL_SCALE, PCMU_TO_PCM.map(i16::unsigned_abs).into_iter().max().unwrap());
    assert_eq!(PCMA_FULL_SCALE, PCMA_TO_PCM.map(i16::unsigned_abs).into_iter().max().unwrap());
}

proptest! {
    #[test]
    fn arbitrary_payloads_stay_within_bounds(
        packets in prop::collection::vec(
            (any::<u16>(), prop_oneof![Just(0_u8), Just(8), any::<u8>()], prop::collection::vec(any::<u8>(), 0..400)),
            0..40,
        ),
    ) {
        let mut fold = AudioFold::default();
        let mut octets = 0;
        for (sequence, payload_type, payload) in &packets {
            push(&mut fold, sequence & !3, *payload_type, payload);
            octets += payload.len() as u64;
        }
        let Some(evidence) = fold.evidence() else { return Ok(()) };
        let percent = Hundredths(0)..=Hundredths(10_000);
        let dbov = Hundredths(DIGITAL_SILENCE)..=Hundredths(0);
        prop_assert!(evidence.looked_at_packets <= packets.len() as u64);
        prop_assert!(evidence.looked_at_ms <= octets * 4 / 8);
        prop_assert!(evidence.longest_silence_ms <= evidence.looked_at_ms);
        prop_assert!(percent.contains(&evidence.silent_share_pct));
        prop_assert!(evidence.clipped_share_pct.is_none_or(|share| percent.contains(&share)));
        prop_assert!(dbov.contains(&evidence.level_dbov) && dbov.contains(&evidence.peak_dbov));
        prop_assert!(evidence.level_dbov <= evidence.peak_dbov);
    }
}
