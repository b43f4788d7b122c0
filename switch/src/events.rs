//! Routes the events of the user agent to the calls that they belong to.

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
            // The 487 is sent already; dropping the offer discards its later result.
            Event::ReinviteCancelled { leg, .. } => {
                if let Some((id, party)) = self.legs.get(&leg)
                    && let Some(live) = self.calls.get_mut(id)
                {
                    live.offers.remove(party);
                }
            }
            // The clash was with an offer of ours. The party got 491 and repeats its own offer; ours is
            // repeated unless it passed on an offer of the other party.
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
            // An unanswered re-INVITE ends its leg, so this is an unanswered probe (OPTIONS).
            Event::Unanswered { leg: Some(leg), .. } => self.probe_answered(now, leg, None),
            // The rest are results of keep-alives, which need no action: a phone that is gone stops
            // refreshing its registration.
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

/// Returns the SDP of a message; `None` without a body, or if the body is not valid SDP.
pub(super) fn description(headers: &Headers, body: &[u8]) -> Option<SessionDescription> {
    if body.is_empty() || !headers.is_content_type("application/sdp") {
        return None;
    }
    SessionDescription::parse(body).ok()
}

pub(super) fn status_code(status: u16) -> StatusCode {
    StatusCode::new(status).unwrap_or(StatusCode::SERVER_ERROR)
}
