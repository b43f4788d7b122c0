//! Clips for one seat and for all seats.

use sidetone_media::codec::Codec;
use sidetone_media::mix::{Formats, Hears, MixCommand, MixEvent, Seat, SeatCommand, SeatKey};

use super::room::{Party, Room, clip, formats};

fn played(room: &Room) -> Vec<(i64, u64, u64)> {
    let told = room.events.iter().filter_map(|(at, event)| match event {
        MixEvent::Played { seat, token } => Some((at.0 / 1_000, seat.0, *token)),
        _ => None,
    });
    told.collect()
}

fn room() -> Room {
    let parties =
        [Party::new(1, Codec::Pcmu, 500.0), Party::silent(2, Codec::Pcmu), Party::silent(3, Codec::G722)];
    let mut room = Room::new(parties.into());
    room.play(500);
    room
}

#[test]
fn a_clip_for_one_seat_is_heard_there_alone_over_a_quieter_room() {
    let mut room = room();
    let begin = room.now.0 / 1_000;
    room.order(2, SeatCommand::Play { clips: vec![clip(1_000.0, 300), clip(1_400.0, 700)], token: 7 });
    room.play(280);
    assert!(room.party(2).level_of(1_000.0, 200).abs() < 1.0);
    room.play(700);
    assert!(played(&room).is_empty());
    let party = room.party(2);
    let levels = [1_400.0, 1_000.0, 500.0].map(|hz| party.level_of(hz, 500));
    assert!(levels[0].abs() < 1.0 && levels[1] < -40.0 && (levels[2] + 12.0).abs() < 1.0, "{levels:?}");
    room.play(500);
    let told = played(&room);
    assert_eq!(told.len(), 1);
    assert!((told[0].1, told[0].2) == (2, 7) && (980..=1_020).contains(&(told[0].0 - begin)), "{told:?}");
    let party = room.party(2);
    assert!(party.level_of(500.0, 400).abs() < 1.0 && party.level_of(1_400.0, 400) < -40.0);
    assert!(room.party(3).level_of(1_400.0, 1_400) < -40.0);
    // The seat hears the same audio as all others again, and shares their encoding.
    let before = room.mix.figures().encoded_packets;
    room.play(200);
    assert_eq!(room.mix.figures().encoded_packets - before, 3 * 10);
}

#[test]
fn orders_to_play_wait_for_each_other_and_are_stopped_together() {
    let mut room = room();
    for (token, hz) in [(1, 1_000.0), (2, 1_400.0), (3, 1_800.0)] {
        room.order(2, SeatCommand::Play { clips: vec![clip(hz, 200)], token });
    }
    room.order(2, SeatCommand::Play { clips: vec![], token: 4 });
    room.play(300);
    assert_eq!(played(&room).iter().map(|told| told.2).collect::<Vec<_>>(), [1]);
    assert!(room.party(2).level_of(1_400.0, 80).abs() < 1.0);
    room.order(2, SeatCommand::StopPlaying);
    room.play(40);
    room.play(500);
    assert_eq!(played(&room).len(), 1, "who stops knows that it was stopped");
    let party = room.party(2);
    assert!([1_400.0, 1_800.0].iter().all(|hz| party.level_of(*hz, 500) < -40.0));
    room.order(2, SeatCommand::Play { clips: vec![], token: 5 });
    room.play(40);
    assert_eq!(played(&room).last().map(|told| told.2), Some(5));
}

#[test]
fn stopping_takes_one_tick() {
    let mut room = room();
    room.order(2, SeatCommand::Play { clips: vec![clip(1_000.0, 5_000)], token: 1 });
    room.play(500);
    room.order(2, SeatCommand::StopPlaying);
    // The next packet fades out, the one after it is clean.
    room.play(20);
    room.play(40);
    assert!(room.party(2).level_of(1_000.0, 40) < -40.0);
}

#[test]
fn a_clip_is_heard_over_nothing_and_instead_of_music() {
    let mut room = Room::new(vec![]);
    let tune = clip(800.0, 5_000);
    for (key, hears) in [(1, Hears::Nothing), (2, Hears::Music(tune))] {
        let party = Party::silent(key, Codec::Pcmu);
        let seat = Seat { hears, ..party.seat() };
        room.join(party, seat);
    }
    room.play(200);
    for key in [1, 2] {
        room.order(key, SeatCommand::Play { clips: vec![clip(1_500.0, 1_000)], token: key });
    }
    room.play(1_000);
    for key in [1, 2] {
        let party = room.party(key);
        assert!(party.level_of(1_500.0, 800).abs() < 1.0 && party.level_of(800.0, 800) < -40.0, "{key}");
    }
    room.play(1_000);
    assert_eq!(played(&room).len(), 2);
    assert!((50..=52).contains(&room.party(1).packets.len()), "{}", room.party(1).packets.len());
    assert!(room.party(2).level_of(800.0, 800).abs() < 1.0);
}

/// A phone on hold: nothing is sent, but the end of the clip is still reported.
#[test]
fn a_clip_ends_for_a_seat_that_may_not_be_sent_anything() {
    let mut room = Room::new(vec![]);
    let party = Party::silent(1, Codec::Pcmu);
    let seat = Seat { formats: Formats { hears: false, ..formats(Codec::Pcmu) }, ..party.seat() };
    room.join(party, seat);
    room.order(1, SeatCommand::Play { clips: vec![clip(1_500.0, 400)], token: 9 });
    room.play(600);
    assert_eq!((played(&room).len(), room.party(1).packets.len(), room.mix.next_tick()), (1, 0, None));
}

#[test]
fn a_queue_that_is_full_ends_at_once() {
    let mut room = room();
    room.order(2, SeatCommand::Play { clips: vec![clip(1_000.0, 100); 200], token: 1 });
    room.play(20);
    assert_eq!(played(&room).len(), 1);
}

#[test]
fn a_clip_for_all_is_heard_by_all_who_hear_the_mix() {
    let mut room = room();
    let party = Party::silent(9, Codec::Pcmu);
    let seat = Seat { hears: Hears::Music(clip(700.0, 1_000)), ..party.seat() };
    room.join(party, seat);
    room.play(500);
    room.order_all(MixCommand::Play(vec![clip(1_200.0, 1_000)]));
    room.play(900);
    for key in [1, 2, 3] {
        assert!(room.party(key).level_of(1_200.0, 700).abs() < 1.0, "{key}");
    }
    assert!(room.party(2).level_of(500.0, 700).abs() < 1.0);
    assert!(room.party(9).level_of(1_200.0, 700) < -40.0);
    room.play(1_000);
    assert!(room.party(2).level_of(1_200.0, 700) < -40.0);
    assert!(!room.mix.unseat(SeatKey(77)));
}
