//! Resolves the address of a trunk (RFC 3263 §4). For a name without a port and a transport, NAPTR records select the
//! transport; for a name without a port, SRV records are used; then addresses.
//!
//! The switch caches, orders and expires the results; nothing is cached here.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, RecordType};
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};
use sidetone_switch::trunk_dns::{Answer, Server};
use tokio::sync::Semaphore;

/// Queries name servers.
pub struct Resolver {
    /// Absent if the system has no name server: then no name can be resolved.
    inner: Option<TokioResolver>,
    permits: Semaphore,
}

impl Resolver {
    /// Queries `servers`, or the system's servers if the list is empty.
    pub fn new(servers: &[SocketAddr]) -> Self {
        let builder = if servers.is_empty() {
            TokioResolver::builder_tokio()
        } else {
            let config =
                ResolverConfig::from_name_servers(servers.iter().copied().map(name_server).collect());
            Ok(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()))
        };
        let built = builder.and_then(|mut builder| {
            patience(builder.options_mut());
            builder.build()
        });
        if let Err(error) = &built {
            tracing::warn!(%error, "no name server is configured; only trunks with numeric addresses can be reached");
        }
        Resolver { inner: built.ok(), permits: Semaphore::new(LOOKUPS_MAX) }
    }

    /// Returns the servers of a trunk; none if the name service is unavailable or has no records.
    pub async fn lookup(&self, address: &TrunkAddress) -> Answer {
        let asked = async {
            let _permit = self.permits.acquire().await.ok()?;
            match (address.port, address.transport) {
                (Some(port), _) => self.addresses(&address.host, port).await,
                (None, TrunkTransport::Preferred) => self.preferred(address).await,
                (None, transport) => {
                    let service = format!("{}.{}", service_of(transport), address.host);
                    match self.services(&service).await {
                        Some(answer) => Some(answer),
                        None => self.addresses(&address.host, address.default_port()).await,
                    }
                }
            }
        };
        let answer = tokio::time::timeout(LOOKUP_MAX, asked).await.ok().flatten();
        if answer.is_none() {
            tracing::warn!(trunk.address = %address, "the name service does not know the trunk's address");
        }
        answer.unwrap_or_default()
    }

    /// Returns the servers of a name for the transport that it prefers: that of its first NAPTR record with a server
    /// (§4.1), or of its SRV records, or else UDP to its addresses.
    async fn preferred(&self, address: &TrunkAddress) -> Option<Answer> {
        for Pointer { transport, replacement, ttl, .. } in self.pointers(&address.host).await {
            let found = self.services(&replacement).await.filter(|found| !found.servers.is_empty());
            if let Some(found) = found {
                return Some(Answer { ttl: found.ttl.min(ttl), transport: Some(transport), ..found });
            }
        }
        for transport in [TrunkTransport::Udp, TrunkTransport::Tcp] {
            let service = format!("{}.{}", service_of(transport), address.host);
            if let Some(found) = self.services(&service).await {
                return Some(Answer { transport: Some(transport), ..found });
            }
        }
        self.addresses(&address.host, address.default_port()).await
    }

    /// Returns the NAPTR records of a name for transports that the node supports, in the order to try; empty without
    /// such records.
    async fn pointers(&self, host: &str) -> Vec<Pointer> {
        let Some(resolver) = &self.inner else { return Vec::new() };
        let Ok(found) = resolver.lookup(host, RecordType::NAPTR).await else { return Vec::new() };
        let mut pointers: Vec<Pointer> = found
            .answers()
            .iter()
            .filter_map(|record| {
                let RData::NAPTR(naptr) = &record.data else { return None };
                // Records with other flags do not refer to SRV records.
                let transport =
                    transport_of(&naptr.services).filter(|_| naptr.flags.eq_ignore_ascii_case(b"s"))?;
                Some(Pointer {
                    rank: (naptr.order, naptr.preference),
                    transport,
                    replacement: naptr.replacement.to_utf8(),
                    ttl: Duration::from_secs(record.ttl.into()),
                })
            })
            .collect();
        pointers.sort_by_key(|pointer| pointer.rank);
        pointers.truncate(POINTERS_MAX);
        pointers
    }

    /// Returns the servers in the SRV records of a service; `None` without such records.
    async fn services(&self, service: &str) -> Option<Answer> {
        let found = self.inner.as_ref()?.srv_lookup(service).await.ok()?;
        let mut servers = Vec::new();
        let mut ttl = u32::MAX;
        for record in found.answers() {
            let RData::SRV(service) = &record.data else { continue };
            ttl = ttl.min(record.ttl);
            // A single dot means that the service is not available (RFC 2782).
            if service.target.is_root() || servers.len() >= SERVICES_MAX {
                continue;
            }
            let target = service.target.to_utf8();
            let Some(answer) = self.addresses(&target, service.port).await else { continue };
            ttl = ttl.min(u32::try_from(answer.ttl.as_secs()).unwrap_or(u32::MAX));
            servers.extend(answer.servers.into_iter().map(|server| Server {
                priority: service.priority,
                weight: service.weight,
                ..server
            }));
        }
        if ttl == u32::MAX {
            return None;
        }
        Some(Answer { servers, ttl: Duration::from_secs(ttl.into()), transport: None })
    }

    async fn addresses(&self, host: &str, port: u16) -> Option<Answer> {
        let found = self.inner.as_ref()?.lookup_ip(host).await.ok()?;
        let addresses: Vec<SocketAddr> =
            found.iter().map(|ip: IpAddr| SocketAddr::new(ip.to_canonical(), port)).collect();
        let ttl = found.as_lookup().answers().iter().map(|record| record.ttl).min().unwrap_or_default();
        let servers = vec![Server { priority: 0, weight: 0, addresses }];
        Some(Answer { servers, ttl: Duration::from_secs(ttl.into()), transport: None })
    }
}

/// A NAPTR record of a name (RFC 3403 §4.1) that refers to SRV records.
struct Pointer {
    /// Its order and its preference; lower is tried first.
    rank: (u16, u16),
    transport: TrunkTransport,
    /// The name of the SRV records.
    replacement: String,
    ttl: Duration,
}

/// The transport of a service in a NAPTR record (RFC 3263 §4.1); `None` for one that the node does not support.
fn transport_of(services: &[u8]) -> Option<TrunkTransport> {
    let known = [
        ("SIP+D2U", TrunkTransport::Udp),
        ("SIP+D2T", TrunkTransport::Tcp),
        ("SIPS+D2T", TrunkTransport::Tls),
    ];
    let is_it = |name: &str| services.eq_ignore_ascii_case(name.as_bytes());
    known.into_iter().find(|(name, _)| is_it(name)).map(|(_, transport)| transport)
}

/// The prefix of the SRV records of a transport (RFC 3263 §4.2).
fn service_of(transport: TrunkTransport) -> &'static str {
    match transport {
        TrunkTransport::Tcp => "_sip._tcp",
        TrunkTransport::Tls => "_sips._tcp",
        TrunkTransport::Preferred | TrunkTransport::Udp => "_sip._udp",
    }
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

fn patience(options: &mut ResolverOpts) {
    // The switch caches answers itself, and needs their TTL.
    options.cache_size = 0;
    options.timeout = Duration::from_secs(2);
    options.attempts = 2;
}

/// Concurrent queries.
const LOOKUPS_MAX: usize = 64;
/// The longest time for one query, with all further queries that it causes.
const LOOKUP_MAX: Duration = Duration::from_secs(10);
/// NAPTR records of one name that are followed.
const POINTERS_MAX: usize = 4;
/// SRV records of one name that are followed.
const SERVICES_MAX: usize = 16;
