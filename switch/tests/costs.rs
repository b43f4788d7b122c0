//! Cost of a call and of a registration in the switch: allocations and bytes, counted in simulated time.
//!
//! The peers are texts whose own memory is not counted. A datagram is one allocation, as in the transport.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]
#![allow(clippy::panic, reason = "a test fails by it")]

use std::alloc::System;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::{
    Destination, DirectorySnapshot, Extension, Ha1, Network, Number, Numbering, Organisation, Secret, Srtp,
    Trunk, Video,
};
use sidetone_model::forwarding::Forwarding;
use sidetone_model::ids::NodeId;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk_interop::TrunkInterop;
use sidetone_sip::admission::{AdmissionConfig, Rate};
use sidetone_sip::auth::{Algorithm, Authenticator, Client, Credential, Realm};
use sidetone_sip::dialog::{MIN_SE_S, SessionTimerConfig};
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Digest, Host};
use sidetone_sip::transaction::{LayerConfig, Local};
use sidetone_sip::ua::{Ua, UaConfig};
use sidetone_switch::carriers::AddressPolicy;
use sidetone_switch::conference::RoomsConfig;
use sidetone_switch::io::{Limits, MediaCommand, Port, PortId, Reach};
use sidetone_switch::machine::{Input, Now, Output, Switch, SwitchConfig};
use sidetone_switch::routing::Directory;
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};
use uuid::Uuid;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// Only one test here, because the counter counts all threads of this binary.
#[test]
fn calls_and_registrations_cost_what_they_did() {
    let mut bench = Bench::new();

    // Before the count starts, the tables have their final size and the phone is registered.
    for _ in 0..WARM_UP {
        bench.register();
    }
    bench.cost = Cost::default();
    for _ in 0..ROUNDS {
        bench.register();
    }
    let registration = bench.cost.per(ROUNDS);

    for _ in 0..WARM_UP {
        let call = bench.begin_call();
        bench.end_call(&call);
    }
    bench.cost = Cost::default();
    for _ in 0..ROUNDS {
        let call = bench.begin_call();
        bench.end_call(&call);
    }
    let call = bench.cost.per(ROUNDS);
    assert_eq!(bench.ended, WARM_UP + ROUNDS);

    // Wait until every transaction of the calls' start has ended.
    bench.wait(Duration::from_secs(60));
    let before = bench.cost.live_bytes;
    let standing: Vec<Standing> = (0..STANDING).map(|_| bench.begin_call()).collect();
    let young_bytes = (bench.cost.live_bytes - before) / STANDING as i64;
    bench.wait(Duration::from_secs(60));
    assert_eq!(bench.switch.live_calls(), STANDING);
    let standing_bytes = (bench.cost.live_bytes - before) / STANDING as i64;
    standing.iter().for_each(|call| bench.end_call(call));
    bench.wait(Duration::from_secs(60));
    assert_eq!((bench.switch.live_calls(), bench.switch.legs()), (0, 0));
    // A probe is sent every 25 s, and its transaction lasts for 5 s.
    let is_quiet = |bench: &mut Bench| {
        bench.wait(Duration::from_secs(6));
        bench.switch.transactions() == (0, 0)
    };
    assert!((0..4).any(|_| is_quiet(&mut bench)), "{:?}", bench.switch.transactions());

    let found = format!(
        "a registration: {registration}; a call: {call}; a standing call: {standing_bytes} bytes, {young_bytes} \
         in its first seconds"
    );
    println!("{found}");
    assert!(registration.allocations <= REGISTRATION_ALLOCATIONS_MAX, "{found}");
    assert!(call.allocations <= CALL_ALLOCATIONS_MAX, "{found}");
    assert!(standing_bytes <= STANDING_BYTES_MAX, "{found}");
    assert!(young_bytes <= YOUNG_BYTES_MAX, "{found}");
}

