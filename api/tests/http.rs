//! Every kind of answer of the HTTP API over fake ports: the envelope, the headers, the authentication.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper of a test may fail the test"
)]

#[path = "http/browser.rs"]
mod browser;
#[path = "http/stream.rs"]
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sidetone_api::{ApiState, HttpSettings, Ports, router};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::call_log::{CdrFilter, CdrPlace, CdrQuery};
use sidetone_model::cdr::Cdr;
use sidetone_model::directory::Network;
use sidetone_model::ids::{ApiKeyId, CallId, OrganisationId};
use sidetone_model::page::{Order, Page};
use sidetone_model::ports::{ApiKey, ApiKeys, CdrLog, PortFuture, Readiness};
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_model::totals::CdrTotals;
use sidetone_model::verdict_counts::{CountBy, VerdictGroup};
use tower::ServiceExt;
use uuid::Uuid;

/// A call log that fails in the way that the offset selects.
struct Log;

impl CdrLog for Log {
    fn list(&self, _scope: Scope, query: CdrQuery) -> PortFuture<'_, Page<Cdr>> {
        let window = query.window;
        Box::pin(async move {
            match window.offset {
                666 => panic!("secret detail"),
                500 => Err(Problem::Internal("secret detail".to_owned())),
                503 => Err(Problem::Unavailable { reason: "secret detail".to_owned(), retry_after_s: 2 }),
                _ => Ok(Page::by_offset(vec![], 7, &window)),
            }
        })
    }

    fn count<'a>(&'a self, _: Scope, _: &'a CdrFilter, _: u32) -> PortFuture<'a, u64> {
        Box::pin(async { Ok(0) })
    }

    fn chunk<'a>(
        &'a self,
        _: Scope,
        _: &'a CdrFilter,
        _: Order,
        _: Option<CdrPlace>,
        _: u32,
    ) -> PortFuture<'a, Vec<Cdr>> {
        Box::pin(async { Ok(vec![]) })
    }

    fn verdicts<'a>(&'a self, _: Scope, _: &'a CdrFilter, _: CountBy) -> PortFuture<'a, Vec<VerdictGroup>> {
        Box::pin(async { Ok(vec![]) })
    }

    fn totals<'a>(&'a self, _: Scope, _: &'a CdrFilter) -> PortFuture<'a, CdrTotals> {
        Box::pin(async { Ok(CdrTotals::default()) })
    }

    fn find(&self, _call: CallId) -> PortFuture<'_, Option<Cdr>> {
        Box::pin(async { Ok(None) })
    }
}

/// The stored keys, and the number of their look-ups.
#[derive(Default)]
struct Keys(AtomicI64);

impl ApiKeys for Keys {
    fn find(&self, id: &str) -> PortFuture<'_, Option<ApiKey>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let network = |address: &str| Network { address: address.parse().unwrap(), prefix_len: 32 };
        let key = ApiKey {
            key: ApiKeyId(Uuid::from_u128(id.len() as u128)),
            organisation_id: OrganisationId(Uuid::nil()),
            secret_sha256: Sha256::digest(b"secret").into(),
            permissions: vec![Permission::CallsRead],
            allow: vec![network("127.0.0.1")],
            rate_per_minute: 100,
        };
        let found = match id {
            "GOOD" => Ok(Some(key)),
            "BARE" => Ok(Some(ApiKey { permissions: vec![Permission::ConferencesRead], ..key })),
            "OLD" => Ok(Some(ApiKey { allow: vec![], ..key })),
            "SLOW" => Ok(Some(ApiKey { rate_per_minute: 2, ..key })),
            "FAILS" => Err(Problem::Internal("secret detail".to_owned())),
            "AWAY" => Err(Problem::Unavailable { reason: "secret detail".to_owned(), retry_after_s: 2 }),
            _ => Ok(None),
        };
        Box::pin(async {
            tokio::task::yield_now().await;
            found
        })
    }
}

struct NotReady(Vec<String>);

impl Readiness for NotReady {
    fn unready(&self) -> Vec<String> {
        self.0.clone()
    }
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap()
    }

    fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap()
    }
}

