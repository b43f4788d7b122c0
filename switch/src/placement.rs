//! Placement of calls: what the INVITE of an identified sender means for the record, and which targets ring.

use sidetone_call::record::Facts;
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::cdr::Called;
use sidetone_model::directory::Extension;
use sidetone_model::ids::{LegId, OrganisationId, TrunkId};
use sidetone_model::room::RoomConfig;
use sidetone_sip::message::{Host, Name, NameAddr, Request, StatusCode, Uri};
use sidetone_sip::registrar::Binding;
use sidetone_sip::sdp::CodecPolicy;
use sidetone_sip::ua::Invite;

use crate::events::status_code;
use crate::gate::Sender;
use crate::incoming::dialled;
use crate::live::{Callee, LegIdentity};
use crate::machine::{Now, Switch};
use crate::outbound::{CallerId, Hunt};
use crate::rooms::{Goal, Who};
use crate::routing::{Directory, Origin, Reason, Refusal, Route, Target, route};

/// A call that may be placed: the caller, the number and the target.
pub(super) struct Placement {
    pub(super) facts: Facts,
    pub(super) caller: LegIdentity,
    pub(super) caller_policy: CodecPolicy,
    pub(super) callee_policy: CodecPolicy,
    pub(super) onward: Onward,
}

/// The target of a call.
pub(super) enum Onward {
    /// To the phones of an extension.
    Bindings(Vec<Callee>),
    /// Into a room, or into the prompt that asks for a room's number.
    Room(Goal),
    /// To an outside number.
    World(Box<Hunt>),
}

/// A refused INVITE; with `facts` it counts as a call and leaves a record.
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) cause: HangupCause,
    pub(super) facts: Option<Box<Facts>>,
    /// The reason phrase, where the standard one is not specific enough.
    pub(super) why: Option<&'static str>,
}

impl Refused {
    pub(super) fn of_call(status: StatusCode, cause: HangupCause, facts: Facts) -> Self {
        Refused { status, cause, facts: Some(Box::new(facts)), why: None }
    }

    pub(super) fn saying(self, why: &'static str) -> Self {
        Refused { why: Some(why), ..self }
    }

    fn stranger() -> Self {
        Refused { status: StatusCode::FORBIDDEN, cause: HangupCause::CallRejected, facts: None, why: None }
    }
}

impl Switch {
    /// Places a call of an identified sender.
    pub(super) fn place(
        &mut self,
        now: Now,
        directory: &Directory,
        sender: &Sender,
        request: &Request,
        dialled: &str,
    ) -> Result<Placement, Refused> {
        let origin = match sender {
            Sender::Extension(id) => {
                Origin::Extension(directory.extension(*id).ok_or_else(Refused::stranger)?)
            }
            Sender::Trunk(id) => Origin::Trunk(directory.trunk(*id).ok_or_else(Refused::stranger)?),
            Sender::Challenge(..) | Sender::Limited(_) | Sender::Refused => return Err(Refused::stranger()),
        };
        let caller = Caller::of(origin, request);
        let route = match route(directory, origin, dialled) {
            Ok(route) => route,
            Err(refusal) => return Err(self.unroutable(now, directory, &caller, dialled, refusal)),
        };
        let mut facts = self
            .facts(now, directory, &caller, route.organisation_id, dialled)
            .ok_or_else(Refused::stranger)?;
        if let Some(number) = &route.number {
            facts.destination_number = Some(number.clone());
            facts.dialled_number = Some(dialled.to_owned());
        }
        let max_forwards = request.max_forwards().unwrap_or(70).saturating_sub(1);
        match route {
            Route { target: Target::Conference(room), .. } => self.place_into_room(now, &caller, room, facts),
            Route { target: Target::Extension(callee), .. } => {
                self.place_extension(now, directory, &caller, callee, facts, max_forwards)
            }
            Route { target: Target::Outside(outside), organisation_id, .. } => {
                let extension = caller.extension.ok_or_else(Refused::stranger)?;
                let caller_id = CallerId::of(directory, extension, request);
                facts.direction = Direction::Outbound;
                facts.caller_number = caller_id.number.clone().or(facts.caller_number);
                // An emergency call must not be refused because of the organisation's other calls. Short
                // numbers have no `+`.
                if outside.number.starts_with('+') && self.is_at_outbound_limit(directory, organisation_id) {
                    let (status, cause) = (StatusCode::SERVICE_UNAVAILABLE, HangupCause::SwitchCongestion);
                    return Err(Refused::of_call(status, cause, facts).saying("Too Many Calls To The World"));
                }
                let facts = self.rate(now, facts)?;
                let hunt = Hunt::new(organisation_id, &outside, caller_id, max_forwards);
                Ok(Placement {
                    facts,
                    caller: caller.identity(self.leg_id()),
                    caller_policy: caller.policy(),
                    callee_policy: CodecPolicy::ANY,
                    onward: Onward::World(Box::new(hunt)),
                })
            }
        }
    }

    fn place_into_room(
        &mut self,
        now: Now,
        caller: &Caller<'_>,
        room: Option<&RoomConfig>,
        facts: Facts,
    ) -> Result<Placement, Refused> {
        let goal = room.map_or(Goal::Ask, |room| Goal::Room(room.id));
        let who = Who::new(
            caller.extension.map(|extension| extension.id),
            caller.number.as_deref().unwrap_or_default(),
        );
        // A caller with too many wrong PINs is refused before the answer.
        let admitted = room.map(|room| self.conferences.rooms.admits(now.instant, room.id, &who));
        if let Some(Err(status)) = admitted {
            let (cause, why) = match status {
                403 => (HangupCause::CallRejected, "Too Many Wrong PINs"),
                _ => (HangupCause::SwitchCongestion, "Too Many Callers"),
            };
            return Err(Refused::of_call(status_code(status), cause, facts).saying(why));
        }
        Ok(Placement {
            facts,
            caller: caller.identity(self.leg_id()),
            caller_policy: caller.policy(),
            callee_policy: CodecPolicy::ANY,
            onward: Onward::Room(goal),
        })
    }

