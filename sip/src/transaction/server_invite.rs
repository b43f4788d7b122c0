//! The INVITE server transaction: RFC 3261 §17.2.1 as corrected by RFC 6026 §8.7.
//!
//! The dialog retransmits a 2xx until its ACK (§13.3.1.4); here it only passes through.

use std::collections::VecDeque;
use std::time::Instant;

use crate::transaction::client::ResponseClass;
use crate::transaction::server::{ServerInput, ServerOutput};
use crate::transaction::timers::{Backoff, TRYING_AFTER, Timer, Timers};

/// One INVITE, as server.
#[derive(Debug)]
pub struct ServerInvite {
    timers: Timers,
    reliable: bool,
    state: State,
    outputs: VecDeque<ServerOutput>,
}

#[derive(Debug)]
enum State {
    /// No final response yet. `trying`: when to send 100, unless the user has sent a response.
    Proceeding {
        trying: Option<Instant>,
    },
    /// A failure was sent and is repeated until its ACK.
    Completed {
        resend: Option<Backoff>,
        give_up: Instant,
    },
    /// The ACK arrived; until timer I its retransmissions are absorbed.
    Confirmed {
        until: Instant,
    },
    /// A 2xx was sent; until timer L retransmitted INVITEs are absorbed (RFC 6026 §8.7).
    Accepted {
        until: Instant,
    },
    Terminated,
}

impl ServerInvite {
    /// An INVITE that has just arrived.
    pub fn new(now: Instant, timers: Timers, reliable: bool) -> Self {
        let state = State::Proceeding { trying: Some(now + TRYING_AFTER) };
        Self { timers, reliable, state, outputs: VecDeque::new() }
    }

    /// Whether the user can still give the final response.
    pub fn is_pending(&self) -> bool {
        matches!(self.state, State::Proceeding { .. })
    }

