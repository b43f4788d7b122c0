//! The analysis machine: frames in, calls and streams out.
//!
//! The [`Router`] determines what each frame is and which call or stream it belongs to; the [`Accumulator`] keeps
//! the statistics.

use std::collections::{HashMap, VecDeque};

use sidetone_media::pcap::Record;
use sidetone_media::time::Micros;
use sidetone_media::verdict::Thresholds;

use super::accumulator::Accumulator;
use super::analysis::{Analysis, CallReport, StreamReport};
use super::calls;
use super::dialog::Dialog;
use super::eviction::{self, EndedStream, Judged, JudgedStream};
use super::flows::Binding;
use super::frames::{Frames, Read};
use super::leg::{LegReport, config_with};
use super::parts::Parts;
use super::router::Router;
use super::times::Times;

/// Options of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineOptions {
    /// Threads that share the reading of a file, including the engine's own. 0 and 1 start none; other inputs
    /// than files are always read by one thread. The result is the same.
    pub threads: usize,
    /// Whether every call keeps its messages, [`CallReport::ladder`].
    pub ladder: bool,
    /// Whether samples of G.711 are decoded to measure silence, clipping and level.
    pub audio: bool,
    /// Whether calls are reported and evicted soon after their end, [`Engine::poll_finished`]: for captures
    /// that never end.
    pub evict: bool,
}

/// Takes the frames of one capture in order.
///
/// *Bounds*: at most a million flows, a hundred thousand streams and half a million calls are kept; packets
/// beyond these limits are counted.
#[derive(Debug)]
pub struct Engine {
    options: EngineOptions,
    router: Router,
    accumulator: Accumulator,
    finished: VecDeque<FinishedCall>,
    /// When [`Engine::poll_finished`] last looked for finished calls, and when for idle ones.
    swept: Option<Micros>,
    swept_idle: Option<Micros>,
    /// Whether a capture whose frames are not in the order of time is read again in that order.
    can_start_over: bool,
}

/// A call with its streams, or streams without a call, that an engine has evicted.
#[derive(Debug)]
pub struct FinishedCall {
    /// The call; [`CallReport::streams`] are indices into `streams`. `None` for streams that no SDP
    /// announced.
    pub call: Option<CallReport>,
    /// Its streams by their first packet. A stream that several calls used, one after the other or at once, belongs
    /// to the last.
    pub streams: Vec<StreamReport>,
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new(EngineOptions::default())
    }
}

impl Engine {
    /// Returns an empty engine.
    pub fn new(options: EngineOptions) -> Self {
        let mut router = Router::new(options.ladder, options.evict);
        router.listens = options.audio;
        Engine {
            options,
            router,
            accumulator: Accumulator::default(),
            finished: VecDeque::new(),
            swept: None,
            swept_idle: None,
            can_start_over: false,
        }
    }

    /// Returns an empty engine that judges the legs of calls by these thresholds.
    pub fn with_thresholds(options: EngineOptions, thresholds: Thresholds) -> Self {
        let mut engine = Engine::new(options);
        engine.set_thresholds(thresholds);
        engine
    }

