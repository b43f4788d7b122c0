//! An analysis call by call, each with its streams. The HTML page, rows and table are written from these
//! groups, so that only a few calls are in memory at a time.

use std::collections::{HashMap, VecDeque};

use super::analysis::{Analysis, CallReport, Head, StreamReport};
use super::calls;
use super::eviction::{self, EndedStream, Judged, JudgedStream};
use super::parts::{Part, Parts, Rest};

/// A call and the streams that are shown with it, or streams that no call announced.
///
/// Indices are those of an [`Analysis`](super::Analysis): of calls by their first INVITE, of streams by their
/// first packet.
#[derive(Debug)]
pub struct Group {
    /// The call with its index; `None` for streams without signalling.
    pub call: Option<(usize, Box<CallReport>)>,
    /// Its streams with their indices. A stream that several calls used one after the other is shown with the
    /// first of them.
    pub streams: Vec<(usize, Box<StreamReport>)>,
    /// Streams of the call that are shown with another call.
    pub elsewhere: Vec<Elsewhere>,
}

/// A stream that is shown with another call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The index of the stream.
    pub stream: usize,
    /// The index of the call that it is shown with.
    pub call: usize,
}

/// The calls of an analysis in order, then the streams without signalling; the two directions of an
/// unannounced call are in one group.
#[derive(Debug)]
pub struct Groups {
    /// The figures of the capture as a whole.
    pub head: Head,
    /// The number of calls.
    pub calls: usize,
    /// The number of streams.
    pub streams: usize,
    ready: VecDeque<Group>,
    rest: Option<Judging>,
}

impl From<Parts> for Groups {
    fn from(parts: Parts) -> Self {
        let Parts { head, ready, rest } = parts;
        match rest {
            Some(rest) => Groups::judging(head, rest),
            None => Groups::judged(head, ready),
        }
    }
}

/// The calls and streams that are not judged yet.
#[derive(Debug)]
struct Judging {
    rest: Box<Rest>,
    /// The streams by index, with the indices of their mirrors, until they are judged.
    streams: Vec<Option<(EndedStream, Option<usize>)>>,
    /// The index of the first call of each stream.
    owners: Vec<Option<usize>>,
    /// The index of the next call.
    next_call: usize,
    /// The streams without signalling, grouped; the next group is last.
    lone: Vec<Vec<usize>>,
}

impl Groups {
    /// Groups that are small enough to be judged all at the same time.
    fn judged(head: Head, parts: VecDeque<Part>) -> Self {
        let (mut calls, mut streams) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Call(call) => calls.push(call),
                Part::Stream(stream) => streams.push(Some(stream)),
            }
        }
        let mut owners = vec![None; streams.len()];
        for (place, call) in calls.iter().enumerate() {
            own(&mut owners, place, &call.streams);
        }
        let mirrors: Vec<_> =
            streams.iter().map(|stream: &Option<Box<StreamReport>>| stream.as_ref()?.mirror).collect();
        let (call_count, stream_count) = (calls.len(), streams.len());
        let mut take = |place: usize| Some((place, streams.get_mut(place)?.take()?));
        let mut ready = VecDeque::new();
        for (place, call) in calls.into_iter().enumerate() {
            let (own, elsewhere) = split(&owners, place, &call.streams);
            let streams = own.into_iter().filter_map(&mut take).collect();
            ready.push_back(Group { call: Some((place, call)), streams, elsewhere });
        }
        for places in tied(&owners, &mirrors).into_iter().rev() {
            let streams = places.into_iter().filter_map(&mut take).collect();
            ready.push_back(Group { call: None, streams, elsewhere: Vec::new() });
        }
        Groups { head, calls: call_count, streams: stream_count, ready, rest: None }
    }

    /// Groups that are judged shortly before they are needed.
    fn judging(head: Head, mut rest: Box<Rest>) -> Self {
        let streams: Vec<_> = std::mem::take(&mut rest.streams).into_iter().rev().map(Some).collect();
        let mut owners = vec![None; streams.len()];
        for (place, call) in rest.calls.iter().rev().enumerate() {
            own(&mut owners, place, &rest.places(*call));
        }
        let mirrors: Vec<_> = streams.iter().map(|stream| stream.and_then(|(_, mirror)| mirror)).collect();
        let lone = tied(&owners, &mirrors);
        let (calls, count) = (rest.calls.len(), streams.len());
        let rest = Judging { rest, streams, owners, next_call: 0, lone };
        Groups { head, calls, streams: count, ready: VecDeque::new(), rest: Some(rest) }
    }
}

