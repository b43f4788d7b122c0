//! Keys that a leg's party receives as tones in the audio (ITU-T Q.23), because the party has neither telephone events
//! nor INFO. The tones are written over G.711 that is sent to the party in any case.
//!
//! Like events ([`KeyPresses`](super::key_presses::KeyPresses)), tones need a running stream, and wait for it for a
//! limited time.

use std::f32::consts::TAU;

use super::payload::{PCMA, PCMU, payload};
use crate::codec::g711::{PCMA_SILENCE, PCMU_SILENCE, pcm_to_pcma, pcm_to_pcmu};
use crate::dtmf::KeyTone;
use crate::time::Micros;

/// The keys of one leg that wait or are being played.
#[derive(Debug, Default)]
pub(super) struct KeyTones {
    waiting: [Option<(KeyTone, Micros)>; WAITING_MAX],
    now: Option<Playing>,
}

/// The key that is being played.
#[derive(Clone, Copy, Debug)]
struct Playing {
    /// The fraction of a period by which each tone advances per sample.
    steps: [f32; 2],
    /// The phases of the tones, in periods.
    turns: [f32; 2],
    /// Samples of the tones, then of the pause after them, that are still to be written.
    tone: usize,
    pause: usize,
}

impl KeyTones {
    /// Queues a key; false when too many wait.
    pub(super) fn press(&mut self, key: KeyTone, now: Micros) -> bool {
        let slot = self.waiting.iter_mut().find(|slot| slot.is_none());
        slot.map(|slot| *slot = Some((key, now))).is_some()
    }

    /// Whether no key is being played and none waits.
    pub(super) fn is_idle(&self) -> bool {
        self.now.is_none() && self.waiting.iter().all(Option::is_none)
    }

    /// Writes tones, and the pause between two keys, over the payload of a G.711 packet; leaves other packets
    /// unchanged.
    pub(super) fn write_over(&mut self, datagram: &mut [u8], now: Micros) {
        let (encode, silence): (fn(i16) -> u8, u8) = match datagram.get(1).map(|octet| octet & 0x7f) {
            Some(PCMU) => (pcm_to_pcmu, PCMU_SILENCE),
            Some(PCMA) => (pcm_to_pcma, PCMA_SILENCE),
            _ => return,
        };
        let Some(audio) = payload(datagram).and_then(|range| datagram.get_mut(range)) else { return };
        for byte in audio {
            let Some(playing) = self.playing(now) else { return };
            *byte = playing.next().map_or(silence, encode);
            if playing.is_over() {
                self.now = None;
            }
        }
    }

    /// The key that is being played, or else the next one that has not waited too long.
    fn playing(&mut self, now: Micros) -> Option<&mut Playing> {
        while self.now.is_none() {
            let (key, at) = self.waiting.first_mut()?.take()?;
            self.waiting.rotate_left(1);
            if now.since(at) <= WAIT_MAX_US {
                self.now = Playing::new(key);
            }
        }
        self.now.as_mut()
    }
}

impl Playing {
    /// `None` for a code that is no key.
    fn new(key: KeyTone) -> Option<Playing> {
        let [low, high] = *TONES.get(usize::from(key.code))?;
        let duration_ms = key.duration_ms.clamp(DURATION_MIN_MS, DURATION_MAX_MS);
        Some(Playing {
            steps: [low / RATE_HZ, high / RATE_HZ],
            turns: [0.0; 2],
            tone: usize::try_from(duration_ms * 8).unwrap_or_default(),
            pause: PAUSE,
        })
    }

    /// The next sample of the tones; `None` in the pause.
    fn next(&mut self) -> Option<i16> {
        if self.tone == 0 {
            self.pause = self.pause.saturating_sub(1);
            return None;
        }
        self.tone -= 1;
        let [low, high] = self.turns.map(|turns| (TAU * turns).sin());
        for (turns, step) in self.turns.iter_mut().zip(self.steps) {
            *turns = (*turns + step).fract();
        }
        Some((low * LOW_AMPLITUDE + high * HIGH_AMPLITUDE) as i16)
    }

    fn is_over(&self) -> bool {
        self.tone == 0 && self.pause == 0
    }
}

/// The tones of the keys by their event codes (RFC 4733 §3.2), Hz.
const TONES: [[f32; 2]; 16] = [
    [941.0, 1_336.0],
    [697.0, 1_209.0],
    [697.0, 1_336.0],
    [697.0, 1_477.0],
    [770.0, 1_209.0],
    [770.0, 1_336.0],
    [770.0, 1_477.0],
    [852.0, 1_209.0],
    [852.0, 1_336.0],
    [852.0, 1_477.0],
    [941.0, 1_209.0],
    [941.0, 1_477.0],
    [697.0, 1_633.0],
    [770.0, 1_633.0],
    [852.0, 1_633.0],
    [941.0, 1_633.0],
];
const RATE_HZ: f32 = 8_000.0;
/// -8 and -6 dBm0: the upper tone is louder, because lines weaken it more (ITU-T Q.23, Q.24).
const LOW_AMPLITUDE: f32 = 8_900.0;
const HIGH_AMPLITUDE: f32 = 11_200.0;
/// Keys that wait for audio.
const WAITING_MAX: usize = 16;
/// Longest wait for audio.
const WAIT_MAX_US: i64 = 5_000_000;
/// 80 ms between two keys; receivers need 40 (ITU-T Q.24).
const PAUSE: usize = 640;
/// Some receivers need more than the 40 ms of ITU-T Q.24.
const DURATION_MIN_MS: u32 = 80;
const DURATION_MAX_MS: u32 = 8_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::g711::PCMA_TO_PCM;

    fn packet(payload_type: u8, samples: usize) -> Vec<u8> {
        let mut packet = vec![0x80, payload_type, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9];
        packet.resize(12 + samples, 0x33);
        packet
    }

    const KEY: KeyTone = KeyTone { code: 5, duration_ms: 100 };

    #[test]
    fn a_key_is_as_long_as_it_was_pressed_and_a_pause_follows() {
        let mut tones = KeyTones::default();
        assert!(tones.is_idle() && tones.press(KEY, Micros(0)) && !tones.is_idle());
        let mut bytes = Vec::new();
        for _ in 0..12 {
            let mut packet = packet(8, 160);
            tones.write_over(&mut packet, Micros(0));
            bytes.extend_from_slice(&packet[12..]);
        }
        let untouched = bytes.iter().rposition(|byte| *byte != 0x33).unwrap();
        assert_eq!((untouched, tones.is_idle()), (800 + 640 - 1, true));
        assert!(bytes[800..1_440].iter().all(|byte| *byte == PCMA_SILENCE));
        let loudest = bytes[..800].iter().map(|byte| PCMA_TO_PCM[usize::from(*byte)]).max().unwrap();
        assert!((17_000..=20_500).contains(&loudest), "{loudest}");
    }

    #[test]
    fn other_codecs_and_old_keys_leave_the_audio_alone() {
        let mut tones = KeyTones::default();
        tones.press(KEY, Micros(0));
        for (payload_type, at) in [(9, 0), (101, 0), (0, 5_000_001)] {
            let mut changed = packet(payload_type, 160);
            tones.write_over(&mut changed, Micros(at));
            assert_eq!(changed, packet(payload_type, 160), "{payload_type}");
        }
        assert!(tones.is_idle(), "it waited too long");
        for _ in 0..WAITING_MAX {
            assert!(tones.press(KEY, Micros(0)));
        }
        assert!(!tones.press(KEY, Micros(0)), "one too many");
    }
}
