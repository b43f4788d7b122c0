//! Who sent a request: an extension that proves itself by digest, a trunk known by its socket's address, or
//! nobody we know (RFC 3261 §22).
//!
//! Only the source address of the socket, the domain and the digest count. A `From`, `Via`, `Contact` or
//! `P-Asserted-Identity` claims and proves nothing.

use std::net::IpAddr;
use std::time::Instant;

use sidetone_model::directory::{Extension, Organisation, Trunk};
use sidetone_model::ids::{ExtensionId, TrunkId};
use sidetone_sip::auth::{Attempt, Authenticator, Credential, Decision, Refusal};
use sidetone_sip::message::{Digest, Request};

use crate::routing::{Directory, Origin, route};

/// What is known of the sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// Ask for a digest: 401 with these `WWW-Authenticate` values.
    Challenge(Vec<String>, Refusal),
    /// An extension that proved itself.
    Extension(ExtensionId),
    /// No realm of ours, or too many failures: 403.
    Refused,
    /// A trunk.
    Trunk(TrunkId),
}

/// Authenticates the senders of requests.
pub(super) struct Gate {
    authenticator: Authenticator,
}

impl Gate {
    pub(super) fn new(authenticator: Authenticator) -> Self {
        Gate { authenticator }
    }

    /// The sender of an INVITE, which may be a trunk.
    pub(super) fn caller(
        &mut self,
        now: Instant,
        directory: &Directory,
        request: &Request,
        dialled: &str,
        source: IpAddr,
    ) -> Sender {
        match directory.trunk_from(source) {
            Some(trunk) if !may_be_a_phone(directory, trunk, request, dialled) => Sender::Trunk(trunk.id),
            _ => self.phone(now, directory, request, source),
        }
    }

    /// The sender of a request that only a phone may send.
    pub(super) fn phone(
        &mut self,
        now: Instant,
        directory: &Directory,
        request: &Request,
        source: IpAddr,
    ) -> Sender {
        let Some(organisation) = organisation_of(directory, request) else { return Sender::Refused };
        let headers: Vec<Digest> = request.authorization().filter_map(Result::ok).collect();
        let attempt = Attempt {
            headers: &headers,
            method: request.method().as_str(),
            realm: &organisation.sip_domain,
            source,
        };
        let line = |number: &str| directory.line(organisation.id, number);
        let decision =
            self.authenticator.verify(now, attempt, |username| line(username).and_then(credential));
        match decision {
            Decision::Accepted { username } => match line(&username) {
                Some(extension) => Sender::Extension(extension.id),
                None => Sender::Refused,
            },
            Decision::Challenge { challenges, refusal } => Sender::Challenge(challenges, refusal),
            Decision::Limited => Sender::Refused,
        }
    }
}

/// Whether an INVITE out of a trunk's network is rather a phone's that sits there too: it answers a challenge of
/// ours, or it dials what only a phone can reach and claims to be one, which it will be asked to prove.
fn may_be_a_phone(directory: &Directory, trunk: &Trunk, request: &Request, dialled: &str) -> bool {
    if request.authorization().next().is_some() {
        return true;
    }
    let claims_a_line = || {
        let from = request.from().ok();
        let user = from.as_ref().and_then(|from| from.uri.user_decoded());
        organisation_of(directory, request)
            .zip(user)
            .is_some_and(|(o, user)| directory.line(o.id, &user).is_some())
    };
    route(directory, Origin::Trunk(trunk), dialled).is_err() && claims_a_line()
}

/// The organisation a phone's request belongs to: by the domain of its AoR, else of the Request-URI.
fn organisation_of<'a>(directory: &'a Directory, request: &Request) -> Option<&'a Organisation> {
    let from = request.from().ok().and_then(|from| from.uri.host().map(ToString::to_string));
    let target = || request.parsed_uri().ok().and_then(|uri| uri.host().map(ToString::to_string));
    from.and_then(|domain| directory.organisation_of_domain(&domain))
        .or_else(|| target().and_then(|domain| directory.organisation_of_domain(&domain)))
}

fn credential(extension: &Extension) -> Option<Credential> {
    Credential::from_stored(&extension.ha1.md5, &extension.ha1.sha256)
}
