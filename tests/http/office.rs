//! The HTTP face with users who log in, without a socket: the test sets the caller's address and the time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::request::Builder;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use sidetone::events::Bus;
use sidetone::outbound_http::{OutboundHttp, Policy};
use sidetone::prompts::{Library, PromptService};
use sidetone::provision::Lines;
use sidetone::webhooks::service::WebhookService;
use sidetone_api::{ApiState, DirectoryPorts, Ports, RatePorts, router};
use sidetone_model::cdr::Cdr;
use sidetone_model::cluster::{NodeRecord, NodeState, Nodes};
use sidetone_model::ids::{ExtensionId, NodeId, OrganisationId, TeamId};
use sidetone_model::ports::{CdrSink, PortFuture};
use sidetone_model::time::Timestamp;
use sidetone_store::{IdempotencyKeys, Store};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};
use tower::ServiceExt;
use uuid::Uuid;

use crate::common::database::TestDatabase;
use crate::common::records::{TempDir, at};
use crate::http::face::{Ground, Ready};

/// Two tenants and the platform; the password of all users is [`PASSWORD`].
const PEOPLE: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.teams]]
  name = "sales"
  [[organisations.teams]]
  name = "support"
  [[organisations.extensions]]
  number = "1001"
  name = "Ada"
  team = "support"
  [[organisations.extensions]]
  number = "1002"
  [[organisations.users]]
  email = "boss@acme.test"
  password = "correct horse"
  role = "org_admin"
  [[organisations.users]]
  email = "mia@acme.test"
  password = "correct horse"
  role = "org_member"
  [[organisations.users]]
  email = "eve@acme.test"
  password = "correct horse"
  role = "team_supervisor"
  team = "support"
  [[organisations.users]]
  email = "bob@acme.test"
  password = "correct horse"
  role = "agent"
  team = "support"
  [[organisations.users]]
  email = "lost@acme.test"
  password = "correct horse"
  role = "agent"
  [[organisations.api_keys]]
  name = "keeper"
  key = "tel_acmekeeper01_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["keys:write", "users:write", "directory:write", "directory:read", "calls:read"]
  allow = ["127.0.0.1"]
[[organisations]]
name = "Bolt"
sip_domain = "bolt.test"
  [[organisations.teams]]
  name = "support"
  [[organisations.extensions]]
  number = "1001"
  [[organisations.users]]
  email = "boss@bolt.test"
  password = "correct horse"
  role = "org_admin"
[[organisations]]
name = "Platform"
sip_domain = "platform.test"
  [[organisations.users]]
  email = "root@platform.test"
  password = "correct horse"
  role = "operator"
"#;

/// The password of all users.
pub const PASSWORD: &str = "correct horse";
/// The key that manages Acme, only from 127.0.0.1.
pub const KEEPER: &str = "tel_acmekeeper01_0123456789abcdefghijklmnopqrstuvwxyz";

/// The HTTP face with its own database.
pub struct Office {
    pub names: Names,
    pub store: Store,
    pub runtime: Runtime,
    pub bus: Bus,
    /// Ends every stream of events.
    pub stop: watch::Sender<bool>,
    router: Router,
    clock: Arc<AtomicI64>,
    _database: Arc<TestDatabase>,
    _dir: TempDir,
}

/// The ids of the resources in [`PEOPLE`].
#[derive(Clone, Copy)]
pub struct Names {
    pub acme: OrganisationId,
    pub bolt: OrganisationId,
    pub sales: TeamId,
    pub support: TeamId,
    pub bolt_support: TeamId,
    pub ada: ExtensionId,
    pub bolt_line: ExtensionId,
}

