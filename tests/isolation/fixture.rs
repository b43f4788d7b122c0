//! Two tenants with the same resources under recognisable names, behind a complete engine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone::clock::wall_clock;
use sidetone_model::access::{Permission, Scope};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, ConferenceSessionId, LegId, NodeId, OrganisationId, RoomId, TeamId};
use sidetone_model::ports::CdrSink;
use sidetone_model::room::event::Person;
use sidetone_model::room::rows::{PersonRow, Rows, SessionRow};
use sidetone_model::room::{NewRoom, Pin, Role, RoomPin, Rooms as _};
use sidetone_model::signalling::CallSignalling;
use sidetone_phone::{Answering, CallPlan, Phone};
use sidetone_store::Store;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::common::nodes::{self, Nodes};
use crate::common::records::{TempDir, at, ended};
use crate::common::site;
use crate::isolation::client::{self, Answer};

/// Every user's password.
pub const PASSWORD: &str = "correct horse battery staple";

/// The engine and its two tenants.
pub struct Fixture {
    pub acme: Tenant,
    pub bolt: Tenant,
    /// The engine's own store, which works only on the engine's runtime: a connection ends with the runtime that opened
    /// it.
    pub store: Store,
    runtime: Handle,
    /// The URL of the database for another client.
    pub database_url: String,
    address: SocketAddr,
    operator: String,
    requests: AtomicU32,
    sessions: Mutex<BTreeMap<String, String>>,
    _stop: oneshot::Sender<()>,
    _thread: JoinHandle<()>,
}

/// One of the two tenants.
pub struct Tenant {
    /// A string in every text of the tenant.
    pub plant: String,
    pub organisation: String,
    /// A key with every permission.
    pub key: String,
    /// Its resources by name, such as `team.red`.
    pub ids: BTreeMap<String, String>,
}

impl Tenant {
    /// The id of a resource of this tenant.
    pub fn id(&self, name: &str) -> String {
        self.ids.get(name).unwrap_or_else(|| panic!("the fixture has no {name}: {:?}", self.ids)).clone()
    }

    /// A resource that `team_id`, `extension_id` and the like may name.
    pub fn id_for(&self, field: &str) -> String {
        let kind = field.strip_suffix("_id").unwrap();
        let mut named = self.ids.iter().filter(|(name, _)| name.split('.').next() == Some(kind));
        named.next().map_or_else(|| "00000000-0000-0000-0000-00000000abcd".to_owned(), |(_, id)| id.clone())
    }

    /// The address that a user logs in with.
    pub fn user(&self, who: &str) -> String {
        format!("{who}@{}.test", self.plant)
    }

    /// A key with every permission but one.
    pub fn key_without(&self, permission: &str) -> String {
        let at = Permission::ALL.iter().position(|known| known.as_str() == permission).unwrap();
        key(&format!("{}without{at:02}", self.plant))
    }
}

