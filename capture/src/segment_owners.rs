//! Records which TCP segments carried which messages of one direction of a connection.

use std::collections::VecDeque;

/// Frames with the excerpts that they belong to.
#[derive(Debug, Default)]
pub(super) struct Found {
    all: Vec<(u64, usize)>,
    left_out: u64,
}

/// A segment: its frame, and the excerpts whose Call-ID it contains.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) frame: u64,
    pub(super) named: Vec<usize>,
}

/// One direction of a connection; positions count from its first byte.
///
/// *Bounds*: 4,096 segments of incomplete messages, 64 complete messages, 16 segments that open the
/// connection.
#[derive(Debug)]
pub(super) struct SegmentOwners {
    /// The sequence number of its first byte.
    first: u32,
    /// The position after the bytes that were read.
    read: u64,
    /// The position after the last complete message or packet.
    end: u64,
    /// The frames that opened the connection, until its first message is complete.
    opening: Vec<u64>,
    /// Segments with a byte after that position.
    open: Vec<(u64, u64, Span)>,
    /// The last messages and packets: begin, end, and their excerpts.
    units: VecDeque<(u64, u64, Vec<usize>)>,
}

impl Found {
    /// Records the excerpts of a frame.
    pub(super) fn add(&mut self, frame: u64, places: &[usize]) {
        let room = FOUND_MAX.saturating_sub(self.all.len()).min(places.len());
        self.left_out += (places.len() - room) as u64;
        self.all.extend(places.iter().take(room).map(|place| (frame, *place)));
    }

    /// Returns the pairs in the order of their frames, each once, and how many were left out.
    pub(super) fn finish(mut self) -> (VecDeque<(u64, usize)>, u64) {
        self.all.sort_unstable();
        self.all.dedup();
        (self.all.into(), self.left_out)
    }
}

impl SegmentOwners {
    /// Returns a direction whose first byte has this sequence number.
    pub(super) fn new(first: u32) -> Self {
        SegmentOwners {
            first,
            read: 0,
            end: 0,
            opening: Vec::new(),
            open: Vec::new(),
            units: VecDeque::new(),
        }
    }

    /// Takes a segment whose first byte has this sequence number. It may be a retransmission, or arrive
    /// early.
    pub(super) fn enter(&mut self, sequence: u32, len: usize, span: Span, found: &mut Found) {
        let begin = self.place(sequence);
        let end = begin.saturating_add(len as u64);
        for (from, to, places) in &self.units {
            if begin < *to && end > *from {
                found.add(span.frame, places);
            }
        }
        if end > self.end {
            if self.open.len() >= OPEN_MAX {
                self.open.remove(0);
            }
            self.open.push((begin, end, span));
        }
    }

    /// Takes a segment that opens the connection. It belongs to the excerpts of the first message.
    pub(super) fn opens(&mut self, frame: u64, found: &mut Found) {
        match self.units.front() {
            Some((0, _, places)) => found.add(frame, places),
            Some(_) => {}
            None if self.opening.len() < OPENING_MAX => self.opening.push(frame),
            None => {}
        }
    }

    /// Counts `len` more bytes as read.
    pub(super) fn go_on(&mut self, len: usize) {
        self.read += len as u64;
    }

    /// Takes a message or packet of these excerpts, which ends `behind` bytes before the last byte that was
    /// read.
    pub(super) fn unit(&mut self, behind: usize, places: &[usize], found: &mut Found) {
        let (begin, end) = (self.end, self.read.saturating_sub(behind as u64));
        for frame in std::mem::take(&mut self.opening) {
            found.add(frame, places);
        }
        for (_, _, span) in self.open.iter().filter(|(from, to, _)| *from < end && *to > begin) {
            found.add(span.frame, places);
            found.add(span.frame, &span.named);
        }
        self.open.retain(|(_, to, _)| *to > end);
        self.end = end.max(begin);
        if self.units.len() >= UNITS_MAX {
            self.units.pop_front();
        }
        self.units.push_back((begin, end, places.to_vec()));
    }

