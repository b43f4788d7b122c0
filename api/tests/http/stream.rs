//! The behaviour of an event stream over time, on a clock that only the test moves: keep-alives, and the end of
//! the caller's permission.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use sidetone_api::{ApiState, Ports, router};
use sidetone_model::access::Permission;
use sidetone_model::directory::Network;
use sidetone_model::event::{EventFilter, EventStream, EventStreams, Start, StreamItem};
use sidetone_model::ids::{ApiKeyId, OrganisationId};
use sidetone_model::ports::{ApiKey, ApiKeys, PortFuture};
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tower::ServiceExt;
use uuid::Uuid;

use crate::{Log, NotReady};

/// One stream of the items that the test sends.
struct Streams(Mutex<Option<mpsc::Receiver<StreamItem>>>);

struct Sent(mpsc::Receiver<StreamItem>);

impl EventStreams for Streams {
    fn open(&self, _: EventFilter, _: Start, _: Timestamp) -> PortFuture<'_, Box<dyn EventStream>> {
        Box::pin(async {
            let stream: Box<dyn EventStream> = Box::new(Sent(self.0.lock().await.take().unwrap()));
            Ok(stream)
        })
    }
}

impl EventStream for Sent {
    fn next(&mut self) -> PortFuture<'_, Option<StreamItem>> {
        Box::pin(async { Ok(self.0.recv().await) })
    }
}

/// One key, in the state that the test chooses.
struct Keys(Arc<AtomicU8>);

const GOOD: u8 = 0;
const DELETED: u8 = 1;
const AWAY: u8 = 2;
const LESSER: u8 = 3;

impl ApiKeys for Keys {
    fn find(&self, _id: &str) -> PortFuture<'_, Option<ApiKey>> {
        let state = self.0.load(Ordering::SeqCst);
        let mut permissions = vec![Permission::CallsRead, Permission::ConferencesRead];
        permissions.truncate(if state == LESSER { 1 } else { 2 });
        let key = ApiKey {
            key: ApiKeyId(Uuid::nil()),
            organisation_id: OrganisationId(Uuid::nil()),
            secret_sha256: Sha256::digest(b"secret").into(),
            permissions,
            allow: vec![Network { address: "127.0.0.1".parse().unwrap(), prefix_len: 32 }],
            rate_per_minute: 100,
        };
        Box::pin(async move {
            match state {
                DELETED => Ok(None),
                AWAY => Err(Problem::Internal("the database is away".to_owned())),
                _ => Ok(Some(key)),
            }
        })
    }
}

struct Live {
    body: Body,
    key: Arc<AtomicU8>,
    items: mpsc::Sender<StreamItem>,
    began: Instant,
}

impl Live {
    /// An open event stream that has received its `retry` interval.
    async fn open() -> Self {
        let (items, receiver) = mpsc::channel(10);
        let key = Arc::new(AtomicU8::new(GOOD));
        let state = ApiState::new(
            Ports {
                events: Some(Arc::new(Streams(Mutex::new(Some(receiver))))),
                ..Ports::of_log(Arc::new(Log), Arc::new(Keys(Arc::clone(&key))), Arc::new(NotReady(vec![])))
            },
            Arc::new(|| Timestamp::from_micros(1_767_225_600_000_000)),
        );
        let request = Request::get("/api/v1/events")
            .header("authorization", "Bearer tel_GOOD_secret")
            .extension(ConnectInfo(std::net::SocketAddr::from(([127, 0, 0, 1], 4711))))
            .body(Body::empty())
            .unwrap();
        let router: Router = router(state);
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let headers = response.headers();
        assert_eq!(headers["content-type"], "text/event-stream");
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers["x-accel-buffering"], "no");
        let mut live = Self { body: response.into_body(), key, items, began: Instant::now() };
        assert_eq!(live.next().await.as_deref(), Some("retry: 3000\n\n"));
        live
    }

    async fn next(&mut self) -> Option<String> {
        let frame = self.body.frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_comes_every_fifteen_seconds() {
    let mut live = Live::open().await;
    for number in 1..=3 {
        assert_eq!(live.next().await.as_deref(), Some(": keep-alive\n\n"));
        assert_eq!(live.began.elapsed().as_secs(), number * 15);
    }
    live.items.send(StreamItem::Live).await.unwrap();
    assert_eq!(live.next().await.as_deref(), Some(": live\n\n"));
    assert_eq!(live.began.elapsed().as_secs(), 45);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_within_two_seconds_of_its_key() {
    for change in [DELETED, LESSER] {
        let mut live = Live::open().await;
        assert_eq!(live.next().await.as_deref(), Some(": keep-alive\n\n"));
        let since = Instant::now();
        live.key.store(change, Ordering::SeqCst);
        assert_eq!(live.next().await, None, "{change}");
        assert!(since.elapsed() <= Duration::from_secs(2), "{:?}", since.elapsed());
    }
}

/// If a ready item has not been taken, the permission is checked again before the item is shown.
#[tokio::test(start_paused = true)]
async fn what_waited_is_not_shown_to_who_may_no_longer_see_it() {
    let mut live = Live::open().await;
    live.items.send(StreamItem::Live).await.unwrap();
    live.key.store(DELETED, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(live.next().await, None);
}

/// A temporary database failure ends no stream, and nothing is shown to a caller whose permission cannot be
/// checked.
#[tokio::test(start_paused = true)]
async fn while_nobody_can_be_asked_nothing_is_shown() {
    let mut live = Live::open().await;
    live.key.store(AWAY, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(2)).await;
    live.items.send(StreamItem::Live).await.unwrap();
    assert_eq!(live.next().await.as_deref(), Some(": keep-alive\n\n"));
    live.key.store(GOOD, Ordering::SeqCst);
    assert_eq!(live.next().await.as_deref(), Some(": live\n\n"));
    drop(live.items);
    let frame = live.body.frame().await;
    assert!(frame.is_none(), "the engine stops");
}
