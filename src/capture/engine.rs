//! The analysis machine: frames in, calls and streams out.
//!
//! The [`Router`] finds out what each frame is and whom it concerns; the folders behind the [`Desk`] keep the
//! statistics, on threads of their own where that is asked for. The result does not depend on their number.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use sidetone_media::pcap::Record;
use sidetone_media::time::Micros;

use super::calls;
use super::desk::Desk;
use super::dialog::Dialog;
use super::flows::Binding;
use super::leg::LegReport;
use super::mirror::{Side, mirrors};
use super::order::{LegEnd, LegSignal, StreamSignal};
use super::report::{Analysis, CallReport, Ptime, Shared, StreamReport, StreamRtcp, decimal, verdict};
use super::router::{Known, Router};
use super::stream::Finished;

/// How an engine works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineOptions {
    /// Threads that share the work, the caller's own among them; 0 and 1 start none. The result is the same.
    pub threads: usize,
    /// Whether every call keeps its messages, [`CallReport::ladder`].
    pub ladder: bool,
    /// Whether the called party's leg is judged as well, [`CallReport::far_leg`].
    pub far_legs: bool,
    /// Whether some samples of G.711 are looked at: silence, clipping, level.
    pub audio: bool,
    /// Whether calls are handed out and forgotten soon after their end, [`Engine::poll_finished`]: for captures that
    /// never end.
    pub evict: bool,
}

/// Takes the frames of one capture in order.
///
/// *Bounds*: a million flows, a hundred thousand streams and half a million calls are kept; what is beyond is counted.
#[derive(Debug)]
pub struct Engine {
    options: EngineOptions,
    router: Router,
    desk: Desk,
    finished: VecDeque<FinishedCall>,
    /// When [`Engine::poll_finished`] looked for what is over last, and when for what is idle.
    swept: Option<Micros>,
    swept_idle: Option<Micros>,
}

