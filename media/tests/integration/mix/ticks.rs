//! A driver that calls late.

use sidetone_media::codec::Codec;
use sidetone_media::mix::SeatKey;
use sidetone_media::rtp::RtpPacket;

use super::room::{Party, Room};

#[test]
fn a_late_driver_sends_no_burst_and_keeps_the_time() {
    let mut room = Room::new(vec![Party::new(1, Codec::Pcmu, 500.0), Party::silent(2, Codec::Pcmu)]);
    room.play(1_000);
    let before = room.party(2).packets.len();
    // The driver does not call for 226 ms, while packets still arrive.
    for _ in 0..10 {
        let (header, payload) = room.party(1).says();
        room.mix.receive(room.now, SeatKey(1), &RtpPacket { header, payload: &payload });
        room.now = room.now + 20_000;
    }
    room.now = room.now + 13_000;
    room.drain();
    let figures = room.mix.figures();
    let party = room.party(2);
    assert_eq!((party.packets.len() - before, figures.skipped_ticks), (2, 9));
    let (last, first, second) =
        (party.packets[before - 1].0, party.packets[before].0, party.packets[before + 1].0);
    assert_eq!(first.sequence, last.sequence.wrapping_add(1));
    assert_eq!(first.timestamp.wrapping_sub(last.timestamp), 160 * 10);
    assert_eq!((first.marker, second.marker), (true, false));
    assert_eq!(second.timestamp.wrapping_sub(first.timestamp), 160);
    room.now = room.now + 7_000;
    room.play(1_000);
    assert!(room.party(2).level_of(500.0, 500).abs() < 1.0);
    assert_eq!(room.mix.figures().skipped_ticks, 9);
}
