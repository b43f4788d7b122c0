//! Measures the processor time of the relay's threads per packet: RTP, RTP and SRTP, SRTP with one suite and with two.
//! The rows are measured in turns within one run, so that each can be compared with the first one.
//!
//! `cargo bench -p sidetone-media --bench relay_srtp`; `RELAY_RATE` is in packets a second, `RELAY_SECONDS` the length
//! of a turn. The last row adds 10,000 forged packets a second, and no packet of the calls may be lost.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a program that measures may fail where it measures, reads the clock and prints its figures"
)]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_media::net::{Command, Port, Relay, RelayConfig, RelayIo};
use sidetone_media::session::{Description, Payload, PayloadKind, SessionConfig};
use sidetone_media::srtp::{MasterKey, Outbound, SrtpKeys, Suite};
use sidetone_media::time::ClockRate;
use sidetone_media::webrtc::Protection;

const SHA1_80: Option<Suite> = Some(Suite::AesCm128HmacSha1Tag80);
const GCM: Option<Suite> = Some(Suite::AeadAes128Gcm);

/// The SRTP suites of both sides of a row's calls, and the number of additional forged packets per second.
struct Row {
    name: &'static str,
    suites: [Option<Suite>; 2],
    forged: u32,
}

const ROWS: &[Row] = &[
    Row { name: "RTP to RTP", suites: [None, None], forged: 0 },
    Row { name: "SRTP (AES_CM_128_HMAC_SHA1_80) to RTP and back", suites: [SHA1_80, None], forged: 0 },
    Row { name: "SRTP to SRTP, both AES_CM_128_HMAC_SHA1_80", suites: [SHA1_80, SHA1_80], forged: 0 },
    Row { name: "SRTP to SRTP, both AEAD_AES_128_GCM", suites: [GCM, GCM], forged: 0 },
    Row { name: "SRTP (SHA1_80) to SRTP (GCM)", suites: [SHA1_80, GCM], forged: 0 },
    Row { name: "SRTP (SHA1_80) to RTP, 10,000 forged/s", suites: [SHA1_80, None], forged: 10_000 },
];

/// One party of a call.
struct Party {
    socket: UdpSocket,
    srtp: Option<Outbound>,
    port: Port,
    sequence: u16,
}

/// Calls through a relay of their own.
struct Calls {
    relay: Relay,
    parties: Vec<Party>,
}

impl Calls {
    fn open(suites: [Option<Suite>; 2]) -> Calls {
        let config = RelayConfig {
            bind: LOCALHOST,
            ports: 16_000..=31_999,
            workers: 1,
            io: RelayIo::Epoll,
            session: SessionConfig::default(),
            seed: u64::from(std::process::id()),
        };
        let relay = Relay::start(config, Arc::new(|| {})).unwrap();
        let mut parties = Vec::new();
        for _ in 0..CALLS {
            let pair = suites.map(|suite| Party::open(&relay, suite));
            let [one, other] = pair.each_ref().map(|party| party.port.id);
            relay.command(one, Command::Bridge { peer: other, payload_map: None }).unwrap();
            relay.command(other, Command::Bridge { peer: one, payload_map: None }).unwrap();
            parties.extend(pair);
        }
        Calls { relay, parties }
    }

    /// Sends at the rates for `lasts`; returns the processor time of the relay's threads, and the packets sent and
    /// received.
    fn talk(&mut self, rate: u32, forged: u32, lasts: Duration) -> (Duration, u64, u64) {
        let stranger = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        let (before, began) = (processor_time(), Instant::now());
        let (mut sent, mut received, mut forgeries) = (0_u64, 0_u64, 0_u64);
        let mut buffer = [0; 256];
        loop {
            let elapsed = began.elapsed();
            let is_over = elapsed >= lasts + DRAIN;
            if elapsed < lasts {
                let due = |rate: u32| (elapsed.as_secs_f64() * f64::from(rate)) as u64;
                while sent < due(rate) {
                    let count = self.parties.len();
                    self.parties[sent as usize % count].send();
                    sent += 1;
                }
                while forgeries < due(forged) {
                    // The SRTP side of each call has an even index.
                    let at = forgeries as usize % (self.parties.len() / 2) * 2;
                    let mut noise = [0x5a; 182];
                    noise[..2].copy_from_slice(&[0x80, 0]);
                    stranger.send_to(&noise, self.parties[at].port.rtp).unwrap();
                    forgeries += 1;
                }
            }
            for party in &self.parties {
                while party.socket.recv(&mut buffer).is_ok() {
                    received += 1;
                }
            }
            if is_over {
                return (processor_time() - before, sent, received);
            }
            std::thread::sleep(TURN);
        }
    }
}

