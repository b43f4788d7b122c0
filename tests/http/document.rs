//! The API document and its page, as served, and whether the routes are the documented ones.

use std::collections::BTreeSet;

use crate::common::schema::{DOCUMENT, conforms};
use crate::http::engine::Engine;
use crate::http::face::key;

#[test]
fn the_document_is_served_without_a_token() {
    let engine = Engine::start(|_| vec![]);
    let answer = engine.send("GET /api/v1/openapi.json HTTP/1.1\r\n");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/json"));
    assert_eq!(answer.body["openapi"], "3.1.0");
    assert_eq!(answer.body, *DOCUMENT);
}

#[test]
fn the_page_is_served_without_a_token_under_a_strict_policy() {
    let engine = Engine::start(|_| vec![]);
    let (status, head, body) = engine.send_for_text("GET /api/v1/docs HTTP/1.1\r\n");
    assert_eq!(status, 200);
    assert!(body.starts_with("<!doctype html>") && body.contains("id=\"listCdrs\""));
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    let (status, head, body) = engine.send_for_text("GET /api/v1/docs/style.css HTTP/1.1\r\n");
    assert_eq!(status, 200);
    assert!(
        head.contains("content-type: text/css; charset=utf-8") && body.contains("prefers-color-scheme: dark")
    );
}

/// A path has exactly the documented methods.
#[test]
fn every_documented_operation_is_a_route_and_every_route_a_documented_operation() {
    let engine = Engine::start(|_| vec![]);
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        let mut documented: BTreeSet<String> =
            item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if documented.contains("GET") {
            documented.insert("HEAD".to_owned());
        }
        let address = filled(path);
        // With a key, because requests without one are limited to fewer a minute than there are paths.
        let bearer = key("acmecrm00001");
        let request = format!("PROPFIND {address} HTTP/1.1\r\nAuthorization: Bearer {bearer}\r\n");
        let (status, head, _) = engine.send_for_text(&request);
        assert_eq!(status, 405, "{path}");
        let allowed = head.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap_or_default();
        let allowed: BTreeSet<String> =
            allowed.split(',').map(|method| method.trim().to_uppercase()).collect();
        assert_eq!(allowed, documented, "{path}");
    }
}

/// Every documented query parameter of a list is read: given twice, it is refused, and the message names it.
#[test]
fn every_documented_parameter_is_read() {
    let engine = Engine::start(|_| vec![]);
    for path in ["/cdrs", "/cdrs/export"] {
        let operation = &DOCUMENT["paths"][format!("/api/v1{path}")]["get"];
        for parameter in operation["parameters"].as_array().unwrap() {
            let name = parameter["name"].as_str().unwrap();
            let answer = engine.get("acmecrm00001", &format!("{path}?{name}=%00&{name}=%00"));
            let message = answer.body["error"]["message"].as_str().unwrap().to_owned();
            assert!(!message.contains("is not a parameter"), "{path}: {message}");
            assert!(message.contains(&format!("{name}: is given more than once")), "{path}: {message}");
        }
    }
}

/// Real responses match the document: each field is documented, each required one is present,
/// null only where it is allowed.
#[test]
fn real_answers_are_the_documented_ones() {
    use crate::common::records::{answered, ended};
    let engine = Engine::start(|ids| {
        [ended(1), answered(2)]
            .map(|cdr| sidetone_model::cdr::Cdr { organisation_id: ids.acme, ..cdr })
            .into()
    });
    let document = &*DOCUMENT;
    for key in ["acmecrm00001", "acmeboss0001"] {
        let page = engine.get(key, "/cdrs");
        assert_eq!(page.body["total"], 2);
        conforms(document, &document["components"]["schemas"]["CdrPage"], &page.body, "CdrPage");
    }
    let refused = engine.get("acmecrm00001", "/cdrs?limit=0");
    conforms(document, &document["components"]["schemas"]["ErrorBody"], &refused.body, "Error");
}

/// The path with an id for every parameter.
fn filled(path: &str) -> String {
    let mut filled = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        filled.push_str("00000000-0000-0000-0000-000000000001");
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    filled.push_str(rest);
    filled
}
