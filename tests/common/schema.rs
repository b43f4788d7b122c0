//! Checks of values against the schemas of the API document.

use std::sync::LazyLock;

use serde_json::Value;
use sidetone_model::event::Event;

/// The API document, generated once.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(sidetone_api::openapi);

/// Checks that a value is valid by a schema of the document; a panic names the place of the error.
pub fn conforms(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(target) = schema["$ref"].as_str() {
        return conforms(document, document.pointer(&target[1..]).unwrap(), value, place);
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => vec![kind.as_str().unwrap_or_else(|| panic!("{place} has no type: {schema}"))],
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = kinds.contains(&kind) || (kind == "integer" && kinds.contains(&"number"));
    assert!(fits, "{place}: {value} is no {kinds:?}");
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{place}: {value} is none of {values:?}");
    }
    for item in value.as_array().into_iter().flatten() {
        conforms(document, &schema["items"], item, &format!("{place}[]"));
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let known =
            schema["properties"].get(name).unwrap_or_else(|| panic!("{place}.{name} is not documented"));
        conforms(document, known, field, &format!("{place}.{name}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(value.is_null() || value.get(name).is_some(), "{place}.{name} is missing");
    }
}

/// Checks that an event is valid by the schema of its kind.
pub fn documented(event: &Event) {
    let document = &*DOCUMENT;
    let name = event.kind.as_str();
    let schema = document
        .pointer(&format!("/webhooks/{name}/post/requestBody/content/application~1json/schema"))
        .unwrap_or_else(|| panic!("{name} is not in the document"));
    conforms(document, schema, &serde_json::to_value(event).unwrap(), name);
}
