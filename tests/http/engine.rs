//! The HTTP face over a database of the chosen kind on an ephemeral port, and a client that speaks plain HTTP/1.1.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use sidetone::cdr::writer::CdrSink;
use sidetone::provision::{Declaration, apply};
use sidetone::store::Store;
use sidetone_api::ApiState;
use sidetone_model::cdr::Cdr;
use sidetone_model::ports::Readiness;
use tokio::sync::oneshot;

use crate::database::{TestDatabase, chosen};
use crate::records::{TempDir, at};

/// Two organisations; `crm` reads, `boss` sees margins too, `rooms` may not read calls.
const DIRECTORY: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.api_keys]]
  name = "crm"
  key = "tel_acmecrm00001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read"]
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "boss"
  key = "tel_acmeboss0001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read", "margin:read"]
  allow = ["127.0.0.0/8"]
  [[organisations.api_keys]]
  name = "rooms"
  key = "tel_acmerooms001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "conferences"
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "elsewhere"
  key = "tel_acmeelse0001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "full"
  allow = ["192.0.2.0/24"]
  [[organisations.api_keys]]
  name = "slow"
  key = "tel_acmeslow0001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "read_only"
  allow = ["127.0.0.1"]
  rate_per_minute = 3
[[organisations]]
name = "Bolt"
sip_domain = "bolt.test"
  [[organisations.api_keys]]
  name = "crm"
  key = "tel_boltcrm00001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read"]
  allow = ["127.0.0.1"]
"#;

/// A running HTTP face; stops when dropped.
pub struct Engine {
    pub ids: Ids,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

/// An answer, read whole.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

struct Ready;

impl Readiness for Ready {
    fn unready(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Engine {
    /// An engine whose call log holds what `records` makes of the ids of Acme and Bolt.
    pub fn start(records: fn(Ids) -> Vec<Cdr>) -> Self {
        let dir = TempDir::new();
        let folder = dir.path().to_path_buf();
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let database = TestDatabase::new(chosen(), &folder).await;
                let store = Store::open(&database.database).await.unwrap();
                let declaration = Declaration::parse(DIRECTORY.parse().unwrap()).unwrap();
                let mut rng = StdRng::seed_from_u64(1);
                apply(&store, &[declaration], false, at(0), &mut rng).await.unwrap();
                let organisations = store.directory().await.unwrap().organisations;
                let ids = Ids { acme: organisations[0].id, bolt: organisations[1].id };
                store.store(&records(ids)).await.unwrap();
                let shared = Arc::new(store.clone());
                let state = ApiState::new(shared.clone(), shared, Arc::new(Ready), Arc::new(|| at(100)));
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                started.send((listener.local_addr().unwrap(), ids)).unwrap();
                let shutdown = async {
                    let _ = stopped.await;
                };
                sidetone_api::serve(listener, state, shutdown).await.unwrap();
                store.close().await;
            });
        });
        let (address, ids) = start.recv().unwrap();
        Self { ids, address, stop: Some(stop), thread: Some(thread), _dir: dir }
    }

    /// `GET path` with the key of that short id.
    pub fn get(&self, key: &str, path: &str) -> Answer {
        let secret = "0123456789abcdefghijklmnopqrstuvwxyz";
        self.send(&format!("GET /api/v1{path} HTTP/1.1\r\nAuthorization: Bearer tel_{key}_{secret}\r\n"))
    }

    /// `GET path` as HTTP/1.0, whose body ends with the connection: status, head in lower case, body as it came.
    pub fn text(&self, key: &str, path: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let token = format!("tel_{key}_0123456789abcdefghijklmnopqrstuvwxyz");
        write!(stream, "GET /api/v1{path} HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
    }

    /// Sends a request whose lines are given up to the last header, and reads an answer that is no JSON.
    pub fn send_for_text(&self, head: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(stream, "{head}Host: sidetone.test\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
    }

    /// Sends a request whose lines are given up to the last header.
    pub fn send(&self, head: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(stream, "{head}Host: sidetone.test\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
        Answer { status, head: head.to_ascii_lowercase(), body }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let stopped = thread.join();
            assert!(stopped.is_ok() || std::thread::panicking());
        }
    }
}

/// The organisations of [`DIRECTORY`].
#[derive(Clone, Copy)]
pub struct Ids {
    pub acme: sidetone_model::ids::OrganisationId,
    pub bolt: sidetone_model::ids::OrganisationId,
}

impl Answer {
    /// The error's code.
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap()
    }

    /// The names of the fields of an object, sorted.
    pub fn fields(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.body.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}
