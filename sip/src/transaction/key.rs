//! What makes two messages one transaction (RFC 3261 §17.1.3, §17.2.3), and the names users see.

use std::fmt;

use crate::message::{Method, Request, Response, Via};

/// Names one client transaction for the life of its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey(pub(crate) u64);

/// Names one server transaction for the life of its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerKey(pub(crate) u64);

/// The parts of a message that select its transaction, in one text; `\n` cannot occur in any of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WireKey(Box<str>);

/// A [`WireKey`] in 16 bytes: the head of a keyed hash, so that no sender can make two requests meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WireId(pub(crate) u128);

/// What a server transaction keeps of its key: its name in the tables, and the To tag of its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) id: WireId,
    pub(crate) tag: u64,
}

impl WireKey {
    /// §17.2.3: branch, sent-by and method, an ACK counting as the INVITE it acknowledges; for branches without the
    /// magic cookie the fields of RFC 2543.
    pub(crate) fn of_request(request: &Request, method: &Method) -> Option<Self> {
        let via = request.via_top().ok()?;
        if let Some(key) = Self::of_via(&via, method) {
            return Some(key);
        }
        let method = if *method == Method::Ack { &Method::Invite } else { method };
        let host_port = host_port(&via);
        Some(
            // The To tag is left out: an ACK carries the one of our response and its INVITE carries none.
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

    /// The key of a request by its top Via alone; `None` for a branch without the magic cookie.
    pub(crate) fn of_via(via: &Via, method: &Method) -> Option<Self> {
        let method = if *method == Method::Ack { &Method::Invite } else { method };
        let branch = via.branch().filter(|_| via.has_rfc3261_branch())?;
        Some(Self(format!("{method}\n{branch}\n{}", host_port(via)).into()))
    }

    /// §17.1.3: branch and the method of CSeq; a CANCEL shares its branch with the INVITE.
    pub(crate) fn of_response(response: &Response) -> Option<Self> {
        let via = response.via_top().ok()?;
        Some(Self::of_branch(via.branch()?, &response.cseq().ok()?.method))
    }

    /// The key of a request we send.
    pub(crate) fn of_branch(branch: &str, method: &Method) -> Self {
        Self(format!("{method}\n{branch}").into())
    }

    /// §8.2.2.2: a request outside dialogs that came twice by different paths has these in common.
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

/// sent-by as it was written, a host in small letters.
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

/// What a branch made by RFC 3261 begins with (§8.1.1.7).
pub(crate) const COOKIE: &str = "z9hG4bK";
