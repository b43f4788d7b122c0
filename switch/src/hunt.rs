//! The search for a trunk that takes a call: trunk after trunk, and each trunk's addresses one after the other.
//!
//! The next trunk is tried after 408, 5xx, silence or a refusal of the network. Once the caller has heard early
//! media of the far end, no other is tried, because the announcement gave the reason. A hunt does not depend
//! on a calling leg: it consists of a number, the trunks that take it and the caller ID, so that calls of
//! rooms use it too.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sidetone_model::call::HangupCause;
use sidetone_model::directory::{Extension, Trunk};
use sidetone_model::ids::{CallId, OrganisationId, TrunkId};
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};
use sidetone_sip::flow::{Flow, Protocol};
use sidetone_sip::message::{Name, NameAddr, Request, Response};
use sidetone_sip::ua::{Extra, Invite};

use crate::ids::Ids;
use crate::io::Unreachable;
use crate::routing::{Directory, Outside, to_carrier};
use crate::switch_io::Outputs;
use crate::trunk_access::TrunkAccess;
use crate::trunk_dns::Waiter;
use crate::trunk_servers::{account_domain, named_server, next_hops, proxy_route, server_uri};
use crate::trunks::{Challenge, Trunks};

/// The search for a trunk that takes a call.
pub(super) struct Hunt {
    /// The organisation that calls.
    pub(super) organisation: OrganisationId,
    /// The number as trunks receive it.
    pub(super) number: String,
    caller: CallerId,
    max_forwards: u8,
    /// Trunks not tried yet, in order.
    trunks: VecDeque<TrunkId>,
    /// Whether only trunks over TLS may be called, because the caller dialled a `sips:` URI.
    secure: bool,
    /// Further headers of the INVITEs.
    headers: Vec<(&'static str, String)>,
    attempts: usize,
    tried: Option<TriedTrunk>,
    /// Why the last trunk could not be tried.
    pub(super) fault: (u16, HangupCause),
}

/// The caller ID for outside parties. It is always a number of the organisation, never the phone's claim.
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
struct TriedTrunk {
    trunk: TrunkId,
    server: TrunkAddress,
    /// Further servers of the trunk not tried yet, in order.
    backups: VecDeque<TrunkAddress>,
    /// Addresses of the server not tried yet, in order.
    addresses: VecDeque<SocketAddr>,
    stage: Stage,
}

enum Stage {
    /// The next address can be tried.
    Ready,
    /// An INVITE was sent.
    Calling(Calling),
    /// The trunk's name is being resolved, until this time; `None` after this time.
    Resolving(Option<Instant>),
}

struct Calling {
    fork: usize,
    to: SocketAddr,
    /// When a first response must have arrived.
    silent_until: Option<Instant>,
    /// When a response other than 100 must have arrived, if another server or trunk can be tried; and the time allowed.
    stalled_at: Option<Instant>,
    progress: Duration,
    /// Whether a challenge was answered.
    authorized: bool,
}

/// The next step of a hunt.
pub(super) enum Step {
    Call { trunk: TrunkId, flow: Flow, invite: Box<Invite> },
    Exhausted,
    Wait,
}

/// A timeout of a hunt.
pub(super) enum HuntTimeout {
    /// The INVITE of this fork has no response yet.
    Silent { trunk: TrunkId, fork: usize },
    /// The INVITE of this fork has no response but 100, and another server or trunk can be tried.
    Stalled { fork: usize },
    /// The trunk's name was not resolved in time: continue with the last DNS result.
    Unresolved,
}

/// The lower parts that a hunt needs for its next step.
pub(super) struct HuntContext<'a> {
    pub(super) trunks: &'a mut TrunkAccess,
    pub(super) directory: &'a Directory,
    pub(super) ids: &'a mut Ids,
    pub(super) outputs: &'a mut Outputs,
}

