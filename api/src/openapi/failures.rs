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
            "The current state does not allow it; the message names the reason. Or a request with the same \
             `Idempotency-Key` is still running, see `Retry-After` (`conflict`).",
        ),
        (
            "Forbidden",
            "Outside the caller's scope or permissions (`forbidden`), a key used from an address that is \
             not on its allowlist (`ip_not_allowed`), or a key without an allowlist \
             (`ip_allowlist_required`).",
        ),
        ("Internal", "A failure of the engine; search the log for the `X-Request-Id` (`internal`)."),
        (
            "InvalidRequest",
            "The request is not valid; the message names every field that is wrong (`invalid_request`).",
        ),
        ("NotFound", "The resource does not exist (`not_found`)."),
        ("PayloadTooLarge", "The body is too large (`payload_too_large`)."),
        ("RateLimited", "Too many requests; wait for `Retry-After` seconds (`rate_limited`)."),
        ("RequestTimeout", "The body took too long to arrive (`request_timeout`)."),
        ("Unauthenticated", "The token is missing, invalid or expired (`unauthenticated`)."),
        (
            "Unavailable",
            "The engine or its database is not available now. Send the same request again after \
             `Retry-After`, with the same `Idempotency-Key` (`node_busy`).",
        ),
        (
            "Unprocessable",
            "The `Idempotency-Key` was used for another request (`idempotency_key_reused`), or the request \
             cannot be carried out (`unprocessable`).",
        ),
        ("UnsupportedMediaType", "The body is not `application/json` (`unsupported_media_type`)."),
        ("UriTooLong", "The address is longer than 8 KiB (`uri_too_long`)."),
    ];
    let all = texts.into_iter().map(|(name, description)| {
        let mut headers = common_headers(true);
        if matches!(name, "RateLimited" | "Unavailable") {
            headers.insert("Retry-After".to_owned(), reference("headers", "RetryAfter"));
        }
        let content = json!({"application/json": {"schema": reference("schemas", "ErrorBody")}});
        (name.to_owned(), json!({"description": description, "headers": headers, "content": content}))
    });
    Value::Object(all.collect())
}

/// The headers that the answers refer to.
pub(super) fn headers() -> Value {
    let whole = |description: &str| json!({"description": description, "required": true, "schema": {"type": "integer", "minimum": 0}});
    json!({
        "IdempotencyReplayed": {
            "description": "`true` when this is the stored answer of an earlier request with the same \
             `Idempotency-Key`.",
            "required": false,
            "schema": {"type": "string", "enum": ["true"]},
        },
        "RateLimitLimit": whole("Requests a minute."),
        "RateLimitRemaining": whole("Requests left in this minute."),
        "RateLimitReset": whole("When the minute ends, in Unix seconds."),
        "RequestId": {
            "description": "The `X-Request-Id` of the request, if it is at most 128 visible ASCII \
             characters; otherwise a new one.",
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
