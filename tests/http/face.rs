//! The HTTP face over a database of the chosen kind on an ephemeral port, and a client that speaks plain HTTP.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use sidetone::config::Config;
use sidetone::provision::{Declaration, apply};
use sidetone_api::ApiState;
use sidetone_model::ports::Readiness;
use sidetone_store::Store;
use tokio::sync::{Mutex, oneshot};

use crate::common::database::{TestDatabase, chosen};
use crate::common::nodes::{self, Nodes};
use crate::common::records::{TempDir, at};

/// A running HTTP face; stops when dropped.
pub struct Face {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _dir: Arc<TempDir>,
}

/// A new database with the declared directory.
pub struct Ground {
    pub store: Store,
    pub database: Arc<TestDatabase>,
    /// The report of the declaration.
    pub report: Value,
    pub rng: StdRng,
    template: Arc<Template>,
}

/// No additional state.
pub struct Ready;

impl Readiness for Ready {
    fn unready(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Ground {
    /// A database in `dir` with `declared`, in the form of an apply file.
    pub async fn new(dir: &TempDir, declared: &'static str) -> Self {
        let template = Template::of(declared).await;
        let database = Arc::new(template.database.copy(dir.path()).await);
        let store = Store::open(&database.database).await.unwrap();
        let report = template.report.clone();
        Self { store, database, report, rng: StdRng::seed_from_u64(1), template }
    }
}

/// A database with a declared directory, to be copied: hashing the passwords of the users for every test would take a
/// quarter of the processor time of all tests. It is removed when no test uses it.
struct Template {
    database: TestDatabase,
    report: Value,
    _dir: TempDir,
}

impl Template {
    async fn of(declared: &'static str) -> Arc<Self> {
        let mut made = TEMPLATES.lock().await;
        if let Some(template) = made.get(declared).and_then(Weak::upgrade) {
            return template;
        }
        let dir = TempDir::new();
        let database = TestDatabase::new(chosen(), dir.path()).await;
        let store = Store::open(&database.database).await.unwrap();
        let declaration = Declaration::parse(declared.parse().unwrap()).unwrap();
        let mut rng = StdRng::seed_from_u64(2);
        let report = apply(&store, &[declaration], false, at(0), &mut rng).await.unwrap();
        store.close().await;
        let report = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        let template = Arc::new(Self { database, report, _dir: dir });
        made.insert(declared, Arc::downgrade(&template));
        template
    }
}

/// By apply file.
static TEMPLATES: Mutex<BTreeMap<&'static str, Weak<Template>>> = Mutex::const_new(BTreeMap::new());

impl Face {
    /// A face over the state that `furnish` builds from a database with `declared`, and its second result.
    pub fn open<T: Send + 'static>(
        declared: &'static str,
        furnish: impl AsyncFnOnce(Ground) -> (ApiState, T) + Send + 'static,
    ) -> (Self, T) {
        let dir = Arc::new(TempDir::new());
        let folder = Arc::clone(&dir);
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let ground = Ground::new(&folder, declared).await;
                // The database is dropped after its store.
                let (store, _database) = (ground.store.clone(), Arc::clone(&ground.database));
                let _template = Arc::clone(&ground.template);
                let (state, more) = furnish(ground).await;
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                started.send((listener.local_addr().unwrap(), more)).unwrap();
                let shutdown = async {
                    // Stopped, or the face was dropped: the same.
                    let _ = stopped.await;
                };
                sidetone_api::HttpServer::new(listener, state).run(shutdown).await;
                store.close().await;
            });
        });
        let (address, more) = start.recv().unwrap();
        (Self { address, stop: Some(stop), thread: Some(thread), _dir: dir }, more)
    }

    /// The same with the nodes of a cluster, each a complete engine, instead of the face: for a test on
    /// several nodes. `change` modifies their settings.
    #[allow(dead_code, reason = "the panel's tests run on one face")]
    pub fn of_nodes<T: Send + 'static>(
        declared: &'static str,
        change: impl FnOnce(&mut Config) + Send + 'static,
        furnish: impl AsyncFnOnce(Ground) -> T + Send + 'static,
    ) -> (Self, T) {
        let dir = Arc::new(TempDir::new());
        let folder = Arc::clone(&dir);
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(async {
                let ground = Ground::new(&folder, declared).await;
                let (database, _template) = (Arc::clone(&ground.database), Arc::clone(&ground.template));
                let more = furnish(ground).await;
                let mut config = Config::default();
                config.node.data_dir = folder.path().to_owned();
                config.database = database.database.clone();
                for listener in &mut config.sip.listen {
                    listener.address = ([127, 0, 0, 1], 0).into();
                }
                config.http.listen = ([127, 0, 0, 1], 0).into();
                config.media.ports = 12_000..=31_999;
                config.media.workers = Some(1);
                config.node.journal_reserve_bytes = 256 << 10;
                change(&mut config);
                let nodes = Nodes::start(&config).await;
                started.send((nodes.http, more)).unwrap();
                // Stopped, or the face was dropped: the same.
                let _ = stopped.await;
                let (first, others) = nodes.into_parts();
                first.stop(Duration::ZERO).await;
                nodes::stop(others).await;
            });
        });
        let (address, more) = start.recv().unwrap();
        (Self { address, stop: Some(stop), thread: Some(thread), _dir: dir }, more)
    }

    /// Sends these bytes and reads until the connection ends: status, head in lower case, body
    /// unchanged.
    pub fn exchange(&self, request: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        parts(bytes)
    }

    /// As [`Face::exchange`], the body as bytes.
    pub fn exchange_bytes(&self, request: &[u8]) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        // A body that is refused by its length is not read to its end.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let body = bytes.split_off(end + 4);
        let (status, head, _) = parts(bytes);
        (status, head, body)
    }

    /// As [`Face::exchange`] where the server may end the connection before it has read the complete request: a
    /// body that is refused by its length is not read to its end.
    pub fn exchange_refused(&self, request: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        parts(bytes)
    }
}

/// The bytes of `method path` below `/api/v1`, with these header lines, each with its end, and a body.
pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\n{headers}Content-Length: {len}\r\nHost: sidetone.test\r\n\
         Connection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn parts(bytes: Vec<u8>) -> (u16, String, String) {
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

impl Drop for Face {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let stopped = thread.join();
            assert!(stopped.is_ok() || std::thread::panicking());
        }
    }
}

/// The text of the key with that short id.
pub fn key(short_id: &str) -> String {
    format!("tel_{short_id}_0123456789abcdefghijklmnopqrstuvwxyz")
}

/// A response, read completely.
pub struct Answer {
    pub status: u16,
    /// In lower case.
    pub head: String,
    pub body: Value,
}

impl Answer {
    /// The response of an exchange whose body is JSON or empty.
    pub fn of((status, head, body): (u16, String, String)) -> Self {
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(&body).unwrap() };
        Self { status, head, body }
    }

    /// The error's code.
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap()
    }

    /// The error's message.
    pub fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap()
    }

    /// The names of the fields of an object, sorted.
    pub fn fields(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.body.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The values of `field` in the items of a page.
    pub fn items(&self, field: &str) -> Vec<&str> {
        self.body["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
    }

    /// The value of `Location`, below the API's own path.
    pub fn location(&self) -> &str {
        let (_, rest) = self.head.split_once("\r\nlocation: /api/v1").unwrap();
        rest.split("\r\n").next().unwrap()
    }
}
