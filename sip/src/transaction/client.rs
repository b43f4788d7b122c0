//! The non-INVITE client transaction (RFC 3261 §17.1.2), and the types that both client machines share.

use std::collections::VecDeque;
use std::time::Instant;

use crate::transaction::timers::{Backoff, Timer, Timers};

/// Inputs of a client transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientInput {
    /// The user cancels an INVITE.
    Cancel,
    /// A response that belongs to this transaction.
    Response(ResponseClass),
    /// The time of [`ClientInvite::next_timeout`](super::ClientInvite::next_timeout) has been reached.
    Timeout,
    /// The transport could not send.
    TransportError,
}

/// Outputs of a client transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOutput {
    /// Pass the response of this input to the user.
    Deliver,
    /// Send the ACK for the failure of this input (§17.1.1.3).
    SendAck,
    /// Send a CANCEL in its own transaction (§9.1).
    SendCancel,
    /// Send the request, for the first time or again.
    SendRequest,
    /// Remove this transaction.
    Terminated,
    /// Report to the user that no final response arrived; the user treats it as a 408 (§8.1.3.1).
    TimedOut(Timer),
    /// Report to the user that the request could not be sent; treated as a 503 (§8.1.3.1).
    Unreachable,
}

/// The three classes of responses that a transaction distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseClass {
    /// 100–199.
    Provisional,
    /// 200–299.
    Success,
    /// 300–699.
    Failure,
}

/// One request other than INVITE and ACK, as client.
#[derive(Debug)]
pub struct Client {
    timers: Timers,
    reliable: bool,
    state: State,
    outputs: VecDeque<ClientOutput>,
}

#[derive(Debug)]
enum State {
    /// Trying, or Proceeding after a provisional response: the two differ only in the interval of timer E.
    Waiting {
        resend: Option<Backoff>,
        give_up: Instant,
        proceeding: bool,
    },
    /// A final response arrived; its retransmissions are absorbed until then.
    Completed {
        until: Instant,
    },
    Terminated,
}

impl ResponseClass {
    /// The class of a status code.
    pub fn of(status: u16) -> Self {
        match status {
            ..200 => Self::Provisional,
            200..300 => Self::Success,
            300.. => Self::Failure,
        }
    }
}

impl Client {
    /// Sends the request for the first time.
    pub fn new(now: Instant, timers: Timers, reliable: bool) -> Self {
        let resend = (!reliable).then(|| Backoff::start(now, timers.t1));
        let state = State::Waiting { resend, give_up: now + timers.give_up(), proceeding: false };
        Self { timers, reliable, state, outputs: VecDeque::from([ClientOutput::SendRequest]) }
    }

