//! The rules that apply to every operation; rules about parts that this engine lacks are left out.

use serde_json::Value;

/// A section of the page.
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) text: String,
}

/// The sections that apply to `document`.
pub(super) fn of(document: &Value) -> Vec<Rule> {
    let sections = SECTIONS.iter().map(|(id, title, parts)| {
        let texts: Vec<&str> =
            parts.iter().filter(|(needs, _)| needs.met(document)).map(|(_, text)| *text).collect();
        // Consecutive lists are joined into one.
        Rule { id, title, text: texts.join("\n\n").replace("\n\n- ", "\n- ") }
    });
    sections.filter(|rule| !rule.text.is_empty()).collect()
}

/// The condition under which a paragraph is shown.
enum Needs {
    /// It is always shown.
    Nothing,
    /// An operation has this parameter.
    Parameter(&'static str),
    /// A path contains this text.
    Path(&'static str),
}

impl Needs {
    fn met(&self, document: &Value) -> bool {
        let mut paths = document["paths"].as_object().into_iter().flatten();
        match self {
            Needs::Nothing => true,
            Needs::Path(part) => paths.any(|(path, _)| path.contains(part)),
            Needs::Parameter(name) => {
                let has = |operation: &Value| {
                    let mut all = operation["parameters"].as_array().into_iter().flatten();
                    all.any(|parameter| parameter["name"] == *name)
                };
                paths.any(|(_, item)| item.as_object().is_some_and(|item| item.values().any(has)))
            }
        }
    }
}

type Parts = &'static [(Needs, &'static str)];

const SECTIONS: &[(&str, &str, Parts)] = &[
    ("authentication", "Authentication", AUTHENTICATION),
    ("permissions", "Permissions", PERMISSIONS),
    ("errors", "Errors", ERRORS),
    ("limits", "Limits", LIMITS),
    ("lists", "Lists and paging", LISTS),
    ("bodies", "Bodies and values", BODIES),
    ("idempotency", "Idempotency", IDEMPOTENCY),
    ("notes", "Sending notes", NOTES),
    ("versioning", "Versioning", VERSIONING),
    ("reading", "Interpretations of the public document", READING),
];

const AUTHENTICATION: Parts = &[
    (
        Needs::Nothing,
        "Every request carries `Authorization: Bearer <token>`. The token is an integration key of the form \
         `<prefix>_<id>_<secret>`, which belongs to an organisation and is shown once, when it is made.",
    ),
    (
        Needs::Path("/auth/login"),
        "Or it is the token of a panel session from `POST /api/v1/auth/login`. It is valid for 12 hours, or until \
         the password changes or the user is disabled.",
    ),
    (
        Needs::Nothing,
        "A key is accepted only from an address on its allowlist. From any other address the answer is 403 \
         `ip_not_allowed`; a key from before allowlists were compulsory is refused with 403 \
         `ip_allowlist_required`.",
    ),
    (
        Needs::Nothing,
        "The examples below read the address of the engine and the token from the environment:\n\n    \
         BASE=https://pbx.example.com\n    TOKEN=tel_acmecrm00001_...",
    ),
];

const PERMISSIONS: Parts = &[(
    Needs::Nothing,
    "A key carries permissions; the permissions of a user follow from the role. A caller can only \
     grant permissions that it holds. The roles `team_supervisor` and `agent` see only the resources of their \
     own team.",
)];

const ERRORS: Parts = &[
    (Needs::Nothing, "Every failure, on every path, has the same body:"),
    (
        Needs::Nothing,
        "    {\"error\": {\"code\": \"invalid_request\", \"message\": \"limit: must be between 1 and 500\"}}",
    ),
    (
        Needs::Nothing,
        "`code` is for programs and `message` for people. A message names every field that is wrong, and \
         `error.fields` lists them one by one. The list of codes is open; these are in use:\n\
         - 400 `invalid_request`: the request is not valid\n\
         - 401 `unauthenticated`: the token is missing, invalid or expired; `invalid_credentials`: a login failed\n\
         - 403 `forbidden`: outside the scope or the permissions of the caller; `ip_not_allowed`, \
           `ip_allowlist_required`: see Authentication\n\
         - 404 `not_found`, 405 `method_not_allowed`, 408 `request_timeout`\n\
         - 409 `conflict`: the current state does not allow it; the message names the reason\n\
         - 412 `precondition_failed`: the resource was changed since the `ETag` in `If-Match`\n\
         - 413 `payload_too_large`, 414 `uri_too_long`, 415 `unsupported_media_type`, 431 `headers_too_large`\n\
         - 422 `unprocessable`: the request cannot be carried out; `idempotency_key_reused`: \
           the key was used for another request\n\
         - 429 `rate_limited`: too many requests; wait for `Retry-After` seconds\n\
         - 500 `internal`: a failure of the engine; search the log for the `X-Request-Id`\n\
         - 503 `node_busy`, `not_ready`: the same request may be sent again, after `Retry-After`",
    ),
    (
        Needs::Nothing,
        "Every answer carries `X-Request-Id`: your own when the request has one of up to 128 visible ASCII \
         characters, a new one otherwise.",
    ),
];

const LIMITS: Parts = &[
    (
        Needs::Nothing,
        "Each key has its own rate limit, 600 requests a minute by default. Every answer shows the rest of it: \
         `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, the Unix second at which the \
         minute ends. Above the limit the answer is 429 with `Retry-After` in seconds. Requests that fail to \
         authenticate count against their address.",
    ),
    (Needs::Nothing, "A body is at most 1 MiB, an address 8 KiB."),
];

