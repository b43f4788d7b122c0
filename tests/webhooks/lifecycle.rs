//! The states of a delivery: sent once, cancelled, taken over, purged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone::webhooks::post::Carried;
use sidetone_model::access::Scope;
use sidetone_model::ids::NodeId;
use sidetone_model::webhook::{ATTEMPTS_KEPT_MAX, DeliveryStatus, KEPT_FOR_US, WebhookChange, Webhooks};
use sidetone_store::Store;
use uuid::Uuid;

use crate::common::database::kinds;
use crate::common::records::at;
use crate::webhooks::world::{HOUR_US, SECOND_US, World, active, answered, header};

#[tokio::test]
async fn each_gets_what_it_wants_of_its_own_organisation_once() {
    for kind in kinds() {
        let mut world = World::new(kind, 1, |_, _| answered(200)).await;
        world.events(world.acme, 3).await;
        world.settle().await;
        let (all, _) = world.webhook(world.acme, "/all").await;
        let (notes, _) = world.webhook(world.acme, "/notes").await;
        let only_notes =
            WebhookChange { events: Some(vec!["call.info.*".parse().unwrap()]), ..WebhookChange::default() };
        world.change(notes.id, only_notes).await;
        let (foreign, _) = world.webhook(world.bolt, "/foreign").await;
        // More than one batch of the log.
        let events = world.events(world.acme, 600).await;
        let own = world.events(world.bolt, 2).await;
        world.settle().await;
        assert_eq!(world.deliveries(all.id, Some(DeliveryStatus::Delivered)).await.total, 600);
        assert_eq!(world.deliveries(notes.id, None).await.total, 0);
        assert_eq!(world.deliveries(foreign.id, None).await.total, 2);
        let counts = world.sent.by_event();
        assert!(events.iter().chain(&own).all(|id| counts[id] == 1) && counts.len() == 602);
        for (_, request) in world.sent.all() {
            let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
            let fields: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(fields, ["id", "type", "timestamp", "organisation_id", "data"]);
            assert_eq!(body["id"], header(&request, "webhook-id"));
            assert_eq!(body["type"], header(&request, "x-service-event"));
            let is_bolts = request.url.ends_with("/foreign");
            let owner = if is_bolts { world.bolt } else { world.acme };
            assert_eq!(body["organisation_id"], owner.to_string());
        }
    }
}

/// Events without a subscriber cost no transaction, and are not delivered to a webhook created later.
#[tokio::test]
async fn events_without_a_subscriber_are_passed_over() {
    for kind in kinds() {
        let mut world = World::new(kind, 1, |_, _| answered(200)).await;
        world.worker.turn().await.unwrap();
        for _ in 0..50 {
            world.events(world.acme, 4).await;
            // On PostgreSQL the first reader gives events their positions.
            world.store.events_end().await.unwrap();
            let before = world.store.event_bell().writes_total();
            world.worker.turn().await.unwrap();
            assert_eq!(world.store.event_bell().writes_total() - before, 0, "{kind:?}");
        }
        let (all, _) = world.webhook(world.acme, "/all").await;
        world.events(world.acme, 3).await;
        world.settle().await;
        assert_eq!(world.deliveries(all.id, None).await.total, 3, "{kind:?}");
        // After a second the position in the log is stored: a process that starts continues there.
        world.events(world.bolt, 2).await;
        world.worker.turn().await.unwrap();
        world.pass(2 * SECOND_US);
        world.worker.turn().await.unwrap();
        let (late, _) = world.webhook(world.bolt, "/late").await;
        let restarted = Store::open(&world.database.database).await.unwrap();
        restarted.hand_out_events(world.now()).await.unwrap();
        assert_eq!(world.deliveries(late.id, None).await.total, 0, "{kind:?}");
        restarted.close().await;
    }
}

