//! "Authentication" and "Errors" of the public document.

use crate::common::records::ended;
use crate::http::engine::Engine;

#[test]
fn every_request_carries_a_bearer_token() {
    let engine = Engine::start(|_| vec![]);
    let answer = engine.send("GET /api/v1/cdrs HTTP/1.1\r\n");
    assert_eq!((answer.status, answer.code()), (401, "unauthenticated"));
    assert!(answer.head.contains("www-authenticate: bearer"));
    assert_eq!(engine.get("acmecrm00001", "/cdrs").status, 200);
}

#[test]
fn a_missing_invalid_or_unknown_token_answers_401() {
    let engine = Engine::start(|_| vec![]);
    for token in [
        "tel_acmecrm00001_0123456789abcdefghijklmnopqrstuvwxyZ",
        "tel_acmecrm00009_0123456789abcdefghijklmnopqrstuvwxyz",
        "0123456789abcdefghijklmnopqrstuvwxyz",
        "eyJhbGciOiJub25lIn0.e30.",
    ] {
        let answer = engine.send(&format!("GET /api/v1/cdrs HTTP/1.1\r\nAuthorization: Bearer {token}\r\n"));
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{token}");
        assert!(!answer.body.to_string().contains(token));
    }
}

#[test]
fn a_key_is_accepted_only_from_an_address_on_its_allowlist() {
    let engine = Engine::start(|_| vec![]);
    let answer = engine.get("acmeelse0001", "/cdrs");
    assert_eq!((answer.status, answer.code()), (403, "ip_not_allowed"));
}

#[test]
fn a_spoofed_forwarded_address_changes_nothing() {
    let engine = Engine::start(|_| vec![]);
    let answer = engine.send(
        "GET /api/v1/cdrs HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\n\
         Authorization: Bearer tel_acmeelse0001_0123456789abcdefghijklmnopqrstuvwxyz\r\n",
    );
    assert_eq!(answer.code(), "ip_not_allowed");
}

#[test]
fn a_rate_that_is_exceeded_answers_429_with_retry_after() {
    let engine = Engine::start(|_| vec![]);
    for remaining in [2, 1, 0] {
        let answer = engine.get("acmeslow0001", "/cdrs");
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("x-ratelimit-limit: 3"));
        assert!(answer.head.contains(&format!("x-ratelimit-remaining: {remaining}")));
    }
    let answer = engine.get("acmeslow0001", "/cdrs");
    assert_eq!((answer.status, answer.code()), (429, "rate_limited"));
    assert!(answer.head.contains("retry-after: 60") && answer.head.contains("x-ratelimit-reset: "));
}

#[test]
fn insufficient_permission_answers_403() {
    let engine = Engine::start(|_| vec![]);
    for path in ["/cdrs", "/cdrs/00000000-0000-0000-0000-000000000001"] {
        let answer = engine.get("acmerooms001", path);
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{path}");
    }
}

#[test]
fn outside_the_scope_answers_403_and_shows_nothing() {
    let engine = Engine::start(|ids| {
        let mut own = ended(1);
        own.organisation_id = ids.acme;
        vec![own]
    });
    let path = format!("/cdrs/{}", ended(1).call_uuid);
    assert_eq!(engine.get("acmecrm00001", &path).status, 200);
    let answer = engine.get("boltcrm00001", &path);
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
    assert_eq!(answer.fields(), ["error"]);
    let answer = engine.get("boltcrm00001", "/cdrs");
    assert_eq!((answer.body["total"].as_u64(), answer.body["items"].as_array().unwrap().len()), (Some(0), 0));
}

#[test]
fn the_error_body_is_the_envelope_on_every_path() {
    let engine = Engine::start(|_| vec![]);
    let long = format!("GET /api/v1/cdrs?q={} HTTP/1.1\r\n", "x".repeat(20_000));
    for (head, status, code) in [
        ("GET /api/v1/nothing HTTP/1.1\r\n", 404, "not_found"),
        ("GET /nothing HTTP/1.1\r\n", 404, "not_found"),
        ("PUT /api/v1/cdrs HTTP/1.1\r\nContent-Length: 0\r\n", 405, "method_not_allowed"),
        (long.as_str(), 414, "uri_too_long"),
    ] {
        let answer = engine.send(head);
        assert_eq!((answer.status, answer.code()), (status, code), "{code}");
        assert!(answer.body["error"]["message"].is_string());
        assert!(answer.head.contains("content-type: application/json"), "{code}");
        assert!(answer.head.contains("x-request-id: ") && answer.head.contains("cache-control: no-store"));
    }
}

#[test]
fn health_and_readiness_need_no_token() {
    let engine = Engine::start(|_| vec![]);
    assert_eq!(engine.send("GET /healthz HTTP/1.1\r\n").body["status"], "ok");
    assert_eq!(engine.send("GET /readyz HTTP/1.1\r\n").body["status"], "ready");
}
