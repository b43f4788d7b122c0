//! W1 and W2: endpoints that are down for hours and for days, under a controlled clock.

use std::sync::atomic::Ordering;

use sidetone::webhooks::schedule::{ATTEMPTS_MAX, PAUSES_S};
use sidetone_model::access::Scope;
use sidetone_model::webhook::{DeliveryStatus, DisabledReason, Webhooks};

use crate::common::database::kinds;
use crate::common::records::at;
use crate::webhooks::world::{HOUR_US, SECOND_US, World, active, answered};

/// W1: no delivery is lost in an outage of 14 hours, and every attempt is listed.
#[tokio::test]
async fn an_endpoint_that_is_down_for_fourteen_hours_gets_everything() {
    for kind in kinds() {
        let back = at(0).plus_micros(14 * HOUR_US);
        let mut world = World::new(kind, 5, move |_, now| answered(if now < back { 503 } else { 204 })).await;
        let (webhook, _) = world.webhook(world.acme, "/down").await;
        let mut events = world.events(world.acme, 30).await;
        world.work_until(at(3600)).await;
        events.extend(world.events(world.acme, 10).await);
        world.work_off().await;

        let deliveries = world.deliveries(webhook.id, None).await;
        assert_eq!(deliveries.total, 40);
        let mut sent: Vec<String> = deliveries.items.iter().map(|it| it.event_id.to_string()).collect();
        sent.reverse();
        assert_eq!(sent, events, "newest first, each once");
        for delivery in &deliveries.items {
            assert_eq!(delivery.status, DeliveryStatus::Delivered);
            let attempts = &delivery.attempts;
            assert!((2..=10).contains(&attempts.len()), "{attempts:?}");
            for (index, pair) in attempts.windows(2).enumerate() {
                let pause = pair[1].at.since(pair[0].at);
                let nominal = PAUSES_S[index + 1] * SECOND_US;
                // The endpoint responds immediately; the worker's delay of up to a second does not occur with this
                // clock.
                assert!((nominal * 9 / 10..=nominal * 11 / 10).contains(&pause), "{pause} for {nominal}");
            }
            let (last, failed) = attempts.split_last().unwrap();
            assert_eq!((last.status_code, &last.error), (Some(204), &None));
            for attempt in failed {
                assert_eq!(attempt.status_code, Some(503));
                assert_eq!(attempt.error.as_deref(), Some("the endpoint answered 503"));
            }
        }
        let read = world.read(webhook.id).await;
        assert!(read.active && read.failing_since.is_none());
        // The same id in every attempt.
        let counts = world.sent.by_event();
        assert_eq!(counts.len(), 40);
        for delivery in &deliveries.items {
            assert_eq!(counts[&delivery.event_id.to_string()], delivery.attempts.len());
        }
    }
}

/// W1: the schedule of a delivery that never succeeds takes 14.5 to 15.5 hours, then the delivery fails.
#[tokio::test]
async fn what_never_arrives_fails_after_fifteen_hours() {
    for kind in kinds() {
        let mut world = World::new(kind, 6, |_, _| answered(500)).await;
        let (webhook, _) = world.webhook(world.acme, "/never").await;
        world.events(world.acme, 60).await;
        world.work_off().await;
        let failed = world.deliveries(webhook.id, Some(DeliveryStatus::Failed)).await;
        assert_eq!(failed.total, 60);
        let mut totals = Vec::new();
        for delivery in &failed.items {
            assert_eq!(delivery.attempts.len(), ATTEMPTS_MAX as usize);
            assert_eq!(delivery.next_attempt_at, None);
            let total = delivery.attempts[9].at.since(delivery.attempts[0].at);
            assert!((HOUR_US * 29 / 2..=HOUR_US * 31 / 2).contains(&total), "{total}");
            totals.push(total);
        }
        totals.sort_unstable();
        totals.dedup();
        assert!(totals.len() > 50, "no jitter: {totals:?}");
        let read = world.read(webhook.id).await;
        assert_eq!((read.active, read.failing_since), (true, Some(at(0))), "15 hours are no three days");
    }
}

