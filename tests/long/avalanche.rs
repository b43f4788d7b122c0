//! A town after a power cut: tens of thousands of phones register at the same time (issue 13, "Avalanche").

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::libc::{in_addr, in_pktinfo};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, sendmsg};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Digest, Message, Response};

use crate::common::records::TempDir;
use crate::long::check::{Checks, note, percentile_ms, seconds, setting, spread_ms};
use crate::long::engine::{Engine, PASSWORD, Start, apply, found, organisation};
use crate::long::office::{Office, address};
use crate::long::sip_text::{Ask, message};
use crate::long::usage::{Sample, Sampler, peak_mib};

/// 50,000 extensions, most of them in homes of ten phones at one address.
#[test]
#[ignore = "long: four minutes"]
fn long_avalanche() {
    avalanche("avalanche", setting("SIDETONE_AVALANCHE_ADDRESSES", 5_000));
}

/// The same town behind fifty NATs of a thousand phones each.
#[test]
#[ignore = "long: four minutes"]
fn long_avalanche_behind_nats() {
    avalanche("avalanche NAT", setting("SIDETONE_AVALANCHE_NATS", 50));
}

fn avalanche(id: &str, addresses: u32) {
    let count: u32 = setting("SIDETONE_AVALANCHE_PHONES", 50_000);
    let spread = seconds("SIDETONE_AVALANCHE_SPREAD_SECONDS", 50);
    let mut checks = Checks::default();
    let dir = TempDir::new();
    let declared = organisation(1, OFFICE, 1_000, 2 * CALLS) + &organisation(2, TOWN, FIRST, count);
    let took = apply(dir.path(), &declared);
    note(format!("apply of {count} extensions: {:.1} s", took.as_secs_f64()));
    let began = Instant::now();
    let engine = Engine::start(dir.path(), &Start::default());
    note(format!("ready after {:.1} s", began.elapsed().as_secs_f64()));
    let office = Office::open(&engine, 50, OFFICE, 1_000, 2 * CALLS);
    office.register();
    office.connect(0..CALLS as usize);

    let before = Sample::of(engine.pid(), Duration::ZERO).unwrap();
    let sampler = Sampler::start(engine.pid());
    let window = office.window();
    let mut town = Town::new(engine.sip, count, addresses, spread);
    town.run();
    let loss = office.loss(&window, 0..CALLS as usize);
    let samples = sampler.stop();

    let waits = town.waits();
    let all = town.registered.iter().flatten().max().copied().unwrap_or_default();
    let figure = format!("{} of {count} in {:.1} s; {:?}", waits.len(), all.as_secs_f64(), town.counts);
    let everyone = waits.len() == count as usize;
    checks.check(&format!("{id} all"), everyone && all <= Duration::from_secs(60), figure, "all within 60 s");
    let longest = percentile_ms(&waits, 1.0);
    checks.check(&format!("{id} wait"), everyone && longest <= 90_000.0, spread_ms(&waits), "none > 90 s");
    let up = office.up(0..CALLS as usize);
    let figure = format!("{up} up, {} of {} packets lost ({:.3} %)", loss.lost, loss.sent, loss.percent());
    let untouched = up == CALLS as usize && loss.percent() <= 0.1;
    checks.check(&format!("{id} live calls"), untouched, figure, "20 up, ≤ 0.1 % lost");
    let bindings =
        found("the bindings", Duration::from_secs(30), || engine.metrics().of("sidetone_sip_bindings", ""));
    let expected = f64::from(count + 2 * CALLS);
    checks.check(&format!("{id} bindings"), bindings == expected, bindings, &expected.to_string());
    let grown = peak_mib(&samples) - before.rss_mib();
    note(format!("{grown:.0} MiB more at the peak, {:.1} KiB a binding", grown * 1024.0 / f64::from(count)));
    checks.end();
}

/// All phones of the town in one thread, each as in RFC 3261 §17.1.2; one socket sends for all addresses.
struct Town {
    engine: SocketAddr,
    socket: UdpSocket,
    port: u16,
    addresses: u32,
    homes: Vec<Home>,
    due: BinaryHeap<Reverse<(Duration, u32, u32)>>,
    began: Instant,
    /// When each phone was registered, and when it first tried.
    registered: Vec<Option<Duration>>,
    first: Vec<Option<Duration>>,
    counts: BTreeMap<String, u64>,
    rng: StdRng,
}

