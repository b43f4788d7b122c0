//! Placement of calls: derives the facts of the record and the targets from the INVITE of an identified sender.

use sidetone_call::media_plan::srtp_rule;
use sidetone_call::record::Facts;
use sidetone_model::call::{Direction, HangupCause, Transport};
use sidetone_model::cdr::Called;
use sidetone_model::directory::{Extension, Trunk, Video};
use sidetone_model::forwarding::ForwardReason;
use sidetone_model::ids::{CallId, ExtensionId, LegId, NodeId, OrganisationId};
use sidetone_model::room::RoomConfig;
use sidetone_model::time::Now;
use sidetone_sip::message::{Host, NameAddr, Request, StatusCode, Uri};
use sidetone_sip::registrar::{Device, Registrar};
use sidetone_sip::sdp::{CodecPolicy, SrtpRule};

use crate::authentication::Sender;
use crate::billing::{Billing, Unpaid};
use crate::call_table::CallTable;
use crate::conference::{Goal, PinCaller};
use crate::conference_adapter::Conferences;
use crate::diverting;
use crate::gruus::Gruus;
use crate::hunt::{ANONYMOUS, CallerId, Hunt, wants_privacy};
use crate::ids::Ids;
use crate::io::Forwards;
use crate::live::{Asked, Callee, Diversion, LegIdentity, MAX_FORWARDS};
use crate::message_parts::{asserted, dialled, status_code};
use crate::node_entry::NodeEntry;
use crate::routing::{
    Directory, Origin, Reason, Refusal, Route, Target, caller_from_carrier, is_short, route,
};

/// A call that may be placed: the caller, the number and the target.
pub(super) struct Placement {
    pub(super) facts: Facts,
    pub(super) caller: LegIdentity,
    pub(super) caller_policy: CodecPolicy,
    pub(super) callee_policy: CodecPolicy,
    /// The SRTP rules of the caller and the callee; trunks that are tried in turn have their own rules.
    pub(super) srtp: (SrtpRule, SrtpRule),
    pub(super) onward: Onward,
    /// The requirements of the INVITE for onward legs.
    pub(super) asked: Asked,
    /// Which results of the called phones forward the call.
    pub(super) forwards: Forwards,
    /// The extensions that have forwarded the call.
    pub(super) diverted: Vec<Diversion>,
}

/// A dialled number, and the call for which it is dialled.
pub(super) struct Dialled<'a> {
    pub(super) number: &'a str,
    /// The call, if it exists already.
    pub(super) call: Option<CallId>,
    /// The extensions that have forwarded the call.
    pub(super) diverted: Vec<Diversion>,
    /// The only device of the extension that may be rung; `None` for all.
    pub(super) device: Option<Device>,
}

impl<'a> Dialled<'a> {
    /// A number that a new call dials.
    pub(super) fn new(number: &'a str) -> Self {
        Dialled { number, call: None, diverted: Vec::new(), device: None }
    }
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

/// The lower parts that decide whether and where a call may be placed.
pub(super) struct PlacementContext<'a> {
    pub(super) node: NodeId,
    pub(super) directory: &'a Directory,
    pub(super) registrar: &'a Registrar,
    pub(super) gruus: &'a Gruus,
    pub(super) calls: &'a CallTable,
    pub(super) conferences: &'a mut Conferences,
    pub(super) billing: &'a mut Billing,
    pub(super) ids: &'a mut Ids,
}

impl Asked {
    /// The requirements of a call without an INVITE.
    pub(super) const NOTHING: Asked = Asked { max_forwards: 70, secure: false, anonymous: false };

    /// Reads the requirements of a request; Max-Forwards is decremented.
    pub(super) fn of(request: &Request) -> Self {
        Asked {
            max_forwards: request.max_forwards().unwrap_or(70).saturating_sub(1),
            secure: request.is_sips(),
            anonymous: wants_privacy(request),
        }
    }
}

impl Refused {
    pub(super) fn of_call(status: StatusCode, cause: HangupCause, facts: Facts) -> Self {
        Refused { status, cause, facts: Some(Box::new(facts)), why: None }
    }

    pub(super) fn saying(self, why: &'static str) -> Self {
        Refused { why: Some(why), ..self }
    }

