//! Requests that are carried out once however often they are sent: what names one, and what is kept of it.

use std::fmt;

use crate::ports::PortFuture;
use crate::time::Timestamp;

/// Names one request: who sent it, with which `Idempotency-Key`, where to, and what it says.
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

/// What is kept of an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// Its HTTP status.
    pub status: u16,
    /// Its `Content-Type`.
    pub content_type: Option<String>,
    /// Its `Location`.
    pub location: Option<String>,
    /// Its body, sealed: only who sent the request can read it.
    pub sealed_body: String,
}

impl KeptAnswer {
    /// Whether what was asked was done.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for KeptAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Once {
    /// The work was done now, and what it wrote and the answer are stored together; or it asked for nothing to
    /// be kept, and nothing is.
    Executed,
    /// It was done before: this is what was answered.
    Replayed(KeptAnswer),
    /// Another request had the key and said something else.
    Reused,
    /// The same request is being carried out now.
    Running,
}

/// Carries work out at most once per claim.
pub trait Idempotency: Send + Sync {
    /// Does `work` unless it was done before.
    ///
    /// What the work writes through the stores becomes visible together with the answer that it returns, in one
    /// transaction, and only when that answer is a success: after a crash either both are there or none.
    /// Without an answer to keep nothing is written and the claim is free again.
    ///
    /// Who is cancelled in the middle keeps the claim from others until its lease ends.
    fn once<'a>(
        &'a self,
        claim: Claim,
        now: Timestamp,
        work: PortFuture<'a, Option<KeptAnswer>>,
    ) -> PortFuture<'a, Once>;
}
