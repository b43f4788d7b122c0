//! Which segments carried which bytes of one direction of a TCP connection, and whose messages those bytes are.

use std::collections::VecDeque;

/// Frames with the excerpts that they belong to.
#[derive(Debug, Default)]
pub(super) struct Found {
    all: Vec<(u64, usize)>,
    left_out: u64,
}

/// A segment: its frame, and the excerpts whose Call-ID stands in it.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) frame: u64,
    pub(super) named: Vec<usize>,
}

/// One direction of a connection; places in it are counted from its first byte.
#[derive(Debug)]
pub(super) struct Track {
    /// The sequence number of its first byte.
    first: u32,
    /// The place behind the bytes that were read.
    read: u64,
    /// The place behind the last message or packet.
    end: u64,
    /// The frames that opened the connection, until it is known whose its first bytes are.
    opening: Vec<u64>,
    /// Segments that hold a byte behind that place.
    open: Vec<(u64, u64, Span)>,
    /// The last messages and packets: where they begin and end, and whose they are.
    loads: VecDeque<(u64, u64, Vec<usize>)>,
}

impl Found {
    /// Takes note of the excerpts of a frame.
    pub(super) fn add(&mut self, frame: u64, places: &[usize]) {
        let room = FOUND_MAX.saturating_sub(self.all.len()).min(places.len());
        self.left_out += (places.len() - room) as u64;
        self.all.extend(places.iter().take(room).map(|place| (frame, *place)));
    }

    /// All of them in the order of their frames, each once, and how many were left out.
    pub(super) fn finish(mut self) -> (VecDeque<(u64, usize)>, u64) {
        self.all.sort_unstable();
        self.all.dedup();
        (self.all.into(), self.left_out)
    }
}

impl Track {
    /// A direction whose first byte has that sequence number.
    pub(super) fn new(first: u32) -> Self {
        Track { first, read: 0, end: 0, opening: Vec::new(), open: Vec::new(), loads: VecDeque::new() }
    }

    /// Takes a segment whose first byte has that sequence number; it may have come before, or be ahead.
    pub(super) fn enter(&mut self, sequence: u32, len: usize, span: Span, found: &mut Found) {
        let begin = self.place(sequence);
        let end = begin.saturating_add(len as u64);
        for (from, to, places) in &self.loads {
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

    /// Takes a segment that opens the connection: it belongs to what its first bytes are.
    pub(super) fn opens(&mut self, frame: u64, found: &mut Found) {
        match self.loads.front() {
            Some((0, _, places)) => found.add(frame, places),
            Some(_) => {}
            None if self.opening.len() < OPENING_MAX => self.opening.push(frame),
            None => {}
        }
    }

    /// So many more bytes are read.
    pub(super) fn go_on(&mut self, len: usize) {
        self.read += len as u64;
    }

    /// A message or packet of these excerpts ends so many bytes before the last byte that was read.
    pub(super) fn load(&mut self, behind: usize, places: &[usize], found: &mut Found) {
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
        if self.loads.len() >= LOADS_MAX {
            self.loads.pop_front();
        }
        self.loads.push_back((begin, end, places.to_vec()));
    }

    /// Whose is the last byte before a sequence number.
    pub(super) fn places_before(&self, sequence: u32) -> &[usize] {
        let place = self.place(sequence);
        let load = self.loads.iter().rev().find(|(begin, end, _)| *begin < place && place <= *end);
        load.map_or(&[], |(_, _, places)| places.as_slice())
    }

    /// What is not completed goes by the Call-IDs that its segments name; one without any goes with the one before.
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

    /// The place of a sequence number, the nearest one to what was read.
    fn place(&self, sequence: u32) -> u64 {
        // Sequence numbers count modulo 2^32.
        let ahead = sequence.wrapping_sub(self.first.wrapping_add(self.read as u32)).cast_signed();
        self.read.saturating_add_signed(ahead.into())
    }
}

/// Frames that are remembered, once for each excerpt.
const FOUND_MAX: usize = 8 << 20;
/// Segments that open a connection again and again.
const OPENING_MAX: usize = 16;
/// Segments of one direction that wait for the end of their message.
const OPEN_MAX: usize = 4_096;
/// Messages and packets of one direction whose segments may come again, or are acknowledged late.
const LOADS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn span(frame: u64, named: &[usize]) -> Span {
        Span { frame, named: named.to_vec() }
    }

    /// The numbers wrap, a segment holds the end of one message and the beginning of the next, another comes again.
    #[test]
    fn segments_belong_to_the_messages_that_they_hold_a_byte_of() {
        let first = u32::MAX - 9;
        let (mut track, mut found) = (Track::new(first), Found::default());
        let at = |place: u32| first.wrapping_add(place);
        track.opens(5, &mut found);
        track.enter(at(0), 30, span(0, &[]), &mut found);
        track.go_on(30);
        track.enter(at(30), 30, span(1, &[]), &mut found);
        track.go_on(30);
        track.load(15, &[4], &mut found);
        track.opens(6, &mut found);
        track.enter(at(0), 30, span(2, &[]), &mut found);
        // Ahead of what is missing.
        track.enter(at(80), 20, span(3, &[]), &mut found);
        track.enter(at(60), 20, span(4, &[]), &mut found);
        track.go_on(40);
        track.load(0, &[7, 4], &mut found);
        assert_eq!(track.places_before(at(45)), [4]);
        assert_eq!(track.places_before(at(46)), [7, 4]);
        assert_eq!(track.places_before(at(101)), [0; 0]);
        let (all, left_out) = found.finish();
        let expected = [(0, 4), (1, 4), (1, 7), (2, 4), (3, 4), (3, 7), (4, 4), (4, 7), (5, 4), (6, 4)];
        assert_eq!((Vec::from(all), left_out), (expected.to_vec(), 0));
    }

    #[test]
    fn what_is_not_completed_goes_by_the_names_in_it() {
        let (mut track, mut found) = (Track::new(0), Found::default());
        for (place, named) in [(0, &[][..]), (10, &[2]), (20, &[]), (30, &[5]), (40, &[])] {
            track.enter(place, 10, span(place.into(), named), &mut found);
        }
        track.go_on(50);
        track.finish(&mut found);
        assert_eq!(found.finish().0, [(10, 2), (20, 2), (30, 5), (40, 5)]);
    }
}
