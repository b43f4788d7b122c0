//! Work that is carried out once: with its response or not at all, whatever happens in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use sidetone_model::idempotency::{Claim, Idempotency, KeptAnswer, Once};
use sidetone_model::ids::NodeId;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_store::{IdempotencyKeys, OrganisationRow, Store};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::common::records::at;
use crate::store::with_store;

fn claim(id: u8, fingerprint: u8) -> Claim {
    Claim { id: [id; 32], fingerprint: [fingerprint; 32] }
}

fn answer(status: u16, body: &str) -> KeptAnswer {
    KeptAnswer {
        status,
        content_type: Some("application/json".to_owned()),
        location: Some("/api/v1/things/1".to_owned()),
        sealed_body: body.to_owned(),
    }
}

async fn keys(store: &Store, node: u128) -> IdempotencyKeys {
    IdempotencyKeys::open(store.clone(), NodeId(Uuid::from_u128(node))).await.unwrap()
}

/// Declares an organisation, as a handler would: in a transaction that it commits itself.
async fn declare(store: &Store, name: &str) {
    let row = OrganisationRow {
        name: name.to_owned(),
        sip_domain: format!("{name}.test"),
        currency: "EUR".parse().unwrap(),
        credit: None,
        numbering: Default::default(),
        max_outbound_calls: None,
        max_call_seconds: None,
        star_codes: None,
    };
    let mut transaction = store.write().await.unwrap();
    transaction.declare_organisation(&row, at(0)).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn names(store: &Store) -> Vec<String> {
    let snapshot = store.directory().await.unwrap();
    snapshot.organisations.into_iter().map(|organisation| organisation.name).collect()
}

/// Work that declares `name` and answers with `kept`.
fn declaring<'a>(
    store: &'a Store,
    name: &'a str,
    kept: Option<KeptAnswer>,
) -> PortFuture<'a, Option<KeptAnswer>> {
    Box::pin(async move {
        declare(store, name).await;
        Ok(kept)
    })
}

fn nothing<'a>() -> PortFuture<'a, Option<KeptAnswer>> {
    Box::pin(async { panic!("the work is done again") })
}

const DAY_S: i64 = 24 * 60 * 60;

fn seconds(count: i64) -> Timestamp {
    at(0).plus_micros(count * 1_000_000)
}

#[test]
fn what_was_done_and_what_was_answered_become_visible_together() {
    with_store(async |store| {
        let keys = keys(store, 1).await;
        let work: PortFuture<'_, _> = Box::pin(async {
            declare(store, "acme").await;
            // Two functions of the store in one unit of work; a read within it sees the writes.
            declare(store, "bolt").await;
            assert!(store.write().await.unwrap().find_organisation("acme").await.unwrap().is_some());
            Ok(Some(answer(201, "made")))
        });
        // The last transaction of the work was dropped, which rolled back everything: that is no success.
        assert!(matches!(keys.once(claim(1, 1), at(0), work).await, Err(Problem::Internal(_))));
        assert_eq!(names(store).await, Vec::<String>::new());

        let work: PortFuture<'_, _> = Box::pin(async {
            declare(store, "acme").await;
            assert_eq!(names(store).await.len(), 0, "a snapshot is what others see");
            declare(store, "bolt").await;
            Ok(Some(answer(201, "made")))
        });
        assert_eq!(keys.once(claim(1, 1), at(0), work).await.unwrap(), Once::Executed);
        let mut made = names(store).await;
        made.sort();
        assert_eq!(made, ["acme", "bolt"]);
        let replayed = keys.once(claim(1, 1), seconds(DAY_S - 1), nothing()).await.unwrap();
        assert_eq!(replayed, Once::Replayed(answer(201, "made")));
        assert_eq!(keys.once(claim(1, 2), at(0), nothing()).await.unwrap(), Once::Reused);
    });
}

#[test]
fn an_answer_that_is_no_success_writes_nothing() {
    with_store(async |store| {
        let keys = keys(store, 1).await;
        let conflict = declaring(store, "acme", Some(answer(409, "taken")));
        assert_eq!(keys.once(claim(1, 1), at(0), conflict).await.unwrap(), Once::Executed);
        assert_eq!(
            keys.once(claim(1, 1), at(0), nothing()).await.unwrap(),
            Once::Replayed(answer(409, "taken"))
        );
        // Not kept: 400, 401, 403, 429, 503. The same request may be sent again.
        for _ in 0..2 {
            let refused = declaring(store, "acme", None);
            assert_eq!(keys.once(claim(2, 1), at(0), refused).await.unwrap(), Once::Executed);
        }
        let failed: PortFuture<'_, _> = Box::pin(async { Err(Problem::Internal("broken".to_owned())) });
        assert!(keys.once(claim(2, 9), at(0), failed).await.is_err());
        assert_eq!(names(store).await, Vec::<String>::new());
        let made = declaring(store, "acme", Some(answer(201, "made")));
        assert_eq!(keys.once(claim(2, 1), at(0), made).await.unwrap(), Once::Executed);
        assert_eq!(names(store).await, ["acme"]);
    });
}

