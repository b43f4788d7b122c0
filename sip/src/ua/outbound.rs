//! Actions of the user: requests, legs, answers.

use std::time::Instant;

use crate::dialog::{Answer, InviteInput};
use crate::flow::Flow;
use crate::message::{InvalidValue, Method, Name, Request, Response, StatusCode};
use crate::transaction::outgoing::MAX_FORWARDS;
use crate::transaction::{ClientKey, SendError, ServerKey};
use crate::ua::agent::{Purpose, Ua};
use crate::ua::draft::{Content, Draft, Extra, Invite, Reply};
use crate::ua::event::{Cause, Retried};
use crate::ua::leg::{Leg, LegKey, PROVISIONAL_EVERY, PendingAnswer, Phase};

impl Ua {
    /// Sends a request outside dialogs to `flow`. Its result is [`Response`](super::Event::Response) or
    /// [`Unanswered`](super::Event::Unanswered); for a MESSAGE it is
    /// [`MessageAnswered`](super::Event::MessageAnswered).
    ///
    /// # Errors
    ///
    /// When the table of transactions is full or a value is not valid in a header.
    pub fn request(&mut self, now: Instant, flow: Flow, draft: Draft) -> Result<ClientKey, SendError> {
        let request = self.build(&flow, &draft)?;
        let (flow, purpose) = (way(flow, draft.wide, &request), outside(&draft.method));
        self.start(now, flow, request, purpose)
    }

    /// Sends an INVITE to `flow` and begins a leg.
    ///
    /// # Errors
    ///
    /// When a table is full or a value is not valid in a header.
    pub fn invite(&mut self, now: Instant, flow: Flow, invite: Invite) -> Result<LegKey, SendError> {
        let mut request = self.build(&flow, &invite.0)?;
        self.offer_timer(None, &mut request)?;
        self.start_leg(now, flow, request)
    }

    /// Sends a refused request again, with these headers instead of its own (for example an Authorization),
    /// the next CSeq number and a new transaction (RFC 3261 §22.2). A first INVITE begins a new leg.
    ///
    /// # Errors
    ///
    /// As [`Ua::request`]; [`SendError::WrongState`] if an INVITE of a dialog may not be sent now.
    pub fn retry(
        &mut self,
        now: Instant,
        flow: Flow,
        mut request: Request,
        extra: &Extra,
    ) -> Result<Retried, SendError> {
        let number = request.cseq().map_err(|_| InvalidValue::Token)?.number;
        let to_tag = request.to().map_err(|_| InvalidValue::Token)?.tag().map(str::to_owned);
        let method = request.method().clone();
        request.remove(Name::Via);
        extra.write_headers(request.headers_mut())?;
        let leg = to_tag.as_ref().and_then(|_| self.leg_of_tag(request.from().ok()?.tag()?));
        let dialog = leg.and_then(|leg| self.legs.get_mut(&leg)).and_then(Leg::confirmed);
        let (flow, cseq) = match dialog {
            Some(dialog) => (dialog.route(), dialog.next_cseq()),
            None => (flow, number + 1),
        };
        request.set(Name::CSeq, format_args!("{cseq} {method}"))?;
        let purpose = match (method, to_tag, leg) {
            (Method::Invite, None, _) => return self.start_leg(now, flow, request).map(Retried::Leg),
            (Method::Invite, Some(_), Some(leg)) => {
                if self.legs.get(&leg).is_none_or(|leg| !leg.may_reinvite()) {
                    return Err(SendError::WrongState);
                }
                Purpose::Reinvite { leg, cseq, offered: !request.body().is_empty() }
            }
            (Method::Info | Method::Invite, _, None) => return Err(SendError::WrongState),
            (Method::Bye, ..) => Purpose::Outside,
            (method, _, None) => outside(&method),
            (method, _, Some(leg)) => within(leg, &method),
        };
        self.start(now, flow, request, purpose).map(Retried::Transaction)
    }

    /// Answers a request. For an INVITE, a provisional response rings, a 2xx accepts the call and anything
    /// else ends the leg.
    ///
    /// A 2xx to an INVITE is repeated until its ACK.
    ///
    /// # Errors
    ///
    /// [`SendError::WrongState`] when the request already has its final response.
    pub fn respond(&mut self, now: Instant, key: &ServerKey, reply: Reply) -> Result<(), SendError> {
        let invite = self.leg_of_invite(key);
        let reply = match invite {
            Some(leg) if reply.status.is_success() => self.settle_as_uas(now, leg, key, reply),
            _ => reply,
        };
        let response = self.build_reply(key, &reply)?;
        let cseq = response.cseq().map_err(|_| InvalidValue::Token)?.number;
        if !self.layer.respond(now, key, &response) {
            return Err(SendError::WrongState);
        }
        if let Some(leg) = invite {
            self.answered(now, leg, *key, reply.status, cseq);
            self.settle(now, leg);
        }
        self.pump(now);
        Ok(())
    }

