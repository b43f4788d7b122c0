//! A worker over a real store: its clock is controlled by the test, and its endpoints respond immediately as scripted.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::json;
use sidetone::provision::{Declaration, apply};
use sidetone::webhooks::post::{Carried, Carrier, Outgoing};
use sidetone::webhooks::service::WebhookService;
use sidetone::webhooks::worker::Worker;
use sidetone_model::access::Scope;
use sidetone_model::directory::Secret;
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{NodeId, OrganisationId, WebhookId};
use sidetone_model::page::{Page, Window};
use sidetone_model::time::Timestamp;
use sidetone_model::webhook::{
    DeliveryFilter, DeliveryRecord, DeliveryStatus, NewWebhook, WebhookChange, WebhookRecord, Webhooks,
};
use sidetone_store::Store;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::common::database::{Kind, TestDatabase};
use crate::common::records::{TempDir, at};

pub const SECOND_US: i64 = 1_000_000;
pub const HOUR_US: i64 = 3600 * SECOND_US;

/// The response of an endpoint at an instant.
pub type Script = Arc<dyn Fn(&Outgoing, Timestamp) -> Carried + Send + Sync>;

/// Two organisations, a worker, and all sent requests.
pub struct World {
    pub store: Store,
    pub service: Arc<WebhookService>,
    pub acme: OrganisationId,
    pub bolt: OrganisationId,
    pub clock: Arc<AtomicI64>,
    pub sent: Arc<Sent>,
    pub worker: Worker,
    script: Script,
    pub database: TestDatabase,
    _dir: TempDir,
}

/// All sent requests, in order.
#[derive(Default)]
pub struct Sent(Mutex<Vec<(Timestamp, Outgoing)>>);

impl Sent {
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub fn all(&self) -> Vec<(Timestamp, Outgoing)> {
        self.0.lock().clone()
    }

    /// The number of requests for each event.
    pub fn by_event(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (_, request) in self.0.lock().iter() {
            *counts.entry(header(request, "webhook-id").to_owned()).or_default() += 1;
        }
        counts
    }
}

/// The header of that name.
pub fn header<'a>(request: &'a Outgoing, name: &str) -> &'a str {
    let mut found = request.headers.iter().filter(|(known, _)| *known == name);
    let value = &found.next().unwrap_or_else(|| panic!("no {name}: {:?}", request.headers)).1;
    assert!(found.next().is_none(), "{name} is sent twice");
    value
}

/// A response with only a status.
pub fn answered(status: u16) -> Carried {
    Carried { status: Some(status), ..Carried::default() }
}

/// Responds immediately.
struct Told {
    script: Script,
    clock: Arc<AtomicI64>,
    sent: Arc<Sent>,
}

impl Carrier for Told {
    fn carry(&self, request: Outgoing) -> Pin<Box<dyn Future<Output = Carried> + Send + '_>> {
        let now = Timestamp::from_micros(self.clock.load(Ordering::SeqCst));
        let carried = (self.script)(&request, now);
        self.sent.0.lock().push((now, request));
        Box::pin(async move { carried })
    }
}

impl World {
    /// A world on a database of that kind, whose endpoints respond as `script` defines.
    pub async fn new(
        kind: Kind,
        seed: u64,
        script: impl Fn(&Outgoing, Timestamp) -> Carried + Send + Sync + 'static,
    ) -> Self {
        let dir = TempDir::new();
        let database = TestDatabase::new(kind, dir.path()).await;
        let store = Store::open(&database.database).await.unwrap();
        let [acme, bolt] = organisations(&store).await;
        let clock = Arc::new(AtomicI64::new(at(0).as_micros()));
        let wake = Arc::new(Notify::new());
        let service = Arc::new(WebhookService::new(store.clone(), StdRng::seed_from_u64(seed), wake));
        let (script, sent): (Script, Arc<Sent>) = (Arc::new(script), Arc::default());
        let worker = worker(&store, 1, seed, &script, &clock, &sent);
        Self { store, service, acme, bolt, clock, sent, worker, script, database, _dir: dir }
    }

