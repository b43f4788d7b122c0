//! Requests that are executed once, however often they are sent: their identification, and the stored answer.

use std::fmt;

use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// Identifies one request: its sender, its `Idempotency-Key`, its path, and its content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// SHA-256 over the caller, the method, the path and the key.
    pub id: [u8; 32],
    /// SHA-256 over the method, the path, the query and the body.
    pub fingerprint: [u8; 32],
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim(..)")
    }
}

/// The stored form of an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// Its HTTP status.
    pub status: u16,
    /// Its `Content-Type`.
    pub content_type: Option<String>,
    /// Its `Location`.
    pub location: Option<String>,
    /// Its body, encrypted: only the sender of the request can read it.
    pub sealed_body: String,
}

impl KeptAnswer {
    /// Whether the request succeeded.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for KeptAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Once {
    /// The work was done now, and its changes and the answer are stored together; or the work returned no
    /// answer to store, and nothing is stored.
    Executed,
    /// The work was done before, with this answer.
    Replayed(KeptAnswer),
    /// Another request with the same key had different content.
    Reused,
    /// The same request is being executed now.
    Running,
}

/// Executes work at most once per claim.
pub trait Idempotency: Send + Sync {
    /// Does `work` unless it was done before.
    ///
    /// The writes of `work` through the stores become visible together with the answer that it returns, in
    /// one transaction, and only if that answer is a success: after a crash either both are stored or
    /// neither. Without an answer to store nothing is written and the claim is free again.
    ///
    /// If the future is dropped before its end, the claim stays taken until its lease expires.
    fn once<'a>(
        &'a self,
        claim: Claim,
        now: Timestamp,
        work: PortFuture<'a, Option<KeptAnswer>>,
    ) -> PortFuture<'a, Once>;
}
