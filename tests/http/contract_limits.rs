//! "Limits" of the public document, and its "Authentication" on rates and allowlists: one test per row that
//! no other file has.

use serde_json::{Value, json};

use crate::common::schema::DOCUMENT;
use crate::http::desk::{As, Desk};
use crate::http::engine::Engine;

/// Every list of the API with its parameters, as in the document. Lists below a single resource are
/// tested beside that resource.
fn lists() -> Vec<(String, Vec<Value>)> {
    let document = &*DOCUMENT;
    let paths = document["paths"].as_object().unwrap();
    let mut lists = Vec::new();
    for (path, item) in paths {
        let parameters = item["get"]["parameters"].as_array().cloned().unwrap_or_default();
        if OF_THE_SWITCH.contains(&path.as_str()) {
            continue;
        }
        if !path.contains('{') && parameters.iter().any(|parameter| parameter["name"] == "limit") {
            lists.push((path.strip_prefix("/api/v1").unwrap().to_owned(), parameters));
        }
    }
    assert!(lists.len() > 8, "{lists:?}");
    lists
}

fn schema(parameters: &[Value], name: &str) -> Value {
    parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"].clone()
}

#[test]
fn limit_is_50_unless_asked_otherwise_and_500_at_most_in_every_list() {
    let desk = Desk::start();
    for (path, parameters) in lists() {
        let schema = schema(&parameters, "limit");
        assert_eq!((&schema["default"], &schema["maximum"]), (&json!(50), &json!(500)), "{path}");
        let answer = desk.get(As::Operator, &path);
        assert_eq!((answer.status, &answer.body["limit"]), (200, &json!(50)), "{path}: {}", answer.body);
        assert_eq!(answer.fields(), ["items", "limit", "offset", "total"], "{path}");
        let most = desk.get(As::Operator, &format!("{path}?limit=500"));
        assert_eq!((most.status, &most.body["limit"]), (200, &json!(500)), "{path}");
        for wrong in ["0", "501", "-1", "1.5", "x", ""] {
            let answer = desk.get(As::Operator, &format!("{path}?limit={wrong}"));
            assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{path} {wrong}");
            assert_eq!(answer.message(), "limit: must be between 1 and 500", "{path} {wrong}");
        }
    }
}

#[test]
fn offset_is_0_unless_asked_otherwise_in_every_list() {
    let desk = Desk::start();
    for (path, parameters) in lists() {
        assert_eq!(schema(&parameters, "offset")["default"], 0, "{path}");
        let first = desk.get(As::Operator, &path);
        assert_eq!(first.body["offset"], 0, "{path}");
        let behind = desk.get(As::Operator, &format!("{path}?offset=9223372036854775807"));
        assert_eq!(behind.body["items"], json!([]), "{path}");
        assert_eq!(behind.body["total"], first.body["total"], "{path}: the total is that of the list");
        for wrong in ["-1", "9223372036854775808", "x"] {
            let answer = desk.get(As::Operator, &format!("{path}?offset={wrong}"));
            assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{path} {wrong}");
        }
    }
}

#[test]
fn rate_per_api_key_is_configured_per_key_and_told_on_every_response() {
    let desk = Desk::start();
    let large = vec![b'x'; 2 * 1024 * 1024];
    let json = "Content-Type: application/json\r\n";
    let cases = [
        (desk.get(As::Acme, "/cdrs"), 200, 60_000),
        (desk.get(As::Acme, "/cdrs?limit=0"), 400, 60_000),
        (desk.get(As::Nobody, "/cdrs"), 401, 60),
        (desk.get(As::Rooms, "/cdrs"), 403, 600),
        (desk.get(As::Acme, "/nothing"), 404, 60_000),
        (desk.delete(As::Acme, "/cdrs"), 405, 60_000),
        (desk.raw(As::Acme, "POST", "/teams", json, &large), 413, 60_000),
        (desk.raw(As::Acme, "POST", "/teams", "Content-Type: text/html\r\n", b"x"), 415, 60_000),
        (desk.get(As::Operator, "/cdrs"), 200, 1200),
    ];
    for (answer, status, limit) in cases {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(
            answer.head.contains(&format!("x-ratelimit-limit: {limit}\r\n")),
            "{status}: {}",
            answer.head
        );
        for header in ["x-ratelimit-remaining: ", "x-ratelimit-reset: "] {
            assert!(answer.head.contains(header), "{status}: {}", answer.head);
        }
    }
}

#[test]
fn an_older_key_that_has_no_allowlist_is_refused_with_ip_allowlist_required() {
    let engine = Engine::start(|_| vec![]);
    engine.execute("UPDATE api_keys SET allow = '' WHERE name = 'crm'");
    let answer = engine.get("acmecrm00001", "/cdrs");
    assert_eq!((answer.status, answer.code()), (403, "ip_allowlist_required"));
    let wrong = "GET /api/v1/cdrs HTTP/1.1\r\nAuthorization: Bearer tel_acmecrm00001_wrong\r\n";
    assert_eq!(engine.send(wrong).status, 401, "who does not know the key learns nothing of it");
}

/// These filters match records one by one, so a request must say at which time to begin.
#[test]
fn filters_of_devices_and_networks_need_a_beginning() {
    let desk = Desk::start();
    for list in ["/cdrs", "/cdrs/totals", "/cdrs/verdicts"] {
        for (name, value) in [("user_agent", "Phone"), ("network", "192.0.2.0/24")] {
            let refused = desk.get(As::Operator, &format!("{list}?{name}={value}"));
            assert_eq!((refused.status, refused.code()), (400, "invalid_request"), "{list} {name}");
            let why = format!("{name}: needs from: records are searched from that time on");
            assert_eq!(refused.message(), why, "{list}");
            let found = desk.get(As::Operator, &format!("{list}?{name}={value}&from=2026-01-01T00:00:00Z"));
            assert_eq!(found.status, 200, "{list} {name}: {}", found.body);
        }
    }
}

/// Lists that a process with a switch has: `flows requested::lists_of_the_switch_have_the_limits_of_the_others`, `isolation
/// the_list_of_nodes_has_the_limits_of_the_others`.
const OF_THE_SWITCH: [&str; 3] = ["/api/v1/call-requests", "/api/v1/nodes", "/api/v1/registrations"];
