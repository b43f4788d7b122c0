//! Reassembles TCP segments into streams of bytes, one per direction, as an observer can (RFC 9293 §3.4).
//!
//! The observer may have started late, may see segments twice or in any order, and never sees some of them.
//! Missing bytes are waited for within bounds and then reported as [`Part::Lost`]. Where segments overlap,
//! the first copy is kept. The reader of the streams stores its own state `T` per direction here, so that one
//! look-up finds both.
//!
//! Not here: the meaning of the bytes.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::content::Segment;
use crate::time::Micros;

/// Both directions of all TCP connections of a capture.
///
/// *Bounds*: 16,384 directions; waiting segments take at most 16 MiB, and at most 256 of them wait per
/// direction.
#[derive(Debug)]
pub struct Connections<T> {
    directions: HashMap<Ends, Direction<T>>,
    /// Bytes of the segments that wait for earlier ones.
    waiting_bytes: usize,
    /// Directions with waiting segments.
    waiting_directions: usize,
}

/// The next part of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch<'a> {
    /// When it became readable: when its last byte, or the missing part before it, was captured.
    pub at: Micros,
    /// Its sender.
    pub source: SocketAddr,
    /// Its destination.
    pub destination: SocketAddr,
    /// The part.
    pub part: Part<'a>,
}

/// A part of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The direction begins, or the capture starts within it; its state is new.
    Begin,
    /// The next bytes.
    Bytes(&'a [u8]),
    /// The next bytes, this many, were not captured.
    Lost(usize),
    /// The direction has ended; its state is dropped.
    End,
}

/// Whether the reader needs the rest of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Its bytes are skipped until another connection replaces it.
    None,
    /// Continue.
    Some,
}

type Ends = (SocketAddr, SocketAddr);

#[derive(Debug)]
struct Direction<T> {
    /// The sequence number of the first byte.
    first: u32,
    /// The sequence number of the next expected byte.
    next: u32,
    last: Micros,
    is_ignored: bool,
    /// In order of their sequence numbers, all after `next`.
    waiting: Vec<Waiting>,
    /// When the first of them arrived.
    since: Micros,
    state: T,
}

#[derive(Debug)]
struct Waiting {
    at: Micros,
    sequence: u32,
    bytes: Vec<u8>,
    len: usize,
}

/// Passes the parts of one direction to the sink.
struct Teller<'a, F> {
    ends: Ends,
    sink: &'a mut F,
}

impl<T> Default for Connections<T> {
    fn default() -> Self {
        Connections { directions: HashMap::new(), waiting_bytes: 0, waiting_directions: 0 }
    }
}

impl<T: Default> Connections<T> {
    /// Limit of the memory for waiting segments, in all directions together.
    pub const WAITING_BYTES_MAX: usize = 16 << 20;

    /// A table without connections.
    #[must_use]
    pub fn new() -> Self {
        Connections::default()
    }

    /// Memory of segments that wait for earlier ones; never above [`Self::WAITING_BYTES_MAX`].
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Adds a segment and passes on what can be read now.
    pub fn segment<F>(&mut self, at: Micros, segment: &Segment<'_>, sink: &mut F)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let ends = (segment.source, segment.destination);
        if let Some(number) = segment.acknowledges.filter(|_| self.waiting_directions > 0) {
            self.acknowledged(at, (ends.1, ends.0), number, sink);
        }
        if segment.rst {
            self.end(ends, sink);
            self.end((ends.1, ends.0), sink);
            return;
        }
        if segment.syn {
            let next = segment.sequence.wrapping_add(1);
            if self.directions.get(&ends).is_none_or(|known| !known.begins_at(next)) {
                self.end(ends, sink);
                self.begin(at, ends, next, sink);
            }
        }
        if segment.payload_len > 0 {
            let sequence = segment.sequence.wrapping_add(u32::from(segment.syn));
            self.data(at, ends, sequence, segment.payload, segment.payload_len, sink);
        }
    }

