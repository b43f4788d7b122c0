//! Calls that programs request: their checks, the call that rings the extension first, and its target.

use sidetone_call::media_plan::srtp_rule;
use sidetone_call::record::Facts;
use sidetone_model::call::{Direction, HangupCause, Transport};
use sidetone_model::call_request::{
    CallOrder, PlaceRefused, Placeable, RequestChange, RequestState, RequestedCall, RouteKind, WouldCall,
    WouldReach, WouldRing, reason_of,
};
use sidetone_model::cdr::{Called, Cdr};
use sidetone_model::directory::Extension;
use sidetone_model::ids::{ExtensionId, OrganisationId, RoomId};
use sidetone_model::money::Amount;
use sidetone_model::numbering::normalise;
use sidetone_model::problem::FieldProblem;
use sidetone_model::room::RoomName;
use sidetone_model::time::Now;
use sidetone_sip::message::{Host, NameAddr, Uri};
use sidetone_sip::registrar::Binding;
use sidetone_sip::sdp::{CodecPolicy, SrtpRule};

use crate::billing::Unpaid;
use crate::call_limits::limits_of;
use crate::conference::Goal;
use crate::diverting;
use crate::hunt::{CallerId, Hunt};
use crate::io::{CalleeSide, Callees, Forwards, Limits, Onward, Setup, Sides};
use crate::live::{Asked, Callee, LegIdentity, LiveCall, MAX_FORWARDS, NewCall, Requested, RequestedTarget};
use crate::placement::{Dialled, Placement, PlacementContext};
use crate::routing::{Directory, Outside, Reason, Route, Target, from_extension, is_short};
use crate::switch_io::{Output, Outputs};

/// Decides about requested calls.
pub(super) struct Requester<'a>(pub(super) PlacementContext<'a>);

/// A request that may be carried out.
struct Plan<'a> {
    from: &'a Extension,
    bindings: Vec<Binding>,
    /// The address of record of `from`.
    aor: String,
    organisation: OrganisationId,
    target: Target<'a>,
    /// The number as routed.
    number: String,
    caller_id: Option<String>,
}

/// The next step when the calling party of a requested call has answered.
pub(super) enum Continued {
    /// The call continues immediately: to a trunk, into a room, or to its end.
    Now { onward: Onward, goal: Option<Goal> },
    /// The target was placed by the dial plan of the calling extension.
    Placed(Box<Placement>),
}

impl<'a> Requester<'a> {
    /// Performs every check of a request.
    ///
    /// # Errors
    /// Why its call would not be placed.
    pub(super) fn check(
        &mut self,
        now: Now,
        from: ExtensionId,
        requested: &RequestedCall,
    ) -> Result<Placeable, PlaceRefused> {
        let plan = self.plan(now, from, requested)?;
        let mut warnings = Vec::new();
        let (route, caller_id) = match plan.target {
            Target::Conference(_) => (RouteKind::Room, None),
            Target::Extension(callee) => {
                let is_reachable = !self.bindings_of(now, callee).is_empty();
                if !is_reachable && diverting::target_at_once(callee, is_reachable).is_none() {
                    warnings.push("to: the extension has no registered phone".to_owned());
                }
                (RouteKind::Extension, None)
            }
            Target::Outside(_) => (RouteKind::Outside, plan.caller_id),
        };
        let price = match route {
            RouteKind::Outside => self.0.billing.sell_price(plan.organisation, &plan.number, now.wall),
            RouteKind::Extension | RouteKind::Room => None,
        };
        // A call without a price costs nothing in the organisation's currency, as its record says.
        let own = self.0.directory.organisation(plan.organisation).map(|known| known.currency);
        let price = price.map(|price| (price.per_minute, price.currency));
        let (per_minute, currency) =
            price.or_else(|| Some((Amount::ZERO, own?))).ok_or_else(|| wrong("from", NO_EXTENSION))?;
        let phones = u32::try_from(plan.bindings.len()).unwrap_or(u32::MAX);
        let would = WouldCall {
            from: WouldRing { extension_id: plan.from.id, number: plan.from.number.clone(), phones },
            to: WouldReach { number: plan.number, caller_id },
            route,
            sell_per_minute: per_minute.to_text(currency.places()),
            currency: currency.to_string(),
        };
        Ok(Placeable { call: self.0.ids.call(now.wall), would, warnings })
    }

