//! The HTTP face with everything that is managed over it: an operator, two organisations with their keys, and a
//! client that sends bodies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use sidetone::accounts::{Passwords, People};
use sidetone::provision::{Declaration, Lines, apply};
use sidetone::store::Store;
use sidetone_api::{ApiState, DirectoryPorts, HttpSettings, Panel, RatePorts, TokenKey};
use sidetone_model::directory::DirectorySnapshot;
use sidetone_model::ports::Readiness;
use tokio::sync::oneshot;

use crate::database::{TestDatabase, chosen};
use crate::engine::Answer;
use crate::records::{TempDir, at};

/// Acme has a team, two extensions, a number and a trunk; Bolt has an extension and a trunk; one trunk is shared.
const DIRECTORY: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
credit = "25"
  [[organisations.teams]]
  name = "support"
  [[organisations.extensions]]
  number = "1001"
  name = "Ada"
  password = "correct horse"
  team = "support"
  [[organisations.extensions]]
  number = "1002"
  name = "Grace"
  password = "correct horse"
  [[organisations.numbers]]
  number = "+442071230000"
  destination = { extension = "1001" }
  [[organisations.users]]
  email = "operator@acme.test"
  password = "the operator's own"
  role = "operator"
  [[organisations.users]]
  email = "supervisor@acme.test"
  password = "the supervisor's own"
  role = "team_supervisor"
  team = "support"
  [[organisations.api_keys]]
  name = "admin"
  key = "tel_acmeadmin001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "full"
  allow = ["127.0.0.1"]
  rate_per_minute = 60000
  [[organisations.api_keys]]
  name = "reader"
  key = "tel_acmereader01_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["directory:read"]
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "rooms"
  key = "tel_acmerooms001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "conferences"
  allow = ["127.0.0.1"]
[[organisations]]
name = "Bolt"
sip_domain = "bolt.test"
  [[organisations.teams]]
  name = "bolts"
  [[organisations.extensions]]
  number = "2001"
  name = "Bob"
  password = "correct horse"
  [[organisations.api_keys]]
  name = "admin"
  key = "tel_boltadmin001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "full"
  allow = ["127.0.0.1"]
[[trunks]]
name = "acme carrier"
organisation = "Acme"
accept_from = ["203.0.114.0/24"]
[[trunks]]
name = "bolt carrier"
organisation = "Bolt"
accept_from = ["203.0.115.0/24"]
[[trunks]]
name = "shared carrier"
address = "sip:192.0.2.1:5060"
"#;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// Acme's key with every permission.
    Acme,
    /// Bolt's key with every permission.
    Bolt,
    /// Nobody.
    Nobody,
    /// The operator, logged in.
    Operator,
    /// Acme's key that reads the directory alone.
    Reader,
    /// Acme's key that has nothing to do with the directory.
    Rooms,
    /// The supervisor of Acme's team, logged in.
    Supervisor,
}