    /// Another worker on the same database, as another node.
    pub fn another(&self, node: u128) -> Worker {
        worker(&self.store, node, 77, &self.script, &self.clock, &self.sent)
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.load(Ordering::SeqCst))
    }

    pub fn set(&self, now: Timestamp) {
        assert!(now >= self.now(), "time goes on");
        self.clock.store(now.as_micros(), Ordering::SeqCst);
    }

    pub fn pass(&self, micros: i64) {
        self.clock.fetch_add(micros, Ordering::SeqCst);
    }

    /// A webhook of `organisation` for all events.
    pub async fn webhook(&self, organisation: OrganisationId, path: &str) -> (WebhookRecord, Secret) {
        let new = NewWebhook {
            organisation_id: organisation,
            url: format!("https://hooks.example{path}"),
            events: vec!["*".parse().unwrap()],
            description: String::new(),
            active: true,
        };
        self.service.create(new, self.now()).await.unwrap()
    }

    /// Stores `count` events of `organisation` now, and returns their ids.
    pub async fn events(&self, organisation: OrganisationId, count: usize) -> Vec<String> {
        let events: Vec<Event> = (0..count)
            .map(|number| {
                let data = json!({"number": number});
                Event::of(EventKind::CallEnded, organisation, None, self.now(), &data)
            })
            .collect();
        self.store.store_events(&events).await.unwrap();
        events.iter().map(|event| event.id.to_string()).collect()
    }

    /// Works until nothing is due at this instant; returns when the next work is due.
    pub async fn settle(&mut self) -> Option<Timestamp> {
        loop {
            let turn = self.worker.turn().await.unwrap();
            let busy = self.worker.busy() > 0;
            self.worker.finish_posts().await;
            if !turn.moved && !busy {
                return turn.next_at;
            }
        }
    }

    /// Works, and lets time pass from one due delivery to the next, up to `end`.
    pub async fn work_until(&mut self, end: Timestamp) {
        while let Some(next) = self.settle().await {
            if next > end {
                break;
            }
            self.set(next);
        }
        self.set(end);
        self.settle().await;
    }

    /// Works until nothing is waiting, however long that takes.
    pub async fn work_off(&mut self) {
        while let Some(next) = self.settle().await {
            self.set(next);
        }
    }

    pub async fn read(&self, webhook: WebhookId) -> WebhookRecord {
        self.store.webhook(webhook).await.unwrap().unwrap()
    }

    pub async fn change(&self, webhook: WebhookId, change: WebhookChange) -> WebhookRecord {
        self.service.change(Scope::Everything, webhook, change, self.now()).await.unwrap()
    }

    pub async fn deliveries(
        &self,
        webhook: WebhookId,
        status: Option<DeliveryStatus>,
    ) -> Page<DeliveryRecord> {
        let window = Window::at(0, 500);
        self.store
            .webhook_deliveries(Scope::Everything, webhook, DeliveryFilter { status }, window)
            .await
            .unwrap()
    }
}

/// The change that switches a webhook on or off.
pub fn active(active: bool) -> WebhookChange {
    WebhookChange { active: Some(active), ..WebhookChange::default() }
}

async fn organisations(store: &Store) -> [OrganisationId; 2] {
    let text = "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n\
                [[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n";
    let declaration = Declaration::parse(text.parse().unwrap()).unwrap();
    apply(store, &[declaration], false, at(0), &mut StdRng::seed_from_u64(1)).await.unwrap();
    let directory = store.directory().await.unwrap();
    let id = |name: &str| directory.organisations.iter().find(|found| found.name == name).unwrap().id;
    [id("Acme"), id("Bolt")]
}

fn worker(
    store: &Store,
    node: u128,
    seed: u64,
    script: &Script,
    clock: &Arc<AtomicI64>,
    sent: &Arc<Sent>,
) -> Worker {
    let carrier = Told { script: Arc::clone(script), clock: Arc::clone(clock), sent: Arc::clone(sent) };
    let told = Arc::clone(clock);
    Worker::new(
        store.clone(),
        NodeId(Uuid::from_u128(node)),
        Arc::new(carrier),
        Arc::new(move || Timestamp::from_micros(told.load(Ordering::SeqCst))),
        StdRng::seed_from_u64(seed),
        Arc::new(Notify::new()),
    )
}

/// Waits until `holds` is true, for as long as a slow machine may need.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = std::time::Instant::now() + Duration::from_secs(90);
    while !holds().await {
        assert!(std::time::Instant::now() < deadline, "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