/// One phone.
struct Home {
    client: Option<Client>,
    /// The serial of the pending request; a later request makes the timers of earlier ones void.
    serial: u32,
    /// The value of its `Authorization`.
    authorization: Option<String>,
    sent: Sent,
    interval: Duration,
    failures: u32,
}

/// The state of a phone.
#[derive(Clone, Copy, PartialEq)]
enum Sent {
    Done,
    /// Waits for its first, or next, attempt.
    No,
    /// Pending since then.
    Since(Duration),
}

impl Town {
    fn new(engine: SocketAddr, count: u32, addresses: u32, spread: Duration) -> Town {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_recv_buffer_size(4 << 20).unwrap();
        socket.bind(&SocketAddr::from(([0, 0, 0, 0], 0)).into()).unwrap();
        let socket: UdpSocket = socket.into();
        let mut rng = StdRng::seed_from_u64(7);
        let due = (0..count).map(|phone| Reverse((spread.mul_f64(rng.random::<f64>()), phone, 0))).collect();
        let home = || Home {
            client: None,
            serial: 0,
            authorization: None,
            sent: Sent::No,
            interval: T1,
            failures: 0,
        };
        Town {
            engine,
            port: socket.local_addr().unwrap().port(),
            socket,
            addresses,
            homes: (0..count).map(|_| home()).collect(),
            due,
            began: Instant::now(),
            registered: vec![None; count as usize],
            first: vec![None; count as usize],
            counts: BTreeMap::new(),
            rng,
        }
    }

    /// The time of each registered phone from its first attempt to its registration.
    fn waits(&self) -> Vec<Duration> {
        self.registered
            .iter()
            .zip(&self.first)
            .filter_map(|(done, first)| Some((*done)? - (*first)?))
            .collect()
    }

    fn run(&mut self) {
        let mut buffer = vec![0; 65_535];
        let mut left = self.homes.len();
        while left > 0 && self.began.elapsed() < GIVE_UP {
            while let Some(Reverse((at, phone, serial))) = self.due.peek().copied() {
                if at > self.began.elapsed() {
                    break;
                }
                self.due.pop();
                self.timer(phone, serial);
            }
            let next = self.due.peek().map_or(Duration::from_millis(100), |Reverse((at, ..))| {
                at.saturating_sub(self.began.elapsed()).min(Duration::from_millis(100))
            });
            self.socket.set_nonblocking(false).unwrap();
            self.socket.set_read_timeout(Some(next.max(Duration::from_micros(100)))).unwrap();
            // Waits for one response, then reads the others that have arrived; timers run in between.
            for _ in 0..64 {
                let Ok(length) = self.socket.recv(&mut buffer) else { break };
                self.socket.set_nonblocking(true).unwrap();
                if let Some(Message::Response(response)) = message(&buffer[..length]) {
                    left -= usize::from(self.answered(&response));
                }
            }
        }
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    fn timer(&mut self, phone: u32, serial: u32) {
        let now = self.began.elapsed();
        let home = &mut self.homes[phone as usize];
        if home.serial != serial {
            return;
        }
        match home.sent {
            Sent::Done => {}
            Sent::No => {
                self.first[phone as usize].get_or_insert(now);
                self.begin(phone, None);
            }
            Sent::Since(since) if now - since >= TIMER_F => {
                self.count("timeouts");
                self.fail(phone, None);
            }
            Sent::Since(_) => {
                home.interval = (home.interval * 2).min(T2);
                let again = now + home.interval;
                self.due.push(Reverse((again, phone, serial)));
                self.count("retransmissions");
                self.transmit(phone);
            }
        }
    }

    /// Starts a new transaction.
    fn begin(&mut self, phone: u32, authorization: Option<String>) {
        let now = self.began.elapsed();
        let home = &mut self.homes[phone as usize];
        home.serial += 1;
        home.authorization = authorization;
        home.sent = Sent::Since(now);
        home.interval = T1;
        self.due.push(Reverse((now + T1, phone, home.serial)));
        self.count("requests");
        self.transmit(phone);
    }

    /// Tries again later: after `Retry-After` when the response has one, else with a random back-off as in RFC 5626
    /// §4.5, with the base of a home phone.
    fn fail(&mut self, phone: u32, retry_after: Option<u64>) {
        let now = self.began.elapsed();
        let home = &mut self.homes[phone as usize];
        home.serial += 1;
        home.sent = Sent::No;
        home.failures += 1;
        let whole = retry_after.map_or(BACK_OFF * home.failures, Duration::from_secs);
        let wait = whole.mul_f64(self.rng.random_range(0.5..1.0)) + Duration::from_millis(100);
        let wait = if retry_after.is_some() { whole + wait / 4 } else { wait };
        self.due.push(Reverse((now + wait, phone, home.serial)));
    }

    fn source(&self, phone: u32) -> Ipv4Addr {
        address(80, phone % self.addresses)
    }

    fn transmit(&self, phone: u32) {
        let home = &self.homes[phone as usize];
        let (number, at) = (FIRST + phone, self.source(phone));
        let ask = Ask {
            method: "REGISTER",
            uri: format!("sip:{TOWN}"),
            via: format!("SIP/2.0/UDP {at}:{};rport", self.port),
            branch: format!("z9hG4bK{phone}x{}", home.serial),
            from: format!("<sip:{number}@{TOWN}>;tag={phone}x{}", home.serial),
            to: format!("<sip:{number}@{TOWN}>"),
            call_id: format!("{phone}-town"),
            cseq: home.serial,
            headers: [
                format!("Contact: <sip:{number}@{at}:{}>", self.port),
                "Expires: 3600".to_owned(),
                "User-Agent: Desk Phone 5.1".to_owned(),
                "Allow: INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, NOTIFY, UPDATE".to_owned(),
            ]
            .into_iter()
            .chain(home.authorization.iter().map(|value| format!("Authorization: {value}")))
            .collect(),
            body: String::new(),
        };
        let SocketAddr::V4(to) = self.engine else { panic!("an IPv4 engine") };
        let from = in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: in_addr { s_addr: u32::from(at).to_be() },
            ipi_addr: in_addr { s_addr: 0 },
        };
        let (text, to) = (ask.text(), SockaddrIn::from(to));
        let part = [IoSlice::new(text.as_bytes())];
        let from = [ControlMessage::Ipv4PacketInfo(&from)];
        // A send that the system refuses counts as a lost datagram.
        let _ = sendmsg(self.socket.as_raw_fd(), &part, &from, MsgFlags::MSG_DONTWAIT, Some(&to));
    }

