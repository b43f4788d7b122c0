//! Callbacks of requested calls: in order, at least once, on the schedule of webhooks, and without waiting for another
//! organisation's host.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone::call_requests::{CallbackCounters, CallbackSender};
use sidetone::clock::Clock;
use sidetone::webhooks::post::{Carried, Carrier, Outgoing};
use sidetone::webhooks::scheduler::PER_WEBHOOK_MAX;
use sidetone_model::access::Scope;
use sidetone_model::call_request::{CallRequest, RequestChange, RequestState};
use sidetone_model::directory::Secret;
use sidetone_model::ids::{CallId, CallRequestId, ExtensionId, NodeId, OrganisationId};
use sidetone_model::metrics::{Family, Sample, Value};
use sidetone_model::organisation::{OrganisationChange, Organisations};
use sidetone_model::time::Timestamp;
use sidetone_store::{ClaimedCallback, SettledCallback};
use tokio::sync::watch;
use uuid::Uuid;

use crate::common::database::kinds;
use crate::webhooks::world::{SECOND_US, World, answered, eventually, header};

const SECRET: &str = "a secret of sixteen and more";

impl World {
    async fn signing(&self, organisation: OrganisationId) {
        let callback_secret = Some(Secret(SECRET.to_owned()));
        let change = OrganisationChange { callback_secret, ..OrganisationChange::default() };
        self.store.change(Scope::Everything, organisation, change, self.now()).await.unwrap();
    }

    /// A stored request with callbacks.
    async fn request(&self, organisation: OrganisationId, path: &str) -> CallRequest {
        let request = CallRequest {
            id: CallRequestId(Uuid::now_v7()),
            call_uuid: CallId(Uuid::now_v7()),
            organisation_id: organisation,
            team_id: None,
            state: RequestState::Queued,
            reason: None,
            from: "1001".to_owned(),
            extension_id: ExtensionId(Uuid::from_u128(7)),
            to: "1002".to_owned(),
            reference: Some("ticket-4711".to_owned()),
            variables: BTreeMap::from([("customer".to_owned(), "4711".to_owned())]),
            callback_url: Some(format!("https://erp.example{path}")),
            created_at: self.now(),
            from_answered_at: None,
            to_answered_at: None,
            ended_at: None,
            cdr: None,
        };
        self.store.insert_request(NODE, &request, Box::new(|| {})).await.unwrap();
        request
    }

    async fn becomes(&self, request: &CallRequest, state: RequestState, reason: Option<&str>) {
        let reason = reason.map(str::to_owned);
        let change = RequestChange { call: request.call_uuid, state, reason, at: self.now() };
        self.store.change_request(&change).await.unwrap();
    }

    async fn claimed(&self, node: NodeId) -> Vec<ClaimedCallback> {
        let due = self.store.due_callbacks(self.now(), 100).await.unwrap();
        let grants = due.into_iter().map(|organisation| (organisation, PER_WEBHOOK_MAX)).collect();
        self.store.claim_callbacks(node, &grants, PER_WEBHOOK_MAX, self.now()).await.unwrap()
    }

    /// The due callback, by its type and the state in it.
    async fn next(&self) -> Option<(ClaimedCallback, String)> {
        let mut claimed = self.claimed(NODE).await;
        assert!(claimed.len() <= 1, "one at a time: {claimed:?}");
        let claimed = claimed.pop()?;
        let body: serde_json::Value = serde_json::from_str(&claimed.body).unwrap();
        assert_eq!(body["id"], claimed.id.to_string());
        assert_eq!(body["type"], claimed.kind);
        let shown = format!("{} {}", claimed.kind, body["data"]["state"].as_str().unwrap());
        Some((claimed, shown))
    }

    async fn ended(
        &self,
        callback: ClaimedCallback,
        error: Option<&str>,
        retry_at: Option<Timestamp>,
    ) -> bool {
        let settled = SettledCallback { callback, error: error.map(str::to_owned), retry_at };
        self.store.settle_callback(&settled, self.now()).await.unwrap()
    }
}

