//! Mute, hold, music, formats, recordings, talking, keys.

use std::sync::{Arc, Mutex};

use sidetone_media::codec::Codec;
use sidetone_media::mix::{
    Formats, FrameSink, Hears, MixCommand, MixEvent, Seat, SeatCommand, SeatError, SeatKey,
};
use sidetone_media::time::Micros;

use super::room::{L16, Party, Room, amplitude, clip, formats};

/// From 40 ms after a command on, the party hears no part of the tone.
#[test]
fn mute_silences_within_forty_milliseconds_and_unmute_brings_back() {
    for codec in [Codec::Pcmu, Codec::G722, L16] {
        let mut room = Room::new(vec![Party::new(1, codec, 500.0), Party::silent(2, codec)]);
        room.play(1_000);
        assert!(room.party(2).level_of(500.0, 200).abs() < 1.0);
        room.order(1, SeatCommand::Mute(true));
        room.play(40);
        room.play(40);
        let level = room.party(2).level_of(500.0, 40);
        assert!(level < -40.0, "{codec:?}: {level:.1} dB after 40 ms");
        room.play(1_000);
        room.order(1, SeatCommand::Mute(false));
        room.play(40);
        room.play(40);
        let level = room.party(2).level_of(500.0, 40);
        assert!(level.abs() < 1.0, "{codec:?}: {level:.1} dB again after 40 ms");
    }
}

#[test]
fn who_holds_plays_no_music_into_the_room() {
    let mut room = Room::new(vec![
        Party::new(1, Codec::Pcmu, 500.0),
        Party::new(2, Codec::Pcmu, 800.0),
        Party::silent(3, L16),
    ]);
    room.play(500);
    room.order(1, SeatCommand::Format(Box::new(Formats { speaks: false, ..formats(Codec::Pcmu) })));
    room.play(500);
    assert!(room.party(3).level_of(500.0, 400) < -60.0);
    assert!(room.party(3).level_of(800.0, 400).abs() < 1.0);
    // It still hears audio: its phone should offer `a=sendonly`, but some send `a=sendrecv` and expect audio.
    assert!(room.party(1).level_of(800.0, 400).abs() < 1.0);
    // On full hold it is sent nothing; afterwards it receives a marker and a timestamp that counts the time on hold.
    let before = room.party(1).packets.len();
    room.order(
        1,
        SeatCommand::Format(Box::new(Formats { speaks: false, hears: false, ..formats(Codec::Pcmu) })),
    );
    room.play(1_000);
    assert_eq!(room.party(1).packets.len(), before);
    room.order(1, SeatCommand::Format(Box::new(formats(Codec::Pcmu))));
    room.play(500);
    let (last, next) = (room.party(1).packets[before - 1].0, room.party(1).packets[before].0);
    assert!(next.marker && next.sequence == last.sequence.wrapping_add(1));
    assert_eq!(next.timestamp.wrapping_sub(last.timestamp), 8 * 1_020);
    assert!(room.party(3).level_of(500.0, 200).abs() < 1.0);
}

#[test]
fn music_plays_until_something_else_is_to_be_heard() {
    let tune = clip(1_000.0, 330);
    let waits = |party: &Party| Seat { hears: Hears::Music(tune.clone()), ..party.seat() };
    let mut room = Room::new(vec![Party::new(1, Codec::Pcmu, 400.0)]);
    for (key, hz) in [(2, 600.0), (3, 800.0)] {
        let party = Party::new(key, Codec::Pcmu, hz);
        let seat = waits(&party);
        room.join(party, seat);
    }
    room.play(2_000);
    for key in [2, 3] {
        let party = room.party(key);
        let levels = [1_000.0, 400.0, 600.0, 800.0].map(|hz| party.level_of(hz, 1_000));
        assert!(levels[0].abs() < 1.0 && levels[1..].iter().all(|level| *level < -40.0), "{key}: {levels:?}");
    }
    // Both hear the same position of the clip, which was encoded once; and a waiting party is not heard.
    let heard = room.party(2).heard.clone();
    assert_eq!(heard, room.party(3).heard);
    assert_eq!(room.mix.figures().encoded_packets, 2 * room.mix.figures().ticks);
    assert!(room.party(1).lately(1_000).iter().all(|sample| sample.abs() < 10));
    for key in [2, 3] {
        room.order(key, SeatCommand::Hear(Hears::Mix));
    }
    room.play(1_000);
    for (key, heard) in [(1, [600.0, 800.0]), (2, [400.0, 800.0]), (3, [400.0, 600.0])] {
        let party = room.party(key);
        assert!(heard.iter().all(|hz| party.level_of(*hz, 900).abs() < 1.0), "{key}");
        assert!(party.level_of(1_000.0, 900) < -40.0, "{key}");
    }
}