impl CallerId {
    /// Returns the caller ID of an extension; it is withheld if `anonymous`.
    pub(super) fn of(directory: &Directory, extension: &Extension, anonymous: bool) -> Self {
        CallerId {
            number: directory.number_shown_by(extension).map(|number| number.number.clone()),
            line: extension.number.clone(),
            anonymous,
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
            secure: false,
            headers: Vec::new(),
            attempts: 0,
            tried: None,
            fault: (503, HangupCause::NetworkOutOfOrder),
        }
    }

    /// Calls only trunks over TLS, when `secure` (RFC 3261 §26.2.2); without one the call fails with 480.
    #[must_use]
    pub(super) fn secured(mut self, secure: bool) -> Self {
        self.secure = secure;
        if secure {
            self.fault = (480, HangupCause::NoRouteDestination);
        }
        self
    }

    /// Adds headers to the INVITEs.
    #[must_use]
    pub(super) fn with_headers(mut self, headers: Vec<(&'static str, String)>) -> Self {
        self.headers = headers;
        self
    }

    /// Returns when [`Hunt::timeout`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.tried.as_ref()?.stage {
            Stage::Calling(Calling { silent_until, stalled_at, .. }) => {
                [silent_until, stalled_at].into_iter().flatten().min()
            }
            Stage::Resolving(due) => due,
            Stage::Ready => None,
        }
    }

    /// Returns the trunk of a fork and its address; only the present fork has one.
    pub(super) fn trunk_of(&self, fork: usize) -> Option<(TrunkId, SocketAddr)> {
        let tried = self.tried.as_ref()?;
        match &tried.stage {
            Stage::Calling(calling) if calling.fork == fork => Some((tried.trunk, calling.to)),
            _ => None,
        }
    }

    /// Returns the INVITE for a trunk.
    fn invite(&self, trunk: &Trunk, server: &TrunkAddress) -> Option<(String, Invite)> {
        let interop = &trunk.interop;
        let server = server_uri(server)?;
        let to = server.clone().with_user(&to_carrier(interop, &self.number));
        let (uri, to) = (to.to_string(), NameAddr::new(to).to_string());
        let shown = self.caller.number.as_deref().map(|number| to_carrier(interop, number));
        // An organisation without a number is identified by its account name at the carrier.
        let named = Some(trunk.username.as_str()).filter(|username| !username.is_empty());
        let user = shown.as_deref().or(named).unwrap_or(&self.caller.line);
        let own = NameAddr::new(account_domain(trunk, server).with_user(user)).to_string();
        let from = if self.caller.anonymous { ANONYMOUS.to_owned() } else { own.clone() };
        let mut invite = Invite::new(uri.clone(), from, to)
            .header(Name::MaxForwards.as_str(), self.max_forwards.to_string());
        for (name, value) in &self.headers {
            invite = invite.header(name, value);
        }
        if let Some(route) = proxy_route(trunk) {
            invite = invite.header(Name::Route.as_str(), route);
        }
        for (name, value) in interop.headers.iter().filter_map(|header| header.split_once(": ")) {
            invite = invite.header(name, value);
        }
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

    /// Returns the next step.
    pub(super) fn step(&mut self, now: Instant, id: CallId, context: &mut HuntContext<'_>) -> Step {
        loop {
            if self.attempts >= ATTEMPTS_MAX {
                return Step::Exhausted;
            }
            let Some(tried) = &mut self.tried else {
                match self.next_trunk(now, context) {
                    Some(tried) => self.tried = Some(tried),
                    None => return Step::Exhausted,
                }
                continue;
            };
            if let Stage::Resolving(until) = tried.stage {
                let HuntContext { trunks, ids, outputs, .. } = context;
                let found = match until {
                    Some(_) => {
                        let waiter = (tried.trunk, Waiter::Call(id));
                        trunks.lookup(now, &tried.server, waiter, ids.rng(), outputs)
                    }
                    None => Some(trunks.last(tried.trunk, &tried.server, ids.rng(), outputs)),
                };
                let Some(found) = found else { return Step::Wait };
                tried.addresses = found.into_iter().take(ADDRESSES_MAX).collect();
                tried.stage = Stage::Ready;
            }
            let Some(address) = tried.addresses.pop_front() else {
                match tried.backups.pop_front() {
                    Some(server) => {
                        tried.server = server;
                        tried.stage = Stage::Resolving(Some(now + RESOLVE_MAX));
                    }
                    None => self.tried = None,
                }
                continue;
            };
            match context.trunks.flow_to(&tried.server, address) {
                // The name now prefers another transport (RFC 3261 §26.2.2).
                Ok(flow) if self.secure && flow.protocol != Protocol::Tls => {}
                Ok(flow) => {
                    self.attempts += 1;
                    match self.prepare(flow, context) {
                        Some(step) => return step,
                        None => self.tried = None,
                    }
                }
                // A trunk that leads back to this switch would loop (RFC 3261 §16.3 step 4).
                Err(Unreachable::Ourselves) => self.fault = (482, HangupCause::ExchangeRoutingError),
                Err(Unreachable::NoRoute) => {}
            }
        }
    }

    /// Returns the next trunk that may be tried.
    fn next_trunk(&mut self, now: Instant, context: &HuntContext<'_>) -> Option<TriedTrunk> {
        // Trunks that recently sent no response come after those that did.
        let talks = |trunk: &TrunkId| !context.trunks.state.is_silent(now, *trunk);
        loop {
            let at = self.trunks.iter().position(talks).unwrap_or_default();
            let id = self.trunks.remove(at)?;
            if context.trunks.state.is_resting(now, id) {
                continue;
            }
            let mut servers: VecDeque<_> =
                context.directory.trunk(id).map(next_hops).unwrap_or_default().into();
            // For a name with a preferred transport, the DNS query decides.
            let may_be_tls = |server: &TrunkAddress| {
                server.transport == TrunkTransport::Preferred || context.trunks.is_tls(server)
            };
            servers.retain(|server| !self.secure || may_be_tls(server));
            if let Some(server) = servers.pop_front() {
                // The query starts when this stage is reached.
                let stage = Stage::Resolving(Some(now + RESOLVE_MAX));
                return Some(TriedTrunk {
                    trunk: id,
                    server,
                    backups: servers,
                    addresses: VecDeque::new(),
                    stage,
                });
            }
        }
    }

    fn prepare(&mut self, flow: Flow, context: &mut HuntContext<'_>) -> Option<Step> {
        let tried = self.tried.as_ref()?;
        let trunk = context.directory.trunk(tried.trunk)?;
        let (uri, mut invite) = self.invite(trunk, &named_server(trunk, &tried.server)?)?;
        let state = &mut context.trunks.state;
        if let Some((header, value)) = state.credentials(tried.trunk, flow.remote, "INVITE", &uri) {
            invite = invite.header(header.as_str(), value);
        }
        Some(Step::Call { trunk: tried.trunk, flow, invite: Box::new(invite) })
    }

    /// Records that the fork was invited at that address.
    pub(super) fn called(&mut self, now: Instant, fork: usize, to: SocketAddr, progress: Duration) {
        if let Some(tried) = &mut self.tried {
            let (silent_until, stalled_at) = (Some(now + SILENCE_MAX), Some(now + progress));
            let calling = Calling { fork, to, silent_until, stalled_at, progress, authorized: false };
            tried.stage = Stage::Calling(calling);
        }
    }

    /// Records that the fork has a provisional response other than 100.
    pub(super) fn progressed(&mut self, fork: usize) {
        if let Some(TriedTrunk { stage: Stage::Calling(calling), .. }) = &mut self.tried
            && calling.fork == fork
        {
            calling.stalled_at = None;
        }
    }

    /// Whether another address, server or trunk is left to try.
    fn has_more(&self) -> bool {
        let more = |tried: &TriedTrunk| !tried.addresses.is_empty() || !tried.backups.is_empty();
        self.attempts < ATTEMPTS_MAX && (!self.trunks.is_empty() || self.tried.as_ref().is_some_and(more))
    }

    /// Records that the trunk failed with `status`: next is another address of its name, or the next trunk.
    pub(super) fn failed(&mut self, status: u16) {
        match &mut self.tried {
            // Another address of the name, or another server, may succeed (RFC 3263 §4.3).
            Some(tried) if matches!(status, 408 | 503) => tried.stage = Stage::Ready,
            _ => self.tried = None,
        }
    }

    /// Handles a timeout; call it at [`Hunt::due`].
    pub(super) fn timeout(&mut self, now: Instant) -> Option<HuntTimeout> {
        let has_more = self.has_more();
        let tried = self.tried.as_mut()?;
        match &mut tried.stage {
            Stage::Resolving(until) if until.is_some_and(|until| until <= now) => {
                *until = None;
                Some(HuntTimeout::Unresolved)
            }
            Stage::Calling(calling) if calling.silent_until.is_some_and(|until| until <= now) => {
                calling.silent_until = None;
                Some(HuntTimeout::Silent { trunk: tried.trunk, fork: calling.fork })
            }
            Stage::Calling(calling) if calling.stalled_at.is_some_and(|at| at <= now) => {
                calling.stalled_at = None;
                has_more.then_some(HuntTimeout::Stalled { fork: calling.fork })
            }
            Stage::Calling(_) | Stage::Ready | Stage::Resolving(_) => None,
        }
    }

    /// Returns the trunk whose INVITE is in progress.
    pub(super) fn calls(&self) -> Option<TrunkId> {
        let tried = self.tried.as_ref()?;
        matches!(tried.stage, Stage::Calling(_)).then_some(tried.trunk)
    }

    /// Returns the credentials for a trunk's challenge to the INVITE of a fork; `Err` with the trunk when it
    /// must not get them, `Ok(None)` when the fork is not the present one.
    pub(super) fn authorize(
        &mut self,
        now: Instant,
        fork: usize,
        trunks: &mut Trunks,
        (from, response): (SocketAddr, &Response),
        request: &Request,
    ) -> Result<Option<Extra>, TrunkId> {
        let Some(tried) = &mut self.tried else { return Ok(None) };
        let Stage::Calling(calling) = &mut tried.stage else { return Ok(None) };
        if calling.fork != fork {
            return Ok(None);
        }
        let challenge = Challenge {
            to: calling.to,
            from,
            response,
            method: request.method().as_str(),
            uri: request.uri(),
            tried: calling.authorized,
            in_dialog: false,
        };
        (calling.authorized, calling.silent_until) = (true, Some(now + SILENCE_MAX));
        calling.stalled_at = Some(now + calling.progress);
        trunks.answer(tried.trunk, challenge).map(Some).ok_or(tried.trunk)
    }
}

