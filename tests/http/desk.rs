//! The HTTP face with every managed resource: an operator, two organisations with their keys, and a
//! client that sends bodies.

use std::sync::{Arc, OnceLock};

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use sidetone::accounts::{Passwords, People};
use sidetone::config::Config;
use sidetone::outbound_http::{OutboundHttp, Policy};
use sidetone::prompts::{self, Library};
use sidetone::provision::{DefaultPin, Lines, RoomPins};
use sidetone::webhooks::service as webhooks;
use sidetone_api::{ApiState, DirectoryPorts, HttpSettings, Panel, Ports, RatePorts, TokenKey};
use sidetone_model::access::Scope;
use sidetone_model::directory::DirectorySnapshot;
use sidetone_model::ids::CallId;
use sidetone_model::live_call::{LiveCall, LiveCallQuery, LiveCalls};
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use tokio::sync::Notify;

use crate::common::nodes;
use crate::common::records::at;
use crate::http::conferences::Party;
use crate::http::face::{Answer, Face, Ready, key, request};

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
  name = "listener"
  key = "tel_acmelistener_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["conferences:read"]
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

/// A switch without calls.
struct Silence;

impl LiveCalls for Silence {
    fn list(&self, _scope: Scope, query: LiveCallQuery) -> PortFuture<'_, Page<LiveCall>> {
        let window = query.window;
        let page = Page::by_offset(Vec::new(), 0, &window);
        Box::pin(async move { Ok(page) })
    }

    fn find(&self, _call: CallId) -> PortFuture<'_, Option<LiveCall>> {
        Box::pin(async { Ok(None) })
    }
}

/// The caller of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// Acme's key with every permission.
    Acme,
    /// Bolt's key with every permission.
    Bolt,
    /// Acme's key that sees conference rooms and runs none.
    Listener,
    /// No credentials.
    Nobody,
    /// The operator, logged in.
    Operator,
    /// Acme's key that may only read the directory.
    Reader,
    /// Acme's key without permissions on the directory.
    Rooms,
    /// The supervisor of Acme's team, logged in.
    Supervisor,
}

/// A running HTTP face; stops when dropped.
pub struct Desk {
    face: Face,
    directory: DirectorySnapshot,
    team: String,
    bolts: String,
    operator: OnceLock<String>,
    party: Arc<Party>,
}

impl Desk {
    pub fn start() -> Self {
        Self::furnished(true, DefaultPin::Empty)
    }

    /// A desk that refuses unknown fields, or ignores them.
    pub fn with(strict: bool) -> Self {
        Self::furnished(strict, DefaultPin::Empty)
    }

    /// A desk that generates missing PINs.
    pub fn with_random_pins() -> Self {
        Self::furnished(true, DefaultPin::Random6)
    }

    fn furnished(strict: bool, default_pin: DefaultPin) -> Self {
        let party = Arc::new(Party::default());
        if nodes::count() > 1 {
            return Self::on_nodes(strict, default_pin, party);
        }
        let live_rooms = Arc::clone(&party);
        let (face, (directory, team, bolts)) = Face::open(DIRECTORY, async move |mut ground| {
            let team =
                |at: usize| ground.report["organisations"][at]["teams"][0]["id"].as_str().unwrap().to_owned();
            let (own, foreign) = (team(0), team(1));
            let directory = ground.store.directory().await.unwrap();
            let passwords = Passwords::new(&mut ground.rng);
            let people = Arc::new(People::new(ground.store.clone(), passwords));
            let shared = Arc::new(ground.store.clone());
            let panel = Panel {
                accounts: people.clone(),
                agents: shared.clone(),
                keys: people.clone(),
                teams: shared.clone(),
                token_key: TokenKey::new([7; TokenKey::LEN]),
                users: people,
            };
            let secrets = StdRng::from_rng(&mut ground.rng);
            let webhooks =
                webhooks::WebhookService::new(ground.store.clone(), secrets, Arc::new(Notify::new()));
            let prompts = prompts::PromptService::new(ground.store.clone(), Library::new());
            let pins = StdRng::from_rng(&mut ground.rng);
            let rooms = RoomPins::new(ground.store.clone(), default_pin, pins);
            let ports = DirectoryPorts {
                extensions: Arc::new(Lines::new(ground.store, ground.rng)),
                numbers: shared.clone(),
                organisations: shared.clone(),
                trunks: shared.clone(),
            };
            let rates = RatePorts { cost: shared.clone(), fx: shared.clone(), sell: shared.clone() };
            let state = ApiState::new(
                Ports {
                    conversations: Some(shared.clone()),
                    field_checks: Some(shared.clone()),
                    ai_prices: Some(shared.clone()),
                    panel: Some(Arc::new(panel)),
                    directory: Some(ports),
                    live_calls: Some(Arc::new(Silence)),
                    rates: Some(rates),
                    rooms: Some(Arc::new(rooms)),
                    live_rooms: Some(live_rooms),
                    outgoing_urls: Some(Arc::new(Policy::new(&OutboundHttp::default(), Vec::new()))),
                    webhooks: Some(Arc::new(webhooks)),
                    prompts: Some(Arc::new(prompts)),
                    ..Ports::of_log(shared.clone(), shared.clone(), Arc::new(Ready))
                },
                Arc::new(|| at(100)),
            )
            .with_settings(HttpSettings { strict_bodies: strict, ..HttpSettings::default() });
            (state, (directory, own, foreign))
        });
        Self { face, directory, team, bolts, operator: OnceLock::new(), party }
    }

