//! Calls placed by rooms: an extension's phones ring at the same time; an outside number is hunted over trunks as in
//! any call. A call that a program or a moderator requested follows the forwarding of the extension. A call to a
//! default member rings its phones only, because the room repeats the call until they can be reached.

use sidetone_call::media_plan::srtp_rule;
use sidetone_call::record::Facts;
use sidetone_model::call::{Direction, HangupCause, Transport};
use sidetone_model::cdr::Called;
use sidetone_model::directory::Extension;
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::OrganisationId;
use sidetone_model::room::{ControlRefused, DialKind, DialRequest};
use sidetone_model::time::Now;
use sidetone_sip::message::{Host, NameAddr, StatusCode, Uri};
use sidetone_sip::sdp::{CodecPolicy, SrtpRule};

use crate::billing::Unpaid;
use crate::call_limits::limits_of;
use crate::conference::{Dial, DialEnd, Goal};
use crate::diverting;
use crate::hunt::{CallerId, Hunt};
use crate::io::{CalleeSide, Callees, Forwards, Limits, Setup, Sides};
use crate::live::{Asked, Callee, Diversion, LegIdentity, MAX_FORWARDS, NewCall};
use crate::placement::{Dialled, Onward, Placement, PlacementContext};
use crate::routing::{Reason, outside};

/// A room's call that may be placed.
struct Summons {
    facts: Facts,
    policy: CodecPolicy,
    srtp: SrtpRule,
    callees: Vec<Callee>,
    hunt: Option<Hunt>,
    forwards: Forwards,
    diverted: Vec<Diversion>,
}

/// Places calls for rooms.
pub(super) struct Dialler<'a>(pub(super) PlacementContext<'a>);