/// Allocations of a registration: the REGISTER without credentials, its challenge, the REGISTER with them, and the
/// 200. It was 429.
const REGISTRATION_ALLOCATIONS_MAX: u64 = 100;
/// Allocations of a call from a trunk to a phone: the messages of both legs, its events and its record. It was 1,047.
/// Ten of them are the User-Agents and networks of both legs, in the record at the answer and at the end.
const CALL_ALLOCATIONS_MAX: u64 = 430;
/// Memory of a call that has been up for a minute, in the switch, with its share of the tables; docs/memory.md. It was
/// 22,523 bytes. Each of the two legs uses 24 bytes of it for reliable responses and for an offer in UPDATE, and 24
/// bytes for video that it does not have; another 8 are for a host name in `c=` and for an answer that is repeated.
/// The call uses 104 for the owners of its ports, the deadline of an open offer and the number that it was forwarded to.
const STANDING_BYTES_MAX: i64 = 12_780;
/// The same in its first seconds, while its transactions can still be repeated.
const YOUNG_BYTES_MAX: i64 = 12_780;
const WARM_UP: usize = 64;
const ROUNDS: usize = 256;
const STANDING: usize = 400;

/// The work of the switch since the last reset, and its memory since the start.
#[derive(Clone, Copy, Default)]
struct Cost {
    allocations: u64,
    bytes: u64,
    live_bytes: i64,
}

/// The mean of several rounds.
struct Mean {
    allocations: u64,
    bytes: u64,
}

impl Cost {
    fn add(&mut self, before: Stats, after: Stats) {
        let calls = |stats: Stats| stats.allocations as u64 + stats.reallocations as u64;
        let live = |stats: Stats| stats.bytes_allocated as i64 - stats.bytes_deallocated as i64;
        self.allocations += calls(after) - calls(before);
        self.bytes += (after.bytes_allocated - before.bytes_allocated) as u64;
        self.live_bytes += live(after) - live(before);
    }

    fn per(&self, rounds: usize) -> Mean {
        Mean { allocations: self.allocations / rounds as u64, bytes: self.bytes / rounds as u64 }
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} allocations of {} bytes together", self.allocations, self.bytes)
    }
}

/// The switch between a carrier and a phone.
struct Bench {
    switch: Switch,
    start: Instant,
    now: Instant,
    cost: Cost,
    /// The bytes that the switch sent in the last step; reserved, so that they are not counted.
    wire: Vec<u8>,
    sent: Vec<(SocketAddr, std::ops::Range<usize>)>,
    ports: u64,
    serial: u64,
    ended: usize,
    login: Client,
}

/// The identifiers of a call that is up.
struct Standing {
    serial: u64,
    to: String,
    target: String,
}

impl Bench {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    fn new() -> Self {
        let start = Instant::now();
        let mut rng = StdRng::seed_from_u64(1);
        let at: SocketAddr = SWITCH.parse().unwrap();
        let IpAddr::V4(ip) = at.ip() else { panic!("{at}") };
        let layer = LayerConfig::new(Local::fixed(Host::V4(ip), Some(at.port())));
        let session_timer = Some(SessionTimerConfig { expires_s: 1_800, min_se_s: MIN_SE_S });
        let ua = UaConfig { session_timer, ..UaConfig::new(layer) };
        let admission =
            AdmissionConfig { per_source: Rate::new(100_000, 100_000), strangers_per_second: 100_000 };
        let config = SwitchConfig {
            node: NodeId(Uuid::nil()),
            limits: Limits { silence: None, ..Limits::default() },
            calls_max: 2 * STANDING,
            media_ports: 5 * STANDING,
            md5_only: Vec::new(),
            reach: Reach::new(|_, to| Ok(Flow::udp(ListenerId(0), to))),
            // A probe in progress would be counted with the call.
            qualify: None,
            trunk_addresses: AddressPolicy::default(),
            credit_warning: Duration::from_secs(10),
            rooms: RoomsConfig::default(),
            media_workers: 4,
            admission,
            nodes: None,
            shares_limits: false,
            epoch: start,
        };
        let switch = Switch::new(
            config,
            Ua::new(ua, StdRng::from_rng(&mut rng)),
            Authenticator::new([7; 32], start),
            Arc::new(Directory::new(directory())),
            StdRng::from_rng(&mut rng),
        );
        let mut bench = Bench {
            switch,
            start,
            now: start,
            cost: Cost::default(),
            wire: Vec::with_capacity(1 << 20),
            sent: Vec::with_capacity(1 << 12),
            ports: 0,
            serial: 0,
            ended: 0,
            login: Client::new(
                "1001",
                PASSWORD,
                Realm::Exactly("acme.test".into()),
                StdRng::from_rng(&mut rng),
            ),
        };
        bench.feed(Input::Begin);
        bench
    }

