//! Input that may be compressed with gzip (RFC 1952), recognised by its first two bytes.
//!
//! Compressed input is read as a stream, so that a small file which unpacks to a large one takes time but no
//! memory. Consecutive members are one file (RFC 1952 §2.2), and zeros after the last one are padding of
//! tapes and archives.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;
use thiserror::Error;

/// Reads `R`, and decompresses it if it is compressed.
#[derive(Debug)]
pub struct Plain<R> {
    source: Source<R>,
    /// Bytes of output so far.
    produced: u64,
}

/// Why compressed input cannot be read any further; the source of an [`io::Error`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum GzipDamage {
    /// Invalid compressed data, or a wrong checksum.
    #[error("the gzip data is damaged; what stands before the damage, {produced} bytes unpacked, was read")]
    Corrupt {
        /// Bytes that were unpacked.
        produced: u64,
    },
    /// The file ends within a member.
    #[error("the gzip data is cut off; what it holds, {produced} bytes unpacked, was read")]
    CutOff {
        /// Bytes that were unpacked.
        produced: u64,
    },
    /// Other data follows the last member.
    #[error("bytes that are not gzip follow the compressed capture, and were not read")]
    Trailing,
}

#[derive(Debug)]
enum Source<R> {
    Done,
    /// A member under decompression.
    Gzip(Box<GzDecoder<Input<R>>>),
    /// Not examined yet.
    New(R),
    Plain(Prefixed<R>),
}

type Input<R> = BufReader<Prefixed<R>>;

/// An input whose first bytes were read already.
#[derive(Debug)]
struct Prefixed<R> {
    prefix: io::Cursor<Vec<u8>>,
    input: R,
    /// Bytes that were read.
    taken: u64,
}

impl<R: Read> Plain<R> {
    /// Reads from the first byte of `input`.
    pub const fn new(input: R) -> Self {
        Plain { source: Source::New(input), produced: 0 }
    }

    /// Bytes read from the input, as stored; 0 before the first and after the last one.
    pub fn taken(&self) -> u64 {
        match &self.source {
            Source::Gzip(decoder) => decoder.get_ref().get_ref().taken,
            Source::Plain(input) => input.taken,
            Source::Done | Source::New(_) => 0,
        }
    }

    /// Whether the last bytes read were compressed.
    pub(super) const fn is_compressed(&self) -> bool {
        matches!(self.source, Source::Gzip(_))
    }

    fn begin(&mut self, mut input: R) -> io::Result<()> {
        let mut prefix = vec![0; MAGIC.len()];
        let mut len = 0;
        // Each turn reads at least one byte.
        while let Some(free) = prefix.get_mut(len..).filter(|free| !free.is_empty()) {
            match input.read(free) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        prefix.truncate(len);
        let is_gzip = prefix == MAGIC;
        let input = Prefixed { prefix: io::Cursor::new(prefix), input, taken: 0 };
        self.source = if is_gzip {
            Source::Gzip(Box::new(GzDecoder::new(BufReader::with_capacity(BUFFER_LEN, input))))
        } else {
            Source::Plain(input)
        };
        Ok(())
    }

    /// The member after the one that has ended.
    fn next_member(&mut self, mut input: Input<R>) -> io::Result<()> {
        // Each turn skips padding, or is the last.
        loop {
            let bytes = input.fill_buf()?;
            let padding = bytes.iter().take_while(|byte| **byte == 0).count();
            match bytes.get(padding) {
                Some(first) if *first == MAGIC[0] => {
                    input.consume(padding);
                    self.source = Source::Gzip(Box::new(GzDecoder::new(input)));
                    return Ok(());
                }
                Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, GzipDamage::Trailing)),
                None if padding == 0 => return Ok(()),
                None => input.consume(padding),
            }
        }
    }

    fn damaged(&self, error: io::Error) -> io::Error {
        let produced = self.produced;
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(io::ErrorKind::UnexpectedEof, GzipDamage::CutOff { produced })
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                io::Error::new(io::ErrorKind::InvalidData, GzipDamage::Corrupt { produced })
            }
            _ => error,
        }
    }
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        // Each turn reads, or continues with the next member.
        loop {
            match std::mem::replace(&mut self.source, Source::Done) {
                Source::Done => return Ok(0),
                Source::Gzip(mut decoder) => match decoder.read(buffer) {
                    Ok(0) => self.next_member(decoder.into_inner())?,
                    Ok(len) => {
                        self.produced += len as u64;
                        self.source = Source::Gzip(decoder);
                        return Ok(len);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                        self.source = Source::Gzip(decoder);
                        return Err(error);
                    }
                    Err(error) => return Err(self.damaged(error)),
                },
                Source::New(input) => self.begin(input)?,
                Source::Plain(mut input) => {
                    let read = input.read(buffer);
                    self.source = Source::Plain(input);
                    return read;
                }
            }
        }
    }
}

