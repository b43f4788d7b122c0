//! Access to trunks: the addresses to call, the flows to them, and the credentials.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use sidetone_model::directory::Trunk;
use sidetone_model::ids::TrunkId;
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Host, Name, Response, Uri};

use crate::carriers::{AddressPolicy, Carriers};
use crate::io::{Reach, Unreachable};
use crate::routing::Directory;
use crate::switch_io::{Notice, Output, Outputs};
use crate::trunk_dns::{Answer, Names, Waiter};
use crate::trunk_health::Health;
use crate::trunk_servers::all_servers;
use crate::trunks::Trunks;

/// Names, addresses and credentials of all trunks.
pub(super) struct TrunkAccess {
    /// Finds the flow to an address.
    pub(super) reach: Reach,
    /// The health of carriers.
    pub(super) health: Health,
    /// Credentials, and the trunks that asked not to be called.
    pub(super) state: Trunks,
    names: Names,
    carriers: Carriers,
    /// The servers of all trunks that are configured by name.
    servers: HashSet<TrunkAddress>,
    /// When expired names were last queried for the sources of calls.
    refreshed_at: Option<Instant>,
}

impl TrunkAccess {
    pub(super) fn new(reach: Reach, policy: AddressPolicy, directory: &Directory, rng: &mut StdRng) -> Self {
        let mut access = TrunkAccess {
            reach,
            health: Health::default(),
            state: Trunks::default(),
            names: Names::default(),
            carriers: Carriers::new(policy),
            servers: HashSet::new(),
            refreshed_at: None,
        };
        access.replace_credentials(directory, rng);
        access.replace_addresses(directory);
        access
    }

    /// Updates the owners of addresses after a change of the directory.
    pub(super) fn replace_addresses(&mut self, directory: &Directory) {
        self.servers =
            directory.trunks().iter().flat_map(all_servers).filter(|server| server.ip().is_none()).collect();
        self.names.query_unknown(&self.servers);
        self.carriers.replace(directory, &self.names);
        self.health.replace(directory);
    }

    /// Updates the credentials after a change of the directory.
    pub(super) fn replace_credentials(&mut self, directory: &Directory, rng: &mut StdRng) {
        self.state.replace(directory, rng);
    }

    /// Returns the addresses of a trunk that may be called, in order; `None` when a DNS query is pending, whose
    /// result `waiter` will get.
    pub(super) fn lookup(
        &mut self,
        now: Instant,
        server: &TrunkAddress,
        (trunk, waiter): (TrunkId, Waiter),
        rng: &mut StdRng,
        outputs: &mut Outputs,
    ) -> Option<Vec<SocketAddr>> {
        let found = self.names.lookup(now, server, waiter, rng)?;
        Some(self.permitted(trunk, server, found, outputs))
    }

    /// Returns the addresses of a trunk that may be called, from the last answer of DNS.
    pub(super) fn last(
        &mut self,
        trunk: TrunkId,
        server: &TrunkAddress,
        rng: &mut StdRng,
        outputs: &mut Outputs,
    ) -> Vec<SocketAddr> {
        let found = self.names.last(server, rng);
        self.permitted(trunk, server, found, outputs)
    }

    /// Returns a new flow to a trunk that called us over a TLS connection that has closed: we connect
    /// to the same host, at the port of its Contact (RFC 5923, RFC 3261 §12.2.1.1). The trunk's address
    /// gives the name that its certificate must have.
    pub(super) fn way_back(&self, trunk: &Trunk, contact: &Uri, closed: &Flow) -> Option<Flow> {
        if closed.listener.is_outbound() {
            return None;
        }
        let ip = closed.remote.ip();
        let servers: Vec<_> = all_servers(trunk).filter(|server| self.is_tls(server)).collect();
        let is_there = |server: &&TrunkAddress| {
            server.ip() == Some(ip) || self.names.known(server).any(|known| known.ip() == ip)
        };
        let server = servers.iter().find(is_there).or_else(|| servers.first())?.clone();
        // A Contact may contain any address, but we connect only to the trunk's address.
        let is_there = contact.host().and_then(Host::ip).is_none_or(|named| named.to_canonical() == ip);
        let of_contact = contact.port().filter(|_| is_there);
        let port = of_contact.or(server.port).unwrap_or(closed.protocol.default_port());
        self.flow_to(&server, SocketAddr::new(ip, port)).ok()
    }

    /// Whether a server is called over TLS.
    pub(super) fn is_tls(&self, server: &TrunkAddress) -> bool {
        self.names.transport_of(server) == TrunkTransport::Tls
    }

