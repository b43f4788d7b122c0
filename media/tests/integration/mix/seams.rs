//! No clicks when parties join, leave, begin to speak, or get another source.

use sidetone_media::codec::Codec;
use sidetone_media::mix::{Hears, SeatCommand, SeatKey};

use super::room::{L16, Party, Room, clip};

/// The largest step of two added tones, plus that of a fade of 5 ms.
fn natural(hz: &[f64], rate: f64) -> i32 {
    hz.iter().map(|hz| (std::f64::consts::TAU * hz / rate * 2_500.0) as i32).sum::<i32>() + 400
}

#[test]
fn coming_going_muting_and_unmuting_do_not_click() {
    for (codec, rate) in [(Codec::Pcmu, 8_000.0), (L16, 48_000.0)] {
        let mut room = Room::new(vec![Party::new(1, codec, 300.0), Party::silent(2, codec)]);
        room.play(500);
        let limit = natural(&[300.0, 410.0], rate);
        let party = Party::new(3, codec, 410.0);
        let seat = party.seat();
        room.join(party, seat);
        room.play(310);
        for muted in [true, false, true, false] {
            room.order(3, SeatCommand::Mute(muted));
            room.play(130);
        }
        room.mix.unseat(SeatKey(3));
        room.parties.retain(|party| party.key != SeatKey(3));
        room.play(300);
        let step = room.party(2).largest_step(1_000);
        assert!(step <= limit, "{codec:?}: {step} over {limit}");
    }
}

#[test]
fn going_from_music_to_the_room_and_back_does_not_click() {
    for (codec, rate) in [(Codec::Pcmu, 8_000.0), (Codec::G722, 16_000.0), (L16, 48_000.0)] {
        let mut room =
            Room::new(vec![Party::new(1, codec, 300.0), Party::silent(2, codec), Party::silent(3, codec)]);
        room.play(500);
        let tune = clip(410.0, 10_000);
        for _ in 0..5 {
            room.order(2, SeatCommand::Hear(Hears::Music(tune.clone())));
            room.play(310);
            room.order(2, SeatCommand::Play { clips: vec![clip(350.0, 130)], token: 0 });
            room.play(70);
            room.order(2, SeatCommand::StopPlaying);
            room.play(110);
            room.order(2, SeatCommand::Hear(Hears::Mix));
            room.play(310);
        }
        let limit = natural(&[300.0, 410.0], rate);
        let step = room.party(2).largest_step(4_000);
        assert!(step <= limit, "{codec:?}: {step} over {limit}");
    }
}

/// A listener with G.722 or Opus changes from the shared encoding to its own when it speaks, and back: its
/// decoder plays a tone without a break.
#[test]
fn a_listener_who_speaks_hears_the_others_without_a_seam() {
    for (codec, rate) in [(Codec::G722, 16_000.0), (Codec::Opus, 48_000.0)] {
        let mut room =
            Room::new(vec![Party::new(1, L16, 300.0), Party::silent(2, codec), Party::silent(3, codec)]);
        room.play(1_000);
        for _ in 0..6 {
            room.party(2).tone = Some((1_000.0, 2_500.0));
            room.play(310);
            room.party(2).tone = None;
            room.play(1_300);
        }
        let party = room.party(2);
        let (step, limit) = (party.largest_step(9_000), natural(&[300.0], rate));
        assert!(step <= limit, "{codec:?}: {step} over {limit}");
        assert!(party.level_of(1_000.0, 9_000) < -40.0, "{codec:?}");
        assert!(party.level_of(300.0, 9_000).abs() < 1.0, "{codec:?}: {}", party.level_of(300.0, 9_000));
        // In the end both silent parties share an encoding again; the talker's has two packets per tick.
        let before = room.mix.figures().encoded_packets;
        room.play(200);
        assert_eq!(room.mix.figures().encoded_packets - before, 3 * 10, "{codec:?}");
    }
}
