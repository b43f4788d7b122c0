//! Transfers that the phone requests: its REFERs, and the notifications of their results (RFC 3515).

use std::collections::HashMap;

use sidetone_sip::message::{Method, Request, Response};
use sidetone_sip::transaction::{ClientKey, ServerKey};
use sidetone_sip::ua::{Extra, LegKey, Retried};
use tokio::sync::oneshot;

use crate::command::PhoneError;
use crate::endpoint::{Endpoint, now};

/// The phone's REFERs without a result so far, one for each leg.
#[derive(Default)]
pub(super) struct Referrals {
    pending: HashMap<LegKey, Referral>,
}

struct Referral {
    key: ClientKey,
    done: oneshot::Sender<Result<u16, PhoneError>>,
}

impl Referrals {
    /// Transfers the remote party of a leg to a number.
    pub(super) fn refer_to_number(
        &mut self,
        phone: &mut Endpoint,
        leg: Option<LegKey>,
        number: &str,
        done: oneshot::Sender<Result<u16, PhoneError>>,
    ) {
        let target = format!("<sip:{number}@{}>", phone.config.domain);
        self.send(phone, leg, Some(target), done);
    }

    /// Transfers the remote party of the first leg to that of the second.
    pub(super) fn refer_to_leg(
        &mut self,
        phone: &mut Endpoint,
        legs: Option<(LegKey, LegKey)>,
        done: oneshot::Sender<Result<u16, PhoneError>>,
    ) {
        let target = legs.and_then(|(_, other)| {
            let (call_id, local, remote) = phone.ua.dialog_of(other)?;
            let call_id = call_id.replace('@', "%40");
            let replaces = format!("{call_id}%3Bto-tag%3D{remote}%3Bfrom-tag%3D{local}");
            Some(format!("<sip:{}?Replaces={replaces}>", phone.config.domain))
        });
        self.send(phone, legs.map(|(leg, _)| leg), target, done);
    }

    fn send(
        &mut self,
        phone: &mut Endpoint,
        leg: Option<LegKey>,
        target: Option<String>,
        done: oneshot::Sender<Result<u16, PhoneError>>,
    ) {
        let sent = leg.zip(target).and_then(|(leg, target)| {
            let extra = Extra::new().header("Refer-To", target);
            Some((leg, phone.ua.request_within(now(), leg, Method::Refer, &extra).ok()?))
        });
        match sent {
            Some((leg, key)) => drop(self.pending.insert(leg, Referral { key, done })),
            // The owner may have dropped the phone; then no caller waits.
            None => drop(done.send(Err(PhoneError::NoCall))),
        }
    }

    /// Handles the response to a REFER; returns `false` for a response to another request.
    pub(super) fn response(
        &mut self,
        phone: &mut Endpoint,
        key: ClientKey,
        response: &Response,
        request: Option<&Request>,
    ) -> bool {
        let Some(leg) = self.leg_of(key) else { return false };
        let status = response.status();
        if matches!(status.as_u16(), 401 | 407)
            && let Some(Retried::Transaction(again)) =
                request.and_then(|request| phone.authorized(response, request.clone()))
        {
            if let Some(referral) = self.pending.get_mut(&leg) {
                referral.key = again;
            }
        } else if status.is_final() && !status.is_success() {
            self.finish(leg, Ok(status.as_u16()));
        }
        true
    }

    /// Handles a REFER without a response; returns `false` for another request.
    pub(super) fn unanswered(&mut self, key: ClientKey) -> bool {
        let leg = self.leg_of(key);
        if let Some(leg) = leg {
            self.finish(leg, Ok(408));
        }
        leg.is_some()
    }

    /// Handles a notification; the final one ends the referral.
    pub(super) fn notified(
        &mut self,
        phone: &mut Endpoint,
        leg: Option<LegKey>,
        key: &ServerKey,
        request: &Request,
    ) {
        let known = leg.filter(|leg| self.pending.contains_key(leg));
        let Some(leg) = known else { return phone.respond(key, 481) };
        phone.respond(key, 200);
        let fragment = String::from_utf8_lossy(request.body());
        let status = fragment.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
        if let Some(status) = status.filter(|status| *status >= 200) {
            self.finish(leg, Ok(status));
        }
    }

    /// Handles the end of a leg: the result of its referral can no longer arrive.
    pub(super) fn ended(&mut self, leg: LegKey) {
        self.finish(leg, Err(PhoneError::NoCall));
    }

    fn leg_of(&self, key: ClientKey) -> Option<LegKey> {
        self.pending.iter().find(|(_, referral)| referral.key == key).map(|(leg, _)| *leg)
    }

    fn finish(&mut self, leg: LegKey, result: Result<u16, PhoneError>) {
        if let Some(referral) = self.pending.remove(&leg) {
            // The owner may have dropped the phone; then no caller waits.
            let _ = referral.done.send(result);
        }
    }
}