/// Two nodes on one database, in turns and concurrently.
#[tokio::test]
async fn two_nodes_share_the_work_and_send_nothing_twice() {
    for kind in kinds() {
        let mut world = World::new(kind, 2, |_, _| answered(200)).await;
        let (webhook, _) = world.webhook(world.acme, "/").await;
        let mut other = world.another(2);
        world.events(world.acme, 200).await;
        loop {
            let (one, two) = tokio::join!(world.worker.turn(), other.turn());
            let busy = world.worker.busy() + other.busy();
            tokio::join!(world.worker.finish_posts(), other.finish_posts());
            let (one, two) = (one.unwrap(), two.unwrap());
            if !one.moved && !two.moved && busy == 0 {
                break;
            }
        }
        assert_eq!(world.deliveries(webhook.id, Some(DeliveryStatus::Delivered)).await.total, 200);
        assert!(world.sent.by_event().values().all(|count| *count == 1));
    }
}

/// The attempts of a node that dies: it finds them again, and another node takes them over after a minute.
#[tokio::test]
async fn what_a_node_that_died_was_sending_is_sent_again() {
    for kind in kinds() {
        let mut world = World::new(kind, 3, |_, _| answered(200)).await;
        let (webhook, _) = world.webhook(world.acme, "/").await;
        world.events(world.acme, 3).await;
        // Leased and sent, but the response is never stored.
        world.worker.turn().await.unwrap();
        assert_eq!(world.deliveries(webhook.id, Some(DeliveryStatus::Delivering)).await.total, 3);
        let mut other = world.another(2);
        other.turn().await.unwrap();
        assert_eq!(other.busy(), 0, "they are leased");
        world.pass(61 * SECOND_US);
        other.turn().await.unwrap();
        assert_eq!(other.busy(), 3, "the lease is over");
        // The first node returns: its results for expired leases are ignored.
        world.worker.finish_posts().await;
        world.worker.turn().await.unwrap();
        assert_eq!(world.deliveries(webhook.id, Some(DeliveryStatus::Delivering)).await.total, 3);
        other.finish_posts().await;
        other.turn().await.unwrap();
        let delivered = world.deliveries(webhook.id, Some(DeliveryStatus::Delivered)).await;
        assert_eq!((delivered.total, delivered.items[0].attempts.len()), (3, 1));
        assert!(world.sent.by_event().values().all(|count| *count == 2), "at least once, with the same id");

        // A restart of the same node does not wait for the lease.
        world.events(world.acme, 2).await;
        world.worker.turn().await.unwrap();
        world.store.free_webhook_leases(NodeId(Uuid::from_u128(1)), world.now()).await.unwrap();
        let mut again = world.another(1);
        again.turn().await.unwrap();
        assert_eq!(again.busy(), 2);
    }
}

#[tokio::test]
async fn switched_off_it_gets_nothing_and_deleted_it_is_forgotten() {
    for kind in kinds() {
        let mut world = World::new(kind, 4, |_, _| answered(500)).await;
        let (webhook, _) = world.webhook(world.acme, "/").await;
        world.events(world.acme, 2).await;
        world.settle().await;
        assert_eq!(world.deliveries(webhook.id, Some(DeliveryStatus::Retrying)).await.total, 2);
        let off = world.change(webhook.id, active(false)).await;
        assert_eq!((off.active, off.disabled_reason), (false, None));
        assert_eq!(world.deliveries(webhook.id, Some(DeliveryStatus::Cancelled)).await.total, 2);
        world.events(world.acme, 5).await;
        world.work_until(at(3600)).await;
        world.change(webhook.id, active(true)).await;
        world.work_until(at(7200)).await;
        assert_eq!(world.sent.len(), 2);
        assert_eq!(world.deliveries(webhook.id, None).await.total, 2);

        // Deleted during an attempt.
        world.events(world.acme, 1).await;
        world.worker.turn().await.unwrap();
        world.service.delete(Scope::Everything, webhook.id, world.now()).await.unwrap();
        world.settle().await;
        world.work_until(at(0).plus_micros(20 * HOUR_US)).await;
        assert_eq!(world.sent.len(), 3);
        assert_eq!(world.store.webhook_queue_len().await.unwrap(), 0);
    }
}

