//! Errors that a client of the API may get; only the API converts them to a status.

/// A wrong field of a request and its problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field's name as the caller wrote it.
    pub field: String,
    /// The rule that it breaks, a lower-case fragment.
    pub message: String,
}

/// Why a request was not executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Overload; the same request may be sent again.
    #[error("busy")]
    Busy {
        /// Seconds to wait.
        retry_after_s: u64,
    },
    /// The current state does not allow the request.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The node drains and begins nothing new; the same request may be sent again, or to another node.
    #[error("draining")]
    Draining {
        /// Seconds to wait.
        retry_after_s: u64,
    },
    /// Outside the caller's scope or rights.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// An internal failure; the text is for the log, never for the caller.
    #[error("internal: {0}")]
    Internal(String),
    /// The request is wrong; every wrong field is named.
    #[error("invalid request")]
    InvalidRequest(Vec<FieldProblem>),
    /// The resource does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// The resource is not in the state that the request names (`If-Match`).
    #[error("precondition failed: {0}")]
    PreconditionFailed(String),
    /// The database refuses the values, and would refuse them again; the text is for the log.
    #[error("refused: {0}")]
    Refused(String),
    /// The request can be read but not executed as it is; every wrong field is named.
    #[error("unprocessable request")]
    Unprocessable(Vec<FieldProblem>),
    /// The database is temporarily unavailable; the same request may be sent again. The text is for the log.
    #[error("unavailable: {reason}")]
    Unavailable {
        /// The reason, for the log.
        reason: String,
        /// Seconds to wait.
        retry_after_s: u64,
    },
}
