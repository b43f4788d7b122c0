//! Passes events of the transaction layer to the legs (RFC 3261 §12.2.2, §13.2.2, §14.2, §15.1.2).

use std::borrow::Cow;
use std::time::Instant;

use crate::dialog::{AnswerInput, Clash, Dialog, DialogError, InviteInput, TIMER};
use crate::flow::Flow;
use crate::message::{FieldError, Method, Name, Request, Response, StatusCode};
use crate::transaction::{self, ClientKey, ServerKey, Timer};
use crate::ua::draft::{Extra, Reply};
use crate::ua::event::{Cause, Event, Receipt};
use crate::ua::leg::{FORKS_MAX, Leg, LegKey, Phase};
use crate::ua::state::{Purpose, Ua};

impl Ua {
    pub(super) fn dispatch(&mut self, now: Instant, event: transaction::Event) {
        use transaction::Event as E;
        match event {
            E::Request { key, flow, request } => self.on_request(now, key, flow, request),
            E::Ack { request, .. } => self.on_ack(now, request),
            E::Cancelled { key, request } => self.on_cancelled(now, key, request),
            E::Response { key, flow, response, request } => {
                self.on_response(now, key, flow, response, request);
            }
            E::StraySuccess { flow, response } => self.on_success_again(now, flow, &response),
            E::Timeout { key, timer: Timer::Cancelled, .. }
                if matches!(self.purposes.get(&key), Some(Purpose::Reinvite { .. })) =>
            {
                self.on_reinvite_abandoned(now, key);
            }
            E::Timeout { key, .. } => self.on_no_response(now, key, false),
            E::TransportError { key, .. } => self.on_no_response(now, key, true),
            // §13.3.1.4 requires no action of the user: the INVITE was refused, whether or not the peer received the
            // response.
            E::AckTimeout { .. } => {}
        }
    }

    fn on_request(&mut self, now: Instant, key: ServerKey, flow: Flow, request: Request) {
        let has_timer = self.config.session_timer.is_some();
        let unknown: Vec<&str> = request
            .list(Name::Require)
            .filter(|tag| !(has_timer && tag.eq_ignore_ascii_case(TIMER)))
            .filter(|tag| !self.config.extensions.iter().any(|known| known.eq_ignore_ascii_case(tag)))
            .collect();
        if !unknown.is_empty() {
            let reply = Reply::new(StatusCode::BAD_EXTENSION).header("Unsupported", unknown.join(", "));
            return self.refuse_quietly(now, &key, &reply);
        }
        let to_tag = tag_of(request.to_tag());
        match (to_tag, request.method()) {
            (Some(tag), _) => self.on_request_within(now, key, flow, request, &tag),
            (None, Method::Invite) => self.on_invite(now, key, flow, request),
            // These are valid only inside a dialog (§15.1.2, RFC 3262 §3, RFC 3311 §5.2, RFC 6086 §4.2.1).
            (None, Method::Bye | Method::Info | Method::Prack | Method::Update) => {
                self.refuse_quietly(now, &key, &Reply::new(StatusCode::NO_TRANSACTION));
            }
            (None, _) => self.event(Event::Request { leg: None, key, flow, request }),
        }
    }

    fn on_invite(&mut self, now: Instant, key: ServerKey, flow: Flow, request: Request) {
        if self.legs.len() >= self.config.legs_len_max {
            self.refuse_quietly(now, &key, &Reply::new(StatusCode::SERVICE_UNAVAILABLE));
            return self.overload(flow);
        }
        if let Some(reply) = self.refuse_small(None, &request) {
            return self.refuse_quietly(now, &key, &reply);
        }
        let Some(local_tag) = self.layer.local_tag(&key) else { return };
        // The same INVITE after the end of its transaction, while its leg lives.
        if self.legs_by_tag.contains_key(&local_tag) {
            return self.refuse_quietly(now, &key, &Reply::new(StatusCode::LOOP_DETECTED));
        }
        let user = request.parsed_uri().ok().and_then(|uri| uri.user_decoded().map(|user| user.into_owned()));
        let contact = self.contact(&flow, user.as_deref(), request.is_sips());
        let Ok(dialog) = Dialog::uas(&request, &local_tag, flow, contact) else {
            return self.refuse_quietly(now, &key, &Reply::new(StatusCode::BAD_REQUEST));
        };
        let mut leg = Leg::new(local_tag, flow, Phase::Ringing { server: key, refresh: None }, None);
        leg.reliable = self.required_reliable(&request);
        leg.dialogs = vec![dialog];
        let leg = self.insert_leg(leg);
        self.event(Event::Invited { leg, key, flow, request });
    }

