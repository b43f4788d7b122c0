//! Reliable provisional responses (RFC 3262) of the legs: which responses are reliable, and their order. Their PRACKs
//! are in `pracks`.
//!
//! A response waits until the previous one has its PRACK. So does a 2xx, because its session description may repeat
//! that of the provisional response (§3). A final response other than 2xx does not wait.

use std::collections::VecDeque;
use std::time::Instant;

use rand::RngExt;

use crate::dialog::{ReliableInput, ReliableResponses};
use crate::message::{Name, Request, StatusCode};
use crate::transaction::ServerKey;
use crate::ua::draft::Reply;
use crate::ua::leg::{LegKey, Phase};
use crate::ua::reliable_state::{Reliable, Sent};
use crate::ua::state::Ua;

impl Ua {
    /// Whether the user agent supports the extension, and so offers it to the peers that it invites.
    pub(super) fn has_reliable(&self) -> bool {
        self.config.extensions.iter().any(|tag| tag.eq_ignore_ascii_case(RELIABLE))
    }

    /// Returns the state for an INVITE that requires reliable provisional responses.
    pub(super) fn required_reliable(&mut self, invite: &Request) -> Option<Box<Reliable>> {
        if !invite.headers().lists(Name::Require, RELIABLE) {
            return None;
        }
        let cseq = invite.cseq().ok()?.number;
        let machine = ReliableResponses::new(self.layer.rng().random(), self.config.layer.timers);
        let waiting = VecDeque::new();
        let sent = Sent { machine, cseq, waiting, describes: false, answered: false };
        Some(Box::new(Reliable::Sent(sent)))
    }

    /// Makes a response to the peer's INVITE reliable; `None` if it has to wait.
    pub(super) fn hold_back(
        &mut self,
        now: Instant,
        key: LegKey,
        server: &ServerKey,
        reply: Reply,
    ) -> Option<Reply> {
        let Some(leg) = self.legs.get_mut(&key) else { return Some(reply) };
        let rings = matches!(&leg.phase, Phase::Ringing { server: ringing, .. } if ringing == server);
        let Some(Reliable::Sent(sent)) = leg.reliable.as_deref_mut().filter(|_| rings) else {
            return Some(reply);
        };
        // An offer in the PRACK of the previous response is answered first.
        let (status, waits) = (reply.status(), sent.machine.is_waiting() || leg.updating.is_some());
        if status == StatusCode::TRYING {
            return Some(reply);
        }
        if status.is_final() && !(status.is_success() && waits) {
            leg.reliable = None;
            return Some(reply);
        }
        if waits {
            if status.is_final() {
                sent.waiting.clear(); // The answer takes their place.
            }
            if sent.waiting.len() < WAITING_MAX {
                sent.waiting.push_back(reply);
            }
            return None;
        }
        let rseq = sent.machine.next_rseq();
        sent.machine.handle_input(now, ReliableInput::Sent);
        sent.describes = reply.has_content();
        Some(reply.header(Name::Require.as_str(), RELIABLE).header(Name::RSeq.as_str(), rseq.to_string()))
    }
}

/// The option tag (RFC 3262 §8.1).
pub(super) const RELIABLE: &str = "100rel";
/// The maximum number of responses that wait for the PRACK of the previous one.
const WAITING_MAX: usize = 8;