const NODE: NodeId = NodeId(Uuid::from_u128(1));
const OTHER: NodeId = NodeId(Uuid::from_u128(2));

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_a_request_are_sent_one_at_a_time_in_order() {
    for kind in kinds() {
        let world = World::new(kind, 1, |_, _| answered(200)).await;
        world.signing(world.acme).await;
        let request = world.request(world.acme, "/calls").await;
        assert_eq!(world.next().await, None, "nothing has happened");
        world.becomes(&request, RequestState::Ringing, None).await;
        world.becomes(&request, RequestState::Calling, None).await;
        world.becomes(&request, RequestState::Answered, None).await;
        let (ringing, shown) = world.next().await.unwrap();
        assert_eq!(shown, "ringing ringing");
        assert_eq!(ringing.secret, Some(Secret(SECRET.to_owned())));
        assert_eq!(world.next().await, None, "the first is on its way");
        let retry_at = world.now().plus_micros(5 * SECOND_US);
        assert!(world.ended(ringing.clone(), Some("the endpoint answered 500"), Some(retry_at)).await);
        world.becomes(&request, RequestState::Completed, None).await;
        // After the end nothing is changed or reported.
        world.becomes(&request, RequestState::Failed, Some("busy")).await;
        assert_eq!(world.next().await, None, "the first waits");
        assert_eq!(world.store.next_callback_due(world.now()).await.unwrap(), Some(retry_at));
        world.pass(5 * SECOND_US);
        let (again, _) = world.next().await.unwrap();
        assert_eq!((again.id, again.attempts), (ringing.id, 1));
        assert!(!world.ended(ringing, None, None).await, "it has another lease");
        assert!(world.ended(again, None, None).await);
        let (second, shown) = world.next().await.unwrap();
        assert_eq!(shown, "answered answered");
        // The last attempt has failed: the next report is due.
        assert!(world.ended(second, Some("the endpoint answered 500"), None).await);
        let (third, shown) = world.next().await.unwrap();
        assert_eq!(shown, "completed completed");
        assert!(world.ended(third, None, None).await);
        assert_eq!(world.next().await, None);
        assert_eq!(world.store.next_callback_due(world.now()).await.unwrap(), None);
        // Without a URL nothing is reported.
        let silent = CallRequest {
            id: CallRequestId(Uuid::now_v7()),
            call_uuid: CallId(Uuid::now_v7()),
            callback_url: None,
            ..request
        };
        world.store.insert_request(NODE, &silent, Box::new(|| {})).await.unwrap();
        world.becomes(&silent, RequestState::Ringing, None).await;
        assert_eq!(world.next().await, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_takes_over_and_a_restart_reports_what_it_ended() {
    for kind in kinds() {
        let world = World::new(kind, 1, |_, _| answered(200)).await;
        let request = world.request(world.acme, "/calls").await;
        world.becomes(&request, RequestState::Ringing, None).await;
        let first = world.claimed(OTHER).await.remove(0);
        assert_eq!(first.secret, None, "the organisation has none");
        world.pass(59 * SECOND_US);
        assert!(world.claimed(NODE).await.is_empty(), "it is leased");
        world.pass(2 * SECOND_US);
        let second = world.claimed(NODE).await.remove(0);
        assert_eq!(second.id, first.id);
        assert!(!world.ended(first, None, None).await, "its lease has expired");
        // The node restarts during the attempt and the call.
        world.store.free_callback_leases(NODE, world.now()).await.unwrap();
        assert_eq!(world.store.end_interrupted_requests(NODE, world.now()).await.unwrap(), 1);
        assert_eq!(world.store.end_interrupted_requests(NODE, world.now()).await.unwrap(), 0);
        assert!(!world.ended(second, None, None).await, "it was freed");
        let (again, shown) = world.next().await.unwrap();
        assert_eq!(shown, "ringing ringing");
        world.ended(again, None, None).await;
        let (last, shown) = world.next().await.unwrap();
        assert_eq!(shown, "completed failed");
        assert!(last.body.contains("\"reason\":\"node_restarted\""), "{}", last.body);
        world.ended(last, None, None).await;
        // A clock that was set far back does not delay callbacks.
        let later = world.request(world.acme, "/calls").await;
        world.pass(100 * 3600 * SECOND_US);
        world.becomes(&later, RequestState::Ringing, None).await;
        world.pass(-99 * 3600 * SECOND_US);
        assert!(world.next().await.is_some());
    }
}

/// The values of a metric.
fn values(family: &Family) -> Vec<u64> {
    let number = |sample: &Sample| match sample.value {
        Value::Number(number) => number,
        _ => panic!("{sample:?}"),
    };
    family.samples.iter().map(number).collect()
}

/// A host that never responds, and one that does and records the requests.
#[derive(Default)]
struct HalfHung {
    hung: AtomicUsize,
    sent: Mutex<Vec<Outgoing>>,
}

impl Carrier for HalfHung {
    fn carry(&self, request: Outgoing) -> Pin<Box<dyn Future<Output = Carried> + Send + '_>> {
        Box::pin(async move {
            if request.url.ends_with("/hangs") {
                self.hung.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            self.sent.lock().push(request);
            answered(200)
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_hangs_delays_no_other_organisation() {
    for kind in kinds() {
        let world = World::new(kind, 1, |_, _| answered(200)).await;
        world.signing(world.acme).await;
        world.signing(world.bolt).await;
        for _ in 0..40 {
            let request = world.request(world.acme, "/hangs").await;
            world.becomes(&request, RequestState::Ringing, None).await;
        }
        let carrier: Arc<HalfHung> = Arc::default();
        let (store, now) = (world.store.clone(), world.now());
        let clock: Clock = Arc::new(move || now);
        let rng = StdRng::seed_from_u64(1);
        let counters: Arc<CallbackCounters> = Arc::default();
        let sender = CallbackSender::new(store, NODE, carrier.clone(), clock, rng);
        let mut sender = sender.counted_by(Arc::clone(&counters));
        let stop = watch::Sender::new(false);
        let stopped = stop.subscribe();
        let running = tokio::spawn(async move { sender.run(stopped).await });
        eventually("the host hangs", async || carrier.hung.load(Ordering::SeqCst) == PER_WEBHOOK_MAX).await;
        let mut wanted = Vec::new();
        for _ in 0..5 {
            let request = world.request(world.bolt, "/well").await;
            for state in [RequestState::Ringing, RequestState::Answered, RequestState::Completed] {
                world.becomes(&request, state, None).await;
                wanted.push((request.id.to_string(), state.as_str()));
            }
        }
        eventually("all arrive", async || carrier.sent.lock().len() == wanted.len()).await;
        let sent: Vec<serde_json::Value> =
            carrier.sent.lock().iter().map(|sent| serde_json::from_slice(&sent.body).unwrap()).collect();
        for (id, kind) in &wanted {
            let kinds: Vec<_> = sent
                .iter()
                .filter(|body| body["data"]["id"] == id.as_str())
                .map(|body| &body["type"])
                .collect();
            assert_eq!(kinds, ["ringing", "answered", "completed"], "{kind}");
        }
        assert_eq!(header(&carrier.sent.lock()[0], "x-service-event"), "ringing");
        assert_eq!(carrier.hung.load(Ordering::SeqCst), PER_WEBHOOK_MAX, "16 at once and no more");
        // Delivered and failed callbacks, failed attempts, running attempts.
        let counted = || counters.families().map(|family| values(&family));
        eventually("all are counted", async || counted() == [vec![15, 0], vec![0], vec![16]]).await;
        stop.send_replace(true);
        running.await.unwrap();
    }
}