    fn on_request_within(
        &mut self,
        now: Instant,
        key: ServerKey,
        flow: Flow,
        request: Request,
        to_tag: &str,
    ) {
        if let Some(subscription) = self.subscription_of_tag(to_tag) {
            return self.on_subscription_request(now, subscription, key, flow, request);
        }
        let from_tag = request.from_tag().unwrap_or_default();
        let place = self
            .leg_of_tag(to_tag)
            .and_then(|leg| Some((leg, self.legs.get(&leg)?.dialog_with(request.call_id(), &from_tag)?)));
        let Some((leg_key, at)) = place else {
            return self.refuse_quietly(now, &key, &Reply::new(StatusCode::NO_TRANSACTION));
        };
        // The sender knows both tags, so it counts as authenticated.
        self.layer.prove(&key);
        let dialog = self.legs.get_mut(&leg_key).and_then(|leg| leg.dialogs.get_mut(at));
        match dialog.map(|dialog| dialog.receive(flow, &request)) {
            Some(Ok(())) => {}
            Some(Err(DialogError::OutOfOrder)) => return self.answer(now, &key, StatusCode::SERVER_ERROR),
            Some(Err(DialogError::Malformed(_))) | None => {
                return self.answer(now, &key, StatusCode::BAD_REQUEST);
            }
        }
        match request.method() {
            Method::Bye => self.on_bye(now, leg_key, at, key, request),
            Method::Invite => self.on_reinvite(now, (leg_key, at), key, flow, request),
            _ if self.legs.get(&leg_key).is_none_or(|leg| leg.released) => {
                self.answer(now, &key, StatusCode::NO_TRANSACTION);
            }
            Method::Prack => self.on_prack(now, leg_key, key, flow, request),
            Method::Update if request.body().is_empty() && self.config.session_timer.is_some() => {
                self.refresh_target(leg_key, at, &request);
                self.refreshed(now, leg_key, key, &request);
            }
            Method::Update if !request.body().is_empty() => {
                self.on_update(now, (leg_key, at), key, flow, request);
            }
            _ => {
                self.refresh_target(leg_key, at, &request);
                self.event(Event::Request { leg: Some(leg_key), key, flow, request });
            }
        }
        self.settle(now, leg_key);
    }

    fn on_bye(&mut self, now: Instant, key: LegKey, at: usize, server: ServerKey, request: Request) {
        self.answer(now, &server, StatusCode::OK);
        let Some(leg) = self.legs.get_mut(&key) else { return };
        if at > 0 || matches!(leg.phase, Phase::Calling { .. }) {
            leg.dialogs.remove(at); // This fork has ended; the leg continues.
            return;
        }
        if let Some(dialog) = leg.dialogs.first_mut() {
            dialog.terminate();
        }
        leg.answer = None;
        if let Phase::Ringing { server, .. } = std::mem::replace(&mut leg.phase, Phase::Ending) {
            self.answer(now, &server, StatusCode::REQUEST_TERMINATED); // §15.1.2
        }
        self.refuse_changes(now, key);
        self.release(key, Cause::Bye(request));
    }