/// What an engine has forgotten: a call with its streams, or streams that belong to no call.
#[derive(Debug)]
pub struct FinishedCall {
    /// The call; [`CallReport::streams`] are places in `streams`. `None` for streams that nobody announced.
    pub call: Option<CallReport>,
    /// Its streams by their first packet. One that several calls used one after the other goes with the last.
    pub streams: Vec<StreamReport>,
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new(EngineOptions::default())
    }
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(options: EngineOptions) -> Self {
        let mut router = Router::new(options.ladder, options.evict);
        router.calls.describe_far_legs(options.far_legs);
        router.listens = options.audio;
        Engine {
            options,
            router,
            desk: Desk::new(options.threads),
            finished: VecDeque::new(),
            swept: None,
            swept_idle: None,
        }
    }

    /// Takes one frame.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) {
        self.router.record(record, &mut self.desk);
    }

    /// Frames taken so far.
    pub fn packets(&self) -> u64 {
        self.router.packets
    }

    /// Calls that are known now; with [`EngineOptions::evict`] those that are up, and those that were until just now.
    pub fn live_calls(&self) -> usize {
        self.router.calls.numbers().len()
    }

    /// The next call or stream that is over at `now`, until there is none; always `None` without
    /// [`EngineOptions::evict`].
    ///
    /// A call is over 5 seconds after its end, for stragglers, or after an hour without a message and a packet;
    /// a stream that nobody announced after a minute without a packet. They come in the order of their ends, and are
    /// in no later [`Analysis`].
    pub fn poll_finished(&mut self, now: Micros) -> Option<FinishedCall> {
        if self.options.evict && self.finished.is_empty() {
            self.sweep(now);
        }
        self.finished.pop_front()
    }

    /// Closes every call and stream and judges them.
    pub fn finish(mut self, file: &str) -> Analysis {
        self.router.finish(&mut self.desk);
        let (calls, streams) = (self.router.calls.numbers(), self.router.streams.numbers());
        let taken = self.take(&calls, &streams);
        let mirrors = mirrors(&taken.streams.iter().map(|taken| taken.side.clone()).collect::<Vec<_>>());
        let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
        let mut streams = Vec::with_capacity(taken.streams.len());
        for (TakenStream { known, report, .. }, mirror) in taken.streams.into_iter().zip(mirrors) {
            for binding in &known.bindings {
                places.entry(binding.call).or_default().push(streams.len());
            }
            streams.push(StreamReport { mirror, ..report });
        }
        let calls = taken.calls.into_iter().map(|(number, dialog, leg)| {
            calls::report(dialog, leg, places.remove(&number).unwrap_or_default())
        });
        Analysis {
            file: file.to_owned(),
            packets: self.router.packets,
            bytes: self.router.bytes,
            skipped: self.router.skipped,
            calls: calls.collect(),
            streams,
        }
    }

    /// Judges calls and streams and takes them out of the tables.
    fn take(&mut self, calls: &[u32], streams: &[u32]) -> TakenCalls {
        let router = &mut self.router;
        for number in streams {
            let Some(known) = router.streams.get(*number) else { continue };
            let binding = known.bindings.last();
            let ptime_ms = binding.map_or((None, None), |binding| router.calls.ptime_ms(*binding));
            let taken = StreamSignal::Taken { announced: binding.is_some(), ptime_ms };
            self.desk.stream(known.seen, *number, taken);
        }
        for number in calls {
            let Some(call) = router.calls.get(*number) else { continue };
            let taken = LegSignal::Taken { ended: call.ended, last: call.last };
            self.desk.leg(call.last, LegEnd::new(*number, true), taken);
        }
        let taken = self.desk.collect();
        let streams = taken.streams.into_iter().filter_map(|(number, finished)| {
            let known = router.streams.remove(number)?;
            let ends = router.flows.forget_stream(known.flow, number)?;
            let finished = finished?;
            let side = Side {
                source: ends.0,
                destination: ends.1,
                span: finished.span,
                payload_types: finished.report.payload_types.clone(),
                announced: known.bindings.iter().any(Binding::has_call),
            };
            let report = stream_report(ends, &known, finished);
            Some(TakenStream { known, report, side })
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

    /// Hands out what is over at `now`.
    fn sweep(&mut self, now: Micros) {
        if !is_due(&mut self.swept, now, SWEEP_US) {
            return;
        }
        let mut calls = self.router.calls.ended_before(now + -GRACE_US);
        let mut lone = Vec::new();
        if is_due(&mut self.swept_idle, now, SWEEP_IDLE_US) {
            calls.extend(self.abandoned(now + -ABANDONED_US));
            lone = self.idle_streams(now + -IDLE_US);
        }
        let mut streams: Vec<u32> = calls.iter().flat_map(|call| self.streams_of(*call)).collect();
        streams.extend(lone);
        streams.sort_unstable();
        streams.dedup();
        if !calls.is_empty() || !streams.is_empty() {
            for call in &calls {
                self.unbind(*call);
            }
            let taken = self.take(&calls, &streams);
            self.hand_out(&calls, taken);
        }
        if self.swept_idle == Some(now) {
            self.router.flows.remove_idle(now + -IDLE_US);
        }
    }

    /// Queues what was taken: the calls in the order of their ends, then what belongs to none.
    fn hand_out(&mut self, order: &[u32], taken: TakenCalls) {
        let mut of_calls: HashMap<u32, Vec<StreamReport>> = HashMap::new();
        let mut lone = Vec::new();
        for TakenStream { known, report, .. } in taken.streams {
            match known.bindings.last().filter(|binding| binding.has_call()) {
                Some(binding) => of_calls.entry(binding.call).or_default().push(report),
                None => lone.push(report),
            }
        }
        let mut calls: HashMap<u32, (Dialog, LegReport)> =
            taken.calls.into_iter().map(|(number, dialog, leg)| (number, (dialog, leg))).collect();
        for number in order {
            let Some((dialog, leg)) = calls.remove(number) else { continue };
            let streams = of_calls.remove(number).unwrap_or_default();
            let call = calls::report(dialog, leg, (0..streams.len()).collect());
            self.finished.push_back(FinishedCall { call: Some(call), streams });
        }
        let lone = lone.into_iter().map(|stream| FinishedCall { call: None, streams: vec![stream] });
        self.finished.extend(lone);
    }

    /// The streams that a call used last.
    fn streams_of(&self, call: u32) -> Vec<u32> {
        let flows = self.router.calls.get(call).into_iter().flat_map(|call| &call.flows);
        let streams = flows.filter_map(|flow| self.router.flows.get(*flow)).flat_map(|flow| &flow.streams);
        let is_last = |stream: &u32| {
            let binding = self.router.streams.get(*stream).and_then(|known| known.bindings.last());
            binding.is_some_and(|binding| binding.call == call)
        };
        streams.map(|(_, stream)| *stream).filter(is_last).collect()
    }

    /// Lets the flows of a call belong to nobody.
    fn unbind(&mut self, call: u32) {
        let flows = self.router.calls.get_mut(call).map(|call| std::mem::take(&mut call.flows));
        for flow in flows.unwrap_or_default() {
            self.router.flows.unbind(flow, call);
        }
    }

    /// The calls that had neither a message nor a packet since `limit`, though they never ended.
    fn abandoned(&self, limit: Micros) -> Vec<u32> {
        let router = &self.router;
        let is_silent = |call: &u32| {
            router.calls.get(*call).is_some_and(|dialog| {
                let last = dialog.flows.iter().filter_map(|flow| router.flows.last(*flow, *call)).max();
                dialog.ended.is_none() && dialog.last < limit && last.is_none_or(|last| last < limit)
            })
        };
        router.calls.numbers().into_iter().filter(is_silent).collect()
    }

    /// The streams that nobody announced and that had no packet since `limit`.
    fn idle_streams(&self, limit: Micros) -> Vec<u32> {
        let router = &self.router;
        let is_idle = |stream: &u32| {
            router.streams.get(*stream).is_some_and(|known| {
                !known.bindings.iter().any(Binding::has_call)
                    && known.seen < limit
                    && router.flows.last_of_stream(known.flow, *stream).is_none_or(|last| last < limit)
            })
        };
        router.streams.numbers().into_iter().filter(is_idle).collect()
    }
}

/// Whether it is time again, `every_us` after the last time; notes it.
fn is_due(last: &mut Option<Micros>, now: Micros, every_us: i64) -> bool {
    // A clock that was set back makes it time, too.
    let due = last.is_none_or(|last| now.since(last).abs() >= every_us);
    if due {
        *last = Some(now);
    }
    due
}

fn stream_report(
    (source, destination): (SocketAddr, SocketAddr),
    known: &Known,
    finished: Finished,
) -> StreamReport {
    let figures = &finished.report.figures;
    let shared = Shared::new(figures);
    let direction = |binding: &Binding| if binding.from_caller { "from_caller" } else { "to_caller" };
    StreamReport {
        src: source.to_string(),
        dst: destination.to_string(),
        ssrc: format!("0x{:08x}", known.ssrc),
        payload_types: finished.report.payload_types.clone(),
        codec: finished.codec,
        clock_rate: finished.clock_hz,
        packets: finished.packets,
        expected: figures.expected,
        lost: figures.lost,
        loss_pct: shared.loss_pct,
        duplicates: figures.duplicates,
        reordered: figures.reordered,
        jitter_ms: shared.jitter_ms,
        jitter_mean_ms: figures.jitter_mean_ms.map(decimal),
        mean_interval_ms: shared.mean_interval_ms,
        max_gap_ms: figures.max_gap_ms.map(decimal),
        ptime_ms: figures.ptime_ms.map(|ms| Ptime(decimal(ms))),
        quality_pct: shared.quality_pct,
        mos: shared.mos,
        verdict: verdict(&finished.report),
        rtcp: StreamRtcp::of(&finished.report.rtcp),
        direction: known.bindings.last().filter(|binding| binding.has_call()).map(direction),
        mirror: None,
        report: finished.report,
    }
}

/// What is over is looked for this often.
const SWEEP_US: i64 = 1_000_000;
/// What is idle is looked for this often.
const SWEEP_IDLE_US: i64 = 10_000_000;
/// Stragglers of a call come within this time after its end.
const GRACE_US: i64 = 5_000_000;
/// A stream that nobody announced is over when it was silent for so long.
const IDLE_US: i64 = 60_000_000;
/// A call whose end was not captured is over when it was silent for so long.
const ABANDONED_US: i64 = 3_600_000_000;

/// Calls and streams that were taken out of an engine, each in the order of their beginnings.
pub(super) struct TakenCalls {
    pub(super) calls: Vec<(u32, Dialog, LegReport)>,
    pub(super) streams: Vec<TakenStream>,
}

/// A stream that was taken out of an engine.
pub(super) struct TakenStream {
    pub(super) known: Known,
    pub(super) report: StreamReport,
    side: Side,
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
