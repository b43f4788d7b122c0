//! Outbound calls: tries trunk after trunk, and each trunk's addresses one after the other, until one takes
//! the call.
//!
//! The next one is tried after 408, 5xx, silence or a refusal of the network. Once the caller has heard early
//! media of the far end, no other is tried, because the announcement gave the reason. A hunt does not depend
//! on a calling leg: it consists of a number, the trunks that take it and the caller ID, so that calls of
//! rooms use it too.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use sidetone_model::call::HangupCause;
use sidetone_model::directory::{Extension, Trunk};
use sidetone_model::ids::{CallId, OrganisationId, TrunkId};
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Host, Name, NameAddr, Request, Response, Uri};
use sidetone_sip::ua::{Invite, LegKey, Retried};

use crate::face::{Attempt, Input, LegName, Party, Ports, Unreachable};
use crate::live::{Callee, LegIdentity};
use crate::machine::{Notice, Now, Output, Switch};
use crate::names::Waiter;
use crate::routing::{Directory, Outside};
use crate::stay::limit_of_trunk;
use crate::trunks::Challenge;

/// The search for a trunk that takes a call.
pub(super) struct Hunt {
    /// The organisation that calls.
    pub(super) organisation: OrganisationId,
    /// The number as trunks receive it.
    number: String,
    caller: CallerId,
    max_forwards: u8,
    /// Trunks not tried yet, in order.
    trunks: VecDeque<TrunkId>,
    attempts: usize,
    way: Option<Way>,
    /// Why the last trunk could not be tried.
    fault: (u16, HangupCause),
}

/// The caller ID for outside parties. It is a number of the organisation, whatever the phone claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallerId {
    /// A phone number of the organisation.
    pub(super) number: Option<String>,
    /// The user part of From if there is no number: the extension.
    pub(super) line: String,
    /// Whether the number is to be withheld (RFC 3323 §4.2).
    pub(super) anonymous: bool,
}

/// The trunk that is being tried.
struct Way {
    trunk: TrunkId,
    server: TrunkAddress,
    /// Addresses not tried yet, in order.
    addresses: VecDeque<SocketAddr>,
    stage: Stage,
}

enum Stage {
    /// The next address can be tried.
    Ready,
    /// An INVITE was sent.
    Calling(Calling),
    /// The trunk's name is being resolved, until this time; `None` when that took too long.
    Resolving(Option<Instant>),
}

struct Calling {
    fork: usize,
    to: SocketAddr,
    /// When a first response must have arrived.
    silent_until: Option<Instant>,
    /// Whether a challenge was answered.
    tried: bool,
}

/// A call over a trunk that we hung up.
pub(super) struct Farewell {
    until: Instant,
    call_id: String,
    trunk: TrunkId,
    to: SocketAddr,
}

/// The next step of a hunt.
enum Step {
    Call { trunk: TrunkId, flow: Flow, invite: Box<Invite> },
    Exhausted,
    Wait,
}

impl CallerId {
    /// Returns the caller ID of an extension; it is withheld if the INVITE requests that.
    pub(super) fn of(directory: &Directory, extension: &Extension, request: &Request) -> Self {
        CallerId {
            number: directory.number_shown_by(extension).map(|number| number.number.clone()),
            line: extension.number.clone(),
            anonymous: wants_privacy(request),
        }
    }
}

impl Hunt {
    pub(super) fn new(
        organisation: OrganisationId,
        outside: &Outside<'_>,
        caller: CallerId,
        max_forwards: u8,
    ) -> Self {
        Hunt {
            organisation,
            number: outside.number.clone(),
            caller,
            max_forwards,
            trunks: outside.trunks.iter().map(|trunk| trunk.id).collect(),
            attempts: 0,
            way: None,
            fault: (503, HangupCause::NetworkOutOfOrder),
        }
    }

