//! Offers in UPDATE (RFC 3311). In a confirmed dialog the peer's offers change the session as an INVITE would, in one
//! transaction. In an early dialog both sides may make offers, once the offer of the INVITE was answered reliably
//! (§5.1). An UPDATE without an offer only refreshes the session: see `refresh`.

use std::time::Instant;

use crate::flow::Flow;
use crate::message::{Request, StatusCode};
use crate::transaction::{ClientKey, ServerKey};
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
        let tag = leg.dialogs.get(at).map(|dialog| dialog.id().remote_tag.as_str()).unwrap_or_default();
        let is_answered = leg.reliable.as_ref().is_some_and(|reliable| reliable.is_answered(tag));
        let is_ours = match leg.phase {
            Phase::Calling { .. } => !is_answered || leg.update.is_some(),
            Phase::Confirmed { ack_owed: Some(_) } => true,
            Phase::Confirmed { ack_owed: None } => leg.reinvite.is_some() || leg.answer.is_some(),
            Phase::Ringing { .. } => leg.update.is_some(),
            Phase::Ending => false,
        };
        if is_ours {
            return self.answer(now, &server, StatusCode::REQUEST_PENDING);
        }
        // The peer's INVITE or its earlier UPDATE is not answered yet.
        let rings = matches!(leg.phase, Phase::Ringing { .. });
        let is_theirs = (rings && !is_answered) || leg.usage.received().is_some();
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

    /// Clears our UPDATE with an offer after its final response; returns whether the request was one.
    pub(super) fn forget_update(&mut self, key: LegKey, client: ClientKey) -> bool {
        let leg = self.legs.get_mut(&key).filter(|leg| !leg.released);
        leg.is_some_and(|leg| leg.update.take_if(|update| *update == client).is_some())
    }
}
