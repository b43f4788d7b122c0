//! Completes every operation with the parts that are common to all of them.

use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use crate::body::MERGE_PATCH;
use crate::docs::examples;
use crate::openapi::edit::within;
use crate::openapi::payloads::Payloads;
use crate::openapi::{failures, schemas, webhooks, words};

/// The complete document of the operations in `api`.
pub(crate) fn complete(api: &OpenApi) -> Value {
    let mut api = api.clone();
    api.merge(words::words());
    api.merge(Payloads::openapi());
    let Ok(Value::Object(mut document)) = serde_json::to_value(api) else { return Value::Null };
    document.insert("openapi".to_owned(), json!("3.1.0"));
    document.insert("info".to_owned(), info());
    document.insert(
        "servers".to_owned(),
        json!([{"url": "/", "description": "The engine that serves this document."}]),
    );
    document.insert("security".to_owned(), json!([{"bearer": []}]));
    schemas::tidy(&mut document);
    webhooks::add(&mut document);
    within(&mut document, "paths", |paths| {
        for (path, item) in paths.iter_mut() {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                if let Some(operation) = operation.as_object_mut() {
                    finish(path, method, operation);
                }
            }
        }
        paths.sort_keys();
    });
    within(&mut document, "components", |components| {
        within(components, "schemas", Map::sort_keys);
        components.insert("responses".to_owned(), failures::responses());
        components.insert("headers".to_owned(), failures::headers());
        components.insert("securitySchemes".to_owned(), json!({"bearer": security_scheme()}));
        components.sort_keys();
    });
    schemas::prune(&mut document);
    schemas::close_bodies(&mut document);
    exemplify(document)
}

/// Adds an example to every body, which `tests/http/examples.rs` sends.
fn exemplify(document: Map<String, Value>) -> Value {
    let whole = Value::Object(document);
    let mut exemplified = whole.clone();
    let paths = exemplified.get_mut("paths").and_then(Value::as_object_mut);
    for item in paths.into_iter().flat_map(Map::values_mut) {
        for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let contents = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut);
            for (kind, content) in contents.into_iter().flatten() {
                if let (true, Some(content)) = (kind.ends_with("json"), content.as_object_mut()) {
                    let schema = content.get("schema").cloned().unwrap_or_default();
                    content.insert("example".to_owned(), examples::body(&whole, &schema));
                }
            }
        }
    }
    exemplified
}

/// Adds the failures, the headers and the permission of one operation.
fn finish(path: &str, method: &str, operation: &mut Map<String, Value>) {
    let public = operation.get("security").is_some();
    if public {
        // utoipa writes `security(())` as "none or this"; an empty list means none.
        operation.insert("security".to_owned(), json!([]));
    }
    if let Some(permission) = operation.get("x-permission").and_then(Value::as_str).map(str::to_owned) {
        let text = operation.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{text}\n\nNeeds the permission `{permission}`.");
        operation.insert("description".to_owned(), json!(text.trim_start()));
    }
    if method == "patch" {
        within(operation, "requestBody", |body| {
            within(body, "content", |content| {
                if let Some(json) = content.get("application/json").cloned() {
                    content.insert(MERGE_PATCH.to_owned(), json);
                }
            });
        });
    }
    if !public && matches!(method, "post" | "patch") {
        let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
        if let Value::Array(parameters) = parameters {
            parameters.push(idempotency_key());
        }
    }
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        refuse_controls(parameter);
        state_tags(parameter);
    }
    let stability = if is_public(method, path) { "public" } else { "panel" };
    operation.insert("x-stability".to_owned(), json!(stability));
    let failures = failures::of(path, method, operation, public);
    let limited = path.starts_with("/api/");
    within(operation, "responses", |responses| {
        for (status, name) in failures {
            // The handler's own description is more precise.
            responses
                .entry(status.to_string())
                .or_insert_with(|| json!({"$ref": format!("#/components/responses/{name}")}));
        }
        responses.sort_keys();
        for response in responses.values_mut().filter_map(Value::as_object_mut) {
            if !response.contains_key("$ref") {
                within(response, "headers", |headers| headers.extend(failures::common_headers(limited)));
            }
        }
        if !public && matches!(method, "post" | "patch") {
            replayed(responses);
        }
    });
}

/// Whether the operation is stable: the public documentation contains it.
fn is_public(method: &str, path: &str) -> bool {
    PUBLIC.iter().any(|(known, at)| *known == method && path.strip_prefix("/api/v1") == Some(*at))
}

