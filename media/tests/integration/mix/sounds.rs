//! Sounds for all seats and for one seat, beside prompts.

use std::sync::{Arc, Mutex};

use sidetone_media::codec::Codec;
use sidetone_media::mix::{FrameSink, Hears, MixCommand, SeatCommand};
use sidetone_media::time::Micros;

use super::room::{L16, LOUD, Party, Room, amplitude, clip};

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<i16>>>);

impl FrameSink for Kept {
    fn frame(&mut self, _at: Micros, pcm_16k: &[i16]) -> bool {
        self.0.lock().unwrap().extend_from_slice(pcm_16k);
        true
    }
}

fn room(codec: Codec) -> Room {
    let mut room =
        Room::new(vec![Party::new(1, codec, 500.0), Party::silent(2, codec), Party::silent(3, Codec::Pcmu)]);
    room.play(500);
    room
}

#[test]
fn a_sound_for_all_is_heard_beside_the_parties_and_recorded() {
    for codec in [Codec::Pcmu, L16, Codec::G722] {
        let mut room = room(codec);
        let kept = Kept::default();
        room.order_all(MixCommand::Record(Box::new(kept.clone())));
        room.order_all(MixCommand::PlaySound(clip(1_100.0, 5_000)));
        // A prompt does not wait for the end of the sound, and does not end it.
        room.order_all(MixCommand::Play(vec![clip(1_900.0, 400)]));
        room.play(400);
        let levels = [500.0, 1_100.0, 1_900.0].map(|hz| room.party(2).level_of(hz, 200));
        assert!(levels.iter().all(|level| level.abs() < 1.0), "{codec:?}: {levels:?}");
        room.play(600);
        let levels = [500.0, 1_100.0].map(|hz| room.party(2).level_of(hz, 400));
        assert!(levels.iter().all(|level| level.abs() < 1.0), "{codec:?}: {levels:?}");
        assert!(room.party(1).level_of(1_100.0, 400).abs() < 1.0, "{codec:?}: who talks hears it too");
        let pcm = kept.0.lock().unwrap().clone();
        let recorded = 20.0 * (amplitude(&pcm[8_000..], 1_100.0, 16_000) / LOUD).max(1e-6).log10();
        assert!(recorded.abs() < 1.0, "{codec:?}: {recorded}");
        room.order_all(MixCommand::StopSound);
        room.play(60);
        assert!(room.party(2).largest_step(60) < 3_000, "{codec:?}: a click");
        room.play(400);
        assert!(room.party(2).level_of(1_100.0, 300) < -40.0, "{codec:?}");
        assert!(room.party(2).level_of(500.0, 300).abs() < 1.0, "{codec:?}");
    }
}

/// The sides of a recording with two channels, of the last second of it.
fn sides(kept: &Kept) -> [Vec<i16>; 2] {
    let pcm = kept.0.lock().unwrap();
    let last = &pcm[pcm.len() - 32_000..];
    [0, 1].map(|side| last.iter().skip(side).step_by(2).copied().collect())
}

#[test]
fn a_recording_with_two_channels_has_the_seats_on_their_sides_and_clips_on_both() {
    let tones = [500.0, 800.0, 1_300.0];
    let mut room = Room::new(vec![
        Party::new(1, Codec::Pcmu, tones[0]),
        Party::new(2, Codec::G722, tones[1]),
        Party::new(3, L16, tones[2]),
    ]);
    room.play(500);
    let kept = Kept::default();
    room.order(1, SeatCommand::Left(true));
    room.order_all(MixCommand::RecordChannels(Box::new(kept.clone())));
    room.order_all(MixCommand::PlaySound(clip(1_900.0, 5_000)));
    let is_on = |side: &[i16], hz| {
        let level = 20.0 * (amplitude(side, hz, 16_000) / LOUD).max(1e-6).log10();
        assert!(level.abs() < 1.0 || level < -40.0, "{hz} Hz: {level:.1} dB");
        level > -20.0
    };
    for left in [[true, false, false], [true, false, true], [false, false, true], [false; 3]] {
        for (key, left) in (1..).zip(left) {
            room.order(key, SeatCommand::Left(left));
        }
        room.play(1_200);
        let [on_left, on_right] = sides(&kept);
        for (hz, left) in tones.into_iter().zip(left) {
            assert_eq!((is_on(&on_left, hz), is_on(&on_right, hz)), (left, !left), "{hz} Hz, {left}");
        }
        assert!(is_on(&on_left, 1_900.0) && is_on(&on_right, 1_900.0), "the sound is on both");
    }
    // Not more and not fewer samples than the mix had ticks.
    let before = kept.0.lock().unwrap().len();
    room.play(1_000);
    assert_eq!(kept.0.lock().unwrap().len() - before, 2 * 16_000);
}

#[test]
fn a_new_sound_takes_the_place_of_the_old_one_and_ends_by_itself() {
    let mut room = room(Codec::Pcmu);
    room.order_all(MixCommand::PlaySound(clip(1_100.0, 5_000)));
    room.play(200);
    room.order_all(MixCommand::PlaySound(clip(1_700.0, 300)));
    room.play(280);
    let levels = [1_700.0, 1_100.0].map(|hz| room.party(2).level_of(hz, 200));
    assert!(levels[0].abs() < 1.0 && levels[1] < -40.0, "{levels:?}");
    room.play(300);
    assert!(room.party(2).level_of(1_700.0, 200) < -40.0);
    // A stop while no sound plays does not affect a later sound.
    room.order_all(MixCommand::StopSound);
    room.order_all(MixCommand::PlaySound(clip(1_100.0, 5_000)));
    room.play(300);
    assert!(room.party(2).level_of(1_100.0, 200).abs() < 1.0, "a stop before it does not end it");
}

#[test]
fn a_sound_for_one_seat_is_heard_there_alone_and_outlives_prompts() {
    for hears in [Hears::Mix, Hears::Silence] {
        let mut room = room(Codec::Pcmu);
        let kept = Kept::default();
        room.order_all(MixCommand::Record(Box::new(kept.clone())));
        room.order(2, SeatCommand::Hear(hears.clone()));
        room.order(2, SeatCommand::PlaySound(clip(1_100.0, 5_000)));
        room.play(400);
        assert!(room.party(2).level_of(1_100.0, 200).abs() < 1.0, "{hears:?}");
        room.order(2, SeatCommand::Play { clips: vec![clip(1_900.0, 200)], token: 1 });
        room.order(2, SeatCommand::StopPlaying);
        room.play(400);
        assert!(room.party(2).level_of(1_100.0, 200).abs() < 1.0, "{hears:?}: it goes on");
        for other in [1, 3] {
            assert!(room.party(other).level_of(1_100.0, 700) < -40.0, "{hears:?}: {other}");
        }
        let pcm = kept.0.lock().unwrap().clone();
        assert!(amplitude(&pcm, 1_100.0, 16_000) < LOUD / 100.0, "{hears:?}: it is in no recording");
        room.order(2, SeatCommand::StopSound);
        room.play(60);
        room.play(300);
        assert!(room.party(2).level_of(1_100.0, 300) < -40.0, "{hears:?}: it is stopped");
        let heard = room.party(2).level_of(500.0, 300);
        assert_eq!(heard.abs() < 1.0, hears == Hears::Mix, "{hears:?}: {heard}");
    }
}
