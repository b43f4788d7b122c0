//! Removes calls and streams from the tables of an engine, and judges them.

use std::net::SocketAddr;

use sidetone_media::session::Withheld;
use sidetone_media::verdict::socket_text;

use super::accumulator::Accumulator;
use super::analysis::{StreamFacts, StreamReport};
use super::dialog::Dialog;
use super::leg::{Leg, LegReport};
use super::router::{Known, Router};
use super::stream::{AdvertisedPtime, Finished, Stream};

/// A stream that is over, with the router's data about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedStream {
    pub(super) number: u32,
    /// Whether a call announced it.
    pub(super) announced: bool,
    /// The packet durations that its sender and its receiver advertised.
    pub(super) ptime_ms: AdvertisedPtime,
}

/// Calls and streams that were removed from an engine, each in order of their beginnings, to be judged.
#[derive(Debug)]
pub(super) struct Taken {
    calls: Vec<(u32, Dialog, Leg)>,
    streams: Vec<TakenStream>,
}

#[derive(Debug)]
struct TakenStream {
    known: Known,
    ended: EndedStream,
    stream: Stream,
}

/// The same after judging.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) calls: Vec<(u32, Dialog, LegReport)>,
    pub(super) streams: Vec<JudgedStream>,
}

/// A stream that is over and was judged.
#[derive(Debug)]
pub(super) struct JudgedStream {
    pub(super) known: Known,
    pub(super) report: StreamReport,
}

impl EndedStream {
    /// Returns the stream with `number`, while its calls are still in the tables.
    pub(super) fn of(router: &Router, number: u32) -> Option<Self> {
        let known = router.streams.get(number)?;
        let binding = known.bindings.last();
        let ptime_ms = binding.zip(router.flows.ends(known.flow));
        let ptime_ms = ptime_ms.and_then(|(binding, ends)| router.calls.ptime_ms(*binding, ends));
        Some(EndedStream { number, announced: binding.is_some(), ptime_ms })
    }
}

/// Removes calls and streams from the tables.
pub(super) fn take(
    router: &mut Router,
    accumulator: &mut Accumulator,
    calls: &[u32],
    streams: &[EndedStream],
) -> Taken {
    let streams = streams.iter().filter_map(|ended| {
        let stream = accumulator.take_stream(ended.number);
        let known = router.streams.remove(ended.number)?;
        router.flows.forget_stream(known.flow, ended.number);
        Some(TakenStream { known, ended: *ended, stream: stream? })
    });
    let mut streams: Vec<TakenStream> = streams.collect();
    let calls = calls.iter().filter_map(|number| {
        let leg = accumulator.take_leg(*number);
        router.calls.remove(*number).map(|dialog| (*number, dialog, leg))
    });
    let mut calls: Vec<(u32, Dialog, Leg)> = calls.collect();
    streams.sort_by_key(|taken| taken.known.serial);
    calls.sort_by_key(|(_, dialog, _)| dialog.serial);
    Taken { calls, streams }
}

impl Taken {
    /// Judges them; packets that turn out not to be a stream are left out.
    /// `withheld` is the reason why streams cannot be judged.
    pub(super) fn judge(self, withheld: Option<Withheld>) -> Judged {
        let calls = self.calls.into_iter().map(|(number, dialog, leg)| {
            let report = leg.finish(dialog.ended, dialog.last);
            (number, dialog, report)
        });
        let streams = self.streams.into_iter().filter_map(|TakenStream { known, ended, stream }| {
            let ends = stream.ends();
            let mut finished = stream.finish(ended.announced, ended.ptime_ms)?;
            if let Some(why) = withheld {
                finished.report.leave_unjudged(why);
            }
            let report = stream_report(ends, &known, finished);
            Some(JudgedStream { known, report })
        });
        Judged { calls: calls.collect(), streams: streams.collect() }
    }
}

fn stream_report(
    (source, destination): (SocketAddr, SocketAddr),
    known: &Known,
    finished: Finished,
) -> StreamReport {
    let binding = known.bindings.last().filter(|binding| binding.has_call());
    let facts = StreamFacts {
        src: socket_text(source),
        dst: socket_text(destination),
        ssrc: known.ssrc,
        codec: finished.codec,
        clock_rate: finished.clock_hz,
        is_clock_inferred: finished.is_clock_inferred,
        from_caller: binding.map(|binding| binding.from_caller),
    };
    StreamReport::of(facts, finished.report)
}
