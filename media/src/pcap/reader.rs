//! Decodes capture files into frames with times.
//!
//! This module reads classic pcap (draft-ietf-opsawg-pcap) in microseconds and nanoseconds and in both byte
//! orders; [`super::blocks`] reads the blocks of pcapng (draft-ietf-opsawg-pcapng). Not here: decompression,
//! and the content of frames.

use thiserror::Error;

use super::blocks::Section;
use super::bytes::{Order, array};
use super::link_type::LinkType;
use super::record::{FRAME_LEN_MAX, Fault, Progress, Record};
use crate::time::Micros;

/// The result of one call of [`Decoder::drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Bytes to drop before the next call.
    pub consumed: usize,
    /// Length of the next element in bytes, as far as it is known; see [`Progress::More`].
    pub needed: usize,
}

/// Why a capture cannot be read further.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Damage {
    /// The file ends inside an element; everything before it was read.
    #[error("cut off at byte {offset}: the last record is incomplete")]
    CutOff {
        /// Offset of the incomplete element.
        offset: u64,
    },
    /// A length or magic number that no writer produces.
    #[error("damaged at byte {offset}: {what}")]
    Malformed {
        /// Offset of the damaged element.
        offset: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// The file does not begin like a supported capture format.
    #[error("not a pcap or pcapng capture{}", looks_like.map_or_else(String::new, |kind| format!(": {kind}")))]
    NotACapture {
        /// The format that it seems to have, and what to do about it.
        looks_like: Option<&'static str>,
    },
}

/// Reads a capture from bytes that arrive in pieces of any size.
///
/// After [`Decoder::next`] has returned an error, every further call returns it again.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    offset: u64,
    /// The untimed frames before the damage.
    untimed: u64,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder that expects the first byte of a file.
    pub const fn new() -> Self {
        Decoder { state: State::Start, offset: 0, untimed: 0 }
    }

    /// Reads the element at the start of `bytes`.
    ///
    /// *Errors*: [`Damage`] when nothing after this position can be read. *Bounds*: never requests more than
    /// [`ELEMENT_LEN_MAX`](super::ELEMENT_LEN_MAX) bytes.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Progress<'a>, Damage> {
        let result = match &mut self.state {
            State::Broken(damage) => return Err(damage.clone()),
            State::Classic(header) => header.next(bytes),
            State::Next(section) => section.next(bytes),
            State::Start => start(bytes).map(|(state, progress)| {
                if let Some(state) = state {
                    self.state = state;
                }
                progress
            }),
        };
        match result {
            Ok(progress) => {
                if let Progress::Record { consumed, .. } | Progress::Skipped { consumed } = progress {
                    self.offset += consumed as u64;
                }
                Ok(progress)
            }
            Err(what) => Err(self.fail(match what {
                Fault::Malformed(what) => Damage::Malformed { offset: self.offset, what },
                Fault::NotACapture(looks_like) => Damage::NotACapture { looks_like },
            })),
        }
    }

    /// Passes every complete frame in `bytes` to `each`; `bytes` must continue where the last call stopped.
    ///
    /// For a classic capture this is one loop, which takes half the time of separate calls of
    /// [`Decoder::next`].
    ///
    /// *Errors*: as for [`Decoder::next`]; the frames before the damage were passed on.
    #[inline]
    pub fn drain<'a>(
        &mut self,
        bytes: &'a [u8],
        mut each: impl FnMut(&Record<'a>),
    ) -> Result<Drained, Damage> {
        let mut consumed = 0;
        // Each iteration consumes bytes, or is the last.
        loop {
            if let State::Classic(classic) = &self.state {
                let begin = consumed;
                while let Some(record) = classic.record(bytes, &mut consumed) {
                    each(&record);
                }
                self.offset += (consumed - begin) as u64;
            }
            let rest = bytes.get(consumed..).unwrap_or_default();
            match self.next(rest)? {
                Progress::More { needed } => return Ok(Drained { consumed, needed }),
                Progress::Record { consumed: len, record } => {
                    each(&record);
                    consumed += len;
                }
                Progress::Skipped { consumed: len } => consumed += len,
            }
        }
    }

    /// Reports the end of the file to the decoder, with `left` bytes unread.
    ///
    /// *Errors*: the capture was cut off inside an element, or was empty.
    pub fn finish(&mut self, left: usize) -> Result<(), Damage> {
        match &self.state {
            State::Broken(damage) => Err(damage.clone()),
            State::Start if left == 0 => {
                Err(self.fail(Damage::NotACapture { looks_like: Some("the file is empty") }))
            }
            State::Start => Err(self.fail(Damage::NotACapture { looks_like: None })),
            _ if left == 0 => Ok(()),
            _ => Err(self.fail(Damage::CutOff { offset: self.offset })),
        }
    }

    /// Bytes of the file that were read so far.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Frames so far without a time of their own: simple packet blocks, and times outside the years 0 to 9999. Each
    /// has the time of the frame before it, so nothing can be measured on it.
    pub fn untimed(&self) -> u64 {
        match &self.state {
            State::Next(section) => section.untimed(),
            State::Broken(_) | State::Classic(_) | State::Start => self.untimed,
        }
    }

    /// Whether the element at the start of `bytes` begins a section of pcapng, whose interfaces are its own.
    pub fn begins_section(&self, bytes: &[u8]) -> bool {
        matches!(self.state, State::Next(_)) && bytes.starts_with(&super::blocks::SECTION_HEADER)
    }

    /// The interfaces that the section has described so far; 0 for other formats.
    pub fn interfaces(&self) -> usize {
        match &self.state {
            State::Next(section) => section.interfaces(),
            State::Broken(_) | State::Classic(_) | State::Start => 0,
        }
    }

    /// Continues with another frame of the section that was read last: the next call of [`Decoder::next`] gets the
    /// bytes from this offset on.
    pub const fn seek(&mut self, offset: u64) {
        self.offset = offset;
    }

    fn fail(&mut self, damage: Damage) -> Damage {
        self.untimed = self.untimed();
        self.state = State::Broken(damage.clone());
        damage
    }
}

