//! Keys that a leg's party presses as tones in its audio, because it has neither telephone events nor INFO. Its peer
//! receives them in another form.
//!
//! Only G.711 is read: tones do not reliably survive any other codec of phones. A key is reported as soon as its press
//! is confirmed, after about 50 ms. From then on until its end the party's audio is silence, so that the peer does not
//! receive the key twice.

use super::payload::{PCMA, PCMU, payload};
use crate::codec::g711::{PCMA_SILENCE, PCMA_TO_PCM, PCMU_SILENCE, PCMU_TO_PCM};
use crate::dtmf_audio::DtmfDetector;

/// Finds the keys in the audio of one leg.
#[derive(Debug)]
pub(super) struct KeyEar {
    detector: DtmfDetector,
    frame: [i16; FRAME],
    filled: usize,
    /// SSRC and sequence number expected next.
    next: Option<(u32, u16)>,
    /// The sequence number after that of a packet far behind: if it arrives next, the sender has restarted.
    restart: Option<u16>,
    found: [Option<char>; FOUND_MAX],
}

impl KeyEar {
    /// An instance before the first packet.
    pub(super) fn new() -> KeyEar {
        let detector = DtmfDetector::new();
        KeyEar { detector, frame: [0; FRAME], filled: 0, next: None, restart: None, found: [None; FOUND_MAX] }
    }

    /// Reads an accepted RTP packet of the party, and silences it while a key is pressed. Late packets are not read.
    pub(super) fn hear(&mut self, datagram: &mut [u8]) {
        let (table, silence) = match datagram.get(1).map(|octet| octet & 0x7f) {
            Some(PCMU) => (&PCMU_TO_PCM, PCMU_SILENCE),
            Some(PCMA) => (&PCMA_TO_PCM, PCMA_SILENCE),
            _ => return,
        };
        let Some([_, _, q0, q1, _, _, _, _, s0, s1, s2, s3]) = datagram.first_chunk::<12>() else { return };
        let (sequence, ssrc) = (u16::from_be_bytes([*q0, *q1]), u32::from_be_bytes([*s0, *s1, *s2, *s3]));
        let Some(audio) = payload(datagram).and_then(|range| datagram.get_mut(range)) else { return };
        let missing = match self.next {
            Some((of, next)) if of == ssrc => sequence.wrapping_sub(next),
            _ => 0,
        };
        // RFC 3550 appendix A.1.
        let is_far_behind = missing >= LATE && missing.wrapping_neg() > MISORDER_MAX;
        let restarts = is_far_behind && self.restart == Some(sequence);
        self.restart = is_far_behind.then(|| sequence.wrapping_add(1));
        if missing < LATE || restarts {
            // One or two missing packets most likely have the content of the packet before them.
            if missing > 2 {
                self.detector.silence();
            }
            self.next = Some((ssrc, sequence.wrapping_add(1)));
            audio.iter().for_each(|byte| self.read(*table.get(usize::from(*byte)).unwrap_or(&0)));
        }
        if self.detector.is_pressed() {
            audio.fill(silence);
        }
    }

    /// The next pressed key, and the duration in milliseconds with which it is passed on.
    pub(super) fn take(&mut self) -> Option<(char, u32)> {
        let first = self.found.first_mut()?.take()?;
        self.found.rotate_left(1);
        Some((first, DURATION_MS))
    }

    fn read(&mut self, sample: i16) {
        if let Some(place) = self.frame.get_mut(self.filled) {
            *place = sample;
            self.filled += 1;
        }
        if self.filled == FRAME {
            self.filled = 0;
            let digit = self.detector.push(&self.frame);
            if let (Some(digit), Some(slot)) = (digit, self.found.iter_mut().find(|slot| slot.is_none())) {
                *slot = Some(digit);
            }
        }
    }
}

/// 20 ms at 8 kHz.
const FRAME: usize = 160;
/// Keys between two calls of [`KeyEar::take`], which follows each batch of packets: 64 packets of 60 ms contain fewer.
const FOUND_MAX: usize = 64;
/// A sequence number this far ahead is behind.
const LATE: u16 = 1 << 15;
/// A packet this far behind is most likely late (RFC 3550 appendix A.1).
const MISORDER_MAX: u16 = 100;
/// The duration of a key for the peer, fixed because the key is reported before its end.
const DURATION_MS: u32 = 120;

#[cfg(test)]
mod tests {
    use super::super::key_tones::KeyTones;
    use super::*;
    use crate::dtmf::KeyTone;
    use crate::simulate::Random;
    use crate::time::Micros;

