//! W4: a tenant whose endpoint hangs, with a long queue, beside another tenant.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone::clock::Clock;
use sidetone::outbound_http::Client;
use sidetone::webhooks::post::{Carried, Carrier, Outgoing};
use sidetone::webhooks::scheduler::{PER_WEBHOOK_MAX, PLACES, Scheduler};
use sidetone::webhooks::worker::Worker;
use sidetone_model::ids::{NodeId, WebhookId};
use sidetone_model::webhook::{DeliveryStatus, NewWebhook, Webhooks};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::common::database::kinds;
use crate::common::receiver::{Receiver, Reply};
use crate::common::records::TempDir;
use crate::webhooks::world::{World, answered, eventually, header};

/// The state machine alone, with 10⁵ deliveries queued for each hanging endpoint, and one that responds in 20 ms and
/// gets 100 events a second: two minutes in steps of 10 ms.
#[test]
fn the_machine_gives_a_healthy_endpoint_its_place() {
    const STEP_MS: u64 = 10;
    const HANG_MS: u64 = 15_000;
    for hanging in [1, 8, 40] {
        let hook = |number: u64| WebhookId(Uuid::from_u128(u128::from(number)));
        let healthy = hook(1_000);
        let mut scheduler = Scheduler::new(PLACES);
        let mut queues: BTreeMap<WebhookId, usize> = (0..hanging).map(|it| (hook(it), 100_000)).collect();
        let mut arrived: VecDeque<u64> = VecDeque::new();
        let mut ends: BTreeMap<u64, Vec<WebhookId>> = BTreeMap::new();
        let mut latencies: Vec<u64> = Vec::new();
        let mut most = 0;
        for now in (0..120_000).step_by(STEP_MS as usize) {
            for webhook in ends.remove(&now).unwrap_or_default() {
                scheduler.ended(webhook, 1);
            }
            arrived.push_back(now);
            let mut due: Vec<WebhookId> = queues.keys().copied().collect();
            due.push(healthy);
            for grant in scheduler.grant(&due) {
                most = most.max(scheduler.running(grant.owner));
                let mut used = 0;
                while used < grant.places {
                    let took = if grant.owner == healthy {
                        let Some(since) = arrived.pop_front() else { break };
                        latencies.push(now - since + 20);
                        20
                    } else {
                        *queues.get_mut(&grant.owner).unwrap() -= 1;
                        HANG_MS
                    };
                    used += 1;
                    ends.entry(now + took).or_default().push(grant.owner);
                }
                scheduler.ended(grant.owner, grant.places - used);
            }
            assert!(scheduler.total() <= PLACES);
        }
        latencies.sort_unstable();
        let (count, p99) = (latencies.len(), latencies[latencies.len() * 99 / 100]);
        eprintln!("W4, simulated: {hanging} endpoints hang, the healthy one's p99 of {count} is {p99} ms");
        assert!(count > 11_900, "the healthy endpoint waits: {count}");
        assert!(p99 < 2_000 && most <= PER_WEBHOOK_MAX, "{hanging}: p99 {p99} ms, {most} at once");
    }
}

/// An endpoint that never responds, and one that does; records its times, and the number of attempts of the first.
#[derive(Default)]
struct HalfHung {
    hung: AtomicUsize,
    answered: Mutex<Vec<(String, Instant)>>,
}

impl Carrier for HalfHung {
    fn carry(&self, request: Outgoing) -> Pin<Box<dyn Future<Output = Carried> + Send + '_>> {
        Box::pin(async move {
            if request.url.ends_with("/hangs") {
                self.hung.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            self.answered.lock().push((header(&request, "webhook-id").to_owned(), Instant::now()));
            answered(200)
        })
    }
}

