//! The noise in the pauses of a room.

use sidetone_media::audio::level;
use sidetone_media::codec::Codec;
use sidetone_media::mix::SeatCommand;
use sidetone_media::rtp::RtpPacket;
use sidetone_media::simulate::Random;

use super::room::{L16, Party, Room};

/// A room of a party with a background, and of two that send digital silence.
struct Pauses {
    room: Room,
    random: Random,
    /// The effective value of the background.
    background: f64,
}

impl Pauses {
    fn new(codec: Codec, background_dbov: f64) -> Pauses {
        let parties = vec![Party::silent(1, codec), Party::silent(2, codec), Party::silent(3, codec)];
        let background = 32_768.0 * 10_f64.powf(background_dbov / 20.0);
        Pauses { room: Room::new(parties), random: Random::new(1), background }
    }

    /// Party 1 sends its background, and a tone of -22 dBov while it talks.
    fn play(&mut self, ms: usize, talks: bool) {
        for _ in 0..ms / 20 {
            for party in &mut self.room.parties {
                let rate = party.codec.sample_rate_hz();
                let is_one = party.key.0 == 1;
                let pcm: Vec<i16> = (0..rate / 50)
                    .map(|n| {
                        let noise = self.random.normal(0.0, self.background);
                        let angle = std::f64::consts::TAU * 500.0 * f64::from(n) / f64::from(rate);
                        let tone = if talks { 3_640.0 * angle.sin() } else { 0.0 };
                        if is_one { (noise + tone).round() as i16 } else { 0 }
                    })
                    .collect();
                let (header, payload) = party.speaks(&pcm);
                self.room.mix.receive(self.room.now, party.key, &RtpPacket { header, payload: &payload });
            }
            self.room.tick();
        }
    }

    fn heard_dbov(&mut self, key: u64, ms: usize) -> Option<f64> {
        level::dbov(level::power(self.room.party(key).lately(ms)))
    }
}

/// In a pause the others hear the level of the background that they heard, each at the rate of its codec.
#[test]
fn a_pause_has_the_level_of_the_background() {
    for codec in [Codec::Pcmu, Codec::G722, L16] {
        for background in [-68.0, -58.0] {
            let mut pauses = Pauses::new(codec, background);
            pauses.play(2_000, false);
            pauses.play(2_000, true);
            pauses.play(3_000, false);
            for key in [2, 3] {
                let heard = pauses.heard_dbov(key, 1_500).expect("noise");
                // The level of a G.722 party that is not heard is estimated from its codes: too high for white noise.
                let most = if codec == Codec::G722 { 8.0 } else { 3.0 };
                assert!((heard - background).abs() < most, "{codec:?} {background}: {heard}");
            }
            // A voice has its own background: the noise ends.
            let before = pauses.room.mix.figures().decoded_frames;
            pauses.play(1_000, true);
            assert!(pauses.room.mix.figures().decoded_frames > before + 40);
        }
    }
}

#[test]
fn a_room_without_background_and_a_muted_one() {
    let mut pauses = Pauses::new(Codec::Pcmu, -120.0);
    pauses.play(2_000, true);
    pauses.play(2_000, false);
    assert_eq!(pauses.heard_dbov(2, 1_000), None, "nothing was heard that could go on");

    // The level stays when the party is muted, and a party alone hears none.
    let mut pauses = Pauses::new(Codec::Pcmu, -58.0);
    pauses.play(2_000, false);
    pauses.room.order(1, SeatCommand::Mute(true));
    pauses.play(1_000, false);
    let heard = pauses.heard_dbov(2, 500).expect("noise");
    assert!((heard + 58.0).abs() < 3.0, "{heard}");
    for key in [1, 3] {
        let key = pauses.room.party(key).key;
        assert!(pauses.room.mix.unseat(key));
    }
    pauses.play(1_000, false);
    assert_eq!(pauses.heard_dbov(2, 500), None);
}

/// A party that talks alone still hears the noise, so that its line does not seem dead. Between two voices there is no
/// noise.
#[test]
fn a_voice_hears_noise_and_two_voices_hear_each_other() {
    let mut pauses = Pauses::new(L16, -60.0);
    pauses.play(2_000, false);
    pauses.play(2_000, true);
    let heard = pauses.heard_dbov(1, 1_000).expect("noise");
    assert!((heard + 60.0).abs() < 3.0, "{heard}");
    // What party 2 hears of party 1 is the tone without added noise: as loud as party 1 sends it.
    let heard = pauses.room.party(2).lately(1_000).to_vec();
    let tone = super::room::amplitude(&heard, 500.0, 48_000);
    assert!((tone / 3_640.0 - 1.0).abs() < 0.03, "{tone}");
    let rest = level::power(&heard) as f64 - tone * tone / 2.0;
    let rest_dbov = 10.0 * (rest / 32_768.0_f64.powi(2)).log10();
    assert!(rest_dbov < -58.0, "{rest_dbov}");
}
