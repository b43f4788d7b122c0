//! Password guessing for one account from one address and from two hundred (catalogue S1).

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Digest, Message};

use crate::common::records::TempDir;
use crate::long::check::{Checks, note, seconds, setting, spread_ms};
use crate::long::engine::{Engine, Start, apply, organisation};
use crate::long::office::{Office, address};
use crate::long::sip_text::{Ask, message};

#[test]
#[ignore = "long: three minutes"]
fn long_s1_guessing() {
    let lasts = seconds("SIDETONE_S1_SECONDS", 60);
    let mut checks = Checks::default();
    for sources in [1, setting("SIDETONE_S1_SOURCES", 200)] {
        let dir = TempDir::new();
        apply(dir.path(), &organisation(1, DOMAIN, 1_000, 4));
        let engine = Engine::start(dir.path(), &Start::default());
        let office = Office::open(&engine, 50, DOMAIN, 1_000, 4);
        let stop = AtomicBool::new(false);
        let (mut guessers, mut owner) = (Vec::new(), (Vec::new(), 0));
        std::thread::scope(|scope| {
            let owner = &mut owner;
            let (office, stop) = (&office, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    match office.phones[0].register() {
                        Some(answer) if answer.status == 200 => owner.0.push(answer.took),
                        _ => owner.1 += 1,
                    }
                    std::thread::sleep(Duration::from_secs(2));
                }
            });
            guessers = guess(engine.sip, sources, lasts);
            stop.store(true, Ordering::Relaxed);
        });
        judge(sources, &guessers, &owner, &engine, lasts, &mut checks);
    }
    checks.end();
}

fn judge(
    sources: u32,
    guessers: &[Guesser],
    owner: &(Vec<Duration>, u32),
    engine: &Engine,
    lasts: Duration,
    checks: &mut Checks,
) {
    let id = format!("S1 {sources} sources");
    let total = |of: fn(&Guesser) -> u64| guessers.iter().map(of).sum::<u64>();
    let (attempts, checked, further) = (
        total(|guesser| guesser.attempts),
        total(|guesser| guesser.checked),
        total(|guesser| guesser.further),
    );
    let checked_further = total(|guesser| guesser.checked_further);
    let mut answers: BTreeMap<u16, u64> = BTreeMap::new();
    for (status, count) in guessers.iter().flat_map(|guesser| &guesser.answers) {
        *answers.entry(*status).or_default() += count;
    }
    note(format!("{id}: answers {answers:?}"));
    let share = 100.0 - checked_further as f64 * 100.0 / further.max(1) as f64;
    let figure =
        format!("{attempts} attempts, {checked} checked; {share:.1} % of {further} behind the tenth not");
    checks.check(&id, further > 0 && share >= 90.0, figure, "≥ 90 % dropped or 403");
    let figure = format!("{}, {} failed", spread_ms(&owner.0), owner.1);
    checks.check(&format!("{id} owner"), owner.1 == 0 && !owner.0.is_empty(), figure, "always registers");
    let log = engine.log();
    let most = guessers
        .iter()
        .map(|guesser| log.lines().filter(|line| names(line, &guesser.address.ip().to_string())).count())
        .max()
        .unwrap_or(0);
    // One line in each second of the attack, and one when the source is blocked.
    let most_allowed = usize::try_from(lasts.as_secs()).unwrap() + 2;
    let logged = log.lines().count();
    let figure = format!("{most} lines of one source in {} s, {logged} lines in all", lasts.as_secs());
    let limit = "≤ 1/s a source, and one that the source is refused";
    checks.check(&format!("{id} log"), most <= most_allowed && logged > 0, figure, limit);
    let alerts = engine.events("security.guessing").map(|events| {
        events.iter().map(|event| event["data"]["limit"].as_str().unwrap_or_default().to_owned()).collect()
    });
    let most = 20 * (lasts.as_secs() / 60 + 1);
    let right = alerts.as_ref().is_ok_and(|limits: &Vec<String>| (1..=most).contains(&(limits.len() as u64)));
    checks.check(&format!("{id} alert"), right, format!("{alerts:?}"), "an event, 20 a minute at most");
    let metrics = engine.metrics();
    let counted: Vec<&str> = ["sidetone_sip_auth", "sidetone_sip_dropped_total"]
        .into_iter()
        .flat_map(|family| metrics.lines(family))
        .collect();
    note(format!("{id}: {counted:?}"));
}

