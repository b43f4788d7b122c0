//! What the user agent tells the switch, and to which call that goes.

use sidetone_sip::message::{Headers, Method, StatusCode};
use sidetone_sip::sdp::SessionDescription;
use sidetone_sip::ua::{Event, LegKey};

use crate::face::{self, Party, Ports};
use crate::machine::{Now, Switch};

impl Switch {
    pub(super) fn event(&mut self, now: Now, event: Event, ports: &mut dyn Ports) {
        match event {
            Event::Invited { leg, key, flow, request } => self.invited(now, leg, key, flow, &request, ports),
            Event::Request { leg, key, flow, request } => self.requested(now, leg, &key, &flow, &request),
            Event::Acked { leg, request } => {
                let answer = description(request.headers(), request.body());
                self.tell_leg(now, leg, |party| Some(face::Input::Acknowledged(party, answer)));
            }
            Event::Answered { leg, response } => {
                let answer = description(response.headers(), response.body());
                self.tell_leg(now, leg, |party| match party {
                    Party::Callee(fork) => Some(face::Input::Answered(fork, answer)),
                    Party::Caller => None,
                });
            }
            Event::Progress { leg, response } => {
                let answer = description(response.headers(), response.body());
                let status = response.status().as_u16();
                self.tell_leg(now, leg, |party| match party {
                    Party::Callee(fork) => Some(face::Input::Provisional(fork, status, answer)),
                    Party::Caller => None,
                });
            }
            Event::Ended { leg, cause } => self.leg_ended(now, leg, cause),
            Event::Reinvited { leg, key, flow, request } => self.reinvited(now, leg, key, &flow, &request),
            // The 487 is sent; the party's offer is answered to nobody when its result comes.
            Event::ReinviteCancelled { leg, .. } => {
                if let Some((id, party)) = self.legs.get(&leg)
                    && let Some(live) = self.calls.get_mut(id)
                {
                    live.offers.remove(party);
                }
            }
            // The party whose offer clashed was told 491 and tries again itself; ours, unless it was made for a room,
            // was its offer passed on.
            Event::ReinviteDue { leg } => self.tell_leg(now, leg, |party| Some(face::Input::OfferDue(party))),
            Event::RefreshDue { leg } => self.tell_leg(now, leg, |party| Some(face::Input::Refresh(party))),
            Event::Response { leg: Some(leg), flow, response, request, .. } => {
                if response.status().is_provisional() {
                    return;
                }
                if response.cseq().is_ok_and(|cseq| cseq.method == Method::Options) {
                    return self.probe_answered(now, leg, Some(response.status()));
                }
                if self.reinvite_challenged(now, leg, &flow, &response, request) {
                    return;
                }
                let result = if response.status().is_success() {
                    Ok(description(response.headers(), response.body()))
                } else {
                    Err(response.status().as_u16())
                };
                self.tell_leg(now, leg, |party| Some(face::Input::Offered(party, result)));
            }
            Event::InfoAnswered { key, receipt, .. } | Event::MessageAnswered { key, receipt } => {
                self.note_answered(now, key, &receipt);
            }
            // An INVITE inside a dialog that stays without an answer ends its leg.
            Event::Unanswered { leg: Some(leg), .. } => self.probe_answered(now, leg, None),
            // What else comes here is the answer to a keep-alive, or its lack: a phone that is gone stops refreshing.
            Event::Response { leg: None, key, flow, response, request } => match request {
                Some(bye) if *bye.method() == Method::Bye => self.bye_challenged(now, &flow, &response, bye),
                request => self.register_answered(now, key, &flow, &response, request),
            },
            Event::Unanswered { leg: None, key, .. } => self.register_unanswered(now, key),
        }
    }

    pub(super) fn tell_leg(
        &mut self,
        now: Now,
        leg: LegKey,
        input: impl FnOnce(Party) -> Option<face::Input>,
    ) {
        if let Some((id, party)) = self.legs.get(&leg).copied()
            && let Some(input) = input(party)
        {
            self.tell_call(now, id, input);
        }
    }
}

/// The SDP of a message; `None` without a body, or with one that is no readable SDP.
pub(super) fn description(headers: &Headers, body: &[u8]) -> Option<SessionDescription> {
    if body.is_empty() || !headers.is_content_type("application/sdp") {
        return None;
    }
    SessionDescription::parse(body).ok()
}

pub(super) fn status_code(status: u16) -> StatusCode {
    StatusCode::new(status).unwrap_or(StatusCode::SERVER_ERROR)
}
