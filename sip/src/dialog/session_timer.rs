//! The session timer of one dialog (RFC 4028): which side refreshes it, when, and when it expires.
//!
//! It detects a dead peer when a refresh is not answered or does not arrive. The machine decides; the user agent writes
//! the headers and sends. Peers without the extension have no timer, unless one of their proxies requests it.
//! proxies requests it.

use std::time::{Duration, Instant};

use crate::message::{Headers, Name, SessionExpires};

/// A user agent's settings for session timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimerConfig {
    /// Seconds without a refresh after which a session expires, as we offer it.
    pub expires_s: u32,
    /// The shortest interval that we accept; at least [`MIN_SE_S`].
    pub min_se_s: u32,
}

/// The session timer of one dialog.
#[derive(Clone, Debug)]
pub struct SessionTimer {
    config: SessionTimerConfig,
    /// The shortest interval that the peer, or a proxy, accepts.
    min_se_s: u32,
    state: State,
    output: Option<SessionTimerOutput>,
}

/// Inputs of a session timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionTimerInput {
    /// A 2xx to an INVITE or UPDATE was sent or received: the timer restarts with these terms, or is off
    /// without terms.
    Settled(Option<SessionTerms>),
    /// The time of [`SessionTimer::next_timeout`] has been reached.
    Timeout,
}

/// Outputs of a session timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionTimerOutput {
    /// The session has expired: send BYE (§10).
    Expired,
    /// Send a refresh, unless one is in progress.
    Refresh,
}

/// The terms that both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTerms {
    /// Seconds after a refresh until the session expires.
    pub interval_s: u32,
    /// Whether we send the refreshes.
    pub we_refresh: bool,
}

/// The answer to the Session-Expires of a request of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionAnswer {
    /// No timer: the 2xx has no Session-Expires.
    Off,
    /// The 2xx has a Session-Expires with these terms.
    On {
        /// The terms from the 2xx on.
        terms: SessionTerms,
        /// Whether the 2xx has `Require: timer`, because the peer is to refresh (§9).
        required: bool,
    },
    /// The interval is shorter than we accept: answer 422 with this Min-SE.
    TooSmall(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    On { terms: SessionTerms, expires: Instant, refresh: Option<Instant> },
}

impl SessionTimer {
    /// A timer that is off.
    pub fn new(config: SessionTimerConfig) -> Self {
        Self { config, min_se_s: MIN_SE_S, state: State::Off, output: None }
    }

    /// Session-Expires of our next request, and Min-SE if the peer requires more than the minimum (§7.1,
    /// §7.4).
    pub fn offer(&self) -> (SessionExpires, Option<u32>) {
        let (interval_s, refresher_is_uac) = match self.state {
            State::Off => (self.config.expires_s, None),
            State::On { terms, .. } => (terms.interval_s, Some(terms.we_refresh)),
        };
        let least = self.min_se_s.max(self.config.min_se_s);
        let min_se = (least > MIN_SE_S).then_some(least);
        (SessionExpires { interval_s: interval_s.max(least), refresher_is_uac }, min_se)
    }

    /// Processes a 422 of the peer, or of a proxy, with this Min-SE; returns whether to send the request
    /// again (§7.4).
    pub fn raise(&mut self, min_se_s: Option<u32>) -> bool {
        let (offered, _) = self.offer();
        let wanted = min_se_s.filter(|wanted| (offered.interval_s + 1..=INTERVAL_MAX_S).contains(wanted));
        if let Some(wanted) = wanted {
            self.min_se_s = wanted;
        }
        wanted.is_some()
    }

