//! A complete engine on loopback, its directory, its phones, and its records as the API shows them.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "benches use a part")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use sidetone::app::Engine;
use sidetone::config::{Config, LoadLimits};
use sidetone::provision::{Declaration, apply};
use sidetone_media::simulate::Scenario;
use sidetone_phone::{Answering, CallPlan, Phone, PhoneConfig};
use sidetone_sip::flow::Protocol;
use sidetone_sip::sdp::CodecPolicy;
use sidetone_store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::chosen::migrated_in;
use super::nodes::{self, Nodes};
use super::records::{TempDir, at};
use super::waiting::{PATIENCE, POLL_EVERY};
pub use super::waiting::{found, until, within};

/// Audio of a clean network that ends after every test: a scenario has a minute by default, and a call without audio is
/// ended.
const ENDLESS: &str = "clean duration=86400s";
/// Every phone's password.
pub const PASSWORD: &str = "correct horse battery staple";
/// The organisation's domain.
pub const DOMAIN: &str = "acme.test";

/// Acme with its key, six phones on any codec, and one on G.722 alone.
pub fn directory() -> String {
    let mut text = format!(
        "[[organisations]]\nname = \"Acme\"\nsip_domain = \"{DOMAIN}\"\ncurrency = \"EUR\"\n\
         [[organisations.teams]]\nname = \"support\"\n\
         [[organisations.api_keys]]\nname = \"boss\"\nkey = \"{KEY}\"\n\
         permissions = [\"calls:read\", \"calls:control\", \"margin:read\"]\nallow = [\"127.0.0.1\"]\nrate_per_minute = 60000\n"
    );
    for number in 1001..=1006 {
        text += &format!("[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"{PASSWORD}\"\n");
    }
    text += "team = \"support\"\n"; // of the last one, 1006
    text += &format!(
        "[[organisations.extensions]]\nnumber = \"1722\"\npassword = \"{PASSWORD}\"\ncodecs = [\"G722\"]\n"
    );
    text
}

/// A running engine and its data directory.
pub struct Site {
    pub engine: Option<Engine>,
    pub sip: SocketAddr,
    pub http: SocketAddr,
    pub dir: TempDir,
    /// The other nodes, where a test runs on several.
    others: Vec<Engine>,
    /// The extensions whose phones have registered and are known to those nodes.
    known: Mutex<BTreeSet<String>>,
}

impl Site {
    /// An engine with [`directory`].
    pub async fn start() -> Site {
        Site::with(&directory()).await
    }

    /// An engine with `directory`.
    pub async fn with(directory: &str) -> Site {
        let dir = TempDir::new();
        declare(dir.path(), directory).await;
        Site::reopen(dir).await
    }

    /// An engine with `directory` and changed settings.
    pub async fn configured(directory: &str, change: impl FnOnce(&mut Config)) -> Site {
        let dir = TempDir::new();
        declare(dir.path(), directory).await;
        let mut config = config(dir.path());
        change(&mut config);
        Site::run(dir, &config).await
    }

    /// An engine with room for the RTP of one call.
    pub async fn narrow() -> Site {
        let dir = TempDir::new();
        declare(dir.path(), &directory()).await;
        let mut config = config(dir.path());
        // Two pairs of ports between the range of the other engines and the ephemeral range; they differ from
        // those of other tests, and of a run beside this one.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let place = std::process::id() + COUNT.fetch_add(1, Ordering::Relaxed);
        let first = 32_000 + u16::try_from(place % 190).unwrap() * 4;
        config.media.ports = first..=first + 3;
        Site::run(dir, &config).await
    }

    /// An engine on the data directory of an earlier one.
    pub async fn reopen(dir: TempDir) -> Site {
        let config = config(dir.path());
        Site::run(dir, &config).await
    }

    async fn run(dir: TempDir, config: &Config) -> Site {
        let nodes = Nodes::start(config).await;
        let http = nodes.http;
        let (engine, others) = nodes.into_parts();
        Site { sip: engine.sip[0], http, engine: Some(engine), dir, others, known: Mutex::default() }
    }

    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    /// The address for SIP over TCP.
    pub fn tcp(&self) -> SocketAddr {
        self.over(Protocol::Tcp)
    }