    fn unpaid(unpaid: Unpaid, facts: Facts) -> Self {
        Refused::of_call(unpaid.status(), unpaid.cause(), facts).saying(unpaid.as_str())
    }

    fn stranger() -> Self {
        Refused { status: StatusCode::FORBIDDEN, cause: HangupCause::CallRejected, facts: None, why: None }
    }
}

impl PlacementContext<'_> {
    /// Places a call of an identified sender.
    pub(super) fn place(
        &mut self,
        now: Now,
        sender: &Sender,
        request: &Request,
        dialled: &str,
    ) -> Result<Placement, Refused> {
        let directory = self.directory;
        let origin = match sender {
            Sender::Extension(id) => {
                Origin::Extension(directory.extension(*id).ok_or_else(Refused::stranger)?)
            }
            Sender::Trunk(id) => Origin::Trunk(directory.trunk(*id).ok_or_else(Refused::stranger)?),
            Sender::Challenge(..) | Sender::Limited(_) | Sender::Refused => return Err(Refused::stranger()),
        };
        let uri = request.parsed_uri().ok().filter(|_| matches!(origin, Origin::Extension(_)));
        if let (Origin::Extension(extension), Some(host)) = (origin, uri.as_ref().and_then(Uri::host)) {
            let organisation = extension.organisation_id;
            if directory.is_domain_of_another(host, organisation) {
                let elsewhere = Refusal { organisation_id: Some(organisation), reason: Reason::Unallocated };
                let caller = Caller::of(origin, request);
                return Err(self.unroutable(now, directory, &caller, dialled, elsewhere));
            }
        }
        let gruu = uri.and_then(|uri| self.gruus.target_of(&uri, dialled));
        let to = match &gruu {
            Some((number, device)) => Dialled { device: Some(*device), ..Dialled::new(number) },
            None => Dialled::new(dialled),
        };
        let placed = self.place_from(now, origin, Caller::of(origin, request), Asked::of(request), to)?;
        self.within_shares(placed)
    }

    /// Refuses a call whose organisation or caller already holds its share of the media ports. An emergency call must
    /// not be refused because of other calls.
    fn within_shares(&self, placed: Placement) -> Result<Placement, Refused> {
        let is_alone = !self.directory.has_several_organisations();
        let shares = self.calls.shares();
        let why = if matches!(&placed.onward, Onward::World(hunt) if is_short(&hunt.number)) {
            None
        } else if !shares.allow(placed.facts.organisation, 1, is_alone) {
            Some("Too Many Calls")
        } else {
            let caller = placed.caller.extension.filter(|caller| !shares.allow_unanswered(*caller));
            caller.map(|_| "Too Many Unanswered Calls")
        };
        match why {
            Some(why) => {
                let (status, cause) = (StatusCode::SERVICE_UNAVAILABLE, HangupCause::SwitchCongestion);
                Err(Refused::of_call(status, cause, placed.facts).saying(why))
            }
            None => Ok(placed),
        }
    }

    /// Places a party that another node connects to a room of this node. Its number and name are the node's assertion.
    pub(super) fn place_entry(
        &mut self,
        now: Now,
        entry: &NodeEntry,
        request: &Request,
        dialled: &str,
    ) -> Result<Placement, Refused> {
        let directory = self.directory;
        let room = directory.room(entry.room).ok_or_else(Refused::stranger)?;
        let caller = match &entry.sender {
            Sender::Extension(id) => {
                let extension = directory.extension(*id).ok_or_else(Refused::stranger)?;
                Caller::of(Origin::Extension(extension), request)
            }
            Sender::Trunk(id) => {
                Caller::of(Origin::Trunk(directory.trunk(*id).ok_or_else(Refused::stranger)?), request)
            }
            Sender::Challenge(..) | Sender::Limited(_) | Sender::Refused => return Err(Refused::stranger()),
        };
        if caller.extension.is_some_and(|extension| extension.organisation_id != room.organisation_id) {
            return Err(Refused::stranger());
        }
        let facts = self.facts(now, directory, &caller, room.organisation_id, dialled);
        let facts = facts.ok_or_else(Refused::stranger)?;
        let returns = entry.seat.as_deref().is_some_and(|seat| self.conferences.rooms.expects(room.id, seat));
        let to = (Asked::of(request), Vec::new());
        if returns {
            return Ok(self.enter(&caller, Goal::Room(room.id), facts, to));
        }
        self.place_into_room(now, &caller, Some(room), facts, to)
    }

    /// Places the call that an extension transfers a party to, or that a program requested of it: within its dial plan
    /// and at its cost. The callee sees the number of that party.
    pub(super) fn place_transfer(
        &mut self,
        now: Now,
        by: ExtensionId,
        shown: &LegIdentity,
        asked: Asked,
        dialled: Dialled<'_>,
    ) -> Result<Placement, Refused> {
        let extension = self.directory.extension(by).ok_or_else(Refused::stranger)?;
        let number = shown.number.clone().filter(|number| !number.is_empty());
        let caller = Caller::on_behalf(extension, &shown.name, number);
        self.place_from(now, Origin::Extension(extension), caller, asked, dialled)
    }

    /// Places a live call again, because an extension forwards it: within its dial plan and at its cost.
    pub(super) fn place_forward(
        &mut self,
        now: Now,
        by: ExtensionId,
        shown: &LegIdentity,
        asked: Asked,
        dialled: Dialled<'_>,
    ) -> Result<Placement, Refused> {
        let extension = self.directory.extension(by).ok_or_else(Refused::stranger)?;
        let caller = Caller::on_behalf(extension, &shown.name, shown.number.clone());
        let asked = Asked { max_forwards: asked.max_forwards.saturating_sub(1), ..asked };
        self.place_from(now, Origin::Extension(extension), caller, asked, dialled)
    }

    /// Returns the facts, the leg, the codecs and the SRTP rule of an extension that takes over the call of another
    /// with this party.
    pub(super) fn place_take_over(
        &mut self,
        now: Now,
        by: ExtensionId,
        number: &str,
    ) -> Option<(Facts, LegIdentity, CodecPolicy, SrtpRule)> {
        let directory = self.directory;
        let extension = directory.extension(by)?;
        let caller = Caller::on_behalf(extension, "", Some(extension.number.clone()));
        let facts = self.facts(now, directory, &caller, extension.organisation_id, number)?;
        Some((facts, caller.identity(self.ids.leg()), caller.policy(), caller.srtp))
    }

    /// Returns the facts, the forks, the codecs and the SRTP rule of a call to the phones of an extension for a waiting
    /// party. The extension requested the party, or had parked it: its forwarding and do not disturb do not apply.
    pub(super) fn place_for_waiting(
        &mut self,
        now: Now,
        extension: ExtensionId,
        shown: &LegIdentity,
    ) -> Option<(Facts, Vec<Callee>, CodecPolicy, SrtpRule)> {
        let directory = self.directory;
        let callee = directory.extension(extension)?;
        let aor = directory.aor(callee)?;
        let number = shown.number.clone().filter(|number| !number.is_empty());
        let caller = Caller::on_behalf(callee, &shown.name, number);
        let mut facts = self.facts(now, directory, &caller, callee.organisation_id, &callee.number)?;
        facts.called = Some(Called { extension_id: callee.id, team_id: callee.team_id });
        let domain = aor.split_once('@').map_or("", |(_, domain)| domain);
        let (from, to) = (caller.address(domain), format!("<sip:{aor}>"));
        let bindings = self.registrar.lookup(&aor, now.instant);
        let forks = bindings.iter().map(|binding| {
            Callee::bound(binding, LegIdentity::of(self.ids.leg(), callee), &from, &to, MAX_FORWARDS)
        });
        let forks = forks.collect();
        Some((facts, forks, caller.policy(), caller.srtp))
    }

    /// Places a call to a number by the dial plan of `origin`.
    fn place_from(
        &mut self,
        now: Now,
        origin: Origin<'_>,
        caller: Caller<'_>,
        asked: Asked,
        to: Dialled<'_>,
    ) -> Result<Placement, Refused> {
        let Dialled { number: dialled, call, diverted, device } = to;
        let directory = self.directory;
        let route = match route(directory, origin, dialled) {
            Ok(route) => route,
            Err(refusal) => return Err(self.unroutable(now, directory, &caller, dialled, refusal)),
        };
        let mut facts = self
            .facts(now, directory, &caller, route.organisation_id, dialled)
            .ok_or_else(Refused::stranger)?;
        facts.call = call.unwrap_or(facts.call);
        if let Some(number) = &route.number {
            facts.destination_number = Some(number.clone());
            facts.dialled_number = Some(dialled.to_owned());
        }
        let Asked { max_forwards, secure, anonymous } = asked;
        match route {
            Route { target: Target::Conference(room), .. } => {
                self.place_into_room(now, &caller, room, facts, (asked, diverted))
            }
            Route { target: Target::Extension(callee), .. } => {
                self.place_extension(now, &caller, callee, facts, (asked, device, dialled, diverted))
            }
            Route { target: Target::Outside(outside), organisation_id, .. } => {
                let extension = caller.extension.ok_or_else(Refused::stranger)?;
                let caller_id = CallerId::of(directory, extension, anonymous);
                facts.direction = Direction::Outbound;
                facts.caller_number = caller_id.number.clone().or(facts.caller_number);
                // An emergency call must not be refused because of the organisation's other calls.
                if !is_short(&outside.number) && self.calls.is_at_outbound_limit(directory, organisation_id) {
                    let (status, cause) = (StatusCode::SERVICE_UNAVAILABLE, HangupCause::SwitchCongestion);
                    return Err(Refused::of_call(status, cause, facts).saying("Too Many Outbound Calls"));
                }
                let rated = self.billing.rate(now, facts);
                let facts = rated.map_err(|(unpaid, facts)| Refused::unpaid(unpaid, *facts))?;
                let hunt = Hunt::new(organisation_id, &outside, caller_id, max_forwards);
                let headers = diverting::headers(&diverted, directory, organisation_id, dialled);
                let hunt = hunt.secured(secure).with_headers(headers);
                Ok(Placement {
                    facts,
                    caller: caller.identity(self.ids.leg()),
                    caller_policy: caller.policy(),
                    callee_policy: CodecPolicy::ANY,
                    srtp: (caller.srtp, SrtpRule::Off),
                    onward: Onward::World(Box::new(hunt)),
                    asked,
                    forwards: Forwards::default(),
                    diverted,
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
        (asked, diverted): (Asked, Vec<Diversion>),
    ) -> Result<Placement, Refused> {
        let goal = room.map_or(Goal::Ask, |room| Goal::Room(room.id));
        let who = PinCaller::new(
            caller.extension.map(|extension| extension.id),
            caller.number.as_deref().unwrap_or_default(),
        );
        // A caller with too many wrong PINs is refused before the answer.
        let admitted = room.map(|room| self.conferences.admits(now.instant, room.id, &who));
        if let Some(Err(status)) = admitted {
            let (cause, why) = match status {
                403 => (HangupCause::CallRejected, "Too Many Wrong PINs"),
                _ => (HangupCause::SwitchCongestion, "Too Many Callers"),
            };
            return Err(Refused::of_call(status_code(status), cause, facts).saying(why));
        }
        Ok(self.enter(caller, goal, facts, (asked, diverted)))
    }

    /// Returns the placement of a caller who may enter a room, or who is asked for a room's number.
    fn enter(
        &mut self,
        caller: &Caller<'_>,
        goal: Goal,
        facts: Facts,
        (asked, diverted): (Asked, Vec<Diversion>),
    ) -> Placement {
        Placement {
            facts,
            caller: caller.identity(self.ids.leg()),
            caller_policy: caller.policy(),
            callee_policy: CodecPolicy::ANY,
            srtp: (caller.srtp, SrtpRule::Off),
            onward: Onward::Room(goal),
            asked,
            forwards: Forwards::default(),
            diverted,
        }
    }

    fn place_extension(
        &mut self,
        now: Now,
        caller: &Caller<'_>,
        callee: &Extension,
        mut facts: Facts,
        (asked, device, dialled, diverted): (Asked, Option<Device>, &str, Vec<Diversion>),
    ) -> Result<Placement, Refused> {
        let directory = self.directory;
        let Asked { max_forwards, secure, anonymous } = asked;
        let extension = caller.extension.unwrap_or(callee);
        (facts.extension, facts.agent) = (Some(extension.id), extension.agent_id);
        facts.team = extension.team_id;
        facts.called = Some(Called { extension_id: callee.id, team_id: callee.team_id });
        let aor = directory.aor(callee).ok_or_else(Refused::stranger)?;
        let mut bindings = self.registrar.lookup(&aor, now.instant);
        bindings.retain(|binding| !secure || binding.way().protocol.is_secure());
        if let Some(device) = device {
            bindings.retain(|binding| device.is_of(&aor, binding));
            let forbidden = callee.do_not_disturb.then_some(ForwardReason::DoNotDisturb);
            let unreachable = bindings.is_empty().then_some(ForwardReason::Unregistered);
            if let Some(reason) = forbidden.or(unreachable) {
                return Err(unreached(reason, facts));
            }
        } else if let Some(reason) = diverting::at_once(callee, !bindings.is_empty()) {
            let forward = Forward { caller, extension: callee, reason, facts, asked, diverted };
            return self.forward(now, forward);
        }
        let domain = aor.split_once('@').map_or("", |(_, domain)| domain);
        // A trunk decides by itself what it shows of its callers.
        let is_hidden = anonymous && caller.trunk.is_none();
        let from = if is_hidden { ANONYMOUS.to_owned() } else { caller.address(domain) };
        let to = format!("<sip:{aor}>");
        let caller_identity = caller.identity(self.ids.leg());
        let headers = diverting::headers(&diverted, directory, callee.organisation_id, dialled);
        let callees = bindings
            .iter()
            .map(|binding| {
                Callee::bound(binding, LegIdentity::of(self.ids.leg(), callee), &from, &to, max_forwards)
            })
            .collect();
        Ok(Placement {
            facts,
            caller: caller_identity,
            caller_policy: caller.policy(),
            callee_policy: CodecPolicy::new(callee.codecs.iter().cloned())
                .with_video(callee.video == Video::Pass),
            srtp: (caller.srtp, srtp_rule(callee.srtp)),
            onward: Onward::Bindings(diverting::mark(callees, &headers)),
            asked,
            forwards: if device.is_some() { Forwards::default() } else { diverting::forwards(callee) },
            diverted,
        })
    }

    /// Places a call at the number that the extension forwards it to: within its dial plan and at its cost. Without
    /// such a number the call is refused.
    fn forward(&mut self, now: Now, forward: Forward<'_>) -> Result<Placement, Refused> {
        let Forward { caller, extension, reason, facts, asked, mut diverted } = forward;
        let Some(target) = extension.forwarding.target(reason) else { return Err(unreached(reason, facts)) };
        if diverting::extend(&mut diverted, &extension.number, reason, target).is_none() {
            let status = StatusCode::TEMPORARILY_UNAVAILABLE;
            let facts = diverting::facts(facts.clone(), facts, &diverted);
            return Err(Refused::of_call(status, HangupCause::RedirectionToNewDestination, facts));
        }
        let forwarder = Caller { extension: Some(extension), trunk: None, ..caller.clone() };
        let asked = Asked { max_forwards: asked.max_forwards.saturating_sub(1), ..asked };
        let dialled =
            Dialled { number: target, call: Some(facts.call), diverted: diverted.clone(), device: None };
        match self.place_from(now, Origin::Extension(extension), forwarder, asked, dialled) {
            Ok(placed) => {
                let facts = diverting::facts(facts, placed.facts, &placed.diverted);
                let (identity, policy) = (caller.identity(self.ids.leg()), caller.policy());
                let srtp = (caller.srtp, placed.srtp.1);
                Ok(Placement { facts, caller: identity, caller_policy: policy, srtp, ..placed })
            }
            // The caller did not dial the target, so the refusal reveals no more than that of an unregistered phone.
            Err(refused) => {
                let status = match refused.status.as_u16() {
                    486 => refused.status,
                    _ => StatusCode::TEMPORARILY_UNAVAILABLE,
                };
                let unreached = || Facts { destination_number: Some(target.to_owned()), ..facts.clone() };
                let target = refused.facts.map_or_else(unreached, |target| *target);
                let diverted = match &target.forwarded {
                    Some(_) => Vec::new(),
                    None => diverted,
                };
                let inner = target.forwarded.clone();
                let mut facts = diverting::facts(facts, target, &diverted);
                facts.forwarded = facts.forwarded.or(inner);
                Err(Refused::of_call(status, refused.cause, facts))
            }
        }
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
            call: self.ids.call(now.wall),
            organisation,
            currency: directory.organisation(organisation)?.currency,
            extension: caller.extension.map(|extension| extension.id),
            agent: caller.extension.and_then(|extension| extension.agent_id),
            team: caller.extension.and_then(|extension| extension.team_id),
            called: None,
            trunk: caller.trunk.map(|trunk| trunk.id),
            direction: if caller.trunk.is_some() { Direction::Inbound } else { Direction::Internal },
            transport: Transport::Sip,
            node: self.node,
            started_at: now.wall,
            caller_number: caller.number.clone(),
            destination_number: Some(dialled.to_owned()),
            dialled_number: None,
            forwarded: None,
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
                (StatusCode::NOT_FOUND, HangupCause::NoRouteDestination, Some("No Outbound Trunk"))
            }
            Reason::Unallocated => (StatusCode::NOT_FOUND, HangupCause::UnallocatedNumber, None),
        };
        Refused { status, cause, facts: facts.map(Box::new), why }
    }
}

/// A forwarded call to an extension.
struct Forward<'a> {
    caller: &'a Caller<'a>,
    extension: &'a Extension,
    reason: ForwardReason,
    /// The facts of the call to the extension.
    facts: Facts,
    asked: Asked,
    /// The extensions that have forwarded the call before.
    diverted: Vec<Diversion>,
}