#[test]
fn a_hundred_twins_have_one_effect_between_them() {
    with_store(async |store| {
        let (keys, runs) = (keys(store, 1).await, AtomicUsize::new(0));
        let both = [keys.clone(), self::keys(store, 2).await];
        let tries = (0..100).map(|number: usize| {
            let runs = &runs;
            let work: PortFuture<'_, _> = Box::pin(async move {
                runs.fetch_add(1, Ordering::Relaxed);
                declare(store, "acme").await;
                Ok(Some(answer(201, "made")))
            });
            both[number % 2].once(claim(1, 1), at(0), work)
        });
        let outcomes = join_all(tries).await;
        let executed = outcomes.iter().filter(|once| **once == Ok(Once::Executed)).count();
        assert_eq!((executed, runs.load(Ordering::Relaxed)), (1, 1));
        let expected = [Ok(Once::Executed), Ok(Once::Running), Ok(Once::Replayed(answer(201, "made")))];
        assert!(outcomes.iter().all(|once| expected.contains(once)), "{outcomes:?}");
    });
}

#[test]
fn work_that_is_cut_off_leaves_nothing_and_is_done_by_the_next_run() {
    with_store(async |store| {
        let keys = keys(store, 1).await;
        let (written, never) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, wait) = (Arc::clone(&written), Arc::clone(&never));
        let work: PortFuture<'_, _> = Box::pin(async move {
            declare(store, "acme").await;
            tell.notify_one();
            wait.notified().await;
            Ok(Some(answer(201, "lost")))
        });
        tokio::select! {
            once = keys.once(claim(1, 1), at(0), work) => panic!("{once:?}"),
            () = written.notified() => {}
        }
        assert_eq!(names(store).await, Vec::<String>::new());
        // The same process cannot tell that the work was abandoned: the lease expires after a minute.
        assert_eq!(keys.once(claim(1, 1), seconds(59), nothing()).await.unwrap(), Once::Running);
        // The node that restarts can tell; another node cannot.
        self::keys(store, 2).await;
        assert_eq!(keys.once(claim(1, 1), seconds(1), nothing()).await.unwrap(), Once::Running);
        let again = self::keys(store, 1).await;
        let work = declaring(store, "acme", Some(answer(201, "made")));
        assert_eq!(again.once(claim(1, 1), seconds(1), work).await.unwrap(), Once::Executed);
        assert_eq!(names(store).await, ["acme"]);
    });
}

#[test]
fn who_lost_the_lease_writes_nothing() {
    with_store(async |store| {
        let keys = keys(store, 1).await;
        let (began, go) = (Notify::new(), Notify::new());
        let slow: PortFuture<'_, _> = Box::pin(async {
            began.notify_one();
            go.notified().await;
            declare(store, "slow").await;
            Ok(Some(answer(201, "slow")))
        });
        let quick = async {
            began.notified().await;
            // Another request does not get the key after the lease either.
            assert_eq!(keys.once(claim(1, 9), seconds(60), nothing()).await.unwrap(), Once::Reused);
            let quick = declaring(store, "quick", Some(answer(201, "quick")));
            assert_eq!(keys.once(claim(1, 1), seconds(60), quick).await.unwrap(), Once::Executed);
            go.notify_one();
        };
        let (slow, ()) = tokio::join!(keys.once(claim(1, 1), at(0), slow), quick);
        assert_eq!(slow.unwrap(), Once::Running);
        assert_eq!(names(store).await, ["quick"]);
        let replayed = keys.once(claim(1, 1), seconds(61), nothing()).await.unwrap();
        assert_eq!(replayed, Once::Replayed(answer(201, "quick")));
    });
}

#[test]
fn a_key_is_new_after_a_day_and_old_ones_are_swept() {
    with_store(async |store| {
        let keys = keys(store, 1).await;
        for id in 0..3 {
            let work: PortFuture<'_, _> = Box::pin(async { Ok(Some(answer(201, "old"))) });
            assert_eq!(keys.once(claim(id, 1), at(0), work).await.unwrap(), Once::Executed);
        }
        let work: PortFuture<'_, _> = Box::pin(async { Ok(Some(answer(201, "new"))) });
        assert_eq!(keys.once(claim(0, 2), seconds(DAY_S), work).await.unwrap(), Once::Executed);
        assert_eq!(keys.purge(seconds(DAY_S - 1)).await.unwrap(), 0);
        assert_eq!(keys.purge(seconds(DAY_S)).await.unwrap(), 2);
        let replayed = keys.once(claim(0, 2), seconds(DAY_S + 1), nothing()).await.unwrap();
        assert_eq!(replayed, Once::Replayed(answer(201, "new")));
    });
}
