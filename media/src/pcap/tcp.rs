//! Puts TCP segments back into streams of bytes, one for each direction, as an observer can (RFC 9293 §3.4).
//!
//! The observer may have come late, may see segments twice or in any order, and never sees some at all: what is
//! missing is waited for within bounds and then told as [`Part::Lost`]. The first copy of a byte stays. Whoever
//! reads the streams keeps its own state `T` for each direction here, so that one look-up finds both.
//!
//! Not here: what the bytes mean.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::content::Segment;
use crate::time::Micros;

/// Both directions of all TCP connections of a capture.
///
/// *Bounds*: 16,384 directions; segments that wait for others take 16 MiB, and 256 of them in one direction.
#[derive(Debug)]
pub struct Connections<T> {
    directions: HashMap<Ends, Direction<T>>,
    /// Bytes that wait for others before them.
    waiting_bytes: usize,
    /// Directions with such bytes.
    waiting_directions: usize,
}

/// What comes next in one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch<'a> {
    /// When it could be read: when its last byte, or what was missing before it, was captured.
    pub at: Micros,
    /// Who sent it.
    pub source: SocketAddr,
    /// Where it was sent.
    pub destination: SocketAddr,
    /// What it is.
    pub part: Part<'a>,
}

/// A part of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The direction begins, or is joined in its midst; its state is new.
    Begin,
    /// The bytes that follow.
    Bytes(&'a [u8]),
    /// So many bytes follow that were not captured.
    Lost(usize),
    /// Nothing more is told of this direction; its state goes.
    End,
}

/// Whether the rest of a direction is worth its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Its bytes are passed over until another connection takes its place.
    None,
    /// Go on.
    Some,
}

type Ends = (SocketAddr, SocketAddr);

#[derive(Debug)]
struct Direction<T> {
    /// The sequence number of the first byte that was seen.
    first: u32,
    /// The sequence number of the next byte.
    next: u32,
    last: Micros,
    is_ignored: bool,
    /// In the order of their sequence numbers, all beyond `next`.
    waiting: Vec<Waiting>,
    /// When the first of them came.
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

/// Hands the parts of one direction out.
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
    /// What segments that wait for others may take, in all directions together.
    pub const WAITING_BYTES_MAX: usize = 16 << 20;

    /// A table without a connection.
    #[must_use]
    pub fn new() -> Self {
        Connections::default()
    }

    /// Bytes that segments take while they wait for others before them; never above [`Self::WAITING_BYTES_MAX`].
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Takes a segment and hands out what can be read now.
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

    /// Hands out what still waits, and ends every direction.
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
            // Another connection of the same ports, whose SYN was not captured.
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
        // One that is given up may be smaller than the one that came. Without any, this direction is within the bound.
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

    /// The other side has `number`: what is missing before it was lost to the capture and never comes.
    fn acknowledged<F>(&mut self, at: Micros, ends: Ends, number: u32, sink: &mut F)
    where
        F: FnMut(&mut T, Stretch<'_>) -> Interest,
    {
        let Some(direction) = self.directions.get_mut(&ends) else { return };
        let before = direction.waiting_bytes();
        // Within the first moments the capture itself may have mixed two directions up.
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
        // Each turn hands one of them out at least.
        while !direction.waiting.is_empty() {
            direction.skip(&mut teller);
        }
        self.account(before, 0);
        teller.tell(&mut direction.state, direction.last, Part::End);
    }

    /// Ends the quarter of the directions that were idle longest.
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
    /// Whether a SYN before `next` opens this very connection: it came again, or behind the first bytes.
    const fn begins_at(&self, next: u32) -> bool {
        self.first.wrapping_sub(next) < SYN_LATE_BYTES_MAX
    }

    /// Takes bytes that begin at or before the next one.
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

    /// Takes what waited and is next; `at` is when the way to it became free, where it did.
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

    /// Gives up what is missing before the first that waits.
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

    /// Goes on without a look at the bytes.
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

/// Directions that are known at once.
const DIRECTIONS_MAX: usize = 16_384;
/// Segments of one direction that wait.
const WAITING_MAX: usize = 256;
/// What a segment that waits takes beside its bytes.
const WAITING_OVERHEAD: usize = 64;
/// A SYN so far before the first bytes that were seen still is theirs: a sender's first window is smaller.
const SYN_LATE_BYTES_MAX: u32 = 1 << 16;
/// How long a missing segment is waited for, in microseconds: a sender repeats it after a second.
const WAITING_US_MAX: i64 = 3_000_000;
/// How long it is waited for although the other side has it.
const ACKNOWLEDGED_US_MIN: i64 = 20_000;
/// Sequence numbers further away than any window (RFC 7323 §2.2 allows a gigabyte, nobody uses 16 MiB for calls)
/// are another connection's.
const WINDOW_MAX: u32 = 16 << 20;

#[cfg(test)]
#[path = "tcp_tests.rs"]
mod tests;
