//! Which parties hear which, how loud, and with what delay.

use sidetone_media::codec::Codec;
use sidetone_media::mix::{Mix, Seat};
use sidetone_media::rtp::RtpPacket;

use super::room::{L16, LOUD, Party, Room, formats};

/// No frequency is a sum of others or of their harmonics, so that distortion by G.711 and Opus does not count
/// as a tone.
const TONES: [f64; 6] = [430.0, 617.0, 941.0, 1_327.0, 1_873.0, 2_503.0];

/// All parties talk; each hears every tone except its own.
fn check(name: &str, codecs: &[Codec]) {
    let parties = (1..).zip(codecs).zip(TONES).map(|((key, codec), hz)| Party::new(key, *codec, hz));
    let mut room = Room::new(parties.collect());
    room.play(2_000);
    for party in &room.parties {
        let own = party.tone.unwrap().0;
        for other in room.parties.iter().map(|party| party.tone.unwrap().0) {
            let level = party.level_of(other, 1_000);
            if other == own {
                assert!(level < -40.0, "{name}: {:?} hears itself at {level:.1} dB", party.key);
            } else {
                assert!(level.abs() < 1.0, "{name}: {:?} hears {other} Hz at {level:.1} dB", party.key);
            }
        }
    }
}

#[test]
fn each_hears_exactly_the_others() {
    check("G.711", &[Codec::Pcmu; 5]);
    check("both laws", &[Codec::Pcmu, Codec::Pcma, Codec::Pcmu, Codec::Pcma, Codec::Pcmu]);
    check("G.722", &[Codec::G722; 5]);
    check("Opus", &[Codec::Opus; 5]);
    check("one of each", &[Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::Pcmu, L16, Codec::Opus]);
}

/// 6 kHz passes from full band to full band, whatever the other codecs are.
#[test]
fn wide_parties_hear_each_other_wide_beside_narrow_ones() {
    let mut room = Room::new(vec![
        Party::new(1, Codec::G722, 6_000.0).with(350.0),
        Party::new(2, L16, 400.0),
        Party::silent(3, Codec::Pcmu),
        Party::silent(4, Codec::G722),
    ]);
    room.play(1_500);
    let levels = [2, 4].map(|key| room.party(key).level_of(6_000.0, 1_000));
    assert!(levels.iter().all(|level| level.abs() < 1.0), "{levels:?}");
    let narrow = room.party(3);
    assert!(narrow.level_of(400.0, 1_000).abs() < 1.0);
    // 6 kHz causes no alias at 2 kHz.
    assert!(narrow.level_of(2_000.0, 1_000) < -40.0);
}

#[test]
fn packets_are_as_long_as_was_settled() {
    for codec in [Codec::Pcmu, Codec::G722, Codec::Opus, L16] {
        for ptime_ms in [10, 20, 30, 40, 50, 60] {
            let mut room = Room::new(vec![Party::new(1, Codec::Pcmu, 700.0)]);
            let party = Party::silent(2, codec);
            let seat = Seat { formats: formats_of(codec, ptime_ms), ..party.seat() };
            room.join(party, seat);
            room.play(1_800);
            let name = format!("{codec:?} of {ptime_ms} ms");
            let party = room.party(2);
            let level = party.level_of(700.0, 1_000);
            assert!(level.abs() < 1.0, "{name}: {level:.2} dB");
            let clock = codec.rtp_clock().hz() as usize / 1_000;
            for pair in party.packets.windows(2) {
                let ((one, ms, _), (next, ..)) = (&pair[0], &pair[1]);
                assert_eq!(next.sequence, one.sequence.wrapping_add(1), "{name}");
                assert_eq!(next.timestamp.wrapping_sub(one.timestamp) as usize, ms * clock, "{name}");
                assert_eq!((next.marker, next.ssrc), (false, one.ssrc), "{name}");
            }
            let expected = match (codec, ptime_ms) {
                (Codec::Opus, 30) => 20,
                (Codec::Opus, 50) => 40,
                (Codec::L16 { .. }, _) => 10,
                _ => ptime_ms as usize,
            };
            assert!(party.packets.iter().all(|(_, ms, _)| *ms == expected), "{name}");
            assert!(party.packets[0].0.marker, "{name}");
        }
    }
}

fn formats_of(codec: Codec, ptime_ms: u32) -> sidetone_media::mix::Formats {
    sidetone_media::mix::Formats { ptime_ms, ..formats(codec) }
}

