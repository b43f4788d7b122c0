//! The audio of simulated talkers: 440 Hz in G.711, and silent frames of the other codecs.
//!
//! Encoding follows ITU-T G.711; decoding and other sources of audio are not here.

use super::scenario::Codec;

/// Encoded audio that can continue at any timestamp.
#[derive(Clone, Debug)]
pub(super) struct Tone {
    pcma: [u8; PERIOD],
    pcmu: [u8; PERIOD],
}

impl Tone {
    pub(super) fn new() -> Self {
        // 11 periods of 440 Hz are 200 samples at 8 kHz, so the table repeats without a click. Level: -16
        // dBm0.
        let sample = |n: usize| {
            let phase = std::f64::consts::TAU * 11.0 * n as f64 / PERIOD as f64;
            (5_000.0 * phase.sin()).round() as i16
        };
        Tone {
            pcma: std::array::from_fn(|n| encode_pcma(sample(n))),
            pcmu: std::array::from_fn(|n| encode_pcmu(sample(n))),
        }
    }

    /// Appends `len` bytes of `codec`, continuing at sample `position`.
    pub(super) fn write(&self, codec: Codec, position: u32, len: usize, out: &mut Vec<u8>) {
        match codec {
            Codec::Pcma => extend_cyclic(&self.pcma, position, len, out),
            Codec::Pcmu => extend_cyclic(&self.pcmu, position, len, out),
            // The code words of a G.722 encoder for silence.
            Codec::G722 => out.extend(std::iter::repeat_n(0xfa, len)),
            Codec::Opus => write_opus(len, out),
        }
    }
}

/// Payload bytes of one packet of `ms` milliseconds.
pub(super) fn payload_len(codec: Codec, ms: u32) -> u16 {
    let len = match codec.bytes_per_ms() {
        Some(bytes) => bytes * ms,
        None if ms <= 20 => 3,
        None => 2 + ms / 20 * 2,
    };
    len.min(1_400) as u16
}

fn extend_cyclic(table: &[u8; PERIOD], position: u32, len: usize, out: &mut Vec<u8>) {
    let begin = position as usize % PERIOD;
    out.extend(table.iter().cycle().skip(begin).take(len));
}

/// Digital silence: one CELT frame of 20 ms, or several in one packet (RFC 6716 §3.2).
fn write_opus(len: usize, out: &mut Vec<u8>) {
    if len <= 3 {
        out.extend([0xf8, 0xff, 0xfe].iter().take(len));
        return;
    }
    let frames = (len - 2) / 2;
    out.extend([0xfb, frames as u8]);
    out.extend([0xff, 0xfe].iter().cycle().take(frames * 2));
}

/// One sample in µ-law.
fn encode_pcmu(sample: i16) -> u8 {
    const BIAS: u16 = 0x84;
    const CLIP: u16 = 32_635;
    let sign = if sample < 0 { 0x80 } else { 0 };
    let magnitude = sample.unsigned_abs().min(CLIP) + BIAS;
    let exponent = (8 - (magnitude | 0xff).leading_zeros()) as u16;
    let mantissa = (magnitude >> (exponent + 3)) & 0x0f;
    !(sign | (exponent as u8) << 4 | mantissa as u8)
}

/// One sample in A-law.
fn encode_pcma(sample: i16) -> u8 {
    let (sign, magnitude) = if sample < 0 { (0, !sample as u16) } else { (0x80, sample as u16) };
    let code = if magnitude < 256 {
        (magnitude >> 4) as u8
    } else {
        let exponent = (8 - (magnitude | 0xff).leading_zeros()) as u16;
        (exponent as u8) << 4 | ((magnitude >> (exponent + 3)) & 0x0f) as u8
    };
    (sign | code) ^ 0x55
}

/// Samples after which the tone repeats.
const PERIOD: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g711_code_words() {
        // ITU-T G.711 tables 1 and 2: silence, the ends of the range, and both signs.
        let cases = [
            (0, 0xff, 0xd5),
            (-1, 0x7f, 0x55),
            (32_767, 0x80, 0xaa),
            (-32_768, 0x00, 0x2a),
            (1_000, 0xce, 0xfa),
            (-1_000, 0x4e, 0x7a),
        ];
        for (sample, pcmu, pcma) in cases {
            assert_eq!((encode_pcmu(sample), encode_pcma(sample)), (pcmu, pcma), "{sample}");
        }
    }

    #[test]
    fn the_tone_goes_on_where_the_last_packet_ended() {
        let tone = Tone::new();
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        tone.write(Codec::Pcmu, 0, 480, &mut whole);
        for n in 0..3 {
            tone.write(Codec::Pcmu, n * 160, 160, &mut pieces);
        }
        assert_eq!(whole, pieces);
        assert!(whole.iter().any(|byte| *byte != 0xff), "audible");
    }

    #[test]
    fn opus_packets_are_well_formed() {
        for (ms, expected) in
            [(20, vec![0xf8, 0xff, 0xfe]), (60, vec![0xfb, 3, 0xff, 0xfe, 0xff, 0xfe, 0xff, 0xfe])]
        {
            let mut out = Vec::new();
            Tone::new().write(Codec::Opus, 0, usize::from(payload_len(Codec::Opus, ms)), &mut out);
            assert_eq!(out, expected, "{ms} ms");
        }
    }
}