struct Api {
    router: Router,
    keys: Arc<Keys>,
    clock: Arc<AtomicI64>,
}

impl Api {
    fn new() -> Self {
        Self::with_unready(vec![])
    }

    fn with_unready(unready: Vec<String>) -> Self {
        let clock = Arc::new(AtomicI64::new(1_767_225_600_000_000));
        let now = Arc::clone(&clock);
        let now = Arc::new(move || Timestamp::from_micros(now.load(Ordering::Relaxed)));
        let keys = Arc::new(Keys::default());
        let state =
            ApiState::new(Ports::of_log(Arc::new(Log), keys.clone(), Arc::new(NotReady(unready))), now)
                .with_trusted_proxies(vec!["10.0.0.0/8".parse().unwrap()]);
        Self { router: router(state), keys, clock }
    }

    async fn send_from(&self, peer: &str, request: axum::http::request::Builder, body: Body) -> Answer {
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 4711)));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Answer { status: parts.status, headers: parts.headers, body }
    }

    async fn get_as(&self, key: &str, path: &str) -> Answer {
        let request = Request::get(path).header("authorization", format!("Bearer {key}"));
        self.send_from("127.0.0.1", request, Body::empty()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.get_as("tel_GOOD_secret", path).await
    }
}

fn check<F: Future>(case: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(case)
}

#[test]
fn every_failure_has_the_envelope_and_the_common_headers() {
    let long = format!("/api/v1/cdrs?q={}", "x".repeat(9000));
    let cases = [
        ("unknown path", "GET", "/api/v1/nothing", 404, "not_found"),
        ("unknown path at the root", "GET", "/nothing", 404, "not_found"),
        ("the prefix itself", "GET", "/api/v1", 404, "not_found"),
        ("a trailing slash", "GET", "/api/v1/cdrs/", 404, "not_found"),
        ("wrong method", "DELETE", "/api/v1/cdrs", 405, "method_not_allowed"),
        ("wrong method on a record", "POST", "/api/v1/cdrs/x", 405, "method_not_allowed"),
        ("wrong method on health", "POST", "/healthz", 405, "method_not_allowed"),
        ("bad limit", "GET", "/api/v1/cdrs?limit=0", 400, "invalid_request"),
        ("no uuid", "GET", "/api/v1/cdrs/123", 400, "invalid_request"),
        ("no UTF-8", "GET", "/api/v1/cdrs/%FF", 400, "invalid_request"),
        ("no record", "GET", "/api/v1/cdrs/00000000-0000-0000-0000-000000000001", 404, "not_found"),
        ("database broken", "GET", "/api/v1/cdrs?offset=500", 500, "internal"),
        ("database away", "GET", "/api/v1/cdrs?offset=503", 503, "node_busy"),
        ("panic", "GET", "/api/v1/cdrs?offset=666", 500, "internal"),
        ("long address", "GET", long.as_str(), 414, "uri_too_long"),
    ];
    check(async {
        let api = Api::new();
        for (name, method, path, status, code) in cases {
            let request =
                Request::builder().method(method).uri(path).header("authorization", "Bearer tel_GOOD_secret");
            let answer = api.send_from("127.0.0.1", request, Body::empty()).await;
            assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{name}");
            assert!(!answer.message().is_empty() && !answer.message().contains("secret"), "{name}");
            assert_eq!(answer.headers["content-type"], "application/json", "{name}");
            assert_eq!(answer.headers["cache-control"], "no-store", "{name}");
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{name}");
            assert_eq!(answer.headers["x-request-id"].len(), 36, "{name}");
            if status == 405 {
                assert_eq!(answer.headers["allow"], "GET,HEAD", "{name}");
            }
            if path.starts_with("/api/v1") {
                assert!(answer.headers.contains_key("x-ratelimit-remaining"), "{name}");
            }
        }
    });
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    check(async {
        let request = Request::get("/api/v1/cdrs")
            .header("authorization", "Bearer tel_GOOD_secret")
            .header("content-length", "1048577");
        let answer = Api::new().send_from("127.0.0.1", request, Body::from(vec![b' '; 1_048_577])).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (413, "payload_too_large"));
    });
}

