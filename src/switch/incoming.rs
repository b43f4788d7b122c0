//! Requests that come in: calls, registrations, and what is answered without a call.

use std::sync::Arc;

use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::directory::Extension;
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_sip::auth::{Refusal as AuthRefusal, challenge_reply};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Host, Method, Name, NameAddr, Request, StatusCode, Uri};
use sidetone_sip::registrar::{Binding, Registration, reply};
use sidetone_sip::sdp::{CodecPolicy, SessionDescription};
use sidetone_sip::transaction::ServerKey;
use sidetone_sip::ua::{LegKey, Reply};

use crate::cdr::build::{Facts, Outcome, build};
use crate::routing::{Directory, Origin, Refusal, route};
use crate::switch::call::Call;
use crate::switch::face::{MediaCommand, Ports, Setup};
use crate::switch::gate::Sender;
use crate::switch::machine::{Invitation, LiveCall, Notice, Now, Output, Switch, description};

/// A call whose INVITE may be placed: who calls what, and where that is.
struct Placement {
    facts: Facts,
    caller_policy: CodecPolicy,
    callee_policy: CodecPolicy,
    bindings: Vec<Binding>,
    invitation: Invitation,
}

/// An INVITE that is refused; with `facts` it is a call and leaves a record.
struct Refused {
    status: StatusCode,
    cause: HangupCause,
    facts: Option<Box<Facts>>,
}

