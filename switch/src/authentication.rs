//! Identifies the sender of a request: an extension that authenticates by digest, a trunk identified by its
//! source address, or an unknown sender (RFC 3261 §22).
//!
//! Only the source address of the socket, the domain and the digest count. A `From`, `Via`, `Contact` or
//! `P-Asserted-Identity` header proves nothing.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use sidetone_model::directory::{Extension, Organisation, Trunk};
use sidetone_model::ids::{ExtensionId, OrganisationId, TrunkId};
use sidetone_sip::auth::{Accounts, Algorithm, Attempt, Authenticator, Credential, Decision, Refusal};
use sidetone_sip::message::{Digest, Name, Request};

use crate::routing::{Directory, Origin, route};

/// The identified sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// Unknown: 401 with these `WWW-Authenticate` values.
    Challenge(Vec<String>, Refusal),
    /// An authenticated extension.
    Extension(ExtensionId),
    /// Too many failures: 403 for this long; the digest was not checked.
    Limited(Duration),
    /// An extension that was just deleted: 403.
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

    /// Sets the digest algorithms to offer from now on.
    pub(super) fn offer(&mut self, algorithms: Vec<Algorithm>) {
        self.authenticator.offer(algorithms);
    }

    /// Whether an Authorization refers to a challenge that we sent to that source recently, even with a wrong
    /// digest.
    pub(super) fn has_challenged(&self, now: Instant, authorization: &str, source: IpAddr) -> bool {
        Digest::parse(authorization)
            .is_ok_and(|answer| self.authenticator.has_challenged(now, &answer, source))
    }

    /// Identifies the sender of an INVITE, which may be a trunk.
    pub(super) fn caller(
        &mut self,
        now: Instant,
        directory: &Directory,
        request: &Request,
        dialled: &str,
        source: IpAddr,
        registered: Registered<'_>,
    ) -> Sender {
        match directory.trunk_from(source, dialled, registered.trunk) {
            Some(trunk) if !may_be_a_phone(directory, trunk, request, dialled) => Sender::Trunk(trunk.id),
            _ => self.phone(now, directory, request, source, registered.line),
        }
    }

    /// Identifies the sender of a request that only a phone may send.
    pub(super) fn phone(
        &mut self,
        now: Instant,
        directory: &Directory,
        request: &Request,
        source: IpAddr,
        registered: &dyn Fn(&str) -> bool,
    ) -> Sender {
        let organisation = organisation_of(directory, request);
        // An unknown domain is challenged like one of ours, so that the response does not reveal which
        // domains exist.
        let realm = organisation.map_or_else(|| claimed_domain(request), |known| known.sip_domain.clone());
        let headers: Vec<Digest> = request.authorization().filter_map(Result::ok).collect();
        let method = request.method().as_str();
        let cseq = request.cseq().map_or(0, |cseq| cseq.number);
        let number = format!("{cseq} {}", request.call_id());
        let uri = target_of(request);
        let attempt = Attempt { headers: &headers, method, uri, request: &number, realm: &realm, source };
        let lines = Lines { directory, organisation, registered };
        match self.authenticator.verify(now, attempt, &lines) {
            Decision::Accepted { username } => match lines.line(&username) {
                Some(extension) => Sender::Extension(extension.id),
                None => Sender::Refused,
            },
            Decision::Challenge { challenges, refusal } => Sender::Challenge(challenges, refusal),
            Decision::Limited { retry_after, .. } => Sender::Limited(retry_after),
        }
    }

    /// Forgets the failures for an extension whose credential changed.
    pub(super) fn forget_failures(&mut self, sip_domain: &str, number: &str) {
        self.authenticator.forget_failures(sip_domain, number);
    }
}

/// Look-ups for a request: the trunks that its source or connection proves, and the addresses of record registered
/// from its source.
#[derive(Clone, Copy)]
pub(super) struct Registered<'a> {
    pub(super) trunk: &'a dyn Fn(&Trunk) -> bool,
    pub(super) line: &'a dyn Fn(&str) -> bool,
}

/// The extensions of one organisation; none if the domain is unknown.
struct Lines<'a> {
    directory: &'a Directory,
    organisation: Option<&'a Organisation>,
    registered: &'a dyn Fn(&str) -> bool,
}

impl Lines<'_> {
    fn line(&self, number: &str) -> Option<&Extension> {
        self.organisation.and_then(|known| self.directory.line(known.id, number))
    }
}

impl Accounts for &Lines<'_> {
    fn credential(&self, username: &str) -> Option<Credential> {
        self.line(username).and_then(credential)
    }

    fn is_registered(&self, username: &str) -> bool {
        // Looked up for unknown extensions too, so that the response time does not reveal which exist.
        let domain = self.organisation.map_or("", |known| known.sip_domain.as_str());
        (self.registered)(&format!("{username}@{domain}"))
    }
}

/// Returns the account that a request claims, for the log: the digest's user name and realm, else the From.
/// All but plain characters are replaced, so that a peer cannot forge log fields.
pub(super) fn claimed_account(request: &Request) -> String {
    let of_digest = request.authorization().find_map(|header| {
        let header = header.ok()?;
        Some(format!("{}@{}", header.get("username")?, header.get("realm")?))
    });
    let of_from = || {
        let from = request.from().ok()?;
        let host = from.uri.host()?.to_string();
        Some(format!("{}@{host}", from.uri.user_decoded().unwrap_or_default()))
    };
    let account = of_digest.or_else(of_from).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_+*#@:[]".contains(c);
    account.chars().take(ACCOUNT_CHARS_MAX).map(|c| if is_plain(c) { c } else { '?' }).collect()
}