    /// Packet number `n` of `samples` samples, with this payload type.
    fn packet(payload_type: u8, n: u16, samples: usize, byte: impl FnMut() -> u8) -> Vec<u8> {
        let mut packet = vec![0x80, payload_type];
        packet.extend(n.to_be_bytes());
        packet.extend((u32::from(n) * samples as u32).to_be_bytes());
        packet.extend(9_u32.to_be_bytes());
        packet.extend(std::iter::repeat_with(byte).take(samples));
        packet
    }

    /// The keys found in packets with the tones of `keys` in noise, some of them lost; and the number of packets that
    /// were silenced.
    fn found(
        payload_type: u8,
        samples: usize,
        keys: &[u8],
        is_lost: impl Fn(u16) -> bool,
    ) -> (String, usize) {
        let (mut ear, mut tones, mut random) = (KeyEar::new(), KeyTones::default(), Random::new(5));
        for code in keys {
            assert!(tones.press(KeyTone { code: *code, duration_ms: 100 }, Micros(0)));
        }
        let (mut text, mut silent) = (String::new(), 0);
        let silence = if payload_type == 0 { PCMU_SILENCE } else { PCMA_SILENCE };
        for n in 0..(keys.len() * 320 * 8 / samples + 20) as u16 {
            // Quiet noise, about 50 dB below the tones.
            let mut packet = packet(payload_type, n, samples, || silence ^ random.integer(0, 3) as u8);
            tones.write_over(&mut packet, Micros(0));
            if !is_lost(n) {
                ear.hear(&mut packet);
                silent += usize::from(packet[12..].iter().all(|byte| *byte == silence));
            }
            text.extend(std::iter::from_fn(|| ear.take()).map(|(digit, _)| digit));
        }
        (text, silent)
    }

    #[test]
    fn the_tones_that_we_play_are_the_keys_that_we_find() {
        let codes: Vec<u8> = (0..16).collect();
        for (payload_type, samples) in [(0, 160), (8, 160), (8, 80), (0, 240), (8, 480)] {
            let (text, silent) = found(payload_type, samples, &codes, |_| false);
            assert_eq!(text, "0123456789*#ABCD", "type {payload_type}, {samples} samples");
            assert!(silent > 0, "nothing was silenced");
        }
    }

    #[test]
    fn lost_packets_make_no_key_that_was_not_pressed() {
        for every in [3, 7, 9] {
            let (text, _) = found(8, 160, &[1, 1, 5, 5], |n| n % every == 2);
            let count = |key: char| text.matches(key).count();
            assert_eq!(count('1') + count('5'), text.len(), "{text}");
            assert!(count('1') <= 2 && count('5') <= 2, "one key for each press: {text}");
        }
    }

    #[test]
    fn a_sender_that_restarts_within_a_key_is_heard_again() {
        let (mut ear, mut tones) = (KeyEar::new(), KeyTones::default());
        assert!(tones.press(KeyTone { code: 5, duration_ms: 1_000 }, Micros(0)));
        for n in 30_000..30_010 {
            let mut packet = packet(0, n, 160, || PCMU_SILENCE);
            tones.write_over(&mut packet, Micros(0));
            ear.hear(&mut packet);
        }
        assert!(ear.detector.is_pressed());
        let is_silenced = |ear: &mut KeyEar, n| {
            let mut packet = packet(0, n, 160, || 0x33);
            ear.hear(&mut packet);
            packet[12..].iter().all(|byte| *byte == PCMU_SILENCE)
        };
        assert!(is_silenced(&mut ear, 29_995), "a late packet ends no key");
        assert!(is_silenced(&mut ear, 29_996), "nor do two");
        assert!(is_silenced(&mut ear, 7), "one from far behind may be late");
        assert!(!is_silenced(&mut ear, 8));
        assert!(!is_silenced(&mut ear, 9));
    }

    #[test]
    fn only_packets_within_a_key_are_silenced_and_others_are_not_read() {
        let mut ear = KeyEar::new();
        for (n, payload_type) in [(1, 0), (2, 8), (3, 9), (4, 18)] {
            let before = packet(payload_type, n, 160, || 0x33);
            let mut after = before.clone();
            ear.hear(&mut after);
            assert_eq!(before, after);
        }
        for short in [0, 1, 11] {
            ear.hear(&mut packet(0, 5, 160, || 0)[..short]);
        }
        assert_eq!(ear.take(), None);
    }
}
