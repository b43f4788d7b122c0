//! Types as text, and the table of an object's fields.

use serde_json::Value;

use crate::docs::html::{escaped, line, paragraphs};

/// The type of a value: `string, uuid`, `array of Cdr`, with limits and values.
pub(super) fn kind(schema: &Value) -> String {
    if let Some(name) = name_of(schema) {
        return format!("<a href=\"#schema-{0}\">{0}</a>", escaped(name));
    }
    if let Some(choices) = ["oneOf", "anyOf"].iter().find_map(|key| schema[*key].as_array()) {
        let (null, real): (Vec<&Value>, Vec<&Value>) =
            choices.iter().partition(|choice| choice["type"] == "null");
        let mut kinds: Vec<String> = real.into_iter().map(kind).collect();
        kinds.extend(null.first().map(|_| "null".to_owned()));
        return kinds.join(" or ");
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        Value::String(one) => vec![one],
        _ => vec!["any JSON"],
    };
    let mut text = match kinds.as_slice() {
        ["array"] => format!("array of {}", kind(&schema["items"])),
        ["array", "null"] => format!("array of {} or null", kind(&schema["items"])),
        kinds => {
            let real: Vec<&str> = kinds.iter().copied().filter(|kind| *kind != "null").collect();
            let format = schema["format"].as_str().filter(|format| *format != "int64" && *format != "double");
            let format = format.map(|format| format!(", {}", escaped(format))).unwrap_or_default();
            let null = if kinds.contains(&"null") { " or null" } else { "" };
            format!("{}{format}{null}", real.join(" or "))
        }
    };
    if let Some(bounds) = bounds(schema) {
        text.push_str(&format!(" <span class=\"bounds\">{}</span>", escaped(&bounds)));
    }
    text
}

/// The limits of a value as text.
fn bounds(schema: &Value) -> Option<String> {
    let number = |key: &str| schema.get(key).filter(|value| value.is_number()).map(Value::to_string);
    let range = |min: &str, max: &str, unit: &str| match (number(min), number(max)) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}{unit}")),
        (Some(low), None) if low != "0" || unit.is_empty() => Some(format!("{low} or more{unit}")),
        (None, Some(high)) => Some(format!("at most {high}{unit}")),
        _ => None,
    };
    let parts = [
        range("minimum", "maximum", ""),
        range("minLength", "maxLength", " characters"),
        range("minItems", "maxItems", " items"),
        schema["pattern"].as_str().map(|pattern| format!("matches {pattern}")),
        schema.get("default").map(|default| format!("default {}", plain(default))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The values of a field with a fixed set, after its description.
pub(super) fn values(schema: &Value) -> String {
    let inner = if schema["type"] == "array" { &schema["items"] } else { schema };
    let known: Vec<String> = inner["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|value| !value.is_null())
        .map(|value| format!("<code>{}</code>", escaped(&plain(value))))
        .collect();
    if known.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"values\">{}</span>", known.join(" "))
    }
}

/// A component with its heading.
pub(super) fn section(name: &str, schema: &Value) -> String {
    let name = escaped(name);
    let text = schema["description"].as_str().map(paragraphs).unwrap_or_default();
    let body = if schema.get("properties").is_some() {
        fields(schema)
    } else {
        format!("<p>{}{}</p>\n", kind(schema), values(schema))
    };
    format!("<section class=\"schema\" id=\"schema-{name}\">\n<h3>{name}</h3>\n{text}{body}</section>\n")
}

/// The table of an object's fields.
pub(super) fn fields(schema: &Value) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut rows = String::new();
    // Required fields first, then the others, each group in its own order.
    let mut all: Vec<(&String, &Value)> = schema["properties"].as_object().into_iter().flatten().collect();
    all.sort_by_key(|(name, _)| required.iter().position(|one| one == name).unwrap_or(usize::MAX));
    for (name, field) in all {
        let always = if required.contains(&name.as_str()) { "always" } else { "" };
        rows.push_str(&row(&format!("<code>{}</code>", escaped(name)), always, field, field));
    }
    table("Field", &rows)
}

/// One row: the name, whether it is required, the type, and the description.
pub(super) fn row(name: &str, presence: &str, schema: &Value, described: &Value) -> String {
    let text = described["description"].as_str().map(line).unwrap_or_default();
    let badge = if presence.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"presence\">{presence}</span>")
    };
    format!("<tr><td>{name}{badge}</td><td>{}</td><td>{text}{}</td></tr>\n", kind(schema), values(schema))
}

/// A table of [`row`]s.
pub(super) fn table(heading: &str, rows: &str) -> String {
    format!(
        "<div class=\"table\"><table>\n<thead><tr><th>{heading}</th><th>Type</th><th>Meaning</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// The component to which a schema refers.
pub(super) fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_words() {
        let cases = [
            (json!({"type": "string", "format": "uuid"}), "string, uuid"),
            (json!({"type": ["string", "null"], "format": "date-time"}), "string, date-time or null"),
            (
                json!({"type": "integer", "minimum": 1, "maximum": 500, "default": 50}),
                "integer <span class=\"bounds\">1 to 500; default 50</span>",
            ),
            (
                json!({"type": "array", "items": {"$ref": "#/components/schemas/Cdr"}}),
                "array of <a href=\"#schema-Cdr\">Cdr</a>",
            ),
            (
                json!({"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Cdr"}]}),
                "<a href=\"#schema-Cdr\">Cdr</a> or null",
            ),
            (json!({}), "any JSON"),
        ];
        for (schema, text) in cases {
            assert_eq!(kind(&schema), text, "{schema}");
        }
        assert_eq!(
            values(&json!({"type": ["string", "null"], "enum": ["a", null]})),
            " <span class=\"values\"><code>a</code></span>"
        );
    }
}
