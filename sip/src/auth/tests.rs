//! Tests of both sides against each other, and of answers that must be rejected.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::message::Digest;

const REALM: &str = "acme.test";
const URI: &str = "sip:acme.test";

struct Server {
    authenticator: Authenticator,
    start: Instant,
}

impl Server {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let start = Instant::now();
        Server { authenticator: Authenticator::new([7; SECRET_BYTES], start), start }
    }

    fn verify_from(&mut self, seconds: u64, source: &str, header: Option<&str>) -> Decision {
        let headers: Vec<Digest> = header.into_iter().map(|text| Digest::parse(text).unwrap()).collect();
        let source = source.parse().unwrap();
        let attempt =
            Attempt { headers: &headers, method: "REGISTER", uri: URI, request: "1", realm: REALM, source };
        let accounts =
            |username: &str| (username == "1001").then(|| Credential::new("1001", REALM, "secret"));
        self.authenticator.verify(self.start + Duration::from_secs(seconds), attempt, accounts)
    }

    fn verify(&mut self, seconds: u64, header: Option<&str>) -> Decision {
        self.verify_from(seconds, "192.0.2.1", header)
    }

    fn challenges(&mut self, seconds: u64) -> Vec<Digest> {
        match self.verify(seconds, None) {
            Decision::Challenge { challenges, refusal: Refusal::Missing } => parsed(&challenges),
            other => panic!("{other:?}"),
        }
    }
}

fn parsed(values: &[String]) -> Vec<Digest> {
    values.iter().map(|value| Digest::parse(value).unwrap()).collect()
}

fn client(username: &str, password: &str) -> Client {
    Client::new(username, password, Realm::Exactly(REALM.to_owned()), StdRng::seed_from_u64(1))
}

fn refusal(decision: Decision) -> Refusal {
    match decision {
        Decision::Challenge { refusal, challenges } => {
            let stale = challenges.iter().all(|challenge| challenge.ends_with(", stale=true"));
            assert_eq!(stale, refusal == Refusal::Aged, "stale=true only for an aged nonce of ours");
            refusal
        }
        other => panic!("{other:?}"),
    }
}

fn accepted() -> Decision {
    Decision::Accepted { username: "1001".to_owned() }
}

#[test]
fn sha_256_is_offered_first_and_taken() {
    let mut server = Server::new();
    let challenges = server.challenges(0);
    let algorithms: Vec<_> = challenges.iter().map(|c| c.inner("algorithm").unwrap()).collect();
    assert_eq!(algorithms, ["SHA-256", "MD5"]);
    let mut phone = client("1001", "secret");
    let header = phone.answer(&challenges, false, "REGISTER", URI).unwrap();
    assert!(header.contains("algorithm=SHA-256"), "{header}");
    assert_eq!(server.verify(1, Some(&header)), accepted());
    // The next request is sent with credentials and is not challenged.
    let next = phone.next("REGISTER", URI).unwrap();
    assert!(next.contains("nc=00000002"), "{next}");
    assert_eq!(server.verify(2, Some(&next)), accepted());
}

#[test]
fn a_phone_that_knows_only_md5_gets_in_unless_it_is_shut_out() {
    let mut server = Server::new();
    let challenges = server.challenges(0);
    let header = client("1001", "secret").answer(&challenges[1..], false, "REGISTER", URI).unwrap();
    assert_eq!(server.verify(0, Some(&header)), accepted());

    let mut strict = Server::new();
    strict.authenticator = strict.authenticator.offering(vec![Algorithm::Sha256]);
    assert_eq!(strict.challenges(0).len(), 1);
    assert_eq!(refusal(strict.verify(0, Some(&header))), Refusal::Algorithm);
}

