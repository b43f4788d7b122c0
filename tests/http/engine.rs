//! The HTTP face with two organisations, their keys and a call log.

use std::sync::Arc;

use serde_json::Value;
use sidetone_api::{ApiState, Ports};
use sidetone_model::access::Scope;
use sidetone_model::cdr::Cdr;
use sidetone_model::event::{Event, Position};
use sidetone_model::ports::CdrSink;
use sidetone_model::rate_book::Accounts;
use sidetone_store::Store;
use tokio::runtime::Handle;

use crate::common::database::TestDatabase;
use crate::common::nodes;
use crate::common::records::at;
use crate::http::face::{Answer, Face, Ground, Ready, key, request};

/// Two organisations; `crm` reads calls, `boss` sees margins too, `rooms` may not read calls, `robot` reports
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

/// An agent of Acme with a fixed id.
const AGENT: &str =
    "INSERT INTO agents (id, organisation_id, name, kind, search, created_at_us, updated_at_us)
    SELECT '00000000-0000-0000-0000-0000000000a6', id, 'Robin', 'virtual', 'robin', 0, 0
    FROM organisations WHERE name = 'Acme'";

/// A running HTTP face; stops when dropped.
pub struct Engine {
    pub ids: Ids,
    face: Face,
    backstage: Backstage,
}

/// The parts behind the HTTP face.
struct Backstage {
    store: Store,
    database: Arc<TestDatabase>,
    runtime: Handle,
}

impl Engine {
    /// An engine with the call log that `records` builds for the ids of Acme and Bolt.
    pub fn start(records: fn(Ids) -> Vec<Cdr>) -> Self {
        Self::start_with(records)
    }

    /// [`Engine::start`] with a closure.
    pub fn start_with(records: impl FnOnce(Ids) -> Vec<Cdr> + Send + 'static) -> Self {
        let furnish = async move |ground: Ground| {
            let (store, database) = (ground.store, ground.database);
            let organisations = store.directory().await.unwrap().organisations;
            let ids = Ids { acme: organisations[0].id, bolt: organisations[1].id };
            database.texts(AGENT).await;
            store.store(&records(ids)).await.unwrap();
            (ids, Backstage { store, database, runtime: Handle::current() })
        };
        if nodes::count() > 1 {
            let (face, (ids, backstage)) = Face::of_nodes(DIRECTORY, |_| {}, furnish);
            return Self { ids, face, backstage };
        }
        let (face, (ids, backstage)) = Face::open(DIRECTORY, async move |ground| {
            let (ids, backstage) = furnish(ground).await;
            let shared = Arc::new(backstage.store.clone());
            let state = ApiState::new(
                Ports {
                    conversations: Some(shared.clone()),
                    field_checks: Some(shared.clone()),
                    ai_prices: Some(shared.clone()),
                    stored_quality: Some(shared.clone()),
                    leg_traces: Some(Arc::new(crate::http::call_trace::Kept)),
                    ..Ports::of_log(shared.clone(), shared.clone(), Arc::new(Ready))
                },
                Arc::new(|| at(100)),
            );
            (state, (ids, backstage))
        });
        Self { ids, face, backstage }
    }

    /// The stored events in `scope` after a position.
    pub fn stored_events(&self, scope: Scope, after: Position) -> Vec<Event> {
        let batch = self.backstage.runtime.block_on(self.backstage.store.events_after(scope, after, 500));
        batch.unwrap().events.into_iter().map(|placed| placed.event).collect()
    }

    /// The used credit of Acme.
    pub fn credit_used(&self) -> String {
        let account = self.backstage.runtime.block_on(self.backstage.store.account(self.ids.acme));
        account.unwrap().unwrap().used.to_text(2)
    }

    /// Stores one more record, as the end of its call does.
    pub fn store(&self, cdr: Cdr) {
        let stored = self.backstage.runtime.block_on(self.backstage.store.store(&[cdr]));
        assert_eq!(stored.unwrap().new, 1);
    }

    /// Stores an existing record again, as the replay of a journal does.
    pub fn store_again(&self, cdr: Cdr) {
        let stored = self.backstage.runtime.block_on(self.backstage.store.store(&[cdr]));
        assert_eq!(stored.unwrap().new, 0);
    }

    /// The number of rows that a query finds.
    pub fn rows(&self, query: &'static str) -> usize {
        self.backstage.runtime.block_on(self.backstage.database.texts(query)).len()
    }

    /// Changes the database in a way that no request can.
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
    pub fn get(&self, short_id: &str, path: &str) -> Answer {
        self.send(&format!("GET /api/v1{path} HTTP/1.1\r\nAuthorization: Bearer {}\r\n", key(short_id)))
    }

    /// `GET path` as HTTP/1.0, whose body ends with the connection: status, head in lower case, body unchanged.
    pub fn text(&self, short_id: &str, path: &str) -> (u16, String, String) {
        let token = key(short_id);
        let request = format!("GET /api/v1{path} HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n");
        self.face.exchange(request.as_bytes())
    }

    /// Sends a request, given as its lines without the last headers, and reads a response that is not JSON.
    pub fn send_for_text(&self, head: &str) -> (u16, String, String) {
        let request = format!("{head}Host: sidetone.test\r\nConnection: close\r\n\r\n");
        self.face.exchange(request.as_bytes())
    }

    /// Sends a request, given as its lines without the last headers.
    pub fn send(&self, head: &str) -> Answer {
        Answer::of(self.send_for_text(head))
    }

    /// `method path` with the key of that short id and a JSON body.
    pub fn call(&self, method: &str, short_id: &str, path: &str, body: &Value) -> Answer {
        let headers =
            format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", key(short_id));
        Answer::of(self.face.exchange(&request(method, path, &headers, body.to_string().as_bytes())))
    }

    /// `PUT path` with the key of that short id and this body: status and body, unchanged.
    pub fn put_text(&self, short_id: &str, path: &str, body: &str) -> (u16, String) {
        let headers =
            format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", key(short_id));
        let (status, _, answer) = self.face.exchange(&request("PUT", path, &headers, body.as_bytes()));
        (status, answer)
    }
}

/// The organisations of [`DIRECTORY`].
#[derive(Clone, Copy)]
pub struct Ids {
    pub acme: sidetone_model::ids::OrganisationId,
    pub bolt: sidetone_model::ids::OrganisationId,
}
