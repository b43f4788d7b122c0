//! Session timers (RFC 4028) of the legs in their headers: offers, agreed terms, and intervals that are too small.

use std::time::Instant;

use crate::dialog::{SessionAnswer, SessionTimerInput, TIMER};
use crate::message::{Headers, InvalidValue, Method, Name, Request, Response, SessionExpires, StatusCode};
use crate::transaction::ServerKey;
use crate::ua::draft::Reply;
use crate::ua::leg::{LegKey, Phase};
use crate::ua::state::{Purpose, Ua};

impl Ua {
    /// Offers a timer in our INVITE or UPDATE; for a leg, with the terms of its dialog.
    pub(super) fn offer_timer(&self, key: Option<LegKey>, request: &mut Request) -> Result<(), InvalidValue> {
        let own = key.and_then(|key| self.legs.get(&key)).and_then(|leg| leg.timer.clone());
        let Some(timer) = own.or_else(|| self.session_timer()) else { return Ok(()) };
        let (expires, min_se) = timer.offer();
        if !request.headers().lists(Name::Supported, TIMER) {
            request.push(Name::Supported, TIMER)?;
        }
        request.set(Name::SessionExpires, expires)?;
        match min_se {
            Some(min_se) => request.set(Name::MinSe, min_se),
            None => Ok(()),
        }
    }

    /// Checks the interval in a request of the peer; returns the 422 when it is too short.
    pub(super) fn refuse_small(&self, key: Option<LegKey>, request: &Request) -> Option<Reply> {
        let own = key.and_then(|key| self.legs.get(&key)).and_then(|leg| leg.timer.clone());
        match own.or_else(|| self.session_timer())?.answer(request.headers()) {
            SessionAnswer::TooSmall(min_se) => {
                let reply = Reply::new(StatusCode::SESSION_INTERVAL_TOO_SMALL);
                Some(reply.header(Name::MinSe.as_str(), min_se.to_string()))
            }
            SessionAnswer::Off | SessionAnswer::On { .. } => None,
        }
    }

    /// Adds the headers to our 2xx to an INVITE or UPDATE of the peer, and restarts the timer.
    pub(super) fn settle_as_uas(
        &mut self,
        now: Instant,
        key: LegKey,
        server: &ServerKey,
        reply: Reply,
    ) -> Reply {
        let Some(request) = self.layer.server_request(server) else { return reply };
        let Some(leg) = self.legs.get_mut(&key) else { return reply };
        leg.peer_updates |= takes_updates(request.headers());
        let Some(timer) = &mut leg.timer else { return reply };
        let (terms, required) = match timer.answer(request.headers()) {
            SessionAnswer::On { terms, required } => (terms, required),
            SessionAnswer::Off | SessionAnswer::TooSmall(_) => {
                timer.handle_input(now, SessionTimerInput::Settled(None));
                return reply;
            }
        };
        timer.handle_input(now, SessionTimerInput::Settled(Some(terms)));
        let expires =
            SessionExpires { interval_s: terms.interval_s, refresher_is_uac: Some(!terms.we_refresh) };
        let reply = reply.header(Name::SessionExpires.as_str(), expires.to_string());
        let reply = reply.header(Name::Supported.as_str(), TIMER);
        if required { reply.header(Name::Require.as_str(), TIMER) } else { reply }
    }

    /// Completes our answer to an UPDATE with an offer: in a confirmed dialog a 2xx refreshes the session too.
    pub(super) fn settle_update(&mut self, now: Instant, server: &ServerKey, reply: Reply) -> Reply {
        let updating = self.layer.server_request(server).and_then(|request| request.to_tag().ok());
        let key = updating.and_then(|tag| self.leg_of_tag(&tag));
        let Some(leg) = key.and_then(|key| self.legs.get_mut(&key)) else { return reply };
        if leg.updating != Some(*server) || !reply.status().is_final() {
            return reply;
        }
        leg.updating = None;
        let is_up = matches!(leg.phase, Phase::Confirmed { .. });
        match key {
            Some(key) if reply.status().is_success() && is_up => self.settle_as_uas(now, key, server, reply),
            _ => reply,
        }
    }

    /// Restarts or stops the timer after the peer's 2xx to our INVITE or UPDATE.
    pub(super) fn settle_as_uac(&mut self, now: Instant, key: LegKey, response: &Response) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        leg.peer_updates |= takes_updates(response.headers());
        if let Some(timer) = &mut leg.timer {
            let terms = timer.settled_by(response.headers());
            timer.handle_input(now, SessionTimerInput::Settled(terms));
        }
    }

    /// Processes a 422 to our first INVITE: sends it again with the interval that the peer requires, in the same leg.
    /// `false` when a repetition is useless.
    pub(super) fn invite_again(&mut self, now: Instant, key: LegKey, response: &Response) -> bool {
        if response.status() != StatusCode::SESSION_INTERVAL_TOO_SMALL {
            return false;
        }
        let Some(leg) = self.legs.get_mut(&key).filter(|leg| !leg.released) else { return false };
        let raised = leg.timer.as_mut().is_some_and(|timer| timer.raise(min_se(response)));
        let (Some(invite), true) = (leg.invite.as_deref().cloned(), raised) else { return false };
        let flow = leg.flow;
        let Some(request) = self.next_invite(key, invite) else { return false };
        let Ok(client) = self.layer.request(now, flow, request.clone()) else { return false };
        self.purposes.insert(client, Purpose::Invite(key));
        if let Some(leg) = self.legs.get_mut(&key) {
            leg.phase = Phase::Calling { client };
            leg.invite = Some(Box::new(request));
            leg.dialogs.clear();
        }
        true
    }

    fn next_invite(&self, key: LegKey, mut request: Request) -> Option<Request> {
        let number = request.cseq().ok()?.number;
        request.remove(Name::Via);
        request.set(Name::CSeq, format_args!("{} {}", number + 1, Method::Invite)).ok()?;
        self.offer_timer(Some(key), &mut request).ok()?;
        Some(request)
    }

    /// Processes a 422 to our INVITE inside the dialog: the next one requests a longer interval.
    pub(super) fn on_small_reinvite(&mut self, key: LegKey, response: &Response) {
        if let Some(timer) = self.legs.get_mut(&key).and_then(|leg| leg.timer.as_mut()) {
            timer.raise(min_se(response));
        }
    }
}

/// Whether the sender of these headers supports UPDATE.
pub(super) fn takes_updates(headers: &Headers) -> bool {
    headers.lists(Name::Allow, "UPDATE")
}

/// The Min-SE of a 422.
pub(super) fn min_se(response: &Response) -> Option<u32> {
    response.header(Name::MinSe)?.split(';').next()?.trim().parse().ok()
}