#[test]
fn what_is_not_a_fresh_answer_to_our_challenge_is_refused() {
    let mut server = Server::new();
    let challenges = server.challenges(0);
    let answer =
        |challenges: &[Digest]| client("1001", "secret").answer(challenges, false, "REGISTER", URI).unwrap();
    let good = answer(&challenges);
    let swap = |from: &str, to: &str| good.replace(from, to);
    let downgraded = good.replace("algorithm=SHA-256", "algorithm=MD5");
    let mut other_node = Server::new();
    other_node.authenticator = Authenticator::new([8; SECRET_BYTES], other_node.start);
    let foreign = answer(&other_node.challenges(0));
    let unknown_realm = swap("realm=\"acme.test\"", "realm=\"other.test\"");
    let table = [
        ("no qop", swap("qop=auth", "qop=auth-int"), Refusal::Algorithm),
        ("weaker hash for a stronger challenge", downgraded, Refusal::Foreign),
        ("unknown hash", swap("algorithm=SHA-256", "algorithm=SHA-512-256"), Refusal::Algorithm),
        ("session hash", swap("algorithm=SHA-256", "algorithm=MD5-sess"), Refusal::Algorithm),
        ("another node's nonce", foreign, Refusal::Foreign),
        ("another realm", unknown_realm, Refusal::Missing),
        ("another scheme", swap("Digest ", "Basic "), Refusal::Missing),
        ("no response", swap("response=", "x="), Refusal::Malformed),
        ("no count", swap("nc=00000001", "nc=zz"), Refusal::Malformed),
        ("a count of zero", swap("nc=00000001", "nc=00000000"), Refusal::Wrong { reached: None }),
        (
            "another uri than was hashed",
            swap("uri=\"sip:acme.test\"", "uri=\"sip:x\""),
            Refusal::Wrong { reached: None },
        ),
    ];
    for (name, header, expected) in table {
        assert_eq!(refusal(server.verify(0, Some(&header))), expected, "{name}");
    }
    assert_eq!(refusal(server.verify_from(0, "192.0.2.2", Some(&good))), Refusal::Foreign, "stolen");
    assert_eq!(server.verify(0, Some(&good)), accepted());
    assert_eq!(refusal(server.verify(0, Some(&good))), Refusal::Replayed);
    assert_eq!(refusal(server.verify(93, Some(&good))), Refusal::Aged);
}

#[test]
fn an_aged_nonce_is_renewed_without_asking_the_user() {
    let mut server = Server::new();
    let mut phone = client("1001", "secret");
    let first = phone.answer(&server.challenges(0), false, "REGISTER", URI).unwrap();
    let Decision::Challenge { challenges, refusal: Refusal::Aged } = server.verify(93, Some(&first)) else {
        panic!("an aged nonce is challenged");
    };
    let second = phone.answer(&parsed(&challenges), true, "REGISTER", URI).unwrap();
    assert_eq!(server.verify(93, Some(&second)), accepted());
}

#[test]
fn a_wrong_password_and_an_unknown_account_look_the_same() {
    for (username, password) in [("1001", "guess"), ("9999", "guess"), ("", "guess")] {
        let mut server = Server::new();
        let challenges = server.challenges(0);
        let header = client(username, password).answer(&challenges, false, "REGISTER", URI).unwrap();
        let decision = server.verify(0, Some(&header));
        let Decision::Challenge { challenges, refusal } = decision else { panic!("{decision:?}") };
        assert_eq!(refusal, Refusal::Wrong { reached: None });
        assert_eq!(challenges.len(), 2);
        assert!(
            client(username, password).answer(&parsed(&challenges), true, "REGISTER", URI).is_none(),
            "gives up"
        );
    }
}

#[test]
fn guessing_is_stopped_for_the_guesser_alone() {
    let mut server = Server::new();
    for guess in 1..=FAILURES_MAX {
        let challenges = server.challenges(0);
        let header = client("1001", "guess").answer(&challenges, false, "REGISTER", URI).unwrap();
        let reached = (guess == FAILURES_MAX).then_some(Limit::Account);
        assert_eq!(refusal(server.verify(0, Some(&header))), Refusal::Wrong { reached });
    }
    let challenges = server.challenges(0);
    let right = client("1001", "secret").answer(&challenges, false, "REGISTER", URI).unwrap();
    let limited = Decision::Limited { retry_after: WINDOW, username: "1001".to_owned() };
    assert_eq!(server.verify(0, Some(&right)), limited, "not even the right one is looked at");
    let Decision::Challenge { challenges, .. } = server.verify_from(0, "192.0.2.77", None) else { panic!() };
    let elsewhere = client("1001", "secret").answer(&parsed(&challenges), false, "REGISTER", URI).unwrap();
    assert_eq!(server.verify_from(0, "192.0.2.77", Some(&elsewhere)), accepted(), "the owner elsewhere");
    assert_eq!(server.authenticator.tracked(), 1);
}