    /// Processes one event.
    pub fn handle_input(&mut self, now: Instant, input: ServerInput) {
        use ResponseClass as R;
        use ServerInput as I;
        match (&mut self.state, input) {
            (State::Terminated, _) => {} // Nothing is left to send.
            (_, I::Timeout) => self.timeout(now),

            // §17.2.1 "Proceeding". A retransmission before any response shows that the client needs the 100
            // now.
            (State::Proceeding { trying: trying @ Some(_) }, I::Request) => {
                *trying = None;
                self.outputs.push_back(ServerOutput::SendTrying);
            }
            (State::Proceeding { trying: None }, I::Request) => {
                self.outputs.push_back(ServerOutput::SendResponse)
            }
            (State::Proceeding { trying }, I::Response(R::Provisional)) => {
                *trying = None;
                self.outputs.push_back(ServerOutput::SendResponse);
            }
            (State::Proceeding { .. }, I::Response(R::Success)) => {
                self.outputs.push_back(ServerOutput::SendResponse);
                self.state = State::Accepted { until: now + self.timers.give_up() };
            }
            (State::Proceeding { .. }, I::Response(R::Failure)) => {
                self.outputs.push_back(ServerOutput::SendResponse);
                let resend = (!self.reliable).then(|| Backoff::start(now, self.timers.t1));
                self.state = State::Completed { resend, give_up: now + self.timers.give_up() };
            }
            // An ACK before the final response is ignored.
            (State::Proceeding { .. }, I::Ack) => {}

            // "Completed".
            (State::Completed { .. }, I::Request) => self.outputs.push_back(ServerOutput::SendResponse),
            (State::Completed { .. }, I::Ack) => {
                let wait = Timers::unless_reliable(self.reliable, self.timers.t4);
                self.state = State::Confirmed { until: now + wait };
                self.timeout(now);
            }
            // "Confirmed": absorbs messages that were still in transit.
            (State::Confirmed { .. }, I::Request | I::Ack) => {}

            // "Accepted": the INVITE is absorbed; an ACK and the user's repeated 2xx pass.
            (State::Accepted { .. }, I::Request) => {}
            (State::Accepted { .. }, I::Ack) => self.outputs.push_back(ServerOutput::DeliverAck),
            (State::Accepted { .. }, I::Response(R::Success)) => {
                self.outputs.push_back(ServerOutput::SendResponse)
            }
            // The final response has already been given.
            (State::Accepted { .. }, I::Response(R::Provisional | R::Failure)) => {}
            (State::Completed { .. } | State::Confirmed { .. }, I::Response(_)) => {}
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<ServerOutput> {
        self.outputs.pop_front()
    }

    /// Timer L, if a 2xx was sent.
    pub(super) fn accepted_until(&self) -> Option<Instant> {
        match &self.state {
            State::Accepted { until } => Some(*until),
            _ => None,
        }
    }

    /// When to feed [`ServerInput::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next_timer().map(|(_, at)| at)
    }

    /// The timer that fires next, by its letter.
    pub fn next_timer(&self) -> Option<(Timer, Instant)> {
        match &self.state {
            State::Proceeding { trying } => trying.map(|at| (Timer::Trying, at)),
            State::Completed { resend: Some(resend), give_up } if resend.next < *give_up => {
                Some((Timer::G, resend.next))
            }
            State::Completed { give_up, .. } => Some((Timer::H, *give_up)),
            State::Confirmed { until } => Some((Timer::I, *until)),
            State::Accepted { until } => Some((Timer::L, *until)),
            State::Terminated => None,
        }
    }

    fn timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Proceeding { trying: trying @ Some(_) } if trying.is_some_and(|at| now >= at) => {
                *trying = None;
                self.outputs.push_back(ServerOutput::SendTrying);
            }
            State::Completed { give_up, .. } if now >= *give_up => {
                self.outputs.extend([ServerOutput::NoAck, ServerOutput::Terminated]);
                self.state = State::Terminated;
            }
            State::Completed { resend: Some(resend), .. } if now >= resend.next => {
                resend.advance(now, self.timers.t2);
                self.outputs.push_back(ServerOutput::SendResponse);
            }
            State::Confirmed { until } | State::Accepted { until } if now >= *until => {
                self.outputs.push_back(ServerOutput::Terminated);
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
    use crate::transaction::ladder::check_server;

    fn check(reliable: bool, script: &str, expected: expect_test::Expect) {
        check_server(|now| ServerInvite::new(now, Timers::default(), reliable).into(), script, expected);
    }

    #[test]
    fn rings_and_answers() {
        check(
            false,
            "100 180, 600 request, 3000 200, 3500 request, 3500 200, 3700 ack",
            expect![[r#"
                0ms      new
                100ms    180              >net response
                600ms    request          >net response
                3000ms   200              >net response
                3500ms   request
                3500ms   200              >net response
                3700ms   ack              >tu ACK
                35000ms  timer L          end
            "#]],
        );
    }

    #[test]
    fn says_100_by_itself() {
        check(
            false,
            "500 request, 900 486, 950 ack, 1400 ack",
            expect![[r#"
                0ms      new
                200ms    timer Trying     >net 100
                500ms    request          >net response
                900ms    486              >net response
                950ms    ack
                1400ms   ack
                5950ms   timer I          end
            "#]],
        );
    }

    #[test]
    fn a_retransmission_draws_the_100() {
        check(
            false,
            "150 request, 160 request, 400 200",
            expect![[r#"
                0ms      new
                150ms    request          >net 100
                160ms    request          >net response
                400ms    200              >net response
                32400ms  timer L          end
            "#]],
        );
    }

    #[test]
    fn a_failure_is_repeated_until_its_ack() {
        check(
            false,
            "10 404, 700 request, 2000 ack",
            expect![[r#"
                0ms      new
                10ms     404              >net response
                510ms    timer G          >net response
                700ms    request          >net response
                1510ms   timer G          >net response
                2000ms   ack
                7000ms   timer I          end
            "#]],
        );
    }

    #[test]
    fn a_failure_never_acknowledged() {
        check(
            false,
            "10 404",
            expect![[r#"
                0ms      new
                10ms     404              >net response
                510ms    timer G          >net response
                1510ms   timer G          >net response
                3510ms   timer G          >net response
                7510ms   timer G          >net response
                11510ms  timer G          >net response
                15510ms  timer G          >net response
                19510ms  timer G          >net response
                23510ms  timer G          >net response
                27510ms  timer G          >net response
                31510ms  timer G          >net response
                32010ms  timer H          >tu no ACK, end
            "#]],
        );
    }

    #[test]
    fn a_stream_is_not_repeated_on() {
        check(
            true,
            "10 404, 100 ack",
            expect![[r#"
                0ms      new
                10ms     404              >net response
                100ms    ack              end
            "#]],
        );
    }

    #[test]
    fn the_first_final_answer_stands() {
        check(
            true,
            "10 200, 20 404, 30 180, 40 ack",
            expect![[r#"
                0ms      new
                10ms     200              >net response
                20ms     404
                30ms     180
                40ms     ack              >tu ACK
                32010ms  timer L          end
            "#]],
        );
    }
}
