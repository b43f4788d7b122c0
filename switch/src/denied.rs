//! Requests that were refused because of who sent them: what the log, the counters and fail2ban need to know.
//!
//! A request without credentials is not among them: every phone sends one and is challenged. Nor is one with a nonce of
//! an earlier run of this engine: after a restart every phone sends one.

use std::net::IpAddr;

use sidetone_model::call::HangupCause;
use sidetone_sip::auth::Refusal;
use sidetone_sip::message::{Method, Request};

use crate::gate::claimed_account;

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Where it came from, as the socket says.
    pub source: IpAddr,
    /// The account that it claims, with nothing but plain characters.
    pub account: String,
    /// Its method; `other` for methods that this engine does not know.
    pub method: &'static str,
    /// Why.
    pub denial: Denial,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// A digest of a kind that was not offered.
    Algorithm,
    /// A call that its sender may not place, or that leads nowhere.
    Call(HangupCause),
    /// An extension tried to register another extension.
    Forbidden,
    /// Too many wrong passwords before: the digest was not checked.
    Limited,
    /// Credentials that cannot be read.
    Malformed,
    /// Credentials that were used before.
    Replayed,
    /// An unknown account or a wrong password.
    Wrong,
}

impl Denied {
    pub(super) fn new(source: IpAddr, request: &Request, denial: Denial) -> Self {
        let method = match request.method() {
            Method::Invite => "INVITE",
            Method::Message => "MESSAGE",
            Method::Publish => "PUBLISH",
            Method::Refer => "REFER",
            Method::Register => "REGISTER",
            Method::Subscribe => "SUBSCRIBE",
            _ => "other",
        };
        Denied { source, account: claimed_account(request), method, denial }
    }
}

impl Denial {
    /// The denial that a challenge stands for; `None` for what every phone does now and then.
    pub(super) fn of(refusal: Refusal) -> Option<Self> {
        match refusal {
            Refusal::Aged | Refusal::Foreign | Refusal::Missing => None,
            Refusal::Algorithm => Some(Denial::Algorithm),
            Refusal::Malformed => Some(Denial::Malformed),
            Refusal::Replayed => Some(Denial::Replayed),
            Refusal::Wrong { .. } => Some(Denial::Wrong),
        }
    }

    /// Whether it is a failure of authentication; a refused call is none.
    pub fn is_authentication(self) -> bool {
        !matches!(self, Denial::Call(_))
    }

    /// The word for it in the log and in `/metrics`.
    pub fn as_str(self) -> &'static str {
        match self {
            Denial::Algorithm => "algorithm",
            Denial::Call(cause) => cause.as_str(),
            Denial::Forbidden => "forbidden",
            Denial::Limited => "limited",
            Denial::Malformed => "malformed",
            Denial::Replayed => "replayed",
            Denial::Wrong => "wrong_credentials",
        }
    }
}
