//! Whether clients of one document work with another: the promise of `v1`, as a comparison.
//!
//! Requests may only require less, answers may only contain more.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The changes in `new` that break a client of `old`, one sentence each.
pub fn breaks(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Found { old, new, sentences: Vec::new() };
    for (path, item) in members(&old["paths"]) {
        for (method, operation) in members(item) {
            let name = format!("{} {path}", method.to_uppercase());
            match new["paths"].get(path).and_then(|item| item.get(method)) {
                Some(other) => found.operation(&name, operation, other),
                None => found.say(format!("{name} was removed")),
            }
        }
    }
    found.sentences
}

struct Found<'a> {
    old: &'a Value,
    new: &'a Value,
    sentences: Vec<String>,
}

/// The use of a schema: a request schema may become wider, an answer schema narrower.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Asked,
    Answered,
}

impl Found<'_> {
    fn say(&mut self, sentence: String) {
        self.sentences.push(sentence);
    }

    fn operation(&mut self, name: &str, old: &Value, new: &Value) {
        let public = |operation: &Value| operation["security"].as_array().is_some_and(Vec::is_empty);
        if public(old) && !public(new) {
            self.say(format!("{name} needs a token now"));
        }
        if old["x-permission"] != new["x-permission"] && !new["x-permission"].is_null() {
            self.say(format!("{name} needs another permission: {}", new["x-permission"]));
        }
        self.parameters(name, old, new);
        self.bodies(name, &old["requestBody"], &new["requestBody"]);
        for (status, answer) in members(&old["responses"]) {
            if !status.starts_with('2') {
                continue;
            }
            let other = self.resolved(self.new, &new["responses"][status]);
            if other.is_null() {
                self.say(format!("{name} does not answer {status} any more"));
                continue;
            }
            let answer = self.resolved(self.old, answer);
            self.contents(&format!("{name}, answer {status}"), &answer, &other, Way::Answered);
        }
    }

    fn parameters(&mut self, name: &str, old: &Value, new: &Value) {
        let find = |list: &Value, wanted: &Value| {
            let same = |one: &&Value| one["name"] == wanted["name"] && one["in"] == wanted["in"];
            items(list).iter().find(same).cloned()
        };
        for parameter in items(&old["parameters"]) {
            let label = format!("{name}, parameter {}", text(&parameter["name"]));
            let Some(other) = find(&new["parameters"], parameter) else {
                self.say(format!("{label} was removed"));
                continue;
            };
            if parameter["required"] != true && other["required"] == true {
                self.say(format!("{label} is required now"));
            }
            self.schemas(&label, &parameter["schema"], &other["schema"], Way::Asked, 0);
        }
        for parameter in items(&new["parameters"]) {
            if parameter["required"] == true && find(&old["parameters"], parameter).is_none() {
                self.say(format!("{name}, parameter {} is new and required", text(&parameter["name"])));
            }
        }
    }

    fn bodies(&mut self, name: &str, old: &Value, new: &Value) {
        let label = format!("{name}, body");
        match (old.is_null(), new.is_null()) {
            (true, false) if new["required"] == true => self.say(format!("{label} is new and required")),
            (false, true) => self.say(format!("{label} was removed")),
            (false, false) => {
                if old["required"] != true && new["required"] == true {
                    self.say(format!("{label} is required now"));
                }
                self.contents(&label, old, new, Way::Asked);
            }
            _ => {}
        }
    }

    fn contents(&mut self, label: &str, old: &Value, new: &Value, way: Way) {
        for (kind, content) in members(&old["content"]) {
            match new["content"].get(kind) {
                Some(other) => self.schemas(label, &content["schema"], &other["schema"], way, 0),
                None => self.say(format!("{label} is not {kind} any more")),
            }
        }
    }

    fn schemas(&mut self, label: &str, old: &Value, new: &Value, way: Way, depth: u32) {
        if depth > DEPTH_MAX {
            return;
        }
        let (old, new) = (Plain::of(self.resolved(self.old, old)), Plain::of(self.resolved(self.new, new)));
        if old.kinds != new.kinds || old.schema["format"] != new.schema["format"] {
            self.say(format!("{label} has another type: {} instead of {}", new.kind_text(), old.kind_text()));
            return;
        }
        match way {
            Way::Answered if new.nullable && !old.nullable => self.say(format!("{label} may be null now")),
            Way::Asked if old.nullable && !new.nullable => {
                self.say(format!("{label} may not be null any more"))
            }
            _ => {}
        }
        for value in items(&old.schema["enum"]) {
            // A client that ignores unknown values accepts a new one; no client accepts the loss of one.
            if !items(&new.schema["enum"]).contains(value)
                && (way == Way::Answered || new.schema.get("enum").is_some())
            {
                self.say(format!("{label} lost the value {value}"));
            }
        }
        if way == Way::Asked {
            self.bounds(label, &old.schema, &new.schema);
        }
        if old.schema.get("items").is_some() {
            let label = format!("{label}[]");
            self.schemas(&label, &old.schema["items"], &new.schema["items"], way, depth + 1);
        }
        self.fields(label, &old.schema, &new.schema, way, depth);
    }

    fn bounds(&mut self, label: &str, old: &Value, new: &Value) {
        let number = |schema: &Value, key: &str| schema[key].as_f64();
        for (key, tighter) in [
            ("maximum", f64::lt as fn(&f64, &f64) -> bool),
            ("maxLength", f64::lt),
            ("maxItems", f64::lt),
            ("minimum", f64::gt),
            ("minLength", f64::gt),
            ("minItems", f64::gt),
        ] {
            let tightened = match (number(old, key), number(new, key)) {
                (Some(before), Some(now)) => tighter(&now, &before),
                (None, Some(now)) => !(key.starts_with("min") && now == 0.0),
                _ => false,
            };
            if tightened {
                self.say(format!("{label} has a narrower {key}"));
            }
        }
        if new.get("pattern").is_some() && old["pattern"] != new["pattern"] {
            self.say(format!("{label} has another pattern"));
        }
    }

    fn fields(&mut self, label: &str, old: &Value, new: &Value, way: Way, depth: u32) {
        let names =
            |schema: &Value| -> BTreeSet<String> { items(&schema["required"]).iter().map(text).collect() };
        let (before, now) = (names(old), names(new));
        for (field, schema) in members(&old["properties"]) {
            let label = format!("{label}, field {field}");
            let Some(other) = new["properties"].get(field) else {
                self.say(format!("{label} was removed"));
                continue;
            };
            match (way, before.contains(field), now.contains(field)) {
                (Way::Answered, true, false) => self.say(format!("{label} may be left out now")),
                (Way::Asked, false, true) => self.say(format!("{label} is required now")),
                _ => {}
            }
            self.schemas(&label, schema, other, way, depth + 1);
        }
        for (field, _) in members(&new["properties"]) {
            let new_here = old["properties"].get(field).is_none();
            if way == Way::Asked && new_here && now.contains(field) {
                self.say(format!("{label}, field {field} is new and required"));
            }
        }
    }

    /// The target of a reference, merged with the keys beside it.
    fn resolved(&self, document: &Value, value: &Value) -> Value {
        let target = value["$ref"].as_str().and_then(|target| document.pointer(target.strip_prefix('#')?));
        let Some(Value::Object(target)) = target else { return value.clone() };
        let mut target = target.clone();
        let own = value.as_object().into_iter().flatten().filter(|(key, _)| *key != "$ref");
        target.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        Value::Object(target)
    }
}