/// The frames of a capture that is completely in memory.
///
/// After an error the iterator ends.
#[derive(Debug)]
pub struct Records<'a> {
    decoder: Decoder,
    rest: &'a [u8],
    done: bool,
}

impl<'a> Records<'a> {
    /// Reads `file` from its first byte.
    pub const fn new(file: &'a [u8]) -> Self {
        Records { decoder: Decoder::new(), rest: file, done: false }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        // Every iteration but the last consumes at least one byte of the file.
        while !self.done {
            match self.decoder.next(self.rest) {
                Ok(Progress::Record { consumed, record }) => {
                    self.rest = self.rest.get(consumed..).unwrap_or_default();
                    return Some(Ok(record));
                }
                Ok(Progress::Skipped { consumed }) => {
                    self.rest = self.rest.get(consumed..).unwrap_or_default();
                }
                Ok(Progress::More { .. }) => {
                    self.done = true;
                    return self.decoder.finish(self.rest.len()).err().map(Err);
                }
                Err(damage) => {
                    self.done = true;
                    return Some(Err(damage));
                }
            }
        }
        None
    }
}

#[derive(Clone, Debug)]
enum State {
    Broken(Damage),
    Classic(Classic),
    Next(Box<Section>),
    Start,
}

/// The file header of a classic capture, which applies to all of its records.
#[derive(Clone, Debug)]
struct Classic {
    order: Order,
    link: LinkType,
    nanoseconds: bool,
    record_header_len: usize,
}

