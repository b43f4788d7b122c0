//! For any commands a mix does not panic, and every seat that hears something has a packet in every tick.

use proptest::prelude::*;
use sidetone_media::codec::Codec;
use sidetone_media::mix::{Formats, Hears, Mix, MixCommand, Seat, SeatCommand, SeatKey};
use sidetone_media::rtp::{Packet, RtpPacket};
use sidetone_media::time::Micros;

use super::room::{AUDIO, L16, clip, formats};

#[derive(Clone, Debug)]
enum Step {
    Seat { key: u64, codec: Codec, ptime_ms: u32, hears: u8 },
    Unseat(u64),
    Format { key: u64, codec: Codec, ptime_ms: u32, hears: bool, speaks: bool },
    Mute(u64, bool),
    Hear(u64, u8),
    Play(u64, usize),
    Stop(u64),
    PlayAll,
    Packet { key: u64, payload_type: u8, timestamp: u32, sequence: u16, payload: Vec<u8> },
    Tick(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..6_u64;
    let codec = prop::sample::select(vec![
        Codec::Pcmu,
        Codec::Pcma,
        Codec::G722,
        L16,
        Codec::L16 { rate_hz: 16_000, channels: 2 },
        Codec::Opus,
    ]);
    let ptime = prop::sample::select(vec![0_u32, 10, 20, 30, 40, 60, 1_000]);
    let payload = prop::collection::vec(any::<u8>(), 0..400);
    prop_oneof![
        3 => (key.clone(), codec.clone(), ptime.clone(), 0..3_u8)
            .prop_map(|(key, codec, ptime_ms, hears)| Step::Seat { key, codec, ptime_ms, hears }),
        1 => key.clone().prop_map(Step::Unseat),
        1 => (key.clone(), codec, ptime, any::<bool>(), any::<bool>())
            .prop_map(|(key, codec, ptime_ms, hears, speaks)| Step::Format { key, codec, ptime_ms, hears, speaks }),
        1 => (key.clone(), any::<bool>()).prop_map(|(key, muted)| Step::Mute(key, muted)),
        1 => (key.clone(), 0..3_u8).prop_map(|(key, hears)| Step::Hear(key, hears)),
        1 => (key.clone(), 0..100_usize).prop_map(|(key, ms)| Step::Play(key, ms)),
        1 => key.clone().prop_map(Step::Stop),
        1 => Just(Step::PlayAll),
        8 => (key, prop_oneof![3 => Just(AUDIO), 1 => any::<u8>()], any::<u32>(), any::<u16>(), payload)
            .prop_map(|(key, payload_type, timestamp, sequence, payload)| {
                Step::Packet { key, payload_type, timestamp, sequence, payload }
            }),
        8 => prop_oneof![8 => Just(20_000_i64), 1 => 0..200_000_i64].prop_map(Step::Tick),
    ]
}

fn hears(which: u8) -> Hears {
    match which {
        0 => Hears::Mix,
        1 => Hears::Music(clip(500.0, 50)),
        _ => Hears::Nothing,
    }
}

/// The state of a seat on which its packets depend.
#[derive(Clone, Copy)]
struct Seated {
    hears: bool,
    something: bool,
    plays: bool,
    packet_ms: u64,
    /// Milliseconds of audio sent to it since its last change.
    sent_ms: u64,
    ticked_ms: u64,
}

/// The packet duration that results from a requested one.
fn packet_ms(codec: Codec, ptime_ms: u32) -> u64 {
    let asked = u64::from((ptime_ms / 10).clamp(1, 6)) * 10;
    match codec {
        Codec::L16 { rate_hz: 48_000, .. } => 10,
        Codec::L16 { .. } => asked.min(20),
        Codec::Opus => [20, 10, 20, 20, 40, 40, 60][asked as usize / 10],
        _ => asked,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whoever_hears_something_is_sent_all_of_its_time(steps in prop::collection::vec(step(), 1..160)) {
        let mut mix = Mix::new();
        let mut seats: [Option<Seated>; 6] = [None; 6];
        let mut now = Micros(0);
        for step in steps {
            run(&mut mix, &mut seats, &mut now, step)?;
        }
    }
}

fn run(
    mix: &mut Mix,
    seats: &mut [Option<Seated>; 6],
    now: &mut Micros,
    step: Step,
) -> Result<(), TestCaseError> {
    let at = |key: u64| usize::try_from(key).unwrap();
    match step {
        Step::Seat { key, codec, ptime_ms, hears: which } => {
            let formats = Formats { ptime_ms, ..formats(codec) };
            let taken =
                mix.seat(SeatKey(key), Seat { formats, muted: false, hears: hears(which), seed: key });
            prop_assert_eq!(taken.is_ok(), seats[at(key)].is_none());
            let (something, packet_ms) = (which < 2, packet_ms(codec, ptime_ms));
            seats[at(key)].get_or_insert(Seated {
                hears: true,
                something,
                plays: false,
                packet_ms,
                sent_ms: 0,
                ticked_ms: 0,
            });
        }
        Step::Unseat(key) => prop_assert_eq!(mix.unseat(SeatKey(key)), seats[at(key)].take().is_some()),
        Step::Format { key, codec, ptime_ms, hears, speaks } => {
            let formats = Formats { ptime_ms, hears, speaks, ..formats(codec) };
            let done = mix.command(SeatKey(key), SeatCommand::Format(Box::new(formats)));
            prop_assert_eq!(done.is_ok(), seats[at(key)].is_some());
            if let Some(seated) = &mut seats[at(key)] {
                let packet_ms = packet_ms(codec, ptime_ms);
                *seated = Seated { hears, packet_ms, sent_ms: 0, ticked_ms: 0, ..*seated };
            }
        }
        Step::Mute(key, muted) => {
            let _ = mix.command(SeatKey(key), SeatCommand::Mute(muted));
        }
        Step::Hear(key, which) => {
            let _ = mix.command(SeatKey(key), SeatCommand::Hear(hears(which)));
            if let Some(seated) = &mut seats[at(key)] {
                *seated = Seated { something: which < 2, sent_ms: 0, ticked_ms: 0, ..*seated };
            }
        }
        Step::Play(key, ms) => {
            let _ = mix.command(SeatKey(key), SeatCommand::Play { clips: vec![clip(900.0, ms)], token: 1 });
            if let Some(seated) = &mut seats[at(key)] {
                seated.plays = true;
            }
        }
        Step::Stop(key) => {
            let _ = mix.command(SeatKey(key), SeatCommand::StopPlaying);
        }
        Step::PlayAll => mix.mix_command(MixCommand::Play(vec![clip(1_100.0, 70)])),
        Step::Packet { key, payload_type, timestamp, sequence, payload } => {
            let payload_len = u32::try_from(payload.len()).unwrap();
            let header = Packet { ssrc: 1, timestamp, payload_len, sequence, payload_type, marker: false };
            mix.receive(*now, SeatKey(key), &RtpPacket { header, payload: &payload });
        }
        Step::Tick(us) => {
            *now = *now + us;
            ticks(mix, seats, *now)?;
        }
    }
    while mix.poll_event().is_some() {}
    Ok(())
}

fn ticks(mix: &mut Mix, seats: &mut [Option<Seated>; 6], now: Micros) -> Result<(), TestCaseError> {
    let mut made = 0;
    while mix.next_tick().is_some_and(|next| next <= now) {
        mix.tick(now);
        made += 1;
        for seated in seats.iter_mut().flatten() {
            seated.ticked_ms += 20;
        }
        let mut sent = [0_u64; 6];
        while let Some((key, datagram)) = mix.poll_packet() {
            prop_assert!(datagram.len() > 12 && datagram.len() <= 2_048);
            sent[usize::try_from(key.0).unwrap()] += 1;
        }
        for (seat, count) in seats.iter_mut().zip(sent) {
            let Some(seated) = seat else {
                prop_assert_eq!(count, 0);
                continue;
            };
            if !seated.hears || (!seated.something && !seated.plays) {
                prop_assert_eq!(count, 0);
            }
            seated.sent_ms += count * seated.packet_ms;
            if seated.hears && seated.something {
                // Audio in an incomplete packet, or from before the first tick.
                let missing = seated.ticked_ms as i64 - seated.sent_ms as i64;
                prop_assert!(
                    missing.unsigned_abs() < seated.packet_ms.max(1),
                    "{} ms of {}",
                    missing,
                    seated.packet_ms
                );
            }
        }
    }
    prop_assert!(made <= 2);
    Ok(())
}
