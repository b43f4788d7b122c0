//! The parts of a browser's leg besides RTP: an ICE-lite agent (RFC 8445 §2.5), which legs of phones may have too, and
//! DTLS-SRTP (RFC 5764).
//!
//! [`Agent`] answers the party's connectivity checks and learns its address from them. [`Handshake`] agrees on the SRTP
//! keys, with the certificate whose fingerprint is in SDP. Both are machines without I/O; [`net`](crate::net) drives
//! them. Candidates are not here: an ICE-lite agent sends no checks, and needs none of the party's.
//!
//! The agent is written here, because an ICE-lite agent is a STUN server with one credential; the crate `is` has full
//! agents with candidate pairs, which cannot be left out. DTLS comes from `dimpl`, with RustCrypto.

mod agent;
mod certificate;
mod handshake;
mod stun;
mod terms;

pub use agent::{Agent, Answer, Refusal};
pub use certificate::{Certificate, CertificateError};
pub use handshake::{Failure, Handshake, HandshakeInput, HandshakeOutput};
pub use stun::{Check, StunError, is_indication, write_request};
pub use terms::{IceTerms, Protection, WebrtcTerms};