    /// Passes on what still waits, and ends every direction.
    pub fn finish<F>(&mut self, sink: &mut F)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let mut all: Vec<(Micros, Ends)> =
            self.directions.iter().map(|(ends, one)| (one.last, *ends)).collect();
        all.sort_unstable();
        for (_, ends) in all {
            self.end(ends, sink);
        }
    }

    fn data<F>(&mut self, at: Micros, ends: Ends, sequence: u32, bytes: &[u8], len: usize, sink: &mut F)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let ahead = self.directions.get(&ends).map(|known| sequence.wrapping_sub(known.next).cast_signed());
        match ahead {
            None => self.begin(at, ends, sequence, sink),
            // Another connection with the same ports, whose SYN was not captured.
            Some(ahead) if ahead.unsigned_abs() > WINDOW_MAX => {
                self.end(ends, sink);
                self.begin(at, ends, sequence, sink);
            }
            Some(_) => {}
        }
        let Some(direction) = self.directions.get_mut(&ends) else { return };
        direction.last = at;
        if direction.is_ignored {
            direction.pass(sequence, len);
            return;
        }
        let before = direction.waiting_bytes();
        let mut teller = Teller { ends, sink };
        if sequence.wrapping_sub(direction.next).cast_signed() <= 0 {
            direction.take(at, sequence, bytes, len, &mut teller);
            direction.drain(Some(at), &mut teller);
        } else {
            direction.hold(at, sequence, bytes, len);
        }
        let is_over = direction.waiting.len() > WAITING_MAX
            || (!direction.waiting.is_empty() && at.since(direction.since) > WAITING_US_MAX);
        if is_over {
            direction.skip(&mut teller);
        }
        // A dropped segment may be smaller than the new one, so this repeats; without waiting segments the
        // direction is within the bound.
        let others = self.waiting_bytes - before;
        while others + direction.waiting_bytes() > Self::WAITING_BYTES_MAX && !direction.waiting.is_empty() {
            direction.skip(&mut teller);
        }
        if direction.is_ignored {
            direction.waiting = Vec::new();
        }
        let after = direction.waiting_bytes();
        self.account(before, after);
    }

    /// The receiver acknowledged up to `number`: missing bytes before it were not captured and will not arrive.
    fn acknowledged<F>(&mut self, at: Micros, ends: Ends, number: u32, sink: &mut F)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let Some(direction) = self.directions.get_mut(&ends) else { return };
        let before = direction.waiting_bytes();
        // Within a short time the capture itself may have swapped segments of the two directions.
        if at.since(direction.since) <= ACKNOWLEDGED_US_MIN {
            return;
        }
        let mut teller = Teller { ends, sink };
        while direction
            .waiting
            .first()
            .is_some_and(|first| number.wrapping_sub(first.sequence).cast_signed() > 0)
        {
            direction.skip(&mut teller);
        }
        let after = direction.waiting_bytes();
        self.account(before, after);
    }

    fn begin<F>(&mut self, at: Micros, ends: Ends, next: u32, sink: &mut F)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        if self.directions.len() >= DIRECTIONS_MAX {
            self.make_room(sink);
        }
        let mut direction = Direction {
            first: next,
            next,
            last: at,
            is_ignored: false,
            waiting: Vec::new(),
            since: at,
            state: T::default(),
        };
        let mut teller = Teller { ends, sink };
        direction.is_ignored = teller.tell(&mut direction.state, at, Part::Begin) == Interest::None;
        self.directions.insert(ends, direction);
    }

    fn end<F>(&mut self, ends: Ends, sink: &mut F)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let Some(mut direction) = self.directions.remove(&ends) else { return };
        let before = direction.waiting_bytes();
        let mut teller = Teller { ends, sink };
        // Each iteration passes on at least one of them.
        while !direction.waiting.is_empty() {
            direction.skip(&mut teller);
        }
        self.account(before, 0);
        teller.tell(&mut direction.state, direction.last, Part::End);
    }

    /// Ends the quarter of the directions that were idle for the longest time.
    fn make_room<F>(&mut self, sink: &mut F)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let mut all: Vec<(Micros, Ends)> =
            self.directions.iter().map(|(ends, one)| (one.last, *ends)).collect();
        all.sort_unstable();
        for (_, ends) in all.into_iter().take(DIRECTIONS_MAX / 4) {
            self.end(ends, sink);
        }
    }

    fn account(&mut self, before: usize, after: usize) {
        self.waiting_bytes = (self.waiting_bytes + after).saturating_sub(before);
        match (before, after) {
            (0, 1..) => self.waiting_directions += 1,
            (1.., 0) => self.waiting_directions = self.waiting_directions.saturating_sub(1),
            _ => {}
        }
    }
}

impl<T> Direction<T> {
    /// Whether a SYN before `next` belongs to this connection: it was repeated, or captured after the first
    /// bytes.
    const fn begins_at(&self, next: u32) -> bool {
        self.first.wrapping_sub(next) < SYN_LATE_BYTES_MAX
    }

