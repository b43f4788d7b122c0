//! Resolves the address of a trunk (RFC 3263 §4.2): SRV records for a name without a port, then addresses.
//!
//! The switch caches, orders and expires the results; nothing is cached here.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::RData;
use sidetone_model::trunk_address::{TrunkAddress, TrunkTransport};
use sidetone_switch::trunk_dns::{Answer, Server};
use tokio::sync::Semaphore;

/// Asks name servers.
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

    /// Returns the servers of a trunk; none when the name service is unavailable or has none.
    pub async fn lookup(&self, address: &TrunkAddress) -> Answer {
        let asked = async {
            let _permit = self.permits.acquire().await.ok()?;
            match address.port {
                Some(port) => self.addresses(&address.host, port).await,
                None => match self.services(address).await {
                    Some(answer) => Some(answer),
                    None => self.addresses(&address.host, address.default_port()).await,
                },
            }
        };
        let answer = tokio::time::timeout(LOOKUP_MAX, asked).await.ok().flatten();
        if answer.is_none() {
            tracing::warn!(trunk.address = %address, "the name service does not know the trunk's address");
        }
        answer.unwrap_or_default()
    }

    /// Returns the servers in the SRV records of a name; `None` without such records.
    async fn services(&self, address: &TrunkAddress) -> Option<Answer> {
        let service = match address.transport {
            TrunkTransport::Tcp => "_sip._tcp",
            TrunkTransport::Tls => "_sips._tcp",
            TrunkTransport::Udp => "_sip._udp",
        };
        let found = self.inner.as_ref()?.srv_lookup(format!("{service}.{}", address.host)).await.ok()?;
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
        Some(Answer { servers, ttl: Duration::from_secs(ttl.into()) })
    }

    async fn addresses(&self, host: &str, port: u16) -> Option<Answer> {
        let found = self.inner.as_ref()?.lookup_ip(host).await.ok()?;
        let addresses: Vec<SocketAddr> =
            found.iter().map(|ip: IpAddr| SocketAddr::new(ip.to_canonical(), port)).collect();
        let ttl = found.as_lookup().answers().iter().map(|record| record.ttl).min().unwrap_or_default();
        let servers = vec![Server { priority: 0, weight: 0, addresses }];
        Some(Answer { servers, ttl: Duration::from_secs(ttl.into()) })
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
/// SRV records of one name that are followed.
const SERVICES_MAX: usize = 16;
