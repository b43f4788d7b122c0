//! The end of an analysis, call by call. Each call is dropped after it is returned, so that only a few
//! reports are in memory whatever the number of calls.

use std::collections::{HashMap, VecDeque};

use super::accumulator::Accumulator;
use super::analysis::{Analysis, CallReport, Head, StreamReport};
use super::calls;
use super::direction_pairs::{Side, mirrors};
use super::eviction::{self, EndedStream, Judged, JudgedStream};
use super::flows::Binding;
use super::router::Router;
use super::stream::Outline;

/// An analysis in parts: its calls in the order of their first INVITEs, then its streams.
///
/// Each call and each stream is judged shortly before its turn.
#[derive(Debug)]
pub struct Parts {
    /// The figures of the capture as a whole.
    pub head: Head,
    /// Judged, and not returned yet.
    pub(super) ready: VecDeque<Part>,
    pub(super) rest: Option<Box<Rest>>,
}

/// A part of an analysis.
#[derive(Debug)]
pub enum Part {
    /// A call; [`CallReport::streams`] are indices into the streams that follow.
    Call(Box<CallReport>),
    /// A stream.
    Stream(Box<StreamReport>),
}

/// The calls and streams that are not judged yet.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) router: Router,
    pub(super) accumulator: Accumulator,
    /// The numbers of the calls; the next one is last.
    pub(super) calls: Vec<u32>,
    /// Calls, each with the index of one of its streams, sorted: one entry per pair, which is smaller than a
    /// table of lists.
    places: Vec<(u32, usize)>,
    /// The streams, each with the index of its mirror; the next one is last.
    pub(super) streams: Vec<(EndedStream, Option<usize>)>,
}

impl Parts {
    /// Everything that the tables of an engine hold.
    pub(super) fn of(router: Router, accumulator: Accumulator, file: &str) -> Self {
        let head = Head {
            file: file.to_owned(),
            packets: router.packets,
            bytes: router.bytes,
            skipped: router.skipped,
            times: router.times,
            registrations: router.calls.registrations.reports(),
        };
        let mut rest =
            Rest { router, accumulator, calls: Vec::new(), places: Vec::new(), streams: Vec::new() };
        rest.find_streams();
        // Streams of no call are evidence as well: a usual fault is SDP with addresses to which no party sends.
        rest.router.has_media |= !rest.streams.is_empty();
        rest.find_calls();
        Parts { head, ready: VecDeque::new(), rest: Some(Box::new(rest)) }
    }

    /// Collects all parts.
    pub fn into_analysis(mut self) -> Analysis {
        let (mut calls, mut streams) = (Vec::new(), Vec::new());
        for part in self.by_ref() {
            match part {
                Part::Call(call) => calls.push(*call),
                Part::Stream(stream) => streams.push(*stream),
            }
        }
        let Head { file, packets, bytes, skipped, times, registrations } = self.head;
        Analysis { file, packets, bytes, skipped, times, registrations, calls, streams }
    }
}

/// For an analysis that is small enough to be completely in memory.
impl From<Analysis> for Parts {
    fn from(analysis: Analysis) -> Self {
        let Analysis { file, packets, bytes, skipped, times, registrations, calls, streams } = analysis;
        let calls = calls.into_iter().map(|call| Part::Call(Box::new(call)));
        let streams = streams.into_iter().map(|stream| Part::Stream(Box::new(stream)));
        Parts {
            head: Head { file, packets, bytes, skipped, times, registrations },
            ready: calls.chain(streams).collect(),
            rest: None,
        }
    }
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        // Each turn takes some of the rest, which is finite.
        while self.ready.is_empty()
            && let Some(rest) = &mut self.rest
        {
            if !rest.take(&mut self.ready) {
                self.rest = None;
            }
        }
        self.ready.pop_front()
    }
}

impl Rest {
    /// Determines which streams there are and pairs them with their mirrors. Streams that no call announced
    /// end now.
    fn find_streams(&mut self) {
        let Rest { router, accumulator, .. } = self;
        let mut numbers = router.streams.numbers();
        numbers.sort_by_key(|number| router.streams.get(*number).map(|known| known.serial));
        let mut outlines: HashMap<u32, Option<Outline>> = HashMap::new();
        for number in &numbers {
            let Some(known) = router.streams.get(*number) else { continue };
            if !known.bindings.iter().any(Binding::has_call) {
                let Some(ended) = EndedStream::of(router, *number) else { continue };
                outlines.insert(*number, accumulator.conclude(*number, ended.announced, ended.ptime_ms));
            }
        }
        let (mut sides, mut alone) = (Vec::new(), Vec::new());
        for number in numbers {
            let (Some(known), Some(ended)) = (router.streams.get(number), EndedStream::of(router, number))
            else {
                continue;
            };
            match outlines.remove(&number) {
                // It was not a stream.
                Some(None) => continue,
                Some(Some(Outline { span, payload_types })) => {
                    if let Some((source, destination)) = router.flows.ends(known.flow) {
                        sides.push(Side { source, destination, span, payload_types });
                        alone.push(self.streams.len());
                    }
                }
                None => {}
            }
            self.places.extend(known.bindings.iter().map(|binding| (binding.call, self.streams.len())));
            self.streams.push((ended, None));
        }
        for (place, mirror) in alone.iter().zip(mirrors(&sides)) {
            if let Some((_, slot)) = self.streams.get_mut(*place) {
                *slot = mirror.and_then(|mirror| alone.get(mirror).copied());
            }
        }
        self.streams.reverse();
        self.places.sort_unstable();
    }

    /// The indices of the streams of a call.
    pub(super) fn places(&self, call: u32) -> Vec<usize> {
        let begin = self.places.partition_point(|(other, _)| *other < call);
        let places = self.places.get(begin..).unwrap_or_default().iter();
        places.take_while(|(other, _)| *other == call).map(|(_, place)| *place).collect()
    }

    fn find_calls(&mut self) {
        let calls = &self.router.calls;
        self.calls = calls.numbers();
        self.calls.sort_by_key(|number| calls.get(*number).map(|call| call.serial));
        self.calls.reverse();
    }

    /// Judges the next few calls, or streams when there is no call left; false when there is nothing left.
    fn take(&mut self, ready: &mut VecDeque<Part>) -> bool {
        let calls: Vec<u32> = last(&mut self.calls, CALLS_AT_ONCE).collect();
        let count = if calls.is_empty() { STREAMS_AT_ONCE } else { 0 };
        let (streams, mirrors): (Vec<_>, Vec<_>) = last(&mut self.streams, count).unzip();
        if calls.is_empty() && streams.is_empty() {
            return false;
        }
        let taken = eviction::take(&mut self.router, &mut self.accumulator, &calls, &streams);
        let Judged { calls, streams } = taken.judge(self.router.times.withheld());
        let withheld = self.router.withheld();
        for (number, dialog, leg) in calls {
            let places = self.places(number);
            ready.push_back(Part::Call(Box::new(calls::report(dialog, leg, places, withheld))));
        }
        for (JudgedStream { report, .. }, mirror) in streams.into_iter().zip(mirrors) {
            ready.push_back(Part::Stream(Box::new(StreamReport { mirror, ..report })));
        }
        true
    }
}

/// Takes the last `count` entries of a list, the last one first.
fn last<T>(list: &mut Vec<T>, count: usize) -> impl Iterator<Item = T> + '_ {
    list.drain(list.len().saturating_sub(count)..).rev()
}

/// The number of calls judged together: few enough for their reports to stay in the cache until they are written.
const CALLS_AT_ONCE: usize = 32;
/// The same for streams.
const STREAMS_AT_ONCE: usize = 64;
