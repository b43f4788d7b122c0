//! One capture session, without a socket: frames in, finished calls out.

use std::collections::VecDeque;

use sidetone_capture::{CallReport, Engine, EngineOptions};
use sidetone_media::pcap::Record;
use sidetone_media::time::Micros;
use sidetone_media::verdict::Thresholds;

use super::drops::Drops;

/// A finished call.
#[derive(Debug)]
pub struct TappedCall {
    /// The analysis of its messages and the audio of both parties.
    pub call: CallReport,
    /// Packets of any call that were lost during this one.
    pub missed: u64,
}

/// The capture engine for endless traffic.
///
/// *Bounds*: those of an engine that evicts calls soon after their end, and of [`Drops`].
#[derive(Debug)]
pub struct TapSession {
    engine: Engine,
    thresholds: Thresholds,
    drops: Drops,
    /// Calls that were still in progress at the end of the session.
    cut: VecDeque<TappedCall>,
}

impl Default for TapSession {
    fn default() -> Self {
        TapSession::new()
    }
}

impl TapSession {
    /// Returns an empty session.
    pub fn new() -> Self {
        TapSession::with_thresholds(Thresholds::default())
    }

    /// Returns an empty session that judges calls by these thresholds.
    pub fn with_thresholds(thresholds: Thresholds) -> Self {
        let engine = Engine::with_thresholds(OPTIONS, thresholds.clone());
        TapSession { engine, thresholds, drops: Drops::new(), cut: VecDeque::new() }
    }

    /// Judges calls whose audio begins from now on by these thresholds.
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.engine.set_thresholds(thresholds.clone());
        self.thresholds = thresholds;
    }

    /// Takes one frame.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) {
        self.engine.record(record);
    }

    /// Records packets that were dropped at some time between two times.
    pub fn dropped(&mut self, from: Micros, to: Micros, packets: u64) {
        self.drops.note(from, to, packets);
    }

    /// Returns the number of calls in progress.
    pub fn live_calls(&self) -> u64 {
        self.engine.live_calls() as u64
    }

    /// Returns the next call that has ended at `now`; `None` if there is no more. Streams without signalling are
    /// dropped.
    pub fn poll(&mut self, now: Micros) -> Option<TappedCall> {
        if let Some(call) = self.cut.pop_front() {
            return Some(call);
        }
        loop {
            let finished = self.engine.poll_finished(now)?;
            if let Some(call) = finished.call {
                return Some(self.tapped(call));
            }
        }
    }

    /// Ends every call in its current state; [`TapSession::poll`] returns them.
    pub fn end(&mut self, now: Micros) {
        let over: Vec<TappedCall> = std::iter::from_fn(|| self.poll(now)).collect();
        self.cut.extend(over);
        let analysis =
            std::mem::replace(&mut self.engine, Engine::with_thresholds(OPTIONS, self.thresholds.clone()))
                .finish("tap");
        let cut: Vec<TappedCall> = analysis.calls.into_iter().map(|call| self.tapped(call)).collect();
        self.cut.extend(cut);
    }

    fn tapped(&self, call: CallReport) -> TappedCall {
        let began = Micros(call.started_at.as_micros());
        let missed = self.drops.between(began, call.leg.at);
        TappedCall { call, missed }
    }
}

/// No ladders are shown here, and further threads would compete with the rings for the CPU.
const OPTIONS: EngineOptions = EngineOptions { threads: 1, ladder: false, audio: false, evict: true };
