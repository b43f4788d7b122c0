//! A short beep written over audio that is relayed in any case: no separate stream, no allocation, no additional
//! packet.

use super::payload::{PCMA, PCMU, payload};

/// The remaining part of a beep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beep {
    /// Samples still to be written.
    left: usize,
    /// Position of the next sample in the table.
    at: usize,
}

impl Beep {
    /// A beep that has not started.
    pub(super) fn new() -> Self {
        Beep { left: SAMPLES, at: 0 }
    }

    /// Whether all samples were written.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Writes the next part of the beep over the payload of a G.711 RTP packet; leaves other packets
    /// unchanged.
    pub(super) fn write_over(&mut self, datagram: &mut [u8]) {
        let table = match datagram.get(1).map(|octet| octet & 0x7f) {
            Some(PCMU) => &BEEP_PCMU,
            Some(PCMA) => &BEEP_PCMA,
            _ => return,
        };
        let Some(audio) = payload(datagram).and_then(|range| datagram.get_mut(range)) else { return };
        let samples = self.left.min(audio.len());
        let tone = table.iter().cycle().skip(self.at);
        for (byte, sample) in audio.iter_mut().zip(tone).take(samples) {
            *byte = *sample;
        }
        self.left -= samples;
        self.at = (self.at + samples) % table.len();
    }
}

/// 600 ms at 8 kHz.
const SAMPLES: usize = 4_800;
/// Seven periods of 1,400 Hz at 8 kHz and -12 dBm0: the table repeats without a click.
const BEEP_PCMU: [u8; 40] = [
    0xff, 0xa3, 0xa6, 0x4a, 0x21, 0x29, 0xbb, 0xa0, 0xad, 0x32, 0x20, 0x32, 0xad, 0xa0, 0xbb, 0x29, 0x21,
    0x4a, 0xa6, 0xa3, 0xff, 0x23, 0x26, 0xca, 0xa1, 0xa9, 0x3b, 0x20, 0x2d, 0xb2, 0xa0, 0xb2, 0x2d, 0x20,
    0x3b, 0xa9, 0xa1, 0xca, 0x26, 0x23,
];
const BEEP_PCMA: [u8; 40] = [
    0xd5, 0x8e, 0x8c, 0x66, 0x08, 0x03, 0x96, 0x8b, 0x87, 0x19, 0x0a, 0x19, 0x87, 0x8b, 0x96, 0x03, 0x08,
    0x66, 0x8c, 0x8e, 0xd5, 0x0e, 0x0c, 0xe6, 0x88, 0x83, 0x16, 0x0b, 0x07, 0x99, 0x8a, 0x99, 0x07, 0x0b,
    0x16, 0x83, 0x88, 0xe6, 0x0c, 0x0e,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(head: &[u8], audio: usize) -> Vec<u8> {
        let mut datagram = head.to_vec();
        datagram.resize(head.len().max(12), 0);
        datagram.resize(datagram.len() + audio, 0xff);
        datagram
    }

    /// Both tables hold the same sine: decoded (ITU-T G.711) they are near 8,000 · sin(2π · 7n/40).
    #[test]
    fn the_tables_are_a_sine_of_1400_hz() {
        let pcmu = |code: u8| {
            let code = !code;
            let magnitude = ((i32::from(code & 0x0f) << 3) + 0x84) << ((code >> 4) & 7);
            if code & 0x80 != 0 { 0x84 - magnitude } else { magnitude - 0x84 }
        };
        let pcma = |code: u8| {
            let code = code ^ 0x55;
            let (mantissa, exponent) = (i32::from(code & 0x0f) << 4, (code >> 4) & 7);
            let magnitude = match exponent {
                0 => mantissa + 8,
                _ => (mantissa + 0x108) << (exponent - 1),
            };
            if code & 0x80 != 0 { magnitude } else { -magnitude }
        };
        for n in 0..40 {
            let wanted = 8_000.0 * (std::f64::consts::TAU * 7.0 * n as f64 / 40.0).sin();
            for (name, sample) in [("PCMU", pcmu(BEEP_PCMU[n])), ("PCMA", pcma(BEEP_PCMA[n]))] {
                let off = (f64::from(sample) - wanted).abs();
                assert!(off <= 16.0 + wanted.abs() / 16.0, "{name} {n}: {sample} for {wanted}");
            }
        }
    }

    #[test]
    fn only_the_audio_of_g711_is_written_over() {
        let cases: &[(&str, &[u8], Option<usize>)] = &[
            ("PCMU", &[0x80, 0], Some(12)),
            ("PCMA with marker", &[0x80, 0x88], Some(12)),
            ("two sources", &[0x82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], Some(20)),
            (
                "an extension",
                &[0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 1, 9, 9, 9, 9],
                Some(20),
            ),
            ("telephone-event", &[0x80, 101], None),
            ("G.722", &[0x80, 9], None),
        ];
        for (name, head, begin) in cases {
            let before = packet(head, 160);
            let mut after = before.clone();
            Beep::new().write_over(&mut after);
            let changed = begin.unwrap_or(before.len());
            assert_eq!(after[..changed], before[..changed], "{name}");
            assert_eq!(after[changed..] == before[changed..], begin.is_none(), "{name}");
        }
        let mut padded = packet(&[0xa0, 0], 160);
        *padded.last_mut().unwrap() = 4;
        Beep::new().write_over(&mut padded);
        assert_eq!(padded[168..], [0xff, 0xff, 0xff, 4]);
        for damaged in [&[][..], &[0x80], &[0x9f, 0, 1], &[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff]] {
            let mut datagram = damaged.to_vec();
            Beep::new().write_over(&mut datagram);
            assert_eq!(datagram, damaged);
        }
    }

    #[test]
    fn it_goes_on_from_packet_to_packet_and_ends() {
        let mut beep = Beep::new();
        let mut heard = Vec::new();
        while !beep.is_over() {
            let mut datagram = packet(&[0x80, 0], 164);
            beep.write_over(&mut datagram);
            heard.extend_from_slice(&datagram[12..]);
        }
        let (beeped, rest) = heard.split_at(SAMPLES);
        assert!(beeped.chunks(40).all(|period| *period == BEEP_PCMU));
        assert!(rest.len() < 164 && rest.iter().all(|byte| *byte == 0xff));
    }
}