    /// §14.2.
    fn on_reinvite(
        &mut self,
        now: Instant,
        (key, at): (LegKey, usize),
        server: ServerKey,
        flow: Flow,
        request: Request,
    ) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let verdict = match leg.phase {
            Phase::Ending => return self.answer(now, &server, StatusCode::NO_TRANSACTION),
            _ if leg.released => return self.answer(now, &server, StatusCode::NO_TRANSACTION),
            Phase::Calling { .. } => Err(Clash::Ours),
            Phase::Ringing { .. } => Err(Clash::Theirs),
            // Our 2xx is not acknowledged, or the user's ACK is not sent: the previous exchange is not
            // complete.
            Phase::Confirmed { ack_owed: Some(_) } => Err(Clash::Ours),
            Phase::Confirmed { .. } if leg.answer.is_some() => Err(Clash::Ours),
            Phase::Confirmed { .. } => leg.usage.receive(server),
        };
        match verdict {
            Ok(()) => {
                if let Some(reply) = self.refuse_small(Some(key), &request) {
                    let _ = self.send_reply(now, &server, reply); // Cannot fail: there is no final response yet.
                    return;
                }
                self.refresh_target(key, at, &request);
                self.event(Event::Reinvited { leg: key, key: server, flow, request });
            }
            Err(Clash::Ours) => self.answer(now, &server, StatusCode::REQUEST_PENDING),
            Err(Clash::Theirs) => self.answer_busy(now, &server),
        }
    }

    fn on_ack(&mut self, now: Instant, request: Request) {
        let Some(key) = request.to_tag().ok().and_then(|tag| self.leg_of_tag(&tag)) else { return };
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let from_tag = request.from_tag().unwrap_or_default();
        let number = request.cseq().ok().map(|cseq| cseq.number);
        let known = leg.dialog_with(request.call_id(), &from_tag).is_some();
        // Anything but the expected ACK is a repetition or a stray one.
        let Some(answer) = leg.answer.as_mut().filter(|answer| known && Some(answer.cseq) == number) else {
            return;
        };
        answer.machine.handle_input(now, AnswerInput::Ack);
        self.layer.acknowledged(&answer.key);
        leg.answer = None;
        if leg.released {
            self.end_by_bye(now, key, Cause::HungUp); // The BYE has waited for this (§15).
        } else {
            self.event(Event::Acked { leg: key, request });
        }
        self.settle(now, key);
    }

    fn on_cancelled(&mut self, now: Instant, server: ServerKey, cancel: Request) {
        let Some(key) = self.leg_of_invite(&server) else { return };
        self.answer(now, &server, StatusCode::REQUEST_TERMINATED);
        let Some(leg) = self.legs.get_mut(&key) else { return };
        match &leg.phase {
            Phase::Ringing { server: ringing, .. } if *ringing == server => {
                self.release(key, Cause::Cancelled(cancel));
                self.refuse_changes(now, key);
                self.remove_leg(now, key);
            }
            _ if leg.usage.received() == Some(server) => {
                leg.usage.handle_input(now, InviteInput::Finished, self.layer.rng());
                self.event(Event::ReinviteCancelled { leg: key, key: server });
                self.poll_usage(key);
            }
            _ => {}
        }
        self.settle(now, key);
    }

    fn on_response(
        &mut self,
        now: Instant,
        key: ClientKey,
        flow: Flow,
        response: Response,
        request: Option<Request>,
    ) {
        let is_final = response.status().is_final();
        let purpose = if is_final { self.purposes.remove(&key) } else { self.purposes.get(&key).copied() };
        match purpose {
            Some(Purpose::Invite(leg)) => {
                self.on_invite_response(now, leg, flow, response, request);
                self.settle(now, leg);
            }
            Some(Purpose::Reinvite { leg, cseq, offered }) if is_final => {
                self.on_reinvite_response(now, key, (leg, cseq, offered), flow, response, request);
                self.settle(now, leg);
            }
            Some(Purpose::Bye(leg)) if is_final => {
                self.on_bye_done(now, leg);
                // The user must repeat a challenged BYE, because only the user knows which peers may get
                // credentials.
                if matches!(response.status().as_u16(), 401 | 407) {
                    self.event(Event::Response { leg: None, key, flow, response, request });
                }
            }
            Some(Purpose::Refresh(leg)) if is_final => self.on_refresh_done(now, leg, Some(&response)),
            Some(Purpose::Info(leg)) if is_final => {
                self.on_receipt(Some(leg), key, Receipt::Answered { flow, response, request });
            }
            Some(Purpose::Notify(subscription)) if is_final => {
                self.on_notified(subscription, Some(response.status()));
            }
            Some(Purpose::Message) if is_final => {
                self.on_receipt(None, key, Receipt::Answered { flow, response, request });
            }
            Some(Purpose::Within(leg)) => {
                if is_final {
                    self.forget_update(leg, key);
                }
                if self.legs.get(&leg).is_none_or(|leg| leg.released) {
                    return;
                }
                if let (Some(Method::Update), true) =
                    (request.as_ref().map(Request::method), response.status().is_success())
                {
                    let dialog = self.legs.get_mut(&leg).and_then(|leg| leg.dialogs.first_mut());
                    dialog.map(|dialog| dialog.refresh_target(&response));
                }
                self.event(Event::Response { leg: Some(leg), key, flow, response, request });
            }
            Some(Purpose::Outside) => self.event(Event::Response { leg: None, key, flow, response, request }),
            // After the first final response the layer passes only further 2xx.
            None if response.status().is_success() => self.on_success_again(now, flow, &response),
            Some(
                Purpose::Bye(_)
                | Purpose::Info(_)
                | Purpose::Message
                | Purpose::Notify(_)
                | Purpose::Prack(_)
                | Purpose::Refresh(_)
                | Purpose::Reinvite { .. },
            )
            | None => {}
        }
    }

    fn on_invite_response(
        &mut self,
        now: Instant,
        key: LegKey,
        flow: Flow,
        response: Response,
        request: Option<Request>,
    ) {
        if response.status().is_success() {
            return self.on_success(now, key, flow, &response);
        }
        if response.status().is_final() {
            if self.invite_again(now, key, &response) {
                return;
            }
            self.release(key, Cause::Refused { flow, response, request });
            self.refuse_changes(now, key);
            return self.remove_leg(now, key);
        }
        let Some(leg) = self.legs.get_mut(&key) else { return };
        leg.heard = true;
        if response.status() == StatusCode::TRYING {
            return;
        }
        let to_tag = tag_of(response.to_tag());
        if let (Some(tag), Some(invite)) = (to_tag, &leg.invite)
            && leg.dialog_with(response.call_id(), &tag).is_none()
            && leg.dialogs.len() < FORKS_MAX
            && let Ok(dialog) = Dialog::uac(invite, &response, leg.flow, contact_of(invite))
        {
            // Most calls have one dialog, and `push` would reserve space for four.
            leg.dialogs.reserve_exact(1);
            leg.dialogs.push(leg.on_its_flow(dialog));
        }
        let is_released = leg.released;
        if self.acknowledge_progress(now, key, &response) && !is_released {
            self.event(Event::Progress { leg: key, response });
        }
    }

    /// §13.2.2.4: the first 2xx accepts the call; a 2xx of another fork is acknowledged and ended immediately.
    fn on_success(&mut self, now: Instant, key: LegKey, flow: Flow, response: &Response) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let Some(invite) = &leg.invite else { return };
        let (offered, contact) = (!invite.body().is_empty(), contact_of(invite));
        let Ok(cseq) = invite.cseq().map(|cseq| cseq.number) else { return };
        let tag = response.to_tag().unwrap_or_default();
        let early = leg.dialog_with(response.call_id(), &tag).map(|at| leg.dialogs.swap_remove(at));
        let confirmed = match early {
            Some(mut dialog) => dialog.confirm_uac(response).map(|()| dialog),
            None => Dialog::uac(invite, response, leg.flow, contact).map(|dialog| leg.on_its_flow(dialog)),
        };
        let Ok(dialog) = confirmed else {
            // Neither an ACK nor a call can be created from it.
            self.release(key, Cause::Refused { flow, response: response.clone(), request: None });
            return self.remove_leg(now, key);
        };
        if !matches!(leg.phase, Phase::Calling { .. }) {
            leg.dialogs.push(dialog);
            let at = leg.dialogs.len() - 1;
            self.send_ack(key, at, cseq, &Extra::new());
            return self.send_bye(now, key, at, None);
        }
        leg.dialogs = vec![dialog];
        leg.phase = Phase::Confirmed { ack_owed: Some(cseq) };
        if leg.released {
            return self.end_by_bye(now, key, Cause::HungUp); // The 2xx crossed our CANCEL.
        }
        if offered {
            leg.phase = Phase::Confirmed { ack_owed: None };
            self.send_ack(key, 0, cseq, &Extra::new());
        }
        self.settle_as_uac(now, key, response);
        self.event(Event::Answered { leg: key, response: response.clone() });
    }

    /// A 2xx after the first: its ACK was lost, or another fork answered.
    fn on_success_again(&mut self, now: Instant, flow: Flow, response: &Response) {
        let Some(key) = response.from_tag().ok().and_then(|tag| self.leg_of_tag(&tag)) else { return };
        let Some(leg) = self.legs.get_mut(&key) else { return };
        // The first 2xx arrives through its transaction; handling a stray one would leave that transaction without an
        // end.
        if matches!(leg.phase, Phase::Calling { .. }) {
            return;
        }
        let tag = response.to_tag().unwrap_or_default();
        let Ok(cseq) = response.cseq().map(|cseq| cseq.number) else { return };
        match leg.dialog_with(response.call_id(), &tag).and_then(|at| leg.dialogs.get(at)) {
            Some(dialog) => {
                // There is no stored ACK while the user has not sent the required one.
                if let Some((flow, bytes)) = dialog.ack_of(cseq) {
                    self.layer.transmit(flow, bytes);
                }
            }
            None if leg.invite.as_ref().is_some_and(|i| i.call_id() == response.call_id())
                && leg.dialogs.len() < FORKS_MAX =>
            {
                self.on_success(now, key, flow, response);
                self.settle(now, key);
            }
            None => {}
        }
    }

    fn on_reinvite_response(
        &mut self,
        now: Instant,
        client: ClientKey,
        (key, cseq, offered): (LegKey, u32, bool),
        flow: Flow,
        response: Response,
        request: Option<Request>,
    ) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let status = response.status();
        let input = if status == StatusCode::REQUEST_PENDING {
            InviteInput::RequestPending
        } else {
            InviteInput::Finished
        };
        leg.usage.handle_input(now, input, self.layer.rng());
        leg.reinvite = None;
        if status.is_success() {
            if let Some(dialog) = leg.dialogs.first_mut() {
                let _ = dialog.refresh_target(&response); // An unreadable Contact leaves the old target.
            }
            match &mut leg.phase {
                Phase::Confirmed { ack_owed } if !offered && !leg.released => *ack_owed = Some(cseq),
                _ => self.send_ack(key, 0, cseq, &Extra::new()),
            }
            self.settle_as_uac(now, key, &response);
        }
        if status == StatusCode::SESSION_INTERVAL_TOO_SMALL {
            self.on_small_reinvite(key, &response);
        }
        if matches!(status, StatusCode::NO_TRANSACTION | StatusCode::REQUEST_TIMEOUT) {
            return self.on_gone(now, key, status == StatusCode::REQUEST_TIMEOUT);
        }
        let released = self.legs.get(&key).is_none_or(|leg| leg.released);
        if !released && status == StatusCode::REQUEST_PENDING {
            self.event(Event::ReinviteClashed { leg: key });
        } else if !released {
            self.event(Event::Response { leg: Some(key), key: client, flow, response, request });
        }
    }

    /// Handles the end of our cancelled INVITE inside a dialog that got a provisional response only (§9.1). The peer
    /// is there, so the dialog lasts.
    fn on_reinvite_abandoned(&mut self, now: Instant, client: ClientKey) {
        let Some(Purpose::Reinvite { leg: key, .. }) = self.purposes.remove(&client) else { return };
        let Some(leg) = self.legs.get_mut(&key) else { return };
        leg.usage.handle_input(now, InviteInput::Finished, self.layer.rng());
        leg.reinvite = None;
        if !leg.released {
            self.event(Event::OfferUnanswered { leg: key });
        }
        self.settle(now, key);
    }

    fn on_no_response(&mut self, now: Instant, key: ClientKey, unreachable: bool) {
        let receipt = if unreachable { Receipt::Unreachable } else { Receipt::TimedOut };
        match self.purposes.remove(&key) {
            Some(Purpose::Info(leg)) => self.on_receipt(Some(leg), key, receipt),
            Some(Purpose::Message) => self.on_receipt(None, key, receipt),
            Some(Purpose::Notify(subscription)) => self.on_notified(subscription, None),
            Some(Purpose::Invite(leg)) => {
                self.release(leg, if unreachable { Cause::Unreachable } else { Cause::TimedOut });
                self.remove_leg(now, leg);
            }
            Some(Purpose::Reinvite { leg, .. }) => {
                if let Some(leg) = self.legs.get_mut(&leg) {
                    leg.reinvite = None;
                }
                self.on_gone(now, leg, true);
                self.settle(now, leg);
            }
            Some(Purpose::Bye(leg)) => self.on_bye_done(now, leg),
            Some(Purpose::Refresh(leg)) => self.on_refresh_done(now, leg, None),
            Some(Purpose::Within(leg)) if self.forget_update(leg, key) => {
                self.event(Event::OfferUnanswered { leg });
            }
            Some(Purpose::Within(leg)) if self.legs.get(&leg).is_some_and(|leg| !leg.released) => {
                self.event(Event::Unanswered { leg: Some(leg), key, unreachable });
            }
            Some(Purpose::Outside) => self.event(Event::Unanswered { leg: None, key, unreachable }),
            // It belongs to a leg whose end was already reported to the user.
            Some(Purpose::Prack(_) | Purpose::Within(_)) | None => {}
        }
    }

    /// Reports the result of an INFO of this leg, or of a MESSAGE. Also when the leg has ended, because the
    /// user waits for it.
    fn on_receipt(&mut self, leg: Option<LegKey>, key: ClientKey, receipt: Receipt) {
        self.event(match leg {
            Some(leg) => Event::InfoAnswered { leg, key, receipt },
            None => Event::MessageAnswered { key, receipt },
        });
    }

    fn on_bye_done(&mut self, now: Instant, key: LegKey) {
        if let Some(leg) = self.legs.get_mut(&key) {
            leg.byes = leg.byes.saturating_sub(1);
            self.settle(now, key);
        }
    }
}

/// A tag, unless it is absent or empty.
fn tag_of(tag: Result<Cow<'_, str>, FieldError>) -> Option<String> {
    tag.ok().filter(|tag| !tag.is_empty()).map(Cow::into_owned)
}

/// The Contact of our INVITE.
fn contact_of(invite: &Request) -> String {
    invite.header(Name::Contact).unwrap_or_default().to_owned()
}