#[test]
fn who_is_let_in() {
    let cases = [
        ("the key", "Bearer tel_GOOD_secret", "127.0.0.1", 200, ""),
        ("an IPv4-mapped client", "Bearer tel_GOOD_secret", "::ffff:127.0.0.1", 200, ""),
        ("lower-case scheme", "bearer tel_GOOD_secret", "127.0.0.1", 200, ""),
        ("wrong secret", "Bearer tel_GOOD_Secret", "127.0.0.1", 401, "unauthenticated"),
        ("wrong secret from elsewhere", "Bearer tel_GOOD_Secret", "192.0.2.1", 401, "unauthenticated"),
        ("deleted or unknown key", "Bearer tel_NONE_secret", "127.0.0.1", 401, "unauthenticated"),
        ("unknown key from elsewhere", "Bearer tel_NONE_secret", "192.0.2.1", 401, "unauthenticated"),
        ("no key", "Bearer hello", "127.0.0.1", 401, "unauthenticated"),
        ("another scheme", "Basic dXNlcjpwYXNz", "127.0.0.1", 401, "unauthenticated"),
        ("another address", "Bearer tel_GOOD_secret", "127.0.0.2", 403, "ip_not_allowed"),
        ("a key without an allowlist", "Bearer tel_OLD_secret", "127.0.0.1", 403, "ip_allowlist_required"),
        ("a key without the permission", "Bearer tel_BARE_secret", "127.0.0.1", 403, "forbidden"),
        ("the database fails", "Bearer tel_FAILS_secret", "127.0.0.1", 500, "internal"),
        ("the database is away", "Bearer tel_AWAY_secret", "127.0.0.1", 503, "node_busy"),
    ];
    check(async {
        let api = Api::new();
        for (name, authorization, peer, status, code) in cases {
            let request = Request::get("/api/v1/cdrs").header("authorization", authorization);
            let answer = api.send_from(peer, request, Body::empty()).await;
            assert_eq!(answer.status.as_u16(), status, "{name}");
            if status != 200 {
                assert_eq!(answer.code(), code, "{name}");
            }
            assert_eq!(answer.headers.contains_key("www-authenticate"), status == 401, "{name}");
        }
        let answer = api.send_from("127.0.0.1", Request::get("/api/v1/cdrs"), Body::empty()).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (401, "unauthenticated"), "no header at all");
    });
}

#[test]
fn a_forwarded_address_counts_from_a_trusted_proxy_alone() {
    let cases = [
        ("through the proxy", "10.1.2.3", "127.0.0.1", 200),
        ("a stranger behind the proxy", "10.1.2.3", "127.0.0.1, 192.0.2.1", 403),
        ("a stranger who says so himself", "192.0.2.1", "127.0.0.1", 403),
    ];
    check(async {
        for (name, peer, forwarded, status) in cases {
            let request = Request::get("/api/v1/cdrs")
                .header("authorization", "Bearer tel_GOOD_secret")
                .header("x-forwarded-for", forwarded);
            let answer = Api::new().send_from(peer, request, Body::empty()).await;
            assert_eq!(answer.status.as_u16(), status, "{name}");
        }
    });
}

#[test]
fn the_window_of_a_list() {
    check(async {
        let api = Api::new();
        let cases = [
            ("", 50, 0),
            ("?limit=1", 1, 0),
            ("?limit=500&offset=7", 500, 7),
            ("?offset=9223372036854775807", 50, i64::MAX),
        ];
        for (query, limit, offset) in cases {
            let answer = api.get(&format!("/api/v1/cdrs{query}")).await;
            let expected = json!({"items": [], "total": 7, "limit": limit, "offset": offset});
            assert_eq!(answer.body, expected, "{query}");
        }
    });
}