    /// Returns when [`Switch::hunt_timeout`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.way.as_ref()?.stage {
            Stage::Calling(Calling { silent_until: due, .. }) | Stage::Resolving(due) => due,
            Stage::Ready => None,
        }
    }

    /// Returns the trunk of a fork and its address; only the present fork has one.
    fn trunk_of(&self, fork: usize) -> Option<(TrunkId, SocketAddr)> {
        let way = self.way.as_ref()?;
        match &way.stage {
            Stage::Calling(calling) if calling.fork == fork => Some((way.trunk, calling.to)),
            _ => None,
        }
    }

    /// Returns the INVITE for a trunk.
    fn invite(&self, trunk: &Trunk, server: &TrunkAddress) -> Option<(String, Invite)> {
        let server = server_uri(server)?;
        let to = server.clone().with_user(&self.number);
        let (uri, to) = (to.to_string(), NameAddr::new(to).to_string());
        let shown = self.caller.number.as_deref();
        // An organisation without a number is identified by its account name at the carrier.
        let named = Some(trunk.username.as_str()).filter(|username| !username.is_empty());
        let user = shown.or(named).unwrap_or(&self.caller.line);
        let own = NameAddr::new(server.with_user(user)).to_string();
        let from = if self.caller.anonymous { ANONYMOUS.to_owned() } else { own.clone() };
        let mut invite = Invite::new(uri.clone(), from, to)
            .header(Name::MaxForwards.as_str(), self.max_forwards.to_string());
        if shown.is_some() {
            // The carrier gets the number in any case; Privacy decides whether it may show it (RFC 3325
            // §9.1).
            invite = invite.header("P-Asserted-Identity", own);
        }
        if self.caller.anonymous {
            invite = invite.header("Privacy", "id");
        }
        Some((uri, invite))
    }
}

impl Switch {
    fn leg_of_the_world(&mut self, number: &str) -> LegIdentity {
        LegIdentity {
            id: self.leg_id(),
            extension: None,
            number: Some(number.to_owned()),
            name: String::new(),
        }
    }

    /// Takes the next step of a call's hunt.
    pub(super) fn hunt(&mut self, now: Now, id: CallId, ports: &mut dyn Ports) {
        let Some(live) = self.calls.get_mut(&id).filter(|live| live.call.is_ringing()) else { return };
        let Some(mut hunt) = live.hunt.take() else { return };
        let (group, fork) = (live.call.group(), live.callees.len());
        let step = self.next_step(now.instant, id, &mut hunt);
        let opened = match &step {
            Step::Call { flow, .. } => {
                ports.open(LegName { call: id, fork: Some(fork) }, group, flow.remote.ip())
            }
            Step::Exhausted | Step::Wait => None,
        };
        let mut input = None;
        let fault = hunt.fault;
        let identity = self.leg_of_the_world(&hunt.number);
        let Some(live) = self.calls.get_mut(&id) else { return };
        match (step, opened) {
            (Step::Call { trunk, flow, invite }, Some(port)) => {
                if let Some(way) = &mut hunt.way {
                    let silent_until = Some(now.instant + SILENCE_MAX);
                    way.stage = Stage::Calling(Calling { fork, to: flow.remote, silent_until, tried: false });
                }
                live.callees.push(Callee { flow, invite: *invite, identity, leg: None });
                self.ports.insert(port.id, id);
                let facts = live.call.facts();
                let number = facts.destination_number.as_deref().unwrap_or_default();
                let cost = facts.tariff.and_then(|_| self.billing.cost(trunk, number, facts.started_at));
                let limit = limit_of_trunk(&self.directory, trunk);
                input = Some(Input::Attempt(Attempt { trunk, at: flow.remote.ip(), port, cost, limit }));
            }
            (Step::Call { .. }, None) => input = Some(Input::Exhausted(503, HangupCause::SwitchCongestion)),
            (Step::Exhausted, _) => input = Some(Input::Exhausted(fault.0, fault.1)),
            (Step::Wait, _) => {}
        }
        live.hunt = Some(hunt);
        match input {
            Some(input) => self.tell_call(now, id, input),
            None => self.carry_out(now, id),
        }
    }