/// A response, read completely.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Office {
    /// An office whose call log is empty.
    pub fn open() -> Self {
        Self::with_calls(|_| Vec::new())
    }

    /// An office with the call log that `records` builds for the ids.
    pub fn with_calls(records: impl FnOnce(Names) -> Vec<Cdr>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let (runtime, dir) = (runtime.unwrap(), TempDir::new());
        let clock = Arc::new(AtomicI64::new(at(100).as_micros()));
        let now = Arc::clone(&clock);
        let (stop, stopped) = watch::channel(false);
        let (names, store, bus, router, database) = runtime.block_on(async {
            let mut ground = Ground::new(&dir, PEOPLE).await;
            let names = Names::read(&ground.report);
            ground.store.store(&records(names)).await.unwrap();
            let shared = Arc::new(ground.store.clone());
            let clock = Arc::new(move || Timestamp::from_micros(now.load(Ordering::SeqCst)));
            let panel = sidetone::app::panel(&ground.store, &mut ground.rng).await.unwrap();
            let secrets = StdRng::seed_from_u64(2);
            let webhooks = WebhookService::new(ground.store.clone(), secrets, Arc::new(Notify::new()));
            let directory = DirectoryPorts {
                extensions: Arc::new(Lines::new(ground.store.clone(), StdRng::seed_from_u64(3))),
                numbers: shared.clone(),
                organisations: shared.clone(),
                trunks: shared.clone(),
            };
            let keys = IdempotencyKeys::open(ground.store.clone(), NodeId(Uuid::from_u128(1))).await.unwrap();
            let bus = Bus::new(&ground.store);
            let (reader, mut heard) = (bus.clone(), ground.store.event_bell().listen());
            tokio::spawn(async move { reader.run(&mut heard, stopped).await });
            let state = ApiState::new(
                Ports {
                    idempotency: Arc::new(keys),
                    stored_quality: Some(shared.clone()),
                    field_checks: Some(shared.clone()),
                    panel: Some(Arc::new(panel)),
                    rooms: Some(shared.clone()),
                    directory: Some(directory),
                    outgoing_urls: Some(Arc::new(Policy::new(&OutboundHttp::default(), Vec::new()))),
                    prompts: Some(Arc::new(PromptService::new(ground.store.clone(), Library::new()))),
                    nodes: Some(Arc::new(TwoNodes)),
                    rates: Some(RatePorts { cost: shared.clone(), fx: shared.clone(), sell: shared.clone() }),
                    webhooks: Some(Arc::new(webhooks)),
                    events: Some(Arc::new(bus.clone())),
                    ..Ports::of_log(shared.clone(), shared.clone(), Arc::new(Ready))
                },
                clock,
            );
            (names, ground.store, bus, router(state), ground.database)
        });
        Self { names, store, runtime, bus, stop, router, clock, _database: database, _dir: dir }
    }

    /// The routes of the API.
    #[allow(dead_code, reason = "the panel's tests use it")]
    pub fn api(&self) -> Router {
        self.router.clone()
    }

    /// Advances the clock.
    pub fn pass(&self, milliseconds: i64) {
        self.clock.fetch_add(milliseconds * 1000, Ordering::SeqCst);
    }

    /// The token of a new session of `email`.
    pub fn login(&self, email: &str) -> String {
        let answer = self.try_login("127.0.0.9", email, PASSWORD);
        assert_eq!(answer.status, 200, "{email}: {}", answer.text);
        answer.body["token"].as_str().unwrap().to_owned()
    }

    /// A login from an address.
    pub fn try_login(&self, address: &str, email: &str, password: &str) -> Answer {
        self.ask_from(address, None, "POST /auth/login", json!({"email": email, "password": password}))
    }

    /// `GET path` with that token.
    pub fn get(&self, token: &str, path: &str) -> Answer {
        self.ask(token, &format!("GET {path}"), Value::Null)
    }

    /// A request such as `POST /teams` with that token and body.
    pub fn ask(&self, token: &str, what: &str, body: Value) -> Answer {
        self.ask_from("127.0.0.1", Some(token), what, body)
    }

    /// [`Office::ask`] from an address.
    pub fn ask_from(&self, address: &str, token: Option<&str>, what: &str, body: Value) -> Answer {
        self.runtime.block_on(self.answer(address, token, what, body))
    }

    /// A request such as `POST /teams` with an `Idempotency-Key`.
    #[allow(dead_code, reason = "the panel's tests do not use it")]
    pub fn repeatable(&self, token: &str, what: &str, key: &str, body: Value) -> Answer {
        let request = self.request("127.0.0.1", Some(token), what).header("idempotency-key", key);
        self.runtime.block_on(self.sent(request, body))
    }

    /// The status and the body of an endless response.
    pub async fn open_stream(&self, token: &str, what: &str, headers: &[(&str, String)]) -> (u16, Body) {
        let (method, path) = what.split_once(' ').unwrap();
        let peer = SocketAddr::from(([127, 0, 0, 1], 4711));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .extension(ConnectInfo(peer))
            .header("authorization", format!("Bearer {token}"));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        (response.status().as_u16(), response.into_body())
    }

    /// [`Office::ask_from`] as a future.
    pub async fn answer(&self, address: &str, token: Option<&str>, what: &str, body: Value) -> Answer {
        self.sent(self.request(address, token, what), body).await
    }

    fn request(&self, address: &str, token: Option<&str>, what: &str) -> Builder {
        let (method, path) = what.split_once(' ').unwrap();
        let peer = SocketAddr::new(address.parse().unwrap(), 4711);
        let request =
            Request::builder().method(method).uri(format!("/api/v1{path}")).extension(ConnectInfo(peer));
        match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    async fn sent(&self, mut request: Builder, body: Value) -> Answer {
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header("content-type", "application/json");
            Body::from(body.to_string())
        };
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status: parts.status.as_u16(), headers: parts.headers, text, body }
    }
}