    /// The phone registers: once without credentials, then with them.
    fn register(&mut self) {
        self.serial += 1;
        let first = register(self.serial, 1, "");
        let challenges = self.exchange(PHONE, &first);
        let challenges: Vec<Digest> = challenges[0]
            .lines()
            .filter_map(|line| Digest::parse(line.strip_prefix("WWW-Authenticate: ")?).ok())
            .collect();
        let answer = self.login.answer(&challenges, false, "REGISTER", "sip:acme.test").unwrap();
        let second = register(self.serial, 2, &format!("Authorization: {answer}\r\n"));
        let answers = self.exchange(PHONE, &second);
        assert!(answers.len() == 1 && answers[0].starts_with("SIP/2.0 200 "), "{answers:?}");
        // Slow enough for the limit of one phone.
        self.wait(Duration::from_millis(100));
    }

    /// The carrier calls the phone, which rings and answers.
    fn begin_call(&mut self) -> Standing {
        self.serial += 1;
        let serial = self.serial;
        let sent = self.exchange(CARRIER, &from_carrier("INVITE", serial, "", 1, TO, SDP));
        let [invite] = sent.as_slice() else { panic!("{sent:?}") };
        assert!(self.exchange(PHONE, &reply(invite, 100, "Trying", "")).is_empty());
        let ringing = self.exchange(PHONE, &reply(invite, 180, "Ringing", ""));
        assert!(ringing.len() == 1 && ringing[0].starts_with("SIP/2.0 180 "), "{ringing:?}");
        let answered = self.exchange(PHONE, &reply(invite, 200, "OK", SDP));
        let [ack, answer] = answered.as_slice() else { panic!("{answered:?}") };
        assert!(ack.starts_with("ACK ") && answer.starts_with("SIP/2.0 200 "), "{answered:?}");
        let to = header(answer, "To").to_owned();
        let target = header(answer, "Contact").trim_matches(['<', '>']).to_owned();
        assert!(self.exchange(CARRIER, &from_carrier("ACK", serial, &target, 1, &to, "")).is_empty());
        self.wait(Duration::from_millis(10));
        Standing { serial, to, target }
    }

    /// The carrier hangs up.
    fn end_call(&mut self, call: &Standing) {
        let sent = self.exchange(CARRIER, &from_carrier("BYE", call.serial, &call.target, 2, &call.to, ""));
        let bye = sent.iter().find(|text| text.starts_with("BYE ")).unwrap();
        assert!(sent.iter().any(|text| text.starts_with("SIP/2.0 200 ")), "{sent:?}");
        assert!(self.exchange(PHONE, &reply(bye, 200, "OK", "")).is_empty());
        self.wait(Duration::from_millis(10));
    }