/// Sixteen loud parties: the sum is eight times the 16-bit range, and is limited without wrapping.
#[test]
fn a_loud_room_is_limited() {
    let parties = (1..=16).map(|key| Party::new(key, L16, 500.0).at(32_000.0));
    let mut room = Room::new(parties.chain([Party::silent(20, L16)]).collect());
    room.play(1_000);
    let listener = room.party(20);
    let peak = listener.lately(500).iter().map(|sample| i32::from(*sample).abs()).max().unwrap();
    assert!((32_000..=32_767).contains(&peak), "{peak}");
    // A sum that wraps has steps of 65,536; this one is as steep as sixteen added sines.
    assert!(listener.largest_step(500) < 31_000, "{}", listener.largest_step(500));
    assert!(listener.level_of(500.0, 500) > 20.0);
}

/// Of twenty parties that talk, the sixteen loudest are heard, always the same ones.
#[test]
fn only_the_loudest_are_heard() {
    let loud = |key| Party::new(key, L16, 200.0 + 100.0 * key as f64).at(LOUD / 4.0);
    let quiet = |key| loud(key).at(LOUD / 8.0);
    let parties = (1..=16).map(loud).chain((17..=20).map(quiet)).chain([Party::silent(30, L16)]);
    let mut room = Room::new(parties.collect());
    room.play(1_000);
    let listener = room.party(30);
    for key in 1..=20_u64 {
        let level = listener.level_of(200.0 + 100.0 * key as f64, 500);
        assert_eq!(level > -13.0, key <= 16, "{key}: {level:.1} dB");
        assert!(key <= 16 || level < -60.0, "{key}: {level:.1} dB");
    }
    assert_eq!(room.mix.figures().speakers, Mix::SPEAKERS_MAX);
}

/// The delay from the packet with speech to the packet in which it is heard is at most 60 ms, wherever in a
/// tick the packets arrive.
#[test]
fn a_clean_network_is_delayed_by_sixty_milliseconds_at_most() {
    let mut worst = 0;
    for offset in (500..20_000).step_by(1_500) {
        let mut room = Room::new(vec![Party::silent(1, L16), Party::silent(2, L16)]);
        let begin = room.now;
        // The grid begins with the first tick.
        room.drain();
        let (mut said_at, mut pulses) = (None, 0);
        for n in 0..200_i64 {
            room.now = begin + n * 20_000 + offset;
            let mut pcm = [0_i16; 960];
            if n >= 50 {
                // A voice that begins in the middle of a packet.
                let quiet = if n == 50 { 480 } else { 0 };
                pcm.iter_mut().skip(quiet).step_by(2).for_each(|sample| *sample = 8_000);
                said_at.get_or_insert(room.now.0 + 10_000);
            }
            pulses += 1;
            let (header, payload) = room.party(1).speaks(&pcm);
            room.mix.receive(
                room.now,
                sidetone_media::mix::SeatKey(1),
                &RtpPacket { header, payload: &payload },
            );
            room.now = begin + (n + 1) * 20_000;
            room.drain();
        }
        assert_eq!(pulses, 200);
        let listener = room.party(2);
        let first = listener.heard.iter().position(|sample| *sample > 6_000).unwrap();
        let (mut sample, mut at) = (0, 0);
        for (_, ms, sent) in &listener.packets {
            if first < sample + ms * 48 {
                at = sent.0 + (first - sample) as i64 * 1_000 / 48;
                break;
            }
            sample += ms * 48;
        }
        worst = worst.max(at - said_at.unwrap());
    }
    assert!((0..=60_000).contains(&worst), "{worst} µs");
}

/// Silent parties with Opus are decoded only sometimes; when one begins to talk and its packets do not grow,
/// at most 80 ms are lost.
#[test]
fn who_is_silent_costs_little_and_is_soon_heard() {
    let mut room = Room::new(vec![Party::new(1, Codec::Opus, 500.0).at(6.0), Party::silent(2, L16)]);
    room.play(3_000);
    assert_eq!(room.mix.figures().decoded_frames, 0, "a room's noise is mixed");
    room.party(1).tone = Some((500.0, LOUD));
    room.party(2).heard.clear();
    room.play(400);
    let party = room.party(2);
    let first = party.heard.iter().position(|sample| sample.abs() > 1_000).unwrap() / 48;
    // The normal delay of 60 ms, and the lost part.
    assert!(first <= 60 + 80, "{first} ms");
}
