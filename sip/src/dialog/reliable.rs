//! Reliable provisional responses to one INVITE that we answer (RFC 3262 §3): one at a time, each repeated until its
//! PRACK arrives.

use std::time::Instant;

use crate::transaction::{Backoff, Timers};

/// The reliable provisional responses to one INVITE.
#[derive(Debug)]
pub struct ReliableResponses {
    timers: Timers,
    /// The number of the last response.
    rseq: u32,
    state: State,
    output: Option<ReliableOutput>,
}

/// Inputs of the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReliableInput {
    /// A PRACK with this RSeq.
    Prack(u32),
    /// A response is sent, with the number that [`ReliableResponses::next_rseq`] gave.
    Sent,
    /// The time of [`ReliableResponses::next_timeout`] has been reached.
    Timeout,
}

/// Outputs of the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReliableOutput {
    /// The PRACK belongs to the pending response: the next response may be sent.
    Acknowledged,
    /// 64·T1 have passed without a PRACK: refuse the INVITE with a 5xx.
    GiveUp,
    /// Send the response again.
    Retransmit,
}

#[derive(Debug)]
enum State {
    Idle,
    Waiting { resend: Backoff, give_up: Instant },
}

impl ReliableResponses {
    /// No response has been sent. `seed` is random: the first number is between 1 and 2³¹ − 1 (§3).
    pub fn new(seed: u32, timers: Timers) -> Self {
        let rseq = seed % RSEQ_FIRST_MAX;
        Self { timers, rseq, state: State::Idle, output: None }
    }

    /// The RSeq of the next response.
    pub fn next_rseq(&self) -> u32 {
        self.rseq.saturating_add(1)
    }

    /// Whether a response waits for its PRACK.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// Feeds one event.
    pub fn handle_input(&mut self, now: Instant, input: ReliableInput) {
        match (&mut self.state, input) {
            (_, ReliableInput::Sent) => {
                self.rseq = self.next_rseq();
                let resend = Backoff::start(now, self.timers.t1);
                self.state = State::Waiting { resend, give_up: now + self.timers.give_up() };
            }
            (State::Waiting { .. }, ReliableInput::Prack(rseq)) if rseq == self.rseq => {
                self.state = State::Idle;
                self.output = Some(ReliableOutput::Acknowledged);
            }
            // A PRACK of another response, or one repeated in a new transaction.
            (_, ReliableInput::Prack(_)) => {}
            (State::Waiting { give_up, .. }, ReliableInput::Timeout) if now >= *give_up => {
                self.state = State::Idle;
                self.output = Some(ReliableOutput::GiveUp);
            }
            (State::Waiting { resend, .. }, ReliableInput::Timeout) if now >= resend.next => {
                // §3: the interval doubles without the limit T2.
                resend.advance(now, self.timers.give_up());
                self.output = Some(ReliableOutput::Retransmit);
            }
            (State::Idle | State::Waiting { .. }, ReliableInput::Timeout) => {} // Early, or a timer that is not ours.
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<ReliableOutput> {
        self.output.take()
    }

    /// When to feed [`ReliableInput::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Waiting { resend, give_up } => Some(resend.next.min(*give_up)),
            State::Idle => None,
        }
    }
}

/// First numbers are below this, so that many responses can follow.
const RSEQ_FIRST_MAX: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::transaction::ladder::start;

    /// Sends a response at 0 ms; each PRACK is `(ms, rseq)`.
    fn check(pracks: &[(u64, u32)], expected: Expect) {
        let zero = start();
        let mut responses = ReliableResponses::new(6, Timers::default());
        responses.handle_input(zero, ReliableInput::Sent);
        let mut pracks = pracks.iter();
        let mut next = pracks.next();
        let mut out = String::new();
        while let Some(at) = responses.next_timeout() {
            let prack = next.filter(|(ms, _)| zero + std::time::Duration::from_millis(*ms) < at);
            let (now, input) = match prack {
                Some((ms, rseq)) => {
                    next = pracks.next();
                    (zero + std::time::Duration::from_millis(*ms), ReliableInput::Prack(*rseq))
                }
                None => (at, ReliableInput::Timeout),
            };
            responses.handle_input(now, input);
            while let Some(output) = responses.poll_output() {
                writeln!(out, "{}ms {output:?}", (now - zero).as_millis()).unwrap();
            }
        }
        assert!(!responses.is_waiting());
        expected.assert_eq(&out);
    }

    #[test]
    fn acknowledged_after_losses() {
        check(
            &[(100, 6), (200, 8), (1_600, 7), (1_700, 7)],
            expect![[r#"
                500ms Retransmit
                1500ms Retransmit
                1600ms Acknowledged
            "#]],
        );
    }

    #[test]
    fn never_acknowledged() {
        check(
            &[],
            expect![[r#"
                500ms Retransmit
                1500ms Retransmit
                3500ms Retransmit
                7500ms Retransmit
                15500ms Retransmit
                31500ms Retransmit
                32000ms GiveUp
            "#]],
        );
    }

    #[test]
    fn first_numbers_leave_space_for_more() {
        for seed in [0, 1, u32::MAX] {
            let first = ReliableResponses::new(seed, Timers::default()).next_rseq();
            assert!((1..1 << 31).contains(&first), "{seed}: {first}");
        }
    }
}
