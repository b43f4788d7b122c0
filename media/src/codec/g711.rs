//! G.711, PCMU and PCMA: one byte per sample at 8 kHz (ITU-T G.711, tables 1 and 2).
//!
//! Decoding is a table look-up. Encoding follows the bit-exact description of ITU-T G.191: a negative sample
//! is inverted, not negated, before its segment is determined.

/// The sample of each PCMU byte.
pub const PCMU_TO_PCM: [i16; 256] = pcmu_table();
/// The sample of each PCMA byte.
pub const PCMA_TO_PCM: [i16; 256] = pcma_table();
/// The PCMU byte of silence.
pub const PCMU_SILENCE: u8 = 0xff;
/// The PCMA byte of silence.
pub const PCMA_SILENCE: u8 = 0xd5;

/// The sample of a byte in one of the tables.
#[inline]
#[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
pub(super) fn look_up(table: &[i16; 256], code: u8) -> i16 {
    table[usize::from(code)]
}

/// The µ-law byte of a sample.
#[inline]
pub const fn pcm_to_pcmu(sample: i16) -> u8 {
    let negative = sample < 0;
    let magnitude = (if negative { !sample } else { sample } >> 2) as u32 + 33;
    let magnitude = if magnitude > 0x1fff { 0x1fff } else { magnitude };
    // The highest bit of a magnitude from 33 to 8,191 is bit 5 to 12: segments 0 to 7.
    let segment = 26 - magnitude.leading_zeros();
    let step = (magnitude >> (segment + 1)) & 0x0f;
    let code = (segment << 4 | step) as u8;
    !(if negative { code | 0x80 } else { code })
}

/// The A-law byte of a sample.
#[inline]
pub const fn pcm_to_pcma(sample: i16) -> u8 {
    let negative = sample < 0;
    let magnitude = (if negative { !sample } else { sample } >> 4) as u32;
    // Below 32 the steps are equal; above, the highest bit, 5 to 10, determines the segment.
    let code = match magnitude {
        0..=31 => magnitude,
        _ => {
            let segment = 28 - magnitude.leading_zeros();
            segment << 4 | ((magnitude >> (segment - 1)) & 0x0f)
        }
    } as u8;
    (if negative { code } else { code | 0x80 }) ^ 0x55
}

/// The sample of a µ-law byte (table 2); for many bytes the look-up table is faster.
pub const fn pcmu_to_pcm(byte: u8) -> i16 {
    let code = !byte;
    let magnitude = ((((code & 0x0f) as i32) << 3) + 0x84) << ((code >> 4) & 7);
    (if code & 0x80 != 0 { 0x84 - magnitude } else { magnitude - 0x84 }) as i16
}

/// The sample of an A-law byte (table 1); for many bytes the look-up table is faster.
pub const fn pcma_to_pcm(byte: u8) -> i16 {
    let code = byte ^ 0x55;
    let step = ((code & 0x0f) as i32) << 4;
    let magnitude = match (code >> 4) & 7 {
        0 => step + 8,
        segment => (step + 0x108) << (segment - 1),
    };
    (if code & 0x80 != 0 { magnitude } else { -magnitude }) as i16
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler; byte is below 256")]
const fn pcmu_table() -> [i16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = pcmu_to_pcm(byte as u8);
        byte += 1;
    }
    table
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler; byte is below 256")]
const fn pcma_table() -> [i16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = pcma_to_pcm(byte as u8);
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encoders as ITU-T G.191 writes them, step by step.
    fn reference_pcmu(sample: i16) -> u8 {
        let magnitude = if sample < 0 { (!sample >> 2) + 33 } else { (sample >> 2) + 33 }.min(0x1fff);
        let mut rest = magnitude >> 6;
        let mut segment = 1;
        while rest != 0 {
            segment += 1;
            rest >>= 1;
        }
        let high = 0x0008 - segment;
        let low = 0x000f - ((magnitude >> segment) & 0x000f);
        let code = (high << 4 | low) as u8;
        if sample >= 0 { code | 0x80 } else { code }
    }

    fn reference_pcma(sample: i16) -> u8 {
        let mut code = if sample < 0 { !sample >> 4 } else { sample >> 4 };
        if code > 15 {
            let mut segment = 1;
            while code > 16 + 15 {
                code >>= 1;
                segment += 1;
            }
            code -= 16;
            code += segment << 4;
        }
        if sample >= 0 {
            code |= 0x80;
        }
        code as u8 ^ 0x55
    }

    #[test]
    fn every_sample_is_encoded_as_the_reference_does() {
        for sample in i16::MIN..=i16::MAX {
            assert_eq!(pcm_to_pcmu(sample), reference_pcmu(sample), "PCMU of {sample}");
            assert_eq!(pcm_to_pcma(sample), reference_pcma(sample), "PCMA of {sample}");
        }
    }

    /// Values of the tables of ITU-T G.711 (decoder output values y, scaled to 16 bit).
    #[test]
    fn bytes_sound_as_the_tables_say() {
        let pcmu =
            [(0x80, 32_124), (0x8f, 16_764), (0x9f, 8_316), (0xff, 0), (0x7f, 0), (0x00, -32_124), (0xfe, 8)];
        for (byte, sample) in pcmu {
            assert_eq!(PCMU_TO_PCM[byte], sample, "PCMU {byte:#x}");
        }
        let pcma = [(0xaa, 32_256), (0xd5, 8), (0x55, -8), (0x2a, -32_256), (0xc5, 264), (0xf5, 528)];
        for (byte, sample) in pcma {
            assert_eq!(PCMA_TO_PCM[byte], sample, "PCMA {byte:#x}");
        }
    }

    /// A decoded byte is encoded to the same byte; of the two zeros of µ-law the positive one is written.
    #[test]
    fn bytes_survive_a_round_trip() {
        for byte in 0..=255_u8 {
            let again = pcm_to_pcmu(PCMU_TO_PCM[usize::from(byte)]);
            assert_eq!(again, if byte == 0x7f { PCMU_SILENCE } else { byte });
            assert_eq!(pcm_to_pcma(PCMA_TO_PCM[usize::from(byte)]), byte);
        }
        assert_eq!((pcm_to_pcmu(0), pcm_to_pcma(0)), (PCMU_SILENCE, PCMA_SILENCE));
    }
}
