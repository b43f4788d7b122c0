//! State of each trunk between calls: its credentials for challenges, and whether it may be called.
//!
//! Credentials are sent only to the trunk's own address, and only for one realm (RFC 3261 §22.1): the
//! configured one, else the one that the address gave during call setup. A party that joins the path later
//! cannot get them for another realm.

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

/// The state of all trunks.
#[derive(Default)]
pub(super) struct Trunks {
    links: HashMap<TrunkId, Link>,
}

/// The state of one trunk.
struct Link {
    /// The settings of `client`.
    login: Login,
    /// Absent without a password.
    client: Option<Client>,
    /// The address of the last challenge, and the header for the credentials.
    challenger: Option<(SocketAddr, Name<'static>)>,
    /// The trunk asked not to be called until this time (RFC 3261 §20.33).
    rests_until: Option<Instant>,
    /// The trunk sent no response, and is tried after the others until this time.
    silent_until: Option<Instant>,
}

#[derive(PartialEq, Eq)]
struct Login {
    username: String,
    password: Secret,
    realm: String,
    address: Option<String>,
    proxy: Option<String>,
}

/// A challenge to one of our requests.
#[derive(Clone, Copy)]
pub(super) struct Challenge<'a> {
    /// The address that the request was sent to.
    pub(super) to: SocketAddr,
    /// The address that the response came from.
    pub(super) from: SocketAddr,
    pub(super) response: &'a Response,
    /// Method and Request-URI of the request.
    pub(super) method: &'a str,
    pub(super) uri: &'a str,
    /// Whether the request already contained an answer to such a challenge.
    pub(super) tried: bool,
    /// Whether the request was inside a dialog: then the realm is known already.
    pub(super) in_dialog: bool,
}

impl Trunks {
    /// Updates the trunks to match the directory. Trunks with unchanged credentials keep their state.
    pub(super) fn replace(&mut self, directory: &Directory, rng: &mut StdRng) {
        let mut before = std::mem::take(&mut self.links);
        for trunk in directory.trunks() {
            let login = Login::of(trunk);
            let link = before.remove(&trunk.id).filter(|link| link.login == login);
            self.links.insert(trunk.id, link.unwrap_or_else(|| Link::new(login, rng)));
        }
    }

    /// Returns the header that answers a challenge, if this trunk may get our credentials for it.
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

    /// Returns the credentials for a request to the address that challenged before, which saves another
    /// challenge.
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

    /// Stops calling a trunk for as long as it asks, at most [`REST_MAX`].
    pub(super) fn rest(&mut self, now: Instant, trunk: TrunkId, wished: Duration) {
        if let Some(link) = self.links.get_mut(&trunk) {
            link.rests_until = Some(now + wished.min(REST_MAX));
        }
    }

    /// Records whether a trunk responds at all.
    pub(super) fn heard(&mut self, now: Instant, trunk: TrunkId, heard: bool) {
        if let Some(link) = self.links.get_mut(&trunk) {
            link.silent_until = (!heard).then(|| now + SILENT_FOR);
        }
    }

    /// Whether the trunk asked not to be called.
    pub(super) fn is_resting(&self, now: Instant, trunk: TrunkId) -> bool {
        self.links.get(&trunk).is_some_and(|link| link.rests_until.is_some_and(|until| until > now))
    }

    /// Whether the trunk recently sent no response.
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
            proxy: trunk.interop.outbound_proxy.clone(),
        }
    }
}

/// The longest time for which a trunk can ask not to be called.
const REST_MAX: Duration = Duration::from_secs(300);
/// How long a trunk that sent no response is tried last.
const SILENT_FOR: Duration = Duration::from_secs(30);
