//! Parties that only one other hears, and parties that hear nothing.

use std::sync::{Arc, Mutex};

use sidetone_media::codec::Codec;
use sidetone_media::mix::{FrameSink, Hears, MixCommand, SeatCommand, SeatKey};
use sidetone_media::time::Micros;

use super::room::{L16, LOUD, Party, Room, amplitude};

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<i16>>>);

impl FrameSink for Kept {
    fn frame(&mut self, _at: Micros, pcm_16k: &[i16]) -> bool {
        self.0.lock().unwrap().extend_from_slice(pcm_16k);
        true
    }
}

/// A coach (1), an agent (2) and a customer (3).
fn three(codecs: [Codec; 3]) -> Room {
    let [coach, agent, customer] = codecs;
    Room::new(vec![
        Party::new(1, coach, 500.0),
        Party::new(2, agent, 800.0),
        Party::new(3, customer, 1_300.0),
    ])
}

fn whisper(room: &mut Room, to: Option<u64>) {
    room.order(1, SeatCommand::Whisper(to.map(SeatKey)));
}

#[test]
fn a_whisper_is_heard_by_one_party_and_in_no_recording() {
    for codecs in [[Codec::Pcmu; 3], [L16, Codec::Pcmu, Codec::G722], [Codec::G722, L16, Codec::Pcma]] {
        let mut room = three(codecs);
        room.play(1_000);
        whisper(&mut room, Some(2));
        room.play(200);
        let kept = Kept::default();
        room.order_all(MixCommand::Record(Box::new(kept.clone())));
        room.play(1_000);
        let agent = [500.0, 1_300.0].map(|hz| room.party(2).level_of(hz, 800));
        assert!(agent.iter().all(|level| level.abs() < 1.0), "{codecs:?}: {agent:?}");
        assert!(room.party(2).level_of(800.0, 800) < -40.0, "the agent does not hear itself");
        let customer = [500.0, 800.0].map(|hz| room.party(3).level_of(hz, 800));
        assert!(customer[0] < -60.0 && customer[1].abs() < 1.0, "{codecs:?}: {customer:?}");
        let coach = [800.0, 1_300.0].map(|hz| room.party(1).level_of(hz, 800));
        assert!(coach.iter().all(|level| level.abs() < 1.0), "{codecs:?}: {coach:?}");
        assert!(room.party(1).level_of(500.0, 800) < -40.0, "the coach does not hear itself");
        let pcm = kept.0.lock().unwrap().clone();
        let recorded = |hz| 20.0 * (amplitude(&pcm, hz, 16_000) / LOUD).max(1e-6).log10();
        assert!(recorded(500.0) < -40.0 && recorded(800.0).abs() < 1.0, "{codecs:?}");
        whisper(&mut room, None);
        room.play(1_000);
        assert!(room.party(3).level_of(500.0, 800).abs() < 1.0, "{codecs:?}: all hear it again");
    }
}

/// From the command on, no sample of a whisper reaches the customer, except in the fade of 5 ms.
#[test]
fn a_whisper_never_leaks_while_it_changes() {
    let mut room = three([L16; 3]);
    room.play(1_000);
    for to in [Some(2), None, Some(2), Some(3), Some(2)] {
        whisper(&mut room, to);
        room.play(60);
        let steps = [2, 3].map(|key| room.party(key).largest_step(60));
        assert!(steps.iter().all(|step| *step < 2_000), "{to:?}: a click of {steps:?}");
        room.play(100);
        let level = room.party(3).level_of(500.0, 100);
        let is_heard = to != Some(2);
        assert_eq!(level > -20.0, is_heard, "{to:?}: {level:.1} dB");
    }
}

#[test]
fn a_whisper_to_a_party_that_left_is_heard_by_none() {
    let mut room = three([Codec::Pcmu; 3]);
    whisper(&mut room, Some(2));
    room.play(500);
    room.mix.unseat(SeatKey(2));
    room.play(500);
    assert!(room.party(3).level_of(500.0, 300) < -60.0);
    assert!(room.party(1).level_of(1_300.0, 300).abs() < 1.0);
}

#[test]
fn a_deaf_party_is_sent_silence_and_is_heard() {
    for codec in [Codec::Pcmu, Codec::G722, Codec::Opus] {
        let mut room = Room::new(vec![
            Party::new(1, codec, 500.0),
            Party::new(2, codec, 800.0),
            Party::silent(3, codec),
            Party::silent(4, codec),
        ]);
        room.play(1_000);
        for key in [1, 3, 4] {
            room.order(key, SeatCommand::Hear(Hears::Silence));
        }
        room.play(300);
        let before = room.party(1).packets.len();
        let encoded = room.mix.figures().encoded_packets;
        room.play(1_000);
        for key in [1, 3, 4] {
            assert!(room.party(key).level_of(800.0, 900) < -60.0, "{codec:?}: {key}");
        }
        assert_eq!(room.party(1).packets.len() - before, 50, "{codec:?}: packets continue");
        assert!(room.party(2).level_of(500.0, 900).abs() < 1.5, "{codec:?}: the deaf party is heard");
        // Deaf parties share their silence: one encoding for them, and one for the party that hears the room.
        assert_eq!(room.mix.figures().encoded_packets - encoded, 100, "{codec:?}");
        room.order(1, SeatCommand::Hear(Hears::Mix));
        room.play(1_000);
        assert!(room.party(1).level_of(800.0, 500).abs() < 1.5, "{codec:?}: it hears the room again");
    }
}