impl<R: Read> Read for Prefixed<R> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = match self.prefix.read(buffer)? {
            0 => self.input.read(buffer)?,
            len => len,
        };
        self.taken += len as u64;
        Ok(len)
    }
}

const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Compressed bytes that one read takes.
const BUFFER_LEN: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// An input that gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    fn unpack(input: impl Read) -> (Vec<u8>, Option<GzipDamage>) {
        let mut out = Vec::new();
        let damage = Plain::new(input).read_to_end(&mut out).err();
        (out, damage.map(|error| error.downcast::<GzipDamage>().unwrap()))
    }

    #[test]
    fn members_are_one_file_and_other_input_stays_as_it_is() {
        let text = b"some text that is worth compressing".repeat(400);
        let cases: [(&str, Vec<u8>, Vec<u8>); 7] = [
            ("nothing", vec![], vec![]),
            ("one byte", vec![0x1f], vec![0x1f]),
            ("not compressed", text.clone(), text.clone()),
            ("one member", pack(&text), text.clone()),
            ("two members", [pack(&text), pack(b"more")].concat(), [&text[..], b"more"].concat()),
            (
                "an empty member between",
                [pack(&text), pack(b""), pack(b"x")].concat(),
                [&text[..], b"x"].concat(),
            ),
            ("padding", [pack(&text), vec![0; 700]].concat(), text.clone()),
        ];
        for (name, input, expected) in cases {
            assert_eq!(unpack(&input[..]), (expected.clone(), None), "{name}");
            assert_eq!(unpack(Slow(&input)), (expected, None), "{name}, byte by byte");
        }
    }

    #[test]
    fn damage_is_reported_behind_what_could_be_read() {
        let text: Vec<u8> =
            (0..60_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        let whole = pack(&text);
        for len in [2, 9, 10, 11, whole.len() / 2, whole.len() - 8, whole.len() - 1] {
            let (out, damage) = unpack(&whole[..len]);
            assert!(text.starts_with(&out) && out.len() + 40_000 > len, "{len}: {} bytes", out.len());
            assert_eq!(damage, Some(GzipDamage::CutOff { produced: out.len() as u64 }), "{len}");
        }
        let mut wrong = whole.clone();
        let place = wrong.len() - 6;
        wrong[place] ^= 1;
        assert_eq!(unpack(&wrong[..]).1, Some(GzipDamage::Corrupt { produced: text.len() as u64 }));
        let trailing = [&whole[..], b"trailing"].concat();
        assert_eq!(unpack(&trailing[..]), (text, Some(GzipDamage::Trailing)));
    }

    #[test]
    fn a_bomb_takes_no_memory() {
        let zeros = pack(&vec![0; 1 << 20]);
        let bomb = zeros.repeat(64);
        let (mut plain, mut buffer, mut len) = (Plain::new(&bomb[..]), vec![0; 1 << 16], 0);
        loop {
            match plain.read(&mut buffer).unwrap() {
                0 => break,
                more => len += more,
            }
        }
        assert_eq!(len, 64 << 20);
    }
}