    /// The answer to an INVITE or UPDATE of the peer with these headers (§9).
    pub fn answer(&self, request: &Headers) -> SessionAnswer {
        let supports = request.lists(Name::Supported, TIMER) || request.lists(Name::Require, TIMER);
        let wanted = request.header(Name::SessionExpires).and_then(|text| SessionExpires::parse(text).ok());
        let least = self.config.min_se_s.max(MIN_SE_S);
        let present = match self.state {
            State::Off => None,
            State::On { terms, .. } => Some(terms),
        };
        // §9: a peer without the extension cannot repeat the request with a longer interval.
        if supports
            && let Some(small) = &wanted
            && small.interval_s < least
        {
            return SessionAnswer::TooSmall(least);
        }
        if !supports && wanted.is_none() {
            return SessionAnswer::Off;
        }
        let theirs = request.header(Name::MinSe).and_then(|text| text.split(';').next()?.trim().parse().ok());
        let least = least.max(theirs.unwrap_or_default()).min(INTERVAL_MAX_S);
        let asked = wanted.as_ref().map(|wanted| wanted.interval_s);
        let interval_s = match (asked, present) {
            // §9: the 2xx may shorten the interval of the request, never extend it: not even to our minimum, when a
            // proxy requested less on behalf of a peer without the extension.
            (Some(asked), _) => asked.min(self.config.expires_s.max(least)).max(MIN_SE_S),
            (None, Some(terms)) => terms.interval_s.max(least),
            (None, None) => self.config.expires_s.max(least),
        };
        // The sender of a request is its UAC.
        let they_refresh = match wanted.and_then(|wanted| wanted.refresher_is_uac) {
            Some(is_uac) => is_uac,
            None => present.is_some_and(|terms| !terms.we_refresh),
        } && supports;
        let terms = SessionTerms { interval_s, we_refresh: !they_refresh };
        SessionAnswer::On { terms, required: they_refresh }
    }

    /// The terms in a 2xx of the peer to our request (§7.2).
    pub fn settled_by(&self, response: &Headers) -> Option<SessionTerms> {
        let text = response.header(Name::SessionExpires)?;
        let SessionExpires { interval_s, refresher_is_uac } = SessionExpires::parse(text).ok()?;
        // An interval below the minimum is invalid, and would make us send without pause.
        let interval_s = interval_s.clamp(MIN_SE_S, INTERVAL_MAX_S);
        Some(SessionTerms { interval_s, we_refresh: refresher_is_uac.unwrap_or(true) })
    }

    /// Feeds one event.
    pub fn handle_input(&mut self, now: Instant, input: SessionTimerInput) {
        match (&mut self.state, input) {
            (_, SessionTimerInput::Settled(None)) => self.state = State::Off,
            (_, SessionTimerInput::Settled(Some(terms))) => {
                let interval = Duration::from_secs(terms.interval_s.into());
                // §10: before the end of the interval, by a third of it or 32 s, whichever is less.
                let expires = now + interval - (interval / 3).min(BYE_BEFORE);
                let refresh = terms.we_refresh.then(|| now + interval / 2);
                self.state = State::On { terms, expires, refresh };
            }
            // The timeout of another machine.
            (State::Off, SessionTimerInput::Timeout) => {}
            (State::On { expires, .. }, SessionTimerInput::Timeout) if now >= *expires => {
                self.state = State::Off;
                self.output = Some(SessionTimerOutput::Expired);
            }
            (State::On { refresh: Some(refresh), .. }, SessionTimerInput::Timeout) if now >= *refresh => {
                // The refresh may be refused for now, delayed by another request, or in progress: check again until the
                // session expires.
                *refresh = now + RETRY_AFTER;
                self.output = Some(SessionTimerOutput::Refresh);
            }
            (State::On { .. }, SessionTimerInput::Timeout) => {} // Early.
        }
    }

    /// The next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<SessionTimerOutput> {
        self.output.take()
    }

    /// When to feed [`SessionTimerInput::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Off => None,
            State::On { expires, refresh, .. } => {
                Some(refresh.map_or(expires, |refresh| refresh.min(expires)))
            }
        }
    }
}

/// The option tag (§11).
pub const TIMER: &str = "timer";
/// Min-SE is never lower (§5).
pub const MIN_SE_S: u32 = 90;