/// W2: down for 73 hours with events all the time.
#[tokio::test]
async fn an_endpoint_that_is_down_for_three_days_is_switched_off_once() {
    for kind in kinds() {
        let back = at(0).plus_micros(100 * HOUR_US);
        let mut world = World::new(kind, 7, move |_, now| answered(if now < back { 502 } else { 200 })).await;
        let (webhook, _) = world.webhook(world.acme, "/gone").await;
        let (healthy, _) = world.webhook(world.bolt, "/well").await;
        // An event every three hours for 80 hours.
        let mut off_at = None;
        for step in 0..27 {
            world.events(world.acme, 1).await;
            world.work_until(at(0).plus_micros((step + 1) * 3 * HOUR_US)).await;
            let read = world.read(webhook.id).await;
            if !read.active && off_at.is_none() {
                off_at = Some((read.updated_at, world.sent.len()));
                assert_eq!(read.disabled_reason, Some(DisabledReason::Failing));
            }
        }
        let (off_at, sent) = off_at.unwrap();
        let down_for = off_at.since(at(0));
        assert!((72 * HOUR_US..=76 * HOUR_US).contains(&down_for), "{down_for}");
        assert_eq!(world.sent.len(), sent, "something was sent afterwards");
        assert_eq!(world.read(webhook.id).await.updated_at, off_at, "it was switched off twice");
        assert!(world.read(healthy.id).await.active);
        // Waiting deliveries are cancelled, and later events were never queued.
        let all = world.deliveries(webhook.id, None).await;
        let cancelled = world.deliveries(webhook.id, Some(DeliveryStatus::Cancelled)).await;
        assert!(cancelled.total >= 4 && all.total < 27, "{} of {}", cancelled.total, all.total);
        for status in [DeliveryStatus::Pending, DeliveryStatus::Retrying, DeliveryStatus::Delivering] {
            assert_eq!(world.deliveries(webhook.id, Some(status)).await.total, 0);
        }

        // A disabled webhook accepts no test and no redelivery.
        let old = cancelled.items[0].id;
        let now = world.now();
        let scope = Scope::Organisation(world.acme);
        assert!(world.service.redeliver(scope, webhook.id, old, now).await.is_err());
        assert!(world.service.test(scope, webhook.id, now).await.is_err());
        world.set(at(0).plus_micros(101 * HOUR_US));
        let on = world.change(webhook.id, active(true)).await;
        assert_eq!((on.active, on.disabled_reason, on.failing_since), (true, None, None));
        world.settle().await;
        assert_eq!(world.sent.len(), sent, "the past is not sent by itself");
        world.service.redeliver(scope, webhook.id, old, world.now()).await.unwrap();
        let fresh = world.events(world.acme, 1).await.remove(0);
        world.settle().await;
        let found = world.store.webhook_delivery(scope, webhook.id, old).await.unwrap().unwrap();
        assert_eq!(found.status, DeliveryStatus::Delivered);
        assert_eq!(world.sent.by_event()[&found.event_id.to_string()], found.attempts.len(), "the same id");
        assert_eq!(world.sent.by_event()[&fresh], 1);
    }
}

/// One success in between, and the three days start again.
#[tokio::test]
async fn a_success_forgets_the_failures() {
    for kind in kinds() {
        let (from, to) = (at(0).plus_micros(50 * HOUR_US), at(0).plus_micros(54 * HOUR_US));
        let mut world =
            World::new(kind, 8, move |_, now| answered(if now >= from && now < to { 200 } else { 500 }))
                .await;
        let (webhook, _) = world.webhook(world.acme, "/").await;
        for step in 0..34 {
            world.events(world.acme, 1).await;
            world.work_until(at(0).plus_micros((step + 1) * 3 * HOUR_US)).await;
        }
        let read = world.read(webhook.id).await;
        assert!(read.active && read.failing_since.unwrap() >= to, "{read:?}");
    }
}

/// D12: a clock that is set back by a day delays no delivery for longer than its own pause, and one that is set
/// forward by a day sends each waiting delivery once and not all its attempts.
#[tokio::test]
async fn a_clock_that_is_set_neither_stalls_nor_bursts() {
    for kind in kinds() {
        // Some failures each, then the endpoint works.
        let mut world = World::new(kind, 8, |_, now| answered(if now < at(1_000) { 503 } else { 204 })).await;
        let (webhook, _) = world.webhook(world.acme, "/hook").await;
        world.events(world.acme, 20).await;
        world.work_until(at(700)).await;
        let waiting = world.deliveries(webhook.id, Some(DeliveryStatus::Retrying)).await;
        assert_eq!(waiting.total, 20);

        // A day back: the next attempts are due within an hour, the longest pause that an endpoint may request.
        let back = at(700).plus_micros(-24 * HOUR_US);
        world.clock.store(back.as_micros(), Ordering::SeqCst);
        world.worker.turn().await.unwrap();
        let waiting = world.deliveries(webhook.id, Some(DeliveryStatus::Retrying)).await;
        for delivery in &waiting.items {
            let wait = delivery.next_attempt_at.unwrap().since(back);
            assert!((0..=2 * HOUR_US).contains(&wait), "{kind:?}: {wait} µs after the clock was set back");
        }
        // A second node, or a second turn, changes nothing.
        let before: Vec<_> = waiting.items.iter().map(|it| it.next_attempt_at).collect();
        world.worker.turn().await.unwrap();
        let again = world.deliveries(webhook.id, Some(DeliveryStatus::Retrying)).await;
        assert_eq!(again.items.iter().map(|it| it.next_attempt_at).collect::<Vec<_>>(), before);

        // Two days forward: every delivery is attempted once, and arrives.
        let sent = world.sent.len();
        world.clock.store(at(24 * 3_600).as_micros(), Ordering::SeqCst);
        world.work_until(at(24 * 3_600 + 60)).await;
        assert_eq!(world.sent.len() - sent, 20, "one attempt each");
        let delivered = world.deliveries(webhook.id, Some(DeliveryStatus::Delivered)).await;
        assert_eq!(delivered.total, 20);
    }
}