    /// Returns the excerpts of the last byte before a sequence number.
    pub(super) fn places_before(&self, sequence: u32) -> &[usize] {
        let place = self.place(sequence);
        let unit = self.units.iter().rev().find(|(begin, end, _)| *begin < place && place <= *end);
        unit.map_or(&[], |(_, _, places)| places.as_slice())
    }

    /// Assigns the segments of an incomplete message to the excerpts whose Call-ID they contain. A segment
    /// without a Call-ID is assigned like the one before it.
    pub(super) fn finish(mut self, found: &mut Found) {
        self.open.sort_by_key(|(begin, _, _)| *begin);
        let mut named = Vec::new();
        for (_, _, span) in self.open {
            if !span.named.is_empty() {
                named = span.named;
            }
            found.add(span.frame, &named);
        }
    }

    /// The position of a sequence number: of all that have it, the nearest one to what was read.
    fn place(&self, sequence: u32) -> u64 {
        // Sequence numbers count modulo 2^32.
        let ahead = sequence.wrapping_sub(self.first.wrapping_add(self.read as u32)).cast_signed();
        self.read.saturating_add_signed(ahead.into())
    }
}

/// Pairs of a frame and an excerpt.
const FOUND_MAX: usize = 8 << 20;
/// Segments that open one connection; more are retransmissions.
const OPENING_MAX: usize = 16;
/// Segments of one direction that wait for the end of their message.
const OPEN_MAX: usize = 4_096;
/// Complete messages and packets of one direction that are kept for retransmissions and late
/// acknowledgements.
const UNITS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn span(frame: u64, named: &[usize]) -> Span {
        Span { frame, named: named.to_vec() }
    }

    /// The numbers wrap, one segment holds the end of a message and the beginning of the next, and another is
    /// retransmitted.
    /// again.
    #[test]
    fn segments_belong_to_the_messages_that_they_hold_a_byte_of() {
        let first = u32::MAX - 9;
        let (mut track, mut found) = (SegmentOwners::new(first), Found::default());
        let at = |place: u32| first.wrapping_add(place);
        track.opens(5, &mut found);
        track.enter(at(0), 30, span(0, &[]), &mut found);
        track.go_on(30);
        track.enter(at(30), 30, span(1, &[]), &mut found);
        track.go_on(30);
        track.unit(15, &[4], &mut found);
        track.opens(6, &mut found);
        track.enter(at(0), 30, span(2, &[]), &mut found);
        // After the missing bytes.
        track.enter(at(80), 20, span(3, &[]), &mut found);
        track.enter(at(60), 20, span(4, &[]), &mut found);
        track.go_on(40);
        track.unit(0, &[7, 4], &mut found);
        assert_eq!(track.places_before(at(45)), [4]);
        assert_eq!(track.places_before(at(46)), [7, 4]);
        assert_eq!(track.places_before(at(101)), [0; 0]);
        let (all, left_out) = found.finish();
        let expected = [(0, 4), (1, 4), (1, 7), (2, 4), (3, 4), (3, 7), (4, 4), (4, 7), (5, 4), (6, 4)];
        assert_eq!((Vec::from(all), left_out), (expected.to_vec(), 0));
    }

    #[test]
    fn what_is_not_completed_goes_by_the_names_in_it() {
        let (mut track, mut found) = (SegmentOwners::new(0), Found::default());
        for (place, named) in [(0, &[][..]), (10, &[2]), (20, &[]), (30, &[5]), (40, &[])] {
            track.enter(place, 10, span(place.into(), named), &mut found);
        }
        track.go_on(50);
        track.finish(&mut found);
        assert_eq!(found.finish().0, [(10, 2), (20, 2), (30, 5), (40, 5)]);
    }
}
