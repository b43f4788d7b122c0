//! Digest authentication both ways (RFC 3261 §22, RFC 7616, RFC 8760).
//!
//! [`Authenticator`] is the server: it challenges without keeping state, SHA-256 before MD5, and verifies the
//! answers; the [`FailureLimiter`] limits guessing. [`Client`] answers only the challenges of the peer that
//! it is configured for. [`Credential`] is stored instead of a password.
//!
//! Not here: what an account may do, and which addresses are trunks; the switch decides that.

mod client;
mod digest;
mod limiter;
mod nonce;
mod reply;
mod server;
mod target;

pub use client::{Client, Realm};
pub use digest::{Algorithm, Credential, Qop, response};
pub use limiter::{
    ACCOUNT_FAILURES_MAX, ACCOUNTS_MAX, FAILURES_MAX, FailureLimiter, Guess, Limit, SOURCE_FAILURES_MAX,
    SOURCES_MAX, WINDOW,
};
pub use nonce::{GUARDED_MAX, NONCE_LIFE, NonceFault, Nonces, SECRET_BYTES, SLOT};
pub use reply::{challenge_reply, fitting_challenges};
pub use server::{Accounts, Attempt, Authenticator, Decision, Refusal};

#[cfg(test)]
mod guessing;
#[cfg(test)]
mod tests;