    fn wait(&mut self, wait: Duration) {
        let until = self.now + wait;
        while let Some(due) = self.switch.next_timeout().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.feed(Input::Timeout);
            self.answer_probes();
        }
        self.now = until;
    }

    /// The phone answers the probes of its registration; their allocations do not count for a call.
    fn answer_probes(&mut self) {
        let texts =
            self.sent.iter().map(|(_, range)| String::from_utf8(self.wire[range.clone()].to_vec()).unwrap());
        let probes: Vec<String> = texts.filter(|text| text.starts_with("OPTIONS ")).collect();
        for probe in probes {
            let allocations = self.cost.allocations;
            self.exchange(PHONE, &reply(&probe, 200, "OK", ""));
            self.cost.allocations = allocations;
        }
    }

    /// Delivers a datagram; returns the messages that the switch sends.
    fn exchange(&mut self, from: &str, text: &str) -> Vec<String> {
        let flow = Flow::udp(ListenerId(0), from.parse().unwrap());
        let before = ALLOCATOR.stats();
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let admitted = self.switch.admit(self.now, &flow, &bytes);
        self.cost.add(before, ALLOCATOR.stats());
        assert!(admitted.is_ok(), "{admitted:?}: {text}");
        self.feed(Input::Datagram { flow, bytes });
        let texts =
            self.sent.iter().map(|(_, range)| String::from_utf8(self.wire[range.clone()].to_vec()).unwrap());
        texts.collect()
    }

    /// Feeds an input, carries out the outputs, and counts the cost.
    fn feed(&mut self, input: Input) {
        self.wire.clear();
        self.sent.clear();
        let before = ALLOCATOR.stats();
        self.switch.handle_input(self.clock(), input);
        while let Some(output) = self.switch.poll_output() {
            match output {
                Output::Answered(call, record) => {
                    drop(record);
                    self.switch.handle_input(self.clock(), Input::Journalled(call));
                }
                Output::Ended(_) => self.ended += 1,
                Output::Media(port, MediaCommand::Close) => {
                    self.switch.handle_input(self.clock(), Input::Report(port, Box::default()));
                }
                Output::OpenPort { leg, .. } => {
                    self.ports += 1;
                    let number = u16::try_from(20_000 + self.ports * 2 % 40_000).unwrap();
                    let advertised = SocketAddr::new("198.51.100.1".parse().unwrap(), number);
                    let port = Some(Port { id: PortId(self.ports), advertised, video: None });
                    self.switch.handle_input(self.clock(), Input::PortOpened(leg, port));
                }
                Output::Transmit { flow, bytes, .. } => {
                    let start = self.wire.len();
                    self.wire.extend_from_slice(&bytes);
                    self.sent.push((flow.remote, start..self.wire.len()));
                }
                _ => {}
            }
        }
        self.cost.add(before, ALLOCATOR.stats());
    }

    fn clock(&self) -> Now {
        let micros = i64::try_from((self.now - self.start).as_micros()).unwrap();
        Now { instant: self.now, wall: Timestamp::from_micros(micros) }
    }
}

fn register(serial: u64, cseq: u32, authorization: &str) -> String {
    format!(
        "REGISTER sip:acme.test SIP/2.0\r\n\
         Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKr{serial}-{cseq};rport\r\nMax-Forwards: 70\r\n\
         From: <sip:1001@acme.test>;tag=r{serial}\r\nTo: <sip:1001@acme.test>\r\nCall-ID: r{serial}@192.0.2.1\r\n\
         CSeq: {cseq} REGISTER\r\nContact: <sip:1001@192.0.2.1:5060;line=1>;+sip.instance=\"<urn:uuid:1>\"\r\n\
         Expires: 600\r\nUser-Agent: Phone 1.0\r\nAllow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE\r\n\
         Supported: path, outbound\r\n{authorization}Content-Length: 0\r\n\r\n"
    )
}

fn from_carrier(method: &str, serial: u64, target: &str, cseq: u32, to: &str, sdp: &str) -> String {
    let target = if target.is_empty() { "sip:+442071230000@198.51.100.1:5060" } else { target };
    let kind = if sdp.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    format!(
        "{method} {target} SIP/2.0\r\n\
         Via: SIP/2.0/UDP {CARRIER};branch=z9hG4bKc{serial}-{method};rport\r\nMax-Forwards: 70\r\n\
         From: \"A Caller\" <sip:+441632960000@203.0.113.1>;tag=c{serial}\r\nTo: {to}\r\n\
         Call-ID: c{serial}@203.0.113.1\r\nCSeq: {cseq} {method}\r\nContact: <sip:carrier@{CARRIER}>\r\n\
         Allow: INVITE, ACK, CANCEL, BYE, OPTIONS\r\nUser-Agent: Carrier 1.0\r\n{kind}\
         Content-Length: {}\r\n\r\n{sdp}",
        sdp.len()
    )
}

