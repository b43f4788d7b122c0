//! The matching of messages to transactions (RFC 3261 §17.1.3, §17.2.3), and the keys for users.

use std::fmt;

use crate::message::{Hop, Kind, Method, Request, glance};

/// Identifies one client transaction for the life of its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey(pub(crate) u64);

/// Identifies one server transaction for the life of its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerKey(pub(crate) u64);

/// Selects a server transaction, in 16 bytes: the start of a keyed hash, so that no sender can make two requests
/// collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WireId(pub(crate) u128);

/// The key data that a server transaction stores: its id in the tables, and the To tag of its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) id: WireId,
    pub(crate) tag: u64,
}

/// Selects a client transaction (§17.1.3): the digits of our branch, and whether it is the CANCEL of the request with
/// this branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientWire {
    branch: u128,
    cancels: bool,
}

impl ClientWire {
    /// The key of a branch that a layer wrote; `None` for any other.
    pub(crate) fn of_branch(branch: &str, method: &Method) -> Option<Self> {
        let digits = branch.strip_prefix(COOKIE).filter(|digits| digits.len() == BRANCH_DIGITS)?;
        let is_own = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let branch = u128::from_str_radix(digits, 16).ok().filter(|_| is_own)?;
        Some(Self { branch, cancels: *method == Method::Cancel })
    }

    /// The key of a branch with these parts.
    pub(crate) fn new(random: u64, seal: u64, method: &Method) -> Self {
        let branch = (u128::from(random) << 64) | u128::from(seal);
        Self { branch, cancels: *method == Method::Cancel }
    }

    /// The key of a request of ours from its first bytes.
    pub(crate) fn of_start(bytes: &[u8]) -> Option<Self> {
        let seen = glance(bytes);
        let Kind::Request(method) = &seen.kind else { return None };
        let hop = Hop::parse(seen.via?).ok()?;
        Self::of_branch(hop.branch()?, method)
    }

    /// The key of the CANCEL of this request.
    pub(crate) fn of_cancel(self) -> Self {
        Self { cancels: true, ..self }
    }
}

/// Writes the fields that select the server transaction of a request. `\n` cannot occur in any of them.
///
/// §17.2.3: branch, sent-by and method, where an ACK counts as its INVITE; for branches without the magic cookie
/// the fields of RFC 2543.
pub(crate) fn write_request(out: &mut impl fmt::Write, request: &Request, method: &Method) -> Option<()> {
    let hop = request.hop_top()?;
    if hop.rfc3261_branch().is_some() {
        return write_hop(out, &hop, method);
    }
    let method = if *method == Method::Ack { &Method::Invite } else { method };
    // The To tag is not included: an ACK has the one of our response, but its INVITE has none.
    let (from, cseq) = (request.from_tag().ok()?, request.cseq().ok()?.number);
    write!(out, "{method}\n{}\n{from}\n{}\n{cseq}\n", request.uri(), request.call_id()).ok()?;
    hop.write_sent_by(out).ok()?;
    write!(out, "\n{}", hop.branch().unwrap_or_default()).ok()
}

/// Writes the same fields from the top hop only; `None` for a branch without the magic cookie.
pub(crate) fn write_hop(out: &mut impl fmt::Write, hop: &Hop<'_>, method: &Method) -> Option<()> {
    let method = if *method == Method::Ack { &Method::Invite } else { method };
    write!(out, "{method}\n{}\n", hop.rfc3261_branch()?).ok()?;
    hop.write_sent_by(out).ok()
}

/// §8.2.2.2: writes the common fields of a request outside dialogs that arrives twice by different paths.
pub(crate) fn write_merged(out: &mut impl fmt::Write, request: &Request) -> Option<()> {
    if !request.to_tag().ok()?.is_empty() || *request.method() == Method::Cancel {
        return None;
    }
    let (from, cseq) = (request.from_tag().ok()?, request.cseq().ok()?.number);
    write!(out, "{}\n{from}\n{}\n{cseq}", request.method(), request.call_id()).ok()
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
/// Hex digits of our branches after it.
const BRANCH_DIGITS: usize = 32;