impl Switch {
    /// A new INVITE.
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
        let dialled = request.parsed_uri().ok().and_then(|uri| dialled(&uri)).unwrap_or_default();
        let sender = self.gate.caller(now.instant, &directory, request, &dialled, source);
        let Some(sender) = self.known(now, &key, &flow, request, sender) else { return };
        let offer = match offer_of(request) {
            Ok(offer) => offer,
            Err(reply) => return self.respond(now, &key, reply),
        };
        let placement = match self.place(now, &directory, &sender, request, dialled) {
            Ok(placement) => placement,
            Err(refused) => return self.refuse_call(now, &key, refused),
        };
        let Placement { facts, caller_policy, callee_policy, bindings, invitation } = placement;
        let id = facts.call;
        let setup = Setup {
            facts,
            limits: self.config.limits,
            offer,
            caller_policy,
            callee_policy,
            caller_at: source,
            callees_at: bindings.iter().map(|binding| binding.flow.remote.ip()).collect(),
            session_id: self.session_id(),
        };
        match Call::new(now.instant, setup, ports) {
            Ok(call) => self.adopt(now, id, LiveCall::new(call, key, leg, bindings, invitation)),
            Err(stillborn) => {
                for port in stillborn.ports {
                    self.push(Output::Media(port, MediaCommand::Close));
                }
                let status = StatusCode::new(stillborn.status).unwrap_or(StatusCode::SERVER_ERROR);
                let cause = match stillborn.status {
                    503 => HangupCause::SwitchCongestion,
                    other => HangupCause::from_sip_status(other),
                };
                self.refuse_call(now, &key, Refused { status, cause, facts: Some(stillborn.facts) });
            }
        }
    }

    /// Any other request: of a leg, or outside of dialogs.
    pub(super) fn requested(
        &mut self,
        now: Now,
        leg: Option<LegKey>,
        key: &ServerKey,
        flow: &Flow,
        request: &Request,
    ) {
        match (request.method(), leg) {
            (Method::Options, _) => {
                self.respond(now, key, allow(Reply::new(StatusCode::OK)).header("Accept", "application/sdp"))
            }
            (Method::Register, None) => self.register(now, key, flow, request),
            (Method::Other(_), _) => self.refuse(now, key, allow(Reply::new(StatusCode::NOT_IMPLEMENTED))),
            (_, Some(_)) => self.respond(now, key, allow(Reply::new(StatusCode::METHOD_NOT_ALLOWED))),
            // Requests that make sense inside a dialog only.
            (Method::Bye | Method::Info | Method::Notify | Method::Prack | Method::Update, None) => {
                self.refuse(now, key, Reply::new(StatusCode::NO_TRANSACTION));
            }
            // Whoever wants one of these proves who it is before it learns what we know (RFC 3261 §22.1).
            (_, None) => {
                let directory = Arc::clone(&self.directory);
                let sender = self.gate.phone(now.instant, &directory, request, flow.remote.ip());
                if self.known(now, key, flow, request, sender).is_some() {
                    self.respond(now, key, allow(Reply::new(StatusCode::METHOD_NOT_ALLOWED)));
                }
            }
        }
    }

    fn register(&mut self, now: Now, key: &ServerKey, flow: &Flow, request: &Request) {
        let directory = Arc::clone(&self.directory);
        let sender = self.gate.phone(now.instant, &directory, request, flow.remote.ip());
        let Some(Sender::Extension(id)) = self.known(now, key, flow, request, sender) else { return };
        let Some((extension, aor)) = directory.extension(id).and_then(|e| Some((e, directory.aor(e)?)))
        else {
            return self.refuse(now, key, Reply::new(StatusCode::FORBIDDEN));
        };
        // Whoever proves to be 1001 registers 1001 and nobody else (RFC 3261 §10.3 step 3).
        let is_own =
            request.to().is_ok_and(|to| to.uri.user_decoded().is_some_and(|user| user == extension.number));
        if !is_own {
            return self.refuse(now, key, Reply::new(StatusCode::FORBIDDEN));
        }
        let result = Registration::from_request(request, *flow)
            .and_then(|registration| self.registrar.register(now.instant, &aor, registration));
        let response = reply(request, result.as_deref(), now.instant);
        let mut answer = Reply::new(response.status());
        for name in ["Contact", "Path", "Require", "Min-Expires"] {
            for value in response.headers().header_all(name) {
                answer = answer.header(name, value);
            }
        }
        self.respond(now, key, answer);
    }

    /// The sender when it is somebody; others are challenged or refused here.
    fn known(
        &mut self,
        now: Now,
        key: &ServerKey,
        flow: &Flow,
        request: &Request,
        sender: Sender,
    ) -> Option<Sender> {
        match sender {
            Sender::Extension(_) | Sender::Trunk(_) => return Some(sender),
            Sender::Challenge(mut challenges, why) => {
                let agent = request.user_agent().unwrap_or_default();
                let is_md5 = |challenge: &String| challenge.contains("algorithm=MD5");
                if self.config.md5_only.iter().any(|prefix| agent.starts_with(prefix.as_str()))
                    && challenges.iter().any(is_md5)
                {
                    challenges.retain(is_md5);
                }
                let mut reply = Reply::new(StatusCode::UNAUTHORIZED);
                // The user agent sets the tag; the one here only takes its room in the measure.
                if let Ok(sized) = challenge_reply(request, reply.status(), "0123456789abcdef", &challenges) {
                    for challenge in sized.headers().header_all(Name::WwwAuthenticate) {
                        reply = reply.header(Name::WwwAuthenticate.as_str(), challenge);
                    }
                }
                if why == (AuthRefusal::Wrong { closed: true }) {
                    self.push(Output::Notice(Notice::Guessing(flow.remote.ip())));
                }
                self.refuse(now, key, reply);
            }
            Sender::Refused => self.refuse(now, key, Reply::new(StatusCode::FORBIDDEN)),
        }
        None
    }

    /// Answers a stranger and forgets it.
    fn refuse(&mut self, now: Now, key: &ServerKey, reply: Reply) {
        // Refused by the layer when the transaction is over already: then there is nobody to answer.
        let _ = self.ua.refuse(now.instant, key, reply);
    }

    fn refuse_call(&mut self, now: Now, key: &ServerKey, refused: Refused) {
        self.respond(now, key, Reply::new(refused.status));
        if let Some(facts) = refused.facts {
            let outcome =
                Outcome { ended_after_us: Some(0), hangup_cause: Some(refused.cause), ..Outcome::default() };
            self.push(Output::Ended(Box::new(build(&facts, outcome))));
        }
    }

    /// Where a call of a known sender leads.
    fn place(
        &mut self,
        now: Now,
        directory: &Directory,
        sender: &Sender,
        request: &Request,
        dialled: String,
    ) -> Result<Placement, Refused> {
        let call = self.call_id(now.wall);
        let nobody =
            || Refused { status: StatusCode::FORBIDDEN, cause: HangupCause::CallRejected, facts: None };
        let origin = match sender {
            Sender::Extension(id) => Origin::Extension(directory.extension(*id).ok_or_else(nobody)?),
            Sender::Trunk(id) => Origin::Trunk(directory.trunk(*id).ok_or_else(nobody)?),
            Sender::Challenge(..) | Sender::Refused => return Err(nobody()),
        };
        let caller = Caller::of(origin, request);
        let facts = |organisation: OrganisationId, callee: Option<&Extension>, routed: Option<&str>| {
            let currency = directory.organisation(organisation)?.currency;
            let extension = caller.extension.or(callee);
            Some(Facts {
                call,
                organisation,
                currency,
                extension: extension.map(|extension| extension.id),
                team: extension.and_then(|extension| extension.team_id),
                trunk: caller.trunk,
                direction: if caller.trunk.is_some() { Direction::Inbound } else { Direction::Internal },
                node: self.config.node,
                started_at: now.wall,
                caller_number: caller.number.clone(),
                destination_number: Some(routed.unwrap_or(&dialled).to_owned()),
                dialled_number: routed.map(|_| dialled.clone()),
                tariff: None,
            })
        };
        let route =
            route(directory, origin, &dialled).map_err(|Refusal::Unallocated(organisation)| Refused {
                status: StatusCode::NOT_FOUND,
                cause: HangupCause::UnallocatedNumber,
                facts: organisation.and_then(|organisation| facts(organisation, None, None)).map(Box::new),
            })?;
        let facts = facts(route.organisation_id, Some(route.extension), route.number).ok_or_else(nobody)?;
        let aor = directory.aor(route.extension).ok_or_else(nobody)?;
        let bindings = self.registrar.lookup(&aor, now.instant);
        if bindings.is_empty() {
            let status = StatusCode::TEMPORARILY_UNAVAILABLE;
            return Err(Refused {
                status,
                cause: HangupCause::UserNotRegistered,
                facts: Some(Box::new(facts)),
            });
        }
        let domain = aor.split_once('@').map_or("", |(_, domain)| domain);
        Ok(Placement {
            facts,
            caller_policy: caller.policy(),
            callee_policy: CodecPolicy::new(route.extension.codecs.iter().cloned()),
            bindings,
            invitation: Invitation {
                from: caller.address(domain),
                to: format!("<sip:{aor}>"),
                max_forwards: request.max_forwards().unwrap_or(70).saturating_sub(1),
            },
        })
    }
}

