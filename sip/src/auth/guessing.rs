//! Tests of password guessing: one source at many accounts, many sources at one account, accounts of another
//! tenant.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::message::Digest;

const OURS: &str = "acme.test";
const THEIRS: &str = "other.test";
const PASSWORD: &str = "correct horse";

struct Server {
    authenticator: Authenticator,
    start: Instant,
    /// Digests computed so far.
    checked: usize,
}

impl Server {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
        let start = Instant::now();
        Server { authenticator: Authenticator::new([7; SECRET_BYTES], start), start, checked: 0 }
    }

    fn verify(&mut self, at: Duration, realm: &str, source: IpAddr, header: Option<&str>) -> Decision {
        let headers: Vec<Digest> = header.into_iter().map(|text| Digest::parse(text).unwrap()).collect();
        let attempt = Attempt { headers: &headers, method: "REGISTER", uri: "", request: "1", realm, source };
        let known =
            |username: &str| (username.len() == 4).then(|| Credential::new(username, realm, PASSWORD));
        let decision = self.authenticator.verify(self.start + at, attempt, known);
        let is_checked = matches!(
            decision,
            Decision::Accepted { .. } | Decision::Challenge { refusal: Refusal::Wrong { .. }, .. }
        );
        self.checked += usize::from(is_checked);
        decision
    }

    /// One attempt like that of a phone: challenged, then answered.
    fn attempt(
        &mut self,
        at: Duration,
        (realm, account): (&str, &str),
        source: IpAddr,
        password: &str,
    ) -> Decision {
        let Decision::Challenge { challenges, .. } = self.verify(at, realm, source, None) else {
            panic!("a request without credentials is challenged")
        };
        let challenges: Vec<Digest> = challenges.iter().map(|text| Digest::parse(text).unwrap()).collect();
        let mut client =
            Client::new(account, password, Realm::Exactly(realm.to_owned()), StdRng::seed_from_u64(1));
        let header = client.answer(&challenges, false, "REGISTER", "sip:x").unwrap();
        self.verify(at, realm, source, Some(&header))
    }
}

fn v4(last: u32) -> IpAddr {
    IpAddr::V4((0xC000_0200 + last).into())
}

fn is_accepted(decision: &Decision) -> bool {
    matches!(decision, Decision::Accepted { .. })
}

#[test]
fn wrong_passwords_at_one_tenant_close_nothing_at_another() {
    let mut server = Server::new();
    for _ in 0..FAILURES_MAX {
        server.attempt(Duration::ZERO, (THEIRS, "1001"), v4(1), "a guess");
    }
    let theirs = server.attempt(Duration::ZERO, (THEIRS, "1001"), v4(1), PASSWORD);
    assert!(matches!(theirs, Decision::Limited { .. }), "{theirs:?}");
    let ours = server.attempt(Duration::ZERO, (OURS, "1001"), v4(1), PASSWORD);
    assert!(is_accepted(&ours), "{ours:?}");
}

#[test]
fn a_closed_account_says_nothing_of_whether_it_is_there() {
    let mut server = Server::new();
    let mut closed = |account: &str| {
        for _ in 0..FAILURES_MAX {
            server.attempt(Duration::ZERO, (OURS, account), v4(1), "a guess");
        }
        server.attempt(Duration::from_secs(20), (OURS, account), v4(1), PASSWORD)
    };
    // Four-digit names are accounts.
    for account in ["1001", "10017"] {
        let retry_after = WINDOW - Duration::from_secs(20);
        assert_eq!(closed(account), Decision::Limited { retry_after, username: account.to_owned() });
    }
}

#[test]
fn a_source_that_tries_many_accounts_once_each_is_stopped() {
    let mut server = Server::new();
    for account in 1_000..1_300 {
        server.attempt(Duration::ZERO, (OURS, &account.to_string()), v4(1), "a guess");
    }
    assert_eq!(server.checked, SOURCE_FAILURES_MAX as usize);
    let elsewhere = server.attempt(Duration::ZERO, (OURS, "1299"), v4(2), PASSWORD);
    assert!(is_accepted(&elsewhere), "{elsewhere:?}");
    let later = server.attempt(WINDOW, (OURS, "1299"), v4(1), PASSWORD);
    assert!(is_accepted(&later), "{later:?}");
}

#[test]
fn the_addresses_of_one_ipv6_subnet_are_one_source() {
    let mut server = Server::new();
    for host in 0..300_u128 {
        let source = Ipv6Addr::from_bits((0x2a00_1450_0000_0001_u128 << 64) + host);
        server.attempt(Duration::ZERO, (OURS, "1001"), source.into(), "a guess");
    }
    assert_eq!(server.checked, FAILURES_MAX as usize);
}

/// S1: 200 sources, 100 attempts per second for a minute.
#[test]
fn s1_two_hundred_sources_at_one_account_get_few_guesses_and_its_phone_registers() {
    let mut server = Server::new();
    let mut at = Duration::ZERO;
    for attempt in 0..6_000 {
        at = Duration::from_millis(10 * attempt);
        let source = v4(10 + u32::try_from(attempt % 200).unwrap());
        server.attempt(at, (OURS, "1001"), source, "a guess");
    }
    let refused = 6_000 - server.checked;
    println!("S1: 6000 attempts from 200 sources, {} digests checked, {refused} refused", server.checked);
    assert!(refused * 10 >= 6_000 * 9, "{refused} of 6000 refused");
    let owner = server.attempt(at, (OURS, "1001"), v4(1), PASSWORD);
    assert!(is_accepted(&owner), "{owner:?}");
}