#[test]
fn the_message_names_every_wrong_field_in_the_order_of_the_request() {
    let cases = [
        ("limit=0", "limit: must be between 1 and 500"),
        ("limit=501", "limit: must be between 1 and 500"),
        ("limit=", "limit: must be between 1 and 500"),
        ("limit=%2B5", "limit: must be between 1 and 500"),
        ("limit=1e2", "limit: must be between 1 and 500"),
        ("offset=-1", "offset: must be a whole number, 0 or more"),
        ("offset=9223372036854775808", "offset: must be a whole number, 0 or more"),
        ("offset=x&limit=x", "offset: must be a whole number, 0 or more; limit: must be between 1 and 500"),
        ("limit=1&limit=2", "limit: is given more than once"),
        ("direction=Inbound", "direction: must be one of inbound, outbound, internal"),
        ("transport=", "transport: must be one of node, sip, whatsapp"),
        ("transcoded=1", "transcoded: must be true or false"),
        ("min_billsec=-1", "min_billsec: must be a whole number, 0 or more"),
        ("order=down", "order: must be asc or desc"),
        ("agent_id=0000000000000000000000000000000A", "agent_id: must be a UUID"),
        ("q=a%0Ab", "q: must not contain control characters"),
        ("hangup_cause=%00", "hangup_cause: must not contain control characters"),
        (
            "from=2026-01-01T00:00:00+01:00",
            "from: must be an RFC 3339 timestamp, its + written as %2B, or a date YYYY-MM-DD",
        ),
        (
            "limt=5&sort=foo'&team_id=x",
            "limt: is not a parameter of this list; sort: unknown key 'foo'', must be one of billsec, \
             caller_number, destination_number, direction, ended_at, mos, sell_amount, started_at; \
             team_id: must be a UUID",
        ),
    ];
    check(async {
        let api = Api::new();
        for (query, message) in cases {
            let answer = api.get(&format!("/api/v1/cdrs?{query}")).await;
            assert_eq!((answer.status.as_u16(), answer.message()), (400, message), "{query}");
        }
        let answer = api.get("/api/v1/cdrs?limit=0").await;
        let fields = json!([{"field": "limit", "message": "must be between 1 and 500"}]);
        assert_eq!(answer.body["error"]["fields"], fields);
    });
}

#[test]
fn a_key_has_its_rate_and_every_answer_says_what_is_left() {
    check(async {
        let api = Api::new();
        for remaining in ["1", "0"] {
            let answer = api.get_as("tel_SLOW_secret", "/api/v1/cdrs").await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.headers["x-ratelimit-limit"], "2");
            assert_eq!(answer.headers["x-ratelimit-remaining"], remaining);
            assert_eq!(answer.headers["x-ratelimit-reset"], "1767225660");
        }
        api.clock.fetch_add(20_500_000, Ordering::Relaxed);
        let answer = api.get_as("tel_SLOW_secret", "/api/v1/cdrs").await;
        assert_eq!((answer.status.as_u16(), answer.code()), (429, "rate_limited"));
        assert_eq!(answer.headers["retry-after"], "40");
        assert_eq!(answer.headers["x-ratelimit-remaining"], "0");
        api.clock.fetch_add(40_000_000, Ordering::Relaxed);
        assert_eq!(api.get_as("tel_SLOW_secret", "/api/v1/cdrs").await.status, 200);
    });
}

#[test]
fn guessing_keys_is_slow_and_hurts_nobody_who_was_let_in() {
    check(async {
        let api = Api::new();
        assert_eq!(api.get("/api/v1/cdrs").await.status, 200);
        for _ in 0..60 {
            assert_eq!(api.get_as("tel_GOOD_guess", "/api/v1/cdrs").await.status, 401);
        }
        assert_eq!(api.get_as("tel_GOOD_guess", "/api/v1/cdrs").await.status, 429);
        let answer = api.get("/api/v1/cdrs").await;
        assert_eq!(answer.status, 200, "the right key is let in from the same address");
        assert_eq!(answer.headers["x-ratelimit-remaining"], "98");
    });
}