#[test]
fn an_idle_mix_wants_no_ticks_and_sends_nothing() {
    let mut room = Room::new(vec![]);
    assert_eq!(room.mix.next_tick(), None);
    let party = Party::new(1, Codec::Pcmu, 500.0);
    let seat = Seat { hears: Hears::Nothing, ..party.seat() };
    room.join(party, seat);
    room.play(200);
    assert_eq!((room.mix.next_tick(), room.mix.figures().ticks), (None, 0));
    // One listener: ticks begin immediately and continue from there.
    let party = Party::silent(2, Codec::Pcmu);
    let seat = party.seat();
    room.join(party, seat);
    assert!(room.mix.next_tick().is_some_and(|next| next <= room.now));
    room.play(400);
    assert_eq!((room.party(2).packets.len(), room.party(1).packets.len()), (20, 0));
    assert!(room.party(2).level_of(500.0, 200).abs() < 1.0);
    assert!(room.mix.unseat(SeatKey(2)) && !room.mix.unseat(SeatKey(2)));
    assert_eq!(room.mix.next_tick(), None);
    // A single party is sent silence, because a phone that receives nothing hangs up.
    room.order(1, SeatCommand::Hear(Hears::Mix));
    room.play(400);
    assert_eq!(room.party(1).packets.len(), 20);
    assert!(room.party(1).heard.iter().all(|sample| sample.abs() < 10));
}

#[test]
fn seats_are_refused_where_they_must_be() {
    let party = Party::new(1, Codec::Pcmu, 500.0);
    let mut room = Room::new(vec![Party::new(1, Codec::Pcmu, 500.0)]);
    assert_eq!(room.mix.seat(SeatKey(1), party.seat()), Err(SeatError::Taken));
    let odd = Codec::L16 { rate_hz: 44_100, channels: 1 };
    let seat = Seat { formats: formats(odd), ..party.seat() };
    assert_eq!(room.mix.seat(SeatKey(2), seat), Err(SeatError::Rate(44_100)));
    assert_eq!(room.mix.command(SeatKey(9), SeatCommand::Mute(true)), Err(SeatError::Unknown));
    let refused = SeatCommand::Format(Box::new(formats(odd)));
    assert_eq!(room.mix.command(SeatKey(1), refused), Err(SeatError::Rate(44_100)));
    for key in 2..=u64::try_from(sidetone_media::mix::Mix::SEATS_MAX).unwrap() {
        room.mix.seat(SeatKey(key), party.seat()).unwrap();
    }
    assert_eq!(room.mix.seat(SeatKey(0), party.seat()), Err(SeatError::Full));
}

#[test]
fn another_codec_goes_on_where_the_first_one_was() {
    let mut room = Room::new(vec![Party::new(1, Codec::Pcmu, 500.0), Party::new(2, Codec::Pcmu, 900.0)]);
    room.play(1_000);
    for codec in [Codec::G722, L16, Codec::Opus, Codec::Pcma] {
        let party = room.party(2);
        party.changes_to(codec);
        let before = party.packets.len();
        room.order(2, SeatCommand::Format(Box::new(formats(codec))));
        room.play(1_500);
        let levels = [room.party(1).level_of(900.0, 500), room.party(2).level_of(500.0, 500)];
        assert!(levels.iter().all(|level| level.abs() < 1.5), "{codec:?}: {levels:?}");
        let party = room.party(2);
        let (last, next) = (party.packets[before - 1].0, party.packets[before].0);
        assert_eq!((next.ssrc, next.sequence), (last.ssrc, last.sequence.wrapping_add(1)), "{codec:?}");
        assert!(next.timestamp.wrapping_sub(last.timestamp) <= 960, "{codec:?}");
    }
}

/// A sink that keeps frames until it is full.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Frames>>, usize);

type Frames = Vec<(Micros, Vec<i16>)>;

impl FrameSink for Kept {
    fn frame(&mut self, at: Micros, pcm_16k: &[i16]) -> bool {
        let mut frames = self.0.lock().unwrap();
        frames.push((at, pcm_16k.to_vec()));
        frames.len() < self.1
    }
}

#[test]
fn the_recording_holds_everyone_and_silence_too() {
    let mut room =
        Room::new(vec![Party::new(1, Codec::Pcmu, 500.0), Party::new(2, L16, 900.0), Party::silent(3, L16)]);
    room.play(200);
    let kept = Kept(Arc::default(), 10_000);
    room.order_all(MixCommand::Record(Box::new(kept.clone())));
    room.play(1_000);
    for key in [1, 2] {
        room.order(key, SeatCommand::Mute(true));
    }
    room.play(1_000);
    room.order_all(MixCommand::StopRecording);
    room.play(1_000);
    let frames = kept.0.lock().unwrap();
    assert_eq!(frames.len(), 100);
    assert!(frames.windows(2).all(|pair| pair[1].0.since(pair[0].0) == 20_000));
    let pcm: Vec<i16> = frames.iter().flat_map(|(_, pcm)| pcm.clone()).collect();
    assert_eq!(pcm.len(), 32_000);
    for hz in [500.0, 900.0] {
        let level = 20.0 * (amplitude(&pcm[3_200..15_000], hz, 16_000) / super::room::LOUD).log10();
        assert!(level.abs() < 1.0, "{hz}: {level:.1} dB");
    }
    assert!(pcm[17_000..].iter().all(|sample| sample.abs() < 10));
}

