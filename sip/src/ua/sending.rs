//! Messages of a user agent built and sent: requests inside dialogs, ACK, BYE, and answers.

use std::time::Instant;

use rand::RngExt;

use crate::dialog::{Answer, InviteInput};
use crate::flow::Flow;
use crate::message::{Headers, InvalidValue, Method, Name, Request, Response, StatusCode};
use crate::transaction::outgoing::MAX_FORWARDS;
use crate::transaction::{SendError, ServerKey};
use crate::ua::draft::{Draft, Extra, Reply};
use crate::ua::event::Cause;
use crate::ua::leg::{LegKey, PROVISIONAL_EVERY, PendingAnswer, Phase};
use crate::ua::reliable_state::Reliable;
use crate::ua::state::{Purpose, Ua, UaConfig};

impl Ua {
    /// Answers a request; see [`Ua::respond`].
    pub(super) fn send_reply(
        &mut self,
        now: Instant,
        key: &ServerKey,
        reply: Reply,
    ) -> Result<(), SendError> {
        if self.layer.server_request(key).is_none() {
            self.forget_unanswered(now, key);
            return Err(SendError::WrongState);
        }
        let invite = self.leg_of_invite(key);
        let reply = match invite {
            Some(leg) => self.hold_back(now, leg, key, reply),
            None => Some(reply),
        };
        let Some(reply) = reply else { return Ok(()) };
        let reply = match invite {
            Some(leg) if reply.status.is_success() => self.settle_as_uas(now, leg, key, reply),
            Some(_) => reply,
            None => self.settle_update(now, key, reply),
        };
        let response = self.build_reply(key, &reply)?;
        let cseq = response.cseq().map_err(|_| InvalidValue::Token)?.number;
        if !self.layer.respond(now, key, &response) {
            return Err(SendError::WrongState);
        }
        if let Some(leg) = invite {
            self.answered(now, leg, *key, reply.status, cseq);
            self.settle(now, leg);
        } else if let Some(leg) = response.to_tag().ok().and_then(|tag| self.leg_of_tag(&tag)) {
            self.send_waiting(now, leg);
        }
        Ok(())
    }

