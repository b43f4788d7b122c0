//! A message that the guard refused, with the response to it.

use crate::message::{Rejection, Response};

/// A message that the guard refused.
#[derive(Debug, thiserror::Error)]
#[error("failed to accept the message: {reason}")]
pub struct Rejected {
    /// The rule it broke.
    pub reason: Rejection,
    /// The response to send back; `None` for a response, an ACK, and a message without a Via to answer along.
    pub reply: Option<Box<Response>>,
}
