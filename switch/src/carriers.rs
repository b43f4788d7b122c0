//! Which addresses a trunk may reach. Checked each time an address is used, whether it was written or
//! resolved.
//!
//! The owner of a name can make it resolve to any machine at any time. So the name of a tenant's trunk must
//! resolve to a public address, or to one that `[sip] allow_trunk_addresses` permits. A private address
//! written as a literal was written by the operator, because tenants are refused when they store one.
//!
//! A carrier that identifies this engine by its address cannot distinguish its tenants. So an address belongs
//! to one organisation: a trunk of another one neither registers nor calls there, and is not recognised by
//! that address. The owner is the organisation that wrote the address as a literal; else the one whose name
//! resolved to it first and still does; else the one with the older trunk. Addresses of a trunk that all
//! organisations share belong to the operator.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use sidetone_model::directory::Network;
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::public_address::is_public;
use sidetone_model::trunk::may_be_a_peer;
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};

use crate::routing::Directory;
use crate::trunk_dns::Names;
use crate::trunk_servers::all_servers;

/// Addresses that names of tenants' trunks may resolve to.
#[derive(Clone, Debug, Default)]
pub struct AddressPolicy {
    allow: Vec<Network>,
    own: Vec<IpAddr>,
}

/// Why a trunk may not use an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierFault {
    /// It is not public, or it is this engine's own address.
    Inside,
    /// It belongs to another organisation, or to the operator.
    Taken,
}

impl AddressPolicy {
    /// Permits `allow` in addition to public addresses; `own` are the addresses of this host.
    pub fn new(allow: Vec<Network>, own: Vec<IpAddr>) -> Self {
        AddressPolicy { allow, own: own.into_iter().map(|address| address.to_canonical()).collect() }
    }

    fn permits(&self, is_literal: bool, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if self.allow.iter().any(|network| network.contains(address)) {
            return true;
        }
        let is_outside = if is_literal { true } else { may_be_a_peer(address) };
        // A literal is accepted even if it is private, because only the operator can store one. An own
        // address is accepted only as a private literal.
        is_outside && !(self.own.contains(&address) && (!is_literal || is_public(address)))
    }
}

/// The addresses of all trunks, and their owners.
pub(super) struct Carriers {
    policy: AddressPolicy,
    trunks: HashMap<TrunkId, Entry>,
    /// The addresses that belong to an organisation.
    owners: HashMap<Place, OrganisationId>,
    /// Addresses of trunks that all organisations share.
    shared: HashSet<Place>,
    /// The configured servers of these trunks: a tenant's trunk with the same server was permitted by the
    /// operator.
    shared_servers: HashSet<TrunkAddress>,
    /// The trunks whose calls come from an address, and how they are called there.
    sources: HashMap<SocketAddr, Vec<(TrunkId, TrunkTransport)>>,
    source_ips: HashMap<IpAddr, Vec<(TrunkId, TrunkTransport)>>,
    /// Trunks whose fault has been reported.
    reported: HashMap<TrunkId, CarrierFault>,
}

struct Entry {
    owner: Option<OrganisationId>,
    servers: Vec<TrunkAddress>,
    age: usize,
}

/// The unit of ownership: a public address with all its ports, because they are the same carrier's; for a
/// private address a single port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place(IpAddr, Option<u16>);

impl Place {
    fn of(address: SocketAddr) -> Self {
        let ip = address.ip().to_canonical();
        Place(ip, (!may_be_a_peer(ip)).then_some(address.port()))
    }
}

impl Carriers {
    pub(super) fn new(policy: AddressPolicy) -> Self {
        Carriers {
            policy,
            trunks: HashMap::new(),
            owners: HashMap::new(),
            shared: HashSet::new(),
            shared_servers: HashSet::new(),
            sources: HashMap::new(),
            source_ips: HashMap::new(),
            reported: HashMap::new(),
        }
    }

