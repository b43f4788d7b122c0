//! Features that browsers request in addition to an answer: CORS and gzip.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use flate2::read::GzDecoder;
use http_body_util::BodyExt;
use serde_json::Value;
use sidetone_api::{ApiState, HttpSettings, Ports, router};
use sidetone_model::time::Timestamp;
use tower::ServiceExt;

use crate::{Keys, Log, NotReady, check};

const PANEL: &str = "https://panel.example.com";

fn app(cors_origins: &[&str]) -> Router {
    let ports = Ports::of_log(Arc::new(Log), Arc::new(Keys::default()), Arc::new(NotReady(vec![])));
    let state = ApiState::new(ports, Arc::new(|| Timestamp::from_micros(1_767_225_600_000_000)));
    let cors_origins = cors_origins.iter().map(|origin| (*origin).to_owned()).collect();
    state.settings().replace(HttpSettings { cors_origins, ..HttpSettings::default() });
    router(state)
}

async fn send(
    app: &Router,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 4711))));
    let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
}

#[test]
fn a_page_of_an_allowed_origin_may_call() {
    check(async {
        let app = app(&[PANEL]);
        let asks = [("origin", PANEL), ("access-control-request-method", "PATCH")];
        let (status, headers, body) = send(&app, "OPTIONS", "/api/v1/cdrs", &asks).await;
        assert_eq!((status.as_u16(), body.len()), (204, 0));
        assert_eq!(headers["access-control-allow-origin"], PANEL);
        assert!(headers["access-control-allow-methods"].to_str().unwrap().contains("PATCH"));
        for name in ["authorization", "if-match", "idempotency-key", "last-event-id"] {
            assert!(headers["access-control-allow-headers"].to_str().unwrap().contains(name), "{name}");
        }
        assert!(!headers.contains_key("access-control-allow-credentials"));
        assert!(headers.contains_key("x-request-id"));
        // Failures are readable as well.
        for (path, expected) in [("/api/v1/openapi.json", 200), ("/api/v1/cdrs", 401), ("/nothing", 404)] {
            let (status, headers, _) = send(&app, "GET", path, &[("origin", PANEL)]).await;
            assert_eq!(status.as_u16(), expected, "{path}");
            assert_eq!(headers["access-control-allow-origin"], PANEL, "{path}");
            assert!(headers["access-control-expose-headers"].to_str().unwrap().contains("retry-after"));
            assert!(headers.get_all("vary").iter().any(|vary| vary == "origin"), "{path}");
        }
    });
}

#[test]
fn no_other_page_may_call() {
    check(async {
        let cases: [(&[&str], &str); 4] = [
            (&[], PANEL),
            (&[PANEL], "https://panel.example.com.attacker.example"),
            (&[PANEL], "http://panel.example.com"),
            (&[PANEL], "null"),
        ];
        for (allowed, origin) in cases {
            let app = app(allowed);
            let asks = [("origin", origin), ("access-control-request-method", "GET")];
            let (status, headers, _) = send(&app, "OPTIONS", "/api/v1/cdrs", &asks).await;
            assert_eq!(status.as_u16(), 405, "{origin}: as without CORS");
            assert!(!headers.contains_key("access-control-allow-origin"), "{origin}");
            let (_, headers, _) = send(&app, "GET", "/api/v1/openapi.json", &[("origin", origin)]).await;
            assert!(!headers.contains_key("access-control-allow-origin"), "{origin}");
        }
    });
}

#[test]
fn long_texts_are_compressed_for_those_who_accept_it() {
    check(async {
        let app = app(&[]);
        let path = "/api/v1/openapi.json";
        let (_, headers, plain) = send(&app, "GET", path, &[]).await;
        assert!(!headers.contains_key("content-encoding"));
        let gzip = [("accept-encoding", "gzip, br")];
        let (_, headers, packed) = send(&app, "GET", path, &gzip).await;
        assert_eq!(headers["content-encoding"], "gzip");
        assert!(headers.get_all("vary").iter().any(|vary| vary == "accept-encoding"));
        assert!(packed.len() * 4 < plain.len(), "{} of {}", packed.len(), plain.len());
        let mut unpacked = Vec::new();
        GzDecoder::new(packed.as_slice()).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == plain);
        assert!(serde_json::from_slice::<Value>(&unpacked).unwrap()["paths"].is_object());
        // A short answer, and an answer to a client that refuses gzip.
        let (_, headers, _) = send(&app, "GET", "/api/v1/cdrs", &gzip).await;
        assert!(!headers.contains_key("content-encoding"));
        let (_, headers, _) = send(&app, "GET", path, &[("accept-encoding", "gzip;q=0")]).await;
        assert!(!headers.contains_key("content-encoding"));
        // The length of what GET would send, which is known without compression.
        let (_, headers, body) = send(&app, "HEAD", path, &gzip).await;
        assert_eq!(headers["content-length"].to_str().unwrap(), plain.len().to_string());
        assert!(!headers.contains_key("content-encoding") && body.is_empty());
    });
}
