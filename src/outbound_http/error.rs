//! Why a request failed, in terms that the operator of the remote host understands.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::outbound_http::bounded::TooMuch;
use crate::outbound_http::network::LookupError;
use crate::outbound_http::policy::Refusal;
use crate::tls::tls_reason;

/// Why there is no response; a lower-case fragment.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// The response is not HTTP, or its head is longer than the limit.
    #[error("the answer is not valid HTTP: {0}")]
    Answer(String),
    /// The server closed the connection before it responded.
    #[error("the connection was closed before an answer came")]
    Closed,
    /// None of the addresses accepts a connection.
    #[error("{address} accepts no connection: {}", .source.kind())]
    Connect {
        /// The address that was tried last.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A header cannot be sent.
    #[error("the header {0} cannot be sent")]
    Header(&'static str),
    /// The name has no addresses.
    #[error("{host} cannot be resolved: {reason}")]
    Lookup {
        /// The name.
        host: String,
        /// The reason.
        reason: LookupError,
    },
    /// The name has addresses, but none of them is public.
    #[error("{host} has no public address")]
    NotPublic {
        /// The name.
        host: String,
    },
    /// The URL must not be requested.
    #[error("the URL {0}")]
    Refused(#[from] Refusal),
    /// It took too long.
    #[error("no answer within {} s ({stage})", .limit.as_secs_f32())]
    Timeout {
        /// The limit for the complete request.
        limit: Duration,
        /// The step that took too long.
        stage: Stage,
    },
    /// The certificate is not trusted, or TLS failed.
    #[error("no TLS connection: {0}")]
    Tls(String),
}

/// A step of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The name lookup.
    Lookup,
    /// A connection.
    Connect,
    /// The handshake of TLS.
    Tls,
    /// The head of the response.
    Answer,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stage::Lookup => "waiting for the name service",
            Stage::Connect => "waiting for a connection",
            Stage::Tls => "waiting for TLS",
            Stage::Answer => "waiting for the answer",
        })
    }
}

/// The meaning of a failed handshake.
pub(super) fn tls(error: &io::Error) -> PostError {
    PostError::Tls(tls_reason(error))
}

/// The error while waiting for the response.
pub(super) fn http(error: &hyper::Error) -> PostError {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return if io.get_ref().is_some_and(|inner| inner.is::<TooMuch>()) {
                PostError::Answer(TooMuch.to_string())
            } else {
                PostError::Closed
            };
        }
        source = cause.source();
    }
    if error.is_parse() {
        return PostError::Answer(error.to_string());
    }
    PostError::Closed
}