/// The organisation whose account a request claims, and the extension of that account, if it exists.
pub(super) fn claimed_line(
    directory: &Directory,
    request: &Request,
) -> Option<(OrganisationId, Option<ExtensionId>)> {
    let organisation = organisation_of(directory, request)?;
    let of_realm = |header: &Digest| header.get("realm").as_deref() == Some(organisation.sip_domain.as_str());
    let header = request.authorization().filter_map(Result::ok).find(of_realm)?;
    let line = header.get("username").and_then(|name| directory.line(organisation.id, &name));
    Some((organisation.id, line.map(|extension| extension.id)))
}

/// Whether an INVITE from a trunk's network may come from a phone in the same network: it answers one of our
/// challenges, or it dials a number that only a phone can reach and claims an extension, which is then challenged.
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

/// Returns the organisation of a phone's request: by the domain of its AoR, else of the Request-URI.
fn organisation_of<'a>(directory: &'a Directory, request: &Request) -> Option<&'a Organisation> {
    let from = request.from().ok().and_then(|from| from.uri.host().map(ToString::to_string));
    let target = || request.parsed_uri().ok().and_then(|uri| uri.host().map(ToString::to_string));
    from.and_then(|domain| directory.organisation_of_domain(&domain))
        .or_else(|| target().and_then(|domain| directory.organisation_of_domain(&domain)))
}

/// Returns the Request-URI, which a digest has to name. That of a request over a strict router is the router's, if it has
/// no user (RFC 3261 §12.2.1.1); it is left out.
fn target_of(request: &Request) -> &str {
    let is_routers =
        request.headers().contains(Name::Route) && request.parsed_uri().is_ok_and(|uri| uri.user().is_none());
    if is_routers { "" } else { request.uri() }
}

/// Returns the domain that a request claims.
fn claimed_domain(request: &Request) -> String {
    let from = request.from().ok().and_then(|from| from.uri.host().map(ToString::to_string));
    from.unwrap_or_else(|| "invalid".to_owned())
}

/// Characters of a claimed account that are logged.
const ACCOUNT_CHARS_MAX: usize = 64;

fn credential(extension: &Extension) -> Option<Credential> {
    Credential::from_stored(&extension.ha1.md5, &extension.ha1.sha256)
}

#[cfg(test)]
mod tests {
    use sidetone_model::directory::{DirectorySnapshot, Numbering};
    use sidetone_model::ids::OrganisationId;
    use sidetone_sip::message::{Datagram, Message, parse_datagram};
    use uuid::Uuid;

    use super::*;

    fn directory(domains: &[&str]) -> Directory {
        let organisation = |(at, domain): (usize, &&str)| Organisation {
            id: OrganisationId(Uuid::from_u128(at as u128)),
            name: (*domain).to_owned(),
            sip_domain: (*domain).to_owned(),
            currency: "EUR".parse().unwrap(),
            numbering: Numbering::default(),
            max_outbound_calls: None,
            max_call_seconds: None,
            language: Default::default(),
            star_codes: true,
        };
        let organisations = domains.iter().enumerate().map(organisation).collect();
        Directory::new(DirectorySnapshot { organisations, ..DirectorySnapshot::default() })
    }

    fn invite(domain: &str) -> Request {
        let text = format!(
            "INVITE sip:1002@{domain} SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
             From: <sip:1001@{domain}>;tag=1\r\nTo: <sip:1002@{domain}>\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n\r\n"
        );
        match parse_datagram(text.into_bytes().into()) {
            Ok(Datagram::Message(Message::Request(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_claimed_account_writes_nothing_else_into_the_log() {
        let mut request = invite("acme.test");
        assert_eq!(claimed_account(&request), "1001@acme.test");
        let digest = "Digest username=\"10 01\\\" source=1.2.3.4\", realm=\"acme.test\", nonce=\"\", uri=\"\", response=\"\"";
        request.headers_mut().push(sidetone_sip::message::Name::Authorization, digest).unwrap();
        assert_eq!(claimed_account(&request), "10?01??source?1.2.3.4@acme.test");
    }

    /// Requests with an existing, an unknown or no domain get the same challenge, so that it does not reveal
    /// which domains exist.
    #[test]
    fn every_stranger_is_challenged() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let now = Instant::now();
        let mut gate = Gate::new(Authenticator::new([7; 32], now));
        let source = "192.0.2.1".parse().unwrap();
        let cases: [(&[&str], &str, &str); 5] = [
            (&["acme.test", "other.test"], "acme.test", "acme.test"),
            (&["acme.test", "other.test"], "OTHER.test", "other.test"),
            (&["acme.test", "other.test"], "nobody.test", "nobody.test"),
            (&["acme.test"], "198.51.100.1", "acme.test"),
            (&[], "acme.test", "acme.test"),
        ];
        for (domains, asked, realm) in cases {
            let none = Registered { trunk: &|_| false, line: &|_| false };
            let sender = gate.caller(now, &directory(domains), &invite(asked), "1002", source, none);
            let Sender::Challenge(challenges, _) = sender else { panic!("{asked}: {sender:?}") };
            let expected = format!("realm=\"{realm}\"");
            assert!(
                challenges.iter().all(|challenge| challenge.contains(&expected)),
                "{asked}: {challenges:?}"
            );
        }
    }
}
