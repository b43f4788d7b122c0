//! DTMF keys of parties.

use sidetone_media::codec::Codec;
use sidetone_media::mix::{MixEvent, SeatKey};
use sidetone_media::rtp::{Packet, RtpPacket};

use super::room::{EVENT, L16, Party, Room};

fn digits(room: &Room) -> String {
    let told = room.events.iter().filter_map(|(_, event)| match event {
        MixEvent::Digit { seat: SeatKey(1), digit } => Some(*digit),
        _ => None,
    });
    told.collect()
}

/// Presses a key for 100 ms; the audio continues besides the events, as in some phones.
fn press(room: &mut Room, code: u8, sequence: &mut u16, timestamp: u32) {
    for n in 0..8_u16 {
        let (end, duration) = (n >= 5, 160 * (n.min(4) + 1));
        let [high, low] = duration.to_be_bytes();
        let payload = [code, if end { 0x8a } else { 0x0a }, high, low];
        let header = Packet {
            ssrc: 0x0a0a,
            timestamp,
            payload_len: 4,
            sequence: *sequence,
            payload_type: EVENT,
            marker: n == 0,
        };
        *sequence = sequence.wrapping_add(1);
        // The second and the sixth packet are lost.
        if n != 1 && n != 5 {
            room.mix.receive(room.now, SeatKey(1), &RtpPacket { header, payload: &payload });
        }
        room.play(20);
    }
}

#[test]
fn every_key_is_told_once_and_its_tone_is_not_mixed() {
    for codec in [Codec::Pcmu, Codec::G722] {
        let mut room = Room::new(vec![Party::new(1, codec, 700.0), Party::silent(2, L16)]);
        room.play(500);
        assert!(room.party(2).level_of(700.0, 200).abs() < 1.0);
        let (mut sequence, mut timestamp) = (30_000, 1_000_000);
        for code in [1, 2, 2, 10, 11] {
            press(&mut room, code, &mut sequence, timestamp);
            timestamp += 1_600;
            assert!(room.party(2).level_of(700.0, 100) < -40.0, "{codec:?}");
        }
        assert_eq!(digits(&room), "122*#");
        room.play(500);
        assert!(room.party(2).level_of(700.0, 200).abs() < 1.0, "{codec:?}");
        assert_eq!(digits(&room), "122*#");
    }
}

/// Presses keys as tones in the audio of party 1, 80 ms each.
fn play_tones(room: &mut Room, keys: &[(f64, f64)]) {
    for key in keys {
        for frame in 0..8_u32 {
            let party = room.parties.iter_mut().find(|party| party.key == SeatKey(1)).unwrap();
            let hz = party.codec.sample_rate_hz();
            let tone = |n: u32, f: f64| (std::f64::consts::TAU * f * f64::from(n) / f64::from(hz)).sin();
            let samples = frame * hz / 50..(frame + 1) * hz / 50;
            let pcm: Vec<i16> = samples
                .map(|n| if frame < 4 { (2_500.0 * (tone(n, key.0) + tone(n, key.1))) as i16 } else { 0 })
                .collect();
            let (header, payload) = party.speaks(&pcm);
            room.mix.receive(room.now, SeatKey(1), &RtpPacket { header, payload: &payload });
            let (header, payload) = room.party(2).says();
            room.mix.receive(room.now, SeatKey(2), &RtpPacket { header, payload: &payload });
            room.tick();
        }
    }
}

/// A party without telephone events: its tones are digits, also while it is muted and while it hears music, and the
/// others hear at most their first 60 ms. With telephone events its tones are audio.
#[test]
fn tones_are_keys_of_a_party_without_telephone_events() {
    use sidetone_media::mix::{Formats, Hears, Seat, SeatCommand};
    let keys = [(697.0, 1_336.0), (941.0, 1_209.0), (941.0, 1_477.0), (941.0, 1_477.0)];
    for codec in [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::Opus, L16] {
        let mut room = Room::new(vec![]);
        let party = Party::silent(1, codec);
        let formats = Formats { event_receive: None, event_send: None, ..super::room::formats(codec) };
        room.join(party, Seat { formats: formats.clone(), muted: false, hears: Hears::Mix, seed: 1 });
        let listener = Party::silent(2, L16);
        let seat = listener.seat();
        room.join(listener, seat);
        room.play(1_000);
        play_tones(&mut room, &keys);
        assert_eq!(digits(&room), "2*##", "{codec:?}");
        let heard: usize = room.party(2).lately(640).iter().filter(|sample| sample.abs() > 500).count();
        assert!(heard < 4 * 48 * 60, "{codec:?}: {heard} samples of the tones are heard");
        room.order(1, SeatCommand::Mute(true));
        play_tones(&mut room, &keys[..1]);
        room.order(1, SeatCommand::Hear(Hears::Music(super::room::clip(300.0, 500))));
        play_tones(&mut room, &keys[1..2]);
        room.play(200);
        assert_eq!(digits(&room), "2*##2*", "{codec:?}: muted, and with music");
        room.order(1, SeatCommand::Format(Box::new(super::room::formats(codec))));
        play_tones(&mut room, &keys);
        assert_eq!(digits(&room), "2*##2*", "{codec:?}: it has telephone events now");
    }
}

/// Keys are reported while nothing is played to the party and nothing of it is mixed, and without a tick.
#[test]
fn keys_are_told_at_once_whatever_the_seat_hears() {
    use sidetone_media::mix::{Formats, Hears, Seat};
    let mut room = Room::new(vec![]);
    let party = Party::silent(1, Codec::Pcmu);
    let formats = Formats { speaks: false, hears: false, ..super::room::formats(Codec::Pcmu) };
    let seat = Seat { formats, muted: true, hears: Hears::Nothing, seed: 1 };
    room.join(party, seat);
    let (mut sequence, timestamp) = (30_000, 1_000_000);
    press(&mut room, 5, &mut sequence, timestamp);
    assert_eq!((digits(&room).as_str(), room.mix.next_tick()), ("5", None));
}
