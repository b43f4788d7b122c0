//! Calls and streams on their way out of an engine: judged by the folder, and taken out of the tables.

use std::net::SocketAddr;

use sidetone_media::verdict::socket_text;

use super::dialog::Dialog;
use super::folder::Folder;
use super::leg::LegReport;
use super::report::{StreamFacts, StreamReport};
use super::router::{Known, Router};
use super::signal::{LegEnd, LegSignal, StreamSignal};
use super::stream::Finished;

/// A stream that is over, with what the router says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedStream {
    pub(super) number: u32,
    /// Somebody announced it.
    pub(super) announced: bool,
    /// What its sender and its receiver advertised.
    ptime_ms: (Option<u32>, Option<u32>),
}

/// Calls and streams that were taken out of an engine, each in the order of their beginnings.
#[derive(Debug)]
pub(super) struct TakenCalls {
    pub(super) calls: Vec<(u32, Dialog, LegReport)>,
    pub(super) streams: Vec<TakenStream>,
}

/// A stream that was taken out of an engine.
#[derive(Debug)]
pub(super) struct TakenStream {
    pub(super) known: Known,
    pub(super) report: StreamReport,
}

impl EndedStream {
    /// The stream with `number`, as long as its calls are known.
    pub(super) fn of(router: &Router, number: u32) -> Option<Self> {
        let binding = router.streams.get(number)?.bindings.last();
        let ptime_ms = binding.map_or((None, None), |binding| router.calls.ptime_ms(*binding));
        Some(EndedStream { number, announced: binding.is_some(), ptime_ms })
    }
}

/// Has calls and streams judged, and takes them out of the tables.
pub(super) fn take(
    router: &mut Router,
    folder: &mut Folder,
    calls: &[u32],
    streams: &[EndedStream],
) -> TakenCalls {
    for EndedStream { number, announced, ptime_ms } in streams {
        let Some(known) = router.streams.get(*number) else { continue };
        let taken = StreamSignal::Taken { announced: *announced, ptime_ms: *ptime_ms };
        folder.stream(known.seen, *number, taken);
    }
    for number in calls {
        let Some(call) = router.calls.get(*number) else { continue };
        let taken = LegSignal::Taken { ended: call.ended, last: call.last };
        folder.leg(call.last, LegEnd::new(*number, true), taken);
    }
    let taken = folder.take();
    let streams = taken.streams.into_iter().filter_map(|(number, finished)| {
        let known = router.streams.remove(number)?;
        let ends = router.flows.forget_stream(known.flow, number)?;
        let report = stream_report(ends, &known, finished?);
        Some(TakenStream { known, report })
    });
    let mut streams: Vec<TakenStream> = streams.collect();
    let legs = taken.legs.into_iter();
    let mut calls: Vec<(u32, Dialog, LegReport)> = legs
        .filter_map(|(number, leg)| router.calls.remove(number).map(|dialog| (number, dialog, leg)))
        .collect();
    streams.sort_by_key(|taken| taken.known.serial);
    calls.sort_by_key(|(_, dialog, _)| dialog.serial);
    TakenCalls { calls, streams }
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
        packets: finished.packets,
        from_caller: binding.map(|binding| binding.from_caller),
    };
    StreamReport::of(facts, finished.report)
}
