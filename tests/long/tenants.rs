//! One organisation that calls far beyond its limit beside one with normal traffic (catalogue T3).

use std::collections::{BTreeMap, HashSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Digest, Message, Response};

use crate::common::records::TempDir;
use crate::long::check::{Checks, percentile_ms, seconds, setting, spread_ms};
use crate::long::engine::{Engine, PASSWORD, Start, apply, organisation};
use crate::long::office::{Office, address};
use crate::long::sip_text::{Ask, message, sdp};

/// A tenant limited to ten concurrent external calls requests 500 a second; another places five a second.
#[test]
#[ignore = "long: one minute"]
fn long_t3_one_tenant_over_its_limit() {
    let lasts = seconds("SIDETONE_T3_SECONDS", 60);
    let rate: u32 = setting("SIDETONE_T3_PER_SECOND", 500);
    let mut checks = Checks::default();
    // A carrier that never answers: its calls ring until the caller gives up.
    let carrier = UdpSocket::bind("127.99.0.1:0").unwrap();
    let dir = TempDir::new();
    let greedy = organisation(1, GREEDY, 1_000, LINES).replacen(
        "currency = \"EUR\"\n",
        "currency = \"EUR\"\nmax_outbound_calls = 10\n",
        1,
    );
    let declared = format!(
        "{greedy}[[organisations.numbers]]\nnumber = \"+442071230000\"\ndestination = {{ extension = \"1000\" }}\n{}\
         [[trunks]]\nname = \"carrier\"\naddress = \"sip:{}\"\n",
        organisation(2, VICTIM, 2_000, 2 * PAIRS),
        carrier.local_addr().unwrap()
    );
    apply(dir.path(), &declared);
    let engine = Engine::start(dir.path(), &Start::default());
    let office = Office::open(&engine, 50, VICTIM, 2_000, 2 * PAIRS);
    office.register();
    let (stop, victim) = (AtomicBool::new(false), Mutex::new((Vec::new(), Vec::new())));
    let mut answers = (0, BTreeMap::new());
    std::thread::scope(|scope| {
        let (office, stop, victim) = (&office, &stop, &victim);
        for pair in 0..PAIRS as usize {
            scope.spawn(move || call_every_second(office, pair, stop, victim));
        }
        answers = insist(engine.sip, rate, lasts);
        stop.store(true, Ordering::Relaxed);
    });

    let (took, failed) = victim.into_inner().unwrap();
    let figure = format!("{}, failed {} {:?}", spread_ms(&took), failed.len(), failed.iter().max());
    checks.check("T3 victim", failed.is_empty() && !took.is_empty(), &figure, "100 % of its calls");
    checks.check("T3 victim PDD", percentile_ms(&took, 0.99) < 200.0, figure, "p99 < 200 ms");
    let (sent, answers) = answers;
    let per_second = f64::from(sent) / lasts.as_secs_f64();
    let refused: u64 = answers.iter().filter(|(status, _)| **status >= 402).map(|(_, count)| count).sum();
    let figure = format!("{sent} INVITEs at {per_second:.0}/s, answers {answers:?}");
    checks.check("T3 flooder", refused > 0 && !answers.contains_key(&200), figure, "503 or 429-equivalent");
    checks.end();
}

/// A call each second, with the time until it was answered.
fn call_every_second(
    office: &Office,
    pair: usize,
    stop: &AtomicBool,
    victim: &Mutex<(Vec<Duration>, Vec<String>)>,
) {
    let [caller, callee] = [0, 1].map(|side| &office.phones[2 * pair + side]);
    std::thread::sleep(Duration::from_millis(200) * u32::try_from(pair).unwrap());
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = caller.call(&callee.number);
        match &answer {
            Some(answer) if answer.status == 200 => victim.lock().unwrap().0.push(answer.took),
            other => victim.lock().unwrap().1.push(format!("{other:?}")),
        }
        if caller.is_up() && caller.bye().is_none_or(|answer| answer.status != 200) {
            victim.lock().unwrap().1.push("BYE".to_owned());
        }
        std::thread::sleep(Duration::from_secs(1).saturating_sub(began.elapsed()));
    }
}

/// One line of the greedy tenant, on its own address.
struct Line {
    socket: UdpSocket,
    at: SocketAddr,
    number: String,
    client: Client,
    serial: u32,
    pending: BTreeMap<String, Ask>,
    /// Branches whose response was counted; later responses are retransmissions.
    answered: HashSet<String>,
}

