//! "Error" and "Errors" of the public document: one test per code and per status rule that this version can produce.
//!
//! `internal` needs a database that fails: see `api/tests/http.rs`.

use serde_json::json;

use crate::common::records::ended;
use crate::http::engine::Engine;
use crate::http::face::Answer;

const CRM: &str = "acmecrm00001";

/// Checks the envelope: `error` with a code and a message, both not empty.
fn check(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code()), (status, code), "{}", answer.body);
    assert_eq!(answer.fields(), ["error"]);
    assert!(answer.body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    assert!(answer.head.contains("content-type: application/json"));
    let detail = answer.body["error"].as_object().unwrap();
    assert!(detail.keys().all(|key| ["code", "message", "fields"].contains(&key.as_str())), "{detail:?}");
}

#[test]
fn invalid_request() {
    let engine = Engine::start(|_| vec![]);
    let answer = engine.get(CRM, "/cdrs?limit=0&sort=colour");
    check(&answer, 400, "invalid_request");
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("limit: must be between 1 and 500; sort: unknown key 'colour'"), "{message}");
    let fields = answer.body["error"]["fields"].as_array().unwrap();
    assert_eq!(fields[0], json!({"field": "limit", "message": "must be between 1 and 500"}));
    assert_eq!(fields[1]["field"], "sort");
}

#[test]
fn unauthenticated() {
    let engine = Engine::start(|_| vec![]);
    check(&engine.send("GET /api/v1/cdrs HTTP/1.1\r\n"), 401, "unauthenticated");
    check(&engine.get("acmecrm99999", "/cdrs"), 401, "unauthenticated");
}

#[test]
fn forbidden() {
    let engine = Engine::start(|_| vec![]);
    check(&engine.get("acmerooms001", "/cdrs"), 403, "forbidden");
}

#[test]
fn not_found() {
    let engine = Engine::start(|_| vec![]);
    check(&engine.get(CRM, "/cdrs/00000000-0000-0000-0000-000000000001"), 404, "not_found");
    check(&engine.get(CRM, "/nothing"), 404, "not_found");
}

#[test]
fn status_400_an_unknown_sort_key() {
    let engine = Engine::start(|_| vec![]);
    check(&engine.get(CRM, "/cdrs?sort=margin"), 400, "invalid_request");
}

#[test]
fn status_401_missing_invalid_or_expired_token() {
    let engine = Engine::start(|_| vec![]);
    for header in ["", "Authorization: Bearer nothing\r\n", "Authorization: Basic eDp5\r\n"] {
        let answer = engine.send(&format!("GET /api/v1/cdrs HTTP/1.1\r\n{header}"));
        check(&answer, 401, "unauthenticated");
        assert!(answer.head.contains("www-authenticate: bearer"));
    }
}

#[test]
fn status_403_outside_the_callers_scope() {
    let engine =
        Engine::start(|ids| vec![sidetone_model::cdr::Cdr { organisation_id: ids.acme, ..ended(1) }]);
    let path = format!("/cdrs/{}", ended(1).call_uuid);
    check(&engine.get("boltcrm00001", &path), 403, "forbidden");
}

#[test]
fn status_403_insufficient_permission() {
    let engine = Engine::start(|_| vec![]);
    check(&engine.get("acmerooms001", "/cdrs/export"), 403, "forbidden");
}

#[test]
fn status_403_organisation_id_outside_scope() {
    let engine = Engine::start(|_| vec![]);
    let path = format!("/cdrs?organisation_id={}", engine.ids.bolt);
    check(&engine.get(CRM, &path), 403, "forbidden");
}

#[test]
fn status_403_ip_not_allowed() {
    let engine = Engine::start(|_| vec![]);
    check(&engine.get("acmeelse0001", "/cdrs"), 403, "ip_not_allowed");
}

#[test]
fn status_429_rate_limited_with_retry_after() {
    let engine = Engine::start(|_| vec![]);
    for _ in 0..3 {
        assert_eq!(engine.get("acmeslow0001", "/cdrs").status, 200);
    }
    let answer = engine.get("acmeslow0001", "/cdrs");
    check(&answer, 429, "rate_limited");
    assert!(answer.head.contains("retry-after: "));
}

/// An unsupported method and an oversized URL get the same envelope.
#[test]
fn other_statuses_have_the_envelope_too() {
    let engine = Engine::start(|_| vec![]);
    check(&engine.send("DELETE /api/v1/cdrs HTTP/1.1\r\n"), 405, "method_not_allowed");
    let long = format!("GET /api/v1/cdrs?q={} HTTP/1.1\r\n", "x".repeat(9_000));
    check(&engine.send(&long), 414, "uri_too_long");
}