/// Whether a phone asks to withhold its number: by Privacy (RFC 3323 §4.2) or by an anonymous From
/// (§4.1.1.3).
pub(super) fn wants_privacy(request: &Request) -> bool {
    let asks = request.headers().header_all("Privacy").any(|value| {
        let mut wishes = value.split([';', ',']).map(str::trim);
        wishes.any(|wish| ["id", "user", "header"].iter().any(|known| known.eq_ignore_ascii_case(wish)))
    });
    let from = request.from().ok();
    let host = from.as_ref().and_then(|from| from.uri.host().map(ToString::to_string));
    asks || host.is_some_and(|host| host.eq_ignore_ascii_case("anonymous.invalid"))
}

/// Addresses of one trunk tried per call.
const ADDRESSES_MAX: usize = 3;
/// RFC 3323 §4.1.1.3.
pub(super) const ANONYMOUS: &str = "\"Anonymous\" <sip:anonymous@anonymous.invalid>";
/// Attempts per call, over all trunks.
const ATTEMPTS_MAX: usize = 8;
/// How long a call waits for a name to be resolved.
const RESOLVE_MAX: Duration = Duration::from_secs(4);
/// How long a trunk may send no response: long enough for three lost INVITEs (RFC 3261 §17.1.1.2), and far shorter
/// than the 32 s of timer B, which are too long for a caller.
const SILENCE_MAX: Duration = Duration::from_secs(6);

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use sidetone_sip::flow::ListenerId;
    use uuid::Uuid;

    use super::*;
    use crate::carriers::AddressPolicy;
    use crate::io::Reach;
    use crate::tests::network::{acme, organisation, trunk};
    use crate::trunk_dns::{Answer, Server};

    /// Calls a name that preferred TLS and whose NAPTR records now prefer `later`. Each INVITE gets 503. Returns the
    /// protocols of the INVITEs, and the result when no target is left.
    fn tried(secure: bool, later: Option<TrunkTransport>) -> (Vec<Protocol>, (u16, HangupCause)) {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let start = Instant::now();
        let (mut rng, mut outputs) = (StdRng::seed_from_u64(1), Outputs::new());
        let carrier = trunk(1, "carrier.example");
        let directory = Directory::new(acme(vec![carrier.clone()]));
        let reach = Reach::new(|server, remote| {
            let protocol = match server.transport {
                TrunkTransport::Tcp => Protocol::Tcp,
                TrunkTransport::Tls => Protocol::Tls,
                TrunkTransport::Preferred | TrunkTransport::Udp => Protocol::Udp,
            };
            Ok(Flow { listener: ListenerId(0), remote, protocol })
        });
        let mut trunks = TrunkAccess::new(reach, AddressPolicy::default(), &directory, &mut rng);
        let mut ids = Ids::new(rng, 1);
        let name: TrunkAddress = "sip:carrier.example".parse().unwrap();
        let answer = |transport| Answer {
            servers: [1, 2]
                .map(|last| Server {
                    priority: last.into(),
                    weight: 0,
                    addresses: vec![([203, 0, 113, last], 5061).into()],
                })
                .to_vec(),
            ttl: Duration::from_secs(60),
            transport,
        };
        trunks.resolved(start, &name, answer(Some(TrunkTransport::Tls)));
        let outside = Outside { number: "+447700900123".to_owned(), trunks: vec![&carrier] };
        let caller = CallerId { number: None, line: "1001".to_owned(), anonymous: false };
        let mut hunt = Hunt::new(organisation(1, "").id, &outside, caller, 70).secured(secure);
        // The first answer is no longer valid.
        let now = start + Duration::from_secs(61);
        let mut context =
            HuntContext { trunks: &mut trunks, directory: &directory, ids: &mut ids, outputs: &mut outputs };
        assert!(matches!(hunt.step(now, CallId(Uuid::nil()), &mut context), Step::Wait));
        context.trunks.resolved(now, &name, answer(later));
        let mut protocols = Vec::new();
        while let Step::Call { flow, .. } = hunt.step(now, CallId(Uuid::nil()), &mut context) {
            hunt.called(now, protocols.len(), flow.remote, SILENCE_MAX);
            hunt.failed(503);
            protocols.push(flow.protocol);
        }
        (protocols, hunt.fault)
    }

    /// RFC 3261 §26.2.2, whatever DNS answers meanwhile.
    #[test]
    fn a_sips_call_stays_on_tls_when_naptr_prefers_another_transport() {
        let [none, ordinary] =
            [(480, HangupCause::NoRouteDestination), (503, HangupCause::NetworkOutOfOrder)];
        for (later, protocol) in [
            (Some(TrunkTransport::Tls), Protocol::Tls),
            (Some(TrunkTransport::Tcp), Protocol::Tcp),
            (Some(TrunkTransport::Udp), Protocol::Udp),
            (None, Protocol::Udp),
        ] {
            let secured = if protocol == Protocol::Tls { vec![Protocol::Tls; 2] } else { Vec::new() };
            assert_eq!(tried(true, later), (secured, none), "sips, {later:?}");
            assert_eq!(tried(false, later), (vec![protocol; 2], ordinary), "sip, {later:?}");
        }
    }
}