    /// The first address for SIP over connections of this transport.
    pub fn over(&self, protocol: Protocol) -> SocketAddr {
        self.engine().sip_over(protocol).next().unwrap()
    }

    /// Stops the engine in order; the data stays.
    pub async fn stop(mut self, limit: Duration) -> TempDir {
        self.engine.take().unwrap().stop(limit).await;
        nodes::stop(self.others).await;
        self.dir
    }

    /// A registered phone.
    pub async fn phone(&self, number: &str, answering: Answering) -> Phone {
        self.phone_of(self.phone_config(number, answering)).await
    }

    /// A registered phone with settings of its own.
    pub async fn phone_of(&self, config: PhoneConfig) -> Phone {
        let number = config.number.clone();
        let phone = registered(config).await;
        if !self.others.is_empty() {
            let extensions = {
                let mut known = self.known.lock().unwrap();
                known.insert(number);
                known.len()
            };
            nodes::know_phones(&self.others, extensions).await;
        }
        phone
    }

    pub fn phone_config(&self, number: &str, answering: Answering) -> PhoneConfig {
        phone_config(self.sip, number, answering)
    }

    /// The status and body of `GET path` under `/api/v1`.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        get(self.http, path).await
    }

    /// Every record, newest first, once there are `count` and all of them have ended.
    pub async fn records(&self, count: usize) -> Vec<Value> {
        records(self.http, count).await
    }

    /// The one record of this engine.
    pub async fn record(&self) -> Value {
        self.records(1).await.remove(0)
    }

    /// Waits until no call is left.
    pub async fn idle(&self) {
        until("no call is left", || self.engine().live_calls() == 0).await;
    }
}

/// Waits until a phone has this many ringing calls and calls that are up.
pub async fn calls(phone: &Phone, ringing: usize, up: usize) {
    let mut calls = phone.calls();
    let what = format!("{ringing} ringing and {up} answered calls");
    within(&what, calls.wait_for(|calls| (calls.ringing, calls.up) == (ringing, up))).await.unwrap();
}

/// Waits until the one call between two phones is up at both: the caller has the 200 and the callee the ACK.
///
/// Before that, a phone's request finds no call at one of them.
pub async fn established(caller: &Phone, callee: &Phone) {
    calls(callee, 0, 1).await;
    calls(caller, 0, 1).await;
}

/// Declares what `text` says in the database of a data directory.
pub async fn declare(dir: &Path, text: &str) {
    let store = Store::open(&config(dir).database).await.unwrap();
    declare_in(&store, text).await;
    store.close().await;
}

/// Declares what `text` says in a database.
pub async fn declare_in(store: &Store, text: &str) {
    let declaration = Declaration::parse(text.parse().unwrap()).unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    apply(store, &[declaration], false, at(0), &mut rng).await.unwrap();
}

/// Whether this system has io_uring; prints a notice where it does not.
pub fn has_io_uring() -> bool {
    let tried = sidetone_wire::Wire::try_io_uring();
    if let Err(error) = &tried {
        eprintln!("SKIPPED: this system does not offer io_uring: {error}");
    }
    tried.is_ok()
}

/// Ports chosen by the system; RTP below the range that it chooses from.
pub fn config(dir: &Path) -> Config {
    let mut config = Config::default();
    config.node.data_dir = dir.to_owned();
    config.database = migrated_in(dir);
    for listener in &mut config.sip.listen {
        listener.address = ([127, 0, 0, 1], 0).into();
    }
    config.http.listen = ([127, 0, 0, 1], 0).into();
    config.media.ports = 12_000..=31_999;
    config.media.workers = Some(1);
    config.node.journal_reserve_bytes = 256 << 10;
    // The test machine may be busy with other work.
    config.node.busy = LoadLimits { cpu_pct: 0, late_pct: 0 };
    config
}