    /// Processes one event.
    pub fn handle_input(&mut self, now: Instant, input: ClientInput) {
        use ClientInput as I;
        match (&mut self.state, input) {
            (State::Terminated, _) => {} // Nothing is left to send.
            (_, I::Timeout) => self.timeout(now),
            // §9.1: only an INVITE can be cancelled.
            (_, I::Cancel) => {}

            // §17.1.2.2: after the first provisional response, retransmissions use the interval T2.
            (State::Waiting { resend, proceeding, .. }, I::Response(ResponseClass::Provisional)) => {
                *proceeding = true;
                if let Some(resend) = resend {
                    resend.hold(self.timers.t2);
                }
                self.outputs.push_back(ClientOutput::Deliver);
            }
            (State::Waiting { .. }, I::Response(ResponseClass::Success | ResponseClass::Failure)) => {
                self.outputs.push_back(ClientOutput::Deliver);
                let wait = Timers::unless_reliable(self.reliable, self.timers.t4);
                self.state = State::Completed { until: now + wait };
                self.timeout(now);
            }
            // A retransmission: the user already has the response.
            (State::Completed { .. }, I::Response(_)) => {}

            (State::Waiting { .. }, I::TransportError) => {
                self.outputs.extend([ClientOutput::Unreachable, ClientOutput::Terminated]);
                self.state = State::Terminated;
            }
            // Nothing is sent in this state.
            (State::Completed { .. }, I::TransportError) => {}
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<ClientOutput> {
        self.outputs.pop_front()
    }

    /// Timer K, if the final response has arrived: until it fires, no input has an effect.
    pub(super) fn completed_until(&self) -> Option<Instant> {
        match &self.state {
            State::Completed { until } => Some(*until),
            State::Waiting { .. } | State::Terminated => None,
        }
    }

    /// When to feed [`ClientInput::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next_timer().map(|(_, at)| at)
    }

    /// The timer that fires next, by its letter.
    pub fn next_timer(&self) -> Option<(Timer, Instant)> {
        match &self.state {
            State::Waiting { resend: Some(resend), give_up, .. } if resend.next < *give_up => {
                Some((Timer::E, resend.next))
            }
            State::Waiting { give_up, .. } => Some((Timer::F, *give_up)),
            State::Completed { until } => Some((Timer::K, *until)),
            State::Terminated => None,
        }
    }

    fn timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Waiting { give_up, .. } if now >= *give_up => {
                self.outputs.extend([ClientOutput::TimedOut(Timer::F), ClientOutput::Terminated]);
                self.state = State::Terminated;
            }
            State::Waiting { resend: Some(resend), .. } if now >= resend.next => {
                resend.advance(now, self.timers.t2);
                self.outputs.push_back(ClientOutput::SendRequest);
            }
            State::Completed { until } if now >= *until => {
                self.outputs.push_back(ClientOutput::Terminated);
                self.state = State::Terminated;
            }
            // Too early: the driver was woken by another timer.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::transaction::ladder::check_client;

    fn check(reliable: bool, script: &str, expected: expect_test::Expect) {
        check_client(|now| Client::new(now, Timers::default(), reliable).into(), script, expected);
    }

    #[test]
    fn answered_after_one_loss() {
        check(
            false,
            "600 200, 1100 200",
            expect![[r#"
                0ms      new              >net request
                500ms    timer E          >net request
                600ms    200              >tu response
                1100ms   200
                5600ms   timer K          end
            "#]],
        );
    }

    #[test]
    fn nobody_there() {
        check(
            false,
            "",
            expect![[r#"
                0ms      new              >net request
                500ms    timer E          >net request
                1500ms   timer E          >net request
                3500ms   timer E          >net request
                7500ms   timer E          >net request
                11500ms  timer E          >net request
                15500ms  timer E          >net request
                19500ms  timer E          >net request
                23500ms  timer E          >net request
                27500ms  timer E          >net request
                31500ms  timer E          >net request
                32000ms  timer F          >tu timeout, end
            "#]],
        );
    }

    #[test]
    fn a_provisional_slows_retransmission_to_t2() {
        check(
            false,
            "100 100, 9000 200",
            expect![[r#"
                0ms      new              >net request
                100ms    100              >tu response
                500ms    timer E          >net request
                4500ms   timer E          >net request
                8500ms   timer E          >net request
                9000ms   200              >tu response
                14000ms  timer K          end
            "#]],
        );
    }

    #[test]
    fn a_stream_needs_no_timer_e_and_no_timer_k() {
        check(
            true,
            "100 200",
            expect![[r#"
                0ms      new              >net request
                100ms    200              >tu response, end
            "#]],
        );
    }

    #[test]
    fn only_an_invite_is_cancelled() {
        check(
            true,
            "100 cancel, 200 404",
            expect![[r#"
                0ms      new              >net request
                100ms    cancel
                200ms    404              >tu response, end
            "#]],
        );
    }

    #[test]
    fn no_way_to_the_peer() {
        check(
            false,
            "0 error",
            expect![[r#"
                0ms      new              >net request
                0ms      error            >tu unreachable, end
            "#]],
        );
    }
}