/// Who calls, as the callee and the record see it.
struct Caller<'a> {
    extension: Option<&'a Extension>,
    trunk: Option<TrunkId>,
    number: Option<String>,
    display: Option<String>,
}

impl<'a> Caller<'a> {
    /// An extension calls under its own number, whatever its From claims; a trunk's From is the carrier's word.
    fn of(origin: Origin<'a>, request: &Request) -> Self {
        let from = request.from().ok();
        match origin {
            Origin::Extension(extension) => Caller {
                extension: Some(extension),
                trunk: None,
                number: Some(extension.number.clone()),
                display: Some(extension.name.clone()).filter(|name| !name.is_empty()),
            },
            Origin::Trunk(trunk) => Caller {
                extension: None,
                trunk: Some(trunk.id),
                number: from
                    .as_ref()
                    .and_then(|from| dialled(&from.uri))
                    .filter(|number| number != "anonymous"),
                display: from.and_then(|from| from.display).filter(|name| !name.is_empty()),
            },
        }
    }

    fn policy(&self) -> CodecPolicy {
        self.extension
            .map_or(CodecPolicy::ANY, |extension| CodecPolicy::new(extension.codecs.iter().cloned()))
    }

    /// The From of the INVITE to the callee.
    fn address(&self, domain: &str) -> String {
        let user = self.number.as_deref().unwrap_or("anonymous");
        let host = Host::parse(domain).unwrap_or_else(|_| Host::Name("anonymous.invalid".to_owned()));
        let address = NameAddr::new(Uri::sip(host, None).with_user(user));
        match &self.display {
            Some(display) => address.with_display(display).to_string(),
            None => address.to_string(),
        }
    }
}

/// The number that a URI dials: the user of a SIP URI without its parameters, or a `tel:` number.
fn dialled(uri: &Uri) -> Option<String> {
    let user = uri.user_decoded()?;
    // A telephone-subscriber carries parameters behind its digits (RFC 3261 §19.1.6).
    let digits = user.split(';').next().unwrap_or_default();
    Some(digits.to_owned()).filter(|digits| !digits.is_empty())
}

/// The offer of an INVITE.
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

fn allow(reply: Reply) -> Reply {
    reply.header("Allow", "INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER")
}
