//! The non-INVITE server transaction (RFC 3261 §17.2.2 with RFC 4320), and the types that both server
//! machines share.
//!
//! RFC 4320 §4.1 changes three things: the only provisional response is 100; over UDP it is always sent, but
//! only after 3.5 s; and there is no 408, so when the user never answers, the transaction ends without a
//! response.

use std::collections::VecDeque;
use std::time::Instant;

use crate::transaction::client::ResponseClass;
use crate::transaction::timers::{Timer, Timers};

/// Inputs of a server transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerInput {
    /// An ACK of this INVITE.
    Ack,
    /// The request was repeated.
    Request,
    /// The user's response.
    Response(ResponseClass),
    /// The time of [`ServerInvite::next_timeout`](super::ServerInvite::next_timeout) has been reached.
    Timeout,
}

/// Outputs of a server transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOutput {
    /// Pass the ACK of this input to the user.
    DeliverAck,
    /// Report to the user that a failure was never acknowledged.
    NoAck,
    /// Send the user's latest response, for the first time or again.
    SendResponse,
    /// Send a 100, which becomes the latest response.
    SendTrying,
    /// Remove this transaction.
    Terminated,
}

/// One request other than INVITE and ACK, as server.
#[derive(Debug)]
pub struct Server {
    timers: Timers,
    reliable: bool,
    state: State,
    outputs: VecDeque<ServerOutput>,
}

#[derive(Debug)]
enum State {
    /// No response sent yet; 100 is sent at `trying`.
    Trying {
        trying: Instant,
        give_up: Instant,
    },
    /// 100 was sent.
    Proceeding {
        give_up: Instant,
    },
    /// The final response was sent; until timer J it is repeated for every retransmission.
    Completed {
        until: Instant,
    },
    Terminated,
}

impl Server {
    /// A request that has just arrived.
    pub fn new(now: Instant, timers: Timers, reliable: bool) -> Self {
        let give_up = now + timers.give_up();
        let state = State::Trying { trying: now + timers.silence(), give_up };
        Self { timers, reliable, state, outputs: VecDeque::new() }
    }

    /// Whether the user can still give the final response.
    pub fn is_pending(&self) -> bool {
        matches!(self.state, State::Trying { .. } | State::Proceeding { .. })
    }

    /// Processes one event.
    pub fn handle_input(&mut self, now: Instant, input: ServerInput) {
        use ResponseClass as R;
        use ServerInput as I;
        match (&mut self.state, input) {
            (State::Terminated, _) => {} // Nothing is left to send.
            (_, I::Timeout) => self.timeout(now),
            // This kind of transaction has no ACK.
            (_, I::Ack) => {}

            // §17.2.2 "Trying": nothing to repeat yet.
            (State::Trying { .. }, I::Request) => {}
            (State::Proceeding { .. } | State::Completed { .. }, I::Request) => {
                self.outputs.push_back(ServerOutput::SendResponse);
            }
            // RFC 4320 §4.1: the machine sends 100 at the right time, and no other provisional response is
            // allowed.
            (State::Trying { .. } | State::Proceeding { .. }, I::Response(R::Provisional)) => {}
            (State::Trying { .. } | State::Proceeding { .. }, I::Response(R::Success | R::Failure)) => {
                self.outputs.push_back(ServerOutput::SendResponse);
                let wait = Timers::unless_reliable(self.reliable, self.timers.give_up());
                self.state = State::Completed { until: now + wait };
                self.timeout(now);
            }
            // The final response has already been given.
            (State::Completed { .. }, I::Response(_)) => {}
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<ServerOutput> {
        self.outputs.pop_front()
    }

    /// When to feed [`ServerInput::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next_timer().map(|(_, at)| at)
    }

    /// The timer that fires next, by its letter; the end of an unanswered request is reported as F, the
    /// client's timer.
    pub fn next_timer(&self) -> Option<(Timer, Instant)> {
        match &self.state {
            State::Trying { trying, give_up } if trying < give_up => Some((Timer::Trying, *trying)),
            State::Trying { give_up, .. } | State::Proceeding { give_up } => Some((Timer::F, *give_up)),
            State::Completed { until } => Some((Timer::J, *until)),
            State::Terminated => None,
        }
    }

    fn timeout(&mut self, now: Instant) {
        match &self.state {
            // RFC 4320 §4.2: the client has timed out already, and a late final response would only be a
            // stray one.
            State::Trying { give_up, .. } | State::Proceeding { give_up } if now >= *give_up => {
                self.terminate()
            }
            State::Trying { trying, give_up } if now >= *trying => {
                self.state = State::Proceeding { give_up: *give_up };
                self.outputs.push_back(ServerOutput::SendTrying);
            }
            State::Completed { until } if now >= *until => self.terminate(),
            // Too early: the driver was woken by another timer.
            _ => {}
        }
    }

    fn terminate(&mut self) {
        self.outputs.push_back(ServerOutput::Terminated);
        self.state = State::Terminated;
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::transaction::ladder::check_server;

    fn check(reliable: bool, script: &str, expected: expect_test::Expect) {
        check_server(|now| Server::new(now, Timers::default(), reliable).into(), script, expected);
    }

    #[test]
    fn answers_and_repeats() {
        check(
            false,
            "10 request, 20 200, 500 request, 600 404",
            expect![[r#"
                0ms      new
                10ms     request
                20ms     200              >net response
                500ms    request          >net response
                600ms    404
                32020ms  timer J          end
            "#]],
        );
    }

    #[test]
    fn a_slow_user_draws_100_after_silence_and_no_180() {
        check(
            false,
            "100 180, 1000 request, 4000 request, 5000 200",
            expect![[r#"
                0ms      new
                100ms    180
                1000ms   request
                3500ms   timer Trying     >net 100
                4000ms   request          >net response
                5000ms   200              >net response
                37000ms  timer J          end
            "#]],
        );
    }

    #[test]
    fn a_silent_user_gets_no_408() {
        check(
            false,
            "",
            expect![[r#"
                0ms      new
                3500ms   timer Trying     >net 100
                32000ms  timer F          end
            "#]],
        );
    }

    #[test]
    fn a_stream_needs_no_timer_j() {
        check(
            true,
            "20 200",
            expect![[r#"
                0ms      new
                20ms     200              >net response, end
            "#]],
        );
    }
}
