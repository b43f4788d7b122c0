//! WAV files (RIFF, Multimedia Programming Interface 1.0; RF64, EBU Tech 3306): reads files from memory, and
//! writes the header of recordings.

use crate::codec::g711::{pcma_to_pcm, pcmu_to_pcm};

/// A WAV file in memory: the format of its samples, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wav<'a> {
    encoding: Encoding,
    channels: u16,
    rate_hz: u32,
    data: &'a [u8],
}

/// Why a file cannot be read as audio; each message states what is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WavError {
    /// Too many channels, or none.
    #[error("it has {0} channels; one or two are played")]
    Channels(u16),
    /// No samples.
    #[error("there is no sound in it")]
    Empty,
    /// Compressed, or of an unsupported sample width.
    #[error(
        "its samples are of format {tag:#06x} with {bits} bits; PCM of 8, 16, 24 or 32 bits, 32-bit floating \
         point, u-law and A-law are played"
    )]
    Format {
        /// `wFormatTag`; in an extensible format the inner tag.
        tag: u16,
        /// Bits per sample.
        bits: u16,
    },
    /// A required chunk is missing.
    #[error("its '{0}' part is missing or cut short")]
    Missing(&'static str),
    /// Not a WAV file.
    #[error("it is no WAV file: it does not begin with RIFF and WAVE")]
    NotWav,
    /// The sample rate is out of range.
    #[error("it has {0} samples a second; 8000 to 48000 are played")]
    Rate(u32),
    /// Longer than the limit.
    #[error("it is longer than {seconds_max} seconds")]
    TooLong {
        /// The limit, in seconds.
        seconds_max: u32,
    },
}

/// The encoding of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Alaw,
    Float32,
    Mulaw,
    Pcm8,
    Pcm16,
    Pcm24,
    Pcm32,
}

impl<'a> Wav<'a> {
    /// Finds the format and the samples. Unknown chunks are skipped. A last chunk that claims to be longer than the
    /// file ends at the end of the file: programs write such a length when they do not know it yet.
    ///
    /// # Errors
    /// When the file contains no audio that can be played.
    pub fn parse(file: &'a [u8]) -> Result<Wav<'a>, WavError> {
        let (head, mut rest) = file.split_at_checked(12).ok_or(WavError::NotWav)?;
        let riff = matches!(head.get(..4), Some(b"RIFF" | b"RF64"));
        if !riff || head.get(8..12) != Some(b"WAVE") {
            return Err(WavError::NotWav);
        }
        let mut format = None;
        // Each iteration consumes at least eight bytes.
        while let Some((head, body)) = rest.split_at_checked(8) {
            let len = u32_at(head, 4).map_or(0, |len| len as usize);
            let (body, behind) = body.split_at_checked(len).unwrap_or((body, &[]));
            match head.get(..4) {
                Some(b"fmt ") => format = Some(Format::parse(body)?),
                Some(b"data") => {
                    let Format { encoding, channels, rate_hz } = format.ok_or(WavError::Missing("fmt "))?;
                    let wav = Wav { encoding, channels, rate_hz, data: body };
                    return if wav.frames() == 0 { Err(WavError::Empty) } else { Ok(wav) };
                }
                _ => {}
            }
            // Chunks begin at even offsets.
            rest = behind.get(len % 2..).unwrap_or_default();
        }
        Err(WavError::Missing(if format.is_some() { "data" } else { "fmt " }))
    }

    /// Sample rate, 8,000 to 48,000 Hz.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Samples per channel.
    pub fn frames(&self) -> u64 {
        (self.data.len() / self.frame_len()) as u64
    }

    /// The samples, with two channels averaged.
    pub fn mono(&self) -> Vec<i16> {
        let width = self.encoding.width();
        if self.channels == 1 {
            return self.data.chunks_exact(width).map(|sample| self.encoding.sample(sample)).collect();
        }
        let frames = self.data.chunks_exact(self.frame_len());
        let mean = |frame: &[u8]| {
            let sum: i32 = frame.chunks_exact(width).map(|s| i32::from(self.encoding.sample(s))).sum();
            // The mean of 16-bit samples fits into 16 bits.
            (sum / i32::from(self.channels)) as i16
        };
        frames.map(mean).collect()
    }

    fn frame_len(&self) -> usize {
        self.encoding.width() * usize::from(self.channels)
    }
}

/// The `fmt ` chunk.
struct Format {
    encoding: Encoding,
    channels: u16,
    rate_hz: u32,
}

impl Format {
    fn parse(body: &[u8]) -> Result<Format, WavError> {
        let missing = WavError::Missing("fmt ");
        let outer = u16_at(body, 0).ok_or(missing)?;
        let channels = u16_at(body, 2).ok_or(missing)?;
        let rate_hz = u32_at(body, 4).ok_or(missing)?;
        let bits = u16_at(body, 14).ok_or(missing)?;
        // In an extensible format the GUID begins with the tag.
        let tag = if outer == EXTENSIBLE { u16_at(body, 24).ok_or(missing)? } else { outer };
        let encoding = match (tag, bits) {
            (1, 8) => Encoding::Pcm8,
            (1, 16) => Encoding::Pcm16,
            (1, 24) => Encoding::Pcm24,
            (1, 32) => Encoding::Pcm32,
            (3, 32) => Encoding::Float32,
            (6, 8) => Encoding::Alaw,
            (7, 8) => Encoding::Mulaw,
            _ => return Err(WavError::Format { tag, bits }),
        };
        if !(1..=2).contains(&channels) {
            return Err(WavError::Channels(channels));
        }
        if !(8_000..=48_000).contains(&rate_hz) {
            return Err(WavError::Rate(rate_hz));
        }
        Ok(Format { encoding, channels, rate_hz })
    }
}

impl Encoding {
    /// Bytes per sample.
    fn width(self) -> usize {
        match self {
            Encoding::Alaw | Encoding::Mulaw | Encoding::Pcm8 => 1,
            Encoding::Pcm16 => 2,
            Encoding::Pcm24 => 3,
            Encoding::Float32 | Encoding::Pcm32 => 4,
        }
    }

