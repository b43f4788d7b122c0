//! What the probes of a binding show (RFC 5626 §4.2).
//!
//! A probe is an OPTIONS. It keeps the flow through a NAT open, and its answer shows that the phone is there. A binding
//! whose probes are not answered is not called until one is answered again or the phone registers.

use std::time::{Duration, Instant};

/// What the probes of a binding have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reachability {
    /// Whether the phone is called.
    pub state: BindingState,
    /// Time from the last answered probe to its answer.
    pub round_trip: Option<Duration>,
    /// When a probe was answered last.
    pub last_answer_at: Option<Instant>,
    /// Probes in a row without an answer.
    pub(super) unanswered: u32,
}

/// Whether a registered phone is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BindingState {
    /// It has answered a probe.
    Reachable,
    /// No probe has been answered yet.
    #[default]
    Unknown,
    /// Probes are not answered: it is not called.
    Unreachable,
}

/// The result of a probe or of another request to a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// Any final response came after this time.
    Answered(Duration),
    /// The request could not be sent, or the address refused it.
    Refused,
    /// No response came.
    Unanswered,
}

impl Reachability {
    /// The same for a binding that registers again by the same flow.
    pub(super) fn refreshed(self) -> Self {
        let state = match self.state {
            BindingState::Unreachable => BindingState::Unknown,
            state => state,
        };
        Reachability { state, unanswered: 0, ..self }
    }

    /// Records the result of a probe at this time; `limit` probes in a row without an answer show that the phone is
    /// gone.
    pub(super) fn note(&mut self, now: Instant, result: ProbeResult, limit: u32) {
        match result {
            ProbeResult::Answered(round_trip) => {
                *self = Reachability {
                    state: BindingState::Reachable,
                    round_trip: Some(round_trip),
                    last_answer_at: Some(now),
                    unanswered: 0,
                };
            }
            ProbeResult::Refused => self.unanswered = limit,
            ProbeResult::Unanswered => self.unanswered = self.unanswered.saturating_add(1),
        }
        if self.unanswered >= limit {
            self.state = BindingState::Unreachable;
        }
    }

    /// Whether the phone is called.
    pub fn is_callable(&self) -> bool {
        self.state != BindingState::Unreachable
    }
}
