//! The client side: answers challenges of a peer for which we have a password.

use rand::Rng;
use rand::rngs::StdRng;

use crate::auth::{Algorithm, Credential, Qop, response};
use crate::message::Digest;

/// Answers challenges with one user name and password, and counts how often each nonce is used.
///
/// Each belongs to one configured peer. The caller must ensure that requests of other peers do not reach it;
/// this type ensures that other realms get no answer.
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
    /// Any realm: for a carrier that is identified by its address and whose realm is not known in advance.
    Any,
    /// Only this realm.
    Exactly(String),
}

/// A challenge that was answered, for use in later requests.
struct Current {
    /// The text between the quotes, unchanged.
    realm: String,
    nonce: String,
    opaque: Option<String>,
    /// Whether the challenge had the parameter; it is echoed only then.
    names_algorithm: bool,
    algorithm: Algorithm,
    has_qop: bool,
    credential: Credential,
    count: u32,
}

impl Client {
    /// A client for one peer. `rng` generates its cnonces.
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

    /// The same client, which ignores challenges with a weaker algorithm than `algorithm`.
    #[must_use]
    pub fn at_least(self, algorithm: Algorithm) -> Self {
        Client { weakest: algorithm, ..self }
    }

    /// The value of the `Authorization` (after 401) or `Proxy-Authorization` (after 407) header for one of
    /// `challenges`: the strongest supported algorithm in our realm.
    ///
    /// `tried` means that the challenged request already had our credentials. Then only a challenge with
    /// `stale=true` is answered: otherwise the password is wrong, and repeating the request would never end.
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

    /// The header value for another request with the last challenge, so that it is not challenged again;
    /// `None` before the first challenge.
    pub fn next(&mut self, method: &str, uri: &str) -> Option<String> {
        let cnonce = format!("{:016x}", self.rng.next_u64());
        let current = self.current.as_mut()?;
        // Without qop there is no count, and a strict server would treat a second use as a replay.
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

    /// The realm of the last answered challenge, as between its quotes.
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

/// Whether to answer with `qop=auth`; `None` when the challenge offers only unsupported forms (`auth-int`).
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