impl Classic {
    /// The record at `place`, which then moves past it; `None` when the record is incomplete or damaged, as
    /// [`Classic::next`] reports.
    #[inline]
    fn record<'a>(&self, bytes: &'a [u8], place: &mut usize) -> Option<Record<'a>> {
        let rest = bytes.get(*place..)?;
        let header = rest.first_chunk::<16>()?;
        let field = |place: usize| self.order.u32(header, place);
        let (seconds, fraction, kept, wire_len) = (field(0)?, field(4)?, field(8)? as usize, field(12)?);
        let end = self.record_header_len + kept;
        let frame = rest.get(self.record_header_len..end).filter(|_| kept <= FRAME_LEN_MAX)?;
        // A fraction beyond one second is damage that other readers accept; it is added to the seconds.
        let fraction_us = if self.nanoseconds { fraction / 1_000 } else { fraction };
        let at = Micros(i64::from(seconds) * 1_000_000 + i64::from(fraction_us));
        *place += end;
        Some(Record { at, link: self.link, frame, wire_len })
    }

    fn next<'a>(&self, bytes: &'a [u8]) -> Result<Progress<'a>, Fault> {
        let mut consumed = 0;
        if let Some(record) = self.record(bytes, &mut consumed) {
            return Ok(Progress::Record { consumed, record });
        }
        let kept = bytes.first_chunk::<16>().and_then(|header| self.order.u32(header, 8));
        match kept.map(|kept| kept as usize) {
            Some(kept) if kept > FRAME_LEN_MAX => {
                Err(Fault::Malformed("a record claims more bytes than any frame has"))
            }
            Some(kept) => Ok(Progress::More { needed: self.record_header_len + kept }),
            None => Ok(Progress::More { needed: self.record_header_len }),
        }
    }
}

fn start(bytes: &[u8]) -> Result<(Option<State>, Progress<'_>), Fault> {
    let Some(magic) = array::<4>(bytes, 0) else {
        return Ok((None, Progress::More { needed: CLASSIC_HEADER_LEN }));
    };
    if magic == super::blocks::SECTION_HEADER {
        return Ok((Some(State::Next(Box::default())), Progress::Skipped { consumed: 0 }));
    }
    let (order, nanoseconds, record_header_len) = match magic {
        [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, false, 16),
        [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, false, 16),
        [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, true, 16),
        [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, true, 16),
        // An old Linux variant with interface and protocol after every record header.
        [0xa1, 0xb2, 0xcd, 0x34] => (Order::Big, false, 24),
        [0x34, 0xcd, 0xb2, 0xa1] => (Order::Little, false, 24),
        _ => return Err(Fault::NotACapture(looks_like(bytes))),
    };
    let Some(network) = bytes.get(..CLASSIC_HEADER_LEN).and_then(|header| order.u32(header, 20)) else {
        return Ok((None, Progress::More { needed: CLASSIC_HEADER_LEN }));
    };
    // The upper 16 bits contain the length of a frame check sequence.
    let link = LinkType((network & 0xffff) as u16);
    let classic = Classic { order, link, nanoseconds, record_header_len };
    Ok((Some(State::Classic(classic)), Progress::Skipped { consumed: CLASSIC_HEADER_LEN }))
}

/// Recognises formats that users mistake for captures.
fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 9] = [
        (b"\x1f\x8b", "it is compressed with gzip, decompress it first"),
        (b"\x28\xb5\x2f\xfd", "it is compressed with zstd, decompress it first"),
        (b"BZh", "it is compressed with bzip2, decompress it first"),
        (b"GMBU", "it is a Microsoft Network Monitor 2 file, convert it with editcap"),
        (b"PK\x03\x04", "it is a zip archive, unpack it first"),
        (b"RTSS", "it is a Microsoft Network Monitor 1 file, convert it with editcap"),
        (b"TRSNIFF data", "it is a Sniffer file, convert it with editcap"),
        (b"\xfd7zXZ", "it is compressed with xz, decompress it first"),
        (b"snoop\0\0\0", "it is a Solaris snoop file, convert it with editcap"),
    ];
    KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| *name)
}

