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
