//! Calls placed by rooms: an extension's phones ring at once; an outside number is hunted over trunks as in
//! any call.

use std::sync::Arc;

use sidetone_call::record::Facts;
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::cdr::Called;
use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::room::{ControlRefused, DialKind, DialRequest};
use sidetone_sip::message::{Host, NameAddr, Uri};
use sidetone_sip::sdp::CodecPolicy;

use crate::billing::Unpaid;
use crate::call::Call;
use crate::face::{CalleeSide, Callees, MediaCommand, Ports, Setup, Sides};
use crate::live::{Callee, LegIdentity, LiveCall};
use crate::machine::{Now, Output, Switch};
use crate::outbound::{CallerId, Hunt};
use crate::rooms::{self, Dial, DialEnd, Goal};
use crate::routing::{Directory, Reason, outside};

/// A room's call that may be placed.
struct Summons {
    facts: Facts,
    policy: CodecPolicy,
    callees: Vec<Callee>,
    hunt: Option<Hunt>,
}

impl Switch {
    /// Places a call for a room.
    pub(super) fn dial(&mut self, now: Now, dial: Dial, ports: &mut dyn Ports) {
        let id = dial.id;
        if let Err(end) = self.try_to_dial(now, dial, ports) {
            self.tell_rooms(now, rooms::Input::DialFailed { dial: id, end });
        }
    }

    fn try_to_dial(&mut self, now: Now, dial: Dial, ports: &mut dyn Ports) -> Result<(), DialEnd> {
        if !self.accepts || self.calls.len() >= self.config.calls_max {
            return Err(DialEnd::Status(503));
        }
        let Summons { facts, policy, callees, hunt } = self.summon(now, &dial)?;
        let (id, room) = (facts.call, dial.room);
        let rung = match hunt {
            Some(_) => Callees::InTurn,
            None => Callees::AtOnce(callees.iter().map(|callee| callee.flow.remote.ip()).collect()),
        };
        let session_id = self.session_id();
        let group = self.group_of(&Goal::Room(room)).unwrap_or(session_id);
        let setup = Setup {
            limits: self.limits_of(&facts),
            facts,
            sides: Sides::FromRoom { callee: CalleeSide { policy, callees: rung } },
            session_id,
            group,
        };
        match Call::new(now.instant, setup, ports) {
            Ok(call) => {
                self.conferences.dials.insert(dial.id, id);
                let goal = Some(Goal::Dialled { dial: dial.id });
                self.adopt(now, id, LiveCall::new(call, None, callees, hunt, goal));
                Ok(())
            }
            Err(stillborn) => {
                for port in stillborn.ports {
                    self.push(Output::Media(port, MediaCommand::Close));
                }
                self.forget_price(now, id);
                Err(DialEnd::Status(stillborn.status))
            }
        }
    }

    fn summon(&mut self, now: Now, dial: &Dial) -> Result<Summons, DialEnd> {
        let directory = Arc::clone(&self.directory);
        match dial.kind {
            DialKind::Extension => self.summon_extension(now, &directory, dial),
            DialKind::External => self.summon_world(now, &directory, dial),
        }
    }

    fn summon_extension(&mut self, now: Now, directory: &Directory, dial: &Dial) -> Result<Summons, DialEnd> {
        let line = directory.line(dial.organisation, &dial.target).ok_or(DialEnd::Status(404))?;
        let aor = directory.aor(line).ok_or(DialEnd::Status(404))?;
        let bindings = self.registrar.lookup(&aor, now.instant);
        if bindings.is_empty() {
            return Err(DialEnd::Unregistered);
        }
        let domain = aor.split_once('@').map_or("", |(_, domain)| domain);
        let host = Host::parse(domain).map_err(|_| DialEnd::Status(404))?;
        let from = NameAddr::new(Uri::sip(host, None).with_user(&dial.caller_number));
        let from = from.with_display(&dial.caller_name).to_string();
        let to = format!("<sip:{aor}>");
        let callees = bindings
            .iter()
            .map(|binding| {
                let identity = LegIdentity::of(self.leg_id(), line);
                Callee::bound(binding, identity, &from, &to, MAX_FORWARDS)
            })
            .collect();
        let mut facts = self.facts_of_dial(now, directory, dial).ok_or(DialEnd::Status(404))?;
        facts.caller_number = Some(dial.caller_number.clone());
        (facts.extension, facts.agent, facts.team) = (Some(line.id), line.agent_id, line.team_id);
        facts.called = Some(Called { extension_id: line.id, team_id: line.team_id });
        let policy = CodecPolicy::new(line.codecs.iter().cloned());
        Ok(Summons { facts, policy, callees, hunt: None })
    }