const CLASSIC_HEADER_LEN: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// A capture with one 4-byte record at 2.5 s.
    fn classic(magic: [u8; 4], order: Order, fraction: u32, extra: usize) -> Vec<u8> {
        let put = |out: &mut Vec<u8>, number: u32| match order {
            Order::Big => out.extend(number.to_be_bytes()),
            Order::Little => out.extend(number.to_le_bytes()),
        };
        let mut out = magic.to_vec();
        for number in [0x0002_0004, 0, 0, 65_535, 1] {
            put(&mut out, number);
        }
        for number in [2, fraction, 4, 60] {
            put(&mut out, number);
        }
        out.extend(std::iter::repeat_n(0, extra));
        out.extend(b"abcd");
        out
    }

    #[test]
    fn classic_headers() {
        let cases = [
            ("microseconds, little", [0xd4, 0xc3, 0xb2, 0xa1], Order::Little, 500_000, 0),
            ("microseconds, big", [0xa1, 0xb2, 0xc3, 0xd4], Order::Big, 500_000, 0),
            ("nanoseconds, little", [0x4d, 0x3c, 0xb2, 0xa1], Order::Little, 500_000_999, 0),
            ("nanoseconds, big", [0xa1, 0xb2, 0x3c, 0x4d], Order::Big, 500_000_000, 0),
            ("long record header", [0x34, 0xcd, 0xb2, 0xa1], Order::Little, 500_000, 8),
        ];
        for (name, magic, order, fraction, extra) in cases {
            let file = classic(magic, order, fraction, extra);
            let records: Vec<_> = Records::new(&file).collect();
            let expected =
                Record { at: Micros(2_500_000), link: LinkType::ETHERNET, frame: b"abcd", wire_len: 60 };
            assert_eq!(records, [Ok(expected)], "{name}");
        }
    }

    #[test]
    fn drained_frames_are_those_of_one_call_after_the_other() {
        let good = classic([0xa1, 0xb2, 0x3c, 0x4d], Order::Big, 7_000, 0);
        let mut bad = [&good[..], &good[24..], &good[24..]].concat();
        bad[24 + 20 + 8] = 0x7f;
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let section = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
        let interface = words(&[1, 20, 1, 0, 20]);
        let packet = words(&[6, 36, 0, 0, 5, 4, 60, 0x6463_6261, 36]);
        let next = [section, interface, packet.clone(), packet].concat();
        let cases = [("classic", [&good[..], &good[24..]].concat()), ("damaged", bad), ("pcapng", next)];
        for (name, file) in cases {
            for cut in 0..=file.len() {
                let (mut single, mut drained) = (Vec::new(), Vec::new());
                let mut records = Records::new(&file[..cut]);
                let single_end =
                    records.by_ref().filter_map(|one| one.map(|one| single.push(one)).err()).next();
                let mut decoder = Decoder::new();
                let half = decoder.drain(&file[..cut / 2], |record| drained.push(*record));
                let end = half.and_then(|half| {
                    let rest = decoder.drain(&file[half.consumed..cut], |record| drained.push(*record))?;
                    decoder.finish(cut - half.consumed - rest.consumed)
                });
                assert_eq!((drained, end.err()), (single, single_end), "{name} {cut}");
            }
        }
    }

    #[test]
    fn every_cut_is_told() {
        let file = classic([0xd4, 0xc3, 0xb2, 0xa1], Order::Little, 0, 0);
        for len in 0..file.len() {
            let records: Vec<_> = Records::new(&file[..len]).collect();
            match len {
                0..24 => assert!(matches!(records[..], [Err(Damage::NotACapture { .. })]), "{len}"),
                24 => assert!(records.is_empty(), "{len}"),
                _ => assert_eq!(records, [Err(Damage::CutOff { offset: 24 })], "{len}"),
            }
        }
    }

    #[test]
    fn damage_is_named() {
        let mut huge = classic([0xd4, 0xc3, 0xb2, 0xa1], Order::Little, 0, 0);
        huge[32..36].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
        let cases: [(&str, &[u8], &str); 4] = [
            (
                "a length beyond reason",
                &huge,
                "damaged at byte 24: a record claims more bytes than any frame has",
            ),
            (
                "network monitor",
                b"GMBU\0\x02\0\0",
                "not a pcap or pcapng capture: it is a Microsoft Network Monitor 2 file, convert it with editcap",
            ),
            ("text", b"hello world", "not a pcap or pcapng capture"),
            ("empty", b"", "not a pcap or pcapng capture: the file is empty"),
        ];
        for (name, file, expected) in cases {
            let text = Records::new(file).find_map(Result::err).map(|damage| damage.to_string());
            assert_eq!(text.as_deref(), Some(expected), "{name}");
        }
    }
}