    /// Answers a request finally and removes its transaction at once, whether or not the response arrives.
    /// For challenges and refusals of unauthenticated senders, which get one response per request and use no
    /// memory (§8.2.7).
    ///
    /// # Errors
    ///
    /// As [`Ua::respond`], and for a response to an INVITE that is not a refusal.
    pub fn refuse(&mut self, now: Instant, key: &ServerKey, reply: Reply) -> Result<(), SendError> {
        if !reply.status.is_final() || (reply.status.is_success() && self.leg_of_invite(key).is_some()) {
            return Err(SendError::WrongState);
        }
        let response = self.build_reply(key, &reply)?;
        let invite = self.leg_of_invite(key);
        if !self.layer.respond_statelessly(now, key, &response) {
            return Err(SendError::WrongState);
        }
        if let Some(leg) = invite {
            self.answered(now, leg, *key, reply.status, 0);
            self.settle(now, leg);
        }
        self.pump(now);
        Ok(())
    }

    /// Sends the ACK that the user must send: for a 2xx to an INVITE without an offer, with the answer as its
    /// body.
    ///
    /// # Errors
    ///
    /// [`SendError::WrongState`] when no ACK is needed.
    pub fn ack(&mut self, now: Instant, leg: LegKey, extra: &Extra) -> Result<(), SendError> {
        let owed = match self.legs.get_mut(&leg).filter(|leg| !leg.released).map(|leg| &mut leg.phase) {
            Some(Phase::Confirmed { ack_owed }) => ack_owed.take(),
            _ => None,
        };
        let cseq = owed.ok_or(SendError::WrongState)?;
        self.send_ack(leg, 0, cseq, extra);
        self.pump(now);
        Ok(())
    }

