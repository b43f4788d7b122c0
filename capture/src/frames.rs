//! Frames that were read ahead of the engine: the header fields of plain RTP, and the bytes of everything
//! else.

use sidetone_media::pcap::{LinkType, Record};
use sidetone_media::rtp::Header;
use sidetone_media::time::Micros;

use super::router::PlainRtp;
use super::times::Times;

/// The frames of one block, in order.
#[derive(Debug, Default)]
pub(super) struct Frames {
    frames: Vec<Frame>,
    /// The bytes of the frames that are kept whole.
    kept: Vec<u8>,
    /// The number of plain RTP frames, and their bytes on the wire.
    plain_packets: u64,
    plain_bytes: u64,
    /// What is wrong with the times of the file up to here.
    pub(super) times: Times,
}

/// One frame, small because a thread writes it and another reads it.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// The fields of [`PlainRtp`] without the struct, so that the variant's tag fits into the same size.
    Rtp {
        at: Micros,
        addresses: u64,
        ports: u32,
        header: Header,
        payload_len: u16,
    },
    Whole {
        at: Micros,
        link: LinkType,
        begin: u32,
        len: u32,
        wire_len: u32,
    },
}

/// A frame as the engine takes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// RTP whose payload is not decoded, and its capture time.
    Rtp(Micros, PlainRtp),
    /// Anything else.
    Whole(Record<'a>),
}

impl Frames {
    /// Appends a frame; with `listens` the bytes of RTP are kept as well.
    #[inline]
    pub(super) fn push(&mut self, record: &Record<'_>, listens: bool) {
        match PlainRtp::of(record) {
            Some(rtp) if !listens => {
                self.plain_packets += 1;
                self.plain_bytes += u64::from(record.wire_len);
                let PlainRtp { addresses, ports, header, payload_len } = rtp;
                self.frames.push(Frame::Rtp { at: record.at, addresses, ports, header, payload_len });
            }
            _ => self.keep(record),
        }
    }

    #[inline(never)]
    fn keep(&mut self, record: &Record<'_>) {
        let Record { at, link, frame, wire_len } = *record;
        // A block and one element more are far smaller than 4 GiB.
        let (begin, len) = (self.kept.len() as u32, frame.len() as u32);
        self.kept.extend_from_slice(frame);
        self.frames.push(Frame::Whole { at, link, begin, len, wire_len });
    }

