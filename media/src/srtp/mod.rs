//! SRTP and SRTCP (RFC 3711), with AES-CM and HMAC-SHA1, or with AES-GCM (RFC 7714).
//!
//! [`Inbound`] authenticates and decrypts packets from a party, [`Outbound`] encrypts packets to it. Both work in the
//! buffer of the packet and allocate only for a new stream. Keys come from SDP (RFC 4568) and are passed in. The key
//! derivation rate is always zero (RFC 3711 §4.3.1).
//!
//! AES-CM uses `aes`, `ctr`, `hmac` and `sha1` of RustCrypto, AES-GCM uses `ring`: each is the faster one at the
//! length of a packet (`benches/srtp.rs`), and `ring` has no AES-CM.

mod cipher;
mod derive;
mod error;
mod inbound;
mod key;
mod layout;
mod outbound;
mod streams;
mod suite;

pub use error::SrtpError;
pub use inbound::Inbound;
pub use key::{MasterKey, SrtpKeys};
pub use outbound::Outbound;
pub use suite::Suite;

#[cfg(test)]
mod tests;