    fn place_extension(
        &mut self,
        now: Now,
        directory: &Directory,
        caller: &Caller<'_>,
        callee: &Extension,
        mut facts: Facts,
        max_forwards: u8,
    ) -> Result<Placement, Refused> {
        let extension = caller.extension.unwrap_or(callee);
        (facts.extension, facts.agent) = (Some(extension.id), extension.agent_id);
        facts.team = extension.team_id;
        facts.called = Some(Called { extension_id: callee.id, team_id: callee.team_id });
        let aor = directory.aor(callee).ok_or_else(Refused::stranger)?;
        let bindings = self.registrar.lookup(&aor, now.instant);
        if bindings.is_empty() {
            let status = StatusCode::TEMPORARILY_UNAVAILABLE;
            return Err(Refused::of_call(status, HangupCause::UserNotRegistered, facts));
        }
        let domain = aor.split_once('@').map_or("", |(_, domain)| domain);
        let (from, to) = (caller.address(domain), format!("<sip:{aor}>"));
        let caller_identity = caller.identity(self.leg_id());
        let callees = bindings
            .iter()
            .map(|binding| {
                Callee::bound(binding, LegIdentity::of(self.leg_id(), callee), &from, &to, max_forwards)
            })
            .collect();
        Ok(Placement {
            facts,
            caller: caller_identity,
            caller_policy: caller.policy(),
            callee_policy: CodecPolicy::new(callee.codecs.iter().cloned()),
            onward: Onward::Bindings(callees),
        })
    }

    /// Returns the facts of a call from its INVITE; `None` when the organisation was deleted.
    fn facts(
        &mut self,
        now: Now,
        directory: &Directory,
        caller: &Caller<'_>,
        organisation: OrganisationId,
        dialled: &str,
    ) -> Option<Facts> {
        Some(Facts {
            call: self.call_id(now.wall),
            organisation,
            currency: directory.organisation(organisation)?.currency,
            extension: caller.extension.map(|extension| extension.id),
            agent: caller.extension.and_then(|extension| extension.agent_id),
            team: caller.extension.and_then(|extension| extension.team_id),
            called: None,
            trunk: caller.trunk,
            direction: if caller.trunk.is_some() { Direction::Inbound } else { Direction::Internal },
            node: self.config.node,
            started_at: now.wall,
            caller_number: caller.number.clone(),
            destination_number: Some(dialled.to_owned()),
            dialled_number: None,
            tariff: None,
        })
    }

    fn unroutable(
        &mut self,
        now: Now,
        directory: &Directory,
        caller: &Caller<'_>,
        dialled: &str,
        refusal: Refusal,
    ) -> Refused {
        let Refusal { organisation_id, reason } = refusal;
        let mut facts = organisation_id.and_then(|known| self.facts(now, directory, caller, known, dialled));
        if let (Some(facts), Reason::NoCountry | Reason::NoTrunk) = (&mut facts, reason) {
            facts.direction = Direction::Outbound;
        }
        let (status, cause, why) = match reason {
            Reason::NoCountry => (
                StatusCode::ADDRESS_INCOMPLETE,
                HangupCause::InvalidNumberFormat,
                Some("National Number Without A Country Code"),
            ),
            Reason::NoTrunk => {
                (StatusCode::NOT_FOUND, HangupCause::NoRouteDestination, Some("No Trunk To The World"))
            }
            Reason::Unallocated => (StatusCode::NOT_FOUND, HangupCause::UnallocatedNumber, None),
        };
        Refused { status, cause, facts: facts.map(Box::new), why }
    }
}

impl LegIdentity {
    /// Returns the identity of a leg to a phone of an extension.
    pub(super) fn of(id: LegId, extension: &Extension) -> Self {
        LegIdentity {
            id,
            extension: Some(extension.id),
            number: Some(extension.number.clone()),
            name: extension.name.clone(),
        }
    }
}

impl Callee {
    /// Returns the fork for a registered contact.
    pub(super) fn bound(
        binding: &Binding,
        identity: LegIdentity,
        from: &str,
        to: &str,
        max_forwards: u8,
    ) -> Self {
        let mut invite = Invite::new(binding.contact.to_string(), from, to)
            .header(Name::MaxForwards.as_str(), max_forwards.to_string());
        for route in &binding.path {
            invite = invite.header(Name::Route.as_str(), route.to_string());
        }
        Callee { flow: binding.way(), invite, identity, leg: None }
    }
}

/// The caller as the callee and the record see it.
struct Caller<'a> {
    extension: Option<&'a Extension>,
    trunk: Option<TrunkId>,
    number: Option<String>,
    display: Option<String>,
}

impl<'a> Caller<'a> {
    /// An extension calls with its own number, whatever its From claims. A trunk's From is taken as the
    /// carrier sends it.
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

    fn identity(&self, id: LegId) -> LegIdentity {
        match self.extension {
            Some(extension) => LegIdentity::of(id, extension),
            None => LegIdentity {
                id,
                extension: None,
                number: self.number.clone(),
                name: self.display.clone().unwrap_or_default(),
            },
        }
    }

    fn policy(&self) -> CodecPolicy {
        self.extension
            .map_or(CodecPolicy::ANY, |extension| CodecPolicy::new(extension.codecs.iter().cloned()))
    }

    /// Returns the From of the INVITE to the callee.
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