    /// Updates the trunks after a change of the directory.
    pub(super) fn replace(&mut self, directory: &Directory, names: &Names) {
        self.trunks.clear();
        for trunk in directory.trunks() {
            let servers: Vec<TrunkAddress> = all_servers(trunk).collect();
            if !servers.is_empty() {
                let entry =
                    Entry { owner: trunk.organisation_id, servers, age: directory.trunk_age(trunk.id) };
                self.trunks.insert(trunk.id, entry);
            }
        }
        self.reported.retain(|id, _| self.trunks.contains_key(id));
        self.follow(names);
    }

    /// Recomputes the owners from the resolved addresses of names.
    pub(super) fn follow(&mut self, names: &Names) {
        let before = std::mem::take(&mut self.owners);
        self.shared.clear();
        self.shared_servers.clear();
        let mut claims = Vec::new();
        for entry in self.trunks.values() {
            for server in &entry.servers {
                let places = addresses(server, names).map(Place::of);
                match entry.owner {
                    None => {
                        self.shared.extend(places);
                        self.shared_servers.insert(server.clone());
                    }
                    Some(owner) => claims.extend(places.map(|place| {
                        let is_name = server.ip().is_none();
                        let is_new = before.get(&place) != Some(&owner);
                        ((is_name, is_new, entry.age), place, owner)
                    })),
                }
            }
        }
        claims.sort_unstable_by_key(|(rank, ..)| *rank);
        for (_, place, owner) in claims {
            self.owners.entry(place).or_insert(owner);
        }
        self.follow_sources(names);
    }

    /// Recomputes the addresses that calls of trunks come from.
    fn follow_sources(&mut self, names: &Names) {
        let mut sources: HashMap<SocketAddr, Vec<(TrunkId, TrunkTransport)>> = HashMap::new();
        let mut source_ips: HashMap<IpAddr, Vec<(TrunkId, TrunkTransport)>> = HashMap::new();
        for (id, entry) in &self.trunks {
            for server in &entry.servers {
                for address in addresses(server, names).filter(|at| self.fault(entry, server, *at).is_none())
                {
                    let ip = address.ip().to_canonical();
                    let source = (*id, names.transport_of(server));
                    sources.entry(SocketAddr::new(ip, address.port())).or_default().push(source);
                    source_ips.entry(ip).or_default().push(source);
                }
            }
        }
        (self.sources, self.source_ips) = (sources, source_ips);
    }

    /// Whether calls of a trunk come from there, because it is one of its servers: over UDP the address and port that
    /// the trunk is called at, over a connection any port of the address of a server that is called over one.
    pub(super) fn is_source(&self, trunk: TrunkId, source: SocketAddr, is_connection: bool) -> bool {
        let ip = source.ip().to_canonical();
        let found = if is_connection {
            self.source_ips.get(&ip)
        } else {
            self.sources.get(&SocketAddr::new(ip, source.port()))
        };
        found.is_some_and(|found| {
            let is_it = |(id, transport): &(TrunkId, TrunkTransport)| {
                *id == trunk && (*transport == TrunkTransport::Udp) != is_connection
            };
            found.iter().any(is_it)
        })
    }

    /// Returns the addresses of all servers that calls of trunks come from.
    pub(super) fn source_ips(&self) -> impl Iterator<Item = IpAddr> {
        self.source_ips.keys().copied()
    }

    /// Returns the addresses that the trunk may reach, and a fault if one of them is refused. A fault is
    /// reported once, until it changes or ends.
    pub(super) fn permitted(
        &mut self,
        trunk: TrunkId,
        server: &TrunkAddress,
        mut addresses: Vec<SocketAddr>,
    ) -> (Vec<SocketAddr>, Option<(IpAddr, CarrierFault)>) {
        let Some(entry) = self.trunks.get(&trunk) else { return (Vec::new(), None) };
        let mut fault = None;
        addresses.retain(|address| match self.fault(entry, server, *address) {
            Some(found) => {
                fault = Some((address.ip(), found));
                false
            }
            None => true,
        });
        let Some((address, found)) = fault else {
            self.reported.remove(&trunk);
            return (addresses, None);
        };
        let is_news = self.reported.insert(trunk, found) != Some(found);
        (addresses, is_news.then_some((address, found)))
    }