/// A running HTTP face; stops when dropped.
pub struct Desk {
    address: SocketAddr,
    directory: DirectorySnapshot,
    team: String,
    bolts: String,
    operator: OnceLock<String>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

struct Ready;

impl Readiness for Ready {
    fn unready(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Desk {
    pub fn start() -> Self {
        Self::with(true)
    }

    /// A desk that refuses unknown fields, or ignores them.
    pub fn with(strict: bool) -> Self {
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
                let report = apply(&store, &[declaration], false, at(0), &mut rng).await.unwrap();
                let report = serde_json::to_value(&report).unwrap();
                let team =
                    |at: usize| report["organisations"][at]["teams"][0]["id"].as_str().unwrap().to_owned();
                let directory = store.directory().await.unwrap();
                let people = Arc::new(People::new(store.clone(), Passwords::new(&mut rng).unwrap()));
                let shared = Arc::new(store.clone());
                let panel = Panel {
                    accounts: people.clone(),
                    agents: shared.clone(),
                    keys: people.clone(),
                    teams: shared.clone(),
                    token_key: TokenKey::new([7; TokenKey::LEN]),
                    users: people,
                };
                let ports = DirectoryPorts {
                    extensions: Arc::new(Lines::new(store.clone(), rng)),
                    numbers: shared.clone(),
                    organisations: shared.clone(),
                    trunks: shared.clone(),
                };
                let rates = RatePorts { cost: shared.clone(), fx: shared.clone(), sell: shared.clone() };
                let state =
                    ApiState::new(shared.clone(), shared.clone(), Arc::new(Ready), Arc::new(|| at(100)))
                        .with_conversations(shared.clone(), shared)
                        .with_panel(panel)
                        .with_directory(ports)
                        .with_rates(rates)
                        .with_settings(HttpSettings { strict_bodies: strict, ..HttpSettings::default() });
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                started.send((listener.local_addr().unwrap(), directory, team(0), team(1))).unwrap();
                let shutdown = async {
                    let _ = stopped.await;
                };
                sidetone_api::serve(listener, state, shutdown).await.unwrap();
                store.close().await;
            });
        });
        let (address, directory, team, bolts) = start.recv().unwrap();
        let operator = OnceLock::new();
        Self { address, directory, team, bolts, operator, stop: Some(stop), thread: Some(thread), _dir: dir }
    }

    /// The id of an organisation.
    pub fn organisation(&self, name: &str) -> String {
        self.directory.organisations.iter().find(|it| it.name == name).unwrap().id.to_string()
    }

    /// The id of an extension.
    pub fn extension(&self, number: &str) -> String {
        self.directory.extensions.iter().find(|it| it.number == number).unwrap().id.to_string()
    }

    /// The id of a trunk.
    pub fn trunk(&self, name: &str) -> String {
        self.directory.trunks.iter().find(|it| it.name == name).unwrap().id.to_string()
    }

    /// The id of the one phone number.
    pub fn number(&self) -> String {
        self.directory.numbers[0].id.to_string()
    }

    /// The id of Acme's team.
    pub fn team(&self) -> &str {
        &self.team
    }

    /// The id of Bolt's team.
    pub fn foreign_team(&self) -> &str {
        &self.bolts
    }

    pub fn get(&self, who: As, path: &str) -> Answer {
        self.send(who, "GET", path, None)
    }

    pub fn post(&self, who: As, path: &str, body: Value) -> Answer {
        self.send(who, "POST", path, Some(body))
    }

    pub fn patch(&self, who: As, path: &str, body: Value) -> Answer {
        self.send(who, "PATCH", path, Some(body))
    }

    pub fn delete(&self, who: As, path: &str) -> Answer {
        self.send(who, "DELETE", path, None)
    }

    /// One request, its body as JSON.
    pub fn send(&self, who: As, method: &str, path: &str, body: Option<Value>) -> Answer {
        let headers = body.as_ref().map_or("", |_| "Content-Type: application/json\r\n");
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        self.raw(who, method, path, headers, &body)
    }

    /// One request with these headers, each with its line end, and these bytes.
    pub fn raw(&self, who: As, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let token = match who {
            As::Acme => key("acmeadmin001"),
            As::Bolt => key("boltadmin001"),
            As::Nobody => String::new(),
            As::Operator => self.operator().to_owned(),
            As::Reader => key("acmereader01"),
            As::Rooms => key("acmerooms001"),
            As::Supervisor => self.log_in("supervisor@acme.test", "the supervisor's own"),
        };
        let token = if token.is_empty() { token } else { format!("Authorization: Bearer {token}\r\n") };
        self.exchange(method, path, &format!("{token}{headers}"), body)
    }

    /// The operator's session, the same one for all their requests: logins are bounded.
    fn operator(&self) -> &str {
        self.operator.get_or_init(|| self.log_in("operator@acme.test", "the operator's own"))
    }

    fn log_in(&self, email: &str, password: &str) -> String {
        let body = json!({"email": email, "password": password}).to_string();
        let headers = "Content-Type: application/json\r\n";
        let answer = self.exchange("POST", "/auth/login", headers, body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["token"].as_str().unwrap().to_owned()
    }

    fn exchange(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let len = body.len();
        let head = format!(
            "{method} /api/v1{path} HTTP/1.1\r\n{headers}Content-Length: {len}\r\nHost: sidetone.test\r\n\
             Connection: close\r\n\r\n"
        );
        // A body that is refused by its length alone is not read to its end.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
        Answer { status, head: head.to_ascii_lowercase(), body }
    }
}

fn key(id: &str) -> String {
    format!("tel_{id}_0123456789abcdefghijklmnopqrstuvwxyz")
}

impl Drop for Desk {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let stopped = thread.join();
            assert!(stopped.is_ok() || std::thread::panicking());
        }
    }
}

impl Answer {
    /// The error's message.
    pub fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap()
    }

    /// What the items of a page hold under `field`.
    pub fn items(&self, field: &str) -> Vec<&str> {
        self.body["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
    }

    /// The value of `Location`, below the API's own path.
    pub fn location(&self) -> &str {
        let (_, rest) = self.head.split_once("\r\nlocation: /api/v1").unwrap();
        rest.split("\r\n").next().unwrap()
    }
}

/// What is the same for every managed thing: who may do what with the one at `path` of the collection, and what is
/// said of ids that are none.
pub fn hold_the_rules(desk: &Desk, collection: &str, id: &str, read: &str, write: &str) {
    let one = format!("{collection}/{id}");
    let absent = format!("{collection}/00000000-0000-4000-8000-000000000000");
    let requests = |path: &str| {
        [
            ("GET", path.to_owned(), None),
            ("PATCH", path.to_owned(), Some(json!({}))),
            ("DELETE", path.to_owned(), None),
        ]
    };
    for (method, path, body) in requests(&one) {
        let lacking = if method == "GET" { read } else { write };
        let answer = desk.send(As::Nobody, method, &path, body.clone());
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{method} {path}");
        let answer = desk.send(As::Rooms, method, &path, body.clone());
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{method} {path}");
        assert!(answer.message().contains(lacking), "{}", answer.message());
        let answer = desk.send(As::Bolt, method, &path, body);
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "foreign {method} {path}");
    }
    for (method, path, body) in requests(&absent) {
        let answer = desk.send(As::Operator, method, &path, body);
        assert_eq!((answer.status, answer.code()), (404, "not_found"), "{method} {path}");
    }
    for wrong in ["1001", "00000000000040008000000000000000", "%00"] {
        let answer = desk.get(As::Operator, &format!("{collection}/{wrong}"));
        assert_eq!((answer.status, answer.message()), (400, "id: must be a UUID"), "{wrong}");
    }
    let wrong = format!("{collection}?limit=0&offset=-1&sort=colour&order=up&colour=red");
    let answer = desk.get(As::Operator, &wrong);
    assert_eq!(answer.status, 400);
    let fields: Vec<&str> = answer.body["error"]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["limit", "offset", "sort", "order", "colour"]);
    let page = desk.get(As::Operator, &format!("{collection}?limit=1&offset=1"));
    assert_eq!(page.fields(), ["items", "limit", "offset", "total"]);
    assert_eq!((&page.body["limit"], &page.body["offset"]), (&json!(1), &json!(1)));
}
