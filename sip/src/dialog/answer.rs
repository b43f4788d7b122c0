//! A 2xx to an INVITE, repeated until its ACK arrives (RFC 3261 §13.3.1.4).
//!
//! The transaction does not do this, because the 2xx is repeated end to end, also over reliable transports.

use std::time::Instant;

use crate::transaction::{Backoff, Timers};

/// One 2xx that waits for its ACK.
#[derive(Debug)]
pub struct Answer {
    timers: Timers,
    state: State,
    output: Option<AnswerOutput>,
}

/// Inputs of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerInput {
    /// The ACK.
    Ack,
    /// The time of [`Answer::next_timeout`] has been reached.
    Timeout,
}

/// Outputs of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerOutput {
    /// 64·T1 have passed: end the session with a BYE.
    GiveUp,
    /// Send the 2xx again.
    Retransmit,
}

#[derive(Debug)]
enum State {
    Waiting { resend: Backoff, give_up: Instant },
    Done,
}

impl Answer {
    /// The 2xx has just been sent for the first time.
    pub fn new(now: Instant, timers: Timers) -> Self {
        let state =
            State::Waiting { resend: Backoff::start(now, timers.t1), give_up: now + timers.give_up() };
        Self { timers, state, output: None }
    }

    /// Feeds one event.
    pub fn handle_input(&mut self, now: Instant, input: AnswerInput) {
        match (&mut self.state, input) {
            // A retransmitted ACK, or the timeout of another machine.
            (State::Done, _) => {}
            (State::Waiting { .. }, AnswerInput::Ack) => self.state = State::Done,
            (State::Waiting { give_up, .. }, AnswerInput::Timeout) if now >= *give_up => {
                self.state = State::Done;
                self.output = Some(AnswerOutput::GiveUp);
            }
            (State::Waiting { resend, .. }, AnswerInput::Timeout) if now >= resend.next => {
                resend.advance(now, self.timers.t2);
                self.output = Some(AnswerOutput::Retransmit);
            }
            (State::Waiting { .. }, AnswerInput::Timeout) => {} // Early.
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<AnswerOutput> {
        self.output.take()
    }

    /// When to feed [`AnswerInput::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Waiting { resend, give_up } => Some(resend.next.min(*give_up)),
            State::Done => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::time::Duration;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::transaction::ladder::start;

    fn check(ack_ms: Option<u64>, expected: Expect) {
        let zero = start();
        let ack = ack_ms.map(|ms| zero + Duration::from_millis(ms));
        let mut answer = Answer::new(zero, Timers::default());
        let mut out = String::new();
        while let Some(at) = answer.next_timeout() {
            match ack.filter(|ack| *ack < at) {
                Some(ack) => answer.handle_input(ack, AnswerInput::Ack),
                None => answer.handle_input(at, AnswerInput::Timeout),
            }
            while let Some(output) = answer.poll_output() {
                writeln!(out, "{}ms {output:?}", (at - zero).as_millis()).unwrap();
            }
        }
        expected.assert_eq(&out);
    }

    #[test]
    fn acknowledged_after_a_loss() {
        check(
            Some(1_600),
            expect![[r#"
                500ms Retransmit
                1500ms Retransmit
            "#]],
        );
    }

    #[test]
    fn never_acknowledged() {
        check(
            None,
            expect![[r#"
                500ms Retransmit
                1500ms Retransmit
                3500ms Retransmit
                7500ms Retransmit
                11500ms Retransmit
                15500ms Retransmit
                19500ms Retransmit
                23500ms Retransmit
                27500ms Retransmit
                31500ms Retransmit
                32000ms GiveUp
            "#]],
        );
    }
}
