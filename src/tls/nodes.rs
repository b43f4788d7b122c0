//! TLS between the nodes of a cluster: `[cluster] tls_certificate`, `tls_key` and `tls_authority`.
//!
//! A certificate belongs to a node if its DNS names contain the node's name, or it contains the address of the node's
//! listener. Authorities of the system are not trusted for it.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig};
use sidetone_cluster::nats::NodeTlsFiles;
use sidetone_model::time::Timestamp;
use sidetone_sip::transport::{NodePeers, NodeTls};

use crate::clock::instant;
use crate::tls::authorities::read_certificates;
use crate::tls::certificate::{Certificate, TlsError};
use crate::tls::facts::Facts;
use crate::tls::reason::tls_reason;
use crate::tls::review::Remark;
use crate::tls::server_verifier::ServerVerifier;
use crate::tls::settings::CertificateFiles;
use crate::tls::trunks::provider;

/// Why nodes cannot use TLS; one line with the file and a remedy.
#[derive(Debug, thiserror::Error)]
#[error("[cluster] {0}")]
pub struct NodeTlsError(String);

/// The other nodes by the addresses of their listeners, with their names; clones share it.
#[derive(Clone, Default)]
pub struct NodeNames(Arc<Names>);

#[derive(Default)]
struct Names {
    nodes: RwLock<HashMap<SocketAddr, String>>,
    /// When a failure with an address was last logged.
    logged: Mutex<HashMap<IpAddr, Instant>>,
}

impl NodeNames {
    /// Replaces the nodes.
    pub fn replace(&self, nodes: HashMap<SocketAddr, String>) {
        self.0.logged.lock().retain(|address, _| nodes.keys().any(|node| node.ip() == *address));
        *self.0.nodes.write() = nodes;
    }
}

impl NodePeers for NodeNames {
    fn has(&self, address: IpAddr) -> bool {
        self.0.nodes.read().keys().any(|node| node.ip() == address)
    }

    fn is_of(&self, certificate: &CertificateDer<'_>, listener: SocketAddr) -> bool {
        let nodes = self.0.nodes.read();
        let Some((name, facts)) = nodes.get(&listener).zip(Facts::of(certificate)) else { return false };
        facts.addresses.contains(&listener.ip()) || facts.dns.contains(&name.to_ascii_lowercase())
    }

    fn failed(&self, address: SocketAddr, error: &io::Error) {
        let now = instant();
        let mut logged = self.0.logged.lock();
        let is_new = logged.get(&address.ip()).is_none_or(|last| now.duration_since(*last) > LOG_EVERY);
        // Only members have entries.
        if is_new && self.has(address.ip()) {
            logged.insert(address.ip(), now);
            tracing::warn!(%address, reason = tls_reason(error), "TLS with another node failed");
        }
    }
}

/// Reads the files.
///
/// # Errors
/// A file that cannot be used.
pub fn node_tls(files: &NodeTlsFiles, names: NodeNames) -> Result<NodeTls, NodeTlsError> {
    let own = own_certificate(files)?;
    let roots = Arc::new(authority(&files.authority)?);
    let setup = |error: Error| NodeTlsError(format!("TLS between nodes cannot be set up: {error}"));
    let chosen = || Arc::new(SingleCertAndKey::from(Arc::clone(&own.certified)));
    let algorithms = provider().signature_verification_algorithms;
    // After the handshake, both sides check by the same rule which node a certificate belongs to.
    let verifier = ServerVerifier { roots: Arc::clone(&roots), algorithms, is_named: |_, _| Ok(()) };
    let client = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(setup)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(chosen());
    let clients = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
    let clients = clients.map_err(|error| setup(Error::General(error.to_string())))?;
    let server = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(setup)?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(chosen());
    Ok(NodeTls { server: Arc::new(server), client: Arc::new(client), peers: Arc::new(names) })
}

/// Reviews the files for the node with this name and listener address.
pub fn review_nodes(files: &NodeTlsFiles, (name, listen): (&str, SocketAddr), now: Timestamp) -> Vec<Remark> {
    let facts = match own_certificate(files) {
        Ok(own) => own.facts,
        Err(error) => return vec![Remark::Problem(error.to_string())],
    };
    if let Err(error) = authority(&files.authority) {
        return vec![Remark::Problem(error.to_string())];
    }
    let day = |time: Timestamp| time.to_string().chars().take(10).collect::<String>();
    let (file, ends) = (files.certificate.display(), day(facts.ends));
    let is_own = facts.addresses.contains(&listen.ip()) || facts.dns.contains(&name.to_ascii_lowercase());
    let wrong = if facts.ends < now {
        Some(format!("has expired on {ends}; renew it and start the node again"))
    } else if facts.begins > now {
        Some(format!("is not valid before {}; check the clock of this host", day(facts.begins)))
    } else if !is_own {
        Some(format!("has neither the name {name} nor the address {}; other nodes refuse it", listen.ip()))
    } else {
        None
    };
    if let Some(wrong) = wrong {
        return vec![Remark::Problem(format!("[cluster] tls_certificate {file}: {wrong}"))];
    }
    let mut remarks = Vec::new();
    if facts.ends.since(now) < WARNING_MICROS {
        let text = format!("expires on {ends}; renew it and start the node again");
        remarks.push(Remark::Warning(format!("[cluster] tls_certificate {file}: {text}")));
    }
    remarks.push(Remark::Well(format!(
        "SIP between nodes over TLS at {listen}, certificate {file}, until {ends}"
    )));
    remarks
}

fn own_certificate(files: &NodeTlsFiles) -> Result<Certificate, NodeTlsError> {
    let NodeTlsFiles { certificate, key, .. } = files;
    let read = CertificateFiles { certificate: certificate.clone(), key: key.clone(), domains: Vec::new() };
    Certificate::read(&read).map_err(|error| {
        NodeTlsError(match error {
            TlsError::Certificate { file, problem } => {
                format!("tls_certificate {}: {problem}", file.display())
            }
            TlsError::Key { file, reason } => {
                format!(
                    "tls_key {}: {reason}; give a PEM file with the private key that this process may read",
                    file.display()
                )
            }
            TlsError::Mismatch { key, certificate } => format!(
                "tls_key {}: does not belong to the certificate {}; check that both are of the same renewal",
                key.display(),
                certificate.display()
            ),
            error => format!("tls_certificate {}: {error}", certificate.display()),
        })
    })
}

fn authority(file: &Path) -> Result<RootCertStore, NodeTlsError> {
    let wrong = |reason: String| NodeTlsError(format!("tls_authority {}: {reason}", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(file).map_err(|problem| wrong(problem.to_string()))? {
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(roots)
}

/// A certificate that expires sooner causes a warning: 30 days.
const WARNING_MICROS: i64 = 30 * 86_400 * 1_000_000;
/// Shortest interval between log lines about failures with one node.
const LOG_EVERY: Duration = Duration::from_secs(10);
