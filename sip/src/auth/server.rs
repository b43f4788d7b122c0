//! The server's side: challenges, and what comes back to them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::auth::digest::equal;
use crate::auth::{
    Algorithm, Credential, FailureLimiter, Guess, Limit, NonceFault, Nonces, Qop, SECRET_BYTES, response,
};
use crate::message::Digest;

/// Challenges and verifies for all realms of this process.
pub struct Authenticator {
    nonces: Nonces,
    limiter: FailureLimiter,
    /// Stands in for the credential of an account that does not exist, so that it takes the same path.
    decoy: Credential,
    algorithms: Vec<Algorithm>,
}

/// One request that has to authenticate.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Every readable `Authorization` header (or `Proxy-Authorization` for a proxy) of the request.
    pub headers: &'a [Digest],
    /// The request's method.
    pub method: &'a str,
    /// What no other request of the source has, and a retransmission shares: its Call-ID and CSeq.
    pub request: &'a str,
    /// Our realm: the organisation's SIP domain.
    pub realm: &'a str,
    /// Where the request came from, as the socket says.
    pub source: IpAddr,
}

/// The accounts that may authenticate.
pub trait Accounts {
    /// The credential of a user name; `None` when there is no such account.
    fn credential(&self, username: &str) -> Option<Credential>;

    /// Whether the account has a registration from the source of the request, so that attacks from elsewhere do not
    /// slow its phone down.
    fn is_registered(&self, _username: &str) -> bool {
        false
    }
}

impl<F: Fn(&str) -> Option<Credential>> Accounts for F {
    fn credential(&self, username: &str) -> Option<Credential> {
        self(username)
    }
}

/// What to do with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The account of this user name sent it.
    Accepted {
        /// The digest's user name, unescaped.
        username: String,
    },
    /// Answer 401 or 407 with these values, one header each, in this order.
    Challenge {
        /// The header values, in the order of the algorithms that are offered (RFC 8760 §2.3).
        challenges: Vec<String>,
        /// Why, for the counters; never for the peer.
        refusal: Refusal,
    },
    /// Too many failures: answer 403, no digest was computed. The same whether or not there is such an account.
    Limited {
        /// How long it stays so.
        retry_after: Duration,
        /// The digest's user name, unescaped.
        username: String,
    },
}

/// Why a request is challenged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Its nonce is ours but aged: the challenge says `stale=true`, and the phone tries again by itself.
    Aged,
    /// It uses an algorithm or a form of digest that was not offered.
    Algorithm,
    /// Its nonce is not one we sent to it.
    Foreign,
    /// The header lacks what it must have.
    Malformed,
    /// It has no credentials for our realm.
    Missing,
    /// Its nonce count was used before.
    Replayed,
    /// The account is unknown or the password wrong; which of the two is not to be told apart.
    Wrong {
        /// The limit that this failure reached: worth an alert.
        reached: Option<Limit>,
    },
}

impl Authenticator {
    /// An authenticator that offers SHA-256 and MD5. `secret` is random and of this process alone; `epoch` is any
    /// instant not after the first use.
    pub fn new(secret: [u8; SECRET_BYTES], epoch: Instant) -> Self {
        let decoy: String = secret.iter().map(|byte| char::from(*byte)).collect();
        Authenticator {
            nonces: Nonces::new(secret, epoch),
            limiter: FailureLimiter::new(secret),
            decoy: Credential::new("", "", &decoy),
            algorithms: vec![Algorithm::Sha256, Algorithm::Md5],
        }
    }

    /// The same, offering these algorithms in this order. A phone is to take the first that it knows (RFC 8760 §2.4);
    /// some look at the first alone, and for them MD5 has to stand there.
    #[must_use]
    pub fn offering(self, algorithms: Vec<Algorithm>) -> Self {
        Authenticator { algorithms, ..self }
    }

    /// Offers other algorithms from the next challenge on; a nonce that is out stays good for what it was offered with.
    pub fn offer(&mut self, algorithms: Vec<Algorithm>) {
        self.algorithms = algorithms;
    }

    /// Judges a request. The account is looked up by the user name, and one that does not exist takes the
    /// same time and gets the same answer as a wrong password.
    ///
    /// The digest's `uri` is hashed as sent and not compared with the Request-URI, which a hop on the way may have
    /// rewritten (RFC 3261 §22.4); a captured response is of no use anyway, since its count is spent.
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

    /// Forgets the failures at an account whose password is another one.
    pub fn forget_failures(&mut self, realm: &str, username: &str) {
        self.limiter.forget(realm, username);
    }

    /// Whether a header answers a challenge of ours to that source, of the last minute. Whether the answer is right is
    /// not asked: it only shows that the source hears us.
    pub fn has_challenged(&self, now: Instant, answer: &Digest, source: IpAddr) -> bool {
        let (realm, algorithm) = (answer.get("realm"), Algorithm::from_token(answer.inner("algorithm")));
        let (Some(realm), Some(algorithm), Some(nonce)) = (realm, algorithm, answer.inner("nonce")) else {
            return false;
        };
        self.nonces.check(now, nonce, source, &realm, algorithm).is_ok()
    }

    /// How many sources have failed lately.
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
        // We offered qop=auth, and without it there is no count to tell a replay by.
        let qop = answer.qop.ok_or(Refusal::Algorithm)?;
        let count = u32::from_str_radix(qop.nc, 16).map_err(|_| Refusal::Malformed)?;
        self.nonces.check(now, answer.nonce, attempt.source, attempt.realm, algorithm)?;

        let found = accounts.credential(&answer.username);
        let known = found.is_some();
        // Read as a stored one is: even that can be measured.
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
        self.nonces.spend(now, answer.nonce, count)?;
        Ok(())
    }

    fn challenge(&self, now: Instant, attempt: Attempt<'_>, refusal: Refusal) -> Decision {
        let nonces = &self.nonces;
        let challenges = self.algorithms.iter().map(|algorithm| {
            let nonce = nonces.mint(now, attempt.request, attempt.source, attempt.realm, *algorithm);
            let challenge = Digest::new()
                .with_quoted("realm", attempt.realm)
                .with_quoted("nonce", &nonce)
                .with("algorithm", algorithm.as_str())
                .with_quoted("qop", "auth");
            let stale = refusal == Refusal::Aged;
            if stale { challenge.with("stale", "true").to_string() } else { challenge.to_string() }
        });
        Decision::Challenge { challenges: challenges.collect(), refusal }
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

/// The parameters of an `Authorization` header, as they stood on the wire.
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
