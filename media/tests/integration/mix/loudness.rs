//! Gain of a party, fixed and automatic.

use sidetone_media::codec::Codec;
use sidetone_media::mix::{Gain, SeatCommand};
use sidetone_media::rtp::RtpPacket;
use sidetone_media::simulate::Random;

use super::room::{L16, Party, Room};
use crate::support::speech::Speech;

/// Lets time pass while party 1 or 2 speaks and the others are silent.
fn speak(room: &mut Room, key: u64, speech: &mut Speech, ms: usize) {
    for _ in 0..ms / 20 {
        let frame = speech.frame();
        send(room, key, &frame);
    }
}

/// One party sends these 20 ms, the others silence.
fn send(room: &mut Room, key: u64, pcm: &[i16]) {
    for party in &mut room.parties {
        let pcm = if party.key.0 == key { pcm } else { &[0; 160] };
        let (header, payload) = party.speaks(pcm);
        room.mix.receive(room.now, party.key, &RtpPacket { header, payload: &payload });
    }
    room.tick();
}

/// The level of frames with speech: those within 20 dB of the loudest, in dBov.
fn speech_level(pcm: &[i16]) -> f64 {
    let powers: Vec<f64> = frame_powers(pcm);
    let loudest = powers.iter().copied().fold(0.0, f64::max);
    let speech: Vec<f64> = powers.into_iter().filter(|power| *power * 100.0 > loudest).collect();
    10.0 * (speech.iter().sum::<f64>() / speech.len() as f64 / 32_768.0_f64.powi(2)).log10()
}

fn frame_powers(pcm: &[i16]) -> Vec<f64> {
    let power = |frame: &[i16]| frame.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / 160.0;
    pcm.chunks_exact(160).map(power).collect()
}

/// A room with two parties that speak and one that listens.
fn three(codec: Codec) -> Room {
    Room::new(vec![Party::silent(1, codec), Party::silent(2, codec), Party::silent(3, codec)])
}

/// The levels at which the listener hears the same words at -10 dBov and at -42 dBov, each after 3 s of speech.
fn levels(automatic: bool, seed: u64) -> [f64; 2] {
    let mut room = three(Codec::Pcmu);
    for key in [1, 2] {
        room.order(key, SeatCommand::Gain(Gain { decibels: 0, automatic }));
    }
    [(1, -10.0), (2, -42.0)].map(|(key, dbov)| {
        let mut speech = Speech::new(seed, Some(dbov));
        speak(&mut room, key, &mut speech, 3_000);
        speak(&mut room, key, &mut speech, 4_000);
        let level = speech_level(room.party(3).lately(4_000));
        let mut pause = Speech::new(1, Some(-90.0));
        speak(&mut room, 0, &mut pause, 1_000);
        level
    })
}

#[test]
fn parties_32_db_apart_are_within_6_db_after_three_seconds_of_speech() {
    for seed in [10, 20, 30, 40] {
        let [loud, quiet] = levels(false, seed);
        assert!((30.0..34.0).contains(&(loud - quiet)), "{seed}: {loud:.1} and {quiet:.1} dBov as sent");
        let [loud, quiet] = levels(true, seed);
        println!("automatic gain, seed {seed}: {loud:.1} and {quiet:.1} dBov");
        assert!((loud - quiet).abs() <= 6.0, "{seed}: {loud:.1} and {quiet:.1} dBov");
    }
}

/// Steady noise behind a voice, at -55 dBov, is as loud at the end of a pause as at its beginning, and in every pause.
#[test]
fn the_background_does_not_pump() {
    let mut room = three(L16_NARROW);
    room.order(1, SeatCommand::Gain(Gain { decibels: 0, automatic: true }));
    let (mut speech, mut random) = (Speech::new(5, Some(-36.0)), Random::new(6));
    speak(&mut room, 1, &mut speech, 4_000);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        speak(&mut room, 1, &mut speech, 1_500);
        // A voice is heard for 600 ms after its last word.
        for frame in 0..25 {
            let pcm: Vec<i16> = (0..160).map(|_| random.uniform(-100.0, 100.0) as i16).collect();
            send(&mut room, 1, &pcm);
            if (5..25).contains(&frame) {
                pauses
                    .push(10.0 * (frame_powers(room.party(3).lately(20))[0] / 32_768.0_f64.powi(2)).log10());
            }
        }
    }
    let spread = |levels: &[f64]| {
        levels.iter().copied().fold(f64::MIN, f64::max) - levels.iter().copied().fold(f64::MAX, f64::min)
    };
    let mean = |levels: &[f64]| levels.iter().sum::<f64>() / levels.len() as f64;
    let within = pauses.chunks(20).map(|pause| (mean(&pause[10..]) - mean(&pause[..10])).abs());
    let within = within.fold(0.0, f64::max);
    let between = spread(&pauses.chunks(20).map(mean).collect::<Vec<_>>());
    println!("background: changes by {within:.2} dB within a pause, {between:.2} dB between pauses");
    assert!(within < 0.5 && between < 4.0, "{within:.2} dB, {between:.2} dB");
}

#[test]
fn a_fixed_gain_is_heard_by_the_others_and_is_exact() {
    for codec in [Codec::Pcmu, Codec::G722, L16] {
        let mut room = Room::new(vec![Party::new(1, codec, 500.0), Party::silent(2, codec)]);
        room.play(1_000);
        for decibels in [6, -12, 12, 0] {
            room.order(1, SeatCommand::Gain(Gain { decibels, automatic: false }));
            room.play(2_000);
            let level = room.party(2).level_of(500.0, 500);
            assert!((level - f64::from(decibels)).abs() < 1.0, "{codec:?}: {level:.1} dB for {decibels}");
        }
    }
}

/// A gain never passes full scale, and another party's loudness stays.
#[test]
fn a_gain_of_one_party_leaves_the_others_alone() {
    let mut room = Room::new(vec![
        Party::new(1, L16, 500.0).at(20_000.0),
        Party::new(2, L16, 900.0),
        Party::silent(3, L16),
    ]);
    room.order(1, SeatCommand::Gain(Gain { decibels: 24, automatic: false }));
    room.play(2_000);
    let own = room.party(3).level_of(900.0, 1_000);
    assert!(own.abs() < 3.0, "{own:.1} dB");
    let harmonic = room.party(3).level_of(1_500.0, 1_000) - room.party(3).level_of(500.0, 1_000);
    assert!(harmonic < -20.0, "distorted: {harmonic:.1} dB");
}

/// Samples at 8 kHz without the noise of a codec.
const L16_NARROW: Codec = Codec::L16 { rate_hz: 8_000, channels: 1 };
