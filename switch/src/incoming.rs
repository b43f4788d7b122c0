//! Incoming requests: calls, registrations, and requests that are answered without a call.

use std::net::IpAddr;
use std::sync::Arc;

use sidetone_call::record::{Outcome, build};
use sidetone_model::call::HangupCause;
use sidetone_sip::auth::{Refusal as AuthRefusal, challenge_reply};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Method, Name, Request, StatusCode, Uri};
use sidetone_sip::registrar::{Registration, reply};
use sidetone_sip::sdp::SessionDescription;
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{LegKey, Reply};

use crate::call::Call;
use crate::denied::{Denial, Denied};
use crate::events::description;
use crate::face::{CalleeSide, Callees, CallerSide, MediaCommand, Ports, Setup, Sides};
use crate::gate::{Registered, Sender};
use crate::live::{Caller, LiveCall};
use crate::machine::{Notice, Now, Output, Switch};
use crate::placement::{Onward, Placement, Refused};
use crate::rooms;
use crate::routing::Directory;

impl Switch {
    /// Handles a new INVITE.
    pub(super) fn invited(
        &mut self,
        now: Now,
        leg: LegKey,
        key: ServerKey,
        flow: Flow,
        request: &Request,
        ports: &mut dyn Ports,
    ) {
        let source = flow.remote.ip();
        if !self.accepts || self.calls.len() >= self.config.calls_max {
            return self.refuse(
                now,
                &key,
                Reply::new(StatusCode::SERVICE_UNAVAILABLE).header("Retry-After", "30"),
            );
        }
        if request.max_forwards() == Some(0) {
            return self.refuse(now, &key, Reply::new(StatusCode::TOO_MANY_HOPS));
        }
        let directory = Arc::clone(&self.directory);
        let dialled = self.number_dialled(now, &directory, request, source);
        let (registrations, registrar) = (&self.registrations, &self.registrar);
        let registered = Registered {
            trunk: &|trunk| registrations.is_registered_from(now.instant, trunk, source),
            line: &|aor| registrar.is_registered_from(aor, now.instant, source),
        };
        let sender = self.gate.caller(now.instant, &directory, request, &dialled, source, registered);
        let Some(sender) = self.known(now, &key, &flow, request, sender) else { return };
        let offer = match offer_of(request) {
            Ok(offer) => offer,
            Err(reply) => return self.respond(now, &key, reply),
        };
        let placement = match self.place(now, &directory, &sender, request, &dialled) {
            Ok(placement) => placement,
            Err(refused) => {
                let denial = Denial::Call(refused.cause);
                self.push(Output::Notice(Notice::Denied(Denied::new(source, request, denial))));
                return self.refuse_call(now, &key, refused);
            }
        };
        self.begin(now, (leg, key), source, offer, placement, ports);
    }

    /// Begins the call of a placement.
    fn begin(
        &mut self,
        now: Now,
        (leg, key): (LegKey, ServerKey),
        source: IpAddr,
        offer: Option<SessionDescription>,
        placement: Placement,
        ports: &mut dyn Ports,
    ) {
        let Placement { facts, caller, caller_policy, callee_policy, onward } = placement;
        let (id, session_id) = (facts.call, self.session_id());
        let side = CallerSide { offer, policy: caller_policy, at: source };
        let bridge =
            |caller, callees| Sides::Bridge { caller, callee: CalleeSide { policy: callee_policy, callees } };
        let (sides, callees, hunt, goal) = match onward {
            Onward::Bindings(callees) => {
                let at_once = callees.iter().map(|callee| callee.flow.remote.ip()).collect();
                (bridge(side, Callees::AtOnce(at_once)), callees, None, None)
            }
            Onward::Room(goal) => (Sides::IntoRoom { caller: side }, Vec::new(), None, Some(goal)),
            Onward::World(hunt) => (bridge(side, Callees::InTurn), Vec::new(), Some(*hunt), None),
        };
        let group = goal.as_ref().and_then(|goal| self.group_of(goal)).unwrap_or(session_id);
        let setup = Setup { limits: self.limits_of(&facts), facts, sides, session_id, group };
        let caller = Caller { invite: key, key: leg, identity: caller };
        match Call::new(now.instant, setup, ports) {
            Ok(call) => self.adopt(now, id, LiveCall::new(call, Some(caller), callees, hunt, goal)),
            Err(stillborn) => {
                for port in stillborn.ports {
                    self.push(Output::Media(port, MediaCommand::Close));
                }
                let status = StatusCode::new(stillborn.status).unwrap_or(StatusCode::SERVER_ERROR);
                let cause = match stillborn.status {
                    503 => HangupCause::SwitchCongestion,
                    other => HangupCause::from_sip_status(other),
                };
                self.refuse_call(now, &key, Refused::of_call(status, cause, *stillborn.facts));
            }
        }
    }

