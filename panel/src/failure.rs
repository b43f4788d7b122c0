//! A failure as the API reports it.

use axum::http::StatusCode;
use serde_json::Value;

/// A failure to be shown to the visitor.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    /// The problem, and what to do about it.
    pub(crate) message: String,
    /// The wrong fields: `(name, problem)`.
    pub(crate) fields: Vec<(String, String)>,
}

impl Failure {
    /// A failure of the panel itself.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), fields: Vec::new() }
    }

    /// The page does not exist.
    pub(crate) fn nothing_here() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no page at this address")
    }

    /// Reads the envelope `{"error": {"code", "message", "fields"}}`.
    pub(crate) fn of(status: StatusCode, body: &Value) -> Self {
        let error = &body["error"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let fields = error["fields"].as_array().into_iter().flatten();
        Self {
            status,
            message: error["message"].as_str().unwrap_or("the request failed").to_owned(),
            fields: fields.map(|field| (text(&field["field"]), text(&field["message"]))).collect(),
        }
    }

    /// The problem of a field; a problem inside a list or an object belongs to the list or object.
    pub(crate) fn of_field(&self, name: &str) -> Option<&str> {
        let belongs = |field: &str| {
            field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.fields.iter().find(|(field, _)| belongs(field)).map(|(_, message)| message.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_envelope_is_read() {
        let body = json!({"error": {"code": "invalid_request", "message": "name: is empty",
            "fields": [{"field": "name", "message": "is empty"}, {"field": "allow[1]", "message": "is no address"}]}});
        let failure = Failure::of(StatusCode::BAD_REQUEST, &body);
        assert_eq!(failure.message, "name: is empty");
        assert_eq!(failure.of_field("name"), Some("is empty"));
        assert_eq!(failure.of_field("allow"), Some("is no address"));
        assert_eq!(failure.of_field("nam"), None);
        assert_eq!(Failure::of(StatusCode::BAD_GATEWAY, &Value::Null).message, "the request failed");
    }
}
