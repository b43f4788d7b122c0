//! Every example of the document that creates something is accepted as printed, with the ids replaced by real ones.

use serde_json::{Value, json};

use crate::common::schema::DOCUMENT;
use crate::http::desk::{As, Desk};

/// Operations that need more than the directory: a session, or a phone.
const ELSEWHERE: [&str; 4] = ["/auth/login", "/auth/logout", "/auth/password", "/calls"];

#[test]
fn every_example_that_creates_something_succeeds() {
    let desk = Desk::start();
    let document = &*DOCUMENT;
    let mut tried = Vec::new();
    let mut refused = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1").unwrap_or(path);
        let operation = &item["post"];
        if path.contains('{') || !operation.is_object() || ELSEWHERE.contains(&path) {
            continue;
        }
        let content = &operation["requestBody"]["content"]["application/json"];
        let mut body = content["example"].clone();
        if body.get("trunk_id").is_some() {
            body["trunk_id"] = json!(desk.trunk("shared carrier"));
        }
        // In an organisation that has no such resource yet.
        let schema = content["schema"]["$ref"].as_str().unwrap().trim_start_matches('#');
        if document.pointer(schema).unwrap()["properties"]["organisation_id"]["type"] == "string" {
            body["organisation_id"] = json!(desk.organisation("Bolt"));
        }
        tried.push(path.to_owned());
        let answer = desk.post(As::Operator, path, body.clone());
        if answer.status != 201 {
            refused.push(format!("{path} {}: {}\n  {body}", answer.status, answer.body["error"]["message"]));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(tried.len() > 10, "{tried:?}");
}

/// The other examples have the form that the document requires: no field is refused.
#[test]
fn every_body_has_an_example() {
    let document = &*DOCUMENT;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let content = &operation["requestBody"]["content"]["application/json"];
            if content.is_object() {
                assert!(content["example"].is_object(), "{method} {path}: {}", content["example"]);
                assert_ne!(content["example"], Value::Null, "{method} {path}");
            }
        }
    }
}