    /// Continues after a trunk failed with `status`: with the next address of its name, or with the next
    /// trunk.
    pub(super) fn next_attempt(&mut self, id: CallId, status: u16) {
        let Some(hunt) = self.calls.get_mut(&id).and_then(|live| live.hunt.as_mut()) else { return };
        match &mut hunt.way {
            // Another server of the name may succeed (RFC 3263 §4.3).
            Some(way) if matches!(status, 408 | 503) => way.stage = Stage::Ready,
            _ => hunt.way = None,
        }
        self.hunts.push_back(id);
    }

    /// Handles a name that took too long to resolve, or a trunk that sent no response.
    pub(super) fn hunt_timeout(&mut self, now: Now, id: CallId) {
        let Some(live) = self.calls.get_mut(&id) else { return };
        let Some(way) = live.hunt.as_mut().and_then(|hunt| hunt.way.as_mut()) else { return };
        match &mut way.stage {
            Stage::Resolving(until) if until.is_some_and(|until| until <= now.instant) => {
                *until = None;
                self.hunts.push_back(id);
            }
            Stage::Calling(calling) if calling.silent_until.is_some_and(|until| until <= now.instant) => {
                calling.silent_until = None;
                let fork = calling.fork;
                let leg = live.callees.get(fork).and_then(|callee| callee.leg);
                let Some(leg) = leg else { return };
                let heard = self.ua.is_heard(leg);
                self.trunks.heard(now.instant, way.trunk, heard);
                if heard {
                    return;
                }
                // If the trunk responds later, its call is hung up.
                self.legs.remove(&leg);
                self.ua.hang_up(now.instant, leg);
                self.tell_call(now, id, Input::Unreached(fork, 408));
            }
            Stage::Calling(_) | Stage::Ready | Stage::Resolving(_) => {}
        }
    }

