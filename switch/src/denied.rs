//! Requests refused because of their sender, with the data for the log, the counters and fail2ban.
//!
//! A request without credentials is not reported: every phone sends one and is challenged. Neither is a
//! request with a nonce of an earlier run of this engine: after a restart every phone sends one.

use std::net::IpAddr;

use sidetone_model::call::HangupCause;
use sidetone_sip::auth::Refusal;
use sidetone_sip::message::{Method, Request};

use crate::authentication::claimed_account;

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The source address, from the socket.
    pub source: IpAddr,
    /// The claimed account, reduced to plain characters.
    pub account: String,
    /// The method; `other` for methods that this engine does not know.
    pub method: &'static str,
    /// The reason.
    pub denial: Denial,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// A digest with an algorithm that was not offered.
    Algorithm,
    /// A call that the sender may not place, or that has no target.
    Call(HangupCause),
    /// An extension tried to register another extension.
    Forbidden,
    /// Too many wrong passwords before; the digest was not checked.
    Limited,
    /// Credentials that cannot be parsed.
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
    /// Returns the reason for a challenge; `None` for a challenge that every phone causes in normal operation.
    pub(super) fn of(refusal: Refusal) -> Option<Self> {
        match refusal {
            Refusal::Aged | Refusal::Foreign | Refusal::Missing => None,
            Refusal::Algorithm => Some(Denial::Algorithm),
            Refusal::Malformed => Some(Denial::Malformed),
            Refusal::Replayed => Some(Denial::Replayed),
            Refusal::Wrong { .. } => Some(Denial::Wrong),
        }
    }

    /// Whether it is a failed authentication; a refused call is not.
    pub fn is_authentication(self) -> bool {
        !matches!(self, Denial::Call(_))
    }

    /// Returns its label in the log and in `/metrics`.
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
