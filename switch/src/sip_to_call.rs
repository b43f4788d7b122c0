//! Turns the events of legs into inputs of their calls.

use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Headers, Method, Request, Response, StatusCode};
use sidetone_sip::sdp::SessionDescription;
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{Cause, Event, LegKey, Reply, Ua};

use crate::call_table::CallTable;
use crate::converted_keys::key_form;
use crate::dialog_credentials::{self, RepeatContext};
use crate::diverting;
use crate::io::{Input, Party};
use crate::message_parts::{self, description, unreachable};
use crate::outbound::{self, RefusedContext};
use crate::reason;
use crate::switch_io::Outputs;
use crate::trunk_access::TrunkAccess;

/// An input for a call.
type CallInput = Option<(CallId, Input)>;

/// The parts that an event of a leg concerns besides its call.
pub(super) struct SipToCall<'a> {
    pub(super) now: Now,
    pub(super) ua: &'a mut Ua,
    pub(super) calls: &'a mut CallTable,
    pub(super) trunks: &'a mut TrunkAccess,
    pub(super) outputs: &'a mut Outputs,
}

impl SipToCall<'_> {
    /// Handles an event of a leg; returns the input for its call, if the event concerns the call.
    pub(super) fn event(&mut self, event: Event) -> CallInput {
        match event {
            Event::Acked { leg, request } => {
                let answer = self.answer_of(leg, request.headers(), request.body());
                self.of_leg(leg, |party| Some(Input::Acknowledged(party, answer)))
            }
            Event::Answered { leg, response } => {
                self.note_party(leg, &response);
                let answer = self.answer_of(leg, response.headers(), response.body());
                self.of_leg(leg, |party| match party {
                    Party::Callee(fork) => Some(Input::Answered(fork, answer)),
                    Party::Caller => None,
                })
            }
            Event::Progress { leg, response } => {
                let answer = self.answer_of(leg, response.headers(), response.body());
                let status = response.status().as_u16();
                self.note_party(leg, &response);
                self.progressed(leg);
                self.of_leg(leg, |party| match party {
                    Party::Callee(fork) => Some(Input::Provisional(fork, status, answer)),
                    Party::Caller => None,
                })
            }
            Event::Ended { leg, cause } => self.ended(leg, cause),
            Event::Reinvited { leg, key, flow, request } => self.reinvited(leg, key, &flow, &request),
            Event::Updated { leg, key, flow, request } => self.reinvited(leg, key, &flow, &request),
            // The 487 is sent already.
            Event::ReinviteCancelled { leg, .. } => {
                let (id, party) = self.calls.party_of(leg)?;
                self.calls.get_mut(id)?.offers.remove(&party);
                Some((id, Input::OfferWithdrawn(party)))
            }
            Event::ReinviteClashed { leg } => self
                .of_leg(leg, |party| Some(Input::Offered(party, Err(StatusCode::REQUEST_PENDING.as_u16())))),
            // The collision was with our offer. The party got 491 and repeats its own offer; ours is
            // repeated unless it passed on an offer of the other party.
            Event::ReinviteDue { leg } => self.of_leg(leg, |party| Some(Input::OfferDue(party))),
            Event::RefreshDue { leg } => self.of_leg(leg, |party| Some(Input::Refresh(party))),
            Event::Response { leg: Some(leg), flow, response, request, .. } => {
                self.responded(leg, &flow, &response, request)
            }
            Event::OfferUnanswered { leg } => {
                self.of_leg(leg, |party| Some(Input::Offered(party, Err(UNANSWERED))))
            }
            // An unanswered re-INVITE ends its leg, so this is a probe (OPTIONS) that could not be delivered.
            Event::Unanswered { leg: Some(leg), unreachable: true, .. } => self.probed(leg, None),
            // The call stopped waiting for this probe before its transaction timed out.
            Event::Unanswered { leg: Some(_), unreachable: false, .. } => None,
            // The owner handles events that belong to no leg, and new calls and requests.
            Event::InfoAnswered { .. }
            | Event::Invited { .. }
            | Event::MessageAnswered { .. }
            | Event::NotifyAnswered { .. }
            | Event::Request { .. }
            | Event::Resubscribed { .. }
            | Event::Response { leg: None, .. }
            | Event::Unanswered { leg: None, .. } => None,
        }
    }

    /// Records the User-Agent and the key form of a leg's party, if its response contains them.
    fn note_party(&mut self, leg: LegKey, response: &Response) {
        let Some((id, party)) = self.calls.party_of(leg) else { return };
        let Some(live) = self.calls.get_mut(id) else { return };
        if let Some(user_agent) = response.user_agent() {
            live.call.answers_as(party, &user_agent);
        }
        live.call.has_keys(party, key_form(response.headers()));
    }

    /// Records that a leg sent a provisional response, so that the hunt does not go on to the next trunk.
    fn progressed(&mut self, leg: LegKey) {
        if let Some((id, Party::Callee(fork))) = self.calls.party_of(leg)
            && let Some(hunt) = self.calls.get_mut(id).and_then(|live| live.hunt.as_mut())
        {
            hunt.progressed(fork);
        }
    }

    /// Handles the response to a request inside a dialog.
    fn responded(
        &mut self,
        leg: LegKey,
        flow: &Flow,
        response: &Response,
        request: Option<Request>,
    ) -> CallInput {
        if response.status().is_provisional() {
            return None;
        }
        match response.cseq().map(|cseq| cseq.method) {
            // A party that rejects the NOTIFY about its transfer does not stop the transfer.
            Ok(Method::Notify) => return None,
            Ok(Method::Options) => return self.probed(leg, Some(response.status())),
            _ => {}
        }
        let is_challenge = matches!(response.status().as_u16(), 401 | 407);
        if let (Some(request), Some(trunk)) = (request.filter(|_| is_challenge), self.calls.trunk_of(leg)) {
            let context = RepeatContext { ua: self.ua, trunks: self.trunks, outputs: self.outputs };
            let challenger = (flow, response);
            if dialog_credentials::repeat(self.now.instant, trunk, challenger, request, context) {
                return None;
            }
        }
        let result = if response.status().is_success() {
            Ok(self.answer_of(leg, response.headers(), response.body()))
        } else {
            Err(response.status().as_u16())
        };
        self.of_leg(leg, |party| Some(Input::Offered(party, result)))
    }

    /// Handles the response to a probe; `None` means that none arrived. Only 481 and 408 mean that the dialog has
    /// ended (RFC 5057 §5.1).
    fn probed(&mut self, leg: LegKey, status: Option<StatusCode>) -> CallInput {
        let is_there = status.is_some_and(|status| !GONE.contains(&status));
        self.of_leg(leg, |party| Some(Input::Probed(party, is_there)))
    }

    /// Handles an offer of a party in a re-INVITE or UPDATE.
    fn reinvited(&mut self, leg: LegKey, key: ServerKey, flow: &Flow, request: &Request) -> CallInput {
        let Some((id, party)) = self.calls.party_of(leg) else {
            return self.refuse(&key, StatusCode::NO_TRANSACTION);
        };
        let offer = description(request.headers(), request.body());
        if offer.is_none() && !request.body().is_empty() {
            return self.refuse(&key, StatusCode::NOT_ACCEPTABLE_HERE);
        }
        let source = Some(flow.remote.ip());
        if let Some(refusal) = offer.as_ref().and_then(|offer| unreachable(offer, request.headers(), source))
        {
            // Fails when the transaction is over, because a CANCEL or BYE crossed.
            let _ = self.ua.respond(self.now.instant, &key, refusal);
            return None;
        }
        if let Some(live) = self.calls.get_mut(id) {
            live.offers.insert(party, key);
            live.call.heard_from(party, flow.remote.ip());
        }
        Some((id, Input::Offer(party, offer)))
    }

    /// Handles the end of a leg, whichever side ended it.
    fn ended(&mut self, leg: LegKey, cause: Cause) -> CallInput {
        let (id, party) = self.calls.remove_leg(leg)?;
        let input = match (party, cause) {
            (_, Cause::HungUp) => match party {
                // We cancelled the fork: it has ended.
                Party::Callee(fork) => {
                    let status = StatusCode::REQUEST_TERMINATED.as_u16();
                    Input::Failed(fork, status, HangupCause::OriginatorCancel)
                }
                Party::Caller => return None,
            },
            (Party::Caller, Cause::Cancelled(cancel)) => {
                Input::Cancelled(reason::cause_of_cancel(cancel.headers()))
            }
            (Party::Callee(fork), Cause::Refused { flow, response, request }) => {
                let context = RefusedContext { ua: self.ua, trunks: self.trunks, outputs: self.outputs };
                let refusal = (&flow, &response);
                let repeated = outbound::refused(self.now, (id, fork), refusal, request, self.calls, context);
                if let Some(leg) = repeated {
                    self.calls.add_leg(id, fork, leg);
                    return None;
                }
                if let Some(live) = self.calls.get_mut(id) {
                    let redirect = diverting::redirect_of(live, fork, &response);
                    live.redirect = redirect.or(live.redirect.take());
                }
                let cause = reason::cause_of_failure(response.status(), response.headers());
                Input::Failed(fork, response.status().as_u16(), cause)
            }
            (Party::Callee(fork), Cause::TimedOut) => {
                Input::Unreached(fork, StatusCode::REQUEST_TIMEOUT.as_u16())
            }
            (Party::Callee(fork), Cause::Unreachable) => {
                Input::Unreached(fork, StatusCode::SERVICE_UNAVAILABLE.as_u16())
            }
            (_, Cause::Bye(bye)) => {
                let cause = reason::cause_of(bye.headers());
                Input::HungUp(party, cause.unwrap_or(HangupCause::NormalClearing))
            }
            (_, Cause::AckMissing | Cause::Gone | Cause::PrackMissing | Cause::SessionExpired) => {
                Input::HungUp(party, HangupCause::RecoveryOnTimerExpire)
            }
            // These causes belong to the other role's INVITE and cannot occur here; if one did, the call
            // ends.
            (_, Cause::Cancelled(_) | Cause::Refused { .. } | Cause::TimedOut | Cause::Unreachable) => {
                Input::HungUp(party, HangupCause::NormalTemporaryFailure)
            }
        };
        Some((id, input))
    }

    /// Returns the answer in a message of a leg.
    fn answer_of(&self, leg: LegKey, headers: &Headers, body: &[u8]) -> Option<SessionDescription> {
        message_parts::answer_of(headers, body, self.calls.signalling_of(leg))
    }

    fn of_leg(&self, leg: LegKey, input: impl FnOnce(Party) -> Option<Input>) -> CallInput {
        let (id, party) = self.calls.party_of(leg)?;
        Some((id, input(party)?))
    }

    /// Refuses a request of a party that its call need not see.
    fn refuse(&mut self, key: &ServerKey, status: StatusCode) -> CallInput {
        // Fails when the transaction is over, for example because a CANCEL or BYE crossed.
        let _ = self.ua.respond(self.now.instant, key, Reply::new(status));
        None
    }
}

/// Returns the party that may have lost its dialog: no response to an INFO, or 481 or 408. Phones without INFO also
/// answer 481, so this is only a reason to probe.
pub(super) fn doubted(event: &Event, calls: &CallTable) -> CallInput {
    let Event::InfoAnswered { leg, receipt, .. } = event else { return None };
    if receipt.status().is_some_and(|status| !GONE.contains(&status)) {
        return None;
    }
    let (id, party) = calls.party_of(*leg)?;
    Some((id, Input::Doubted(party)))
}

/// The status for an offer that the other party left unanswered (RFC 3261 §21.5.5).
const UNANSWERED: u16 = 504;
/// The dialog has ended (RFC 5057 §5.1).
const GONE: [StatusCode; 2] = [StatusCode::NO_TRANSACTION, StatusCode::REQUEST_TIMEOUT];
