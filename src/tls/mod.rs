//! TLS: this node's certificates, and the authorities that trunks' certificates are checked with.
//!
//! Certificates and keys are PEM files that the operator configures. They are read at the start and again on SIGHUP;
//! a failed reload changes nothing. [`TlsStore`] selects a certificate by the name that a client requests (SNI), and
//! verifies servers and clients according to RFC 5922. Nodes of a cluster have their own certificate and authority
//! (`nodes.rs`).

mod authorities;
mod certificate;
mod facts;
mod nodes;
mod reason;
mod review;
mod server_verifier;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod trunks;

pub use authorities::{PemProblem, read_certificates, system_authorities};
pub use certificate::TlsError;
pub use nodes::{NodeNames, NodeTlsError, node_tls, review_nodes};
pub use reason::tls_reason;
pub use review::{Remark, review};
pub use settings::{CertificateFiles, TlsFiles, TrunkFiles};
pub use store::TlsStore;
