//! Credentials for requests inside dialogs with trunks: a challenged re-INVITE, and a challenged BYE after the
//! end of its call.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sidetone_model::ids::TrunkId;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Request, Response};
use sidetone_sip::ua::Ua;

use crate::switch_io::{Notice, Output, Outputs};
use crate::trunk_access::TrunkAccess;
use crate::trunks::Challenge;

/// Recent calls over trunks that we hung up, because their BYE may be challenged.
#[derive(Default)]
pub(super) struct RecentByes(VecDeque<RecentBye>);

struct RecentBye {
    until: Instant,
    call_id: String,
    trunk: TrunkId,
    to: SocketAddr,
}

impl RecentByes {
    /// Remembers the trunk of a call that is hung up now, and the address its INVITE was sent to.
    pub(super) fn note(&mut self, now: Instant, call_id: String, (trunk, to): (TrunkId, SocketAddr)) {
        while self.0.front().is_some_and(|bye| bye.until <= now) || self.0.len() >= RECENT_BYES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(RecentBye { until: now + RECENT_BYE_LIFE, call_id, trunk, to });
    }

    /// Returns the trunk that a BYE was sent to, and the address.
    pub(super) fn trunk_of(&self, bye: &Request) -> Option<(TrunkId, SocketAddr)> {
        let known = self.0.iter().find(|known| known.call_id == bye.call_id())?;
        Some((known.trunk, known.to))
    }
}

/// The lower parts that repeat a request with credentials.
pub(super) struct RepeatContext<'a> {
    pub(super) ua: &'a mut Ua,
    pub(super) trunks: &'a mut TrunkAccess,
    pub(super) outputs: &'a mut Outputs,
}

/// Repeats a BYE of ours that a trunk has challenged.
pub(super) fn repeat_bye(
    now: Instant,
    answer: (&Flow, &Response),
    bye: Request,
    recent: &RecentByes,
    context: RepeatContext<'_>,
) {
    if let Some(trunk) = recent.trunk_of(&bye) {
        repeat(now, trunk, answer, bye, context);
    }
}

/// Answers the challenge of a trunk to a request inside a dialog; returns whether credentials were sent.
pub(super) fn repeat(
    now: Instant,
    (trunk, to): (TrunkId, SocketAddr),
    (flow, response): (&Flow, &Response),
    request: Request,
    context: RepeatContext<'_>,
) -> bool {
    let RepeatContext { ua, trunks, outputs } = context;
    let tried = request.authorization().next().is_some() || request.proxy_authorization().next().is_some();
    let challenge = Challenge {
        to,
        from: flow.remote,
        response,
        method: request.method().as_str(),
        uri: request.uri(),
        tried,
        in_dialog: true,
    };
    match trunks.state.answer(trunk, challenge) {
        Some(extra) => ua.retry(now, *flow, request, &extra).is_ok(),
        None => {
            outputs.push_back(Output::Notice(Notice::Credentials(trunk)));
            false
        }
    }
}

/// A BYE gets its final answer within 64·T1 (RFC 3261 §17.1.2.2).
const RECENT_BYE_LIFE: Duration = Duration::from_secs(32);
const RECENT_BYES_MAX: usize = 20_000;
