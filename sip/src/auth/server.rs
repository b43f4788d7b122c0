//! The server side: sends challenges and verifies the answers.

use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::auth::digest::equal;
use crate::auth::target::has_target_of;
use crate::auth::{
    Algorithm, Credential, FailureLimiter, Guess, Limit, NonceFault, Nonces, Qop, SECRET_BYTES, response,
};
use crate::message::{Digest, write_quoted};

/// Challenges and verifies requests for all realms of this process.
pub struct Authenticator {
    nonces: Nonces,
    limiter: FailureLimiter,
    /// Replaces the credential of an account that does not exist, so that both cases take the same path.
    decoy: Credential,
    algorithms: Vec<Algorithm>,
}

/// A request that must authenticate.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Every `Authorization` header (or `Proxy-Authorization` for a proxy) of the request that can be parsed.
    pub headers: &'a [Digest],
    /// The request's method.
    pub method: &'a str,
    /// The Request-URI.
    pub uri: &'a str,
    /// Unique among the requests of the source, and equal in a retransmission: its Call-ID and CSeq.
    pub request: &'a str,
    /// Our realm: the organisation's SIP domain.
    pub realm: &'a str,
    /// Source of the request according to the socket.
    pub source: IpAddr,
}

/// The accounts that may authenticate.
pub trait Accounts {
    /// The credential of a user name; `None` when there is no such account.
    fn credential(&self, username: &str) -> Option<Credential>;

    /// Whether the account has a registration from the source of the request, so that attacks from other
    /// sources do not slow its phone down.
    fn is_registered(&self, _username: &str) -> bool {
        false
    }
}

impl<F: Fn(&str) -> Option<Credential>> Accounts for F {
    fn credential(&self, username: &str) -> Option<Credential> {
        self(username)
    }
}

/// The action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is from the account with this user name.
    Accepted {
        /// The digest's user name, unescaped.
        username: String,
    },
    /// Answer 401 or 407 with these values, one header each, in this order.
    Challenge {
        /// The header values, in the order of the offered algorithms (RFC 8760 §2.3).
        challenges: Vec<String>,
        /// The reason, for counters; not sent to the peer.
        refusal: Refusal,
    },
    /// Too many failures: answer 403. No digest was computed. The result does not depend on whether the
    /// account exists.
    Limited {
        /// The time until the block ends.
        retry_after: Duration,
        /// The digest's user name, unescaped.
        username: String,
    },
}

/// Why a request is challenged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Its nonce is ours but aged: the challenge has `stale=true`, and the phone tries again automatically.
    Aged,
    /// It uses an algorithm or a form of digest that we did not offer.
    Algorithm,
    /// Its nonce was not sent to this source by us.
    Foreign,
    /// The header lacks a required parameter.
    Malformed,
    /// It has no credentials for our realm.
    Missing,
    /// Its nonce count was used before.
    Replayed,
    /// The account is unknown or the password wrong; the peer must not be able to distinguish the two.
    Wrong {
        /// The limit that this failure reached: worth an alert.
        reached: Option<Limit>,
    },
}

impl Authenticator {
    /// An authenticator that offers SHA-256 and MD5. `secret` is random and known to this process only;
    /// `epoch` is any time not after the first use.
    pub fn new(secret: [u8; SECRET_BYTES], epoch: Instant) -> Self {
        let decoy: String = secret.iter().map(|byte| char::from(*byte)).collect();
        Authenticator {
            nonces: Nonces::new(secret, epoch),
            limiter: FailureLimiter::new(secret),
            decoy: Credential::new("", "", &decoy),
            algorithms: vec![Algorithm::Sha256, Algorithm::Md5],
        }
    }

    /// The same authenticator with these algorithms in this order. A phone should use the first one that it
    /// supports (RFC 8760 §2.4); some look only at the first one, and for them MD5 must come first.
    #[must_use]
    pub fn offering(self, algorithms: Vec<Algorithm>) -> Self {
        Authenticator { algorithms, ..self }
    }

    /// Offers other algorithms from the next challenge on; earlier nonces stay valid for the algorithm they
    /// were offered with.
    pub fn offer(&mut self, algorithms: Vec<Algorithm>) {
        self.algorithms = algorithms;
    }

    /// Verifies a request. The account is found by the user name; an account that does not exist takes the
    /// same time and gives the same result as a wrong password.
    ///
    /// The digest's `uri` is hashed as sent. It must name the target of the Request-URI (RFC 7616 §3.4.6), but may be
    /// written differently: see `target.rs`. A captured response cannot be used again, because its count is already
    /// used.
    pub fn verify(&mut self, now: Instant, attempt: Attempt<'_>, accounts: impl Accounts) -> Decision {
        let header = attempt
            .headers
            .iter()
            .find(|d| d.is_digest() && d.get("realm").as_deref() == Some(attempt.realm));
        let Some(header) = header else {
            return self.challenge(now, attempt, Refusal::Missing);
        };
        let Some(answer) = Answer::read(header) else {
            return self.challenge(now, attempt, Refusal::Malformed);
        };
        let guess = Guess { realm: attempt.realm, username: &answer.username, source: attempt.source };
        let is_registered = accounts.is_registered(&answer.username);
        if let Some(retry_after) = self.limiter.closed_for(now, guess, is_registered) {
            return Decision::Limited { retry_after, username: answer.username };
        }
        match self.judge(now, attempt, &answer, accounts) {
            Ok(()) => Decision::Accepted { username: answer.username },
            Err(refusal) => self.challenge(now, attempt, refusal),
        }
    }