fn reply(request: &str, status: u16, reason: &str, sdp: &str) -> String {
    let kind = if sdp.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    let to = header(request, "To");
    let tag = if to.contains(";tag=") { "" } else { ";tag=phone" };
    format!(
        "SIP/2.0 {status} {reason}\r\nVia: {}\r\nFrom: {}\r\nTo: {to}{tag}\r\nCall-ID: {}\r\nCSeq: {}\r\n\
         Contact: <sip:1001@{PHONE};line=1>\r\nUser-Agent: Phone 1.0\r\n{kind}Content-Length: {}\r\n\r\n{sdp}",
        header(request, "Via"),
        header(request, "From"),
        header(request, "Call-ID"),
        header(request, "CSeq"),
        sdp.len()
    )
}

fn header<'a>(text: &'a str, name: &str) -> &'a str {
    let line = |line: &'a str| line.strip_prefix(name)?.strip_prefix(": ");
    text.split("\r\n").find_map(line).unwrap()
}

/// An organisation with one phone and its number, and a trunk.
fn directory() -> DirectorySnapshot {
    let id = Uuid::from_u128;
    let credential = Credential::new("1001", "acme.test", PASSWORD);
    DirectorySnapshot {
        revision: 1,
        organisations: vec![Organisation {
            id: id(1).into(),
            name: "Acme".into(),
            sip_domain: "acme.test".into(),
            currency: "EUR".parse().unwrap(),
            numbering: Numbering { country_code: Some("44".into()), ..Numbering::default() },
            max_outbound_calls: None,
            max_call_seconds: None,
            language: Default::default(),
            star_codes: true,
        }],
        extensions: vec![Extension {
            id: id(11).into(),
            organisation_id: id(1).into(),
            agent_id: None,
            team_id: None,
            number: "1001".into(),
            name: "Ada".into(),
            ha1: Ha1 {
                md5: credential.ha1(Algorithm::Md5).to_owned(),
                sha256: credential.ha1(Algorithm::Sha256).to_owned(),
            },
            codecs: Vec::new(),
            strict_source: None,
            srtp: Srtp::Off,
            video: Video::Off,
            forwarding: Forwarding::default(),
            do_not_disturb: false,
            language: None,
            max_registrations: 10,
            notify_message_waiting: false,
            message_waiting: Default::default(),
        }],
        numbers: vec![Number {
            id: id(31).into(),
            organisation_id: id(1).into(),
            number: "+442071230000".into(),
            destination: Destination::Extension(id(11).into()),
        }],
        rooms: Vec::new(),
        trunks: vec![Trunk {
            id: id(41).into(),
            organisation_id: None,
            name: "carrier".into(),
            address: None,
            accept_from: vec![Network { address: "203.0.113.1".parse().unwrap(), prefix_len: 32 }],
            priority: 1,
            username: String::new(),
            password: Secret::default(),
            realm: String::new(),
            register: false,
            short_numbers: Vec::new(),
            strict_source: None,
            srtp: Srtp::Off,
            video: Video::Off,
            max_call_seconds: None,
            interop: TrunkInterop::default(),
        }],
    }
}

const SWITCH: &str = "198.51.100.1:5060";
const PHONE: &str = "192.0.2.1:5060";
const CARRIER: &str = "203.0.113.1:5060";
const TO: &str = "<sip:+442071230000@198.51.100.1>";
const PASSWORD: &str = "secret";
const SDP: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
     m=audio 4000 RTP/AVP 0 8 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\n\
     a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-16\r\na=ptime:20\r\na=sendrecv\r\n";