impl Dialler<'_> {
    /// Returns the call to place for a room.
    ///
    /// # Errors
    /// Why it is not placed.
    pub(super) fn place(&mut self, now: Now, dial: &Dial, limits: Limits) -> Result<NewCall, DialEnd> {
        let Summons { facts, policy, srtp, callees, hunt, forwards, diverted } = match dial.kind {
            DialKind::Extension => self.summon_extension(now, dial)?,
            DialKind::External => self.summon_world(now, dial)?,
        };
        let room = dial.room;
        let rung = match hunt {
            Some(_) => Callees::InTurn,
            None => Callees::AtOnce(callees.iter().map(|callee| callee.at).collect()),
        };
        let session_id = self.0.ids.session();
        let group = self.0.conferences.group_of(&Goal::Room(room)).unwrap_or(session_id);
        let setup = Setup {
            limits: limits_of(limits, self.0.directory, &facts),
            facts,
            sides: Sides::FromRoom { callee: CalleeSide { policy, srtp, callees: rung, forwards } },
            session_id,
            group,
            keys: self.0.ids.keys(),
        };
        Ok(NewCall {
            setup,
            caller: None,
            callees,
            hunt,
            goal: Some(Goal::Dialled { dial: dial.id }),
            asked: dial.follows.then_some(Asked::NOTHING),
            diverted,
            request: None,
        })
    }

    fn summon_extension(&mut self, now: Now, dial: &Dial) -> Result<Summons, DialEnd> {
        let directory = self.0.directory;
        let line = directory.line(dial.organisation, &dial.target).ok_or(DialEnd::Status(404))?;
        let aor = directory.aor(line).ok_or(DialEnd::Status(404))?;
        let bindings = self.0.registrar.lookup(&aor, now.instant);
        if dial.follows
            && let Some((reason, target)) = diverting::target_at_once(line, !bindings.is_empty())
        {
            return self.summon_elsewhere(now, dial, line, (reason, target));
        }
        if line.do_not_disturb {
            return Err(DialEnd::Status(480));
        }
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
                let identity = LegIdentity::of(self.0.ids.leg(), line);
                Callee::bound(binding, identity, &from, &to, MAX_FORWARDS)
            })
            .collect();
        let facts = self.facts_of_line(now, dial, line).ok_or(DialEnd::Status(404))?;
        let (policy, srtp) = (CodecPolicy::new(line.codecs.iter().cloned()), srtp_rule(line.srtp));
        let forwards = if dial.follows { diverting::forwards(line) } else { Forwards::default() };
        Ok(Summons { facts, policy, srtp, callees, hunt: None, forwards, diverted: Vec::new() })
    }

    /// Places the call to the forwarding target of the extension, unless that is a room.
    fn summon_elsewhere(
        &mut self,
        now: Now,
        dial: &Dial,
        line: &Extension,
        (reason, target): (ForwardReason, &str),
    ) -> Result<Summons, DialEnd> {
        let unreached = DialEnd::Status(480);
        let mut diverted = Vec::new();
        diverting::extend(&mut diverted, &line.number, reason, target).ok_or(unreached)?;
        let before = self.facts_of_line(now, dial, line).ok_or(DialEnd::Status(404))?;
        let shown = LegIdentity {
            id: self.0.ids.leg(),
            extension: None,
            number: Some(dial.caller_number.clone()),
            name: dial.caller_name.clone(),
        };
        let dialled = Dialled { number: target, call: Some(before.call), diverted, device: None };
        let placed = self.0.place_forward(now, line.id, &shown, Asked::NOTHING, dialled);
        let Placement { facts, callee_policy: policy, srtp: (_, srtp), onward, forwards, diverted, .. } =
            placed.map_err(|refused| match (refused.status, refused.cause) {
                (StatusCode::PAYMENT_REQUIRED, _) => DialEnd::NoCredit,
                (_, HangupCause::NoRouteDestination | HangupCause::OutgoingCallBarred) => DialEnd::NoRoute,
                _ => unreached,
            })?;
        let (callees, hunt) = match onward {
            Onward::Bindings(callees) => (callees, None),
            Onward::Room(_) => return Err(unreached),
            Onward::World(hunt) => (Vec::new(), Some(*hunt)),
        };
        let facts = diverting::facts(before, facts, &diverted);
        Ok(Summons { facts, policy, srtp, callees, hunt, forwards, diverted })
    }

    fn summon_world(&mut self, now: Now, dial: &Dial) -> Result<Summons, DialEnd> {
        let directory = self.0.directory;
        let outside = outside(directory, dial.organisation, &dial.target).map_err(|_| DialEnd::NoRoute)?;
        if self.0.calls.is_at_outbound_limit(directory, dial.organisation) {
            return Err(DialEnd::Status(503));
        }
        let number = directory.main_number(dial.organisation).map(|number| number.number.clone());
        let caller = CallerId { number, line: dial.caller_number.clone(), anonymous: false };
        let mut facts = self.facts_of_dial(now, dial).ok_or(DialEnd::Status(404))?;
        facts.direction = Direction::Outbound;
        facts.caller_number = caller.number.clone().or_else(|| Some(dial.caller_number.clone()));
        facts.destination_number = Some(outside.number.clone());
        facts.dialled_number = (outside.number != dial.target).then(|| dial.target.clone());
        let hunt = Hunt::new(dial.organisation, &outside, caller, MAX_FORWARDS);
        let rated = self.0.billing.rate(now, facts);
        let facts = rated.map_err(|(unpaid, _)| match unpaid {
            Unpaid::NoCredit => DialEnd::NoCredit,
            Unpaid::NoRate => DialEnd::NoRoute,
        })?;
        let policy = CodecPolicy::ANY;
        Ok(Summons {
            facts,
            policy,
            srtp: SrtpRule::Off,
            callees: Vec::new(),
            hunt: Some(hunt),
            forwards: Forwards::default(),
            diverted: Vec::new(),
        })
    }

    /// Returns the facts of a room's call to an extension.
    fn facts_of_line(&mut self, now: Now, dial: &Dial, line: &Extension) -> Option<Facts> {
        let facts = self.facts_of_dial(now, dial)?;
        Some(Facts {
            caller_number: Some(dial.caller_number.clone()),
            extension: Some(line.id),
            agent: line.agent_id,
            team: line.team_id,
            called: Some(Called { extension_id: line.id, team_id: line.team_id }),
            ..facts
        })
    }

    /// Returns the facts of a call placed by a room; `None` when the organisation was deleted.
    fn facts_of_dial(&self, now: Now, dial: &Dial) -> Option<Facts> {
        Some(Facts {
            call: dial.call,
            organisation: dial.organisation,
            currency: self.0.directory.organisation(dial.organisation)?.currency,
            extension: None,
            agent: None,
            team: None,
            called: None,
            trunk: None,
            direction: Direction::Internal,
            transport: Transport::Sip,
            node: self.0.node,
            started_at: now.wall,
            caller_number: None,
            destination_number: Some(dial.target.clone()),
            dialled_number: None,
            forwarded: None,
            tariff: None,
        })
    }

    /// Checks whether a target can be dialled now, so that the requester gets the result immediately.
    ///
    /// # Errors
    /// Why it cannot be dialled.
    pub(super) fn may_dial(
        &mut self,
        now: Now,
        organisation: OrganisationId,
        request: &DialRequest,
    ) -> Result<(), ControlRefused> {
        let directory = self.0.directory;
        match request.kind {
            DialKind::Extension => {
                let line = directory.line(organisation, &request.target);
                let line = line.and_then(|line| Some((line, directory.aor(line)?)));
                let (line, aor) = line.ok_or_else(|| ControlRefused::NoExtension(request.target.clone()))?;
                let is_reachable = !self.0.registrar.lookup(&aor, now.instant).is_empty();
                if !is_reachable && diverting::target_at_once(line, is_reachable).is_none() {
                    return Err(ControlRefused::Unregistered(request.target.clone()));
                }
                Ok(())
            }
            DialKind::External => self.may_dial_world(now, organisation, &request.target),
        }
    }

    fn may_dial_world(
        &mut self,
        now: Now,
        organisation: OrganisationId,
        target: &str,
    ) -> Result<(), ControlRefused> {
        let directory = self.0.directory;
        let no_route = |why: &str| ControlRefused::NoRoute(why.to_owned());
        let outside = outside(directory, organisation, target).map_err(|reason| match reason {
            Reason::NoCountry => no_route("the number is national and the organisation names no country"),
            Reason::NoTrunk => no_route("no trunk takes outbound calls"),
            Reason::Unallocated => ControlRefused::NoNumber,
        })?;
        if self.0.calls.is_at_outbound_limit(directory, organisation) {
            return Err(ControlRefused::Busy);
        }
        self.0.billing.may_pay(now, organisation, &outside.number).map_err(|unpaid| match unpaid {
            Unpaid::NoCredit => ControlRefused::NoCredit,
            Unpaid::NoRate => no_route("no rate covers the number"),
        })
    }
}