#[test]
fn rubbish_counts_no_failures() {
    let mut server = Server::new();
    for _ in 0..50 {
        // Forged from any source: the attacker never got a nonce of ours, so the account is not blocked for
        // its owner.
        let forged = "Digest username=\"1001\", realm=\"acme.test\", nonce=\"x\", uri=\"sip:x\", response=\"y\", \
                      qop=auth, nc=00000001, cnonce=\"z\"";
        assert_eq!(refusal(server.verify(0, Some(forged))), Refusal::Foreign);
    }
    assert_eq!(server.authenticator.tracked(), 0);
}

#[test]
fn credentials_go_to_the_configured_realm_only() {
    let challenge = |text: &str| vec![Digest::parse(text).unwrap()];
    let table = [
        ("ours", r#"Digest realm="acme.test", nonce="n", qop="auth""#, true),
        ("other realm", r#"Digest realm="other", nonce="n", qop="auth""#, false),
        ("no realm", r#"Digest nonce="n", qop="auth""#, false),
        ("no nonce", r#"Digest realm="acme.test", qop="auth""#, false),
        ("integrity only", r#"Digest realm="acme.test", nonce="n", qop="auth-int""#, false),
        ("either", r#"Digest realm="acme.test", nonce="n", qop="auth-int,auth""#, true),
        ("unknown hash", r#"Digest realm="acme.test", nonce="n", algorithm=SHA-512-256"#, false),
        ("another scheme", r#"Basic realm="acme.test", nonce="n""#, false),
    ];
    for (name, text, expected) in table {
        assert_eq!(
            client("1001", "x").answer(&challenge(text), false, "INVITE", URI).is_some(),
            expected,
            "{name}"
        );
    }
    let md5 = challenge(r#"Digest realm="acme.test", nonce="n", algorithm=MD5"#);
    assert!(client("1001", "x").at_least(Algorithm::Sha256).answer(&md5, false, "INVITE", URI).is_none());
    let mut carrier = Client::new("acme", "x", Realm::Any, StdRng::seed_from_u64(1));
    assert!(carrier.answer(&challenge(table[1].1), false, "INVITE", URI).is_some());
}

#[test]
fn the_form_without_qop_is_answered_once_per_nonce() {
    let challenges = [Digest::parse(r#"Digest realm="acme.test", nonce="n\"1", opaque="o\\2""#).unwrap()];
    let mut phone = client("10\"01", "x");
    let header = phone.answer(&challenges, false, "INVITE", URI).unwrap();
    let digest =
        response(Algorithm::Md5, &Credential::new("10\"01", REALM, "x"), "n\\\"1", None, "INVITE", URI);
    assert_eq!(
        header,
        format!(
            r#"Digest username="10\"01", realm="acme.test", nonce="n\"1", uri="sip:acme.test", response="{digest}", opaque="o\\2""#
        )
    );
    assert_eq!(phone.next("INVITE", URI), None);
    assert_eq!(
        client("1001", "x").answer(&challenges, false, "INVITE", "sip:a\"b"),
        None,
        "nothing breaks out"
    );
}

/// RFC 7616 §3.4.6: a right digest for another target than the request's. It is no guess of a password.
#[test]
fn a_digest_for_another_target_is_challenged_and_does_not_lock_out() {
    let mut server = Server::new();
    for _ in 0..2 * FAILURES_MAX {
        let challenges = server.challenges(0);
        let elsewhere = "sip:other.test";
        let header = client("1001", "secret").answer(&challenges, false, "REGISTER", elsewhere).unwrap();
        assert_eq!(refusal(server.verify(1, Some(&header))), Refusal::Wrong { reached: None });
    }
    let challenges = server.challenges(2);
    let header =
        client("1001", "secret").answer(&challenges, false, "REGISTER", "sip:192.0.2.9:5060").unwrap();
    assert_eq!(server.verify(2, Some(&header)), accepted());
}
