//! Changes in a party's stream: pauses, noise, keys, other sources and formats, invalid packets.

use proptest::prelude::*;
use sidetone_media::codec::{Codec, Encoder};
use sidetone_media::playout::{Peek, Playout, PlayoutFormats, Pulled, Pushed};
use sidetone_media::rtp::{Packet, RtpPacket};
use sidetone_media::time::Micros;

use super::network::{Sent, linear, packets, play};

#[test]
fn a_pause_is_no_loss() {
    // A second of voice; then nothing is sent for two seconds, but timestamps and numbers continue.
    let mut sent = packets(250, 20, |_| 0);
    sent.retain(|sent| !(2_000_000..4_000_000).contains(&sent.arrival_us));
    for (sequence, sent) in (0_u16..).zip(&mut sent) {
        sent.header.sequence = sequence;
    }
    let heard = play(&linear(), &sent, 0);
    // At both ends 100 ms were treated as late; for the pause that is undone.
    assert!(heard.figures.concealed_ms <= 200, "{:?}", heard.figures);
    assert!(heard.count(Pulled::Nothing) >= 130, "{:?}", heard.frames);
    assert_eq!(heard.packets().len(), sent.len());
}

#[test]
fn comfort_noise_is_heard_until_the_voice_comes_back() {
    let mut sent = packets(150, 20, |_| 0);
    sent.retain(|sent| sent.arrival_us <= 2_000_000 || sent.arrival_us >= 3_000_000);
    let noise = sent.iter_mut().find(|sent| sent.arrival_us == 2_000_000).unwrap();
    noise.header.payload_type = 13;
    noise.payload = vec![45];
    for (sequence, sent) in (0_u16..).zip(&mut sent) {
        sent.header.sequence = sequence;
    }
    let heard = play(&linear(), &sent, 0);
    let noises = heard.count(Pulled::Noise);
    assert!((45..=55).contains(&noises), "{noises}");
    assert!(heard.figures.concealed_ms <= 100, "{:?}", heard.figures);
}

#[test]
fn a_key_is_no_loss() {
    let mut playout = Playout::new(&linear(), 1);
    let mut frame = [0; 960];
    let mut heard = Vec::new();
    for sent in packets(30, 20, |_| 0) {
        let n = sent.header.sequence.wrapping_sub(65_500);
        let now = Micros(sent.arrival_us);
        match n {
            10..20 => playout.event(),
            _ => drop(playout.push(now, &RtpPacket { header: sent.header, payload: &sent.payload })),
        }
        heard.push(playout.pull(now + 15_000, &mut frame));
    }
    assert!(!heard.contains(&Pulled::Concealed), "{heard:?}");
    assert_eq!(heard.iter().filter(|pulled| **pulled == Pulled::Nothing).count(), 10);
    assert_eq!(playout.figures().concealed_ms, 0);
}