    /// Returns the known addresses of a server that the trunk may use.
    pub(super) fn usable(&self, trunk: TrunkId, server: &TrunkAddress, names: &Names) -> Vec<SocketAddr> {
        let Some(entry) = self.trunks.get(&trunk) else { return Vec::new() };
        let mut usable: Vec<_> = addresses(server, names)
            .filter(|address| self.fault(entry, server, *address).is_none())
            .collect();
        usable.truncate(USABLE_MAX);
        usable
    }

    /// Returns why a trunk may not use an address of its server.
    fn fault(&self, entry: &Entry, server: &TrunkAddress, address: SocketAddr) -> Option<CarrierFault> {
        let owner = entry.owner?;
        let place = Place::of(address);
        let is_shared_knowingly = self.shared_servers.contains(server);
        let is_taken = self.owners.get(&place).is_some_and(|found| *found != owner)
            || (self.shared.contains(&place) && !is_shared_knowingly);
        if !self.policy.permits(server.ip().is_some(), address.ip()) {
            Some(CarrierFault::Inside)
        } else {
            is_taken.then_some(CarrierFault::Taken)
        }
    }
}

/// Returns the addresses of a server: its literal, or the last resolved addresses of its name.
fn addresses(server: &TrunkAddress, names: &Names) -> impl Iterator<Item = SocketAddr> {
    let port = server.port.unwrap_or(server.default_port());
    let literal = server.ip().map(|ip| SocketAddr::new(ip, port));
    literal.into_iter().chain(names.known(server))
}

