//! The INVITE client transaction: RFC 3261 §17.1.1 as corrected by RFC 6026 §8.4, with the CANCEL rule of §9.1.
//!
//! The machine decides when messages are sent; the layer stores their bytes and routes.

use std::collections::VecDeque;
use std::time::Instant;

use crate::transaction::client::{ClientInput, ClientOutput, ResponseClass};
use crate::transaction::timers::{Backoff, Timer, Timers};

/// One INVITE, as client.
#[derive(Debug)]
pub struct ClientInvite {
    timers: Timers,
    reliable: bool,
    state: State,
    outputs: VecDeque<ClientOutput>,
}

#[derive(Debug)]
enum State {
    /// No response yet. `cancel`: the user has cancelled, but the CANCEL must wait for a provisional response
    /// (§9.1).
    Calling {
        resend: Option<Backoff>,
        give_up: Instant,
        cancel: bool,
    },
    /// A provisional response arrived. `give_up` is set by a CANCEL and limits the wait for its 487.
    Proceeding {
        give_up: Option<Instant>,
    },
    /// A failure arrived and was acknowledged; until timer D its retransmissions are acknowledged again.
    Completed {
        until: Instant,
    },
    /// A 2xx arrived; until timer M further 2xx may arrive, from other branches of a fork (RFC 6026 §8.4).
    Accepted {
        until: Instant,
    },
    Terminated,
}

impl ClientInvite {
    /// Sends the INVITE for the first time.
    pub fn new(now: Instant, timers: Timers, reliable: bool) -> Self {
        let resend = (!reliable).then(|| Backoff::start(now, timers.t1));
        let state = State::Calling { resend, give_up: now + timers.give_up(), cancel: false };
        Self { timers, reliable, state, outputs: VecDeque::from([ClientOutput::SendRequest]) }
    }

