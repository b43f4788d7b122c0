//! One listening, without a socket: frames in, calls that are over out.

use std::collections::VecDeque;

use sidetone_capture::{CallReport, Engine, EngineOptions};
use sidetone_media::pcap::Record;
use sidetone_media::time::Micros;
use sidetone_media::verdict::Thresholds;

use super::drops::Drops;

/// A call that is over.
#[derive(Debug)]
pub struct TappedCall {
    /// What its messages and the audio of both parties say.
    pub call: CallReport,
    /// Packets of any call that were missed while it was up.
    pub missed: u64,
}

/// The capture engine over traffic that never ends.
///
/// *Bounds*: those of an engine that forgets calls soon after their end, and of [`Drops`].
#[derive(Debug)]
pub struct TapSession {
    engine: Engine,
    thresholds: Thresholds,
    drops: Drops,
    /// Calls that the end of the listening cut off.
    cut: VecDeque<TappedCall>,
}

impl Default for TapSession {
    fn default() -> Self {
        TapSession::new()
    }
}

impl TapSession {
    /// A listening that has heard nothing.
    pub fn new() -> Self {
        TapSession::with_thresholds(Thresholds::default())
    }

    /// The same, which judges calls by these thresholds.
    pub fn with_thresholds(thresholds: Thresholds) -> Self {
        let engine = Engine::with_thresholds(OPTIONS, thresholds.clone());
        TapSession { engine, thresholds, drops: Drops::new(), cut: VecDeque::new() }
    }

    /// Takes one frame.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) {
        self.engine.record(record);
    }

    /// So many packets could not be taken at some time between two instants.
    pub fn dropped(&mut self, from: Micros, to: Micros, packets: u64) {
        self.drops.note(from, to, packets);
    }

    /// How many calls are followed now.
    pub fn live_calls(&self) -> u64 {
        self.engine.live_calls() as u64
    }

    /// The next call that is over at `now`, until there is none. Streams that no call announced are forgotten.
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

    /// Ends every call that is up as it stands; [`TapSession::poll`] gives them out.
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

/// Nobody looks at ladders here, and a second thread would want what the rings want.
const OPTIONS: EngineOptions = EngineOptions { threads: 1, ladder: false, audio: false, evict: true };