impl Fixture {
    /// The fixture shared by tests that change nothing.
    pub fn shared() -> &'static Fixture {
        static SHARED: LazyLock<Fixture> = LazyLock::new(Fixture::new);
        &SHARED
    }

    /// A new fixture.
    pub fn new() -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let dir = TempDir::new();
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.unwrap();
            runtime.block_on(async {
                site::declare(dir.path(), &directory()).await;
                let mut config = site::config(dir.path());
                // Each caller without a token has its own address.
                config.http.settings.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
                config.signalling.keep_days = 1;
                // Its phones send no audio, and their calls are up for the whole program.
                config.media.timeout = None;
                // Webhooks are sent to this host, where nothing listens.
                config.outbound_http.allow_addresses = vec!["127.0.0.1/32".parse().unwrap()];
                let nodes = Nodes::start(&config).await;
                let phones = talking(nodes.first.sip[0]).await;
                let store = nodes.first.store.clone();
                let database_url = crate::common::chosen::url_in(dir.path());
                started.send((nodes.http, store, database_url, Handle::current())).unwrap();
                let _ = stopped.await;
                let (engine, others) = nodes.into_parts();
                engine.stop(Duration::ZERO).await;
                nodes::stop(others).await;
                drop(phones);
            });
        });
        let (address, store, database_url, runtime) = start.recv().unwrap();
        let mut fixture = Self {
            acme: tenant("acmeplant"),
            bolt: tenant("boltplant"),
            store,
            runtime,
            database_url,
            address,
            operator: String::new(),
            requests: AtomicU32::new(0),
            sessions: Mutex::default(),
            _stop: stop,
            _thread: thread,
        };
        fixture.operator = fixture.session("operator@house.test");
        let names = ["acmeplant", "boltplant"];
        let [mut acme, mut bolt] = names.map(|name| fixture.furnish(name));
        fixture.on_engine(store_records(&fixture.store, &[&acme, &bolt]));
        fixture.on_engine(store_sessions(&fixture.store, [&mut acme, &mut bolt]));
        for tenant in [&acme, &bolt] {
            for team in ["blue", "red"] {
                let path = format!("/conversations/{}", tenant.id(&format!("conversation.{team}")));
                fixture.operate("PUT", &path, conversation(&tenant.plant, &tenant.ids, team));
            }
            let (room, session) = (tenant.id("room"), tenant.id("session"));
            let path = format!("/conference-rooms/{room}/sessions/{session}/meeting");
            fixture.operate("PUT", &path, meeting(&tenant.plant, &tenant.id("agent.blue")));
            fixture.wait_for_room(&room);
        }
        fixture.acme = acme;
        fixture.bolt = bolt;
        fixture
    }

    /// Runs work of the store on the engine's runtime, and waits for it.
    pub fn on_engine<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Sends a request; one without a token comes from a unique address.
    pub fn send(&self, method: &str, path: &str, token: Option<&str>, body: &Value) -> Answer {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let from = format!("198.18.{}.{}", number / 250, number % 250 + 1);
        let from = if token.is_none() { Some(from.as_str()) } else { None };
        client::send(self.address, from, method, path, token, body)
    }

    /// The token of a user's session.
    pub fn session(&self, email: &str) -> String {
        if let Some(token) = self.sessions.lock().unwrap().get(email) {
            return token.clone();
        }
        let token = self.log_in(email);
        self.sessions.lock().unwrap().insert(email.to_owned(), token.clone());
        token
    }

    /// The token of a new session.
    pub fn log_in(&self, email: &str) -> String {
        let body = json!({"email": email, "password": PASSWORD});
        let answer = self.send("POST", "/api/v1/auth/login", None, &body);
        assert_eq!(answer.status, 200, "{email}: {}", answer.text);
        answer.json()["token"].as_str().unwrap().to_owned()
    }

    /// The engine's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The operator's session.
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// Whether an id belongs to no single tenant.
    pub fn is_shared(&self, id: &str) -> bool {
        self.acme.ids.values().any(|own| own == id) && self.bolt.ids.values().any(|own| own == id)
    }

    /// The response to the operator, which must be a success.
    fn operate(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.send(method, &format!("/api/v1{path}"), Some(&self.operator), &body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.text);
        answer.json()
    }

    /// Waits until the switch of each node has read a room that was created in the store: from then on a wrong target
    /// is reported as the error.
    fn wait_for_room(&self, room: &str) {
        let path = format!("/api/v1/conference-rooms/{room}/dial");
        let unknown = json!({"kind": "extension", "target": "9999", "role": "participant"});
        let mut known = 0;
        for _ in 0..ROOM_POLLS {
            let answer = self.send("POST", &path, Some(&self.operator), &unknown);
            if answer.status == 404 {
                known = 0;
                std::thread::park_timeout(Duration::from_millis(100));
                continue;
            }
            assert!([400, 422].contains(&answer.status), "{path}: {} {}", answer.status, answer.text);
            known += 1;
            if known == nodes::count() {
                return;
            }
        }
        panic!("the switch does not know the room {room}");
    }

    /// Places a call of a team that ends by itself, and returns its request once it has ended.
    fn requested(&self, plant: &str, ids: &BTreeMap<String, String>, team: &str) -> String {
        let call = json!({"from": ids[&format!("extension.{team}")], "to": "1003", "max_seconds": 1,
            "reference": format!("{plant} {team}plant")});
        let placed = self.operate("POST", "/calls", call);
        let id = placed["call_request_id"].as_str().unwrap().to_owned();
        for _ in 0..CALL_POLLS {
            let request = self.operate("GET", &format!("/call-requests/{id}"), Value::Null);
            if request["cdr"] == placed["call_uuid"] {
                assert_eq!(request["state"], "completed", "{request}");
                return id;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the call is not over: {id}");
    }

    /// Creates what an apply file cannot declare, and collects the ids of everything.
    fn furnish(&self, plant: &str) -> Tenant {
        let mut tenant = tenant(plant);
        let find = |path: &str, field: &str, value: &str| {
            let page = self.operate("GET", path, Value::Null);
            let items = page["items"].as_array().unwrap().clone();
            let found = items.into_iter().find(|item| item[field] == value);
            found.unwrap_or_else(|| panic!("{path}: no {field} {value}"))["id"].as_str().unwrap().to_owned()
        };
        let organisation = find("/organisations?limit=500", "name", &format!("{plant} Ltd"));
        let of = |path: &str| format!("{path}?limit=500&organisation_id={organisation}");
        let mut ids = BTreeMap::from([("organisation".to_owned(), organisation.clone())]);
        for team in ["red", "blue", "empty"] {
            ids.insert(format!("team.{team}"), find(&of("/teams"), "name", &format!("{plant} {team}plant")));
        }
        for (name, number) in [("red", "1001"), ("blue", "1002"), ("spare", "1003")] {
            ids.insert(format!("extension.{name}"), find(&of("/extensions"), "number", number));
        }
        let digit = if plant.starts_with('a') { 1 } else { 2 };
        ids.insert("number".to_owned(), find(&of("/numbers"), "number", &format!("+44207946000{digit}")));
        let trunk = json!({"name": format!("{plant} trunk"), "address": format!("sip:192.0.2.{digit}:5060"),
            "organisation_id": organisation});
        let id = |made: Value| made["id"].as_str().unwrap().to_owned();
        ids.insert("trunk".to_owned(), id(self.operate("POST", "/trunks", trunk)));
        for user in ["supervisor", "spare", "gone"] {
            ids.insert(format!("user.{user}"), find(&of("/users"), "email", &tenant.user(user)));
        }
        ids.insert("prompt".to_owned(), "alone".to_owned());
        ids.insert("key".to_owned(), find(&of("/api-keys"), "name", &format!("{plant} spare")));
        for (name, team) in [("blue", "blue"), ("red", "red"), ("spare", "blue")] {
            let agent = json!({"name": format!("{plant} {team}plant {name}"), "kind": "human",
                "team_id": ids[&format!("team.{team}")], "organisation_id": organisation});
            ids.insert(format!("agent.{name}"), id(self.operate("POST", "/agents", agent)));
        }
        let empty = json!({"name": format!("{plant} empty"), "sip_domain": format!("empty.{plant}.test")});
        ids.insert("organisation.empty".to_owned(), id(self.operate("POST", "/organisations", empty)));
        ids.insert(
            "price".to_owned(),
            id(self.operate("POST", "/ai-prices", ai_price(plant, &organisation))),
        );
        let spare = json!({"name": format!("{plant} spare"), "address": format!("sip:192.0.2.1{digit}:5060"),
            "organisation_id": organisation});
        ids.insert("trunk.spare".to_owned(), id(self.operate("POST", "/trunks", spare)));
        let sell = json!({"organisation_id": organisation, "prefix": "+44", "per_minute": "0.01", "currency": "EUR"});
        ids.insert("sell_rate".to_owned(), id(self.operate("POST", "/sell-rates", sell)));
        let cost =
            json!({"trunk_id": ids["trunk"], "prefix": "+44", "per_minute": "0.008", "currency": "USD"});
        ids.insert("cost_rate".to_owned(), id(self.operate("POST", "/cost-rates", cost)));
        let from = if digit == 1 { "USD" } else { "GBP" };
        let fx = json!({"from": from, "to": "EUR", "rate": "0.92", "from_time": "2026-01-01T00:00:00Z"});
        ids.insert("fx_rate".to_owned(), id(self.operate("POST", "/fx-rates", fx)));
        let live = self.operate("GET", &of("/calls"), Value::Null);
        for team in ["red", "blue"] {
            let is_theirs = |call: &&Value| {
                call["team_id"] == ids[&format!("team.{team}")].as_str() && call["destination"] == "1003"
            };
            let call = live["items"].as_array().unwrap().iter().find(is_theirs);
            let call = call.unwrap_or_else(|| panic!("no live call of the {team} team: {live}"));
            ids.insert(format!("call.{team}"), call["uuid"].as_str().unwrap().to_owned());
        }
        for (name, number) in [("room", "200"), ("room.spare", "201"), ("room.red", "202")] {
            ids.insert(name.to_owned(), find(&of("/conference-rooms"), "number", number));
        }
        ids.insert("live_room".to_owned(), format!("svc-room-{}", ids["room"]));
        // The second member: the room stays live without it.
        ids.insert("member".to_owned(), "2".to_owned());
        let call = live["items"].as_array().unwrap().iter().find(|call| call["destination"] == "200");
        let call = call.unwrap_or_else(|| panic!("nobody called the room: {live}"));
        ids.insert("call.room".to_owned(), call["uuid"].as_str().unwrap().to_owned());
        for (name, path) in [("webhook", ""), ("webhook.spare", "/spare")] {
            let hook = json!({"url": format!("https://127.0.0.1/{plant}{path}"), "events": ["conference.*"],
                "organisation_id": organisation});
            ids.insert(name.to_owned(), id(self.operate("POST", "/webhooks", hook)));
        }
        let test = format!("/webhooks/{}/test", ids["webhook"]);
        ids.insert("delivery".to_owned(), id(self.operate("POST", &test, Value::Null)));
        for (name, record) in records(plant, &organisation, &ids) {
            ids.insert(format!("cdr.{name}"), record.call_uuid.to_string());
            ids.insert(
                format!("conversation.{name}"),
                Uuid::from_u128(record.call_uuid.0.as_u128() + 1000).to_string(),
            );
        }
        for team in ["red", "blue"] {
            ids.insert(format!("request.{team}"), self.requested(plant, &ids, team));
        }
        tenant.organisation = organisation;
        tenant.ids = ids;
        tenant
    }
}

/// The phones of both tenants, once a phone of each team talks to one of no team.
async fn talking(sip: SocketAddr) -> Vec<Arc<Phone>> {
    let mut phones = Vec::new();
    for plant in ["acmeplant", "boltplant"] {
        let mut registered = Vec::new();
        for number in ["1001", "1002", "1003"] {
            let quiet = Answering::Answer { after: Duration::ZERO, talk: None };
            let mut config = site::phone_config(sip, number, quiet);
            config.domain = format!("{plant}.test");
            registered.push(Arc::new(site::registered(config).await));
        }
        for caller in &registered[..2] {
            let (mut calls, caller) = (caller.calls(), Arc::clone(caller));
            tokio::spawn(
                async move { caller.call(CallPlan { talk_time: None, ..CallPlan::to("1003") }).await },
            );
            site::within("a call", calls.wait_for(|calls| calls.up == 1)).await.unwrap();
        }
        // A room with a member of the blue team and one without a team, and a room with a member of the red team.
        for (at, room, up) in [(0, "202", 2), (1, "200", 2), (2, "200", 3)] {
            let (mut calls, phone) = (registered[at].calls(), Arc::clone(&registered[at]));
            tokio::spawn(async move { phone.call(CallPlan { talk_time: None, ..CallPlan::to(room) }).await });
            site::within("a room", calls.wait_for(|calls| calls.up == up)).await.unwrap();
        }
        phones.extend(registered);
    }
    phones
}

fn tenant(plant: &str) -> Tenant {
    let key = key(&format!("{plant}all"));
    Tenant { plant: plant.to_owned(), organisation: String::new(), key, ids: BTreeMap::new() }
}

/// One call of each team.
fn records(plant: &str, organisation: &str, ids: &BTreeMap<String, String>) -> Vec<(&'static str, Cdr)> {
    let first = if plant.starts_with('a') { 0xA0 } else { 0xB0 };
    let of = |number: u128, team: &str| Cdr {
        organisation_id: OrganisationId(organisation.parse().unwrap()),
        team_id: Some(TeamId(ids[&format!("team.{team}")].parse().unwrap())),
        extension_id: ids[&format!("extension.{team}")].parse().ok(),
        agent_id: ids[&format!("agent.{team}")].parse().ok(),
        caller_number: Some(format!("{plant}-{team}plant")),
        started_at: at(i64::try_from(number).unwrap()),
        ..ended(first + number)
    };
    vec![("red", of(1, "red")), ("blue", of(2, "blue"))]
}

/// The report of a conversation on a team's call.
pub fn conversation(plant: &str, ids: &BTreeMap<String, String>, team: &str) -> Value {
    json!({
        "organisation_id": ids["organisation"],
        "call_uuid": ids[&format!("cdr.{team}")],
        "agent_id": ids[&format!("agent.{team}")],
        "agent_kind": "human",
        "direction": "inbound",
        "started_at": "2026-01-01T00:00:02.000Z",
        "summary": format!("{plant} and {team}plant"),
        "turns": [{"seq": 1, "at": "2026-01-01T00:00:03.000Z", "role": "caller", "text": format!("{team}plant")}],
    })
}

/// A price of a single organisation.
pub fn ai_price(plant: &str, organisation: &str) -> Value {
    json!({"kind": "sell", "organisation_id": organisation, "provider": plant, "model": "first",
        "text_input_per_million": "1.00", "output_per_million": "2.00", "currency": "EUR"})
}

async fn store_records(store: &Store, tenants: &[&Tenant]) {
    let all: Vec<Cdr> = tenants
        .iter()
        .flat_map(|tenant| records(&tenant.plant, &tenant.organisation, &tenant.ids))
        .map(|(_, record)| record)
        .collect();
    let kept = CallSignalling::default();
    let signalling: Vec<_> =
        all.iter().map(|record| (record.call_uuid, record.organisation_id, wall_clock(), &kept)).collect();
    store.store(&all).await.unwrap();
    store.store_signalling(NodeId(Uuid::nil()), 1, &signalling).await.unwrap();
}

/// A room of each tenant with a past session.
async fn store_sessions(store: &Store, tenants: [&mut Tenant; 2]) {
    for tenant in tenants {
        let organisation_id = OrganisationId(tenant.organisation.parse().unwrap());
        let name = format!("{} blueplant", tenant.plant);
        let new = NewRoom {
            organisation_id,
            name: name.clone(),
            number: "70".to_owned(),
            participant_pin: RoomPin::Given(Pin::default()),
            moderator_pin: Pin::default(),
            wait_for_moderator: false,
            end_when_moderator_leaves: false,
            record: false,
            record_channels: 1,
            announce_names: false,
            max_members: 0,
            minutes_email: String::new(),
        };
        let room = store.create(Scope::Everything, new, at(0)).await.unwrap().id;
        let rows = session(room, organisation_id, &name);
        store.store_sessions(NodeId(Uuid::nil()), &rows).await.unwrap();
        tenant.ids.insert("room".to_owned(), room.to_string());
        tenant.ids.insert("named_room".to_owned(), format!("svc-room-{room}"));
        tenant.ids.insert("session".to_owned(), rows.sessions[0].id.to_string());
    }
}

fn session(room: RoomId, organisation_id: OrganisationId, name: &str) -> Rows {
    let id = ConferenceSessionId(Uuid::from_u128(room.0.as_u128() ^ 1));
    let session = SessionRow {
        id,
        organisation_id,
        room: room.into(),
        room_id: Some(room),
        room_name: name.to_owned(),
        started_at: at(0),
        ended_at: Some(at(60)),
        seen_at: at(60),
        peak_members: 1,
        is_recorded: false,
        is_recording: false,
        recording_channels: 1,
        events: 0,
        revision: 2,
    };
    let person = Person {
        member: 1,
        name: name.to_owned(),
        number: "1002".to_owned(),
        role: Role::Participant,
        extension_id: None,
        team_id: None,
        call_uuid: CallId(Uuid::from_u128(room.0.as_u128() ^ 2)),
        leg: LegId(Uuid::from_u128(room.0.as_u128() ^ 3)),
        joined_at: at(0),
    };
    let person = PersonRow { session: id, organisation_id, person, left_at: Some(at(60)), talked_ms: 0 };
    Rows { sessions: vec![session], people: vec![person], ..Rows::default() }
}

/// The report of a meeting.
pub fn meeting(plant: &str, agent: &str) -> Value {
    json!({
        "agent": {"id": agent, "name": format!("{plant} scribe")},
        "state": "ready",
        "minutes": format!("{plant} blueplant"),
        "turns": [{"seq": 1, "at": "2026-01-01T00:00:03.000Z", "speaker": "Ada", "text": format!("{plant} blueplant")}],
    })
}

/// The text of the key with that id.
fn key(id: &str) -> String {
    format!("tel_{id}_0123456789abcdefghijklmnopqrstuvwxyz")
}

/// The apply file: the operator's own organisation, and the two tenants.
fn directory() -> String {
    let user = |email: &str, role: &str, team: &str| {
        let team = if team.is_empty() { String::new() } else { format!("team = \"{team}\"\n") };
        format!(
            "[[organisations.users]]\nemail = \"{email}\"\npassword = \"{PASSWORD}\"\nrole = \"{role}\"\n{team}"
        )
    };
    let all: Vec<&str> = Permission::ALL.iter().map(|permission| permission.as_str()).collect();
    let api_key = |id: &str, name: &str, permissions: &[&str]| {
        format!(
            "[[organisations.api_keys]]\nname = \"{name}\"\nkey = \"{}\"\npermissions = {permissions:?}\n\
             allow = [\"127.0.0.1\"]\nrate_per_minute = 60000\n",
            key(id)
        )
    };
    let mut text = "[[organisations]]\nname = \"House\"\nsip_domain = \"house.test\"\n".to_owned();
    text += &user("operator@house.test", "operator", "");
    for (digit, plant) in [(1, "acmeplant"), (2, "boltplant")] {
        text += &format!("[[organisations]]\nname = \"{plant} Ltd\"\nsip_domain = \"{plant}.test\"\n");
        for team in ["red", "blue", "empty"] {
            text += &format!("[[organisations.teams]]\nname = \"{plant} {team}plant\"\n");
        }
        for (number, team) in [("1001", "red"), ("1002", "blue"), ("1003", "")] {
            text += &format!(
                "[[organisations.extensions]]\nnumber = \"{number}\"\nname = \"{plant} {team}plant phone\"\n\
                 password = \"{PASSWORD}\"\n"
            );
            if !team.is_empty() {
                text += &format!("team = \"{plant} {team}plant\"\n");
            }
        }
        text += &format!(
            "[[organisations.numbers]]\nnumber = \"+44207946000{digit}\"\ndestination = {{ extension = \"1001\" }}\n"
        );
        for (name, number) in [("blueplant", "200"), ("spare blueplant", "201"), ("redplant", "202")] {
            text += &format!("[[organisations.rooms]]\nname = \"{plant} {name}\"\nnumber = \"{number}\"\n");
        }
        for (who, role, team) in [
            ("admin", "org_admin", ""),
            ("member", "org_member", ""),
            ("supervisor", "team_supervisor", "red"),
            ("agent", "agent", "red"),
            ("spare", "org_member", ""),
            ("gone", "org_member", ""),
        ] {
            let team = if team.is_empty() { String::new() } else { format!("{plant} {team}plant") };
            text += &user(&format!("{who}@{plant}.test"), role, &team);
        }
        text += &api_key(&format!("{plant}all"), &format!("{plant} all"), &all);
        text += &api_key(&format!("{plant}spare"), &format!("{plant} spare"), &["calls:read"]);
        for (at, lacking) in all.iter().enumerate() {
            let others: Vec<&str> = all.iter().copied().filter(|permission| permission != lacking).collect();
            text += &api_key(&format!("{plant}without{at:02}"), &format!("{plant} without {at}"), &others);
        }
    }
    text
}

/// Requests until a room must be known: at least half a minute.
const ROOM_POLLS: u32 = 300;
/// Reads of a request until its call must have ended: at least two minutes.
const CALL_POLLS: u32 = 6_000;
