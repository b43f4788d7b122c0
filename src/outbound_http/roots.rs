//! The certificate authorities that are trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::tls::{read_certificates, system_authorities};

/// The trusted authorities.
#[derive(Debug, Clone)]
pub struct Roots(RootCertStore);

/// Why the authorities of a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// It contains none, or cannot be read as PEM.
    #[error("[outbound_http] extra_ca {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error in it.
        reason: String,
    },
    /// The cryptography provider supports none of the required protocols.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl Roots {
    /// The system's authorities, and those of a PEM file.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn load(extra: Option<&Path>) -> Result<Self, RootsError> {
        let mut roots = system_authorities();
        if let Some(file) = extra {
            let certificates = read_certificates(file)
                .map_err(|problem| RootsError::File { file: file.into(), reason: problem.to_string() })?;
            for certificate in certificates {
                let wrong = |error: rustls::Error| RootsError::File {
                    file: file.into(),
                    reason: format!("{error}; give a PEM file that can be read"),
                };
                roots.add(certificate).map_err(wrong)?;
            }
        }
        if roots.is_empty() {
            tracing::warn!(
                "the system has no certificate authorities: every callback and webhook will fail; \
                 install ca-certificates"
            );
        }
        Ok(Self(roots))
    }

    /// Trusts only these authorities.
    pub fn only(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates);
        Self(roots)
    }

    /// The TLS configuration with these authorities.
    pub(super) fn client(self) -> Result<ClientConfig, RootsError> {
        // The provider is explicit: it must not depend on the process's default.
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.0)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
