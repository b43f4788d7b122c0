//! Carries out the outputs of calls on their legs (responses and requests), and reports the end of a leg to
//! its call.

use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Request, StatusCode};
use sidetone_sip::sdp::SessionDescription;
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Cause, Extra, LegKey, Reply};

use crate::events::{description, status_code};
use crate::face::{Input, Party};
use crate::machine::{Now, Switch};

impl Switch {
    /// Answers the caller's INVITE.
    pub(super) fn answer(
        &mut self,
        now: Now,
        id: CallId,
        status: StatusCode,
        body: Option<&SessionDescription>,
    ) {
        // A call placed by a room has no INVITE to answer.
        let Some(caller) = self.calls.get(&id).and_then(|live| live.caller.as_ref()) else { return };
        let key = caller.invite;
        self.respond(now, &key, with_description(Reply::new(status), body));
    }

    /// Invites one fork.
    pub(super) fn invite(&mut self, now: Now, id: CallId, fork: usize, offer: &SessionDescription) {
        let Some(callee) = self.calls.get(&id).and_then(|live| live.callees.get(fork)) else { return };
        let (flow, invite) = (callee.flow, callee.invite.clone().content(SDP, offer.to_bytes()));
        match self.ua.invite(now.instant, flow, invite) {
            Ok(leg) => self.invited_by(id, fork, leg),
            // The transaction table is full, or the contact is not a valid URI: the fork is unreachable.
            Err(_) => self.tell_call(now, id, Input::Unreached(fork, 503)),
        }
    }

    /// Stores the leg of a fork.
    fn invited_by(&mut self, id: CallId, fork: usize, leg: LegKey) {
        self.legs.insert(leg, (id, Party::Callee(fork)));
        if let Some(callee) = self.calls.get_mut(&id).and_then(|live| live.callees.get_mut(fork)) {
            callee.leg = Some(leg);
        }
    }

    /// Ends a party's leg with the request or response that its state requires: CANCEL, a refusal or BYE.
    pub(super) fn hang_up(&mut self, now: Now, id: CallId, party: Party) {
        if let Some(leg) = self.leg_of(id, party) {
            self.note_farewell(now.instant, leg);
            self.ua.hang_up(now.instant, leg);
        }
    }

    /// Sends an offer inside a party's dialog.
    pub(super) fn offer(&mut self, now: Now, id: CallId, party: Party, offer: &SessionDescription) {
        let extra = Extra::new().content(SDP, offer.to_bytes());
        let sent = self.leg_of(id, party).map(|leg| self.ua.reinvite(now.instant, leg, &extra));
        if !matches!(sent, Some(Ok(_))) {
            // An INVITE of the party is in progress, so ours must wait (RFC 3261 §14.1).
            self.tell_call(now, id, Input::Offered(party, Err(491)));
        }
    }

    /// Sends the answer to a party's offer, or refuses it.
    pub(super) fn offer_result(
        &mut self,
        now: Now,
        id: CallId,
        party: Party,
        result: Result<SessionDescription, u16>,
    ) {
        let Some(key) = self.calls.get_mut(&id).and_then(|live| live.offers.remove(&party)) else { return };
        let reply = match result {
            Ok(answer) => with_description(Reply::new(StatusCode::OK), Some(&answer)),
            Err(status) => Reply::new(status_code(status)),
        };
        self.respond(now, &key, reply);
    }

    /// Handles a re-INVITE of a party.
    pub(super) fn reinvited(
        &mut self,
        now: Now,
        leg: LegKey,
        key: ServerKey,
        flow: &Flow,
        request: &Request,
    ) {
        let Some((id, party)) = self.legs.get(&leg).copied() else {
            return self.respond(now, &key, Reply::new(StatusCode::NO_TRANSACTION));
        };
        let offer = description(request.headers(), request.body());
        if offer.is_none() && !request.body().is_empty() {
            return self.respond(now, &key, Reply::new(StatusCode::NOT_ACCEPTABLE_HERE));
        }
        if let Some(live) = self.calls.get_mut(&id) {
            live.offers.insert(party, key);
            live.call.heard_from(party, flow.remote.ip());
        }
        self.tell_call(now, id, Input::Offer(party, offer));
    }

    /// Handles the end of a leg, whichever side ended it.
    pub(super) fn leg_ended(&mut self, now: Now, leg: LegKey, cause: Cause) {
        let Some((id, party)) = self.legs.remove(&leg) else { return };
        let input = match (party, cause) {
            (_, Cause::HungUp) => match party {
                // We cancelled the fork: it has ended.
                Party::Callee(fork) => Input::Failed(fork, StatusCode::REQUEST_TERMINATED.as_u16()),
                Party::Caller => return,
            },
            (Party::Caller, Cause::Cancelled(_)) => Input::Cancelled,
            (Party::Callee(fork), Cause::Refused { flow, response, request }) => {
                if let Some(leg) = self.trunk_refused(now, (id, fork), &flow, &response, request) {
                    return self.invited_by(id, fork, leg);
                }
                Input::Failed(fork, response.status().as_u16())
            }
            (Party::Callee(fork), Cause::TimedOut) => {
                Input::Unreached(fork, StatusCode::REQUEST_TIMEOUT.as_u16())
            }
            (Party::Callee(fork), Cause::Unreachable) => {
                Input::Unreached(fork, StatusCode::SERVICE_UNAVAILABLE.as_u16())
            }
            (_, Cause::Bye(_)) => Input::HungUp(party, HangupCause::NormalClearing),
            (_, Cause::AckMissing | Cause::Gone | Cause::SessionExpired) => {
                Input::HungUp(party, HangupCause::RecoveryOnTimerExpire)
            }
            // These causes belong to the other role's INVITE and cannot occur here; if one did, the call
            // ends.
            (_, Cause::Cancelled(_) | Cause::Refused { .. } | Cause::TimedOut | Cause::Unreachable) => {
                Input::HungUp(party, HangupCause::NormalTemporaryFailure)
            }
        };
        self.tell_call(now, id, input);
    }

    fn leg_of(&self, id: CallId, party: Party) -> Option<LegKey> {
        self.calls.get(&id)?.key_of(party)
    }
}

fn with_description(reply: Reply, description: Option<&SessionDescription>) -> Reply {
    match description {
        Some(description) => reply.content(SDP, description.to_bytes()),
        None => reply,
    }
}

const SDP: &str = "application/sdp";
