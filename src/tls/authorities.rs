//! Certificate authorities: those of the system, and those in PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

/// Why the certificates of a file cannot be used. The text follows the name of the file and a colon.
#[derive(Debug, thiserror::Error)]
pub enum PemProblem {
    /// It contains none.
    #[error("holds no certificate; give a PEM file")]
    Empty,
    /// It cannot be read as PEM.
    #[error("{0}; give a PEM file that can be read")]
    Unreadable(String),
}

/// The system's authorities; the log lists those that cannot be read.
pub fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some of the system's certificate authorities cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}

/// The certificates of a PEM file; at least one.
///
/// # Errors
/// When the file cannot be read, or contains none.
pub fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PemProblem> {
    let wrong = |error: pem::Error| {
        PemProblem::Unreadable(match error {
            pem::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        })
    };
    let certificates: Vec<_> =
        CertificateDer::pem_file_iter(file).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)?;
    if certificates.is_empty() { Err(PemProblem::Empty) } else { Ok(certificates) }
}
