//! An API that answers according to its document, with one text for every string.

use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// Answers every operation of the document; every string is `text`.
pub(crate) fn api(text: &str) -> Router {
    Router::new().fallback(answer).with_state(text.to_owned())
}

/// The same for a user with this role.
pub(crate) fn api_for(role: &str, text: &str) -> Router {
    let mut me = user(text);
    me["role"] = role.into();
    api(text).route("/api/v1/auth/me", axum::routing::get(async || axum::Json(me)))
}

/// An API that refuses everything but the session, with this status and text.
pub(crate) fn refusing(status: u16, text: &str) -> Router {
    let text = text.to_owned();
    Router::new().fallback(async move |request: Request<Body>| {
        if request.uri().path() == "/api/v1/auth/me" {
            return axum::Json(user(&text)).into_response();
        }
        let fields = json!([{"field": "q", "message": text}, {"field": "name", "message": text}]);
        let error = json!({"error": {"code": "x", "message": text, "fields": fields}});
        (StatusCode::from_u16(status).unwrap(), axum::Json(error)).into_response()
    })
}

fn user(name: &str) -> Value {
    let permissions: Vec<&str> = sidetone_model::access::Permission::ALL.iter().map(|p| p.as_str()).collect();
    json!({"name": name, "email": name, "organisation_id": name, "extension_id": name, "role": "operator", "permissions": permissions})
}

async fn answer(State(text): State<String>, request: Request<Body>) -> Response {
    let (path, method) = (request.uri().path().to_owned(), request.method().clone());
    if path == "/api/v1/auth/me" {
        return axum::Json(user(&text)).into_response();
    }
    if path.ends_with("/quality") {
        return axum::Json(quality(&text)).into_response();
    }
    let document = document();
    let Some(schema) = schema_of(document, &method, &path) else {
        return (StatusCode::NOT_FOUND, axum::Json(json!({"error": {"code": "not_found", "message": text}})))
            .into_response();
    };
    axum::Json(value(document, &schema, &text, 0)).into_response()
}

/// The quality of a call: words and numbers as the engine writes them, and `text` for texts chosen by other parties.
fn quality(text: &str) -> Value {
    let measure = json!({"name": text, "value": text, "threshold": text});
    let rule = json!({"rule": "lossy_inbound", "reason": text, "outcome": "outranked", "reached_pct": 90, "measures": [measure]});
    let timeline = json!({
        "begins_at": "2026-01-01T00:00:00Z", "step_s": 1, "columns": [text],
        "seconds": [[50, 0, 0, 0, 12.5, 20, 30, 40, 1, 0, 0], [0, 50, 0, 0, null, null, null, null, 1, 0, 0]],
    });
    let leg = |side: &str| {
        json!({
            "leg": side, "party": text, "codec": text, "media_verdict": "lossy_inbound", "reason": text,
            "blame": "remote", "sentence": text, "flags": [text], "rules": [rule],
            "affected": {"first_s": 1, "last_s": 1, "from": "2026-01-01T00:00:01Z", "to": "2026-01-01T00:00:02Z"},
            "addresses": {"source": text, "advertised": text, "signalling": text, "rejected_source": text},
            "inbound": {"packets": 7, "lost": 7, "ssrc": text, "timeline": timeline},
            "outbound": {"packets": 7, "far_end": {"reports": 7}},
            "trace": {"file": text, "bytes": 7},
        })
    };
    json!({
        "call_uuid": "00000000-0000-0000-0000-000000000001", "state": "live", "at": "2026-01-01T00:00:00Z",
        "rules_version": text, "media_verdict": "lossy_inbound", "reason": text, "blame": "network", "sentence": text,
        "callee": {"media_verdict": "ok", "reason": text, "blame": "us", "sentence": text},
        "flags": [text], "legs": [leg("a"), leg("b")],
    })
}

/// The document of the API, parsed once.
fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(include_str!("../../../api/openapi.json")).unwrap())
}

/// The schema of the successful answer; null for an answer without one.
fn schema_of(document: &Value, method: &Method, path: &str) -> Option<Value> {
    let asked: Vec<&str> = path.split('/').collect();
    let paths = document["paths"].as_object().unwrap();
    let matching = paths.iter().filter(|(template, _)| {
        let parts: Vec<&str> = template.split('/').collect();
        parts.len() == asked.len()
            && parts.iter().zip(&asked).all(|(part, asked)| part == asked || part.starts_with('{'))
    });
    // A literal path takes precedence over one with parameters.
    let (_, operations) = matching.min_by_key(|(template, _)| template.matches('{').count())?;
    let operation = operations.get(method.as_str().to_lowercase())?;
    let (_, response) =
        operation["responses"].as_object()?.iter().find(|(status, _)| status.starts_with('2'))?;
    Some(response["content"]["application/json"]["schema"].clone())
}

/// A value of the schema with every field; strings are `text`, numbers 7, flags true.
fn value(document: &Value, schema: &Value, text: &str, depth: usize) -> Value {
    if depth > 12 {
        return Value::Null;
    }
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return value(document, &document["components"]["schemas"][name], text, depth + 1);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut whole = Map::new();
        for part in parts {
            if let Value::Object(fields) = value(document, part, text, depth + 1) {
                whole.extend(fields);
            }
        }
        return Value::Object(whole);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(first) =
            schema[key].as_array().and_then(|parts| parts.iter().find(|part| part["type"] != "null"))
        {
            return value(document, first, text, depth + 1);
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        let fields = properties.iter().map(|(name, of)| (name.clone(), value(document, of, text, depth + 1)));
        return Value::Object(fields.collect());
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match kinds.iter().find(|kind| **kind != "null") {
        Some(&"array") => json!([value(document, &schema["items"], text, depth + 1)]),
        Some(&"boolean") => json!(true),
        Some(&"integer" | &"number") => json!(7),
        Some(&"object") => json!({text: text}),
        _ => json!(text),
    }
}
