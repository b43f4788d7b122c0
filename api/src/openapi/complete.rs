//! Completes every operation with what is common to all of them.

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use crate::openapi::edit::within;
use crate::openapi::{failures, schemas, words};

/// The complete document of the operations in `api`.
pub(crate) fn complete(api: &OpenApi) -> Value {
    let mut api = api.clone();
    api.merge(words::words());
    let Ok(Value::Object(mut document)) = serde_json::to_value(api) else { return Value::Null };
    document.insert("openapi".to_owned(), json!("3.1.0"));
    document.insert("info".to_owned(), info());
    document.insert(
        "servers".to_owned(),
        json!([{"url": "/", "description": "The engine that serves this document."}]),
    );
    document.insert("security".to_owned(), json!([{"bearer": []}]));
    schemas::tidy(&mut document);
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
    Value::Object(document)
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
    if !public && matches!(method, "post" | "patch") {
        let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
        if let Value::Array(parameters) = parameters {
            parameters.push(idempotency_key());
        }
    }
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        refuse_controls(parameter);
    }
    let stability = if is_public(method, path) { "public" } else { "panel" };
    operation.insert("x-stability".to_owned(), json!(stability));
    let failures = failures::of(path, method, operation, public);
    let limited = path.starts_with("/api/");
    within(operation, "responses", |responses| {
        for (status, name) in failures {
            // The handler's own description is more exact.
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
    ("get", "/conference-rooms"),
    ("post", "/conference-rooms"),
    ("get", "/conference-rooms/{id}"),
    ("patch", "/conference-rooms/{id}"),
    ("delete", "/conference-rooms/{id}"),
    ("post", "/conference-rooms/{id}/dial"),
    ("put", "/conference-rooms/{id}/exemptions"),
    ("put", "/conference-rooms/{id}/members"),
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
];

fn info() -> Value {
    json!({
        "title": "Sidetone",
        "version": "1",
        "summary": "The HTTP API of a SIP switch and RTP media analyser.",
        "description": "Call records, conversations and the directory behind them. Every request carries \
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
        "description": "Carries the request out once, however often it is sent within 24 hours.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        "example": "order-4711",
    })
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
        "description": "An integration key `<prefix>_<id>_<secret>`, accepted from the addresses on its \
            allowlist alone, or the token of a panel session.",
    })
}
