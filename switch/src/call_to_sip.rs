//! Carries out the outputs of calls on their legs: responses and requests of the user agent.

use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;
use sidetone_model::time::Now;
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::sdp::SessionDescription;
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Extra, Reply, Ua};

use crate::call_table::CallTable;
use crate::dialog_credentials::RecentByes;
use crate::io::{Input, Party};
use crate::message_parts::{SDP, status_code, with_description};
use crate::reason;

/// The user agent and the calls whose legs it has. Methods that return an input feed it back to the call.
pub(super) struct CallToSip<'a> {
    pub(super) now: Now,
    pub(super) ua: &'a mut Ua,
    pub(super) calls: &'a mut CallTable,
    pub(super) recent_byes: &'a mut RecentByes,
}

impl CallToSip<'_> {
    /// Answers the caller's INVITE.
    pub(super) fn answer(&mut self, id: CallId, status: StatusCode, body: Option<&SessionDescription>) {
        // The first reliable response to an INVITE without an offer has ours (RFC 3261 §13.2.1), and the 200 has it here.
        // Until then the caller gets 100 only.
        let caller = self.calls.get(id).filter(|live| live.call.parties().lacks_offer());
        let caller = caller.and_then(|live| live.caller.as_ref()).map(|caller| caller.key);
        if status.is_provisional() && body.is_none() && caller.is_some_and(|leg| self.ua.needs_reliable(leg))
        {
            return;
        }
        self.reply(id, with_description(Reply::new(status), body));
    }

    /// Refuses the caller's INVITE, with a Reason if the cause has a code. A calling party that we invited is hung up
    /// instead.
    pub(super) fn reject(&mut self, id: CallId, status: u16, cause: Option<HangupCause>) {
        let caller = self.calls.get(id).and_then(|live| live.caller.as_ref());
        if caller.is_some_and(|caller| caller.invite.is_none()) {
            let cause = cause.unwrap_or(HangupCause::from_sip_status(status));
            return self.hang_up(id, Party::Caller, cause);
        }
        let mut reply = Reply::new(status_code(status));
        if (status, cause) == (503, Some(HangupCause::SwitchCongestion)) {
            reply = reply.header("Retry-After", RETRY_AFTER_S);
        }
        self.reply(
            id,
            match cause.and_then(reason::header) {
                Some(reason) => reply.header("Reason", reason),
                None => reply,
            },
        );
    }

    fn reply(&mut self, id: CallId, reply: Reply) {
        // A call placed by a room or for a program has no INVITE to answer.
        let caller = self.calls.get(id).and_then(|live| live.caller.as_ref());
        let Some(key) = caller.and_then(|caller| caller.invite) else { return };
        self.respond(&key, reply);
    }

    /// Invites one fork.
    pub(super) fn invite(&mut self, id: CallId, fork: usize, offer: &SessionDescription) -> Option<Input> {
        let callee = self.calls.get(id)?.callees.get(fork)?;
        let (flow, invite) = (callee.flow, callee.invite.clone().content(SDP, offer.to_bytes()));
        match self.ua.invite(self.now.instant, flow, invite) {
            Ok(leg) => {
                // A phone is reachable where it registered from, whatever its Contact is.
                if callee.binding.is_some() {
                    self.ua.keep_to_flow(leg);
                }
                self.calls.add_leg(id, fork, leg);
                None
            }
            // The transaction table is full, or the contact is not a valid URI: the fork is unreachable.
            Err(_) => Some(Input::Unreached(fork, 503)),
        }
    }

    /// Returns whether a fork has sent no response at all, not even 100.
    pub(super) fn ask_heard(&self, id: CallId, fork: usize) -> Option<Input> {
        let leg = self.calls.key_of(id, Party::Callee(fork));
        let is_heard = leg.is_some_and(|leg| self.ua.is_heard(leg));
        (!is_heard).then_some(Input::Unheard(fork))
    }

    /// Cancels a fork.
    pub(super) fn cancel(&mut self, id: CallId, fork: usize, cause: HangupCause) {
        self.hang_up(id, Party::Callee(fork), cause);
    }

    /// Ends a party's leg with the request or response that its state requires: CANCEL, a refusal or BYE.
    pub(super) fn hang_up(&mut self, id: CallId, party: Party, cause: HangupCause) {
        let Some(leg) = self.calls.key_of(id, party) else { return };
        if let Some(trunk) = self.calls.trunk_of(leg)
            && let Some(call_id) = self.ua.call_id(leg).map(str::to_owned)
        {
            self.recent_byes.note(self.now.instant, call_id, trunk);
        }
        self.ua.hang_up_because(self.now.instant, leg, reason::header(cause));
    }

    /// Sends an offer inside a party's dialog: before the answer in UPDATE, then in INVITE.
    pub(super) fn offer(&mut self, id: CallId, party: Party, offer: &SessionDescription) -> Option<Input> {
        let extra = Extra::new().content(SDP, offer.to_bytes());
        let leg = self.calls.key_of(id, party);
        if self.calls.get(id).is_some_and(|live| live.call.is_ringing()) {
            let sent = leg.map(|leg| self.ua.update(self.now.instant, leg, &extra));
            // The party accepts no offer before the answer.
            return (!matches!(sent, Some(Ok(_)))).then_some(Input::Offered(party, Err(488)));
        }
        let sent = leg.map(|leg| self.ua.reinvite(self.now.instant, leg, &extra));
        // An INVITE of the party is in progress, so ours must wait (RFC 3261 §14.1).
        (!matches!(sent, Some(Ok(_)))).then_some(Input::Offered(party, Err(491)))
    }

    /// Cancels our offer inside a party's dialog.
    pub(super) fn cancel_offer(&mut self, id: CallId, party: Party) {
        if let Some(leg) = self.calls.key_of(id, party) {
            self.ua.cancel_reinvite(self.now.instant, leg);
        }
    }

    /// Sends the answer to a party's offer, or refuses it.
    pub(super) fn offer_result(&mut self, id: CallId, party: Party, result: Result<SessionDescription, u16>) {
        let Some(key) = self.calls.get_mut(id).and_then(|live| live.offers.remove(&party)) else { return };
        let reply = match result {
            Ok(answer) => with_description(Reply::new(StatusCode::OK), Some(&answer)),
            Err(status) => Reply::new(status_code(status)),
        };
        self.respond(&key, reply);
    }

    /// Probes inside its dialog whether a party is still there.
    pub(super) fn probe(&mut self, id: CallId, party: Party) -> Option<Input> {
        let leg = self.calls.key_of(id, party);
        let now = self.now.instant;
        let sent = leg.map(|leg| self.ua.request_within(now, leg, Method::Options, &Extra::new()));
        // If the probe could not be sent, for example because a table is full, that shows nothing about the
        // party: try later.
        (!matches!(sent, Some(Ok(_)))).then_some(Input::Probed(party, true))
    }

    fn respond(&mut self, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is over, for example because a CANCEL or BYE crossed.
        let _ = self.ua.respond(self.now.instant, key, reply);
    }
}

/// When a caller that is refused for lack of capacity may try again, in seconds.
pub(super) const RETRY_AFTER_S: &str = "30";