#[test]
fn keys_are_looked_up_no_oftener_than_their_address_may_guess() {
    check(async {
        let api = Api::new();
        let guesses =
            (0..400).map(|number| {
                let api = &api;
                async move {
                    api.get_as(&format!("tel_GUESS{number}_secret"), "/api/v1/cdrs").await.status.as_u16()
                }
            });
        let statuses = futures_util::future::join_all(guesses).await;
        let refused = statuses.iter().filter(|status| **status == 401).count();
        assert_eq!((refused, statuses.iter().filter(|status| **status == 429).count()), (60, 340));
        assert_eq!(api.keys.0.load(Ordering::Relaxed), 60, "look-ups");
        // A key beyond its own rate is not looked up either.
        let before = api.keys.0.load(Ordering::Relaxed);
        let slow = |peer: &'static str| {
            let request = Request::get("/api/v1/cdrs").header("authorization", "Bearer tel_SLOW_secret");
            api.send_from(peer, request, Body::empty())
        };
        api.clock.fetch_add(60_000_000, Ordering::Relaxed);
        for _ in 0..20 {
            slow("127.0.0.1").await;
        }
        assert_eq!(
            api.keys.0.load(Ordering::Relaxed) - before,
            2,
            "look-ups of a key of two requests a minute"
        );
    });
}

#[test]
fn many_requests_with_one_new_key_at_once_are_all_served() {
    check(async {
        let api = Api::new();
        let requests = (0..90).map(|_| api.get("/api/v1/cdrs"));
        let answers = futures_util::future::join_all(requests).await;
        assert!(answers.iter().all(|answer| answer.status == 200));
    });
}

#[test]
fn health_needs_no_key() {
    check(async {
        let send =
            async |api: Api, path: &str| api.send_from("192.0.2.1", Request::get(path), Body::empty()).await;
        let answer = send(Api::new(), "/healthz").await;
        assert_eq!((answer.status.as_u16(), answer.body), (200, json!({"status": "ok"})));
        let answer = send(Api::new(), "/readyz").await;
        assert_eq!((answer.status.as_u16(), answer.body), (200, json!({"status": "ready"})));
        let unready = vec!["the journal cannot be written".to_owned(), "no SIP listener".to_owned()];
        let answer = send(Api::with_unready(unready), "/readyz").await;
        assert_eq!((answer.status.as_u16(), answer.code()), (503, "not_ready"));
        assert_eq!(answer.message(), "the journal cannot be written; no SIP listener");
    });
}

#[test]
fn the_root_is_a_page_whose_links_lead_somewhere() {
    check(async {
        let send = async |path: &str| {
            let state = ApiState::new(
                Ports::of_log(Arc::new(Log), Arc::new(Keys::default()), Arc::new(NotReady(vec![]))),
                Arc::new(|| Timestamp::from_micros(0)),
            );
            let mut request = Request::get(path).body(Body::empty()).unwrap();
            let peer: SocketAddr = "127.0.0.1:4000".parse().unwrap();
            request.extensions_mut().insert(ConnectInfo(peer));
            let answer = router(state).oneshot(request).await.unwrap();
            let (status, headers) = (answer.status(), answer.headers().clone());
            let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            (status, headers, String::from_utf8(body.to_vec()).unwrap())
        };
        let (status, headers, page) = send("/").await;
        assert_eq!(status, 200);
        assert_eq!(headers["content-type"], "text/html; charset=utf-8");
        assert!(headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        let links: Vec<&str> =
            page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(links, ["/api/v1/docs", "/api/v1/openapi.json", "/readyz", "/metrics"]);
        for link in links {
            assert_eq!(send(link).await.0, 200, "{link}");
        }
    });
}

#[test]
fn a_request_keeps_its_own_id() {
    check(async {
        let api = Api::new();
        for (id, kept) in [("abc-123", true), ("with space", false), (&"x".repeat(129), false)] {
            let request = Request::get("/healthz").header("x-request-id", id);
            let answer = api.send_from("127.0.0.1", request, Body::empty()).await;
            assert_eq!(answer.headers["x-request-id"] == id, kept, "{id}");
        }
    });
}

#[tokio::test]
async fn metrics_are_for_this_host_and_whom_it_allows() {
    let settings = HttpSettings {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        metrics_allow: vec!["192.0.2.9/32".parse().unwrap()],
        ..HttpSettings::default()
    };
    let state = ApiState::new(
        Ports::of_log(Arc::new(Log), Arc::new(Keys::default()), Arc::new(NotReady(vec![]))),
        Arc::new(|| Timestamp::from_micros(0)),
    )
    .with_settings(settings);
    let router = router(state);
    for (peer, forwarded, status) in [
        ("127.0.0.1", None, 200),
        ("::ffff:127.0.0.1", None, 200),
        ("::1", None, 200),
        ("192.0.2.9", None, 200),
        ("192.0.2.8", None, 403),
        // A proxy on this host that is not configured as trusted: its client is unknown.
        ("127.0.0.1", Some("127.0.0.1"), 403),
        ("10.0.0.1", Some("192.0.2.9"), 200),
        ("10.0.0.1", Some("192.0.2.8"), 403),
        ("10.0.0.1", None, 403),
        ("10.0.0.1", Some("192.0.2.9, unknown"), 403),
        ("10.0.0.1", Some("127.0.0.1, 192.0.2.8"), 403),
    ] {
        let mut request = Request::get("/metrics");
        if let Some(forwarded) = forwarded {
            request = request.header("x-forwarded-for", forwarded);
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 4711)));
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{peer} {forwarded:?}");
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&text).unwrap();
        assert_eq!(text.contains("# TYPE sidetone_http_connections gauge\n"), status == 200, "{text}");
    }
}