    /// Passes on bytes that begin at or before the next expected one.
    fn take<F>(&mut self, at: Micros, sequence: u32, bytes: &[u8], len: usize, teller: &mut Teller<'_, F>)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let seen = self.next.wrapping_sub(sequence) as usize;
        if seen >= len {
            return;
        }
        self.next = sequence.wrapping_add(len as u32);
        let kept = bytes.get(seen..).unwrap_or_default();
        if !kept.is_empty() {
            self.tell(at, Part::Bytes(kept), teller);
        }
        let lost = len - seen.max(bytes.len());
        if lost > 0 {
            self.tell(at, Part::Lost(lost), teller);
        }
    }

    /// Keeps bytes that are ahead.
    fn hold(&mut self, at: Micros, sequence: u32, bytes: &[u8], len: usize) {
        if self.waiting.is_empty() {
            self.since = at;
        }
        let next = self.next;
        let distance = |sequence: u32| sequence.wrapping_sub(next);
        let place = self.waiting.partition_point(|one| distance(one.sequence) < distance(sequence));
        let is_copy = self.waiting.get(place).is_some_and(|known| {
            known.sequence == sequence && known.len >= len && known.bytes.len() >= bytes.len()
        });
        if !is_copy {
            self.waiting.insert(place, Waiting { at, sequence, bytes: bytes.to_vec(), len });
        }
    }

    /// Passes on waiting bytes that are next; `at` is when the gap before them was closed, if it was.
    fn drain<F>(&mut self, at: Option<Micros>, teller: &mut Teller<'_, F>)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let mut ready = 0;
        let waiting = std::mem::take(&mut self.waiting);
        for one in &waiting {
            if one.sequence.wrapping_sub(self.next).cast_signed() > 0 {
                break;
            }
            self.take(at.unwrap_or(one.at), one.sequence, &one.bytes, one.len, teller);
            ready += 1;
        }
        self.waiting = waiting;
        self.waiting.drain(..ready);
        if let Some(first) = self.waiting.iter().map(|one| one.at).min() {
            self.since = first;
        }
    }

    /// Reports the bytes missing before the first waiting segment as lost.
    fn skip<F>(&mut self, teller: &mut Teller<'_, F>)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let Some((at, sequence)) = self.waiting.first().map(|first| (first.at, first.sequence)) else {
            return;
        };
        let lost = sequence.wrapping_sub(self.next) as usize;
        self.next = sequence;
        self.tell(at, Part::Lost(lost), teller);
        self.drain(None, teller);
    }

    /// Advances without passing the bytes on.
    fn pass(&mut self, sequence: u32, len: usize) {
        let end = sequence.wrapping_add(len as u32);
        if end.wrapping_sub(self.next).cast_signed() > 0 {
            self.next = end;
        }
    }

    fn tell<F>(&mut self, at: Micros, part: Part<'_>, teller: &mut Teller<'_, F>)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        if !self.is_ignored {
            self.is_ignored = teller.tell(&mut self.state, at, part) == Interest::None;
        }
    }

    fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(|one| one.bytes.len() + WAITING_OVERHEAD).sum()
    }
}

impl<F> Teller<'_, F> {
    fn tell<T>(&mut self, state: &mut T, at: Micros, part: Part<'_>) -> Interest
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        (self.sink)(state, Stretch { at, source: self.ends.0, destination: self.ends.1, part })
    }
}

/// Directions stored at the same time.
const DIRECTIONS_MAX: usize = 16_384;
/// Waiting segments per direction.
const WAITING_MAX: usize = 256;
/// Memory of a waiting segment besides its bytes.
const WAITING_OVERHEAD: usize = 64;
/// A SYN at most this far before the first captured bytes belongs to them: a sender's first window is
/// smaller.
const SYN_LATE_BYTES_MAX: u32 = 1 << 16;
/// How long a missing segment is waited for, in microseconds; a sender repeats it after a second.
const WAITING_US_MAX: i64 = 3_000_000;
/// The shortest wait, also when the receiver has acknowledged the missing bytes.
const ACKNOWLEDGED_US_MIN: i64 = 20_000;
/// Sequence numbers further away than any window belong to another connection (RFC 7323 §2.2 allows a
/// gigabyte, but calls do not use 16 MiB).
const WINDOW_MAX: u32 = 16 << 20;

#[cfg(test)]
#[path = "tcp_tests.rs"]
mod tests;
