//! "Versioning" of the public document.

use serde_json::Value;

use crate::common::schema::DOCUMENT;
use crate::http::engine::Engine;

/// Rule 1: the public API is `/api/v1`.
#[test]
fn the_public_api_is_api_v1() {
    let document = &*DOCUMENT;
    let mut public = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["x-stability"] == "public" {
                assert!(path.starts_with("/api/v1/"), "{method} {path}");
                public.push(format!("{method} {path}"));
            }
        }
    }
    assert!(public.contains(&"get /api/v1/cdrs".to_owned()));
    assert!(public.contains(&"get /api/v1/cdrs/export".to_owned()));
    let engine = Engine::start(|_| vec![]);
    assert_eq!(engine.get("acmecrm00001", "/cdrs").status, 200);
    let elsewhere = engine.send("GET /api/v2/cdrs HTTP/1.1\r\n");
    assert_eq!((elsewhere.status, elsewhere.code()), (404, "not_found"));
}

/// Rule 2: released parts do not change incompatibly: `api/tests/openapi` compares; this test checks that clients
/// are instructed to ignore what they do not recognise.
#[test]
fn clients_are_told_that_fields_can_appear() {
    let document = &*DOCUMENT;
    let text = document["info"]["description"].as_str().unwrap();
    assert!(text.contains("clients ignore what they do not recognise"));
    // No schema of a public response forbids additional fields.
    for name in ["Cdr", "CdrPage", "ErrorBody", "ErrorDetail"] {
        let schema = &document["components"]["schemas"][name];
        assert_ne!(schema["additionalProperties"], Value::Bool(false), "{name}");
    }
}

/// Rule 3: no removal is announced, so no response has the headers for one.
#[test]
fn nothing_is_deprecated_now() {
    let document = &*DOCUMENT;
    for item in document["paths"].as_object().unwrap().values() {
        assert!(item.as_object().unwrap().values().all(|operation| operation["deprecated"] != true));
    }
    let engine = Engine::start(|_| vec![]);
    let answer = engine.get("acmecrm00001", "/cdrs");
    assert!(!answer.head.contains("deprecation:") && !answer.head.contains("sunset:"));
}

/// Rule 4: the other endpoints are marked as internal to the panel.
#[test]
fn every_endpoint_says_whether_clients_may_rely_on_it() {
    for item in DOCUMENT["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let stability = operation["x-stability"].as_str().unwrap();
            assert!(["public", "panel"].contains(&stability));
        }
    }
}
