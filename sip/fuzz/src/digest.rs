//! Digest authentication: Authorization headers of phones, and challenges of peers.

use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::auth::{
    Algorithm, Attempt, Authenticator, Client, Credential, Decision, Qop, Realm, response,
};
use sidetone_sip::message::Digest;

/// A header that can be parsed survives writing and parsing. A request that authenticates has the digest of the
/// password, and authenticates once; a client answers only its own realm, with a header that can be parsed.
pub fn digest(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let headers: Vec<Digest> =
        text.split('\n').take(HEADERS_MAX).filter_map(|line| Digest::parse(line).ok()).collect();
    for header in &headers {
        let written = header.to_string();
        assert_eq!(Digest::parse(&written).expect("what was written is read").to_string(), written);
    }
    server(&headers);
    client(&headers);
}

fn server(headers: &[Digest]) {
    let now = any_instant();
    let mut authenticator = Authenticator::new(SECRET, now);
    let attempt = Attempt {
        headers,
        method: "REGISTER",
        uri: "sip:acme.test",
        request: "1",
        realm: REALM,
        source: [192, 0, 2, 1].into(),
    };
    let credential = |username: &str| (username == USER).then(|| Credential::new(USER, REALM, PASSWORD));
    match authenticator.verify(now, attempt, credential) {
        Decision::Accepted { username } => {
            assert_eq!(username, USER);
            assert!(headers.iter().any(is_proof), "accepted without the digest of the password: {headers:?}");
            let again = authenticator.verify(now, attempt, credential);
            assert!(!matches!(again, Decision::Accepted { .. }), "accepted twice: {headers:?}");
        }
        Decision::Challenge { challenges, .. } => {
            assert!(!challenges.is_empty());
            for challenge in &challenges {
                Digest::parse(challenge).expect("our own challenge is read");
            }
        }
        Decision::Limited { .. } => panic!("one attempt is no flood"),
    }
}

/// Whether the header has a response computed from the password.
fn is_proof(header: &Digest) -> bool {
    let credential = Credential::new(USER, REALM, PASSWORD);
    let [nonce, uri, answer] =
        ["nonce", "uri", "response"].map(|name| header.inner(name).unwrap_or_default());
    let qop = header.inner("nc").zip(header.inner("cnonce")).map(|(nc, cnonce)| Qop { nc, cnonce });
    Algorithm::from_token(header.inner("algorithm")).is_some_and(|algorithm| {
        let with = |qop| response(algorithm, &credential, nonce, qop, "REGISTER", uri);
        answer.eq_ignore_ascii_case(&with(qop)) || answer.eq_ignore_ascii_case(&with(None))
    })
}

fn client(challenges: &[Digest]) {
    let rng = StdRng::seed_from_u64(1);
    let mut client = Client::new(USER, PASSWORD, Realm::Exactly(REALM.to_owned()), rng);
    for tried in [false, true] {
        let Some(answer) = client.answer(challenges, tried, "REGISTER", "sip:acme.test") else { continue };
        let answer = Digest::parse(&answer).expect("our own answer is read");
        assert_eq!(answer.get("realm").as_deref(), Some(REALM), "another realm got our digest");
        assert!(!answer.to_string().contains(PASSWORD));
        if let Some(next) = client.next("REGISTER", "sip:acme.test") {
            Digest::parse(&next).expect("our own answer is read");
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "an instant is needed to count from")]
fn any_instant() -> Instant {
    Instant::now()
}

const HEADERS_MAX: usize = 64;
const PASSWORD: &str = "correct horse battery staple";
const REALM: &str = "acme.test";
const SECRET: [u8; 32] = [7; 32];
const USER: &str = "1001";