    /// The same on several nodes; their rooms have no members.
    fn on_nodes(strict: bool, default_pin: DefaultPin, party: Arc<Party>) -> Self {
        let change = move |config: &mut Config| {
            config.http.settings.strict_bodies = strict;
            config.rooms.default_pin = default_pin;
        };
        let (face, (directory, team, bolts)) = Face::of_nodes(DIRECTORY, change, async |ground| {
            let team =
                |at: usize| ground.report["organisations"][at]["teams"][0]["id"].as_str().unwrap().to_owned();
            let found = (ground.store.directory().await.unwrap(), team(0), team(1));
            ground.store.close().await;
            found
        });
        Self { face, directory, team, bolts, operator: OnceLock::new(), party }
    }

    /// The live rooms.
    pub fn party(&self) -> &Party {
        &self.party
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

    /// A change by a user, who logs in for it.
    pub fn patch_by(&self, (email, password): (&str, &str), path: &str, body: Value) -> Answer {
        let token = self.log_in(email, password);
        let headers = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        let body = body.to_string().into_bytes();
        Answer::of(self.face.exchange_refused(&request("PATCH", path, &headers, &body)))
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
        let headers = format!("{}{headers}", self.authorization(who));
        let mut answer = Answer::of(self.face.exchange_refused(&request(method, path, &headers, body)));
        if nodes::count() > 1 {
            hold_still(&mut answer.body);
        }
        answer
    }

    /// The same where the response is not JSON.
    pub fn bytes(
        &self,
        who: As,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> (u16, String, Vec<u8>) {
        let headers = format!("{}{headers}", self.authorization(who));
        self.face.exchange_bytes(&request(method, path, &headers, body))
    }

    /// The header line with its end; empty without credentials.
    fn authorization(&self, who: As) -> String {
        let token = match who {
            As::Acme => key("acmeadmin001"),
            As::Bolt => key("boltadmin001"),
            As::Listener => key("acmelistener"),
            As::Nobody => String::new(),
            As::Operator => self.operator().to_owned(),
            As::Reader => key("acmereader01"),
            As::Rooms => key("acmerooms001"),
            As::Supervisor => self.log_in("supervisor@acme.test", "the supervisor's own"),
        };
        if token.is_empty() { token } else { format!("Authorization: Bearer {token}\r\n") }
    }

    /// The operator's session, the same one for all their requests, because logins are rate limited.
    fn operator(&self) -> &str {
        self.operator.get_or_init(|| self.log_in("operator@acme.test", "the operator's own"))
    }

    fn log_in(&self, email: &str, password: &str) -> String {
        let body = json!({"email": email, "password": password}).to_string();
        let headers = "Content-Type: application/json\r\n";
        let answer =
            Answer::of(self.face.exchange_refused(&request("POST", "/auth/login", headers, body.as_bytes())));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["token"].as_str().unwrap().to_owned()
    }
}

/// Sets `updated_at` to its value at the desk, whose clock stands still; that of a node does not.
fn hold_still(body: &mut Value) {
    match body {
        Value::Object(fields) => {
            if let (Some(created), true) =
                (fields.get("created_at").cloned(), fields.contains_key("updated_at"))
            {
                fields.insert("updated_at".to_owned(), created);
            }
            fields.values_mut().for_each(hold_still);
        }
        Value::Array(items) => items.iter_mut().for_each(hold_still),
        _ => {}
    }
}

/// The rules common to all managed resources: who may do what with the one at `path` of the collection, and the
/// responses to invalid ids.
pub fn hold_the_rules(desk: &Desk, collection: &str, id: &str, read: &str, write: &str) {
    hold_the_rules_for(desk, collection, id, read, write, As::Rooms);
}

/// [`hold_the_rules`], where `without` has neither permission.
pub fn hold_the_rules_for(desk: &Desk, collection: &str, id: &str, read: &str, write: &str, without: As) {
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
        let answer = desk.send(without, method, &path, body.clone());
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
    let answer = desk.get(As::Operator, &format!("{collection}/%FF"));
    assert_eq!((answer.status, answer.message()), (400, "id: must be a UUID"), "not UTF-8");
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
