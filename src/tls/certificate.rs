//! A certificate with its key, as read from files.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::InconsistentKeys;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::sign::CertifiedKey;

use crate::tls::authorities::{PemProblem, read_certificates};
use crate::tls::facts::Facts;
use crate::tls::settings::CertificateFiles;

/// Why certificates, keys or authorities cannot be used; one line with the file and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The authorities of a trunk cannot be read.
    #[error("[[tls.trunks]] ca {}: {problem}", file.display())]
    Authorities {
        /// The file.
        file: PathBuf,
        /// The error.
        #[source]
        problem: PemProblem,
    },
    /// A certificate cannot be read.
    #[error("[tls] certificate {}: {problem}", file.display())]
    Certificate {
        /// The file.
        file: PathBuf,
        /// The error.
        #[source]
        problem: PemProblem,
    },
    /// A key cannot be read.
    #[error("[tls] key {}: {reason}; give a PEM file with the private key that this process may read", file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// The error.
        reason: String,
    },
    /// The key belongs to another certificate.
    #[error(
        "[tls] key {}: does not belong to the certificate {}; check that both are of the same renewal",
        key.display(),
        certificate.display()
    )]
    Mismatch {
        /// The key's file.
        key: PathBuf,
        /// The certificate's file.
        certificate: PathBuf,
    },
    /// TLS refuses the files for another reason.
    #[error("[tls] {}: {source}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// The reason.
        #[source]
        source: rustls::Error,
    },
    /// The cryptography provider supports none of the required protocols.
    #[error("[tls] TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// A certificate of this node.
#[derive(Debug, Clone)]
pub(super) struct Certificate {
    /// The chain and its key.
    pub(super) certified: Arc<CertifiedKey>,
    /// The content of the first certificate.
    pub(super) facts: Facts,
}

impl Certificate {
    /// Reads the files, and checks that they belong together.
    pub(super) fn read(files: &CertificateFiles) -> Result<Self, TlsError> {
        let CertificateFiles { certificate: file, key: key_file, .. } = files;
        let wrong = |problem| TlsError::Certificate { file: file.clone(), problem };
        let chain = read_certificates(file).map_err(wrong)?;
        let malformed = || wrong(PemProblem::Unreadable("the certificate is malformed".to_owned()));
        let facts = chain.first().and_then(|own| Facts::of(own)).ok_or_else(malformed)?;
        let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| TlsError::Key {
            file: key_file.clone(),
            reason: match error {
                pem::Error::Io(error) => error.to_string(),
                pem::Error::NoItemsFound => "holds no private key without a passphrase".to_owned(),
                error => error.to_string(),
            },
        })?;
        let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
        let certified = certified.map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::Mismatch { key: key_file.clone(), certificate: file.clone() }
            }
            source => TlsError::Refused { file: key_file.clone(), source },
        })?;
        Ok(Self { certified: Arc::new(certified), facts })
    }
}