    /// Judges the legs that begin from now on by these thresholds.
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.accumulator.config = Some(config_with(thresholds));
    }

    /// Takes one frame.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) {
        self.router.record(record, &mut self.accumulator);
    }

    /// Takes frames that were read ahead of time.
    pub(super) fn frames(&mut self, frames: &Frames) {
        self.set_times(frames.times);
        let (packets, bytes) = frames.plain_sums();
        self.router.packets += packets;
        self.router.bytes += bytes;
        for frame in frames.iter() {
            match frame {
                Read::Rtp(at, rtp) => self.router.ahead(at, rtp, &mut self.accumulator),
                Read::Whole(record) => self.router.record(&record, &mut self.accumulator),
            }
        }
    }

    /// Takes what is wrong with the times of the frames so far.
    pub(super) fn set_times(&mut self, times: Times) {
        self.router.times = times;
    }

    /// From now on, a frame that is not in the order of time stops the reading: the capture is then read again in that
    /// order.
    pub(super) fn start_over_in_order(&mut self) {
        self.can_start_over = true;
    }

    /// Whether to stop reading, because the capture is read again.
    pub(super) fn must_stop(&self) -> bool {
        self.can_start_over && self.router.times.out_of_order_from.is_some()
    }

    /// Whether the payloads of RTP are decoded.
    pub(super) fn listens(&self) -> bool {
        self.router.listens
    }

    /// Frames taken so far.
    pub fn packets(&self) -> u64 {
        self.router.packets
    }

    /// The calls in the tables; with [`EngineOptions::evict`] these are the active calls and those that ended a moment
    /// ago.
    pub fn live_calls(&self) -> usize {
        self.router.calls.numbers().len()
    }

    /// Returns the next call or stream that is over at `now`, and `None` when there is no more; always `None`
    /// without [`EngineOptions::evict`].
    ///
    /// A call is over 5 seconds after its end, to allow for late packets, or after an hour without a message
    /// and a packet; a stream that no SDP announced after a minute without a packet. They come in the order
    /// of their ends, and do not appear in a later [`Analysis`].
    pub fn poll_finished(&mut self, now: Micros) -> Option<FinishedCall> {
        if self.options.evict && self.finished.is_empty() {
            self.sweep(now);
        }
        self.finished.pop_front()
    }

    /// Closes every call and stream and judges them.
    pub fn finish(self, file: &str) -> Analysis {
        self.close(file).into_analysis()
    }

    /// The same, as [`Parts`] that are returned call by call.
    pub fn close(mut self, file: &str) -> Parts {
        self.router.finish(&mut self.accumulator);
        Parts::of(self.router, self.accumulator, file)
    }

    /// Queues what is over at `now`.
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
            let ended: Vec<EndedStream> =
                streams.iter().filter_map(|stream| EndedStream::of(&self.router, *stream)).collect();
            if !calls.is_empty() {
                self.look_for_media();
            }
            let taken = eviction::take(&mut self.router, &mut self.accumulator, &calls, &ended);
            self.hand_out(&calls, taken.judge(None));
        }
        if self.swept_idle == Some(now) {
            self.router.flows.remove_idle(now + -IDLE_US);
        }
    }

    /// Determines whether missing audio of a call is evidence, before calls are judged: a stream of no call counts
    /// once it is long enough.
    fn look_for_media(&mut self) {
        if !self.router.has_media {
            let (router, accumulator) = (&self.router, &mut self.accumulator);
            let is_stream = |number: &u32| {
                let is_announced =
                    router.streams.get(*number).is_some_and(|known| !known.bindings.is_empty());
                is_announced || accumulator.is_confirmed(*number)
            };
            self.router.has_media = router.streams.numbers().iter().any(is_stream);
        }
    }

    /// Queues what was evicted: the calls in the order of their ends, then the streams without a call.
    fn hand_out(&mut self, order: &[u32], judged: Judged) {
        let mut of_calls: HashMap<u32, Vec<StreamReport>> = HashMap::new();
        let mut lone = Vec::new();
        self.router.has_media |= !judged.streams.is_empty();
        for JudgedStream { known, report } in judged.streams {
            match known.bindings.last().filter(|binding| binding.has_call()) {
                Some(binding) => of_calls.entry(binding.call).or_default().push(report),
                None => lone.push(report),
            }
        }
        let mut calls: HashMap<u32, (Dialog, LegReport)> =
            judged.calls.into_iter().map(|(number, dialog, leg)| (number, (dialog, leg))).collect();
        for number in order {
            let Some((dialog, leg)) = calls.remove(number) else { continue };
            let streams = of_calls.remove(number).unwrap_or_default();
            let call = calls::report(dialog, leg, (0..streams.len()).collect(), self.router.withheld());
            self.finished.push_back(FinishedCall { call: Some(call), streams });
        }
        let lone = lone.into_iter().map(|stream| FinishedCall { call: None, streams: vec![stream] });
        self.finished.extend(lone);
    }

    /// The streams whose last call this is.
    fn streams_of(&self, call: u32) -> Vec<u32> {
        let flows = self.router.calls.get(call).into_iter().flat_map(|call| &call.flows);
        let streams = flows.filter_map(|flow| self.router.flows.get(*flow)).flat_map(|flow| &flow.streams);
        let is_last = |stream: &u32| {
            let binding = self.router.streams.get(*stream).and_then(|known| known.bindings.last());
            binding.is_some_and(|binding| binding.call == call)
        };
        streams.map(|(_, stream)| *stream).filter(is_last).collect()
    }

    /// Unbinds the flows of a call.
    fn unbind(&mut self, call: u32) {
        let flows = self.router.calls.get_mut(call).map(|call| std::mem::take(&mut call.flows));
        for flow in flows.unwrap_or_default() {
            self.router.flows.unbind(flow, call);
        }
    }

    /// The calls that never ended and had neither a message nor a packet since `limit`.
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

    /// The streams that no SDP announced and that had no packet since `limit`.
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

/// Whether `every_us` has passed since the last time; records the time if so.
fn is_due(last: &mut Option<Micros>, now: Micros, every_us: i64) -> bool {
    // A clock that was set back makes it due as well.
    let due = last.is_none_or(|last| now.since(last).abs() >= every_us);
    if due {
        *last = Some(now);
    }
    due
}

/// How often the engine looks for finished calls.
const SWEEP_US: i64 = 1_000_000;
/// How often the engine looks for idle calls and streams.
const SWEEP_IDLE_US: i64 = 10_000_000;
/// Late packets of a call arrive within this time after its end.
const GRACE_US: i64 = 5_000_000;
/// A stream that no SDP announced is over after this time without a packet.
const IDLE_US: i64 = 60_000_000;
/// A call whose end was not captured is over after this time without a packet.
const ABANDONED_US: i64 = 3_600_000_000;

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