/// The refusal of a call to an extension when no phone is rung.
fn unreached(reason: ForwardReason, facts: Facts) -> Refused {
    let status = StatusCode::TEMPORARILY_UNAVAILABLE;
    match reason {
        ForwardReason::DoNotDisturb => {
            Refused::of_call(status, HangupCause::CallRejected, facts).saying("Do Not Disturb")
        }
        _ => Refused::of_call(status, HangupCause::UserNotRegistered, facts),
    }
}

/// The caller as the callee and the record see it.
#[derive(Clone)]
struct Caller<'a> {
    extension: Option<&'a Extension>,
    trunk: Option<&'a Trunk>,
    number: Option<String>,
    display: Option<String>,
    srtp: SrtpRule,
}

impl<'a> Caller<'a> {
    /// An extension calls with its own number, regardless of its From. A carrier's asserted identity is trusted, or its
    /// From without one.
    fn of(origin: Origin<'a>, request: &Request) -> Self {
        let from = request.from().ok();
        match origin {
            Origin::Extension(extension) => {
                Caller::on_behalf(extension, &extension.name, Some(extension.number.clone()))
            }
            Origin::Trunk(trunk) => {
                let of_from = || {
                    let number = from.as_ref().and_then(|from| dialled(&from.uri));
                    let display = from.as_ref().and_then(|from| from.display.clone());
                    (number.filter(|number| number != "anonymous"), display.filter(|name| !name.is_empty()))
                };
                let (number, display) =
                    asserted(request).map_or_else(of_from, |(number, display)| (Some(number), display));
                Caller {
                    extension: None,
                    trunk: Some(trunk),
                    number: number.map(|number| caller_from_carrier(trunk, number)),
                    display,
                    srtp: srtp_rule(trunk.srtp),
                }
            }
        }
    }

    /// A call of an extension; the callee sees this name, unless it is empty, and this number.
    fn on_behalf(extension: &'a Extension, name: &str, number: Option<String>) -> Self {
        Caller {
            extension: Some(extension),
            trunk: None,
            number,
            display: Some(name.to_owned()).filter(|name| !name.is_empty()),
            srtp: srtp_rule(extension.srtp),
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
        let of_trunk = || self.trunk.map(|trunk| &trunk.interop.codecs);
        let codecs = self.extension.map(|extension| &extension.codecs).or_else(of_trunk);
        let video = self.extension.map(|extension| extension.video).or(self.trunk.map(|trunk| trunk.video));
        let policy = codecs.map_or(CodecPolicy::ANY, |codecs| CodecPolicy::new(codecs.iter().cloned()));
        policy.with_video(video == Some(Video::Pass))
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