    /// The sample in its `width` bytes; of longer samples the upper 16 bits.
    fn sample(self, bytes: &[u8]) -> i16 {
        match (self, bytes) {
            (Encoding::Alaw, [code]) => pcma_to_pcm(*code),
            (Encoding::Mulaw, [code]) => pcmu_to_pcm(*code),
            (Encoding::Pcm8, [byte]) => (i16::from(*byte) - 128) << 8,
            (Encoding::Pcm16, [low, high])
            | (Encoding::Pcm24, [_, low, high])
            | (Encoding::Pcm32, [_, _, low, high]) => i16::from_le_bytes([*low, *high]),
            // A cast from a float saturates, and turns NaN into silence.
            (Encoding::Float32, [a, b, c, d]) => (f32::from_le_bytes([*a, *b, *c, *d]) * 32_767.0) as i16,
            // The caller has cut the samples by `width`.
            _ => 0,
        }
    }
}

/// The header of a file with mono 16-bit PCM when `data_bytes` of samples follow. Its length is constant, so
/// it can be overwritten while the file grows. From 4 GiB on it is an RF64 header, whose sizes have 64 bits;
/// below that, their place is a chunk that readers skip.
pub fn header(rate_hz: u32, data_bytes: u64) -> [u8; HEADER_LEN] {
    header_of(rate_hz, 1, data_bytes)
}

/// The number of channels in a header of [`header_of`]; `None` for another header.
pub fn channels_in(header: &[u8; HEADER_LEN]) -> Option<u16> {
    let field = header.get(CHANNELS_AT..CHANNELS_AT + 2)?.try_into().ok()?;
    let channels = u16::from_le_bytes(field);
    (header.get(48..52) == Some(b"fmt ") && channels > 0).then_some(channels)
}

/// The same as [`header`], for this number of channels.
pub fn header_of(rate_hz: u32, channels: u16, data_bytes: u64) -> [u8; HEADER_LEN] {
    let block = channels.saturating_mul(2);
    let riff_bytes = data_bytes + (HEADER_LEN as u64 - 8);
    let small = u32::try_from(riff_bytes).ok().zip(u32::try_from(data_bytes).ok());
    let (name, (riff, data)) = match small {
        Some(sizes) => (b"RIFF", sizes),
        None => (b"RF64", (u32::MAX, u32::MAX)),
    };
    let mut sizes = [0; 28];
    if small.is_none() {
        let samples = data_bytes / u64::from(block.max(1));
        let parts = [riff_bytes.to_le_bytes(), data_bytes.to_le_bytes(), samples.to_le_bytes()];
        fill(&mut sizes, parts.as_flattened());
    }
    let mut header = [0; HEADER_LEN];
    let parts: [&[u8]; 16] = [
        name,
        &riff.to_le_bytes(),
        b"WAVE",
        if small.is_some() { b"JUNK" } else { b"ds64" },
        &28_u32.to_le_bytes(),
        &sizes,
        b"fmt ",
        &16_u32.to_le_bytes(),
        &1_u16.to_le_bytes(),
        &channels.to_le_bytes(),
        &rate_hz.to_le_bytes(),
        &(rate_hz * u32::from(block)).to_le_bytes(),
        &block.to_le_bytes(),
        &16_u16.to_le_bytes(),
        b"data",
        &data.to_le_bytes(),
    ];
    let mut rest = header.as_mut_slice();
    for part in parts {
        let Some((place, behind)) = rest.split_at_mut_checked(part.len()) else { break };
        place.copy_from_slice(part);
        rest = behind;
    }
    header
}

fn fill(place: &mut [u8], bytes: &[u8]) {
    place.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
}

/// Length of [`header`]: the bytes before the first sample.
pub const HEADER_LEN: usize = 80;

/// The offset of the number of channels in [`header_of`].
const CHANNELS_AT: usize = 58;

/// `WAVE_FORMAT_EXTENSIBLE`.
const EXTENSIBLE: u16 = 0xfffe;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut out = [name.as_slice(), &(body.len() as u32).to_le_bytes(), body].concat();
        out.resize(out.len().next_multiple_of(2), 0);
        out
    }

    fn fmt(tag: u16, channels: u16, rate_hz: u32, bits: u16) -> Vec<u8> {
        let block = channels * bits / 8;
        let mut body = [tag.to_le_bytes(), channels.to_le_bytes()].concat();
        body.extend(rate_hz.to_le_bytes());
        body.extend((rate_hz * u32::from(block)).to_le_bytes());
        body.extend(block.to_le_bytes());
        body.extend(bits.to_le_bytes());
        body
    }

    fn file(parts: &[Vec<u8>]) -> Vec<u8> {
        let body = [b"WAVE".to_vec(), parts.concat()].concat();
        [b"RIFF".as_slice(), &(body.len() as u32).to_le_bytes(), &body].concat()
    }

    fn read(fmt_body: &[u8], data: &[u8]) -> Result<Vec<i16>, WavError> {
        let file = file(&[chunk(b"fmt ", fmt_body), chunk(b"data", data)]);
        Wav::parse(&file).map(|wav| wav.mono())
    }

    #[test]
    fn samples_of_every_encoding() {
        let float: Vec<u8> = [0.0_f32, 1.0, -2.0, f32::NAN].iter().flat_map(|f| f.to_le_bytes()).collect();
        type Case<'a> = (&'a str, u16, u16, &'a [u8], &'a [i16]);
        let cases: [Case<'_>; 7] = [
            ("8 bits", 1, 8, &[0, 128, 255], &[-32_768, 0, 32_512]),
            ("16 bits", 1, 16, &[0x01, 0x80, 0xff, 0x7f], &[-32_767, 32_767]),
            ("24 bits", 1, 24, &[0xff, 0x01, 0x80], &[-32_767]),
            ("32 bits", 1, 32, &[0xff, 0xff, 0xff, 0x7f], &[32_767]),
            ("float", 3, 32, &float, &[0, 32_767, -32_768, 0]),
            // ITU-T G.711: the ends of the range, and silence.
            ("A-law", 6, 8, &[0xaa, 0x2a, 0xd5], &[32_256, -32_256, 8]),
            ("u-law", 7, 8, &[0x80, 0x00, 0xff], &[32_124, -32_124, 0]),
        ];
        for (name, tag, bits, data, expected) in cases {
            assert_eq!(read(&fmt(tag, 1, 8_000, bits), data).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn two_channels_are_their_mean() {
        let data: Vec<u8> = [32_767_i16, 32_767, -100, 200].iter().flat_map(|s| s.to_le_bytes()).collect();
        assert_eq!(read(&fmt(1, 2, 48_000, 16), &data).unwrap(), [32_767, 50]);
    }

    #[test]
    fn an_extensible_format_says_within_what_it_is() {
        let mut body = fmt(EXTENSIBLE, 1, 16_000, 16);
        body.extend([22, 0, 16, 0, 4, 0, 0, 0]);
        body.extend([1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71]);
        assert_eq!(read(&body, &[1, 0]).unwrap(), [1]);
        assert_eq!(read(&body[..18], &[1, 0]), Err(WavError::Missing("fmt ")));
    }

    #[test]
    fn parts_that_are_not_known_are_passed_over() {
        let parts =
            [chunk(b"LIST", b"odd"), chunk(b"fmt ", &fmt(7, 1, 8_000, 8)), chunk(b"data", &[0xff, 0x80])];
        assert_eq!(Wav::parse(&file(&parts)).unwrap().mono(), [0, 32_124]);
    }

    #[test]
    fn a_file_whose_length_was_never_written_goes_to_its_end() {
        let mut streamed = file(&[chunk(b"fmt ", &fmt(1, 1, 8_000, 16))]);
        streamed.extend(*b"data");
        streamed.extend([0xff; 4]);
        streamed.extend([1, 0, 2, 0, 3]);
        assert_eq!(Wav::parse(&streamed).unwrap().mono(), [1, 2]);
    }

    #[test]
    fn what_cannot_be_played_says_why() {
        let good = fmt(1, 1, 8_000, 16);
        let cases = [
            ("gsm", read(&fmt(0x31, 1, 8_000, 0), &[0; 65]), WavError::Format { tag: 0x31, bits: 0 }),
            ("12 bits", read(&fmt(1, 1, 8_000, 12), &[0; 4]), WavError::Format { tag: 1, bits: 12 }),
            ("surround", read(&fmt(1, 6, 48_000, 16), &[0; 12]), WavError::Channels(6)),
            ("no channel", read(&fmt(1, 0, 48_000, 16), &[0; 12]), WavError::Channels(0)),
            ("slow", read(&fmt(1, 1, 7_999, 16), &[0; 2]), WavError::Rate(7_999)),
            ("fast", read(&fmt(1, 1, 96_000, 16), &[0; 2]), WavError::Rate(96_000)),
            ("silent", read(&good, &[]), WavError::Empty),
            ("half a sample", read(&good, &[0]), WavError::Empty),
            ("cut", read(&good[..10], &[0; 2]), WavError::Missing("fmt ")),
        ];
        for (name, read, expected) in cases {
            assert_eq!(read, Err(expected), "{name}");
        }
        assert_eq!(Wav::parse(b"ID3"), Err(WavError::NotWav));
        assert_eq!(Wav::parse(b"RIFF\0\0\0\0AVI LIST"), Err(WavError::NotWav));
        assert_eq!(Wav::parse(&file(&[])), Err(WavError::Missing("fmt ")));
        assert_eq!(Wav::parse(&file(&[chunk(b"fmt ", &good)])), Err(WavError::Missing("data")));
        assert_eq!(Wav::parse(&file(&[chunk(b"data", &[0; 2])])), Err(WavError::Missing("fmt ")));
    }

    #[test]
    fn what_we_write_is_read() {
        let samples = [1_i16, -2, 3];
        let bytes: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
        let file = [header(16_000, bytes.len() as u64).as_slice(), &bytes].concat();
        let wav = Wav::parse(&file).unwrap();
        assert_eq!((wav.rate_hz(), wav.mono().as_slice()), (16_000, samples.as_slice()));
        assert_eq!(u32_at(&file, 4), Some(file.len() as u32 - 8));
    }

    /// 2 GiB is not a limit of the format; from 4 GiB on the format is RF64 with 64-bit sizes.
    #[test]
    fn sizes_at_the_edges() {
        let two = 1_u64 << 31;
        let last = u64::from(u32::MAX) - 72 - 1;
        for data in [0, 2, two - 2, two, two + 2, last] {
            let header = header(16_000, data);
            assert_eq!((&header[..4], &header[12..16]), (b"RIFF".as_slice(), b"JUNK".as_slice()), "{data}");
            assert_eq!(u64::from(u32_at(&header, 76).unwrap()), data);
            assert_eq!(u64::from(u32_at(&header, 4).unwrap()), data + 72);
        }
        for data in [last + 2, 1 << 32, 1 << 40] {
            let header = header(16_000, data);
            assert_eq!((&header[..4], &header[12..16]), (b"RF64".as_slice(), b"ds64".as_slice()), "{data}");
            assert_eq!((u32_at(&header, 4), u32_at(&header, 76)), (Some(u32::MAX), Some(u32::MAX)));
            let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
            assert_eq!([long(20), long(28), long(36)], [data + 72, data, data / 2]);
        }
        assert_eq!(&header(16_000, 1 << 33)[72..76], b"data");
    }
}