impl Names {
    fn read(report: &Value) -> Self {
        let [acme, bolt] = [0, 1].map(|index| &report["organisations"][index]);
        fn id<T: std::str::FromStr>(of: &Value) -> T {
            of["id"].as_str().unwrap().parse().ok().unwrap()
        }
        Self {
            acme: id(acme),
            bolt: id(bolt),
            sales: id(&acme["teams"][0]),
            support: id(&acme["teams"][1]),
            bolt_support: id(&bolt["teams"][0]),
            ada: id(&acme["extensions"][0]),
            bolt_line: id(&bolt["extensions"][0]),
        }
    }
}

impl Answer {
    /// The status and the error's code.
    pub fn error(&self) -> (u16, &str) {
        (self.status, self.body["error"]["code"].as_str().unwrap_or_default())
    }

    /// The error's message.
    pub fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap_or_default()
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The names of the fields of the body, sorted.
    pub fn fields(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.body.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The strings under `field` of the items of a list.
    pub fn items(&self, field: &str) -> Vec<&str> {
        let items = self.body["items"].as_array().unwrap();
        items.iter().map(|item| item[field].as_str().unwrap()).collect()
    }

    /// The id of the created resource.
    pub fn id(&self) -> &str {
        self.body["id"].as_str().unwrap()
    }
}

/// Two nodes, of which one is draining and has a name that must be escaped in HTML.
struct TwoNodes;

impl Nodes for TwoNodes {
    fn list(&self) -> PortFuture<'_, Vec<NodeRecord>> {
        let node = |number: u128, name: &str, state, draining| NodeRecord {
            id: NodeId(Uuid::from_u128(number)),
            name: name.to_owned(),
            state,
            this: number == 1,
            version: "1.2.3".to_owned(),
            started_at: Timestamp::from_micros(1_700_000_000_000_000),
            draining,
            calls: 17,
            rooms: 3,
            registrations: 4_000,
            cpu_percent: 31,
            loaded: false,
            sip: vec![format!("udp://10.0.0.{number}:5060")],
            http: format!("http://10.0.0.{number}:8080"),
            heartbeat_age_ms: 0,
        };
        let nodes = vec![node(1, "node-<a>", NodeState::Up, true), node(2, "node-b", NodeState::Gone, false)];
        Box::pin(async move { Ok(nodes) })
    }
}