/// The complete worker over a real store: 10⁴ deliveries wait for the hanging endpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_behind_a_hung_endpoint_delay_nobody_else() {
    for kind in kinds() {
        let world = World::new(kind, 1, |_, _| answered(200)).await;
        let (hung, _) = world.webhook(world.acme, "/hangs").await;
        let (well, _) = world.webhook(world.bolt, "/well").await;
        world.events(world.acme, 10_000).await;
        while !world.store.hand_out_events(world.now()).await.unwrap().is_last {}
        assert_eq!(world.store.webhook_queue_len().await.unwrap(), 10_000);

        let carrier: Arc<HalfHung> = Arc::default();
        let stop = watch::Sender::new(false);
        let running = run_worker(real_worker(&world, carrier.clone()), stop.subscribe());
        eventually("the endpoint hangs", async || carrier.hung.load(Ordering::SeqCst) == PER_WEBHOOK_MAX)
            .await;
        let mut caused = BTreeMap::new();
        for _ in 0..100 {
            let now = Instant::now();
            for id in world.events(world.bolt, 1).await {
                caused.insert(id, now);
            }
        }
        eventually("all arrive", async || carrier.answered.lock().len() == 100).await;
        let mut latencies: Vec<Duration> =
            carrier.answered.lock().iter().map(|(id, at)| at.duration_since(caused[id])).collect();
        latencies.sort_unstable();
        let (p50, p99) = (latencies[50], latencies[98]);
        eprintln!("W4, {kind:?}: 10,000 wait for a hung endpoint; the other one's p50 {p50:?}, p99 {p99:?}");
        // Two seconds on any machine with free resources; a delivery that waited for the hanging endpoint would never
        // end.
        assert!(p99 < Duration::from_secs(20), "{p99:?}");
        assert_eq!(carrier.hung.load(Ordering::SeqCst), PER_WEBHOOK_MAX, "16 at once and no more");
        stop.send_replace(true);
        running.await.unwrap();
        assert_eq!(world.deliveries(well.id, Some(DeliveryStatus::Delivered)).await.total, 100);
        assert_eq!(world.deliveries(hung.id, Some(DeliveryStatus::Delivered)).await.total, 0);
    }
}

/// The same over TLS and sockets, smaller: the paths of one receiver are the endpoints.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_socket_delays_nobody_else() {
    let dir = TempDir::new();
    let receiver = Receiver::start(|request| match request.line.contains("/hangs") {
        true => Reply::never(),
        false => Reply::status(204),
    })
    .await;
    let client = Client::new(&receiver.settings(dir.path()), Vec::new()).unwrap();
    for kind in kinds() {
        let world = World::new(kind, 2, |_, _| answered(200)).await;
        let before = receiver.seen.now().len();
        for (organisation, path) in [(world.acme, "/hangs"), (world.bolt, "/well")] {
            let new = NewWebhook {
                organisation_id: organisation,
                url: receiver.url(path),
                events: vec!["call.*".parse().unwrap()],
                description: String::new(),
                active: true,
            };
            world.service.create(new, world.now()).await.unwrap();
        }
        // The time that this machine needs for the same number without a hanging endpoint.
        let stop = watch::Sender::new(false);
        let running = run_worker(real_worker(&world, Arc::new(client.clone())), stop.subscribe());
        let began = Instant::now();
        let first = world.events(world.bolt, 50).await;
        receiver.seen.count(before + 50).await;
        let alone = began.elapsed();
        world.events(world.acme, 500).await;
        let before = before + 50;
        let seen = receiver.seen.count(before + PER_WEBHOOK_MAX).await;
        assert!(seen[before..].iter().all(|request| request.line.contains("/hangs")));
        let began = Instant::now();
        let events = world.events(world.bolt, 50).await;
        let seen = receiver.seen.count(before + PER_WEBHOOK_MAX + 50).await;
        let took = began.elapsed();
        eprintln!("W4, {kind:?}, sockets: 50 deliveries took {alone:?}, {took:?} beside a hung endpoint");
        assert!(took < Duration::from_secs(2) + 3 * alone, "{took:?}, and {alone:?} alone");
        assert_eq!(first.len(), events.len());
        let mut arrived: Vec<&str> = seen[before..]
            .iter()
            .filter(|request| request.line.contains("/well"))
            .map(|request| request.header("webhook-id"))
            .collect();
        arrived.sort_unstable();
        assert_eq!(arrived, events);
        stop.send_replace(true);
        running.await.unwrap();
    }
}

fn run_worker(mut worker: Worker, stop: watch::Receiver<bool>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move { worker.run(stop).await })
}

/// A worker on the clock of this machine.
fn real_worker(world: &World, carrier: Arc<dyn Carrier>) -> Worker {
    let (began, first) = (Instant::now(), world.now());
    let passed = move || i64::try_from(began.elapsed().as_micros()).unwrap_or_default();
    let clock: Clock = Arc::new(move || first.plus_micros(passed()));
    let node = NodeId(Uuid::from_u128(1));
    Worker::new(world.store.clone(), node, carrier, clock, StdRng::seed_from_u64(3), Arc::new(Notify::new()))
}
