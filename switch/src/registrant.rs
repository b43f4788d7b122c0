//! Our registration with one trunk (RFC 3261 §10.2): requested, refreshed before it expires, and removed at
//! the end.
//!
//! A state machine without messages: the switch sends its requests and feeds it their results.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;

/// State of one registration.
#[derive(Debug)]
pub(super) struct Registrant {
    state: State,
    /// The seconds to request.
    asked_s: u32,
    /// Failed attempts in a row.
    failures: u32,
    /// The server that we are registered with, and until when.
    registered: Option<(SocketAddr, Instant)>,
    outputs: VecDeque<Output>,
    rng: StdRng,
}

#[derive(Debug)]
enum State {
    /// A REGISTER was sent.
    Asking { to: SocketAddr, others: VecDeque<SocketAddr>, bargained: bool },
    /// The registration is removed or never existed; nothing more happens.
    Gone,
    /// The request to remove it was sent.
    Leaving { until: Instant },
    /// The trunk's name is being resolved.
    Looking { until: Instant },
    /// Waits until the next attempt or refresh.
    Resting { until: Instant },
}

/// An event of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// The addresses of the trunk, in order.
    Addresses(Vec<SocketAddr>),
    /// The REGISTER was accepted for this many seconds.
    Granted(u32),
    /// The REGISTER was refused; a 423 gives the least expiry that would be granted.
    Refused { status: u16, min_expires_s: Option<u32>, retry_after: Option<Duration> },
    /// No response arrived, or the REGISTER could not be sent.
    Silence,
    /// Remove the registration.
    Stop,
    /// The time of [`Registrant::next_timeout`] has come.
    Timeout,
}

/// Actions for the registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// The registration failed; output once until it succeeds again. `None`: no response arrived.
    Failed(Option<u16>),
    /// Resolve the trunk's addresses, then feed [`Input::Addresses`].
    Lookup,
    /// Send a REGISTER with this Expires.
    Register { to: SocketAddr, expires_s: u32 },
    /// The registration succeeded, for the first time or after a failure.
    Registered,
}

impl Registrant {
    /// Creates a registration that starts immediately; `rng` spreads refreshes and retries.
    pub(super) fn new(now: Instant, rng: StdRng) -> Self {
        let mut registrant = Registrant {
            state: State::Gone,
            asked_s: EXPIRES_S,
            failures: 0,
            registered: None,
            outputs: VecDeque::new(),
            rng,
        };
        registrant.look(now);
        registrant
    }

    /// Handles an input; drain [`Registrant::poll_output`] afterwards.
    pub(super) fn handle_input(&mut self, now: Instant, input: Input) {
        match (&mut self.state, input) {
            (State::Gone, _) => {}
            (State::Leaving { .. }, Input::Granted(_) | Input::Refused { .. } | Input::Silence) => {
                self.state = State::Gone;
            }
            (State::Leaving { until }, Input::Timeout) if *until <= now => self.state = State::Gone,
            (_, Input::Stop) => self.leave(now),
            (State::Looking { .. }, Input::Addresses(addresses)) => self.ask(now, addresses.into()),
            (State::Looking { until }, Input::Timeout) if *until <= now => self.ask(now, VecDeque::new()),
            (State::Asking { to, .. }, Input::Granted(seconds)) => {
                let to = *to;
                self.granted(now, to, seconds);
            }
            (State::Asking { to, bargained, .. }, Input::Refused { min_expires_s: Some(least), .. })
                if !*bargained && (self.asked_s..=EXPIRES_MAX_S).contains(&least) =>
            {
                // RFC 3261 §10.3 step 7: too brief for the registrar; try once more with its minimum.
                (*bargained, self.asked_s) = (true, least);
                self.outputs.push_back(Output::Register { to: *to, expires_s: least });
            }
            (State::Asking { others, .. }, Input::Refused { status, retry_after, .. }) => {
                let others = std::mem::take(others);
                if status == 503 && retry_after.is_none() && !others.is_empty() {
                    self.ask(now, others);
                } else {
                    self.failed(now, Some(status), retry_after);
                }
            }
            (State::Asking { others, .. }, Input::Silence) => {
                let others = std::mem::take(others);
                self.ask(now, others);
            }
            (State::Resting { until }, Input::Timeout) if *until <= now => self.look(now),
            // Late responses, and timeouts that are not due.
            _ => {}
        }
    }