/// The answer on a connection that sends `bytes`, read until the server closes it.
async fn raw(address: SocketAddr, bytes: &[u8]) -> (String, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut text = Vec::new();
    let read = tokio::time::timeout(std::time::Duration::from_secs(60), stream.read_to_end(&mut text));
    read.await.expect("the end of the connection").unwrap();
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    (head.to_lowercase(), body.to_owned())
}

#[tokio::test]
async fn what_is_no_request_has_the_envelope_and_the_headers_of_every_answer() {
    let settings =
        HttpSettings { header_time: std::time::Duration::from_millis(300), ..HttpSettings::default() };
    let clock = Arc::new(|| Timestamp::from_micros(1_767_225_600_000_000));
    let state = ApiState::new(
        Ports::of_log(Arc::new(Log), Arc::new(Keys::default()), Arc::new(NotReady(vec![]))),
        clock,
    )
    .with_settings(settings);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(
        async move { sidetone_api::HttpServer::new(listener, state).run(std::future::pending()).await },
    );
    let many = format!("GET /api/v1/cdrs HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    let large = format!("GET /api/v1/cdrs HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(100_000));
    let long = format!("GET /api/v1/cdrs?q={} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(66_000));
    let cases: [(&str, &[u8], &[&str]); 7] = [
        ("a malformed line", b"HELLO THERE\r\n\r\n", &["400 invalid_request"]),
        ("bytes", &[0x16, 3, 1, 0, 0xff, b'\r', b'\n', b'\r', b'\n'], &["400 invalid_request"]),
        ("another preface", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", &["400 invalid_request"]),
        ("101 lines", many.as_bytes(), &["431 headers_too_large"]),
        ("100 kB of headers", large.as_bytes(), &["431 headers_too_large"]),
        ("66 kB of an address", long.as_bytes(), &["414 uri_too_long", "431 headers_too_large"]),
        ("half a head", b"GET /api/v1/cdrs HTTP/1.1\r\nHost: a\r\n", &["408 request_timeout"]),
    ];
    for (at, (name, bytes, expected)) in cases.into_iter().enumerate() {
        let (head, body) = raw(address, bytes).await;
        let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{name}: {body}"));
        let code = body["error"]["code"].as_str().unwrap();
        let status = head.split(' ').nth(1).unwrap();
        assert!(expected.contains(&format!("{status} {code}").as_str()), "{name}: {head} {body}");
        assert!(!body["error"]["message"].as_str().unwrap().is_empty(), "{name}");
        for line in [
            "content-type: application/json",
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "x-request-id: ",
            "x-ratelimit-limit: 60",
            &format!("x-ratelimit-remaining: {}", 59 - at),
            "x-ratelimit-reset: 1767225660",
            "connection: close",
        ] {
            assert!(head.contains(&format!("\r\n{line}")), "{name}: {line} is missing in {head}");
        }
    }
}
