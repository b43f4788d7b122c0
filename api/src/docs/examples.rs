//! Example values for schemas, and commands that send them.

use serde_json::{Map, Value, json};

/// A body that is accepted as it is, once the reader has inserted valid ids: the required fields, and those with an
/// example of their own. A change has every field if none is required.
pub(crate) fn body(document: &Value, schema: &Value) -> Value {
    let whole = of_schema(document, schema, 0);
    let schema = match schema["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
        Some(pointer) => document.pointer(pointer).unwrap_or(schema),
        None => schema,
    };
    let (Value::Object(fields), Some(properties)) = (&whole, schema["properties"].as_object()) else {
        return whole;
    };
    let is_required = |name: &String| {
        schema["required"].as_array().is_some_and(|required| required.iter().any(|known| known == name))
    };
    let is_shown = |name: &String| {
        let own = properties.get(name).is_some_and(|field| field.get("examples").is_some());
        is_required(name) || own || schema.get("examples").is_some()
    };
    let shown: Map<String, Value> = fields.clone().into_iter().filter(|(name, _)| is_shown(name)).collect();
    if shown.is_empty() { whole } else { Value::Object(shown) }
}

/// A value that the schema allows, with every field that can have one.
pub(super) fn value(document: &Value, schema: &Value) -> Value {
    of_schema(document, schema, 0)
}

fn of_schema(document: &Value, schema: &Value, depth: u32) -> Value {
    if let Some(example) = schema.pointer("/examples/0").or_else(|| schema.get("example")) {
        return example.clone();
    }
    if let Some(target) = schema["$ref"].as_str() {
        return match target.strip_prefix('#').and_then(|pointer| document.pointer(pointer)) {
            Some(found) if depth < DEPTH_MAX => of_schema(document, found, depth + 1),
            _ => Value::Null,
        };
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(choice) = ["oneOf", "anyOf"].iter().find_map(|key| schema[*key].as_array()) {
        let real = choice.iter().find(|choice| choice["type"] != "null");
        return real.map_or(Value::Null, |choice| of_schema(document, choice, depth + 1));
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find_map(|kind| kind.as_str().filter(|kind| *kind != "null")),
        kind => kind.as_str(),
    };
    match kind {
        Some("array") if depth < DEPTH_MAX => json!([of_schema(document, &schema["items"], depth + 1)]),
        Some("array") => json!([]),
        Some("boolean") => json!(false),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(0)),
        Some("number") => json!(1.5),
        Some("string") => json!(text(schema)),
        _ => fields(document, schema, depth),
    }
}

fn fields(document: &Value, schema: &Value, depth: u32) -> Value {
    let mut object = Map::new();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        if let Value::Object(fields) = of_schema(document, part, depth + 1) {
            object.extend(fields);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if depth < DEPTH_MAX {
            object.insert(name.clone(), of_schema(document, field, depth + 1));
        }
    }
    Value::Object(object)
}

fn text(schema: &Value) -> &str {
    match schema["format"].as_str() {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00.000Z",
        Some("email") => "ada@example.com",
        Some("uri") => "https://example.com/",
        Some("uuid") => "0198c3f0-5b7e-7cc2-9f30-2d1f6d0b7a11",
        _ => "text",
    }
}

/// The command line that sends the request.
pub(super) fn curl(document: &Value, method: &str, path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    let mut address = path.to_owned();
    let mut query = Vec::new();
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap_or_default();
        match parameter["in"].as_str() {
            Some("path") => address = address.replace(&format!("{{{name}}}"), &sample(document, parameter)),
            Some("query") if parameter["required"] == true => {
                query.push(format!("{name}={}", sample(document, parameter)));
            }
            _ => {}
        }
    }
    if !query.is_empty() {
        address = format!("{address}?{}", query.join("&"));
    }
    let mut parts = vec![match method {
        "get" => format!("curl \"$BASE{address}\""),
        _ => format!("curl -X {} \"$BASE{address}\"", method.to_uppercase()),
    }];
    if operation["security"].as_array().is_none_or(|schemes| !schemes.is_empty()) {
        parts.push("-H \"Authorization: Bearer $TOKEN\"".to_owned());
    }
    if let Some(content) = operation.pointer("/requestBody/content/application~1json") {
        parts.push("-H \"Content-Type: application/json\"".to_owned());
        let example = content.get("example").cloned();
        let body = example.unwrap_or_else(|| body(document, &content["schema"]));
        let body = format!("{body:#}").replace('\'', "'\\''");
        parts.push(format!("-d '{body}'"));
    }
    parts.join(" \\\n  ")
}

fn sample(document: &Value, parameter: &Value) -> String {
    let value = parameter.get("example").cloned().unwrap_or_else(|| value(document, &parameter["schema"]));
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Deeper than any schema; stops at a recursive one.
const DEPTH_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_what_the_request_needs() {
        let operation = json!({
            "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "format": "uuid"}},
                {"name": "from", "in": "query", "required": true, "schema": {"type": "string"}, "example": "2026-01-31"},
                {"name": "to", "in": "query", "required": false, "schema": {"type": "string"}},
            ],
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
        });
        let document = json!({"components": {"schemas": {"Thing": {"type": "object", "properties": {
            "name": {"type": "string", "examples": ["it's"]},
            "of": {"$ref": "#/components/schemas/Thing"},
        }}}}});
        let command = curl(&document, "post", "/api/v1/things/{id}", &operation);
        assert!(command.starts_with(
            "curl -X POST \"$BASE/api/v1/things/0198c3f0-5b7e-7cc2-9f30-2d1f6d0b7a11?from=2026-01-31\" \\\n  \
             -H \"Authorization: Bearer $TOKEN\" \\\n  -H \"Content-Type: application/json\" \\\n  -d '{"
        ));
        assert!(command.contains("it'\\''s"));
    }
}