#[test]
fn another_source_or_a_jump_of_time_begins_anew() {
    type Change = fn(&mut Packet);
    let cases: &[(&str, Change)] = &[
        ("another SSRC", |header| header.ssrc = 8),
        ("another timestamp", |header| header.timestamp = header.timestamp.wrapping_add(1 << 30)),
        ("an earlier timestamp", |header| header.timestamp = header.timestamp.wrapping_sub(1 << 20)),
        ("another sequence number", |header| header.sequence = header.sequence.wrapping_add(20_000)),
        ("everything", |header| {
            (header.ssrc, header.sequence, header.timestamp) = (9, header.sequence.wrapping_mul(1), 5)
        }),
    ];
    for (name, change) in cases {
        let mut sent = packets(100, 20, |_| 0);
        sent.iter_mut().skip(50).for_each(|sent| change(&mut sent.header));
        if *name == "everything" {
            for (n, sent) in (0_u32..).zip(sent.iter_mut().skip(50)) {
                sent.header.timestamp = n * 160;
            }
        }
        let heard = play(&linear(), &sent, 3_000);
        let packets = heard.packets();
        assert!(packets.len() >= 96, "{name}: {packets:?}");
        assert!(packets.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
        assert!(heard.figures.concealed_ms <= 200, "{name}: {:?}", heard.figures);
    }
}

#[test]
fn every_format_is_played_at_its_rate_or_at_the_one_asked_for() {
    let l16 = Codec::L16 { rate_hz: 48_000, channels: 2 };
    for codec in [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::Opus, l16] {
        for rate_hz in [None, Some(8_000), Some(16_000), Some(48_000)] {
            let formats = PlayoutFormats { audio: vec![(96, codec)], noise: Vec::new(), rate_hz };
            let heard = play(&formats, &tone(codec, 100), 6_000);
            let rate = rate_hz.unwrap_or(codec.sample_rate_hz());
            assert_eq!(heard.count(Pulled::Concealed), 5, "{codec:?}: only the end");
            let voice = &heard.samples[heard.samples.len() / 6..heard.samples.len() / 2];
            let crossings = voice.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
            let hz = crossings as f64 * f64::from(rate) / voice.len() as f64;
            assert!((395.0..405.0).contains(&hz), "{codec:?} at {rate}: {hz:.0} Hz");
        }
    }
}

/// 400 Hz in packets of 20 ms.
fn tone(codec: Codec, count: u32) -> Vec<Sent> {
    let mut encoder = Encoder::new(codec).unwrap();
    let samples = codec.sample_rate_hz() / 50;
    let step = std::f64::consts::TAU * 400.0 / f64::from(codec.sample_rate_hz());
    let packet = |n: u32| {
        let pcm: Vec<i16> = (n * samples..(n + 1) * samples)
            .map(|at| (8_000.0 * (step * f64::from(at)).sin()) as i16)
            .collect();
        let mut payload = vec![0; 4_000];
        let size = encoder.encode(&pcm, &mut payload).unwrap();
        payload.truncate(size);
        let timestamp = n * codec.rtp_clock().hz() / 50;
        let header = Packet { ssrc: 1, timestamp, sequence: n as u16, payload_type: 96, ..Packet::default() };
        Sent { arrival_us: 1_000_000 + i64::from(n) * 20_000, header, payload }
    };
    (0..count).map(packet).collect()
}

#[test]
fn the_payload_type_changes_in_mid_stream() {
    let formats = PlayoutFormats {
        audio: vec![(0, Codec::Pcmu), (8, Codec::Pcma), (96, Codec::Opus), (9, Codec::G722)],
        noise: vec![13],
        rate_hz: None,
    };
    let mut sent = Vec::new();
    for (part, (number, codec)) in
        (0_u32..).zip([(0, Codec::Pcmu), (8, Codec::Pcma), (9, Codec::G722), (96, Codec::Opus)])
    {
        for mut packet in tone(codec, 50) {
            packet.header.payload_type = number;
            packet.header.sequence += part as u16 * 50;
            packet.header.timestamp += part * 50 * codec.rtp_clock().hz() / 50;
            packet.arrival_us += i64::from(part) * 1_000_000;
            sent.push(packet);
        }
    }
    let heard = play(&formats, &sent, 1_000);
    assert!(heard.count(Pulled::Voice) >= 195, "{}", heard.count(Pulled::Voice));
    assert!(heard.figures.concealed_ms <= 200, "{:?}", heard.figures);
}

#[test]
fn a_frame_is_known_before_it_is_decoded_and_can_be_passed_over() {
    for codec in [Codec::Pcmu, Codec::G722, Codec::Opus] {
        let formats = PlayoutFormats { audio: vec![(96, codec)], noise: Vec::new(), rate_hz: None };
        let mut playout = Playout::new(&formats, 1);
        let mut frame = [0; 960];
        let mut clicks = 0;
        for (n, sent) in tone(codec, 60).into_iter().enumerate() {
            playout.push(Micros(sent.arrival_us), &RtpPacket { header: sent.header, payload: &sent.payload });
            let now = Micros(sent.arrival_us + 15_000);
            match (codec, playout.peek(now)) {
                (Codec::Opus, peek) => assert_eq!(peek, Peek::Unknown),
                (_, Peek::Level(power)) => assert!(n < 5 || power > 100_000, "{codec:?} {n}: {power}"),
                (_, peek) => panic!("{codec:?} {n}: {peek:?}"),
            }
            let samples = playout.frame_samples();
            if (20..40).contains(&n) {
                assert_eq!(playout.skip(now), Pulled::Voice);
                continue;
            }
            assert_eq!(playout.pull(now, &mut frame), Pulled::Voice, "{codec:?} {n}");
            // A 400 Hz sine with peak 8,000 changes by at most 2,514 per sample at 8 kHz.
            clicks += usize::from(frame[..samples].windows(2).any(|pair| pair[0].abs_diff(pair[1]) > 3_200));
        }
        assert_eq!(clicks, 0, "{codec:?}");
        assert_eq!(playout.peek(Micros(9_000_000)), Peek::Unknown, "{codec:?} may be late");
        assert_eq!(playout.figures().concealed_ms, 0);
    }
}

#[test]
fn nothing_to_hear_is_known_without_decoding() {
    let formats = PlayoutFormats { audio: vec![(96, Codec::Opus)], ..PlayoutFormats::default() };
    let mut playout = Playout::new(&formats, 1);
    assert_eq!(playout.peek(Micros(0)), Peek::Nothing);
    let header = Packet { payload_type: 96, ..Packet::default() };
    assert_eq!(playout.push(Micros(0), &RtpPacket { header, payload: &[0x78] }), Pushed::Waits);
    assert_eq!(playout.peek(Micros(50_000)), Peek::Nothing);
    assert_eq!(playout.pull(Micros(50_000), &mut [0; 960]), Pulled::Noise);
    let header = Packet { payload_type: 5, ..Packet::default() };
    assert_eq!(playout.push(Micros(0), &RtpPacket { header, payload: &[0x78] }), Pushed::Foreign);
}

#[test]
fn a_timestamp_that_jumps_back_does_not_exceed_the_longest_delay() {
    for back_samples in (800_u32..32_000).step_by(800) {
        let mut sent = packets(60, 20, |_| 0);
        let jumped = sent.get_mut(50).unwrap();
        jumped.header.timestamp = jumped.header.timestamp.wrapping_sub(back_samples);
        let mut playout = Playout::new(&linear(), 1);
        for sent in &sent {
            let now = Micros(sent.arrival_us);
            playout.push(now, &RtpPacket { header: sent.header, payload: &sent.payload });
            playout.pull(now + 15_000, &mut [0; 960]);
            assert!(playout.figures().delay_ms <= 240, "{back_samples}: {:?}", playout.figures());
        }
    }
}

proptest! {
    /// For packets of any kind at any time: no panic, every frame complete, the delay within its bound.
    #[test]
    fn garbage_is_survived(
        steps in prop::collection::vec(
            (any::<u8>(), 0_u8..8, any::<u16>(), any::<u32>(), 0_i64..60_000, 0_usize..1_500, any::<u64>()),
            1..300,
        ),
    ) {
        let audio = vec![
            (0, Codec::Pcmu),
            (1, Codec::Pcma),
            (2, Codec::G722),
            (3, Codec::Opus),
            (4, Codec::L16 { rate_hz: 48_000, channels: 2 }),
        ];
        for rate_hz in [None, Some(16_000)] {
            let formats = PlayoutFormats { audio: audio.clone(), noise: vec![5], rate_hz };
            let mut playout = Playout::new(&formats, 1);
            let mut now = Micros(0);
            let mut even = 0_u32;
            for (how, payload_type, sequence, timestamp, later, len, fill) in &steps {
                now = now + *later;
                even += 1;
                let wild = how % 4 == 0;
                let header = Packet {
                    ssrc: u32::from(how % 16 == 0),
                    timestamp: if wild { *timestamp } else { even * 160 },
                    sequence: if wild { *sequence } else { even as u16 },
                    payload_type: *payload_type,
                    payload_len: 0,
                    marker: how % 2 == 0,
                };
                let payload: Vec<u8> = (0..*len as u64).map(|n| (fill.wrapping_mul(n | 1) >> 32) as u8).collect();
                playout.push(now, &RtpPacket { header, payload: &payload });
                match how % 8 {
                    0 => playout.event(),
                    1 => drop(playout.skip(now)),
                    2..6 => {
                        let mut frame = [0; 960];
                        playout.peek(now);
                        prop_assert!(playout.frame_samples() <= 960);
                        playout.pull(now, &mut frame);
                    }
                    _ => {}
                }
                prop_assert!(playout.figures().delay_ms <= 240, "{:?}", playout.figures());
            }
        }
    }
}