const LISTS: Parts = &[(
    Needs::Nothing,
    "A list answers `{items, total, limit, offset}`. `limit` is 1 to 500, by default 50; `offset` is 0 by \
     default. Other values get 400; they are never corrected silently. Every sort ends with the primary key, so \
     pages never overlap; missing values come last in both directions. Unknown parameters are refused, because a \
     misspelt filter would return too much.\n\n\
     To read a whole list, page by cursor: send an empty `cursor` in place of `offset`, then the `next_cursor` of each \
     page with the same filters and sort; it is null on the last page. No item is repeated or left out while others \
     are added or deleted. On such a page `total` is the number of matching items when the first page was read, and \
     `offset` the number of items on the pages before. A cursor of another list, filter, sort or scope gets 400.",
)];

const BODIES: Parts = &[
    (
        Needs::Nothing,
        "Bodies are JSON in UTF-8. Nullable fields are always present, and null without a value. Other fields \
         without a value are absent, never null, 0 or empty. Ignore unknown fields and values: new ones can appear \
         at any time.\n\
         - Instants are RFC 3339 in UTC with milliseconds: `2026-01-31T12:00:00.000Z`\n\
         - Ids are lower-case hyphenated UUIDs\n\
         - Amounts are exact decimals written as strings, never JSON numbers: `\"0.0125\"`\n\
         - Currencies are ISO 4217 codes, numbers E.164 with `+`",
    ),
    (
        Needs::Path("/organisations"),
        "Unknown fields are refused by name. Read-only fields, such as `id`, are ignored, so that a resource can be \
         sent back as it was read. `PATCH` is a JSON merge patch (RFC 7396): omitted fields keep their values.",
    ),
];

const IDEMPOTENCY: Parts = &[(
    Needs::Parameter("Idempotency-Key"),
    "`POST` and `PATCH` take an `Idempotency-Key` of 1 to 255 visible ASCII characters. The first request with a key \
     is carried out; the same request within 24 hours answers the same status and body again, with \
     `Idempotency-Replayed: true`, and does nothing. While the first one runs, others answer 409 with \
     `Retry-After: 1`; another request under the same key answers 422 `idempotency_key_reused`. A key counts for one \
     API key or user, one method and one path. Answers 400, 401, 403, 412, 429 and 503 are not kept: send the same request \
     again.",
)];

const NOTES: Parts = &[(
    Needs::Path("/info"),
    "Use the message channel when unsure.\n\
     - Do not send the same note twice with different ids\n\
     - Do not send a note every second\n\
     - Do not rely on the app being in the foreground for a message; for anything urgent use a call or a push",
)];

const VERSIONING: Parts = &[
    (
        Needs::Nothing,
        "Operations marked as part of the public API do not change incompatibly within `/api/v1`. New fields, new \
         values, new events and new optional parameters can appear at any time. An incompatible change means a new \
         version, and the old one keeps working for at least six months after the new one is announced.",
    ),
    (Needs::Nothing, "All other operations are the panel's own interface and can change without notice."),
    (
        Needs::Nothing,
        "A deprecated operation has these headers in every answer: `Deprecation` (RFC 9745) with the first day, \
         `Sunset` (RFC 8594) with the last day on which it works, and a `Link` with `rel=\"deprecation\"`. No \
         operation is deprecated now.",
    ),
];

const READING: Parts = &[
    (
        Needs::Nothing,
        "Where the public document leaves a choice, the engine does this:\n\
         - A resource of another organisation answers 403 when it exists and 404 when it does not; ids are random, \
           so this reveals no list of resources",
    ),
    (
        Needs::Path("/cdrs"),
        "- The call log is newest first by default, also when `sort` is given\n\
         - `billsec` is the whole seconds from answer to end, rounded down, and 0 when the call was not answered\n\
         - A date without a time is its midnight in UTC; `to` is exclusive",
    ),
    (
        Needs::Path("/info"),
        "- A note counts as it is sent to the phone, with its `id`: less than 4,096 bytes of JSON",
    ),
    (
        Needs::Path("/conference-rooms"),
        "- Every caller with `conferences:read` can read the PINs of rooms; they are invitation codes, but never \
           part of logs and webhooks\n\
         - An empty `participant_pin` admits every caller who can dial the number, also from outside when a phone \
           number points at the room",
    ),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_rules_of_existing_parts_are_shown() {
        let ids = |document: &Value| -> Vec<&str> { of(document).iter().map(|rule| rule.id).collect() };
        let bare = json!({"paths": {"/api/v1/cdrs": {"get": {}}}});
        assert!(!ids(&bare).contains(&"idempotency") && !ids(&bare).contains(&"notes"));
        let whole = json!({"paths": {
            "/api/v1/calls/{uuid}/info": {"post": {"parameters": [{"name": "Idempotency-Key"}]}},
        }});
        assert!(ids(&whole).contains(&"idempotency") && ids(&whole).contains(&"notes"));
        let text = |document: &Value| of(document).into_iter().map(|rule| rule.text).collect::<String>();
        assert!(!text(&bare).contains("PINs") && text(&bare).contains("rounded down"));
        assert!(!text(&whole).contains("rounded down"));
    }
}