    /// Returns the call that rings the extension.
    ///
    /// # Errors
    /// Why it is not placed.
    pub(super) fn place(
        &mut self,
        now: Now,
        order: &CallOrder,
        limits: Limits,
    ) -> Result<NewCall, PlaceRefused> {
        let requested = &order.requested;
        let plan = self.plan(now, order.from, requested)?;
        let mut facts = self.facts(now, order, &plan).ok_or_else(|| wrong("from", NO_EXTENSION))?;
        let (target, hunt) = match &plan.target {
            Target::Conference(room) => {
                (RequestedTarget::Room(room.map_or(Goal::Ask, |room| Goal::Room(room.id))), None)
            }
            Target::Extension(callee) => {
                let called = Called { extension_id: callee.id, team_id: callee.team_id };
                (RequestedTarget::Extension(called), None)
            }
            Target::Outside(outside) => {
                facts.direction = Direction::Outbound;
                facts.caller_number = plan.caller_id.clone().or(facts.caller_number);
                facts =
                    self.0.billing.rate(now, facts).map_err(|(unpaid, _)| wrong("to", text_of(unpaid)))?;
                (RequestedTarget::Outside, Some(hunt_of(&plan, outside)))
            }
        };
        let limits = limits_of(limits, self.0.directory, &facts);
        let seconds = |seconds: u32| std::time::Duration::from_secs(seconds.into());
        let call = requested.max_seconds.map_or(limits.call, |max| limits.call.min(seconds(max)));
        let callees = self.calling_party(&plan, requested.auto_answer);
        let session_id = self.0.ids.session();
        let group = match &target {
            RequestedTarget::Room(goal) => self.0.conferences.group_of(goal),
            RequestedTarget::Extension(_) | RequestedTarget::Outside => None,
        };
        let caller = CalleeSide {
            policy: policy_of(plan.from),
            srtp: srtp_rule(plan.from.srtp),
            callees: at_once(&callees),
            forwards: Forwards::default(),
        };
        let setup = Setup {
            facts,
            limits: Limits { ring: seconds(requested.ring_seconds), call, ..limits },
            sides: Sides::Requested { caller },
            session_id,
            group: group.unwrap_or(session_id),
            keys: self.0.ids.keys(),
        };
        let (reference, variables) = (requested.reference.clone(), requested.variables.clone());
        let request = Requested { target, reference, variables, rang: false, cancelled: false };
        Ok(NewCall {
            setup,
            caller: None,
            callees,
            hunt,
            goal: None,
            asked: Some(Asked::NOTHING),
            diverted: Vec::new(),
            request: Some(Box::new(request)),
        })
    }

    /// Returns the next step when the calling party has answered.
    pub(super) fn go_on(&mut self, now: Now, facts: &Facts, target: RequestedTarget) -> Continued {
        let onward = match target {
            RequestedTarget::Extension(_) => return self.call_extension(now, facts),
            RequestedTarget::Outside => Onward::Callee(CalleeSide {
                policy: CodecPolicy::ANY,
                srtp: SrtpRule::Off,
                callees: Callees::InTurn,
                forwards: Forwards::default(),
            }),
            RequestedTarget::Room(goal) => return Continued::Now { onward: Onward::Room, goal: Some(goal) },
        };
        Continued::Now { onward, goal: None }
    }

    /// Places the call to an extension as if the calling extension had dialled it: its forwarding applies.
    fn call_extension(&mut self, now: Now, facts: &Facts) -> Continued {
        let refused = |status, cause| Continued::Now { onward: Onward::Refused(status, cause), goal: None };
        let directory = self.0.directory;
        let caller = facts.extension.and_then(|caller| directory.extension(caller));
        let number = facts.dialled_number.as_deref().or(facts.destination_number.as_deref());
        let Some((caller, number)) = caller.zip(number) else {
            return refused(404, HangupCause::UnallocatedNumber);
        };
        let shown = LegIdentity::of(self.0.ids.leg(), caller);
        let dialled = Dialled { number, call: Some(facts.call), ..Dialled::new(number) };
        match self.0.place_transfer(now, caller.id, &shown, Asked::NOTHING, dialled) {
            Ok(placed) => Continued::Placed(Box::new(placed)),
            Err(refusal) => refused(refusal.status.as_u16(), refusal.cause),
        }
    }