    /// Ends a leg as its state requires: with CANCEL, 480 or BYE. The user gets one more event,
    /// [`Ended`](super::Event::Ended); what the network still needs happens after that.
    pub fn hang_up(&mut self, now: Instant, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key).filter(|leg| !leg.released) else { return };
        match &leg.phase {
            Phase::Calling { client } => {
                self.layer.cancel(now, client);
                self.release(key, Cause::HungUp);
            }
            Phase::Ringing { server, .. } => {
                let server = *server;
                // The leg ends with its own final response.
                let _ = self.respond(now, &server, Reply::new(StatusCode::TEMPORARILY_UNAVAILABLE));
            }
            // §15: not before the ACK of the 2xx that created the dialog; the ACK, or its timeout, continues
            // from here.
            Phase::Confirmed { .. } if leg.answer.as_ref().is_some_and(|answer| answer.first) => {
                self.release(key, Cause::HungUp);
            }
            Phase::Confirmed { .. } => self.end_by_bye(now, key, Cause::HungUp),
            Phase::Ending => {}
        }
        self.settle(now, key);
        self.pump(now);
    }

    /// Sends an INVITE inside the dialog of a leg: hold, another address, another codec. Its result is
    /// [`Response`](super::Event::Response), or after a clash [`ReinviteDue`](super::Event::ReinviteDue).
    ///
    /// # Errors
    ///
    /// [`SendError::WrongState`] while an INVITE is in progress in either direction (§14.1) or without a dialog.
    pub fn reinvite(&mut self, now: Instant, key: LegKey, extra: &Extra) -> Result<ClientKey, SendError> {
        let leg = self.legs.get_mut(&key).ok_or(SendError::WrongState)?;
        if leg.answer.is_some()
            || !leg.usage.may_send()
            || !matches!(leg.phase, Phase::Confirmed { ack_owed: None })
        {
            return Err(SendError::WrongState);
        }
        let (flow, cseq, request) = self.build_within(key, Method::Invite, extra)?;
        let offered = !request.body().is_empty();
        let client = self.start(now, flow, request, Purpose::Reinvite { leg: key, cseq, offered })?;
        self.settle(now, key);
        Ok(client)
    }

    /// Sends an INFO inside the dialog of a leg; its result is [`InfoAnswered`](super::Event::InfoAnswered).
    ///
    /// A 481, a 408 or no response does not end the leg. RFC 3261 §12.2.1.2 and RFC 5057 §5.3 would end the
    /// whole dialog for a 481 and its usage for a 408. But phones that do not support INFO answer 481, 405,
    /// 500, 501 or nothing while the call continues, and engines that hang up in that case are the best-known
    /// complaint about INFO. A dialog that has really ended is detected by its re-INVITE, BYE or media.
    ///
    /// # Errors
    ///
    /// As [`Ua::request_within`].
    pub fn info(&mut self, now: Instant, leg: LegKey, content: Content) -> Result<ClientKey, SendError> {
        self.info_by(now, leg, content, None)
    }

    /// Like [`Ua::info`], with a connection of the same peer for an INFO that is too long for a datagram.
    ///
    /// # Errors
    ///
    /// As [`Ua::request_within`].
    pub fn info_by(
        &mut self,
        now: Instant,
        leg: LegKey,
        content: Content,
        wide: Option<Flow>,
    ) -> Result<ClientKey, SendError> {
        let extra = Extra { headers: Vec::new(), content: Some(content) };
        let (flow, _, request) = self.build_within(leg, Method::Info, &extra)?;
        self.start(now, way(flow, wide, &request), request, Purpose::Info(leg))
    }

    /// Sends another request inside the dialog of a leg: INFO, UPDATE, MESSAGE, NOTIFY, …
    ///
    /// # Errors
    ///
    /// [`SendError::WrongState`] without a dialog; INVITE, ACK, BYE and CANCEL have their own functions.
    pub fn request_within(
        &mut self,
        now: Instant,
        leg: LegKey,
        method: Method,
        extra: &Extra,
    ) -> Result<ClientKey, SendError> {
        if matches!(method, Method::Ack | Method::Bye | Method::Cancel | Method::Invite) {
            return Err(SendError::WrongState);
        }
        let (flow, _, request) = self.build_within(leg, method, extra)?;
        let purpose = within(leg, request.method());
        self.start(now, flow, request, purpose)
    }

    /// Sends BYE in the lasting dialog and reports the end to the user, if that was not done before.
    pub(super) fn end_by_bye(&mut self, now: Instant, key: LegKey, cause: Cause) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let owed = match &mut leg.phase {
            Phase::Confirmed { ack_owed } => ack_owed.take(),
            _ => None,
        };
        leg.phase = Phase::Ending;
        leg.answer = None;
        self.refuse_reinvite(now, key);
        if let Some(cseq) = owed {
            self.send_ack(key, 0, cseq, &Extra::new());
        }
        let reason = matches!(cause, Cause::SessionExpired).then_some(EXPIRED);
        self.send_bye(now, key, 0, reason);
        self.release(key, cause);
    }

    /// §15.1.2: an INVITE of the peer that is unanswered when the dialog ends gets 487.
    pub(super) fn refuse_reinvite(&mut self, now: Instant, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let Some(server) = leg.usage.received() else { return };
        leg.usage.handle_input(now, InviteInput::Finished, self.layer.rng());
        if let Ok(response) = self.build_reply(&server, &Reply::new(StatusCode::REQUEST_TERMINATED)) {
            self.layer.respond(now, &server, &response);
        }
    }

    pub(super) fn send_bye(&mut self, now: Instant, key: LegKey, at: usize, reason: Option<&str>) {
        let Some(dialog) = self.legs.get_mut(&key).and_then(|leg| leg.dialogs.get_mut(at)) else { return };
        dialog.terminate();
        let cseq = dialog.next_cseq();
        let (flow, request) = (dialog.route(), dialog.request(Method::Bye, cseq));
        let Ok(mut request) = request else { return };
        if let Some(reason) = reason {
            let _ = request.push(Name::Reason, reason); // A constant, fit for a header.
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
        // §22.1: the ACK has the credentials of its INVITE, because an ACK cannot be challenged.
        if let Some(invite) =
            leg.invite.as_ref().filter(|invite| invite.cseq().is_ok_and(|c| c.number == cseq))
        {
            ack.copy_from(invite.headers(), Name::Authorization);
            ack.copy_from(invite.headers(), Name::ProxyAuthorization);
        }
        if add_extra(&mut ack, extra).is_err() {
            return;
        }
        let flow = dialog.route();
        if let Ok(bytes) = self.layer.send(flow, ack) {
            dialog.keep_ack(cseq, flow, bytes);
        }
    }

    pub(super) fn leg_of_tag(&self, tag: &str) -> Option<LegKey> {
        self.legs_by_tag.get(tag).copied()
    }

    /// The leg of a transaction's INVITE, the first one or a later one.
    pub(super) fn leg_of_invite(&self, key: &ServerKey) -> Option<LegKey> {
        let request = self.layer.server_request(key).filter(|request| *request.method() == Method::Invite)?;
        match request.to().ok()?.tag() {
            Some(tag) => self.leg_of_tag(tag),
            None => self.leg_of_tag(&self.layer.local_tag(key)?),
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
            self.remove_leg(now, key);
        } else {
            leg.usage.handle_input(now, InviteInput::Finished, self.layer.rng());
            self.poll_usage(key);
        }
    }

    fn start_leg(&mut self, now: Instant, flow: Flow, request: Request) -> Result<LegKey, SendError> {
        if self.legs.len() >= self.config.legs_len_max {
            return Err(SendError::Overload);
        }
        let from = request.from().map_err(|_| InvalidValue::Token)?;
        let local_tag = from.tag().ok_or(InvalidValue::Token)?.to_owned();
        let client = self.layer.request(now, flow, request.clone())?;
        let leg =
            self.insert_leg(Leg::new(local_tag, flow, Phase::Calling { client }, Some(Box::new(request))));
        self.purposes.insert(client, Purpose::Invite(leg));
        self.pump(now);
        Ok(leg)
    }

    fn start(
        &mut self,
        now: Instant,
        flow: Flow,
        request: Request,
        purpose: Purpose,
    ) -> Result<ClientKey, SendError> {
        let client = self.layer.request(now, flow, request)?;
        self.purposes.insert(client, purpose);
        if let Purpose::Reinvite { leg, .. } = purpose
            && let Some(leg) = self.legs.get_mut(&leg)
        {
            leg.usage.sent();
            leg.reinvite = Some(client);
        }
        self.pump(now);
        Ok(client)
    }

    fn build(&mut self, flow: &Flow, draft: &Draft) -> Result<Request, SendError> {
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
            request.push(Name::Contact, self.contact(flow, from.uri.user_decoded().as_deref()))?;
        }
        add_extra(&mut request, &draft.extra)?;
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
        add_extra(&mut request, extra)?;
        Ok((flow, cseq, request))
    }

    pub(super) fn build_reply(&self, key: &ServerKey, reply: &Reply) -> Result<Response, SendError> {
        let request = self.layer.server_request(key).ok_or(SendError::WrongState)?;
        let mut response = Response::reply_to(request, reply.status);
        if let Some(reason) = &reply.reason {
            response.set_reason(reason)?;
        }
        let in_dialog = request.to().is_ok_and(|to| to.tag().is_some());
        let local_tag = self.layer.local_tag(key).unwrap_or_default();
        if reply.status != StatusCode::TRYING {
            response.set_to_tag(&local_tag)?;
        }
        let makes_dialog = reply.status != StatusCode::TRYING && reply.status.as_u16() < 300;
        if makes_dialog && matches!(request.method(), Method::Invite | Method::Update) {
            if !in_dialog {
                response.copy_from(request.headers(), Name::RecordRoute); // §12.1.1
            }
            let tag = response.to().ok().and_then(|to| to.tag().map(str::to_owned)).unwrap_or(local_tag);
            let leg = self.leg_of_tag(&tag).and_then(|leg| self.legs.get(&leg));
            if let Some(dialog) = leg.and_then(|leg| leg.dialogs.first()) {
                response.push(Name::Contact, dialog.contact())?;
            }
        }
        reply.extra.write_headers(response.headers_mut())?;
        if let Some(content) = &reply.extra.content {
            response.set_body(&content.content_type, content.body.clone())?;
        }
        Ok(response)
    }
}