/// §10.
const BYE_BEFORE: Duration = Duration::from_secs(32);
/// A day: the longest time until a dead peer is detected.
const INTERVAL_MAX_S: u32 = 86_400;
/// When a refresh that did not succeed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Headers;
    use crate::transaction::ladder::start;

    const CONFIG: SessionTimerConfig = SessionTimerConfig { expires_s: 1_800, min_se_s: 120 };

    fn headers(lines: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in lines {
            headers.push(*name, *value).unwrap();
        }
        headers
    }

    fn on(interval_s: u32, we_refresh: bool, required: bool) -> SessionAnswer {
        SessionAnswer::On { terms: SessionTerms { interval_s, we_refresh }, required }
    }

    /// RFC 4028 §9 with its table 2.
    #[test]
    fn what_a_request_asks_for_is_answered() {
        let timer = SessionTimer::new(CONFIG);
        for (name, lines, expected) in [
            ("nobody asks", &[][..], SessionAnswer::Off),
            ("supported alone", &[("Supported", "timer")][..], on(1_800, true, false)),
            (
                "no refresher named",
                &[("Supported", "timer"), ("Session-Expires", "600")],
                on(600, true, false),
            ),
            ("theirs", &[("k", "timer"), ("x", "600;refresher=uac")], on(600, false, true)),
            (
                "ours",
                &[("Supported", "timer"), ("Session-Expires", "600;refresher=uas")],
                on(600, true, false),
            ),
            ("a proxy asks", &[("Session-Expires", "600;refresher=uac")], on(600, true, false)),
            (
                "longer than ours",
                &[("Supported", "timer"), ("Session-Expires", "7200")],
                on(1_800, true, false),
            ),
            (
                "their least is more",
                &[("Supported", "timer"), ("Session-Expires", "7200"), ("Min-SE", "3600")],
                on(3_600, true, false),
            ),
            (
                "too small",
                &[("Supported", "timer"), ("Session-Expires", "119")],
                SessionAnswer::TooSmall(120),
            ),
            ("less than our least, of a proxy", &[("Session-Expires", "100")], on(100, true, false)),
            ("less than any least, of a proxy", &[("Session-Expires", "1")], on(90, true, false)),
            (
                "their least is more than they ask for",
                &[("Supported", "timer"), ("Session-Expires", "600"), ("Min-SE", "3600")],
                on(600, true, false),
            ),
            ("unreadable", &[("Supported", "timer"), ("Session-Expires", "soon")], on(1_800, true, false)),
        ] {
            assert_eq!(timer.answer(&headers(lines)), expected, "{name}");
        }
    }

    #[test]
    fn a_request_in_the_dialog_keeps_what_holds() {
        let now = start();
        let mut timer = SessionTimer::new(CONFIG);
        let terms = SessionTerms { interval_s: 600, we_refresh: false };
        timer.handle_input(now, SessionTimerInput::Settled(Some(terms)));
        assert_eq!(timer.answer(&headers(&[("Supported", "timer")])), on(600, false, true));
        assert_eq!(timer.offer().0.to_string(), "600;refresher=uas");
        let theirs = headers(&[("Supported", "timer"), ("Session-Expires", "600;refresher=uas")]);
        assert_eq!(timer.answer(&theirs), on(600, true, false));
    }

    #[test]
    fn a_422_makes_the_offer_longer_and_never_shorter() {
        let mut timer = SessionTimer::new(CONFIG);
        assert_eq!(timer.offer(), (SessionExpires { interval_s: 1_800, refresher_is_uac: None }, Some(120)));
        for (min_se, worth) in
            [(None, false), (Some(1_800), false), (Some(3_600), true), (Some(u32::MAX), false)]
        {
            assert_eq!(timer.raise(min_se), worth, "{min_se:?}");
        }
        assert_eq!(
            timer.offer(),
            (SessionExpires { interval_s: 3_600, refresher_is_uac: None }, Some(3_600))
        );
    }

    #[test]
    fn a_2xx_says_who_refreshes() {
        let timer = SessionTimer::new(CONFIG);
        let terms = |interval_s, we_refresh| Some(SessionTerms { interval_s, we_refresh });
        for (value, expected) in [
            ("600;refresher=uac", terms(600, true)),
            ("600;refresher=uas", terms(600, false)),
            ("600", terms(600, true)),
            ("0", terms(90, true)),
            ("soon", None),
        ] {
            assert_eq!(timer.settled_by(&headers(&[("Session-Expires", value)])), expected, "{value}");
        }
        assert_eq!(timer.settled_by(&headers(&[("Supported", "timer")])), None);
    }

    #[test]
    fn the_refresher_tries_until_the_end_and_the_other_waits() {
        let zero = start();
        let run = |we_refresh, interval_s| {
            let mut timer = SessionTimer::new(CONFIG);
            timer.handle_input(
                zero,
                SessionTimerInput::Settled(Some(SessionTerms { interval_s, we_refresh })),
            );
            let mut said = Vec::new();
            while let Some(at) = timer.next_timeout() {
                timer.handle_input(at, SessionTimerInput::Timeout);
                let output = timer.poll_output().unwrap();
                said.push(((at - zero).as_secs(), output));
            }
            said
        };
        use SessionTimerOutput::{Expired, Refresh};
        assert_eq!(run(false, 1_800), [(1_768, Expired)]);
        assert_eq!(run(true, 90), [(45, Refresh), (50, Refresh), (55, Refresh), (60, Expired)]);
    }
}