/// A delivery in progress when its webhook is switched off is stored with its result.
#[tokio::test]
async fn what_is_on_its_way_when_it_is_switched_off_ends_as_it_ends() {
    for kind in kinds() {
        let answers = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&answers);
        let mut world = World::new(kind, 4, move |_, _| {
            answered(if counted.fetch_add(1, Ordering::SeqCst) == 0 { 200 } else { 500 })
        })
        .await;
        let (webhook, _) = world.webhook(world.acme, "/").await;
        world.events(world.acme, 2).await;
        world.worker.turn().await.unwrap();
        world.change(webhook.id, active(false)).await;
        world.settle().await;
        assert_eq!(world.deliveries(webhook.id, Some(DeliveryStatus::Delivered)).await.total, 1);
        assert_eq!(world.deliveries(webhook.id, Some(DeliveryStatus::Cancelled)).await.total, 1);
    }
}

#[tokio::test]
async fn an_endpoint_may_ask_for_time() {
    for kind in kinds() {
        let mut world = World::new(kind, 9, |_, now| match now < at(600) {
            true => Carried { retry_after: Some(Duration::from_secs(1200)), ..answered(429) },
            false => answered(200),
        })
        .await;
        let (webhook, _) = world.webhook(world.acme, "/").await;
        world.events(world.acme, 1).await;
        assert_eq!(world.settle().await, Some(at(1200)));
        world.work_off().await;
        let delivery = world.deliveries(webhook.id, None).await.items.remove(0);
        assert_eq!((delivery.status, delivery.attempts.len()), (DeliveryStatus::Delivered, 2));
    }
}

/// A delivery that is sent repeatedly does not keep an endless list of attempts.
#[tokio::test]
async fn the_newest_attempts_are_kept() {
    for kind in kinds() {
        let mut world = World::new(kind, 10, |_, _| answered(418)).await;
        let (webhook, _) = world.webhook(world.acme, "/").await;
        world.events(world.acme, 1).await;
        world.settle().await;
        let id = world.deliveries(webhook.id, None).await.items[0].id;
        for _ in 0..30 {
            world.pass(SECOND_US);
            world.service.redeliver(Scope::Everything, webhook.id, id, world.now()).await.unwrap();
            world.settle().await;
        }
        let found = world.store.webhook_delivery(Scope::Everything, webhook.id, id).await.unwrap().unwrap();
        assert_eq!(found.attempts.len() as i64, ATTEMPTS_KEPT_MAX);
        assert_eq!(found.attempts.last().unwrap().at, world.now());
        assert_eq!(found.status, DeliveryStatus::Retrying, "the schedule begins anew each time");
    }
}

#[tokio::test]
async fn deliveries_are_kept_for_thirty_days() {
    for kind in kinds() {
        let mut world = World::new(kind, 11, |_, _| answered(200)).await;
        let (webhook, _) = world.webhook(world.acme, "/").await;
        world.events(world.acme, 700).await;
        world.settle().await;
        world.pass(HOUR_US);
        world.events(world.acme, 1).await;
        world.settle().await;
        let kept = at(0).plus_micros(KEPT_FOR_US);
        let purge = async |now| world.store.purge_webhook_deliveries(now).await.unwrap();
        assert_eq!(purge(kept.plus_micros(-1)).await, 0);
        assert_eq!(purge(kept).await, Store::WEBHOOK_PURGE_BATCH);
        assert_eq!(purge(kept).await, 701 - 1 - Store::WEBHOOK_PURGE_BATCH);
        assert_eq!(purge(kept).await, 0);
        let left = world.deliveries(webhook.id, None).await;
        assert_eq!((left.total, left.items[0].attempts.len()), (1, 1));
    }
}