    /// Records what a trunk's refusal shows about the trunk, and answers its challenge; returns the leg that
    /// continues, if any.
    pub(super) fn trunk_refused(
        &mut self,
        now: Now,
        (id, fork): (CallId, usize),
        flow: &Flow,
        response: &Response,
        request: Option<Request>,
    ) -> Option<LegKey> {
        let live = self.calls.get_mut(&id)?;
        let way = live.hunt.as_mut().and_then(|hunt| hunt.way.as_mut())?;
        let trunk = way.trunk;
        let Stage::Calling(calling) = &mut way.stage else { return None };
        self.trunks.heard(now.instant, trunk, true);
        match response.status().as_u16() {
            503 => {
                if let Some(wished) = retry_after(response) {
                    self.trunks.rest(now.instant, trunk, wished);
                }
                None
            }
            401 | 407 if calling.fork == fork && live.call.is_ringing() => {
                let request = request?;
                let challenge = Challenge {
                    to: calling.to,
                    from: flow.remote,
                    response,
                    method: request.method().as_str(),
                    uri: request.uri(),
                    tried: calling.tried,
                    in_dialog: false,
                };
                (calling.tried, calling.silent_until) = (true, Some(now.instant + SILENCE_MAX));
                let Some(extra) = self.trunks.answer(trunk, challenge) else {
                    self.push(Output::Notice(Notice::Credentials(trunk)));
                    return None;
                };
                let out = live.callees.get(fork)?.flow;
                match self.ua.retry(now.instant, out, request, &extra) {
                    Ok(Retried::Leg(leg)) => Some(leg),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn next_step(&mut self, now: Instant, id: CallId, hunt: &mut Hunt) -> Step {
        loop {
            if hunt.attempts >= ATTEMPTS_MAX {
                return Step::Exhausted;
            }
            let Some(way) = &mut hunt.way else {
                match self.next_way(now, hunt) {
                    Some(way) => hunt.way = Some(way),
                    None => return Step::Exhausted,
                }
                continue;
            };
            if let Stage::Resolving(until) = way.stage {
                let found = match until {
                    Some(_) => self.names.lookup(now, &way.server, Waiter::Call(id), &mut self.rng),
                    None => Some(self.names.last(&way.server, &mut self.rng)),
                };
                let Some(found) = found else { return Step::Wait };
                let found = self.reachable(way.trunk, found);
                way.addresses = found.into_iter().take(ADDRESSES_MAX).collect();
                way.stage = Stage::Ready;
            }
            let Some(address) = way.addresses.pop_front() else {
                hunt.way = None;
                continue;
            };
            match self.config.reach.flow_to(address) {
                Ok(flow) => {
                    hunt.attempts += 1;
                    match self.prepare(hunt, flow) {
                        Some(step) => return step,
                        None => hunt.way = None,
                    }
                }
                // A trunk that leads back to this switch would loop (RFC 3261 §16.3 step 4).
                Err(Unreachable::Ourselves) => hunt.fault = (482, HangupCause::ExchangeRoutingError),
                Err(Unreachable::NoRoute) => {}
            }
        }
    }

    /// Returns the next trunk that may be tried.
    fn next_way(&self, now: Instant, hunt: &mut Hunt) -> Option<Way> {
        // Trunks that recently sent no response come after those that did.
        let talks = |trunk: &TrunkId| !self.trunks.is_silent(now, *trunk);
        loop {
            let at = hunt.trunks.iter().position(talks).unwrap_or_default();
            let id = hunt.trunks.remove(at)?;
            if self.trunks.is_resting(now, id) {
                continue;
            }
            let trunk = self.directory.trunk(id);
            let server = trunk.and_then(|trunk| trunk.address.as_deref()?.parse::<TrunkAddress>().ok());
            if let Some(server) = server {
                // The query starts when this stage is reached.
                let stage = Stage::Resolving(Some(now + RESOLVE_MAX));
                return Some(Way { trunk: id, server, addresses: VecDeque::new(), stage });
            }
        }
    }

    fn prepare(&mut self, hunt: &Hunt, flow: Flow) -> Option<Step> {
        let way = hunt.way.as_ref()?;
        let (uri, mut invite) = hunt.invite(self.directory.trunk(way.trunk)?, &way.server)?;
        if let Some((header, value)) = self.trunks.credentials(way.trunk, flow.remote, "INVITE", &uri) {
            invite = invite.header(header.as_str(), value);
        }
        Some(Step::Call { trunk: way.trunk, flow, invite: Box::new(invite) })
    }

    /// Whether an organisation has reached its limit of concurrent outbound calls.
    pub(super) fn is_at_outbound_limit(&self, directory: &Directory, organisation: OrganisationId) -> bool {
        let limit = directory.organisation(organisation).and_then(|known| known.max_outbound_calls);
        let up = self.outbound.get(&organisation).copied().unwrap_or_default();
        limit.is_some_and(|limit| up >= usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Answers a trunk's challenge to a re-INVITE; returns whether credentials were sent.
    pub(super) fn reinvite_challenged(
        &mut self,
        now: Now,
        leg: LegKey,
        flow: &Flow,
        response: &Response,
        request: Option<Request>,
    ) -> bool {
        let is_challenge = matches!(response.status().as_u16(), 401 | 407);
        let (Some(request), Some((trunk, to))) = (request.filter(|_| is_challenge), self.trunk_of_leg(leg))
        else {
            return false;
        };
        self.authorize_within(now, (trunk, to), flow, response, request)
    }

    /// Answers a challenge to our BYE, because the trunk would otherwise go on billing.
    pub(super) fn bye_challenged(&mut self, now: Now, flow: &Flow, response: &Response, bye: Request) {
        let farewell = self.farewells.iter().find(|farewell| farewell.call_id == bye.call_id());
        if let Some((trunk, to)) = farewell.map(|farewell| (farewell.trunk, farewell.to)) {
            self.authorize_within(now, (trunk, to), flow, response, bye);
        }
    }

    fn authorize_within(
        &mut self,
        now: Now,
        (trunk, to): (TrunkId, SocketAddr),
        flow: &Flow,
        response: &Response,
        request: Request,
    ) -> bool {
        let tried =
            request.authorization().next().is_some() || request.proxy_authorization().next().is_some();
        let challenge = Challenge {
            to,
            from: flow.remote,
            response,
            method: request.method().as_str(),
            uri: request.uri(),
            tried,
            in_dialog: true,
        };
        match self.trunks.answer(trunk, challenge) {
            Some(extra) => self.ua.retry(now.instant, *flow, request, &extra).is_ok(),
            None => {
                self.push(Output::Notice(Notice::Credentials(trunk)));
                false
            }
        }
    }

    /// Remembers the trunk of a call that is hung up now, because its BYE may be challenged.
    pub(super) fn note_farewell(&mut self, now: Instant, leg: LegKey) {
        let Some((trunk, to)) = self.trunk_of_leg(leg) else { return };
        let Some(call_id) = self.ua.call_id(leg).map(str::to_owned) else { return };
        while self.farewells.front().is_some_and(|farewell| farewell.until <= now)
            || self.farewells.len() >= FAREWELLS_MAX
        {
            self.farewells.pop_front();
        }
        self.farewells.push_back(Farewell { until: now + FAREWELL_LIFE, call_id, trunk, to });
    }

    /// Returns the trunk of a live call's leg, and the address its INVITE was sent to.
    fn trunk_of_leg(&self, leg: LegKey) -> Option<(TrunkId, SocketAddr)> {
        let (id, Party::Callee(fork)) = *self.legs.get(&leg)? else { return None };
        self.calls.get(&id)?.hunt.as_ref()?.trunk_of(fork)
    }
}

/// Whether a phone asks to withhold its number: by Privacy (RFC 3323 §4.2) or by an anonymous From
/// (§4.1.1.3).
fn wants_privacy(request: &Request) -> bool {
    let asks = request.headers().header_all("Privacy").any(|value| {
        let mut wishes = value.split([';', ',']).map(str::trim);
        wishes.any(|wish| ["id", "user", "header"].iter().any(|known| known.eq_ignore_ascii_case(wish)))
    });
    let from = request.from().ok();
    let host = from.as_ref().and_then(|from| from.uri.host().map(ToString::to_string));
    asks || host.is_some_and(|host| host.eq_ignore_ascii_case("anonymous.invalid"))
}

/// Returns the server of a trunk as a URI without a user.
pub(super) fn server_uri(server: &TrunkAddress) -> Option<Uri> {
    let host = match server.ip() {
        Some(IpAddr::V6(ip)) => Host::V6(ip),
        Some(IpAddr::V4(ip)) => Host::V4(ip),
        None => Host::parse(&server.host).ok()?,
    };
    Some(Uri::sip(host, server.port))
}

/// Returns for how long a trunk asks not to be called (RFC 3261 §20.33).
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().header_all(Name::RetryAfter).next()?;
    let digits = value.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().map(Duration::from_secs)
}

/// Addresses of one trunk tried per call.
const ADDRESSES_MAX: usize = 3;
/// RFC 3323 §4.1.1.3.
const ANONYMOUS: &str = "\"Anonymous\" <sip:anonymous@anonymous.invalid>";
/// Attempts per call, over all trunks.
const ATTEMPTS_MAX: usize = 8;
/// A BYE gets its final answer within 64·T1 (RFC 3261 §17.1.2.2).
const FAREWELL_LIFE: Duration = Duration::from_secs(32);
const FAREWELLS_MAX: usize = 20_000;
/// How long a call waits for a name to be resolved.
const RESOLVE_MAX: Duration = Duration::from_secs(4);
/// How long a trunk may send no response: enough to lose three INVITEs (RFC 3261 §17.1.1.2), and far less
/// than the 32 s of timer B, for which no caller waits.
const SILENCE_MAX: Duration = Duration::from_secs(6);