    /// Returns the flow to an address of a server, by the transport that its name prefers.
    ///
    /// # Errors
    /// When the address must not or cannot be called.
    pub(super) fn flow_to(&self, server: &TrunkAddress, address: SocketAddr) -> Result<Flow, Unreachable> {
        let transport = self.names.transport_of(server);
        self.reach.flow_to(&TrunkAddress { transport, ..server.clone() }, address)
    }

    /// Stores an answer of DNS; returns the calls and trunks that waited for it.
    pub(super) fn resolved(&mut self, now: Instant, address: &TrunkAddress, answer: Answer) -> Vec<Waiter> {
        let waiters = self.names.answered(now, address, answer);
        self.carriers.follow(&self.names);
        waiters
    }

    /// Returns the addresses of a server that the trunk may use, from the last answer of DNS.
    pub(super) fn addresses_of(&self, trunk: TrunkId, server: &TrunkAddress) -> Vec<SocketAddr> {
        self.carriers.usable(trunk, server, &self.names)
    }

    /// Whether calls of a trunk come from this source, because it is the address of one of its servers.
    pub(super) fn is_source(&self, trunk: TrunkId, from: &Flow) -> bool {
        self.carriers.is_source(trunk, from.remote, from.protocol.is_reliable())
    }

    /// Returns the addresses of all servers that calls of trunks come from.
    pub(super) fn source_ips(&self) -> impl Iterator<Item = IpAddr> {
        self.carriers.source_ips()
    }

    /// Queries the names whose answers have expired, because a call came from an unknown address.
    pub(super) fn refresh(&mut self, now: Instant) {
        if self.refreshed_at.is_some_and(|at| now.saturating_duration_since(at) < REFRESH_EVERY) {
            return;
        }
        self.refreshed_at = Some(now);
        self.names.query_expired(now, &self.servers);
    }

    /// Returns the next name to query.
    pub(super) fn poll_question(&mut self) -> Option<TrunkAddress> {
        self.names.poll_question()
    }

    /// Returns the addresses that the trunk may reach; a new fault is output.
    fn permitted(
        &mut self,
        trunk: TrunkId,
        server: &TrunkAddress,
        addresses: Vec<SocketAddr>,
        outputs: &mut Outputs,
    ) -> Vec<SocketAddr> {
        let (permitted, fault) = self.carriers.permitted(trunk, server, addresses);
        if let Some((address, fault)) = fault {
            outputs.push_back(Output::Notice(Notice::Carrier(trunk, address, fault)));
        }
        permitted
    }
}

/// Returns for how long a trunk asks not to be called (RFC 3261 §20.33).
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().header_all(Name::RetryAfter).next()?;
    let digits = value.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().map(Duration::from_secs)
}

/// Shortest time between two queries of expired names for unknown sources of calls.
const REFRESH_EVERY: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use sidetone_sip::flow::ListenerId;

    use super::*;
    use crate::carriers::CarrierFault;
    use crate::tests::network::{acme, organisation, trunk};
    use crate::trunk_dns::Server;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    fn a_name_that_resolves_inside_is_refused_with_one_notice() {
        let now = Instant::now();
        let owned = sidetone_model::directory::Trunk {
            organisation_id: Some(organisation(1, "").id),
            ..trunk(1, "carrier.example")
        };
        let id = owned.id;
        let directory = Directory::new(acme(vec![owned]));
        let reach = Reach::new(|_, to| Ok(Flow::udp(ListenerId(0), to)));
        let mut rng = StdRng::seed_from_u64(1);
        let mut access = TrunkAccess::new(reach, AddressPolicy::default(), &directory, &mut rng);
        let mut outputs = Outputs::new();
        let server: TrunkAddress = "sip:carrier.example".parse().unwrap();
        let waiter = (id, Waiter::Trunk(id));
        assert_eq!(access.lookup(now, &server, waiter, &mut rng, &mut outputs), None);
        assert_eq!(access.poll_question(), Some(server.clone()));
        let addresses = vec!["10.0.0.1:5060".parse().unwrap(), "8.8.8.8:5060".parse().unwrap()];
        let servers = vec![Server { priority: 0, weight: 0, addresses }];
        let answer = Answer { servers, ttl: Duration::from_secs(60), transport: None };
        assert_eq!(access.resolved(now, &server, answer), [Waiter::Trunk(id)]);
        for notices in [1, 0] {
            let found = access.last(id, &server, &mut rng, &mut outputs);
            assert_eq!(found, ["8.8.8.8:5060".parse().unwrap()]);
            let told: Vec<Output> = outputs.drain(..).collect();
            assert_eq!(told.len(), notices);
            assert!(
                told.iter().all(|output| matches!(
                    output,
                    Output::Notice(Notice::Carrier(_, _, CarrierFault::Inside))
                ))
            );
        }
    }
}