impl Party {
    fn open(relay: &Relay, suite: Option<Suite>) -> Party {
        let socket = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = relay.open(0, LOCALHOST).unwrap();
        let srtp = suite.map(|suite| {
            let key = MasterKey::new(suite, &vec![7; suite.key_bytes() + suite.salt_bytes()]).unwrap();
            let keys = SrtpKeys { receive: key.clone(), send: key.clone() };
            relay.command(port.id, Command::Secure(Some(Box::new(Protection::Sdes(keys))))).unwrap();
            Outbound::new(&key)
        });
        let description = describe(socket.local_addr().unwrap());
        relay.command(port.id, Command::Describe(Box::new(description))).unwrap();
        relay.command(port.id, Command::Answered).unwrap();
        Party { socket, srtp, port, sequence: 0 }
    }

    /// Sends the next packet of G.711.
    fn send(&mut self) {
        let mut packet = [0xd5; 172 + 16];
        packet[..2].copy_from_slice(&[0x80, 0]);
        packet[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        packet[4..8].copy_from_slice(&(u32::from(self.sequence) * 160).to_be_bytes());
        packet[8..12].copy_from_slice(&u32::from(self.port.rtp.port()).to_be_bytes());
        let len = match &mut self.srtp {
            Some(srtp) => srtp.protect(&mut packet, 172).unwrap(),
            None => 172,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send_to(&packet[..len], self.port.rtp).unwrap();
    }
}

fn describe(phone: SocketAddr) -> Description {
    let audio = Payload {
        number: 0,
        kind: PayloadKind::Audio,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: Some(8),
        default_ptime_ms: None,
        name: "PCMU".to_owned(),
    };
    Description {
        remote: Some(phone),
        receive: true,
        send: true,
        payloads: vec![audio],
        signalling: Some(LOCALHOST),
        ..Description::default()
    }
}

/// Processor time of the threads whose name begins with `rtp-` (proc(5), `schedstat`).
fn processor_time() -> Duration {
    let mut nanos = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok) {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if read("comm").starts_with("rtp-") {
            nanos += read("schedstat").split(' ').next().unwrap().parse::<u64>().unwrap_or(0);
        }
    }
    Duration::from_nanos(nanos)
}

fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn main() {
    let (rate, seconds) = (setting("RELAY_RATE", 10_000), setting("RELAY_SECONDS", 5));
    let lasts = Duration::from_secs(seconds.into());
    let mut figures: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut lost: BTreeMap<usize, u64> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (place, row) in ROWS.iter().enumerate() {
            let mut calls = Calls::open(row.suites);
            calls.talk(rate, 0, WARM_UP);
            let (processor, sent, received) = calls.talk(rate, row.forged, lasts);
            calls.relay.shutdown();
            let micros = processor.as_secs_f64() * 1e6 / sent as f64;
            figures.entry(place).or_default().push(micros);
            *lost.entry(place).or_default() += sent.saturating_sub(received);
        }
    }
    println!("{CALLS} calls, {rate} packets/s, {ROUNDS} turns of {seconds} s each, the median of the turns");
    println!("| Relay | µs/packet | of RTP | lost |\n|---|---|---|---|");
    let median = |place: usize| {
        let mut turns = figures[&place].clone();
        turns.sort_by(f64::total_cmp);
        turns[turns.len() / 2]
    };
    for (place, row) in ROWS.iter().enumerate() {
        let (micros, base) = (median(place), median(0));
        println!("| {} | {micros:.2} | {:.2} | {} |", row.name, micros / base, lost[&place]);
    }
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const CALLS: usize = 100;
const ROUNDS: usize = 3;
const WARM_UP: Duration = Duration::from_secs(1);
const DRAIN: Duration = Duration::from_millis(200);
const TURN: Duration = Duration::from_micros(500);
