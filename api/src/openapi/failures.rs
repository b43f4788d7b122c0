//! The failures that follow from the kind of an operation, and the headers of every answer.

use serde_json::{Map, Value, json};

/// A status and the name of its response among the components.
type Failure = (u16, &'static str);

/// The possible failures of an operation, derived from the form of its request.
pub(super) fn of(path: &str, method: &str, operation: &Map<String, Value>, public: bool) -> Vec<Failure> {
    let mut found = Vec::new();
    if !path.starts_with("/api/") {
        return vec![(500, "Internal"), (503, "Unavailable")];
    }
    let parameters: &[Value] =
        operation.get("parameters").and_then(Value::as_array).map_or(&[], Vec::as_slice);
    let with = |place: &str| parameters.iter().any(|parameter| parameter["in"] == place);
    let body = operation.contains_key("requestBody");
    if body || with("path") || with("query") {
        found.push((400, "InvalidRequest"));
    }
    if !public {
        found.extend([(401, "Unauthenticated"), (403, "Forbidden")]);
    }
    if with("path") {
        found.push((404, "NotFound"));
    }
    if body {
        found.extend([(408, "RequestTimeout"), (413, "PayloadTooLarge"), (415, "UnsupportedMediaType")]);
    }
    if with("query") {
        found.push((414, "UriTooLong"));
    }
    if with("header") && matches!(method, "post" | "patch") {
        found.extend([(409, "Conflict"), (422, "Unprocessable")]);
    }
    found.extend([(429, "RateLimited"), (500, "Internal"), (503, "Unavailable")]);
    found
}

/// The responses that [`of`] refers to.
pub(super) fn responses() -> Value {
    let texts = [
        (
            "Conflict",
            "The state of things forbids it, the message says what stands in the way; or a request with the same \
             `Idempotency-Key` still runs, see `Retry-After` (`conflict`).",
        ),
        (
            "Forbidden",
            "Outside the caller's scope or permissions (`forbidden`), or a key used from an address that is not \
             on its allowlist (`ip_not_allowed`) or that has none (`ip_allowlist_required`).",
        ),
        ("Internal", "A failure of the engine; `X-Request-Id` finds it in the log (`internal`)."),
        (
            "InvalidRequest",
            "The request is not valid; the message names every field that is wrong (`invalid_request`).",
        ),
        ("NotFound", "There is no such thing (`not_found`)."),
        ("PayloadTooLarge", "The body is too large (`payload_too_large`)."),
        ("RateLimited", "Too many requests, wait as long as `Retry-After` says (`rate_limited`)."),
        ("RequestTimeout", "The body took too long to arrive (`request_timeout`)."),
        ("Unauthenticated", "The token is missing, invalid or expired (`unauthenticated`)."),
        (
            "Unavailable",
            "The engine or its database cannot do it now. The same request may be sent again after `Retry-After`, with \
             the same `Idempotency-Key` as well (`node_busy`).",
        ),
        (
            "Unprocessable",
            "The `Idempotency-Key` was used for another request (`idempotency_key_reused`), or the request is \
             understood and cannot be carried out (`unprocessable`).",
        ),
        ("UnsupportedMediaType", "The body is not `application/json` (`unsupported_media_type`)."),
        ("UriTooLong", "The address is longer than 8 KiB (`uri_too_long`)."),
    ];
    let all = texts.into_iter().map(|(name, description)| {
        let mut headers = common_headers(true);
        if matches!(name, "RateLimited" | "Unavailable") {
            headers.insert("Retry-After".to_owned(), reference("headers", "RetryAfter"));
        }
        let content = json!({"application/json": {"schema": reference("schemas", "Error")}});
        (name.to_owned(), json!({"description": description, "headers": headers, "content": content}))
    });
    Value::Object(all.collect())
}

/// The headers that the answers refer to.
pub(super) fn headers() -> Value {
    let whole = |description: &str| json!({"description": description, "required": true, "schema": {"type": "integer", "minimum": 0}});
    json!({
        "IdempotencyReplayed": {
            "description": "`true` when an earlier request with the same `Idempotency-Key` was carried out, and this \
                is its answer.",
            "required": false,
            "schema": {"type": "string", "enum": ["true"]},
        },
        "RateLimitLimit": whole("Requests a minute."),
        "RateLimitRemaining": whole("Requests left in this minute."),
        "RateLimitReset": whole("When the minute ends, in Unix seconds."),
        "RequestId": {
            "description": "The caller's own `X-Request-Id` when it is up to 128 visible ASCII characters, \
                a new one otherwise.",
            "required": true,
            "schema": {"type": "string"},
        },
        "RetryAfter": whole("Seconds to wait."),
    })
}

/// The headers of an answer; `limited` ones count against a rate.
pub(super) fn common_headers(limited: bool) -> Map<String, Value> {
    let mut headers = Map::new();
    headers.insert("X-Request-Id".to_owned(), reference("headers", "RequestId"));
    if limited {
        for part in ["Limit", "Remaining", "Reset"] {
            headers.insert(format!("X-RateLimit-{part}"), reference("headers", &format!("RateLimit{part}")));
        }
    }
    headers
}

fn reference(part: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{part}/{name}")})
}