    fn summon_world(&mut self, now: Now, directory: &Directory, dial: &Dial) -> Result<Summons, DialEnd> {
        let outside =
            outside(directory, dial.organisation, &dial.target).map_err(|_| DialEnd::Status(404))?;
        if self.is_at_outbound_limit(directory, dial.organisation) {
            return Err(DialEnd::Status(503));
        }
        let number = directory.main_number(dial.organisation).map(|number| number.number.clone());
        let caller = CallerId { number, line: dial.caller_number.clone(), anonymous: false };
        let mut facts = self.facts_of_dial(now, directory, dial).ok_or(DialEnd::Status(404))?;
        facts.direction = Direction::Outbound;
        facts.caller_number = caller.number.clone().or_else(|| Some(dial.caller_number.clone()));
        facts.destination_number = Some(outside.number.clone());
        facts.dialled_number = (outside.number != dial.target).then(|| dial.target.clone());
        let hunt = Hunt::new(dial.organisation, &outside, caller, MAX_FORWARDS);
        let facts = self.rate(now, facts).map_err(|refused| DialEnd::Status(refused.status.as_u16()))?;
        Ok(Summons { facts, policy: CodecPolicy::ANY, callees: Vec::new(), hunt: Some(hunt) })
    }

    /// Returns the facts of a call placed by a room; `None` when the organisation was deleted.
    fn facts_of_dial(&mut self, now: Now, directory: &Directory, dial: &Dial) -> Option<Facts> {
        Some(Facts {
            call: self.call_id(now.wall),
            organisation: dial.organisation,
            currency: directory.organisation(dial.organisation)?.currency,
            extension: None,
            agent: None,
            team: None,
            called: None,
            trunk: None,
            direction: Direction::Internal,
            node: self.config.node,
            started_at: now.wall,
            caller_number: None,
            destination_number: Some(dial.target.clone()),
            dialled_number: None,
            tariff: None,
        })
    }

    /// Reports to the rooms that a phone rings for their call.
    pub(super) fn dial_rings(&mut self, now: Now, id: CallId) {
        if let Some(dial) = self.dial_of(id) {
            self.tell_rooms(now, rooms::Input::Ringing(dial));
        }
    }

    /// Reports to the rooms that their call was not answered.
    pub(super) fn dial_failed(&mut self, now: Now, id: CallId, status: u16) {
        let Some(dial) = self.dial_of(id) else { return };
        self.conferences.dials.remove(&dial);
        let cause = self.calls.get(&id).and_then(|live| live.call.ending()).map(|(cause, _)| cause);
        let end = match (cause, status) {
            (Some(HangupCause::NoAnswer), _) => DialEnd::NoAnswer,
            (_, 486 | 600) => DialEnd::Busy,
            (_, 603 | 607 | 608) => DialEnd::Declined,
            (_, status) => DialEnd::Status(status),
        };
        self.tell_rooms(now, rooms::Input::DialFailed { dial, end });
    }

    fn dial_of(&self, id: CallId) -> Option<rooms::DialId> {
        match self.calls.get(&id)?.goal {
            Some(Goal::Dialled { dial }) => {
                Some(dial).filter(|dial| self.conferences.dials.contains_key(dial))
            }
            _ => None,
        }
    }

    /// Checks whether a target can be dialled now, so that the requester gets the answer at once.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn may_dial(
        &mut self,
        now: Now,
        organisation: OrganisationId,
        request: &DialRequest,
    ) -> Result<(), ControlRefused> {
        if !self.accepts || self.calls.len() >= self.config.calls_max {
            return Err(ControlRefused::Busy);
        }
        let directory = Arc::clone(&self.directory);
        match request.kind {
            DialKind::Extension => {
                let line = directory.line(organisation, &request.target);
                let aor = line.and_then(|line| directory.aor(line));
                let aor = aor.ok_or_else(|| ControlRefused::NoExtension(request.target.clone()))?;
                if self.registrar.lookup(&aor, now.instant).is_empty() {
                    return Err(ControlRefused::Unregistered(request.target.clone()));
                }
                Ok(())
            }
            DialKind::External => self.may_dial_world(now, &directory, organisation, &request.target),
        }
    }

    fn may_dial_world(
        &mut self,
        now: Now,
        directory: &Directory,
        organisation: OrganisationId,
        target: &str,
    ) -> Result<(), ControlRefused> {
        let no_route = |why: &str| ControlRefused::NoRoute(why.to_owned());
        let outside = outside(directory, organisation, target).map_err(|reason| match reason {
            Reason::NoCountry => no_route("the number is national and the organisation names no country"),
            Reason::NoTrunk => no_route("no trunk takes calls to the world"),
            Reason::Unallocated => {
                no_route("the target is no telephone number: write it in E.164, with its +")
            }
        })?;
        if self.is_at_outbound_limit(directory, organisation) {
            return Err(ControlRefused::Busy);
        }
        self.may_pay(now, organisation, &outside.number).map_err(|unpaid| match unpaid {
            Unpaid::NoCredit => ControlRefused::NoCredit,
            Unpaid::NoRate => no_route("no rate covers the number"),
        })
    }
}

/// RFC 3261 §8.1.1.6.
const MAX_FORWARDS: u8 = 70;