/// Addresses of a server that are probed and shown.
const USABLE_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use sidetone_model::directory::Trunk;

    use super::*;
    use crate::tests::network::{acme, organisation, trunk};
    use crate::trunk_dns::{Answer, Server, Waiter};

    const ACME: u128 = 1;
    const OTHER: u128 = 2;

    fn owned(n: u16, owner: u128, address: &str) -> Trunk {
        let organisation_id = (owner > 0).then(|| organisation(owner, "").id);
        Trunk { organisation_id, ..trunk(n, address) }
    }

    struct World {
        carriers: Carriers,
        names: Names,
        rng: StdRng,
        now: Instant,
    }

    impl World {
        fn new(trunks: Vec<Trunk>, policy: AddressPolicy) -> World {
            #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
            let now = Instant::now();
            let (mut carriers, names) = (Carriers::new(policy), Names::default());
            carriers.replace(&Directory::new(acme(trunks)), &names);
            World { carriers, names, rng: StdRng::seed_from_u64(1), now }
        }

        /// Makes the name of trunk `n` resolve to `to`; returns how many of these the trunk may reach.
        fn resolve(&mut self, n: u16, name: &str, to: &[&str]) -> usize {
            let server: TrunkAddress = format!("sip:{name}").parse().unwrap();
            let id = trunk(n, name).id;
            self.now += Duration::from_secs(3_601);
            let _ = self.names.lookup(self.now, &server, Waiter::Trunk(id), &mut self.rng);
            let addresses = to.iter().map(|to| to.parse().unwrap()).collect();
            let servers = vec![Server { priority: 0, weight: 0, addresses }];
            self.names.answered(
                self.now,
                &server,
                Answer { servers, ttl: Duration::from_secs(60), transport: None },
            );
            self.carriers.follow(&self.names);
            self.reach(n, to)
        }

        fn reach(&mut self, n: u16, to: &[&str]) -> usize {
            let addresses = to.iter().map(|to| to.parse().unwrap()).collect();
            let id = trunk(n, "").id;
            let server = self.carriers.trunks[&id].servers[0].clone();
            self.carriers.permitted(id, &server, addresses).0.len()
        }
    }

    #[test]
    fn a_tenants_name_leads_to_public_addresses_alone() {
        let trunks =
            vec![owned(1, ACME, "acme.example"), owned(2, 0, "pbx.example"), owned(3, ACME, "10.0.0.7")];
        let own = vec!["9.9.9.9".parse().unwrap()];
        let allow: Vec<Network> = vec!["127.0.0.0/8".parse().unwrap()];
        let mut strict = World::new(trunks.clone(), AddressPolicy::new(Vec::new(), own.clone()));
        let inside = [
            "127.0.0.1:5060",
            "10.0.0.1:5060",
            "169.254.169.254:80",
            "192.168.1.1:5060",
            "100.64.0.1:5060",
            "0.0.0.0:5060",
            "[::1]:5060",
            "[::ffff:127.0.0.1]:5060",
            "[fd00::1]:5060",
            "[64:ff9b::7f00:1]:5060",
            "[2002:7f00:1::]:5060",
            "224.0.0.1:5060",
            "9.9.9.9:8080",
        ];
        for address in inside {
            assert_eq!(strict.resolve(1, "acme.example", &[address]), 0, "{address}");
            assert_eq!(strict.resolve(2, "pbx.example", &[address]), 1, "the operator's: {address}");
            // Free the address again, so that the operator's name does not own it.
            strict.resolve(2, "pbx.example", &[]);
        }
        assert_eq!(strict.resolve(1, "acme.example", &["127.0.0.1:5060", "8.8.8.8:5060"]), 1, "rebinding");
        assert_eq!(strict.reach(3, &["10.0.0.7:5060"]), 1, "a literal that the operator wrote");
        let mut open = World::new(trunks, AddressPolicy::new(allow, own));
        assert_eq!(open.resolve(1, "acme.example", &["127.0.0.1:5060", "10.0.0.1:5060"]), 1);
    }

    #[test]
    fn an_address_belongs_to_one_organisation() {
        let trunks = vec![
            owned(1, ACME, "acme.example"),
            owned(2, OTHER, "other.example"),
            owned(3, OTHER, "8.8.4.4"),
            owned(4, 0, "shared.example"),
        ];
        let mut world = World::new(trunks, AddressPolicy::default());
        let carrier = ["8.8.8.8:5060"];
        // The first to resolve to it keeps it, whichever name resolves to it later.
        assert_eq!(world.resolve(2, "other.example", &carrier), 1);
        assert_eq!(
            world.resolve(1, "acme.example", &["8.8.8.8:5090"]),
            0,
            "another port of the same carrier"
        );
        assert_eq!(world.reach(2, &carrier), 1);
        // Once given up, the address is free.
        assert_eq!(world.resolve(2, "other.example", &["8.8.8.9:5060"]), 1);
        assert_eq!(world.reach(1, &carrier), 1);
        // A literal takes precedence over every name.
        assert_eq!(world.resolve(1, "acme.example", &["8.8.4.4:5060"]), 0);
        assert_eq!(world.reach(3, &["8.8.4.4:5060"]), 1);
        // Addresses of the operator's shared trunk belong to no organisation.
        assert_eq!(world.resolve(4, "shared.example", &["1.1.1.1:5060"]), 1);
        assert_eq!(world.resolve(1, "acme.example", &["1.1.1.1:5060"]), 0);
    }

    #[test]
    fn of_two_that_are_found_at_once_the_older_trunk_has_it() {
        let trunks = vec![owned(7, OTHER, "8.8.8.8"), owned(1, ACME, "8.8.8.8")];
        let mut world = World::new(trunks, AddressPolicy::default());
        assert_eq!(world.reach(7, &["8.8.8.8:5060"]), 1, "the first of the snapshot is the older one");
        assert_eq!(world.reach(1, &["8.8.8.8:5060"]), 0);
    }

    #[test]
    fn a_fault_is_reported_once() {
        let mut world = World::new(vec![owned(1, ACME, "acme.example")], AddressPolicy::default());
        let id = trunk(1, "").id;
        let server: TrunkAddress = "sip:acme.example".parse().unwrap();
        let inside: SocketAddr = "10.0.0.1:5060".parse().unwrap();
        let fault = Some((inside.ip(), CarrierFault::Inside));
        assert_eq!(world.carriers.permitted(id, &server, vec![inside]), (vec![], fault));
        assert_eq!(world.carriers.permitted(id, &server, vec![inside]), (vec![], None));
        world.carriers.permitted(id, &server, vec!["8.8.8.8:5060".parse().unwrap()]);
        assert_eq!(world.carriers.permitted(id, &server, vec![inside]).1, fault);
    }
}