    /// Returns the next action; drain to `None` after every input.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when to feed [`Input::Timeout`].
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Leaving { until } | State::Looking { until } | State::Resting { until } => Some(until),
            // The REGISTER's own transaction times out.
            State::Asking { .. } | State::Gone => None,
        }
    }

    /// Whether we are registered with that server now.
    pub(super) fn is_registered_at(&self, now: Instant, server: std::net::IpAddr) -> bool {
        self.registered.is_some_and(|(to, until)| until > now && to.ip() == server)
    }

    /// Returns the server that we are registered with now, and until when.
    pub(super) fn registered(&self, now: Instant) -> Option<(SocketAddr, Instant)> {
        self.registered.filter(|(_, until)| *until > now)
    }

    /// Whether the last attempt failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Whether nothing more happens.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone)
    }

    fn look(&mut self, now: Instant) {
        self.state = State::Looking { until: now + LOOKUP_MAX };
        self.outputs.push_back(Output::Lookup);
    }

    fn ask(&mut self, now: Instant, mut addresses: VecDeque<SocketAddr>) {
        match addresses.pop_front() {
            Some(to) => {
                self.outputs.push_back(Output::Register { to, expires_s: self.asked_s });
                self.state = State::Asking { to, others: addresses, bargained: false };
            }
            None => self.failed(now, None, None),
        }
    }

    fn granted(&mut self, now: Instant, to: SocketAddr, seconds: u32) {
        if seconds == 0 {
            return self.failed(now, Some(200), None);
        }
        let granted = Duration::from_secs(seconds.into());
        if self.failures > 0 || self.registered.is_none() {
            self.outputs.push_back(Output::Registered);
        }
        self.failures = 0;
        self.registered = Some((to, now + granted));
        // Early enough for one failure and a retry, and spread so that trunks registered at the same start do
        // not refresh together.
        let percent = self.rng.random_range(80..=90);
        let refresh = (granted * percent / 100).max(REFRESH_MIN);
        self.state = State::Resting { until: now + refresh };
    }

    fn failed(&mut self, now: Instant, status: Option<u16>, retry_after: Option<Duration>) {
        if self.failures == 0 {
            self.outputs.push_back(Output::Failed(status));
        }
        self.failures = self.failures.saturating_add(1);
        // RFC 5626 §4.5: the delay doubles each time, and is random between half of it and all of it.
        let longest = (RETRY_BASE * 2_u32.pow((self.failures - 1).min(16))).min(RETRY_MAX);
        let percent = self.rng.random_range(50..=100);
        let wait = (longest * percent / 100).max(retry_after.unwrap_or_default().min(RETRY_MAX));
        self.state = State::Resting { until: now + wait };
    }

    fn leave(&mut self, now: Instant) {
        if matches!(self.state, State::Leaving { .. }) {
            return;
        }
        // A REGISTER without a response yet may still have been accepted.
        let asked = match self.state {
            State::Asking { to, .. } => Some(to),
            _ => None,
        };
        let registered = self.registered.take().filter(|(_, until)| *until > now).map(|(to, _)| to);
        match registered.or(asked) {
            Some(to) => {
                self.outputs.push_back(Output::Register { to, expires_s: 0 });
                self.state = State::Leaving { until: now + LEAVE_MAX };
            }
            None => self.state = State::Gone,
        }
    }
}

