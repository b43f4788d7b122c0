//! One INVITE at a time: the glare rules of a confirmed dialog (RFC 3261 §14).
//!
//! The machine determines whether an INVITE may be sent or accepted now, and when a refused one may be tried
//! again.

use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;

use crate::transaction::ServerKey;

/// The INVITE transactions inside one dialog.
#[derive(Debug)]
pub struct InviteUsage {
    /// Whether we created the Call-ID; it determines the wait after a clash (§14.1).
    owns_call_id: bool,
    state: State,
    output: Option<InviteOutput>,
}

/// Inputs of an INVITE usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InviteInput {
    /// The INVITE in progress got its final response.
    Finished,
    /// Our INVITE was refused with 491.
    RequestPending,
    /// The time of [`InviteUsage::next_timeout`] has been reached.
    Timeout,
}

/// Outputs of an INVITE usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InviteOutput {
    /// The INVITE that clashed may be sent again as a new request.
    Retry,
}

/// Why an INVITE of the peer cannot be accepted now (§14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Our own INVITE is in progress: answer 491.
    Ours,
    /// The peer's earlier INVITE is not answered yet: answer 500 with Retry-After.
    Theirs,
}

#[derive(Debug)]
enum State {
    Idle,
    Received(ServerKey),
    Sent,
    /// Waits after a clash; the peer's INVITE may arrive meanwhile.
    Waiting {
        until: Instant,
    },
}

impl InviteUsage {
    /// No INVITE is in progress.
    pub fn new(owns_call_id: bool) -> Self {
        Self { owns_call_id, state: State::Idle, output: None }
    }

    /// Whether we may send an INVITE (§14.1: not while one is in progress in either direction).
    pub fn may_send(&self) -> bool {
        matches!(self.state, State::Idle | State::Waiting { .. })
    }

    /// Records that we send an INVITE.
    pub fn sent(&mut self) {
        self.state = State::Sent;
    }

    /// Accepts the peer's INVITE.
    ///
    /// # Errors
    ///
    /// The clash, when an INVITE is in progress.
    pub fn receive(&mut self, key: ServerKey) -> Result<(), Clash> {
        match self.state {
            State::Sent => Err(Clash::Ours),
            State::Received(_) => Err(Clash::Theirs),
            // The peer retried first. The waiting INVITE of ours is retried after this one is answered.
            State::Waiting { .. } => {
                self.state = State::Received(key);
                self.output = Some(InviteOutput::Retry);
                Ok(())
            }
            State::Idle => {
                self.state = State::Received(key);
                Ok(())
            }
        }
    }

    /// The peer's INVITE that waits for our answer.
    pub fn received(&self) -> Option<ServerKey> {
        match self.state {
            State::Received(key) => Some(key),
            _ => None,
        }
    }

    /// Processes one event; `rng` varies the retry times.
    pub fn handle_input(&mut self, now: Instant, input: InviteInput, rng: &mut StdRng) {
        match (&self.state, input) {
            (State::Sent, InviteInput::RequestPending) => {
                // §14.1: 2.1 to 4 s for the owner of the Call-ID, otherwise 0 to 2 s, in units of 10 ms.
                let units =
                    if self.owns_call_id { rng.random_range(210..=400) } else { rng.random_range(0..=200) };
                self.state = State::Waiting { until: now + Duration::from_millis(10 * units) };
            }
            (State::Sent | State::Received(_), InviteInput::Finished) => self.state = State::Idle,
            (State::Waiting { until }, InviteInput::Timeout) if now >= *until => {
                self.state = State::Idle;
                self.output = Some(InviteOutput::Retry);
            }
            // A timeout before its time, or an event of an INVITE that is over.
            (State::Idle | State::Sent | State::Received(_) | State::Waiting { .. }, _) => {}
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<InviteOutput> {
        // A retry waits until the peer's own INVITE is answered.
        if self.may_send() { self.output.take() } else { None }
    }

    /// When to feed [`InviteInput::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { until } => Some(until),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::transaction::ladder::start;

    #[test]
    fn the_owner_of_the_call_id_waits_longer() {
        let zero = start();
        for seed in 0..200 {
            let mut rng = StdRng::seed_from_u64(seed);
            for (owns_call_id, shortest_ms, longest_ms) in [(true, 2_100, 4_000), (false, 0, 2_000)] {
                let mut usage = InviteUsage::new(owns_call_id);
                usage.sent();
                usage.handle_input(zero, InviteInput::RequestPending, &mut rng);
                let wait_ms = (usage.next_timeout().unwrap() - zero).as_millis();
                assert!(
                    (shortest_ms..=longest_ms).contains(&wait_ms) && wait_ms.is_multiple_of(10),
                    "seed {seed}: {wait_ms}"
                );
                usage.handle_input(usage.next_timeout().unwrap(), InviteInput::Timeout, &mut rng);
                assert_eq!(usage.poll_output(), Some(InviteOutput::Retry));
            }
        }
    }

    #[test]
    fn one_invite_at_a_time() {
        let zero = start();
        let mut rng = StdRng::seed_from_u64(1);
        let mut usage = InviteUsage::new(true);
        assert_eq!(usage.receive(ServerKey(1)), Ok(()));
        assert_eq!((usage.receive(ServerKey(2)), usage.may_send()), (Err(Clash::Theirs), false));
        usage.handle_input(zero, InviteInput::Finished, &mut rng);
        usage.sent();
        assert_eq!(usage.receive(ServerKey(3)), Err(Clash::Ours));
        usage.handle_input(zero, InviteInput::RequestPending, &mut rng);
        // The peer retries first; our retry follows when that INVITE is answered.
        assert_eq!((usage.receive(ServerKey(4)), usage.poll_output()), (Ok(()), None));
        usage.handle_input(zero, InviteInput::Finished, &mut rng);
        assert_eq!(usage.poll_output(), Some(InviteOutput::Retry));
    }
}
