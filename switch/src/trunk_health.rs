//! The health of carriers: their last refusals, and probes of their addresses by OPTIONS.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sidetone_model::directory::Trunk;
use sidetone_model::ids::TrunkId;
use sidetone_model::time::{Now, Timestamp};
use sidetone_model::trunk_address::TrunkAddress;
use sidetone_model::trunk_status::{TrunkAddressState, TrunkRefusal};
use sidetone_sip::message::{Method, Name, Response};
use sidetone_sip::transaction::ClientKey;
use sidetone_sip::ua::{Draft, Ua};

use crate::routing::Directory;
use crate::trunk_servers::{named_server, next_hops, proxy_route, server_uri};

/// The health of all trunks.
#[derive(Default)]
pub(super) struct Health {
    trunks: HashMap<TrunkId, TrunkHealth>,
}

/// The health of one trunk.
#[derive(Default)]
struct TrunkHealth {
    /// *Bounds*: [`REFUSALS_MAX`], newest first.
    refusals: VecDeque<TrunkRefusal>,
    /// The results of the last probes. *Bounds*: [`ADDRESSES_MAX`].
    probes: HashMap<SocketAddr, ProbeState>,
}

/// The result of the last probe of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeState {
    pub(super) state: TrunkAddressState,
    pub(super) round_trip: Option<Duration>,
    pub(super) checked_at: Timestamp,
}

/// Probes of trunks that have an interval for it.
#[derive(Default)]
pub(super) struct TrunkProbes {
    due: BTreeSet<(Instant, TrunkId)>,
    probed: HashMap<TrunkId, Probed>,
    sent: HashMap<ClientKey, Sent>,
}

/// A trunk that is probed.
#[derive(PartialEq, Eq)]
struct Probed {
    servers: Vec<(TrunkAddress, TrunkAddress)>,
    route: Option<String>,
    interval: Duration,
}

struct Sent {
    trunk: TrunkId,
    to: SocketAddr,
    at: Instant,
}

impl Health {
    /// Forgets the trunks that the directory no longer has.
    pub(super) fn replace(&mut self, directory: &Directory) {
        self.trunks.retain(|id, _| directory.trunk(*id).is_some());
    }

    /// Records a refusal of a carrier; `None` is no response. Responses about the called party are not recorded.
    pub(super) fn refused(
        &mut self,
        now: Now,
        trunk: TrunkId,
        to: SocketAddr,
        method: &Method,
        response: Option<&Response>,
    ) {
        let status = response.map(|response| response.status().as_u16());
        if status.is_some_and(|status| OF_THE_PARTY.contains(&status)) {
            return;
        }
        let reason = response.map_or("No response".into(), Response::reason);
        let refusals = &mut self.trunks.entry(trunk).or_default().refusals;
        refusals.truncate(REFUSALS_MAX - 1);
        refusals.push_front(TrunkRefusal {
            at: now.wall,
            address: to.to_string(),
            method: method.as_str().to_owned(),
            status,
            reason: reason.chars().filter(|c| !c.is_control()).take(REASON_LEN_MAX).collect(),
        });
    }

    /// Records the result of a probe.
    fn probed(&mut self, now: Now, trunk: TrunkId, to: SocketAddr, round_trip: Option<Duration>) {
        let probes = &mut self.trunks.entry(trunk).or_default().probes;
        if probes.len() >= ADDRESSES_MAX && !probes.contains_key(&to) {
            // The addresses of a name have changed many times: the results of former addresses are useless.
            probes.clear();
        }
        let before = probes.get(&to).and_then(|before| before.round_trip);
        let state = match round_trip {
            Some(_) => TrunkAddressState::Reachable,
            None => TrunkAddressState::Unreachable,
        };
        probes.insert(to, ProbeState { state, round_trip: round_trip.or(before), checked_at: now.wall });
    }

