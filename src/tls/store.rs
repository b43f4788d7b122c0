//! The certificates in use, replaced completely by a reload.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};
use sidetone_sip::flow::Protocol;
use sidetone_sip::transport::TlsSettings;

use crate::tls::authorities::system_authorities;
use crate::tls::certificate::{Certificate, TlsError};
use crate::tls::settings::TlsFiles;
use crate::tls::trunks::{AnyClient, Trunk, client_config, proven_domains, provider};

/// The certificates of this node, and the settings of trunks over TLS; cheap to clone.
#[derive(Clone)]
pub struct TlsStore(Arc<RwLock<Arc<Loaded>>>);

/// The result of one reading of the files.
struct Loaded {
    /// `None` without a certificate: then no listener uses TLS.
    servers: Option<Servers>,
    /// Trunks with their own settings, by host.
    trunks: HashMap<String, Trunk>,
    /// The settings for other trunks; created with the first connection to one.
    others: OnceLock<Option<Arc<ClientConfig>>>,
}

/// The settings of this node's listeners.
struct Servers {
    http: Arc<ServerConfig>,
    sip: Arc<ServerConfig>,
    websocket: Arc<ServerConfig>,
}

impl TlsStore {
    /// Reads the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn open(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(RwLock::new(Arc::new(Loaded::read(files)?)))))
    }

    /// Reads the files again, for the next connections; existing ones continue.
    ///
    /// # Errors
    /// The first file that cannot be used; nothing is changed then.
    pub fn reload(&self, files: &TlsFiles) -> Result<(), TlsError> {
        let loaded = Arc::new(Loaded::read(files)?);
        *self.0.write() = loaded;
        Ok(())
    }

    /// The settings of HTTP connections; `None` without a certificate.
    pub fn http(&self) -> Option<Arc<ServerConfig>> {
        self.loaded().servers.as_ref().map(|servers| Arc::clone(&servers.http))
    }

    fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.0.read())
    }
}

impl TlsSettings for TlsStore {
    fn server(&self, protocol: Protocol) -> Option<Arc<ServerConfig>> {
        let loaded = self.loaded();
        let servers = loaded.servers.as_ref()?;
        Some(Arc::clone(if protocol == Protocol::Wss { &servers.websocket } else { &servers.sip }))
    }

    fn client(&self, server: &str) -> Option<Arc<ClientConfig>> {
        let loaded = self.loaded();
        if let Some(trunk) = loaded.trunks.get(server) {
            return Some(Arc::clone(&trunk.client));
        }
        let others = loaded.others.get_or_init(|| {
            let made = client_config(Arc::new(system_authorities()), None);
            made.inspect_err(|error| tracing::error!(%error, "no trunk can be reached over TLS"))
                .ok()
                .map(Arc::new)
        });
        others.clone()
    }

    fn client_names(&self, certificates: &[CertificateDer<'_>]) -> Vec<String> {
        let loaded = self.loaded();
        let is_proven = |(host, trunk): (&String, &Trunk)| {
            let verifier = trunk.identified_by.as_deref()?;
            proven_domains(verifier, certificates).contains(host).then(|| host.clone())
        };
        loaded.trunks.iter().filter_map(is_proven).collect()
    }
}

impl Loaded {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let mut trunks = HashMap::new();
        for trunk in &files.trunks {
            trunks.insert(trunk.host.clone(), Trunk::read(trunk)?);
        }
        let asks_clients = trunks.values().any(|trunk| trunk.identified_by.is_some());
        let servers = match ByName::read(files)? {
            Some(by_name) => Some(Servers::new(&Arc::new(by_name), asks_clients)?),
            None => None,
        };
        Ok(Self { servers, trunks, others: OnceLock::new() })
    }
}

impl Servers {
    fn new(by_name: &Arc<ByName>, asks_clients: bool) -> Result<Self, TlsError> {
        let config = |protocols: &[&[u8]], asks_clients: bool| -> Result<Arc<ServerConfig>, TlsError> {
            let provider = provider();
            let algorithms = provider.signature_verification_algorithms;
            // TLS 1.2 and 1.3: rustls has no older version.
            let builder =
                ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
            let builder = if asks_clients {
                builder.with_client_cert_verifier(Arc::new(AnyClient(algorithms)))
            } else {
                builder.with_no_client_auth()
            };
            let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(by_name) as _;
            let mut config = builder.with_cert_resolver(resolver);
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Ok(Arc::new(config))
        };
        Ok(Self {
            http: config(&[b"h2", b"http/1.1"], false)?,
            sip: config(&[], asks_clients)?,
            // Browsers would prompt the user for a certificate.
            websocket: config(&[b"http/1.1"], false)?,
        })
    }
}

/// Selects a certificate by the name that a client requests.
#[derive(Debug)]
struct ByName {
    first: Arc<CertifiedKey>,
    /// By name in lower case; `*.example.com` for all names one label below `example.com`.
    names: HashMap<String, Arc<CertifiedKey>>,
}

impl ByName {
    fn read(files: &TlsFiles) -> Result<Option<Self>, TlsError> {
        let mut first = None;
        let mut names = HashMap::new();
        for files in &files.certificates {
            let Certificate { certified, facts } = Certificate::read(files)?;
            let shown_for = if files.domains.is_empty() {
                [facts.dns, facts.sip].concat()
            } else {
                files.domains.clone()
            };
            for name in shown_for {
                names.entry(name).or_insert_with(|| Arc::clone(&certified));
            }
            first.get_or_insert(certified);
        }
        Ok(first.map(|first| Self { first, names }))
    }

    fn of(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let found = name.and_then(|name| {
            let name = name.to_ascii_lowercase();
            let wildcard =
                || name.split_once('.').and_then(|(_, parent)| self.names.get(&format!("*.{parent}")));
            self.names.get(&name).or_else(wildcard)
        });
        Arc::clone(found.unwrap_or(&self.first))
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.of(hello.server_name()))
    }
}