    /// Processes one event.
    pub fn handle_input(&mut self, now: Instant, input: ClientInput) {
        use ClientInput as I;
        use ResponseClass as R;
        match (&mut self.state, input) {
            (State::Terminated, _) => {} // Nothing is left to send.
            (_, I::Timeout) => self.timeout(now),

            // §17.1.1.2 "Calling".
            (State::Calling { cancel, .. }, I::Response(R::Provisional)) => {
                let give_up = cancel.then(|| now + self.timers.give_up());
                self.outputs.push_back(ClientOutput::Deliver);
                if give_up.is_some() {
                    self.outputs.push_back(ClientOutput::SendCancel);
                }
                self.state = State::Proceeding { give_up };
            }
            (State::Proceeding { .. }, I::Response(R::Provisional)) => {
                self.outputs.push_back(ClientOutput::Deliver);
            }
            (State::Calling { .. } | State::Proceeding { .. }, I::Response(R::Failure)) => {
                self.outputs.extend([ClientOutput::SendAck, ClientOutput::Deliver]);
                let wait = Timers::unless_reliable(self.reliable, self.timers.give_up());
                self.state = State::Completed { until: now + wait };
                self.timeout(now);
            }
            // RFC 6026 §7.2: a 2xx does not end the transaction; further 2xx of a fork are passed to the user too.
            (State::Calling { .. } | State::Proceeding { .. }, I::Response(R::Success)) => {
                self.outputs.push_back(ClientOutput::Deliver);
                self.state = State::Accepted { until: now + self.timers.give_up() };
            }
            (State::Accepted { .. }, I::Response(R::Success)) => {
                self.outputs.push_back(ClientOutput::Deliver)
            }
            // RFC 6026 §8.4: after a 2xx only further 2xx count.
            (State::Accepted { .. }, I::Response(R::Provisional | R::Failure)) => {}

            // "Completed": the peer did not receive our ACK.
            (State::Completed { .. }, I::Response(R::Failure)) => {
                self.outputs.push_back(ClientOutput::SendAck)
            }
            // A late provisional response, or a 2xx of a branch that a proxy should have ended: the final
            // response stays valid.
            (State::Completed { .. }, I::Response(R::Provisional | R::Success)) => {}

            // §9.1: a CANCEL must not overtake its INVITE, so it waits for the first provisional response.
            (State::Calling { cancel, .. }, I::Cancel) => *cancel = true,
            (State::Proceeding { give_up: give_up @ None }, I::Cancel) => {
                *give_up = Some(now + self.timers.give_up());
                self.outputs.push_back(ClientOutput::SendCancel);
            }
            // Cancelled already, or too late: the final response crossed the CANCEL.
            (State::Proceeding { .. } | State::Completed { .. } | State::Accepted { .. }, I::Cancel) => {}

            (
                State::Calling { .. } | State::Proceeding { .. } | State::Completed { .. },
                I::TransportError,
            ) => {
                self.outputs.extend([ClientOutput::Unreachable, ClientOutput::Terminated]);
                self.state = State::Terminated;
            }
            // The user sends the ACK of a 2xx; this transaction has nothing left to send.
            (State::Accepted { .. }, I::TransportError) => {}
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<ClientOutput> {
        self.outputs.pop_front()
    }

    /// Timer M, if a 2xx has arrived: until it fires, only further 2xx have an effect, and they are passed to the user.
    pub(super) fn accepted_until(&self) -> Option<Instant> {
        match &self.state {
            State::Accepted { until } => Some(*until),
            _ => None,
        }
    }

    /// When to feed [`ClientInput::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next_timer().map(|(_, at)| at)
    }

    /// The timer that fires next, by its letter.
    pub fn next_timer(&self) -> Option<(Timer, Instant)> {
        match &self.state {
            State::Calling { resend: Some(resend), give_up, .. } if resend.next < *give_up => {
                Some((Timer::A, resend.next))
            }
            State::Calling { give_up, .. } => Some((Timer::B, *give_up)),
            State::Proceeding { give_up } => give_up.map(|at| (Timer::Cancelled, at)),
            State::Completed { until } => Some((Timer::D, *until)),
            State::Accepted { until } => Some((Timer::M, *until)),
            State::Terminated => None,
        }
    }

    fn timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Calling { give_up, .. } if now >= *give_up => self.time_out(Timer::B),
            State::Calling { resend: Some(resend), .. } if now >= resend.next => {
                resend.advance(now, self.timers.give_up());
                self.outputs.push_back(ClientOutput::SendRequest);
            }
            State::Proceeding { give_up: Some(at) } if now >= *at => self.time_out(Timer::Cancelled),
            State::Completed { until } | State::Accepted { until } if now >= *until => {
                self.outputs.push_back(ClientOutput::Terminated);
                self.state = State::Terminated;
            }
            // Too early: the driver was woken by another timer.
            _ => {}
        }
    }

    fn time_out(&mut self, timer: Timer) {
        self.outputs.extend([ClientOutput::TimedOut(timer), ClientOutput::Terminated]);
        self.state = State::Terminated;
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::transaction::ladder::check_client;

    fn check(reliable: bool, script: &str, expected: expect_test::Expect) {
        check_client(|now| ClientInvite::new(now, Timers::default(), reliable).into(), script, expected);
    }

    #[test]
    fn answered() {
        check(
            false,
            "50 100, 300 180, 2000 200, 2500 200, 3000 486",
            expect![[r#"
                0ms      new              >net request
                50ms     100              >tu response
                300ms    180              >tu response
                2000ms   200              >tu response
                2500ms   200              >tu response
                3000ms   486
                34000ms  timer M          end
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
                500ms    timer A          >net request
                1500ms   timer A          >net request
                3500ms   timer A          >net request
                7500ms   timer A          >net request
                15500ms  timer A          >net request
                31500ms  timer A          >net request
                32000ms  timer B          >tu timeout, end
            "#]],
        );
    }

    #[test]
    fn nobody_there_on_a_stream() {
        check(
            true,
            "",
            expect![[r#"
                0ms      new              >net request
                32000ms  timer B          >tu timeout, end
            "#]],
        );
    }

    #[test]
    fn refused_and_the_ack_lost() {
        check(
            false,
            "50 100, 900 486, 1400 486, 2400 486, 3000 180, 3100 200",
            expect![[r#"
                0ms      new              >net request
                50ms     100              >tu response
                900ms    486              >net ACK, >tu response
                1400ms   486              >net ACK
                2400ms   486              >net ACK
                3000ms   180
                3100ms   200
                32900ms  timer D          end
            "#]],
        );
    }

    #[test]
    fn refused_on_a_stream() {
        check(
            true,
            "50 486",
            expect![[r#"
                0ms      new              >net request
                50ms     486              >net ACK, >tu response, end
            "#]],
        );
    }

    #[test]
    fn cancel_waits_for_a_provisional() {
        check(
            false,
            "100 cancel, 700 180, 710 cancel, 900 487",
            expect![[r#"
                0ms      new              >net request
                100ms    cancel
                500ms    timer A          >net request
                700ms    180              >tu response, >net CANCEL
                710ms    cancel
                900ms    487              >net ACK, >tu response
                32900ms  timer D          end
            "#]],
        );
    }

    #[test]
    fn cancel_crosses_the_200() {
        check(
            false,
            "50 180, 100 cancel, 110 200",
            expect![[r#"
                0ms      new              >net request
                50ms     180              >tu response
                100ms    cancel           >net CANCEL
                110ms    200              >tu response
                32110ms  timer M          end
            "#]],
        );
    }

    #[test]
    fn cancelled_and_never_a_final_answer() {
        check(
            false,
            "50 180, 1000 cancel",
            expect![[r#"
                0ms      new              >net request
                50ms     180              >tu response
                1000ms   cancel           >net CANCEL
                33000ms  timer Cancelled  >tu timeout, end
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
