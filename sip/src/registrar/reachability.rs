//! The reachability of a binding, from the results of its probes (RFC 5626 §4.2).
//!
//! A probe is an OPTIONS. It keeps the flow through a NAT open, and its answer shows that the phone is reachable. A
//! binding whose probes are not answered is not called until a probe is answered again or the phone registers.

use std::time::{Duration, Instant};

/// The results of a binding's probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reachability {
    /// Whether the phone is called.
    pub state: BindingState,
    /// Time from the last answered probe to its answer.
    pub round_trip: Option<Duration>,
    /// The time of the last answer to a probe.
    pub last_answer_at: Option<Instant>,
    /// Consecutive probes without an answer.
    pub(super) unanswered: u32,
}

/// Whether a registered phone is reachable.
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
    /// A final response, of any status, arrived after this time.
    Answered(Duration),
    /// The request could not be sent, or the address refused it.
    Refused,
    /// No response arrived.
    Unanswered,
}

impl Reachability {
    /// The state after a registration on the same flow.
    pub(super) fn refreshed(self) -> Self {
        let state = match self.state {
            BindingState::Unreachable => BindingState::Unknown,
            state => state,
        };
        Reachability { state, unanswered: 0, ..self }
    }

    /// Records the result of a probe at this time; after `limit` consecutive unanswered probes the phone is
    /// unreachable.
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