/// A call's two sides: each on its channel, and a seat that left is silent on its own.
#[test]
fn two_seats_are_recorded_on_a_channel_each() {
    let mut room = Room::new(vec![
        Party::new(1, Codec::Pcmu, 500.0),
        Party::new(2, Codec::G722, 900.0),
        Party::new(3, Codec::Pcmu, 1_300.0),
    ]);
    for key in [1, 2, 3] {
        room.order(key, SeatCommand::Hear(Hears::Nothing));
    }
    let kept = Kept(Arc::default(), 10_000);
    let sides = [SeatKey(1), SeatKey(2)];
    room.order_all(MixCommand::RecordSides { sink: Box::new(kept.clone()), sides });
    room.play(1_000);
    room.order(2, SeatCommand::Mute(true));
    room.play(1_000);
    let frames = kept.0.lock().unwrap();
    assert_eq!(frames.len(), 100);
    let pcm: Vec<i16> = frames.iter().flat_map(|(_, pcm)| pcm.clone()).collect();
    let [left, right] = [0, 1].map(|side| pcm.iter().skip(side).step_by(2).copied().collect::<Vec<_>>());
    assert_eq!((left.len(), right.len()), (32_000, 32_000));
    for (side, own, other) in [(&left, 500.0, 900.0), (&right, 900.0, 500.0)] {
        let level =
            |hz: f64| 20.0 * (amplitude(&side[8_000..15_000], hz, 16_000) / super::room::LOUD).log10();
        assert!(level(own).abs() < 1.0 && level(other) < -40.0 && level(1_300.0) < -40.0, "{own}");
    }
    assert!(right[17_000..].iter().all(|sample| sample.abs() < 10), "it is muted");
}

#[test]
fn a_sink_that_ends_is_told_of_once() {
    let mut room = Room::new(vec![Party::silent(1, Codec::Pcmu)]);
    let kept = Kept(Arc::default(), 5);
    room.order_all(MixCommand::Record(Box::new(kept.clone())));
    room.play(1_000);
    assert_eq!(kept.0.lock().unwrap().len(), 5);
    let ends = room.events.iter().filter(|(_, event)| *event == MixEvent::RecordingEnded).count();
    assert_eq!((ends, room.party(1).packets.len()), (1, 50));
}

#[test]
fn talk_is_told_of_those_who_may_be_heard() {
    let mut room = Room::new(vec![Party::silent(1, Codec::Pcmu), Party::silent(2, L16)]);
    let changes = |room: &mut Room| -> Vec<(u64, bool, i64)> {
        let events = std::mem::take(&mut room.events);
        let talk = |(at, event): (Micros, MixEvent)| match event {
            MixEvent::Talking { seat, talking } => Some((seat.0, talking, at.0 / 1_000)),
            _ => None,
        };
        events.into_iter().filter_map(talk).collect()
    };
    room.play(500);
    assert_eq!(changes(&mut room), []);
    let began = room.now.0 / 1_000;
    room.party(1).tone = Some((500.0, 3_000.0));
    room.play(1_000);
    let told = changes(&mut room);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].0 == 1 && told[0].1 && told[0].2 - began <= 140, "{told:?}");
    // A muted party does not count as talking, whatever it sends; nor does one on hold.
    let now = room.now.0 / 1_000;
    room.order(1, SeatCommand::Mute(true));
    room.play(1_000);
    let told = changes(&mut room);
    assert!(told.len() == 1 && !told[0].1 && told[0].2 - now <= 20, "{told:?}");
    room.order(1, SeatCommand::Format(Box::new(Formats { speaks: false, ..formats(Codec::Pcmu) })));
    room.order(1, SeatCommand::Mute(false));
    room.play(1_000);
    assert_eq!(changes(&mut room), []);
    room.order(1, SeatCommand::Format(Box::new(formats(Codec::Pcmu))));
    room.play(1_000);
    assert_eq!(changes(&mut room).len(), 1);
    let ended = room.now.0 / 1_000;
    room.party(1).tone = None;
    room.play(2_000);
    let told = changes(&mut room);
    assert!(told.len() == 1 && !told[0].1, "{told:?}");
    assert!((500..=860).contains(&(told[0].2 - ended)), "{told:?}");
}