    /// Clears everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.kept.clear();
        self.plain_packets = 0;
        self.plain_bytes = 0;
    }

    /// Returns the number of plain RTP frames, and their bytes on the wire.
    pub(super) fn plain_sums(&self) -> (u64, u64) {
        (self.plain_packets, self.plain_bytes)
    }

    /// The frames as they were appended.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = Read<'_>> {
        self.frames.iter().map(|frame| match frame {
            Frame::Rtp { at, addresses, ports, header, payload_len } => {
                let (addresses, ports, header, payload_len) = (*addresses, *ports, *header, *payload_len);
                Read::Rtp(*at, PlainRtp { addresses, ports, header, payload_len })
            }
            Frame::Whole { at, link, begin, len, wire_len } => {
                let (begin, len) = (*begin as usize, *len as usize);
                let frame = self.kept.get(begin..begin + len).unwrap_or_default();
                Read::Whole(Record { at: *at, link: *link, frame, wire_len: *wire_len })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sidetone_media::pcap::{Damage, Records, Writer};

    use super::*;
    use crate::compose;
    use crate::feed::Feed;

    /// A frame with its bytes, if it is kept whole.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Owned {
        Rtp(Micros, PlainRtp),
        Whole(Micros, LinkType, Vec<u8>, u32),
    }

    fn owned(frames: &Frames) -> Vec<Owned> {
        let each = frames.iter().map(|frame| match frame {
            Read::Rtp(at, rtp) => Owned::Rtp(at, rtp),
            Read::Whole(Record { at, link, frame, wire_len }) => {
                Owned::Whole(at, link, frame.to_vec(), wire_len)
            }
        });
        each.collect()
    }

    /// The frames of a file that is completely in memory, and its damage.
    fn at_once(file: &[u8], listens: bool) -> (Vec<Owned>, Option<Damage>) {
        let (mut frames, mut damage) = (Vec::new(), None);
        for record in Records::new(file) {
            match record {
                Ok(record) => frames.push(match PlainRtp::of(&record) {
                    Some(rtp) if !listens => Owned::Rtp(record.at, rtp),
                    _ => Owned::Whole(record.at, record.link, record.frame.to_vec(), record.wire_len),
                }),
                Err(what) => damage = Some(what),
            }
        }
        (frames, damage)
    }

    /// The same, in pieces that end at these positions.
    fn in_pieces(file: &[u8], ends: &[usize], listens: bool) -> (Vec<Owned>, Option<Damage>) {
        let (mut feed, mut frames, mut all, mut begin) = (Feed::default(), Frames::default(), Vec::new(), 0);
        for end in ends.iter().copied().chain([file.len()]) {
            frames.clear();
            let taken = feed.take(&file[begin..end], |record| frames.push(record, listens));
            let plain = frames.iter().filter(|frame| matches!(frame, Read::Rtp(..))).count();
            assert_eq!(frames.plain_sums().0, plain as u64);
            all.extend(owned(&frames));
            begin = end;
            if let Err(damage) = taken {
                return (all, Some(damage));
            }
        }
        (all, feed.finish().err())
    }

    fn call() -> Vec<u8> {
        let mut file = Vec::new();
        compose(&"clean duration=200ms digits=1".parse().unwrap(), &mut file).unwrap();
        file
    }

    /// The capture as pcapng, with a new section after every few frames.
    fn sections(file: &[u8]) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut out = Vec::new();
        for (n, record) in Records::new(file).map(Result::unwrap).enumerate() {
            if n % 7 == 0 {
                out.extend(words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]));
                out.extend(words(&[1, 20, record.link.0.into(), 0, 20]));
            }
            let at = record.at.0 as u64;
            let len = record.frame.len().next_multiple_of(4) + 32;
            let kept = record.frame.len() as u32;
            out.extend(words(&[6, len as u32, 0, (at >> 32) as u32, at as u32, kept, record.wire_len]));
            out.extend(record.frame);
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend(words(&[len as u32]));
        }
        out
    }

    #[test]
    fn a_frame_takes_less_than_a_cache_line() {
        assert_eq!(size_of::<Frame>(), 40);
    }

    #[test]
    fn a_capture_split_or_cut_off_anywhere_has_the_same_frames() {
        let call = call();
        for file in [&call[..], &sections(&call)] {
            let whole = at_once(file, false);
            assert!(whole.1.is_none() && whole.0.len() > 20);
            for place in 0..=file.len() {
                assert_eq!(in_pieces(file, &[place], false), whole, "{place}");
                let cut = &file[..place];
                assert_eq!(in_pieces(cut, &[place / 2], false), at_once(cut, false), "{place}");
            }
        }
    }

    #[test]
    fn a_frame_larger_than_many_pieces_is_put_together() {
        let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
        let (from, to) = ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5000".parse().unwrap());
        for len in [5, 60_000, 100] {
            writer.write_udp(Micros(1), from, to, &vec![7; len]).unwrap();
        }
        let file = writer.finish().unwrap();
        let ends: Vec<usize> = (0..file.len()).step_by(64).collect();
        let (frames, damage) = in_pieces(&file, &ends, false);
        assert_eq!((&frames, &damage), (&at_once(&file, false).0, &None));
        assert_eq!(frames.len(), 3);
    }

    proptest! {
        #[test]
        fn damage_is_reported_behind_the_same_frames(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            ends in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
            next_generation: bool,
            listens: bool,
        ) {
            let mut file = call();
            if next_generation {
                file = sections(&file);
            }
            for (place, value) in changes {
                let place = place.index(file.len());
                file[place] = value;
            }
            let mut ends: Vec<usize> = ends.iter().map(|end| end.index(file.len() + 1)).collect();
            ends.sort_unstable();
            prop_assert_eq!(in_pieces(&file, &ends, listens), at_once(&file, listens));
        }
    }
}
