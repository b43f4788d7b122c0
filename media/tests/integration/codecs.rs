//! Audio quality after codecs and lossy networks: levels, noise, similarity.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

use std::f64::consts::TAU;

use sidetone_media::audio::level::{dbov, power};
use sidetone_media::audio::resample::Resampler;
use sidetone_media::codec::{Codec, Decoder, Encoder};
use sidetone_media::simulate::Random;

const CODECS: [Codec; 5] =
    [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::Opus, Codec::L16 { rate_hz: 16_000, channels: 1 }];

fn tone(hz: f64, rate: u32, seconds: u32) -> Vec<i16> {
    (0..rate * seconds)
        .map(|n| (8_000.0 * (TAU * hz * f64::from(n) / f64::from(rate)).sin()) as i16)
        .collect()
}

/// Encodes and decodes in packets of 20 ms.
fn through(codec: Codec, pcm: &[i16]) -> Vec<i16> {
    let mut encoder = Encoder::new(codec).unwrap();
    let mut decoder = Decoder::new(codec).unwrap();
    let mut heard = Vec::new();
    for frame in pcm.chunks_exact(codec.sample_rate_hz() as usize / 50) {
        let mut payload = [0; 4_000];
        let size = encoder.encode(frame, &mut payload).unwrap();
        assert_eq!(codec.samples(&payload[..size]), Ok(frame.len()));
        let mut pcm = [0; 5_760];
        let count = decoder.decode(&payload[..size], &mut pcm).unwrap();
        heard.extend_from_slice(&pcm[..count]);
    }
    heard
}

fn resampled(pcm: &[i16], from: u32, to: u32) -> Vec<i16> {
    let mut out = vec![0; pcm.len() * to as usize / from as usize];
    let count = Resampler::new(from, to).unwrap().process(pcm, &mut out);
    out.truncate(count);
    out
}

/// Level in dBov of the tone of `hz` in `pcm`, and how many dB everything else is below it.
fn tone_and_snr(pcm: &[i16], hz: f64, rate: u32) -> (f64, f64) {
    let step = TAU * hz / f64::from(rate);
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (n, sample) in pcm.iter().enumerate() {
        sine += f64::from(*sample) * (step * n as f64).sin();
        cosine += f64::from(*sample) * (step * n as f64).cos();
    }
    let (sine, cosine) = (2.0 * sine / pcm.len() as f64, 2.0 * cosine / pcm.len() as f64);
    let tone = (sine * sine + cosine * cosine) / 2.0;
    let all: f64 = pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / pcm.len() as f64;
    (10.0 * (tone / 32_768.0_f64.powi(2)).log10(), 10.0 * (tone / (all - tone).max(1e-9)).log10())
}

/// The minimum signal-to-noise ratio of a tone for each codec, in dB; a pair has that of the worse one, less
/// 3 dB.
fn kept_snr_db(codec: Codec) -> f64 {
    match codec {
        Codec::Pcmu | Codec::Pcma => 33.0,
        Codec::G722 => 28.0,
        Codec::Opus => 18.0,
        Codec::L16 { .. } => 60.0,
    }
}

#[test]
fn a_tone_keeps_its_level_through_every_pair_of_codecs() {
    for first in CODECS {
        for second in CODECS {
            for hz in [300.0, 440.0, 1_000.0, 1_600.0, 2_400.0, 3_000.0] {
                let (from, to) = (first.sample_rate_hz(), second.sample_rate_hz());
                let said = tone(hz, from, 2);
                let heard = through(second, &resampled(&through(first, &said), from, to));
                // The second half, in whole periods of each of these tones.
                let heard = &heard[heard.len() - to as usize..];
                let (level_db, snr_db) = tone_and_snr(heard, hz, to);
                let off_db = level_db - dbov(power(&said)).unwrap();
                let wanted_db = kept_snr_db(first).min(kept_snr_db(second)) - 3.0;
                assert!(off_db.abs() < 1.0, "{first:?} to {second:?}, {hz} Hz: {off_db:.2} dB");
                assert!(
                    snr_db > wanted_db,
                    "{first:?} to {second:?}, {hz} Hz: {snr_db:.1} dB of {wanted_db}"
                );
            }
        }
    }
}

/// A voice: harmonics of a moving pitch, shaped like a vowel, in syllables, with a little noise.
fn voice(rate: u32, seconds: u32) -> Vec<i16> {
    let mut random = Random::new(11);
    let mut phase = 0.0;
    let formant = |hz: f64, at: f64, width: f64| 1.0 / (1.0 + ((hz - at) / width).powi(2));
    let sample = |n: u32| {
        let second = f64::from(n) / f64::from(rate);
        let pitch = 120.0 + 15.0 * (TAU * 0.7 * second).sin();
        phase += TAU * pitch / f64::from(rate);
        let syllable = (TAU * 1.7 * second).sin().max(0.0).sqrt();
        let harmonics: f64 = (1..24)
            .map(|k| {
                let hz = pitch * f64::from(k);
                (formant(hz, 600.0, 250.0) + 0.4 * formant(hz, 1_700.0, 300.0)) * (phase * f64::from(k)).sin()
            })
            .sum();
        let breath = (random.bits() >> 50) as f64 / 16_384.0 - 0.5;
        (syllable * (4_000.0 * harmonics + 300.0 * breath)) as i16
    };
    (0..rate * seconds).map(sample).collect()
}

