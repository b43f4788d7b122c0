//! What the switch keeps of each trunk between calls: how it answers challenges, and whether it rests.
//!
//! Credentials go to the trunk's own address only, and to one realm (RFC 3261 §22.1): the configured one, else the
//! one that the address named while a call was being set up. Nobody who joins later can ask for them by another name.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::{Secret, Trunk};
use sidetone_model::ids::TrunkId;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Digest, Name, Response, StatusCode};
use sidetone_sip::ua::Extra;

use crate::routing::Directory;

/// What is kept of the trunks.
#[derive(Default)]
pub(super) struct Trunks {
    links: HashMap<TrunkId, Link>,
}

/// One trunk.
struct Link {
    /// What `client` was made of.
    login: Login,
    /// Absent without a password.
    client: Option<Client>,
    /// Who challenged last, and the header that answers it there.
    challenger: Option<(SocketAddr, Name<'static>)>,
    /// It asked to be left alone until then (RFC 3261 §20.33).
    rests_until: Option<Instant>,
    /// It did not say a word and is tried after the others until then.
    silent_until: Option<Instant>,
}

#[derive(PartialEq, Eq)]
struct Login {
    username: String,
    password: Secret,
    realm: String,
    address: Option<String>,
}

/// A challenge that came to one of our requests.
#[derive(Clone, Copy)]
pub(super) struct Challenge<'a> {
    /// Where the request went.
    pub(super) to: SocketAddr,
    /// Where the response came from.
    pub(super) from: SocketAddr,
    pub(super) response: &'a Response,
    /// Method and Request-URI of the request.
    pub(super) method: &'a str,
    pub(super) uri: &'a str,
    /// Whether an answer of ours to such a challenge was in the request.
    pub(super) tried: bool,
    /// Whether the request was of a dialog: then the realm has been settled before.
    pub(super) in_dialog: bool,
}

impl Trunks {
    /// Follows the directory: trunks that stay keep what was learnt of them, new credentials begin anew.
    pub(super) fn replace(&mut self, directory: &Directory, rng: &mut StdRng) {
        let mut before = std::mem::take(&mut self.links);
        for trunk in directory.trunks() {
            let login = Login::of(trunk);
            let link = before.remove(&trunk.id).filter(|link| link.login == login);
            self.links.insert(trunk.id, link.unwrap_or_else(|| Link::new(login, rng)));
        }
    }

    /// The header that answers a challenge, if this trunk may have our credentials for it.
    pub(super) fn answer(&mut self, trunk: TrunkId, challenge: Challenge<'_>) -> Option<Extra> {
        let Challenge { to, from, response, method, uri, tried, in_dialog } = challenge;
        let link = self.links.get_mut(&trunk).filter(|_| to == from)?;
        let client = link.client.as_mut()?;
        let (challenges, header): (Vec<Digest>, Name<'static>) = match response.status() {
            StatusCode::UNAUTHORIZED => {
                (response.www_authenticate().filter_map(Result::ok).collect(), Name::Authorization)
            }
            _ => (response.proxy_authenticate().filter_map(Result::ok).collect(), Name::ProxyAuthorization),
        };
        if in_dialog && challenges.iter().any(|challenge| challenge.inner("realm") != client.realm()) {
            return None;
        }
        let value = client.answer(&challenges, tried, method, uri)?;
        let extra = Extra::new().header(header.as_str(), value);
        link.challenger = Some((from, header));
        Some(extra)
    }

    /// The header for a request to the address that challenged before, so that it need not do so again.
    pub(super) fn credentials(
        &mut self,
        trunk: TrunkId,
        to: SocketAddr,
        method: &str,
        uri: &str,
    ) -> Option<(Name<'static>, String)> {
        let link = self.links.get_mut(&trunk)?;
        let (_, header) = link.challenger.filter(|(challenger, _)| *challenger == to)?;
        Some((header, link.client.as_mut()?.next(method, uri)?))
    }

    /// Leaves a trunk alone for as long as it asks, within bounds.
    pub(super) fn rest(&mut self, now: Instant, trunk: TrunkId, wished: Duration) {
        if let Some(link) = self.links.get_mut(&trunk) {
            link.rests_until = Some(now + wished.min(REST_MAX));
        }
    }

    /// Notes whether a trunk answers at all.
    pub(super) fn heard(&mut self, now: Instant, trunk: TrunkId, heard: bool) {
        if let Some(link) = self.links.get_mut(&trunk) {
            link.silent_until = (!heard).then(|| now + SILENT_FOR);
        }
    }

    /// Whether it asked to be left alone.
    pub(super) fn is_resting(&self, now: Instant, trunk: TrunkId) -> bool {
        self.links.get(&trunk).is_some_and(|link| link.rests_until.is_some_and(|until| until > now))
    }

    /// Whether it said nothing lately.
    pub(super) fn is_silent(&self, now: Instant, trunk: TrunkId) -> bool {
        self.links.get(&trunk).is_some_and(|link| link.silent_until.is_some_and(|until| until > now))
    }
}

impl Link {
    fn new(login: Login, rng: &mut StdRng) -> Self {
        let realm = match login.realm.as_str() {
            "" => Realm::Any,
            realm => Realm::Exactly(realm.to_owned()),
        };
        let client = (!login.username.is_empty() && !login.password.0.is_empty())
            .then(|| Client::new(&login.username, &login.password.0, realm, StdRng::from_rng(rng)));
        Link { login, client, challenger: None, rests_until: None, silent_until: None }
    }
}

impl Login {
    fn of(trunk: &Trunk) -> Self {
        Login {
            username: trunk.username.clone(),
            password: trunk.password.clone(),
            realm: trunk.realm.clone(),
            address: trunk.address.clone(),
        }
    }
}

/// No trunk is left alone for longer, whatever it asks.
const REST_MAX: Duration = Duration::from_secs(300);
/// How long a trunk that said nothing is tried last.
const SILENT_FOR: Duration = Duration::from_secs(30);
