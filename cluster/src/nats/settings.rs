//! The settings of a node's connection to NATS.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::ServerAddr;

/// The servers, and the name of the cluster on them.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    /// The NATS servers, with user and password if required.
    servers: Vec<String>,
    /// The name of the cluster: the first part of every bucket and subject.
    pub name: String,
    /// The number of NATS servers that keep each entry.
    pub replicas: usize,
    /// A PEM file with certificate authorities that are trusted in addition to the system's.
    pub extra_ca: Option<PathBuf>,
    /// How long a node must be silent before another one records its calls.
    pub lost_after: Duration,
    /// The listener for SIP of the other nodes, over UDP or TLS, and the key that all nodes share. Without it, no node
    /// calls the phones of another one.
    pub edge: Option<EdgeSettings>,
}

/// The listener for other nodes.
#[derive(Clone, PartialEq, Eq)]
pub struct EdgeSettings {
    /// Its address, as reachable by the other nodes.
    pub listen: SocketAddr,
    /// The key that signs flow tokens, the same at every node.
    pub key: String,
    /// The files for TLS with the other nodes; `None` for UDP.
    pub tls: Option<NodeTlsFiles>,
}

/// The files for TLS between nodes, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTlsFiles {
    /// The certificate of this node, then those of intermediate authorities.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The only certificate authorities that are trusted for nodes.
    pub authority: PathBuf,
}

/// The reason why a list of servers cannot be used; the text never contains a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServersError {
    /// There is no server, or there are too many.
    #[error("must name 1 to {SERVERS_MAX} servers, such as nats://10.0.0.5:4222")]
    Number,
    /// An entry is not a URL.
    #[error(
        "must be URLs of NATS servers, separated by commas, such as nats://10.0.0.5:4222 or tls://user:password@nats.example:4222"
    )]
    Url,
}

impl ClusterSettings {
    /// Reads the URLs of servers, separated by commas.
    ///
    /// # Errors
    /// A URL is not one of NATS, or there are too many.
    pub fn new(servers: &str) -> Result<Self, ServersError> {
        let servers: Vec<String> =
            servers.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect();
        if servers.is_empty() || servers.len() > SERVERS_MAX {
            return Err(ServersError::Number);
        }
        for url in &servers {
            let scheme = url.split_once("://").map(|(scheme, _)| scheme);
            let is_server = url.parse::<ServerAddr>().is_ok_and(|server| !server.host().is_empty());
            if !matches!(scheme, Some("nats" | "tls")) || !is_server {
                return Err(ServersError::Url);
            }
        }
        Ok(ClusterSettings {
            servers,
            name: DEFAULT_NAME.to_owned(),
            replicas: 1,
            extra_ca: None,
            lost_after: LOST_AFTER,
            edge: None,
        })
    }

    /// The addresses for the client.
    pub(super) fn addresses(&self) -> Vec<ServerAddr> {
        self.servers.iter().filter_map(|url| url.parse().ok()).collect()
    }

    /// Whether a password or the cluster's messages would cross a network without TLS.
    pub fn is_open(&self) -> bool {
        self.servers.iter().any(|url| {
            url.parse::<ServerAddr>().is_ok_and(|server| {
                let host = server.host().trim_matches(['[', ']']);
                let is_near = host == "localhost"
                    || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
                !server.tls_required() && !is_near
            })
        })
    }
}

/// The hosts and ports, without users and passwords.
impl fmt::Display for ClusterSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, server) in self.addresses().iter().enumerate() {
            let scheme = if server.tls_required() { "tls" } else { "nats" };
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{scheme}://{}:{}", server.host(), server.port())?;
        }
        Ok(())
    }
}

impl fmt::Debug for ClusterSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterSettings({self}, {})", self.name)
    }
}

const DEFAULT_NAME: &str = "sidetone";
const LOST_AFTER: Duration = Duration::from_secs(60);
const SERVERS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_urls_and_passwords_are_not_shown() {
        let settings = ClusterSettings::new("nats://sw:hunter2@10.0.0.5:4222, tls://nats.example").unwrap();
        let shown = format!("{settings} {settings:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("sw:"), "{shown}");
        assert_eq!(settings.to_string(), "nats://10.0.0.5:4222,tls://nats.example:4222");
        assert!(settings.is_open());
        assert!(!ClusterSettings::new("nats://127.0.0.1:4222,nats://[::1]:4222").unwrap().is_open());
        assert!(!ClusterSettings::new("tls://nats.example:4222").unwrap().is_open());
        for wrong in ["x", "http://x:1", "nats://", "10.0.0.5:4222", "nats://a:notaport"] {
            assert_eq!(ClusterSettings::new(wrong), Err(ServersError::Url), "{wrong}");
        }
        for wrong in ["", " , ", &"nats://a,".repeat(17)] {
            assert_eq!(ClusterSettings::new(wrong), Err(ServersError::Number), "{wrong}");
        }
    }
}