    /// Sends the next waiting response, unless a PRACK or an offer of the peer is pending.
    pub(super) fn send_waiting(&mut self, now: Instant, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key).filter(|leg| leg.updating.is_none()) else { return };
        let Phase::Ringing { server, .. } = leg.phase else { return };
        let Some(Reliable::Sent(sent)) = leg.reliable.as_deref_mut() else { return };
        if !sent.machine.is_waiting()
            && let Some(next) = sent.waiting.pop_front()
        {
            let _ = self.send_reply(now, &server, next); // It fails only if a CANCEL has crossed.
        }
    }

    /// Clears the open offer of the peer when its transaction ended before our response.
    pub(super) fn forget_unanswered(&mut self, now: Instant, server: &ServerKey) {
        let found = self.legs.iter_mut().find(|(_, leg)| leg.updating.as_ref() == Some(server));
        let Some((key, leg)) = found else { return };
        let key = *key;
        leg.updating = None;
        self.send_waiting(now, key);
    }

    /// Sends a final response with only a status.
    pub(super) fn answer(&mut self, now: Instant, key: &ServerKey, status: StatusCode) {
        self.answer_with(now, key, &Reply::new(status));
    }

    /// Refuses an offer while an earlier request of the peer has no answer (RFC 3261 §14.2, RFC 3311 §5.2).
    pub(super) fn answer_busy(&mut self, now: Instant, key: &ServerKey) {
        let retry_after_s: u8 = self.layer.rng().random_range(0..=10);
        let reply = Reply::new(StatusCode::SERVER_ERROR);
        self.answer_with(now, key, &reply.header("Retry-After", retry_after_s.to_string()));
    }

    /// Sends a refusal that leaves no state, because the peer is not authenticated yet.
    pub(super) fn refuse_quietly(&mut self, now: Instant, key: &ServerKey, reply: &Reply) {
        if let Ok(response) = self.build_reply(key, reply) {
            self.layer.respond_statelessly(now, key, &response);
        }
    }

    /// Sends BYE in the lasting dialog and reports the end to the user, once.
    pub(super) fn end_by_bye(&mut self, now: Instant, key: LegKey, cause: Cause) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let owed = match &mut leg.phase {
            Phase::Confirmed { ack_owed } => ack_owed.take(),
            _ => None,
        };
        leg.phase = Phase::Ending;
        leg.answer = None;
        self.refuse_changes(now, key);
        if let Some(cseq) = owed {
            self.send_ack(key, 0, cseq, &Extra::new());
        }
        let reason = matches!(cause, Cause::SessionExpired).then_some(EXPIRED);
        self.send_bye(now, key, 0, reason);
        self.release(key, cause);
    }

    /// §15.1.2: an INVITE or UPDATE of the peer that is unanswered when the dialog ends gets 487.
    pub(super) fn refuse_changes(&mut self, now: Instant, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        if let Some(server) = leg.updating.take() {
            self.answer(now, &server, StatusCode::REQUEST_TERMINATED);
        }
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let Some(server) = leg.usage.received() else { return };
        leg.usage.handle_input(now, InviteInput::Finished, self.layer.rng());
        self.answer(now, &server, StatusCode::REQUEST_TERMINATED);
    }

    pub(super) fn send_bye(&mut self, now: Instant, key: LegKey, at: usize, reason: Option<&str>) {
        let Some(dialog) = self.legs.get_mut(&key).and_then(|leg| leg.dialogs.get_mut(at)) else { return };
        dialog.terminate();
        let cseq = dialog.next_cseq();
        let (flow, request) = (dialog.route(), dialog.request(Method::Bye, cseq));
        let Ok(mut request) = request else { return };
        let given = self.legs.get(&key).and_then(|leg| leg.bye_reason.as_deref());
        if let Some(reason) = reason.or(given) {
            let _ = request.push(Name::Reason, reason); // A value with a line break is left out.
        }
        // When the table is full the leg ends without a BYE; the peer's own timers detect it.
        if let Ok(client) = self.layer.request(now, flow, request) {
            self.purposes.insert(client, Purpose::Bye(key));
            if let Some(leg) = self.legs.get_mut(&key) {
                leg.byes += 1;
            }
        }
    }

    /// Sends the ACK of a 2xx and stores it, because the 2xx may be repeated (§13.2.2.4).
    pub(super) fn send_ack(&mut self, key: LegKey, at: usize, cseq: u32, extra: &Extra) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let Some(dialog) = leg.dialogs.get_mut(at) else { return };
        let Ok(mut ack) = dialog.request(Method::Ack, cseq) else { return };
        // §22.1: the ACK has the credentials of its INVITE, because it cannot be challenged.
        if let Some(invite) =
            leg.invite.as_ref().filter(|invite| invite.cseq().is_ok_and(|c| c.number == cseq))
        {
            ack.copy_from(invite.headers(), Name::Authorization);
            ack.copy_from(invite.headers(), Name::ProxyAuthorization);
        }
        if extra.write_to(&mut ack).is_err() {
            return;
        }
        let flow = dialog.route();
        if let Ok(bytes) = self.layer.send(flow, ack) {
            dialog.keep_ack(cseq, flow, bytes);
        }
    }

    /// The leg of an INVITE's transaction, for a first or a later INVITE.
    pub(super) fn leg_of_invite(&self, key: &ServerKey) -> Option<LegKey> {
        let request = self.layer.server_request(key).filter(|request| *request.method() == Method::Invite)?;
        match request.to_tag().ok()? {
            tag if !tag.is_empty() => self.leg_of_tag(&tag),
            _ => self.leg_of_tag(&self.layer.local_tag(key)?),
        }
    }

    /// Updates the leg after our response to an INVITE.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        key: LegKey,
        server: ServerKey,
        status: StatusCode,
        cseq: u32,
    ) {
        let timers = self.config.layer.timers;
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let first = matches!(&leg.phase, Phase::Ringing { server: ringing, .. } if *ringing == server);
        if status.is_provisional() {
            if let (true, Phase::Ringing { refresh, .. }) = (first, &mut leg.phase) {
                *refresh = (status != StatusCode::TRYING).then(|| now + PROVISIONAL_EVERY);
            }
            return;
        }
        if status.is_success() {
            let machine = Answer::new(now, timers);
            leg.answer = Some(PendingAnswer { machine, key: server, first, cseq });
        }
        if first && status.is_success() {
            leg.phase = Phase::Confirmed { ack_owed: None };
            if let Some(dialog) = leg.dialogs.first_mut() {
                dialog.confirm_uas();
            }
        } else if first {
            self.release(key, Cause::HungUp);
            self.refuse_changes(now, key);
            self.remove_leg(now, key);
        } else {
            leg.usage.handle_input(now, InviteInput::Finished, self.layer.rng());
            self.poll_usage(key);
        }
    }

    pub(super) fn answer_with(&mut self, now: Instant, server: &ServerKey, reply: &Reply) {
        if let Ok(response) = self.build_reply(server, reply) {
            self.layer.respond(now, server, &response);
        }
    }

    pub(super) fn build(&mut self, flow: &Flow, draft: &Draft) -> Result<Request, SendError> {
        let mut request = Request::new(draft.method.clone(), &draft.uri)?;
        let tag = self.layer.token();
        let call_id = draft.call_id.clone().unwrap_or_else(|| self.layer.token());
        request.push(Name::MaxForwards, MAX_FORWARDS)?;
        request.push(Name::From, format_args!("{};tag={tag}", draft.from))?;
        request.push(Name::To, &draft.to)?;
        request.push(Name::CallId, call_id)?;
        request.push(Name::CSeq, format_args!("{} {}", draft.cseq, draft.method))?;
        let from = request.from().map_err(|_| InvalidValue::Token)?;
        request.to().map_err(|_| InvalidValue::Token)?;
        if matches!(draft.method, Method::Invite | Method::Register | Method::Subscribe) {
            let contact = self.contact(flow, from.uri.user_decoded().as_deref(), request.is_sips());
            request.push(Name::Contact, contact)?;
        }
        draft.extra.write_to(&mut request)?;
        Ok(request)
    }

    pub(super) fn build_within(
        &mut self,
        key: LegKey,
        method: Method,
        extra: &Extra,
    ) -> Result<(Flow, u32, Request), SendError> {
        let leg = self.legs.get_mut(&key).filter(|leg| !leg.released).ok_or(SendError::WrongState)?;
        let dialog = leg.dialogs.first_mut().ok_or(SendError::WrongState)?;
        let cseq = dialog.next_cseq();
        let flow = dialog.route();
        let mut request = dialog.request(method, cseq)?;
        if matches!(request.method(), Method::Invite | Method::Update) {
            self.offer_timer(Some(key), &mut request)?;
        }
        extra.write_to(&mut request)?;
        if *request.method() == Method::Invite {
            self.introduce(request.headers_mut(), true)?;
        }
        Ok((flow, cseq, request))
    }

    /// Adds the methods of dialogs, and with `extensions` the extensions.
    pub(super) fn introduce(&self, headers: &mut Headers, extensions: bool) -> Result<(), InvalidValue> {
        let UaConfig { dialog_methods, dialog_extensions, .. } = &self.config;
        if !dialog_methods.is_empty() && headers.header(Name::Allow).is_none() {
            headers.push(Name::Allow, dialog_methods)?;
        }
        if extensions && !dialog_extensions.is_empty() {
            headers.push(Name::Supported, dialog_extensions)?;
        }
        Ok(())
    }

    pub(super) fn build_reply(&self, key: &ServerKey, reply: &Reply) -> Result<Response, SendError> {
        let request = self.layer.server_request(key).ok_or(SendError::WrongState)?;
        let mut response = Response::reply_to(request, reply.status);
        if let Some(reason) = &reply.reason {
            response.set_reason(reason)?;
        }
        let in_dialog = request.to_tag().is_ok_and(|tag| !tag.is_empty());
        let local_tag = self.layer.local_tag(key).unwrap_or_default();
        if reply.status != StatusCode::TRYING {
            response.set_to_tag(&local_tag)?;
        }
        let makes_dialog = reply.status != StatusCode::TRYING && reply.status.as_u16() < 300;
        if makes_dialog && matches!(request.method(), Method::Invite | Method::Subscribe | Method::Update) {
            if !in_dialog {
                response.copy_from(request.headers(), Name::RecordRoute); // §12.1.1
            }
            let tag = response.to_tag().ok().filter(|tag| !tag.is_empty());
            let tag = tag.as_deref().unwrap_or(&local_tag);
            let leg = self.leg_of_tag(tag).and_then(|leg| self.legs.get(&leg)?.dialogs.first());
            let subscription = || self.subscriptions.get(&self.subscription_of_tag(tag)?).map(Box::as_ref);
            if let Some(dialog) = leg.or_else(subscription) {
                response.push(Name::Contact, dialog.contact())?;
            }
        }
        reply.extra.write_headers(response.headers_mut())?;
        if makes_dialog && *request.method() == Method::Invite {
            self.introduce(response.headers_mut(), reply.status.is_success())?;
        }
        if let Some(content) = &reply.extra.content {
            response.set_body(&content.content_type, content.body.clone())?;
        }
        Ok(response)
    }
}

/// The Reason of a BYE for a session that was not refreshed (RFC 3326, Q.850 "recovery on timer expiry").
const EXPIRED: &str = "Q.850;cause=102;text=\"Session timer expired\"";