    /// Performs every check of a request, and reports every wrong field.
    fn plan(
        &mut self,
        now: Now,
        from: ExtensionId,
        requested: &RequestedCall,
    ) -> Result<Plan<'a>, PlaceRefused> {
        let directory = self.0.directory;
        let found = directory.extension(from).and_then(|from| Some((from, directory.aor(from)?)));
        let (from, aor) = found.ok_or_else(|| wrong("from", NO_EXTENSION))?;
        let organisation = from.organisation_id;
        let RequestedCall { to, caller_id, .. } = requested;
        let problems = self.wrong_fields(now, organisation, Some(to), caller_id.as_deref());
        if !problems.is_empty() {
            return Err(PlaceRefused::Wrong(problems));
        }
        let caller_id = match caller_id {
            None => directory.number_shown_by(from).map(|number| number.number.clone()),
            Some(wanted) => own_number(directory, organisation, wanted),
        };
        let route = route_of(directory, organisation, to).map_err(|text| wrong("to", text))?;
        let Route { target, number, .. } = route;
        let bindings = self.bindings_of(now, from);
        if bindings.is_empty() {
            return Err(PlaceRefused::Unregistered);
        }
        if let Target::Outside(outside) = &target
            && !is_short(&outside.number)
            && self.0.calls.is_at_outbound_limit(directory, organisation)
        {
            return Err(PlaceRefused::Busy);
        }
        let number = number.unwrap_or_else(|| requested.to.clone());
        Ok(Plan { from, bindings, aor, organisation, target, number, caller_id })
    }

    /// Returns the problems of the fields that are checked against the directory and the organisation's credit.
    pub(super) fn wrong_fields(
        &mut self,
        now: Now,
        organisation: OrganisationId,
        to: Option<&str>,
        caller_id: Option<&str>,
    ) -> Vec<FieldProblem> {
        let directory = self.0.directory;
        let mut problems = Vec::new();
        if caller_id.is_some_and(|wanted| own_number(directory, organisation, wanted).is_none()) {
            problems.push(problem("caller_id", "must be one of the organisation's phone numbers"));
        }
        match to.map(|to| route_of(directory, organisation, to)) {
            Some(Ok(Route { target: Target::Outside(outside), .. })) => {
                let unpaid = self.0.billing.may_pay(now, organisation, &outside.number).err();
                problems.extend(unpaid.map(|unpaid| problem("to", text_of(unpaid))));
            }
            Some(Err(text)) => problems.push(problem("to", text)),
            Some(Ok(_)) | None => {}
        }
        problems
    }

    fn bindings_of(&self, now: Now, extension: &Extension) -> Vec<Binding> {
        let aor = self.0.directory.aor(extension);
        aor.map(|aor| self.0.registrar.lookup(&aor, now.instant)).unwrap_or_default()
    }

    /// Returns the forks to the phones that ring first; they show the target.
    fn calling_party(&mut self, plan: &Plan<'_>, auto_answer: bool) -> Vec<Callee> {
        let domain = domain_of(&plan.aor);
        let (from, to) = (address(domain, &plan.number, ""), format!("<sip:{}>", plan.aor));
        let forks = plan.bindings.iter().map(|binding| {
            let identity = LegIdentity::of(self.0.ids.leg(), plan.from);
            let fork = Callee::bound(binding, identity, &from, &to, MAX_FORWARDS);
            if !auto_answer {
                return fork;
            }
            let Callee { invite, .. } = fork;
            let invite = invite
                .header("Call-Info", format!("<sip:{domain}>;answer-after=0"))
                .header("Alert-Info", format!("<http://{domain}>;info=alert-autoanswer;delay=0"));
            Callee { invite, ..fork }
        });
        forks.collect()
    }

    /// Returns the facts of the call; `None` when the organisation was deleted.
    fn facts(&self, now: Now, order: &CallOrder, plan: &Plan<'_>) -> Option<Facts> {
        let dialled = &order.requested.to;
        Some(Facts {
            call: order.call,
            organisation: plan.organisation,
            currency: self.0.directory.organisation(plan.organisation)?.currency,
            extension: Some(plan.from.id),
            agent: plan.from.agent_id,
            team: plan.from.team_id,
            called: None,
            trunk: None,
            direction: Direction::Internal,
            transport: Transport::Sip,
            node: self.0.node,
            started_at: now.wall,
            caller_number: Some(plan.from.number.clone()),
            destination_number: Some(plan.number.clone()),
            dialled_number: (plan.number != *dialled).then(|| dialled.clone()),
            forwarded: None,
            tariff: None,
        })
    }
}