/// Seconds requested at first.
const EXPIRES_S: u32 = 3_600;
/// The longest minimum of a registrar that we accept.
const EXPIRES_MAX_S: u32 = 7 * 86_400;
/// How long to wait for the response to the removal.
const LEAVE_MAX: Duration = Duration::from_secs(4);
/// How long resolving a name may take.
const LOOKUP_MAX: Duration = Duration::from_secs(12);
/// Shortest time to a refresh, however little a trunk grants.
const REFRESH_MIN: Duration = Duration::from_secs(10);
const RETRY_BASE: Duration = Duration::from_secs(30);
const RETRY_MAX: Duration = Duration::from_secs(1_800);

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};
    use rand::SeedableRng;

    use super::*;

    /// Each line is `MS event…`; `due` is a timeout at the time that the registrant requested.
    fn check(script: &str, expect: Expect) {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let start = Instant::now();
        let mut registrant = Registrant::new(start, StdRng::seed_from_u64(7));
        let mut log = String::new();
        let drain = |registrant: &mut Registrant, log: &mut String| {
            while let Some(output) = registrant.poll_output() {
                writeln!(log, "          {output:?}").unwrap();
            }
        };
        drain(&mut registrant, &mut log);
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<_> = line.split_whitespace().collect();
            let now = if words[0] == "due" {
                registrant.next_timeout().expect("a timeout")
            } else {
                start + Duration::from_secs(words[0].parse().unwrap())
            };
            let number = |at: usize| words.get(at).map(|word| word.parse().unwrap());
            let input = match words[1] {
                "addresses" => Input::Addresses(words[2..].iter().map(|at| at.parse().unwrap()).collect()),
                "granted" => Input::Granted(number(2).unwrap()),
                "refused" => Input::Refused {
                    status: words[2].parse().unwrap(),
                    min_expires_s: number(3),
                    retry_after: None,
                },
                "silence" => Input::Silence,
                "stop" => Input::Stop,
                _ => Input::Timeout,
            };
            registrant.handle_input(now, input);
            writeln!(log, "{}s {}", (now - start).as_secs(), words[1..].join(" ")).unwrap();
            drain(&mut registrant, &mut log);
        }
        if let Some(next) = registrant.next_timeout() {
            writeln!(log, "next in {} s", (next - start).as_secs()).unwrap();
        }
        expect.assert_eq(&log);
    }

    #[test]
    fn it_is_refreshed_before_it_ends_and_taken_back() {
        check(
            "0 addresses 192.0.2.1:5060
             1 granted 100
             due timeout
             90 addresses 192.0.2.1:5060
             91 granted 100
             120 stop
             121 granted 0",
            expect![[r#"
                          Lookup
                0s addresses 192.0.2.1:5060
                          Register { to: 192.0.2.1:5060, expires_s: 3600 }
                1s granted 100
                          Registered
                85s timeout
                          Lookup
                90s addresses 192.0.2.1:5060
                          Register { to: 192.0.2.1:5060, expires_s: 3600 }
                91s granted 100
                120s stop
                          Register { to: 192.0.2.1:5060, expires_s: 0 }
                121s granted 0
            "#]],
        );
    }

    #[test]
    fn a_trunk_that_wants_longer_gets_it_and_one_that_is_silent_makes_room_for_the_next() {
        check(
            "0 addresses 192.0.2.1:5060 192.0.2.2:5060
             1 refused 423 7200
             2 granted 7200
             due timeout
             6400 addresses 192.0.2.1:5060 192.0.2.2:5060
             6432 silence
             6433 granted 7200",
            expect![[r#"
                          Lookup
                0s addresses 192.0.2.1:5060 192.0.2.2:5060
                          Register { to: 192.0.2.1:5060, expires_s: 3600 }
                1s refused 423 7200
                          Register { to: 192.0.2.1:5060, expires_s: 7200 }
                2s granted 7200
                          Registered
                6050s timeout
                          Lookup
                6400s addresses 192.0.2.1:5060 192.0.2.2:5060
                          Register { to: 192.0.2.1:5060, expires_s: 7200 }
                6432s silence
                          Register { to: 192.0.2.2:5060, expires_s: 7200 }
                6433s granted 7200
                next in 12193 s
            "#]],
        );
    }

    #[test]
    fn failures_are_told_once_and_wait_longer_each_time() {
        check(
            "0 addresses 192.0.2.1:5060
             1 refused 403
             due timeout
             due addresses
             due timeout
             due addresses 192.0.2.1:5060
             200 silence
             due timeout
             due addresses 192.0.2.1:5060
             700 granted 3600",
            expect![[r#"
                          Lookup
                0s addresses 192.0.2.1:5060
                          Register { to: 192.0.2.1:5060, expires_s: 3600 }
                1s refused 403
                          Failed(Some(403))
                22s timeout
                          Lookup
                34s addresses
                64s timeout
                          Lookup
                76s addresses 192.0.2.1:5060
                          Register { to: 192.0.2.1:5060, expires_s: 3600 }
                200s silence
                268s timeout
                          Lookup
                280s addresses 192.0.2.1:5060
                          Register { to: 192.0.2.1:5060, expires_s: 3600 }
                700s granted 3600
                          Registered
                next in 3688 s
            "#]],
        );
    }

    #[test]
    fn what_never_registered_has_nothing_to_take_back() {
        check(
            "0 stop\n1 addresses 192.0.2.1:5060\n2 granted 100",
            expect![[r#"
                      Lookup
            0s stop
            1s addresses 192.0.2.1:5060
            2s granted 100
        "#]],
        );
    }
}