    /// Removes the failures for an account whose password was changed.
    pub fn forget_failures(&mut self, realm: &str, username: &str) {
        self.limiter.forget(realm, username);
    }

    /// Whether a header answers a challenge that we sent to that source in the last minute. A wrong answer
    /// counts too: it shows that the source receives our packets.
    pub fn has_challenged(&self, now: Instant, answer: &Digest, source: IpAddr) -> bool {
        let (realm, algorithm) = (answer.get("realm"), Algorithm::from_token(answer.inner("algorithm")));
        let (Some(realm), Some(algorithm), Some(nonce)) = (realm, algorithm, answer.inner("nonce")) else {
            return false;
        };
        self.nonces.check(now, nonce, source, &realm, algorithm).is_ok()
    }

    /// Number of sources with recent failures.
    pub fn tracked(&self) -> usize {
        self.limiter.len()
    }

    fn judge(
        &mut self,
        now: Instant,
        attempt: Attempt<'_>,
        answer: &Answer<'_>,
        accounts: impl Accounts,
    ) -> Result<(), Refusal> {
        let algorithm = answer.algorithm.filter(|algorithm| self.algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or(Refusal::Algorithm)?;
        // We offer qop=auth; without it there is no count to detect a replay.
        let qop = answer.qop.ok_or(Refusal::Algorithm)?;
        let count = u32::from_str_radix(qop.nc, 16).map_err(|_| Refusal::Malformed)?;
        self.nonces.check(now, answer.nonce, attempt.source, attempt.realm, algorithm)?;

        let found = accounts.credential(&answer.username);
        let known = found.is_some();
        // Parsed like a stored credential, because even that time can be measured.
        let read = || {
            let decoy = &self.decoy;
            Credential::from_stored(decoy.ha1(Algorithm::Md5), decoy.ha1(Algorithm::Sha256))
        };
        let credential = found.or_else(read).unwrap_or_else(|| self.decoy.clone());
        let expected = response(algorithm, &credential, answer.nonce, Some(qop), attempt.method, answer.uri);
        let right = equal(&expected, &answer.response.to_ascii_lowercase());
        if !(right & known) {
            let guess = Guess { realm: attempt.realm, username: &answer.username, source: attempt.source };
            let reached = self.limiter.fail(now, guess);
            return Err(Refusal::Wrong { reached });
        }
        // The password was right, so this is no guess. The target was replaced on the path, or a proxy rewrote it.
        if !has_target_of(attempt.uri, answer.uri) {
            return Err(Refusal::Wrong { reached: None });
        }
        self.nonces.spend(now, answer.nonce, count)?;
        Ok(())
    }

    fn challenge(&self, now: Instant, attempt: Attempt<'_>, refusal: Refusal) -> Decision {
        let nonces = &self.nonces;
        let realm = Quoted(attempt.realm);
        let stale = if refusal == Refusal::Aged { ", stale=true" } else { "" };
        let challenges = self.algorithms.iter().map(|algorithm| {
            let nonce = nonces.mint(now, attempt.request, attempt.source, attempt.realm, *algorithm);
            let algorithm = algorithm.as_str();
            let mut text = String::with_capacity(CHALLENGE_BYTES_LIKELY + attempt.realm.len());
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "Digest realm={realm}, nonce=\"{nonce}\", algorithm={algorithm}, qop=\"auth\"{stale}"
            );
            text
        });
        Decision::Challenge { challenges: challenges.collect(), refusal }
    }
}

/// Length of most challenges without the realm.
const CHALLENGE_BYTES_LIKELY: usize = 120;

/// Text as a quoted string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, self.0)
    }
}

impl From<NonceFault> for Refusal {
    fn from(fault: NonceFault) -> Self {
        match fault {
            NonceFault::Aged => Refusal::Aged,
            NonceFault::Foreign => Refusal::Foreign,
            NonceFault::Replayed => Refusal::Replayed,
        }
    }
}

/// The parameters of an `Authorization` header, as received.
struct Answer<'a> {
    username: String,
    nonce: &'a str,
    uri: &'a str,
    response: &'a str,
    algorithm: Option<Algorithm>,
    qop: Option<Qop<'a>>,
}

impl<'a> Answer<'a> {
    fn read(header: &'a Digest) -> Option<Self> {
        let qop = match header.inner("qop") {
            Some(qop) if qop.eq_ignore_ascii_case("auth") => {
                Some(Qop { nc: header.inner("nc")?, cnonce: header.inner("cnonce")? })
            }
            Some(_) | None => None,
        };
        Some(Answer {
            username: header.get("username")?.into_owned(),
            nonce: header.inner("nonce")?,
            uri: header.inner("uri")?,
            response: header.inner("response")?,
            algorithm: Algorithm::from_token(header.inner("algorithm")),
            qop,
        })
    }
}