    /// Whether the response registered an unregistered phone.
    fn answered(&mut self, response: &Response) -> bool {
        let Some(phone) = response.call_id().split('-').next().and_then(|text| text.parse::<u32>().ok())
        else {
            return false;
        };
        let serial = response.cseq().map_or(0, |cseq| cseq.number);
        let status = response.status().as_u16();
        let Some(home) = self.homes.get_mut(phone as usize) else { return false };
        if home.serial != serial || !matches!(home.sent, Sent::Since(_)) || status < 200 {
            return false;
        }
        self.count(&status.to_string());
        let home = &mut self.homes[phone as usize];
        match status {
            200 => {
                home.sent = Sent::Done;
                self.registered[phone as usize] = Some(self.began.elapsed());
                return true;
            }
            401 => {
                let challenges: Vec<Digest> = response.www_authenticate().filter_map(Result::ok).collect();
                let client = home.client.get_or_insert_with(|| {
                    let (number, rng) = ((FIRST + phone).to_string(), StdRng::seed_from_u64(phone.into()));
                    Client::new(&number, PASSWORD, Realm::Exactly(TOWN.to_owned()), rng)
                });
                let answer = client.answer(&challenges, false, "REGISTER", &format!("sip:{TOWN}"));
                match answer {
                    Some(answer) => self.begin(phone, Some(answer)),
                    None => self.fail(phone, None),
                }
            }
            _ => {
                let after = response.header("Retry-After").and_then(|text| text.trim().parse().ok());
                self.fail(phone, after);
            }
        }
        false
    }
}

const OFFICE: &str = "office.test";
const TOWN: &str = "town.test";
const FIRST: u32 = 100_000;
const CALLS: u32 = 20;
const T1: Duration = Duration::from_millis(500);
const T2: Duration = Duration::from_secs(4);
const TIMER_F: Duration = Duration::from_secs(32);
/// The base of a phone's back-off.
const BACK_OFF: Duration = Duration::from_secs(15);
/// Longer than any phone may wait.
const GIVE_UP: Duration = Duration::from_secs(200);
