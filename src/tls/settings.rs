//! `[tls]`: which files contain certificates, keys and authorities.

use std::path::PathBuf;

/// `[tls]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificates of this node. Clients that request no name, or an unknown one, get the first.
    pub certificates: Vec<CertificateFiles>,
    /// Trunks with their own authorities or certificate.
    pub trunks: Vec<TrunkFiles>,
}

/// A certificate with its chain, and its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: the certificate, then those of the intermediate authorities.
    pub certificate: PathBuf,
    /// PEM: the private key.
    pub key: PathBuf,
    /// The names that it is used for; empty for all names in the certificate.
    pub domains: Vec<String>,
}

/// TLS settings of the trunks at one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrunkFiles {
    /// The host of the trunk's address, in lower case.
    pub host: String,
    /// PEM: the only authorities that are trusted for it; `None` for those of the system.
    pub authorities: Option<PathBuf>,
    /// The certificate that is presented to it.
    pub shown: Option<CertificateFiles>,
    /// Whether calls over a connection with its certificate are calls of the trunk.
    pub accept_certificate: bool,
}