/// Whether a line contains the address, and not a longer one with the same beginning.
fn names(line: &str, address: &str) -> bool {
    line.match_indices(address)
        .any(|(at, _)| !line[at + address.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// One attacking address.
struct Guesser {
    socket: UdpSocket,
    address: SocketAddr,
    client: Client,
    serial: u32,
    /// The `Authorization` of the next REGISTER, which is a guess.
    next: Option<String>,
    attempts: u64,
    /// Guesses answered with 401: the digest was checked.
    checked: u64,
    /// The same for guesses after the tenth.
    further: u64,
    checked_further: u64,
    answers: BTreeMap<u16, u64>,
}

/// Sends a hundred guesses a second in total.
fn guess(engine: SocketAddr, sources: u32, lasts: Duration) -> Vec<Guesser> {
    let mut guessers: Vec<Guesser> = (0..sources).map(Guesser::new).collect();
    let rate: u32 = setting("SIDETONE_S1_PER_SECOND", 100);
    let began = Instant::now();
    for turn in 0_u32.. {
        let due = began + Duration::from_secs(1) / rate * turn;
        if began.elapsed() >= lasts {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let at = (turn % sources) as usize;
        guessers[at].hear();
        guessers[at].attempt(engine);
    }
    std::thread::sleep(Duration::from_secs(1));
    guessers.iter_mut().for_each(Guesser::hear);
    guessers
}

impl Guesser {
    fn new(index: u32) -> Guesser {
        let socket = UdpSocket::bind((address(70, index), 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        Guesser {
            address: socket.local_addr().unwrap(),
            socket,
            client: wrong(index.into()),
            serial: 0,
            next: None,
            attempts: 0,
            checked: 0,
            further: 0,
            checked_further: 0,
            answers: BTreeMap::new(),
        }
    }

    /// Sends a guess, or a request for a challenge when there is none.
    fn attempt(&mut self, engine: SocketAddr) {
        self.serial += 1;
        let unique = format!("{}x{}", self.address.ip().to_string().replace('.', "-"), self.serial);
        if self.next.is_some() {
            self.attempts += 1;
            self.further += u64::from(self.attempts > 10);
        }
        let guess = if self.next.is_some() { "g" } else { "c" };
        let ask = Ask {
            method: "REGISTER",
            uri: format!("sip:{DOMAIN}"),
            via: format!("SIP/2.0/UDP {};rport", self.address),
            branch: format!("z9hG4bK{unique}"),
            from: format!("<sip:1000@{DOMAIN}>;tag={unique}"),
            to: format!("<sip:1000@{DOMAIN}>"),
            call_id: format!("{guess}{unique}x{}", self.attempts),
            cseq: self.serial,
            headers: std::iter::once(format!("Contact: <sip:1000@{}>", self.address))
                .chain(self.next.as_ref().map(|value| format!("Authorization: {value}")))
                .collect(),
            body: String::new(),
        };
        // A lost guess counts as a guess.
        let _ = self.socket.send_to(ask.text().as_bytes(), engine);
        // The next guess is another password with the same nonce, while there is one.
        self.next = self.next.is_some().then(|| self.client.next("REGISTER", &ask.uri)).flatten();
    }

    fn hear(&mut self) {
        let mut buffer = [0; 4_096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let Some(Message::Response(response)) = message(&buffer[..length]) else { continue };
            let status = response.status().as_u16();
            *self.answers.entry(status).or_default() += 1;
            let number: u64 =
                response.call_id().rsplit('x').next().and_then(|text| text.parse().ok()).unwrap_or(0);
            let was_guess = response.call_id().starts_with('g');
            if status == 401 {
                self.checked += u64::from(was_guess);
                self.checked_further += u64::from(was_guess && number > 10);
                let challenges: Vec<Digest> = response.www_authenticate().filter_map(Result::ok).collect();
                self.client = wrong(self.attempts << 32 | u64::from(self.serial));
                let uri = format!("sip:{DOMAIN}");
                self.next = self.client.answer(&challenges, false, "REGISTER", &uri);
            }
        }
    }
}

/// A client with a wrong password.
fn wrong(seed: u64) -> Client {
    let realm = Realm::Exactly(DOMAIN.to_owned());
    Client::new("1000", &format!("guess{seed}"), realm, StdRng::seed_from_u64(seed))
}

const DOMAIN: &str = "load.test";