    /// Returns the number that an INVITE dials. An INVITE for our account at a registrar has the number in
    /// To; otherwise the trunk's organisation must have just one number.
    fn number_dialled(&self, now: Now, directory: &Directory, request: &Request, source: IpAddr) -> String {
        let user = request.parsed_uri().ok().and_then(|uri| dialled(&uri)).unwrap_or_default();
        let account = self.registrations.account(now.instant, &user, source);
        let Some(trunk) = account.and_then(|id| directory.trunk(id)) else { return user };
        let to = request.to().ok().and_then(|to| dialled(&to.uri));
        let in_to = to.filter(|number| directory.number_of_carrier(number).is_some());
        let only = || trunk.organisation_id.and_then(|owner| directory.only_number(owner));
        in_to.or_else(|| only().map(|number| number.number.clone())).unwrap_or(user)
    }

    /// Handles any other request, inside or outside of dialogs.
    pub(super) fn requested(
        &mut self,
        now: Now,
        leg: Option<LegKey>,
        key: &ServerKey,
        flow: &Flow,
        request: &Request,
    ) {
        match (request.method(), leg) {
            (Method::Options, _) => self.respond(
                now,
                key,
                allow(Reply::new(StatusCode::OK)).header("Accept", "application/sdp, application/json"),
            ),
            (Method::Register, None) => self.register(now, key, flow, request),
            (Method::Info, Some(leg)) => self.informed(now, leg, key, request),
            (Method::Message, None) => self.messaged(now, key, flow, request),
            (Method::Other(_), _) => self.refuse(now, key, allow(Reply::new(StatusCode::NOT_IMPLEMENTED))),
            (_, Some(_)) => self.respond(now, key, allow(Reply::new(StatusCode::METHOD_NOT_ALLOWED))),
            // Requests that are valid only inside a dialog.
            (Method::Bye | Method::Info | Method::Notify | Method::Prack | Method::Update, None) => {
                self.refuse(now, key, Reply::new(StatusCode::NO_TRANSACTION));
            }
            // The sender must authenticate before it learns anything (RFC 3261 §22.1).
            (_, None) => {
                let sender = self.phone(now, flow, request);
                if self.known(now, key, flow, request, sender).is_some() {
                    self.respond(now, key, allow(Reply::new(StatusCode::METHOD_NOT_ALLOWED)));
                }
            }
        }
    }

    fn register(&mut self, now: Now, key: &ServerKey, flow: &Flow, request: &Request) {
        let directory = Arc::clone(&self.directory);
        let sender = self.phone(now, flow, request);
        let Some(Sender::Extension(id)) = self.known(now, key, flow, request, sender) else { return };
        let Some((extension, aor)) = directory.extension(id).and_then(|e| Some((e, directory.aor(e)?)))
        else {
            return self.refuse(now, key, Reply::new(StatusCode::FORBIDDEN));
        };
        // An extension may register only its own number (RFC 3261 §10.3 step 3).
        let is_own =
            request.to().is_ok_and(|to| to.uri.user_decoded().is_some_and(|user| user == extension.number));
        if !is_own {
            self.denied(flow, request, Denial::Forbidden);
            return self.refuse(now, key, Reply::new(StatusCode::FORBIDDEN));
        }
        let result = Registration::from_request(request, *flow)
            .and_then(|registration| self.registrar.register(now.instant, &aor, registration));
        if result.as_ref().is_ok_and(|bindings| !bindings.is_empty()) {
            self.tell_rooms(now, rooms::Input::Free(id));
        }
        let response = reply(request, result.as_deref(), now.instant);
        let mut answer = Reply::new(response.status());
        for name in ["Contact", "Path", "Require", "Min-Expires"] {
            for value in response.headers().header_all(name) {
                answer = answer.header(name, value);
            }
        }
        self.respond(now, key, answer);
    }

    /// Identifies the sender of a request that only a phone may send.
    pub(super) fn phone(&mut self, now: Now, flow: &Flow, request: &Request) -> Sender {
        let source = flow.remote.ip();
        let registrar = &self.registrar;
        let registered = |aor: &str| registrar.is_registered_from(aor, now.instant, source);
        self.gate.phone(now.instant, &self.directory, request, source, &registered)
    }