/// The operations of the public documentation. They do not change incompatibly within `v1`; all others are
/// the panel's own interface and can change without notice.
const PUBLIC: &[(&str, &str)] = &[
    ("post", "/auth/login"),
    ("get", "/cdrs"),
    ("get", "/cdrs/export"),
    ("get", "/cdrs/{uuid}/conversation"),
    ("post", "/calls/{uuid}/info"),
    ("get", "/calls/{uuid}/infos"),
    ("get", "/conference-rooms"),
    ("post", "/conference-rooms"),
    ("get", "/conference-rooms/{id}"),
    ("patch", "/conference-rooms/{id}"),
    ("delete", "/conference-rooms/{id}"),
    ("post", "/conference-rooms/{id}/dial"),
    ("put", "/conference-rooms/{id}/exemptions"),
    ("put", "/conference-rooms/{id}/members"),
    ("get", "/conference-rooms/{id}/meetings"),
    ("get", "/conference-rooms/{id}/messages"),
    ("get", "/conference-rooms/{id}/sessions"),
    ("get", "/conference-rooms/{id}/sessions/{sid}/meeting"),
    ("get", "/conferences"),
    ("get", "/conferences/by-call/{uuid}"),
    ("get", "/conferences/{room}"),
    ("post", "/conferences/{room}/end"),
    ("post", "/conferences/{room}/lock"),
    ("post", "/conferences/{room}/members/{id}/kick"),
    ("post", "/conferences/{room}/members/{id}/mute"),
    ("post", "/conferences/{room}/members/{id}/unmute"),
    ("post", "/conferences/{room}/mute-all"),
    ("post", "/conferences/{room}/record"),
    ("post", "/conferences/{room}/unlock"),
    ("get", "/conference-rooms/{id}/sessions/{sid}/recording/audio"),
    ("get", "/conversations/{id}"),
    ("get", "/extensions/{id}"),
    ("post", "/extensions/{id}/message"),
    ("get", "/extensions/{id}/messages"),
    ("patch", "/organisations/{id}"),
];

fn info() -> Value {
    json!({
        "title": "Sidetone",
        "version": "1",
        "summary": "The HTTP API of a SIP switch and RTP media analyser.",
        "description": "Call records, conversations and the directory. Every request carries \
            `Authorization: Bearer <token>`; every failure has the body `{error: {code, message}}`. Operations \
            do not change incompatibly within `/api/v1`; new fields, new values of a field and new optional \
            parameters can appear at any time, and clients ignore what they do not recognise.",
        "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
    })
}

/// The parameter that every `POST` and `PATCH` of an authenticated caller has.
fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "The request is carried out once, even when it is sent several times within 24 hours.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        "example": "order-4711",
    })
}

/// Gives `If-Match` the pattern of entity tags (RFC 9110 §13.1.1): `*`, or one or more tags without commas in
/// them.
fn state_tags(parameter: &mut Value) {
    if parameter["name"] != "If-Match" {
        return;
    }
    let tag = r#"(W/)?"[!#-+\--~]*""#;
    let pattern = format!(r"^(\*|{tag}(, ?{tag})*)$");
    if let Some(parameter) = parameter.as_object_mut() {
        parameter.insert("schema".to_owned(), json!({"type": "string", "pattern": pattern}));
        parameter.insert("example".to_owned(), json!("\"1789041600000000\""));
    }
}

/// Adds to a search parameter that control characters are refused, as in every list.
fn refuse_controls(parameter: &mut Value) {
    if parameter["in"] != "query" {
        return;
    }
    let Some(schema) = parameter.get_mut("schema").and_then(Value::as_object_mut) else { return };
    let free = !["enum", "format", "pattern"].iter().any(|key| schema.contains_key(*key));
    if free && schema.get("type").is_some_and(|kind| kind == "string") {
        schema.insert("pattern".to_owned(), json!(r"^[^\u0000-\u001f\u007f-\u009f]*$"));
    }
}

/// Adds the header of a repeated answer to a success.
fn replayed(responses: &mut Map<String, Value>) {
    let successes = responses.iter_mut().filter(|(status, _)| status.starts_with('2'));
    for response in successes.filter_map(|(_, response)| response.as_object_mut()) {
        within(response, "headers", |headers| {
            let header = json!({"$ref": "#/components/headers/IdempotencyReplayed"});
            headers.insert("Idempotency-Replayed".to_owned(), header);
        });
    }
}

fn security_scheme() -> Value {
    json!({
        "type": "http",
        "scheme": "bearer",
        "description": "An integration key `<prefix>_<id>_<secret>`, accepted only from the addresses on \
         its allowlist, or the token of a panel session.",
    })
}
