//! Refreshes of sessions (RFC 4028), and the end of one that is not refreshed.
//!
//! A refresh is an UPDATE without a body if the peer supports it. Otherwise it is an INVITE with the current session
//! description, which only the user has: [`Event::RefreshDue`]. A refresh that is answered with 481 or 408, or not at
//! all, ends the leg immediately; after another refusal it is tried again until the session expires.

use std::time::Instant;

use crate::dialog::{SessionTimerInput, SessionTimerOutput};
use crate::message::{Method, Request, Response, StatusCode};
use crate::transaction::ServerKey;
use crate::ua::draft::{Extra, Reply};
use crate::ua::event::{Cause, Event};
use crate::ua::leg::{LegKey, Phase};
use crate::ua::session::min_se;
use crate::ua::state::{Purpose, Ua};

impl Ua {
    /// Handles the outputs of a leg's timer.
    pub(super) fn poll_timer(&mut self, now: Instant, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let Some(timer) = &mut leg.timer else { return };
        timer.handle_input(now, SessionTimerInput::Timeout);
        match timer.poll_output() {
            Some(SessionTimerOutput::Expired) if leg.confirmed().is_some() => {
                self.end_by_bye(now, key, Cause::SessionExpired);
            }
            Some(SessionTimerOutput::Refresh) if leg.confirmed().is_some() => self.refresh(now, key),
            Some(SessionTimerOutput::Expired | SessionTimerOutput::Refresh) | None => {}
        }
    }

    fn refresh(&mut self, now: Instant, key: LegKey) {
        let Some(leg) = self.legs.get(&key) else { return };
        if leg.update.is_some() {
            return; // A refresh is in progress.
        }
        if !leg.peer_updates {
            // An INVITE that has the same effect may be in progress.
            if leg.may_reinvite() {
                self.event(Event::RefreshDue { leg: key });
            }
            return;
        }
        // Without an offer, an UPDATE may be sent while an INVITE is open (RFC 3311 §5.1), which has no end if the peer
        // only answers 100.
        let sent =
            self.build_within(key, Method::Update, &Extra::new()).ok().and_then(|(flow, _, request)| {
                let client = self.layer.request(now, flow, request).ok()?;
                self.purposes.insert(client, Purpose::Refresh(key));
                Some(client)
            });
        if let Some(leg) = self.legs.get_mut(&key) {
            leg.update = sent;
        }
    }

    /// Answers an UPDATE of the peer without an offer, which is only a refresh (RFC 3311 §5.2).
    pub(super) fn refreshed(&mut self, now: Instant, key: LegKey, server: ServerKey, request: &Request) {
        if let Some(reply) = self.refuse_small(Some(key), request) {
            return self.answer_with(now, &server, &reply);
        }
        let reply = self.settle_as_uas(now, key, &server, Reply::new(StatusCode::OK));
        self.answer_with(now, &server, &reply);
    }

    /// Processes the end of our UPDATE; without a response it timed out.
    pub(super) fn on_refresh_done(&mut self, now: Instant, key: LegKey, response: Option<&Response>) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        leg.update = None;
        let status = response.map_or(StatusCode::REQUEST_TIMEOUT, Response::status);
        match (status, response) {
            (_, Some(response)) if status.is_success() => {
                if let Some(dialog) = leg.dialogs.first_mut() {
                    let _ = dialog.refresh_target(response); // An unreadable Contact leaves the old target.
                }
                self.settle_as_uac(now, key, response);
            }
            (StatusCode::NO_TRANSACTION | StatusCode::REQUEST_TIMEOUT, _) => {
                self.on_gone(now, key, status == StatusCode::REQUEST_TIMEOUT);
            }
            (StatusCode::SESSION_INTERVAL_TOO_SMALL, Some(response)) => {
                if leg.timer.as_mut().is_some_and(|timer| timer.raise(min_se(response))) {
                    self.refresh(now, key);
                }
            }
            // The peer is busy with another request: try later.
            (StatusCode::REQUEST_PENDING | StatusCode::SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE, _) => {
            }
            // The peer does not support UPDATE after all, or requires credentials, which are sent with an
            // INVITE.
            _ => {
                leg.peer_updates = false;
                self.refresh(now, key);
            }
        }
        self.settle(now, key);
    }

    /// §12.2.1.2: the peer does not have the dialog, or does not answer; in the latter case a BYE is sent nevertheless.
    pub(super) fn on_gone(&mut self, now: Instant, key: LegKey, say_bye: bool) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        if matches!(leg.phase, Phase::Ending) {
            return;
        }
        if say_bye {
            return self.end_by_bye(now, key, Cause::Gone);
        }
        leg.phase = Phase::Ending;
        leg.answer = None;
        self.refuse_changes(now, key);
        self.release(key, Cause::Gone);
    }
}