pub fn phone_config(switch: SocketAddr, number: &str, answering: Answering) -> PhoneConfig {
    PhoneConfig {
        codecs: codecs(&["PCMU", "PCMA", "telephone-event"]),
        answering,
        ..PhoneConfig::new(switch, DOMAIN, number, PASSWORD)
    }
}

pub async fn registered(config: PhoneConfig) -> Phone {
    let number = config.number.clone();
    let phone = Phone::start(config).await.unwrap();
    phone.register(&number).await.unwrap();
    phone
}

pub fn codecs(names: &[&str]) -> CodecPolicy {
    CodecPolicy::new(names.iter().map(|name| (*name).to_owned()))
}

/// A scenario from its text form.
pub fn talk(scenario: &str) -> Option<Box<Scenario>> {
    Some(Box::new(scenario.parse().unwrap()))
}

/// Answers immediately and talks without end.
pub fn answering() -> Answering {
    Answering::Answer { after: Duration::ZERO, talk: talk(ENDLESS) }
}

/// A call that talks for as long as it lasts, and lasts for `millis`.
pub fn talking(number: &str, millis: u64) -> CallPlan {
    CallPlan { talk: talk(ENDLESS), talk_time: Some(Duration::from_millis(millis)), ..CallPlan::to(number) }
}

/// A call that lasts until a party hangs up.
pub fn open_end(number: &str) -> CallPlan {
    CallPlan { talk: talk(ENDLESS), talk_time: None, ..CallPlan::to(number) }
}

/// The status and body of `GET path` under `/api/v1`.
pub async fn get(http: SocketAddr, path: &str) -> (u16, Value) {
    exchange(http, "GET", path, "", "").await
}

/// The status and body of `POST path` under `/api/v1`, with these header lines, each with its end, and this JSON.
pub async fn post(http: SocketAddr, path: &str, headers: &str, json: &str) -> (u16, Value) {
    exchange(http, "POST", path, &format!("Content-Type: application/json\r\n{headers}"), json).await
}

/// The status and body of `method path` under `/api/v1` with this JSON; null is no body, either way.
pub async fn send(http: SocketAddr, method: &str, path: &str, json: &Value) -> (u16, Value) {
    if json.is_null() {
        return exchange(http, method, path, "", "").await;
    }
    exchange(http, method, path, "Content-Type: application/json\r\n", &json.to_string()).await
}

/// The head and body of `POST path` under `/api/v1` with this JSON.
pub async fn post_with_head(http: SocketAddr, path: &str, json: &str) -> (String, Value) {
    exchange_with_head(http, "POST", path, "Content-Type: application/json\r\n", json).await
}

async fn exchange(http: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
    let (head, body) = exchange_with_head(http, method, path, headers, body).await;
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

async fn exchange_with_head(
    http: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (String, Value) {
    let text = within(path, async {
        let mut stream = TcpStream::connect(http).await.unwrap();
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: sidetone.test\r\nAuthorization: Bearer {KEY}\r\n\
             {headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    })
    .await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
    (head.to_ascii_lowercase(), body)
}

/// Every record, newest first, once there are `count` and all of them have ended.
pub async fn records(http: SocketAddr, count: usize) -> Vec<Value> {
    let items = records_at_least(http, count).await;
    assert_eq!(items.len(), count, "{items:#?}");
    items
}

/// Every record, newest first, once there are `count` or more and all of them have ended.
pub async fn records_at_least(http: SocketAddr, count: usize) -> Vec<Value> {
    let mut last = Vec::new();
    let enough = async {
        loop {
            let (status, page) = get(http, "/cdrs?limit=500").await;
            assert_eq!(status, 200, "{page}");
            let items = page["items"].as_array().unwrap().clone();
            last.clone_from(&items);
            if items.len() >= count && items.iter().all(|item| !item["ended_at"].is_null()) {
                return items;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    match tokio::time::timeout(PATIENCE, enough).await {
        Ok(items) => items,
        Err(_) => panic!("{count} records: not within {PATIENCE:?}, but {}: {last:#?}", last.len()),
    }
}

pub const KEY: &str = "tel_acmeboss0001_0123456789abcdefghijklmnopqrstuvwxyz";