/// Adds the program's text to the record of a call that it requested.
pub(super) fn refer_to(live: Option<&LiveCall>, record: &mut Cdr) {
    let request = live.and_then(|live| live.request.as_ref());
    record.reference = request.and_then(|request| request.reference.clone());
}

/// Completes the record of a requested call, and reports the end of the request.
pub(super) fn complete(live: &LiveCall, record: &mut Cdr, outputs: &mut Outputs) {
    let Some(request) = &live.request else { return };
    record.reference.clone_from(&request.reference);
    let (state, reason) = match record.hangup_cause {
        _ if record.answered_at.is_some() => (RequestState::Completed, None),
        _ if request.cancelled => (RequestState::Cancelled, Some("cancelled".to_owned())),
        cause => (RequestState::Failed, cause.map(reason_of)),
    };
    let at = record.ended_at.unwrap_or(record.started_at);
    let change = RequestChange { call: record.call_uuid, state, reason, at };
    outputs.push_back(Output::News(Box::new(change.into())));
}

/// Returns the route of `to` for the extensions of an organisation.
///
/// # Errors
/// Why there is none.
fn route_of<'a>(
    directory: &'a Directory,
    organisation: OrganisationId,
    to: &str,
) -> Result<Route<'a>, &'static str> {
    if let Some(room) = room_of(to) {
        let room = directory.room(room).filter(|room| room.organisation_id == organisation);
        let room = room.ok_or("there is no such conference room")?;
        let target = Target::Conference(Some(room));
        return Ok(Route { organisation_id: organisation, target, number: Some(room.number.clone()) });
    }
    from_extension(directory, organisation, to).map_err(|refusal| match refusal.reason {
        Reason::NoCountry => "the number is national and the organisation names no country",
        Reason::NoTrunk => "no trunk takes outbound calls",
        Reason::Unallocated => "is no number that the extension can dial",
    })
}

/// Returns the room that `to` names by its id; the id may be in capitals, as that of `from`.
fn room_of(to: &str) -> Option<RoomId> {
    to.to_ascii_lowercase().parse::<RoomName>().ok()?.room_id()
}

/// Returns a phone number of the organisation in E.164.
fn own_number(directory: &Directory, organisation: OrganisationId, wanted: &str) -> Option<String> {
    let e164 = normalise(&directory.organisation(organisation)?.numbering, wanted).ok()?;
    let number = directory.number(&e164).filter(|number| number.organisation_id == organisation)?;
    Some(number.number.clone())
}

fn hunt_of(plan: &Plan<'_>, outside: &Outside<'_>) -> Hunt {
    let caller =
        CallerId { number: plan.caller_id.clone(), line: plan.from.number.clone(), anonymous: false };
    Hunt::new(plan.organisation, outside, caller, MAX_FORWARDS)
}

fn policy_of(extension: &Extension) -> CodecPolicy {
    CodecPolicy::new(extension.codecs.iter().cloned())
}

fn at_once(callees: &[Callee]) -> Callees {
    Callees::AtOnce(callees.iter().map(|callee| callee.at).collect())
}

fn domain_of(aor: &str) -> &str {
    aor.split_once('@').map_or("", |(_, domain)| domain)
}

/// Returns the From of an INVITE.
fn address(domain: &str, user: &str, name: &str) -> String {
    let host = Host::parse(domain).unwrap_or_else(|_| Host::Name("anonymous.invalid".to_owned()));
    let address = NameAddr::new(Uri::sip(host, None).with_user(user));
    if name.is_empty() { address.to_string() } else { address.with_display(name).to_string() }
}

fn text_of(unpaid: Unpaid) -> &'static str {
    match unpaid {
        Unpaid::NoCredit => "the organisation's credit is used up",
        Unpaid::NoRate => "no rate covers the number",
    }
}

fn problem(field: &str, message: &str) -> FieldProblem {
    FieldProblem { field: field.to_owned(), message: message.to_owned() }
}

fn wrong(field: &str, message: &str) -> PlaceRefused {
    PlaceRefused::Wrong(vec![problem(field, message)])
}
const NO_EXTENSION: &str = "there is no such extension";
