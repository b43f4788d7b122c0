//! The streams of one key: the packets that were processed, and the rollover counter of each stream (RFC 3711 §3.3).

use super::SrtpError;

/// The streams that were protected or accepted under one key, by SSRC.
///
/// A stream is kept as long as the key, because a removed one would begin at index zero again: its old packets would be
/// accepted, and its keystream would be used twice.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    /// The stream of the last packet is the first.
    streams: Vec<Stream>,
}

/// The indices of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    ssrc: u32,
    /// The highest index: the rollover counter and the sequence number.
    highest: u64,
    /// One bit for each of the [`WINDOW`] indices up to the highest, the highest in the lowest bit: whether it was
    /// used.
    came: u128,
}

impl Streams {
    /// Without streams.
    pub(super) fn new() -> Streams {
        Streams { streams: Vec::with_capacity(STREAMS_LIKELY) }
    }

    /// The index that a packet of `ssrc` with this sequence number has, if the packet is acceptable now (RFC 3711
    /// §3.3.1).
    ///
    /// # Errors
    /// The packet is a repetition, or too old to decide this; or there are too many streams.
    #[inline]
    pub(super) fn index_of(&mut self, ssrc: u32, sequence: u16) -> Result<u64, SrtpError> {
        let Some(stream) = self.find(ssrc)? else { return Ok(sequence.into()) };
        let index = stream.estimate(sequence).ok_or(SrtpError::Replayed)?;
        stream.admits(index)?;
        Ok(index)
    }

    /// Checks that a packet of `ssrc` with this index is acceptable now.
    ///
    /// # Errors
    /// The packet is a repetition, or too old to decide this; or there are too many streams.
    pub(super) fn admits(&mut self, ssrc: u32, index: u64) -> Result<(), SrtpError> {
        self.find(ssrc)?.map_or(Ok(()), |stream| stream.admits(index))
    }

    /// Records a packet, which [`Streams::index_of`] admitted and whose tag is right.
    #[inline]
    pub(super) fn came(&mut self, ssrc: u32, index: u64) {
        match self.streams.first_mut() {
            Some(stream) if stream.ssrc == ssrc => stream.came(index),
            _ => {
                self.streams.push(Stream { ssrc, highest: index, came: 1 });
                let last = self.streams.len() - 1;
                self.streams.swap(0, last);
            }
        }
    }

    /// The highest index of a stream.
    pub(super) fn highest(&self, ssrc: u32) -> Option<u64> {
        self.streams.iter().find(|stream| stream.ssrc == ssrc).map(|stream| stream.highest)
    }

    /// The stream with this SSRC, which becomes the first.
    #[inline]
    fn find(&mut self, ssrc: u32) -> Result<Option<&mut Stream>, SrtpError> {
        if self.streams.first().is_none_or(|stream| stream.ssrc != ssrc) {
            match self.streams.iter().position(|stream| stream.ssrc == ssrc) {
                Some(place) => self.streams.swap(0, place),
                None if self.streams.len() >= STREAMS_MAX => return Err(SrtpError::Streams),
                None => return Ok(None),
            }
        }
        Ok(self.streams.first_mut())
    }
}

impl Stream {
    /// The index nearest to the highest one with this sequence number (RFC 3711 appendix A); `None` before the
    /// first.
    fn estimate(&self, sequence: u16) -> Option<u64> {
        let (rollover, last) = (self.highest >> 16, i32::from(self.highest as u16));
        let distance = i32::from(sequence) - last;
        let rollover = match distance {
            _ if last < HALF && distance > HALF => rollover.checked_sub(1)?,
            _ if last >= HALF && distance < -HALF => rollover + 1,
            _ => rollover,
        };
        // The rollover counter has 32 bits; before it wraps, a new key is due (RFC 3711 §9.2).
        (rollover <= u64::from(u32::MAX)).then_some(rollover << 16 | u64::from(sequence))
    }

    fn admits(&self, index: u64) -> Result<(), SrtpError> {
        match self.highest.checked_sub(index) {
            None => Ok(()),
            Some(age) if age < WINDOW && self.came >> age & 1 == 0 => Ok(()),
            Some(_) => Err(SrtpError::Replayed),
        }
    }

    fn came(&mut self, index: u64) {
        match self.highest.checked_sub(index) {
            Some(age) => self.came |= 1_u128.checked_shl(u32::try_from(age).unwrap_or(u32::MAX)).unwrap_or(0),
            None => {
                let ahead = u32::try_from(index - self.highest).unwrap_or(u32::MAX);
                self.came = self.came.checked_shl(ahead).unwrap_or(0) | 1;
                self.highest = index;
            }
        }
    }
}

/// Half of the range of sequence numbers.
const HALF: i32 = 1 << 15;
/// Number of packets by which one may be late: RFC 3711 §3.3.2 requires at least 64.
pub(super) const WINDOW: u64 = 128;
/// Streams of one key. A party has a new one for each source of audio, for example music while it holds.
const STREAMS_MAX: usize = 256;
/// Streams of most keys.
const STREAMS_LIKELY: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_nearest_to_the_highest() {
        let table = [
            ("next", 1, 100, 101, Some(1 << 16 | 101)),
            ("far ahead", 1, 100, 32_000, Some(1 << 16 | 32_000)),
            ("of the last round", 1, 100, 65_535, Some(65_535)),
            ("before the first", 0, 100, 65_535, None),
            ("wraps", 0, 65_535, 0, Some(1 << 16)),
            ("wraps with loss", 3, 65_000, 200, Some(4 << 16 | 200)),
            ("late after a wrap", 4, 200, 65_000, Some(3 << 16 | 65_000)),
            ("late in the upper half", 0, 65_000, 64_990, Some(64_990)),
            ("the last index of a key", u64::from(u32::MAX), 65_535, 0, None),
        ];
        for (name, rollover, last, sequence, expected) in table {
            let stream = Stream { ssrc: 1, highest: rollover << 16 | last, came: 1 };
            assert_eq!(stream.estimate(sequence), expected, "{name}");
        }
    }

    #[test]
    fn each_index_comes_once_and_not_too_late() {
        let mut streams = Streams::new();
        streams.came(1, 1_000);
        let cases = [(1_000, false), (999, true), (999, false), (1_200, true), (1_073, true), (1_072, false)];
        for (index, expected) in cases {
            let admitted = streams.admits(1, index);
            assert_eq!(admitted.is_ok(), expected, "{index}");
            if admitted.is_ok() {
                streams.came(1, index);
            }
        }
        assert_eq!(streams.highest(1), Some(1_200));
    }

    #[test]
    fn streams_are_bounded_and_none_is_forgotten() {
        let mut streams = Streams::new();
        for ssrc in 0..STREAMS_MAX as u32 {
            assert_eq!(streams.index_of(ssrc, 7), Ok(7));
            streams.came(ssrc, 7);
        }
        assert_eq!(streams.index_of(u32::MAX, 7), Err(SrtpError::Streams));
        assert_eq!(streams.index_of(0, 7), Err(SrtpError::Replayed));
        assert_eq!(streams.index_of(0, 8), Ok(8));
    }
}