/// The analysis of these groups and nothing else; indices count within it, so calls and streams get other
/// ones.
pub fn analysis_of(head: Head, groups: Vec<Group>) -> Analysis {
    let Head { file, packets, bytes, skipped, times, registrations } = head;
    let (mut calls, mut streams) = (Vec::new(), Vec::new());
    for Group { call, streams: own, .. } in groups {
        calls.extend(call);
        streams.extend(own);
    }
    calls.sort_by_key(|(place, _)| *place);
    streams.sort_by_key(|(place, _)| *place);
    let places: HashMap<usize, usize> =
        streams.iter().enumerate().map(|(new, (old, _))| (*old, new)).collect();
    let calls = calls.into_iter().map(|(_, mut call)| {
        call.streams = call.streams.iter().filter_map(|place| places.get(place).copied()).collect();
        *call
    });
    let streams = streams.into_iter().map(|(_, mut stream)| {
        stream.mirror = stream.mirror.and_then(|mirror| places.get(&mirror).copied());
        *stream
    });
    Analysis {
        file,
        packets,
        bytes,
        skipped,
        times,
        registrations,
        calls: calls.collect(),
        streams: streams.collect(),
    }
}

impl Iterator for Groups {
    type Item = Group;

    fn next(&mut self) -> Option<Group> {
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

impl Judging {
    /// Judges the next few groups; false when there is none left.
    fn take(&mut self, ready: &mut VecDeque<Group>) -> bool {
        let left = self.rest.calls.len();
        let calls: Vec<u32> = self.rest.calls.drain(left.saturating_sub(GROUPS_AT_ONCE)..).rev().collect();
        let places: Vec<Vec<usize>> = if calls.is_empty() {
            let left = self.lone.len();
            self.lone.drain(left.saturating_sub(GROUPS_AT_ONCE)..).rev().collect()
        } else {
            calls.iter().map(|call| self.rest.places(*call)).collect()
        };
        if places.is_empty() {
            return false;
        }
        let first = self.next_call;
        self.next_call += calls.len();
        // The call of each stream is determined before any stream is taken.
        let shares: Vec<_> = if calls.is_empty() {
            places.into_iter().map(|own| (own, Vec::new())).collect()
        } else {
            let places = places.iter().enumerate();
            places.map(|(ahead, places)| split(&self.owners, first + ahead, places)).collect()
        };
        let (reports, mut streams) = self.judge(&calls, &shares);
        let mut reports = reports.into_iter();
        for (ahead, (own, elsewhere)) in shares.into_iter().enumerate() {
            let call = if calls.is_empty() { None } else { reports.next() };
            let mut of_group = Vec::with_capacity(own.len());
            for place in own {
                of_group.extend(streams.remove(&place).map(|stream| (place, stream)));
            }
            ready.push_back(Group {
                call: call.map(|call| (first + ahead, Box::new(call))),
                streams: of_group,
                elsewhere,
            });
        }
        true
    }

    /// Judges calls with their streams; the calls in order, the streams by index.
    fn judge(
        &mut self,
        calls: &[u32],
        shares: &[(Vec<usize>, Vec<Elsewhere>)],
    ) -> (Vec<CallReport>, HashMap<usize, Box<StreamReport>>) {
        // A serial number is unique, while the number of a stream may be reused.
        let mut known: HashMap<u64, (usize, Option<usize>)> = HashMap::new();
        let mut ended = Vec::new();
        for place in shares.iter().flat_map(|(own, _)| own) {
            let taken = self.streams.get_mut(*place).and_then(Option::take);
            let Some((stream, mirror)) = taken else { continue };
            let Some(router) = self.rest.router.streams.get(stream.number) else { continue };
            known.insert(router.serial, (*place, mirror));
            ended.push(stream);
        }
        let listed: Vec<Vec<usize>> = calls.iter().map(|call| self.rest.places(*call)).collect();
        let taken = eviction::take(&mut self.rest.router, &mut self.rest.accumulator, calls, &ended);
        let Judged { calls, streams } = taken.judge(self.rest.router.times.withheld());
        let withheld = self.rest.router.withheld();
        let reports = calls.into_iter().zip(listed);
        let reports = reports.map(|((_, dialog, leg), places)| calls::report(dialog, leg, places, withheld));
        let placed = streams.into_iter().filter_map(|JudgedStream { known: stream, report }| {
            let (place, mirror) = *known.get(&stream.serial)?;
            Some((place, Box::new(StreamReport { mirror, ..report })))
        });
        (reports.collect(), placed.collect())
    }
}

/// Records the first call of each stream.
fn own(owners: &mut [Option<usize>], call: usize, streams: &[usize]) {
    for place in streams {
        if let Some(owner) = owners.get_mut(*place) {
            owner.get_or_insert(call);
        }
    }
}

/// The streams of a call that are shown with it, and those that are shown with another call.
fn split(owners: &[Option<usize>], call: usize, streams: &[usize]) -> (Vec<usize>, Vec<Elsewhere>) {
    let (mut own, mut elsewhere) = (Vec::new(), Vec::new());
    for stream in streams {
        match owners.get(*stream).copied().flatten() {
            Some(owner) if owner != call => elsewhere.push(Elsewhere { stream: *stream, call: owner }),
            Some(_) => own.push(*stream),
            None => {}
        }
    }
    (own, elsewhere)
}

/// The streams without a call, grouped by their mirrors; the first group is last.
fn tied(owners: &[Option<usize>], mirrors: &[Option<usize>]) -> Vec<Vec<usize>> {
    // Every stream points to an earlier one in its group, or to itself.
    let mut roots: Vec<usize> = (0..mirrors.len()).collect();
    let root = |roots: &[usize], mut place: usize| {
        // Each turn reaches an earlier stream.
        while let Some(next) = roots.get(place).copied().filter(|next| *next != place) {
            place = next;
        }
        place
    };
    for (place, mirror) in mirrors.iter().enumerate() {
        let Some(mirror) = mirror.filter(|mirror| *mirror < mirrors.len()) else { continue };
        let (one, other) = (root(&roots, place), root(&roots, mirror));
        if let Some(slot) = roots.get_mut(one.max(other)) {
            *slot = one.min(other);
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    for place in owners.iter().enumerate().filter(|(_, owner)| owner.is_none()).map(|(place, _)| place) {
        let number = *numbers.entry(root(&roots, place)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(number) {
            group.push(place);
        }
    }
    groups.reverse();
    groups
}

/// The number of groups judged together: few enough for their reports to stay in the cache until they are written.
const GROUPS_AT_ONCE: usize = 32;

#[cfg(test)]
mod tests {
    use sidetone_media::simulate::Scenario;

    use super::super::{EngineOptions, Source, compose_calls, read_parts, read_with};
    use super::*;

    fn capture(text: &str, calls: u32) -> Vec<u8> {
        let mut file = Vec::new();
        compose_calls(&text.parse::<Scenario>().unwrap(), calls, &mut file).unwrap();
        file
    }

    fn check(file: &[u8]) {
        let options = EngineOptions::default();
        let analysis: Analysis = read_with(options, "x", &mut &*file, &mut |_, _| {}).analysis;
        let parts = read_parts(options, "x", Source::Stream(&mut &*file), &mut |_, _| {}).parts;
        let already = Groups::judged(
            analysis_head(&analysis),
            super::super::Parts::from(read_with(options, "x", &mut &*file, &mut |_, _| {}).analysis)
                .collect(),
        );
        for groups in [Groups::from(parts), already] {
            assert_eq!((groups.calls, groups.streams), (analysis.calls.len(), analysis.streams.len()));
            let (mut calls, mut streams) = (Vec::new(), Vec::new());
            for group in groups {
                calls.extend(group.call.map(|(place, call)| (place, format!("{call:?}"))));
                streams
                    .extend(group.streams.into_iter().map(|(place, stream)| (place, format!("{stream:?}"))));
            }
            let expected = analysis.calls.iter().map(|call| format!("{call:?}")).enumerate();
            assert_eq!(calls, expected.collect::<Vec<_>>());
            streams.sort_unstable();
            let expected = analysis.streams.iter().map(|stream| format!("{stream:?}")).enumerate();
            assert_eq!(streams, expected.collect::<Vec<_>>());
        }
    }

    fn analysis_head(analysis: &Analysis) -> Head {
        Head {
            file: analysis.file.clone(),
            packets: analysis.packets,
            bytes: analysis.bytes,
            skipped: analysis.skipped,
            times: analysis.times,
            registrations: Vec::new(),
        }
    }

    #[test]
    fn groups_hold_what_the_analysis_holds() {
        check(&capture("lossy duration=2s", 70));
        check(&capture("no-inbound duration=2s returned=no", 3));
        check(&[]);
    }

    #[test]
    fn a_choice_is_an_analysis_of_its_own() {
        let file = capture("lossy duration=2s", 3);
        let read = read_parts(EngineOptions::default(), "x", Source::Stream(&mut &*file), &mut |_, _| {});
        let mut groups = Groups::from(read.parts);
        let chosen: Vec<Group> = groups.by_ref().skip(1).collect();
        let ids: Vec<String> =
            chosen.iter().filter_map(|group| Some(group.call.as_ref()?.1.call_id.clone())).collect();
        let analysis = analysis_of(groups.head.clone(), chosen);
        assert_eq!(analysis.calls.iter().map(|call| call.call_id.clone()).collect::<Vec<_>>(), ids);
        let places: Vec<&[usize]> = analysis.calls.iter().map(|call| &call.streams[..]).collect();
        assert_eq!((places, analysis.streams.len()), (vec![&[0, 1][..], &[2, 3]], 4));
    }

    #[test]
    fn mirrors_stand_together() {
        // Two streams of a party that changed its SSRC, the other party's, a stream of a call, and a single
        // stream.
        let owners = [None, None, None, Some(0), None];
        let mirrors = [Some(2), Some(2), Some(1), None, None];
        assert_eq!(tied(&owners, &mirrors), [vec![4], vec![0, 1, 2]]);
    }

    #[test]
    fn a_stream_of_two_calls_is_with_the_first() {
        let mut owners = vec![None; 3];
        own(&mut owners, 0, &[0, 1]);
        own(&mut owners, 1, &[1, 2]);
        assert_eq!(split(&owners, 1, &[1, 2]), (vec![2], vec![Elsewhere { stream: 1, call: 0 }]));
    }
}
