//! The matching of messages to transactions (RFC 3261 §17.1.3, §17.2.3), and the keys for users.

use std::fmt;

use crate::message::{Method, Request, Response, Via};

/// Identifies one client transaction for the life of its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey(pub(crate) u64);

/// Identifies one server transaction for the life of its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerKey(pub(crate) u64);

/// The parts of a message that select its transaction, as one text; `\n` cannot occur in any of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WireKey(Box<str>);

/// A [`WireKey`] in 16 bytes: the start of a keyed hash, so that no sender can make two requests collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WireId(pub(crate) u128);

/// What a server transaction stores of its key: its id in the tables, and the To tag of its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) id: WireId,
    pub(crate) tag: u64,
}

impl WireKey {
    /// §17.2.3: branch, sent-by and method, where an ACK counts as its INVITE; for branches without the magic
    /// cookie the fields of RFC 2543.
    pub(crate) fn of_request(request: &Request, method: &Method) -> Option<Self> {
        let via = request.via_top().ok()?;
        if let Some(key) = Self::of_via(&via, method) {
            return Some(key);
        }
        let method = if *method == Method::Ack { &Method::Invite } else { method };
        let host_port = host_port(&via);
        Some(
            // The To tag is not included: an ACK has the one of our response, but its INVITE has none.
            Self(
                format!(
                    "{method}\n{}\n{}\n{}\n{}\n{host_port}\n{}",
                    request.uri(),
                    request.from().ok()?.tag().unwrap_or_default(),
                    request.call_id(),
                    request.cseq().ok()?.number,
                    via.branch().unwrap_or_default(),
                )
                .into(),
            ),
        )
    }

    /// The key of a request from its top Via only; `None` for a branch without the magic cookie.
    pub(crate) fn of_via(via: &Via, method: &Method) -> Option<Self> {
        let method = if *method == Method::Ack { &Method::Invite } else { method };
        let branch = via.branch().filter(|_| via.has_rfc3261_branch())?;
        Some(Self(format!("{method}\n{branch}\n{}", host_port(via)).into()))
    }

    /// §17.1.3: branch and the method of CSeq; a CANCEL has the branch of its INVITE.
    pub(crate) fn of_response(response: &Response) -> Option<Self> {
        let via = response.via_top().ok()?;
        Some(Self::of_branch(via.branch()?, &response.cseq().ok()?.method))
    }

    /// The key of a request that we send.
    pub(crate) fn of_branch(branch: &str, method: &Method) -> Self {
        Self(format!("{method}\n{branch}").into())
    }

    /// §8.2.2.2: the common fields of a request outside dialogs that arrives twice by different paths.
    pub(crate) fn of_merged(request: &Request) -> Option<Self> {
        if request.to().ok()?.tag().is_some() || *request.method() == Method::Cancel {
            return None;
        }
        let from_tag = request.from().ok()?.tag().unwrap_or_default().to_owned();
        let cseq = request.cseq().ok()?.number;
        Some(Self(format!("{}\n{from_tag}\n{}\n{cseq}", request.method(), request.call_id()).into()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// sent-by as it was written, with a lower-case host.
fn host_port(via: &Via) -> String {
    let port = via.port.map_or_else(String::new, |port| port.to_string());
    format!("{}:{port}", via.host.to_string().to_ascii_lowercase())
}

impl fmt::Display for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}", self.0)
    }
}

impl fmt::Display for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {}", self.0)
    }
}

/// The prefix of every RFC 3261 branch (§8.1.1.7).
pub(crate) const COOKIE: &str = "z9hG4bK";
