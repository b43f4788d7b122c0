//! The client's side: answers to the challenges of a peer that we have a password for.

use rand::Rng;
use rand::rngs::StdRng;

use crate::auth::{Algorithm, Credential, Qop, response};
use crate::message::Digest;

/// Answers challenges with one user name and password, and counts the uses of each nonce.
///
/// One of these belongs to one configured peer. That requests of other peers never reach it is the caller's part;
/// that other realms get nothing is enforced here.
pub struct Client {
    username: String,
    password: String,
    realm: Realm,
    weakest: Algorithm,
    current: Option<Current>,
    rng: StdRng,
}

/// The realms that a client answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Realm {
    /// Whatever realm the configured peer names: for a carrier that is known by its address and does not say its realm
    /// in advance.
    Any,
    /// This one.
    Exactly(String),
}

/// A challenge that was answered, to be used again.
struct Current {
    /// As it stood between its quotes.
    realm: String,
    nonce: String,
    opaque: Option<String>,
    /// The parameter is echoed only when it was there.
    names_algorithm: bool,
    algorithm: Algorithm,
    has_qop: bool,
    credential: Credential,
    count: u32,
}

impl Client {
    /// A client for one peer. `rng` makes its cnonces.
    pub fn new(username: &str, password: &str, realm: Realm, rng: StdRng) -> Self {
        Client {
            username: username.to_owned(),
            password: password.to_owned(),
            realm,
            weakest: Algorithm::Md5,
            current: None,
            rng,
        }
    }

    /// The same, deaf to challenges with anything weaker than `algorithm`.
    #[must_use]
    pub fn at_least(self, algorithm: Algorithm) -> Self {
        Client { weakest: algorithm, ..self }
    }

    /// The value of the `Authorization` (after 401) or `Proxy-Authorization` (after 407) header that answers one of
    /// `challenges`: the strongest algorithm that we know, in our realm.
    ///
    /// `tried` says that the challenged request had our credentials already. Then only `stale=true` is worth another
    /// attempt: the password is wrong, and repeating it would never end.
    pub fn answer(&mut self, challenges: &[Digest], tried: bool, method: &str, uri: &str) -> Option<String> {
        let best = challenges
            .iter()
            .filter(|challenge| challenge.is_digest() && self.is_ours(challenge))
            .filter_map(|challenge| Some((Algorithm::from_token(challenge.inner("algorithm"))?, challenge)))
            .filter(|(algorithm, challenge)| *algorithm >= self.weakest && qop(challenge).is_some())
            .filter(|(_, challenge)| !tried || is_stale(challenge))
            .max_by_key(|(algorithm, _)| *algorithm);
        let (algorithm, challenge) = best?;
        let realm = challenge.inner("realm")?;
        self.current = Some(Current {
            realm: realm.to_owned(),
            nonce: challenge.inner("nonce")?.to_owned(),
            opaque: challenge.inner("opaque").map(str::to_owned),
            names_algorithm: challenge.inner("algorithm").is_some(),
            algorithm,
            has_qop: qop(challenge)?,
            credential: Credential::new(&self.username, realm, &self.password),
            count: 0,
        });
        self.next(method, uri)
    }

    /// The header value for another request under the last challenge, so that it is not challenged again; `None`
    /// before the first.
    pub fn next(&mut self, method: &str, uri: &str) -> Option<String> {
        let cnonce = format!("{:016x}", self.rng.next_u64());
        let current = self.current.as_mut()?;
        // Without qop there is no count, and a second use would be a replay to a careful server.
        if uri.contains(['"', '\\']) || (!current.has_qop && current.count > 0) {
            return None;
        }
        current.count = current.count.checked_add(1)?;
        let nc = format!("{:08x}", current.count);
        let qop = current.has_qop.then_some(Qop { nc: &nc, cnonce: &cnonce });
        let digest = response(current.algorithm, &current.credential, &current.nonce, qop, method, uri);

        let quoted = |text: &str| format!("\"{text}\"");
        let mut header = Digest::new()
            .with_quoted("username", &self.username)
            .with("realm", &quoted(&current.realm))
            .with("nonce", &quoted(&current.nonce))
            .with("uri", &quoted(uri))
            .with("response", &quoted(&digest));
        if current.names_algorithm {
            header = header.with("algorithm", current.algorithm.as_str());
        }
        if let Some(opaque) = &current.opaque {
            header = header.with("opaque", &quoted(opaque));
        }
        if qop.is_some() {
            header = header.with("qop", "auth").with("nc", &nc).with("cnonce", &quoted(&cnonce));
        }
        Some(header.to_string())
    }

    /// The realm that was answered last, as it stood between its quotes.
    pub fn realm(&self) -> Option<&str> {
        self.current.as_ref().map(|current| current.realm.as_str())
    }

    fn is_ours(&self, challenge: &Digest) -> bool {
        match (&self.realm, challenge.get("realm")) {
            (_, None) => false,
            (Realm::Any, Some(_)) => true,
            (Realm::Exactly(ours), Some(theirs)) => *ours == theirs,
        }
    }
}

/// Whether to answer with `qop=auth`; `None` when the challenge wants only what we do not do (`auth-int`).
fn qop(challenge: &Digest) -> Option<bool> {
    match challenge.get("qop") {
        None => Some(false),
        Some(options) => {
            options.split(',').any(|option| option.trim().eq_ignore_ascii_case("auth")).then_some(true)
        }
    }
}

fn is_stale(challenge: &Digest) -> bool {
    challenge.inner("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true"))
}
