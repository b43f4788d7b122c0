//! The end of an analysis, call by call: what was handed out is forgotten, so that a capture of any number of calls
//! never has the reports of more than a few of them in memory.

use std::collections::{HashMap, VecDeque};

use super::analysis::{Analysis, CallReport, Head, StreamReport};
use super::calls;
use super::flows::Binding;
use super::folder::Folder;
use super::groups::Groups;
use super::mirror::{Side, mirrors};
use super::router::Router;
use super::stream::Outline;
use super::taking::{self, EndedStream, Judged, JudgedStream};

/// An analysis, to be had in parts: its calls in the order of their first INVITEs, then its streams.
///
/// Each call and each stream is judged when it is nearly its turn.
#[derive(Debug)]
pub struct Parts {
    /// What is known of the capture as a whole.
    pub head: Head,
    /// Judged, and not handed out yet.
    ready: VecDeque<Part>,
    rest: Option<Box<Rest>>,
}

/// A part of an analysis.
#[derive(Debug)]
pub enum Part {
    /// A call; [`CallReport::streams`] are places among the streams that follow.
    Call(Box<CallReport>),
    /// A stream.
    Stream(Box<StreamReport>),
}

/// What is still to be judged.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) router: Router,
    pub(super) folder: Folder,
    /// Their numbers, the next one last.
    pub(super) calls: Vec<u32>,
    /// Calls, each with the place of one of its streams, sorted: as many as streams, where a table of lists would be large.
    places: Vec<(u32, usize)>,
    /// The next one last, each with the place of its mirror.
    pub(super) streams: Vec<(EndedStream, Option<usize>)>,
}

impl Parts {
    /// Everything that the tables of an engine hold.
    pub(super) fn of(router: Router, folder: Folder, file: &str) -> Self {
        let head = Head {
            file: file.to_owned(),
            packets: router.packets,
            bytes: router.bytes,
            skipped: router.skipped,
            registrations: router.calls.registrations.reports(),
        };
        let mut rest = Rest { router, folder, calls: Vec::new(), places: Vec::new(), streams: Vec::new() };
        rest.find_streams();
        rest.find_calls();
        Parts { head, ready: VecDeque::new(), rest: Some(Box::new(rest)) }
    }

    /// The same, each call with the streams that are shown with it.
    pub fn into_groups(self) -> Groups {
        let Parts { head, ready, rest } = self;
        match rest {
            Some(rest) => Groups::judging(head, rest),
            None => Groups::judged(head, ready),
        }
    }

    /// All of it.
    pub fn into_analysis(mut self) -> Analysis {
        let (mut calls, mut streams) = (Vec::new(), Vec::new());
        for part in self.by_ref() {
            match part {
                Part::Call(call) => calls.push(*call),
                Part::Stream(stream) => streams.push(*stream),
            }
        }
        let Head { file, packets, bytes, skipped, registrations } = self.head;
        Analysis { file, packets, bytes, skipped, registrations, calls, streams }
    }
}

/// What is small enough to be had at once.
impl From<Analysis> for Parts {
    fn from(analysis: Analysis) -> Self {
        let Analysis { file, packets, bytes, skipped, registrations, calls, streams } = analysis;
        let calls = calls.into_iter().map(|call| Part::Call(Box::new(call)));
        let streams = streams.into_iter().map(|stream| Part::Stream(Box::new(stream)));
        Parts {
            head: Head { file, packets, bytes, skipped, registrations },
            ready: calls.chain(streams).collect(),
            rest: None,
        }
    }
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        // Each turn takes some of the rest, of which there is an end.
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
    /// Finds out which streams there are and whose mirror each is. Those that no call announced are over now.
    fn find_streams(&mut self) {
        let Rest { router, folder, .. } = self;
        let mut numbers = router.streams.numbers();
        numbers.sort_by_key(|number| router.streams.get(*number).map(|known| known.serial));
        let mut outlines: HashMap<u32, Option<Outline>> = HashMap::new();
        for number in &numbers {
            let Some(known) = router.streams.get(*number) else { continue };
            if !known.bindings.iter().any(Binding::has_call) {
                let announced = !known.bindings.is_empty();
                outlines.insert(*number, folder.conclude(*number, announced));
            }
        }
        let (mut sides, mut alone) = (Vec::new(), Vec::new());
        for number in numbers {
            let (Some(known), Some(ended)) = (router.streams.get(number), EndedStream::of(router, number))
            else {
                continue;
            };
            match outlines.remove(&number) {
                // It was none.
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

    /// The places of the streams of a call.
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
        let taken = taking::take(&mut self.router, &mut self.folder, &calls, &streams);
        let Judged { calls, streams } = taken.judge();
        let has_media = self.router.has_media;
        for (number, dialog, leg) in calls {
            let places = self.places(number);
            ready.push_back(Part::Call(Box::new(calls::report(dialog, leg, places, has_media))));
        }
        for (JudgedStream { report, .. }, mirror) in streams.into_iter().zip(mirrors) {
            ready.push_back(Part::Stream(Box::new(StreamReport { mirror, ..report })));
        }
        true
    }
}

/// Takes the last `count` of a list, the very last first.
fn last<T>(list: &mut Vec<T>, count: usize) -> impl Iterator<Item = T> + '_ {
    list.drain(list.len().saturating_sub(count)..).rev()
}

/// Calls that are judged at once: few enough for their reports to stay in the cache until they are written.
const CALLS_AT_ONCE: usize = 32;
/// The same of streams.
const STREAMS_AT_ONCE: usize = 64;
