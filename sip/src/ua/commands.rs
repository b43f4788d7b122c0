//! Actions of the user: requests, legs, answers.

use std::time::Instant;

use crate::dialog::Dialog;
use crate::flow::Flow;
use crate::message::{InvalidValue, Method, Name, Request, StatusCode};
use crate::transaction::{ClientKey, SendError, ServerKey};
use crate::ua::draft::{Content, Draft, Extra, Invite, Reply};
use crate::ua::event::{Cause, Retried};
use crate::ua::leg::{Leg, LegKey, Phase};
use crate::ua::reliable::RELIABLE;
use crate::ua::reliable_state::Reliable;
use crate::ua::session::takes_updates;
use crate::ua::state::{Purpose, Ua};
use crate::ua::subscription_key::SubscriptionKey;

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
        if self.has_reliable() && !request.headers().lists(Name::Supported, RELIABLE) {
            request.push(Name::Supported, RELIABLE)?;
        }
        self.introduce(request.headers_mut(), true)?;
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
        let to_tag = request.to_tag().map_err(|_| InvalidValue::Token)?;
        let to_tag = (!to_tag.is_empty()).then(|| to_tag.into_owned());
        let method = request.method().clone();
        request.remove(Name::Via);
        extra.write_headers(request.headers_mut())?;
        let leg = to_tag.as_ref().and_then(|_| self.leg_of_tag(request.from().ok()?.tag()?));
        let dialog = leg.and_then(|leg| self.legs.get_mut(&leg)).and_then(|leg| leg.confirmed());
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
        self.send_reply(now, key, reply)?;
        self.pump(now);
        Ok(())
    }

    /// Sends a final response and removes the transaction immediately, whether or not the response arrives. For
    /// challenges and refusals of unauthenticated senders, which get one response per request and use no memory
    /// (§8.2.7).
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
    /// [`Ended`](super::Event::Ended); remaining messages of the network are handled after that.
    pub fn hang_up(&mut self, now: Instant, key: LegKey) {
        self.hang_up_because(now, key, None);
    }

    /// Ends a leg as [`Ua::hang_up`] does; its CANCEL or BYE has `reason` as its Reason (RFC 3326).
    pub fn hang_up_because(&mut self, now: Instant, key: LegKey, reason: Option<String>) {
        let Some(leg) = self.legs.get_mut(&key).filter(|leg| !leg.released) else { return };
        leg.bye_reason = reason.map(String::into_boxed_str);
        match &leg.phase {
            Phase::Calling { client } => {
                self.layer.cancel(now, client, leg.bye_reason.as_deref());
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
    /// [`Response`](super::Event::Response), or after a clash [`ReinviteClashed`](super::Event::ReinviteClashed) and
    /// later [`ReinviteDue`](super::Event::ReinviteDue).
    ///
    /// # Errors
    ///
    /// [`SendError::WrongState`] while an INVITE is in progress in either direction (§14.1) or without a dialog.
    pub fn reinvite(&mut self, now: Instant, key: LegKey, extra: &Extra) -> Result<ClientKey, SendError> {
        if self.legs.get(&key).is_none_or(|leg| !leg.may_reinvite()) {
            return Err(SendError::WrongState);
        }
        let (flow, cseq, request) = self.build_within(key, Method::Invite, extra)?;
        let offered = !request.body().is_empty();
        let client = self.start(now, flow, request, Purpose::Reinvite { leg: key, cseq, offered })?;
        self.settle(now, key);
        Ok(client)
    }

    /// Cancels our INVITE inside the dialog of a leg, if it has no final response (§9.1). Its result is still
    /// [`Response`](super::Event::Response): 487, or a 2xx that crossed the CANCEL.
    pub fn cancel_reinvite(&mut self, now: Instant, key: LegKey) {
        let Some(client) = self.legs.get(&key).and_then(|leg| leg.reinvite) else { return };
        self.layer.cancel(now, &client, None);
        self.pump(now);
    }

    /// Sends an offer in UPDATE in the early dialog of a leg. Its result is [`Response`](super::Event::Response), or
    /// [`OfferUnanswered`](super::Event::OfferUnanswered).
    ///
    /// # Errors
    ///
    /// [`SendError::WrongState`] unless a reliable response answered the offer of the INVITE, no other offer is open,
    /// and the peer supports UPDATE (§5.1).
    pub fn update(&mut self, now: Instant, key: LegKey, extra: &Extra) -> Result<ClientKey, SendError> {
        let leg = self.legs.get_mut(&key).filter(|leg| !leg.released).ok_or(SendError::WrongState)?;
        let takes = match (&leg.phase, leg.reliable.as_deref()) {
            // The dialog of each fork is checked below.
            (Phase::Calling { .. }, Some(Reliable::Received(_))) => true,
            (Phase::Ringing { server, .. }, Some(Reliable::Sent(sent))) if sent.answered => {
                let invite = self.layer.server_request(server);
                invite.is_some_and(|invite| takes_updates(invite.headers()))
            }
            _ => false,
        };
        let reliable =
            leg.reliable.as_deref().filter(|_| takes && leg.update.is_none() && leg.updating.is_none());
        let reliable = reliable.ok_or(SendError::WrongState)?;
        let dialog = leg.dialogs.iter_mut().find(|dialog| reliable.takes_offer(&dialog.id().remote_tag));
        let dialog = dialog.ok_or(SendError::WrongState)?;
        let cseq = dialog.next_cseq();
        let flow = dialog.route();
        let mut request = dialog.request(Method::Update, cseq)?;
        extra.write_to(&mut request)?;
        let client = self.start(now, flow, request, Purpose::Within(key))?;
        if let Some(leg) = self.legs.get_mut(&key) {
            leg.update = Some(client);
        }
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
        let extra = Extra::new().with_content(content);
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

    /// Accepts a SUBSCRIBE that begins a subscription: answers it with `reply`, a 2xx. Requests of the subscription are
    /// sent on the flow of the SUBSCRIBE, like those of a registered phone (RFC 5626 §5.3).
    ///
    /// The user must send a NOTIFY immediately (RFC 6665 §4.2.1.2).
    ///
    /// # Errors
    ///
    /// [`SendError::Overload`] when there are too many subscriptions, [`SendError::WrongState`] when the request
    /// already has its final response, and an invalid value when no dialog can be created from the request.
    pub fn accept_subscription(
        &mut self,
        now: Instant,
        key: &ServerKey,
        flow: Flow,
        request: &Request,
        reply: Reply,
    ) -> Result<SubscriptionKey, SendError> {
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            return Err(SendError::Overload);
        }
        let tag = self.layer.local_tag(key).ok_or(SendError::WrongState)?;
        let user = request.parsed_uri().ok().and_then(|uri| uri.user_decoded().map(|user| user.into_owned()));
        let contact = self.contact(&flow, user.as_deref(), request.is_sips());
        let mut dialog = Dialog::uas(request, &tag, flow, contact).map_err(|_| InvalidValue::Token)?;
        dialog.keep_to_flow();
        dialog.confirm_uas();
        let subscription = SubscriptionKey(self.next_key());
        self.subscriptions_by_tag.insert(tag, subscription);
        self.subscriptions.insert(subscription, Box::new(dialog));
        match self.send_reply(now, key, reply) {
            Ok(()) => {
                self.pump(now);
                Ok(subscription)
            }
            Err(error) => {
                self.end_subscription(subscription);
                Err(error)
            }
        }
    }

    /// Sends a NOTIFY; its result is [`NotifyAnswered`](super::Event::NotifyAnswered).
    ///
    /// # Errors
    ///
    /// [`SendError::WrongState`] when the subscription has ended, otherwise as [`Ua::request`].
    pub fn notify(
        &mut self,
        now: Instant,
        subscription: SubscriptionKey,
        extra: &Extra,
    ) -> Result<(), SendError> {
        let dialog = self.subscriptions.get_mut(&subscription).ok_or(SendError::WrongState)?;
        let cseq = dialog.next_cseq();
        let flow = dialog.route();
        let mut request = dialog.request(Method::Notify, cseq)?;
        extra.write_to(&mut request)?;
        self.start(now, flow, request, Purpose::Notify(subscription)).map(drop)
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
}

/// §18.1.1: a request of more than 1,300 bytes is sent over a connection, because a datagram of that size may
/// be fragmented and lost. When the peer has no connection it is still sent as a datagram: most arrive.
fn way(flow: Flow, wide: Option<Flow>, request: &Request) -> Flow {
    match wide {
        Some(wide) if !flow.protocol.is_reliable() && request.to_bytes().len() > SHORT_BYTES_MAX => wide,
        _ => flow,
    }
}

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

/// The longest request that fits into a datagram in any case, without the Via that is added to it.
const SHORT_BYTES_MAX: usize = 1_300 - 120;
/// Each holds a dialog of some hundred bytes.
const SUBSCRIPTIONS_MAX: usize = 100_000;