    /// Returns the last refusals of a trunk, newest first.
    pub(super) fn refusals(&self, trunk: TrunkId) -> Vec<TrunkRefusal> {
        self.trunks.get(&trunk).map(|health| health.refusals.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns the result of the last probe of an address.
    pub(super) fn probe(&self, trunk: TrunkId, address: SocketAddr) -> Option<ProbeState> {
        self.trunks.get(&trunk)?.probes.get(&address).copied()
    }
}

impl TrunkProbes {
    /// Returns when the next probe is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Starts and stops probes to match the directory. The first ones are spread over the interval.
    pub(super) fn follow(&mut self, now: Instant, directory: &Directory) {
        let mut before = std::mem::take(&mut self.probed);
        for trunk in directory.trunks().iter().filter(|trunk| trunk.interop.qualify_seconds > 0) {
            let probed = Probed::of(trunk);
            if before.remove(&trunk.id).is_none_or(|before| before != probed) {
                self.due.retain(|(_, id)| *id != trunk.id);
                let spread = u32::try_from(self.due.len() % FIRST_PROBES).unwrap_or_default();
                self.due.insert((now + FIRST_PROBE_AFTER * (spread + 1), trunk.id));
            }
            self.probed.insert(trunk.id, probed);
        }
        self.due.retain(|(_, id)| !before.contains_key(id));
        self.sent.retain(|_, sent| self.probed.contains_key(&sent.trunk));
    }

    /// Returns the next trunk whose probes are due, with the servers to probe.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(TrunkId, Vec<TrunkAddress>)> {
        let (due, id) = self.due.first().copied().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, id));
        let probed = self.probed.get(&id)?;
        self.due.insert((now + probed.interval, id));
        Some((id, probed.servers.iter().map(|(hop, _)| hop.clone()).collect()))
    }

    /// Probes an address of a server. If the transaction table is full, the probe is skipped and has no result.
    pub(super) fn send(
        &mut self,
        now: Instant,
        trunk: TrunkId,
        hop: &TrunkAddress,
        flow: sidetone_sip::flow::Flow,
        ua: &mut Ua,
    ) {
        let named = self.probed.get(&trunk).and_then(|probed| {
            let named = probed.servers.iter().find(|(server, _)| server == hop)?;
            Some((server_uri(&named.1)?, probed.route.clone()))
        });
        let Some((uri, route)) = named.filter(|_| ua.has_spare_room()) else { return };
        let (to, uri) = (format!("<{uri}>"), uri.to_string());
        let mut draft = Draft::new(Method::Options, uri, "<sip:keepalive@sidetone.invalid>", to)
            .header(Name::Accept.as_str(), "application/sdp");
        if let Some(route) = route {
            draft = draft.header(Name::Route.as_str(), route);
        }
        if let Ok(key) = ua.request(now, flow, draft) {
            self.sent.insert(key, Sent { trunk, to: flow.remote, at: now });
        }
    }

    /// Handles the response to a probe (`is_answered`), or its timeout; returns whether it was a probe.
    pub(super) fn ended(&mut self, now: Now, key: ClientKey, is_answered: bool, health: &mut Health) -> bool {
        let Some(Sent { trunk, to, at }) = self.sent.remove(&key) else { return false };
        let round_trip = is_answered.then(|| now.instant.saturating_duration_since(at));
        health.probed(now, trunk, to, round_trip);
        true
    }
}

impl Probed {
    fn of(trunk: &Trunk) -> Self {
        let hops = next_hops(trunk).into_iter();
        Probed {
            servers: hops.filter_map(|hop| named_server(trunk, &hop).map(|named| (hop, named))).collect(),
            route: proxy_route(trunk),
            interval: Duration::from_secs(trunk.interop.qualify_seconds.into()),
        }
    }
}

/// Most refusals kept of a trunk.
const REFUSALS_MAX: usize = 20;
/// Most characters kept of a reason phrase.
const REASON_LEN_MAX: usize = 100;
/// Most addresses of a trunk whose probes are kept.
const ADDRESSES_MAX: usize = 64;
/// The statuses by which a carrier passes on the answer of the called party (RFC 3261 §21.4, §21.6).
const OF_THE_PARTY: [u16; 6] = [480, 486, 487, 600, 603, 604];
/// The time to the first probe of a trunk, and the number of steps over which first probes are spread.
const FIRST_PROBE_AFTER: Duration = Duration::from_millis(200);
const FIRST_PROBES: usize = 64;