/// The distance of two sounds in dB (log-spectral distance): the mean over frames of 20 ms of the root mean
/// square difference of their levels in twelve bands, each level limited to 50 dB below the loudest.
fn spectral_distance_db(a: &[i16], b: &[i16], rate: u32) -> f64 {
    let frame = rate as usize / 50;
    let bands: Vec<f64> = (0..12).map(|band| 150.0 * 1.3_f64.powi(band)).collect();
    let level = |pcm: &[i16], hz: f64| {
        let (mut sine, mut cosine) = (0.0, 0.0);
        for (n, sample) in pcm.iter().enumerate() {
            let window = 0.5 - 0.5 * (TAU * n as f64 / pcm.len() as f64).cos();
            let at = TAU * hz * n as f64 / f64::from(rate);
            sine += f64::from(*sample) * window * at.sin();
            cosine += f64::from(*sample) * window * at.cos();
        }
        10.0 * ((sine * sine + cosine * cosine) / (frame * frame) as f64 + 1_000.0).log10()
    };
    let frames: Vec<f64> = a
        .chunks_exact(frame)
        .zip(b.chunks_exact(frame))
        .map(|(a, b)| {
            let sum: f64 = bands.iter().map(|hz| (level(a, *hz) - level(b, *hz)).powi(2)).sum();
            (sum / bands.len() as f64).sqrt()
        })
        .collect();
    frames.iter().sum::<f64>() / frames.len() as f64
}

/// Decodes `packets` with the lost ones concealed, by the codec or as silence.
fn lossy(codec: Codec, packets: &[Vec<u8>], is_lost: &[bool], conceals: bool) -> Vec<i16> {
    let mut decoder = Decoder::new(codec).unwrap();
    let frame = codec.sample_rate_hz() as usize / 50;
    let mut heard = Vec::new();
    for (n, payload) in packets.iter().enumerate() {
        let mut pcm = vec![0; frame];
        match (is_lost[n], conceals) {
            (false, _) => assert_eq!(decoder.decode(payload, &mut pcm), Ok(frame)),
            (true, true) => match packets.get(n + 1).filter(|_| !is_lost[n + 1]) {
                Some(next) => decoder.recover(next, &mut pcm),
                None => decoder.conceal(&mut pcm),
            },
            (true, false) => {}
        }
        heard.extend(pcm);
    }
    heard
}

/// 10 % of the packets are lost, singly and in bursts of three: concealment is closer to the voice than
/// silence, for single losses by at least 40 % of the distance.
#[test]
fn concealment_is_nearer_to_the_voice_than_silence() {
    for codec in [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::Opus] {
        let rate = codec.sample_rate_hz();
        let said = voice(rate, 8);
        let mut encoder = Encoder::new(codec).unwrap();
        let encode = |pcm: &[i16]| {
            let mut payload = vec![0; 1_500];
            let size = encoder.encode(pcm, &mut payload).unwrap();
            payload.truncate(size);
            payload
        };
        let packets: Vec<Vec<u8>> = said.chunks_exact(rate as usize / 50).map(encode).collect();
        for (burst, most) in [(1, 0.6), (3, 0.8)] {
            let mut random = Random::new(5);
            let mut left = 0;
            let mut is_lost = vec![false; packets.len() + 1];
            for lost in is_lost.iter_mut().skip(10) {
                if left == 0 && random.bits() % 1_000 < 100 / burst {
                    left = burst;
                }
                *lost = left > 0;
                left -= u64::from(*lost);
            }
            let whole = lossy(codec, &packets, &vec![false; packets.len() + 1], true);
            let concealed = spectral_distance_db(&whole, &lossy(codec, &packets, &is_lost, true), rate);
            let silent = spectral_distance_db(&whole, &lossy(codec, &packets, &is_lost, false), rate);
            println!(
                "{} bursts of {burst}: concealed {concealed:.2} dB, silent {silent:.2} dB",
                codec.name()
            );
            assert!(concealed < most * silent, "{codec:?} {burst}: {concealed:.2} of {silent:.2} dB");
        }
    }
}

#[test]
fn names_clocks_and_rates_are_those_of_sdp() {
    use sidetone_media::time::ClockRate;
    let cases = [
        ("pcmu", 8_000, 1, Some((Codec::Pcmu, 8_000))),
        ("PCMA", 8_000, 1, Some((Codec::Pcma, 8_000))),
        ("G722", 8_000, 1, Some((Codec::G722, 16_000))),
        ("opus", 48_000, 2, Some((Codec::Opus, 48_000))),
        ("L16", 16_000, 1, Some((Codec::L16 { rate_hz: 16_000, channels: 1 }, 16_000))),
        ("L16", 44_100, 2, None),
        ("PCMU", 16_000, 1, None),
        ("G729", 8_000, 1, None),
        ("opus", 8_000, 2, None),
    ];
    for (name, clock, channels, wanted) in cases {
        let found = Codec::find(name, ClockRate::new(clock).unwrap(), channels);
        assert_eq!(found.map(|codec| (codec, codec.sample_rate_hz())), wanted, "{name}/{clock}/{channels}");
        if let Some(codec) = found {
            assert_eq!((codec.name().to_lowercase(), codec.rtp_clock().hz()), (name.to_lowercase(), clock));
        }
    }
}