/// Sends INVITEs with valid credentials, and acknowledges the responses; returns how many, and the responses except
/// challenges.
fn insist(engine: SocketAddr, rate: u32, lasts: Duration) -> (u32, BTreeMap<u16, u64>) {
    let mut lines: Vec<Line> = (0..LINES).map(Line::new).collect();
    let mut answers = BTreeMap::new();
    for line in &mut lines {
        line.invite(engine, None);
    }
    std::thread::sleep(Duration::from_millis(500));
    let (began, mut sent) = (Instant::now(), 0);
    for turn in 0_u32.. {
        if began.elapsed() >= lasts {
            break;
        }
        let due = began + Duration::from_secs(1) / rate * turn;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let line = &mut lines[(turn % LINES) as usize];
        line.hear(engine, &mut answers);
        let uri = format!("sip:{NUMBER}@{GREEDY}");
        let credentials = line.client.next("INVITE", &uri);
        line.invite(engine, credentials);
        sent += 1;
    }
    (sent, answers)
}

impl Line {
    fn new(index: u32) -> Line {
        let socket = UdpSocket::bind((address(72, index), 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let number = (1_000 + index).to_string();
        let realm = Realm::Exactly(GREEDY.to_owned());
        Line {
            at: socket.local_addr().unwrap(),
            socket,
            client: Client::new(&number, PASSWORD, realm, StdRng::seed_from_u64(index.into())),
            number,
            serial: 0,
            pending: BTreeMap::new(),
            answered: HashSet::new(),
        }
    }

    fn invite(&mut self, engine: SocketAddr, credentials: Option<String>) {
        self.serial += 1;
        let unique = format!("{}x{}", self.number, self.serial);
        let uri = format!("sip:{NUMBER}@{GREEDY}");
        let ask = Ask {
            method: "INVITE",
            via: format!("SIP/2.0/UDP {};rport", self.at),
            branch: format!("z9hG4bK{unique}"),
            from: format!("<sip:{}@{GREEDY}>;tag={unique}", self.number),
            to: format!("<{uri}>"),
            uri,
            call_id: unique,
            cseq: 1,
            headers: std::iter::once(format!("Contact: <sip:{}@{}>", self.number, self.at))
                .chain(credentials.map(|value| format!("Authorization: {value}")))
                .collect(),
            body: sdp(self.at, 1),
        };
        // A lost INVITE of a flood is not repeated.
        let _ = self.socket.send_to(ask.text().as_bytes(), engine);
        self.pending.insert(ask.branch.clone(), ask);
        while self.pending.len() > 4_096 {
            self.pending.pop_first();
        }
    }

    fn hear(&mut self, engine: SocketAddr, answers: &mut BTreeMap<u16, u64>) {
        let mut buffer = [0; 4_096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            if let Some(Message::Response(response)) = message(&buffer[..length]) {
                self.answered(engine, &response, answers);
            }
        }
    }

    fn answered(&mut self, engine: SocketAddr, response: &Response, answers: &mut BTreeMap<u16, u64>) {
        let status = response.status().as_u16();
        let branch =
            response.via_top().ok().and_then(|via| via.branch().map(str::to_owned)).unwrap_or_default();
        if status < 200 {
            return;
        }
        let Some(ask) = self.pending.get(&branch) else { return };
        let to = response.header("To").unwrap_or_default().to_owned();
        let ack = Ask { method: "ACK", to, headers: Vec::new(), body: String::new(), ..ask.clone() };
        // A lost one is sent again.
        let _ = self.socket.send_to(ack.text().as_bytes(), engine);
        if !self.answered.insert(branch) {
            return;
        }
        if status == 401 {
            let challenges: Vec<Digest> = response.www_authenticate().filter_map(Result::ok).collect();
            let uri = format!("sip:{NUMBER}@{GREEDY}");
            let credentials = self.client.answer(&challenges, false, "INVITE", &uri);
            self.invite(engine, credentials);
        } else {
            *answers.entry(status).or_default() += 1;
        }
    }
}

const GREEDY: &str = "greedy.test";
const VICTIM: &str = "victim.test";
const NUMBER: &str = "+447700900123";
/// Lines of the greedy tenant.
const LINES: u32 = 10;
/// Each pair of the other tenant places a call a second.
const PAIRS: u32 = 5;
