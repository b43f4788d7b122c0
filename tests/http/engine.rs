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
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::database::{TestDatabase, chosen};
use crate::records::{TempDir, at};

/// Two organisations; `crm` reads, `boss` sees margins too, `rooms` may not read calls, `robot` reports
/// conversations, `audit` sees all their amounts.
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
  [[organisations.api_keys]]
  name = "robot"
  key = "tel_acmerobot001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read", "conversations:write"]
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "audit"
  key = "tel_acmeaudit001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read", "billing:read", "margin:read"]
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "billing"
  key = "tel_acmebill0001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read", "billing:read"]
  allow = ["127.0.0.1"]
[[organisations]]
name = "Bolt"
sip_domain = "bolt.test"
  [[organisations.api_keys]]
  name = "crm"
  key = "tel_boltcrm00001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read"]
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "robot"
  key = "tel_boltrobot001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read", "conversations:write"]
  allow = ["127.0.0.1"]
[[ai_prices]]
kind = "sell"
provider = "acme-ai"
model = "talk-*"
text_input_per_million = "4.00"
audio_input_per_million = "40.00"
output_per_million = "16.00"
currency = "EUR"
[[ai_prices]]
kind = "cost"
provider = "acme-ai"
model = "*"
text_input_per_million = "2.50"
audio_input_per_million = "32.00"
output_per_million = "10.00"
currency = "USD"
"#;

/// An agent of Acme whose id tests know.
const AGENT: &str =
    "INSERT INTO agents (id, organisation_id, name, kind, search, created_at_us, updated_at_us)
    SELECT '00000000-0000-0000-0000-0000000000a6', id, 'Robin', 'virtual', 'robin', 0, 0
    FROM organisations WHERE name = 'Acme'";

/// A running HTTP face; stops when dropped.
pub struct Engine {
    pub ids: Ids,
    address: SocketAddr,
    backstage: Backstage,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

/// What lies behind the HTTP face.
struct Backstage {
    store: Store,
    database: Arc<TestDatabase>,
    runtime: Handle,
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
        Self::start_with(records)
    }

    /// [`Engine::start`] with what a closure makes.
    pub fn start_with(records: impl FnOnce(Ids) -> Vec<Cdr> + Send + 'static) -> Self {
        let dir = TempDir::new();
        let folder = dir.path().to_path_buf();
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let database = Arc::new(TestDatabase::new(chosen(), &folder).await);
                let store = Store::open(&database.database).await.unwrap();
                let declaration = Declaration::parse(DIRECTORY.parse().unwrap()).unwrap();
                let mut rng = StdRng::seed_from_u64(1);
                apply(&store, &[declaration], false, at(0), &mut rng).await.unwrap();
                let organisations = store.directory().await.unwrap().organisations;
                let ids = Ids { acme: organisations[0].id, bolt: organisations[1].id };
                database.texts(AGENT).await;
                store.store(&records(ids)).await.unwrap();
                let shared = Arc::new(store.clone());
                let state =
                    ApiState::new(shared.clone(), shared.clone(), Arc::new(Ready), Arc::new(|| at(100)))
                        .with_conversations(shared.clone(), shared);
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let backstage = Backstage { store: store.clone(), database, runtime: Handle::current() };
                started.send((listener.local_addr().unwrap(), ids, backstage)).unwrap();
                let shutdown = async {
                    let _ = stopped.await;
                };
                sidetone_api::serve(listener, state, shutdown).await.unwrap();
                store.close().await;
            });
        });
        let (address, ids, backstage) = start.recv().unwrap();
        Self { ids, address, backstage, stop: Some(stop), thread: Some(thread), _dir: dir }
    }

    /// Stores one more record, as the end of its call does.
    pub fn store(&self, cdr: Cdr) {
        let stored = self.backstage.runtime.block_on(self.backstage.store.store(&[cdr]));
        assert_eq!(stored.unwrap().new, 1);
    }

    /// Does to the database what no request does.
    pub fn execute(&self, statement: &'static str) {
        self.backstage.runtime.block_on(self.backstage.database.texts(statement));
    }

    /// The data of the stored events of that kind, in their order.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let rows = self.backstage.database.texts("SELECT kind, data FROM events ORDER BY id");
        let rows = self.backstage.runtime.block_on(rows);
        let of_kind = rows.iter().filter(|row| row[0].as_deref() == Some(kind));
        of_kind.map(|row| serde_json::from_str(row[1].as_ref().unwrap()).unwrap()).collect()
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

    /// `method path` with the key of that short id and a JSON body.
    pub fn call(&self, method: &str, key: &str, path: &str, body: &Value) -> Answer {
        let token = format!("tel_{key}_0123456789abcdefghijklmnopqrstuvwxyz");
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "{method} /api/v1{path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nHost: sidetone.test\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        answer(stream)
    }

    /// Sends a request whose lines are given up to the last header.
    pub fn send(&self, head: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(stream, "{head}Host: sidetone.test\r\nConnection: close\r\n\r\n").unwrap();
        answer(stream)
    }
}

fn answer(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
    Answer { status, head: head.to_ascii_lowercase(), body }
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