    fn denied(&mut self, flow: &Flow, request: &Request, denial: Denial) {
        self.push(Output::Notice(Notice::Denied(Denied::new(flow.remote.ip(), request, denial))));
    }

    /// Returns an identified sender; challenges or refuses any other.
    pub(super) fn known(
        &mut self,
        now: Now,
        key: &ServerKey,
        flow: &Flow,
        request: &Request,
        sender: Sender,
    ) -> Option<Sender> {
        match sender {
            Sender::Extension(_) | Sender::Trunk(_) => {
                self.ua.prove(key);
                if flow.protocol.is_reliable() {
                    self.push(Output::Proven(*flow));
                } else if matches!(sender, Sender::Extension(_)) {
                    self.admission.prove(now.instant, flow.remote);
                }
                return Some(sender);
            }
            Sender::Challenge(mut challenges, why) => {
                let agent = request.user_agent().unwrap_or_default();
                let is_md5 = |challenge: &String| challenge.contains("algorithm=MD5");
                if self.config.md5_only.iter().any(|prefix| agent.starts_with(prefix.as_str()))
                    && challenges.iter().any(is_md5)
                {
                    challenges.retain(is_md5);
                }
                let mut reply = Reply::new(StatusCode::UNAUTHORIZED);
                // The user agent sets the real tag; this one only reserves its length.
                if let Ok(sized) = challenge_reply(request, reply.status(), "0123456789abcdef", &challenges) {
                    for challenge in sized.headers().header_all(Name::WwwAuthenticate) {
                        reply = reply.header(Name::WwwAuthenticate.as_str(), challenge);
                    }
                }
                if let Some(denial) = Denial::of(why) {
                    self.denied(flow, request, denial);
                }
                if let AuthRefusal::Wrong { reached: Some(limit) } = why {
                    self.guessed(now, flow, request, limit);
                }
                self.refuse(now, key, reply);
            }
            Sender::Limited(retry_after) => {
                self.denied(flow, request, Denial::Limited);
                // Sent only to a source that failed before, whether or not the account exists.
                let reply = Reply::new(StatusCode::FORBIDDEN).reason(LOCKED_OUT);
                let seconds = retry_after.as_secs().max(1);
                self.refuse(now, key, reply.header(Name::RetryAfter.as_str(), seconds.to_string()));
            }
            Sender::Refused => self.refuse(now, key, Reply::new(StatusCode::FORBIDDEN)),
        }
        None
    }

    /// Refuses an unknown sender, keeping no state.
    fn refuse(&mut self, now: Now, key: &ServerKey, reply: Reply) {
        // Fails when the transaction is already over; then no response is needed.
        let _ = self.ua.refuse(now.instant, key, reply);
    }

    fn refuse_call(&mut self, now: Now, key: &ServerKey, refused: Refused) {
        let mut reply = Reply::new(refused.status);
        if let Some(why) = refused.why {
            reply = reply.reason(why);
        }
        self.respond(now, key, reply);
        if let Some(facts) = refused.facts {
            let outcome =
                Outcome { ended_after_us: Some(0), hangup_cause: Some(refused.cause), ..Outcome::default() };
            self.give_record(now, Box::new(build(&facts, outcome)));
        }
    }
}

/// The reason phrase that a phone shows after too many wrong passwords.
const LOCKED_OUT: &str = "Too Many Wrong Passwords";

/// Returns the number that a URI dials: the user of a SIP URI without its parameters, or a `tel:` number.
pub(super) fn dialled(uri: &Uri) -> Option<String> {
    let user = uri.user_decoded()?;
    // A telephone-subscriber has parameters after its digits (RFC 3261 §19.1.6).
    let digits = user.split(';').next().unwrap_or_default();
    Some(digits.to_owned()).filter(|digits| !digits.is_empty())
}

/// Returns the offer of an INVITE.
fn offer_of(request: &Request) -> Result<Option<SessionDescription>, Reply> {
    if request.body().is_empty() {
        return Ok(None);
    }
    if !request.headers().is_content_type("application/sdp") {
        let reply = Reply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(reply.header(Name::Accept.as_str(), "application/sdp"));
    }
    match description(request.headers(), request.body()) {
        Some(offer) => Ok(Some(offer)),
        None => Err(Reply::new(StatusCode::BAD_REQUEST).reason("Bad Session Description")),
    }
}

pub(super) fn allow(reply: Reply) -> Reply {
    reply.header("Allow", "INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, INFO, MESSAGE")
}
