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
    // One that is stopped twice, or when nothing plays, is silent.
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