/// §18.1.1: a request of more than 1,300 bytes is sent over a connection, because a datagram of that size may
/// be fragmented and lost. When the peer has no connection it is still sent as a datagram: most arrive.
fn way(flow: Flow, wide: Option<Flow>, request: &Request) -> Flow {
    match wide {
        Some(wide) if !flow.protocol.is_reliable() && request.to_bytes().len() > SHORT_BYTES_MAX => wide,
        _ => flow,
    }
}

/// The Reason of a BYE for a session that was not refreshed (RFC 3326, Q.850 "recovery on timer expiry").
const EXPIRED: &str = "Q.850;cause=102;text=\"Session timer expired\"";

/// The longest request that fits into a datagram in any case, without the Via that is added to it.
const SHORT_BYTES_MAX: usize = 1_300 - 120;

/// The purpose of a request outside dialogs.
fn outside(method: &Method) -> Purpose {
    match method {
        Method::Message => Purpose::Message,
        _ => Purpose::Outside,
    }
}

/// The purpose of a request other than INVITE inside the dialog of a leg.
fn within(leg: LegKey, method: &Method) -> Purpose {
    match method {
        Method::Info => Purpose::Info(leg),
        _ => Purpose::Within(leg),
    }
}

fn add_extra(request: &mut Request, extra: &Extra) -> Result<(), InvalidValue> {
    extra.write_headers(request.headers_mut())?;
    match &extra.content {
        Some(content) => request.set_body(&content.content_type, content.body.clone()),
        None => Ok(()),
    }
}