/// A schema, its null separated.
struct Plain {
    schema: Value,
    kinds: BTreeSet<String>,
    nullable: bool,
}

impl Plain {
    fn of(schema: Value) -> Self {
        let all: BTreeSet<String> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().map(text).collect(),
            Value::String(kind) => BTreeSet::from([kind.clone()]),
            // A choice or no type: the complete choice stands for the type.
            _ => BTreeSet::from([format!("{}{}", schema["oneOf"], schema["anyOf"])]),
        };
        let nullable = all.contains("null");
        Self { schema, kinds: all.into_iter().filter(|kind| kind != "null").collect(), nullable }
    }

    fn kind_text(&self) -> String {
        let kinds: Vec<&str> = self.kinds.iter().map(String::as_str).collect();
        let format = self.schema["format"].as_str().map(|format| format!(" ({format})")).unwrap_or_default();
        format!("{}{format}", kinds.join(" or "))
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY).iter()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Deeper than any schema; stops at a recursive one.
const DEPTH_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One operation with the request `asked`, the answer `answered` and a parameter `p`.
    fn document(asked: Value, answered: Value, p: Value) -> Value {
        json!({
            "paths": {"/things": {"post": {
                "x-permission": "calls:read",
                "parameters": [p],
                "requestBody": {"content": {"application/json": {"schema": asked}}, "required": true},
                "responses": {"200": {"content": {"application/json": {
                    "schema": {"$ref": "#/components/schemas/Thing"}}}}},
            }}},
            "components": {"schemas": {"Thing": answered}},
        })
    }

    fn before() -> Value {
        document(
            json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": "string"}, "b": {"type": ["string", "null"], "maxLength": 9}}}),
            json!({"type": "object", "required": ["a", "n"], "properties": {
                "a": {"type": "string"},
                "n": {"type": ["integer", "null"]},
                "o": {"type": "string", "enum": ["x", "y"]},
                "l": {"type": "array", "items": {"type": "string", "format": "uuid"}},
            }}),
            json!({"name": "p", "in": "query", "required": false, "schema": {"type": "integer", "maximum": 500}}),
        )
    }

    /// Changes the document at `pointer` and returns the incompatibilities.
    fn after(pointer: &str, value: Value) -> Vec<String> {
        let mut new = before();
        *new.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        breaks(&before(), &new)
    }

    const POST: &str = "/paths/~1things/post";
    const ASKED: &str = "/paths/~1things/post/requestBody/content/application~1json/schema";
    const THING: &str = "/components/schemas/Thing";

    fn push(document: &mut Value, pointer: &str, value: Value) {
        document.pointer_mut(pointer).unwrap().as_array_mut().unwrap().push(value);
    }

    #[test]
    fn what_clients_bear() {
        let none: [String; 0] = [];
        assert_eq!(breaks(&before(), &before()), none);
        let bearable = [
            (format!("{THING}/properties/o/enum"), json!(["x", "y", "z"])),
            (format!("{THING}/required"), json!(["a", "n", "o"])),
            (format!("{THING}/properties/n/type"), json!("integer")),
            (format!("{ASKED}/required"), json!([])),
            (format!("{ASKED}/properties/b/maxLength"), json!(10)),
            (format!("{POST}/parameters/0/schema/maximum"), json!(1000)),
            (format!("{POST}/x-permission"), Value::Null),
        ];
        for (pointer, value) in bearable {
            assert_eq!(after(&pointer, value), none, "{pointer}");
        }
        let mut new = before();
        new["paths"]["/others"] = json!({"get": {}});
        new["components"]["schemas"]["Thing"]["properties"]["new"] = json!({"type": "string"});
        push(&mut new, &format!("{POST}/parameters"), json!({"name": "q", "in": "query", "required": false}));
        assert_eq!(breaks(&before(), &new), none);
    }

    #[test]
    fn what_breaks_them() {
        let cases = [
            ("/paths/~1things".to_owned(), json!({}), "POST /things was removed"),
            (format!("{POST}/responses"), json!({}), "POST /things does not answer 200 any more"),
            (
                format!("{POST}/x-permission"),
                json!("calls:control"),
                "POST /things needs another permission: \"calls:control\"",
            ),
            (format!("{POST}/parameters"), json!([]), "POST /things, parameter p was removed"),
            (
                format!("{POST}/parameters/0/required"),
                json!(true),
                "POST /things, parameter p is required now",
            ),
            (
                format!("{POST}/parameters/0/schema/maximum"),
                json!(100),
                "POST /things, parameter p has a narrower maximum",
            ),
            (
                format!("{POST}/parameters/0/schema/type"),
                json!("string"),
                "POST /things, parameter p has another type: string instead of integer",
            ),
            (format!("{ASKED}/required"), json!(["a", "b"]), "POST /things, body, field b is required now"),
            (
                format!("{ASKED}/properties/b/type"),
                json!("string"),
                "POST /things, body, field b may not be null any more",
            ),
            (
                format!("{ASKED}/properties"),
                json!({"a": {"type": "string"}}),
                "POST /things, body, field b was removed",
            ),
            (
                format!("{THING}/properties/n/type"),
                json!(["string", "null"]),
                "POST /things, answer 200, field n has another type: string instead of integer",
            ),
            (
                format!("{THING}/required"),
                json!(["n"]),
                "POST /things, answer 200, field a may be left out now",
            ),
            (
                format!("{THING}/properties/o/type"),
                json!(["string", "null"]),
                "POST /things, answer 200, field o may be null now",
            ),
            (
                format!("{THING}/properties/o/enum"),
                json!(["x"]),
                "POST /things, answer 200, field o lost the value \"y\"",
            ),
            (
                format!("{THING}/properties/l/items/format"),
                json!("date-time"),
                "POST /things, answer 200, field l[] has another type: string (date-time) instead of string (uuid)",
            ),
        ];
        for (pointer, value, sentence) in cases {
            assert_eq!(after(&pointer, value), [sentence], "{pointer}");
        }
        let mut new = before();
        push(&mut new, &format!("{POST}/parameters"), json!({"name": "q", "in": "query", "required": true}));
        push(&mut new, &format!("{ASKED}/required"), json!("c"));
        new.pointer_mut(&format!("{ASKED}/properties")).unwrap()["c"] = json!({"type": "string"});
        assert_eq!(
            breaks(&before(), &new),
            [
                "POST /things, parameter q is new and required",
                "POST /things, body, field c is new and required"
            ]
        );
    }
}
