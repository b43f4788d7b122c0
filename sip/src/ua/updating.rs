//! Offers of the peer in UPDATE (RFC 3311): in a confirmed dialog they change the session as an INVITE would, in one
//! transaction. An UPDATE without an offer only refreshes the session: see `refresh`.

use std::time::Instant;

use crate::flow::Flow;
use crate::message::{Request, StatusCode};
use crate::transaction::ServerKey;
use crate::ua::event::Event;
use crate::ua::leg::{LegKey, Phase};
use crate::ua::state::Ua;

impl Ua {
    /// Handles an offer of the peer, unless another offer is open (§5.2).
    pub(super) fn on_update(
        &mut self,
        now: Instant,
        (key, at): (LegKey, usize),
        server: ServerKey,
        flow: Flow,
        request: Request,
    ) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let is_ours = match leg.phase {
            Phase::Calling { .. } | Phase::Confirmed { ack_owed: Some(_) } => true,
            Phase::Confirmed { ack_owed: None } => leg.reinvite.is_some() || leg.answer.is_some(),
            Phase::Ringing { .. } | Phase::Ending => false,
        };
        if is_ours {
            return self.answer(now, &server, StatusCode::REQUEST_PENDING);
        }
        // Their INVITE or their earlier UPDATE has no answer yet.
        let is_theirs = matches!(leg.phase, Phase::Ringing { .. }) || leg.usage.received().is_some();
        if is_theirs || leg.updating.is_some() {
            return self.answer_busy(now, &server);
        }
        if let Some(reply) = self.refuse_small(Some(key), &request) {
            return self.answer_with(now, &server, &reply);
        }
        if let Some(leg) = self.legs.get_mut(&key) {
            leg.updating = Some(server);
        }
        self.refresh_target(key, at, &request);
        self.event(Event::Updated { leg: key, key: server, flow, request });
    }
}
