//! Makes the schemas match the answers.
//!
//! The derived schemas are too imprecise in some places, which are corrected here for all of them:
//!
//! - An `Option` is derived as "may be missing, may be null". Here a field is either left out or null: null is
//!   kept for a field that is marked `#[schema(required)]` (always there, null when there is no value) or
//!   `extensions(("x-nullable" = json!(true)))` (a request may leave it out, or clear it with null).
//! - Ids, instants and amounts are separate types in the code; a reader expects `string, uuid` at the field.
//!   Components that are neither objects nor lists of values are inlined.
//! - A flattened field and an enumeration with a description are derived as `allOf`; these are merged into one
//!   schema.
//! - `Page_Cdr` is called `CdrPage`, and its items are the component `Cdr`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::openapi::edit::within;

/// Corrects every schema of `document`.
pub(super) fn tidy(document: &mut Map<String, Value>) {
    let components = document.get("components").and_then(|components| components.get("schemas"));
    let components = components.and_then(Value::as_object).cloned().unwrap_or_default();
    walk(document, &mut |schema| join(schema, &components));
    let components = document.get("components").and_then(|components| components.get("schemas"));
    let components = components.and_then(Value::as_object).cloned().unwrap_or_default();
    walk(document, &mut |schema| write_out(schema, &components));
    walk(document, &mut nullability);
    walk(document, &mut rename);
    walk(document, &mut words);
    within(document, "components", |components| {
        within(components, "schemas", |schemas| {
            for (name, schema) in std::mem::take(schemas).into_iter().filter(|(_, schema)| !is_scalar(schema))
            {
                put(schemas, &name, schema);
            }
        });
    });
}

/// Removes components that are not referenced, and those that only they reference.
pub(super) fn prune(document: &mut Map<String, Value>) {
    loop {
        let mut used = BTreeSet::new();
        walk(document, &mut |map| {
            let target = map.get("$ref").and_then(Value::as_str);
            used.extend(target.and_then(|target| target.strip_prefix(SCHEMAS)).map(str::to_owned));
        });
        let mut dropped = false;
        within(document, "components", |components| {
            within(components, "schemas", |schemas| {
                let before = schemas.len();
                schemas.retain(|name, _| used.contains(name));
                dropped = schemas.len() < before;
            });
        });
        if !dropped {
            return;
        }
    }
}

/// Marks schemas that are only used in requests as having no other fields, because those are refused. Schemas
/// of answers stay open.
pub(super) fn close_bodies(document: &mut Map<String, Value>) {
    let components = document.get("components").and_then(|components| components.get("schemas"));
    let components = components.and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut asked, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for item in document.get("paths").and_then(Value::as_object).into_iter().flat_map(Map::values) {
        for operation in item.as_object().into_iter().flat_map(Map::values) {
            reach(&operation["requestBody"], &components, &mut asked);
            reach(&operation["responses"], &components, &mut answered);
        }
    }
    within(document, "components", |components| {
        within(components, "schemas", |schemas| {
            for name in asked.difference(&answered) {
                let schema = schemas.get_mut(name).and_then(Value::as_object_mut);
                if let Some(schema) = schema.filter(|schema| schema.contains_key("properties")) {
                    schema.entry("additionalProperties").or_insert(json!(false));
                }
            }
        });
    });
}

/// Adds the components that `value` refers to.
fn reach(value: &Value, components: &Map<String, Value>, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| reach(item, components, found)),
        Value::Object(map) => {
            let name =
                map.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix(SCHEMAS));
            if let Some((name, schema)) = name.and_then(|name| components.get_key_value(name))
                && found.insert(name.clone())
            {
                reach(schema, components, found);
            }
            map.values().for_each(|item| reach(item, components, found));
        }
        _ => {}
    }
}

/// Passes `map` and every object inside it to `mend`.
fn walk(map: &mut Map<String, Value>, mend: &mut impl FnMut(&mut Map<String, Value>)) {
    mend(map);
    map.values_mut().for_each(|value| walk_value(value, mend));
}

fn walk_value(value: &mut Value, mend: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk_value(item, mend)),
        Value::Object(map) => walk(map, mend),
        _ => {}
    }
}

/// Merges the schemas of an `allOf` into one.
fn join(map: &mut Map<String, Value>, components: &Map<String, Value>) {
    let Some(Value::Array(parts)) = map.get("allOf") else { return };
    let mut joined = Map::new();
    for part in parts.clone() {
        let Value::Object(mut part) = part else { return };
        join(&mut part, components);
        let mut whole = match referred(&part, components) {
            Some(Value::Object(target)) => target.clone(),
            _ => Map::new(),
        };
        join(&mut whole, components);
        part.remove("$ref");
        // The description of an enumeration is derived as an object without fields.
        let words_alone =
            !part.contains_key("properties") && joined.get("type").is_some_and(|kind| kind != "object");
        if words_alone {
            part.remove("type");
        }
        whole.extend(part);
        for (key, value) in whole {
            match (joined.get_mut(&key), value) {
                (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => {
                    known.extend(more)
                }
                (Some(Value::Array(known)), Value::Array(more)) if key == "required" => known.extend(more),
                (_, value) => {
                    joined.insert(key, value);
                }
            }
        }
    }
    map.remove("allOf");
    for (key, value) in joined {
        map.entry(key).or_insert(value);
    }
}

/// Neither an object nor a list of values: short enough to be inlined at the field.
fn is_scalar(schema: &Value) -> bool {
    let plain = matches!(schema["type"].as_str(), Some("string" | "number" | "integer" | "boolean"));
    plain && schema.get("enum").is_none()
}

/// Inlines a scalar component at its reference, and merges "null or this" into one type.
fn write_out(map: &mut Map<String, Value>, components: &Map<String, Value>) {
    if let Some(target) = referred(map, components).filter(|schema| is_scalar(schema)) {
        map.remove("$ref");
        for (key, value) in target.as_object().into_iter().flatten() {
            // The field's own description is more precise than that of its type.
            map.entry(key.clone()).or_insert_with(|| value.clone());
        }
        return;
    }
    let Some(Value::Array(choices)) = map.get("oneOf") else { return };
    let (null, others): (Vec<&Value>, Vec<&Value>) =
        choices.iter().partition(|choice| choice["type"] == "null");
    let ([_], [Value::Object(other)]) = (null.as_slice(), others.as_slice()) else { return };
    let mut target = other.clone();
    write_out(&mut target, components);
    if let Some(Value::Object(named)) = referred(&target, components) {
        let own = target.clone();
        target = named.clone();
        target.extend(own.into_iter().filter(|(key, _)| key != "$ref"));
    }
    let Some(kind) = target.get("type").and_then(Value::as_str).filter(|kind| *kind != "object") else {
        return;
    };
    let kind = json!([kind, "null"]);
    map.remove("oneOf");
    target.insert("type".to_owned(), kind);
    if let Some(Value::Array(values)) = target.get_mut("enum") {
        values.push(Value::Null);
    }
    for (key, value) in target {
        map.entry(key).or_insert(value);
    }
}

fn referred<'a>(map: &Map<String, Value>, components: &'a Map<String, Value>) -> Option<&'a Value> {
    map.get("$ref")?.as_str()?.strip_prefix(SCHEMAS).and_then(|name| components.get(name))
}

/// Removes null from the fields of an object that are left out instead.
fn nullability(map: &mut Map<String, Value>) {
    let required: Vec<String> = match map.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties.iter_mut() {
        let Some(property) = property.as_object_mut() else { continue };
        let nullable = property.remove("x-nullable").is_some() || required.contains(name);
        if !nullable {
            never_null(property);
        }
    }
}

fn never_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = schema.get_mut("oneOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("oneOf");
            for (key, value) in only {
                schema.entry(key).or_insert(value);
            }
        }
    }
}

fn rename(map: &mut Map<String, Value>) {
    if let Some(Value::String(target)) = map.get_mut("$ref")
        && let Some(name) = target.strip_prefix(SCHEMAS)
    {
        *target = format!("{SCHEMAS}{}", renamed(name));
    }
}

/// Adds a component; a page refers to its items by name.
fn put(schemas: &mut Map<String, Value>, name: &str, mut schema: Value) {
    if let Some(item) = name.strip_prefix(PAGE)
        && let Some(items) = schema.pointer_mut("/properties/items/items")
    {
        let inline = std::mem::replace(items, json!({"$ref": format!("{SCHEMAS}{item}")}));
        if inline.get("$ref").is_none() {
            schemas.entry(item).or_insert(inline);
        }
    }
    schemas.insert(renamed(name), schema);
}

/// Removes the line ends of the source from paragraphs; moves examples to where OpenAPI 3.1 expects them;
/// corrects formats.
fn words(map: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = unwrapped(text);
    }
    if map.contains_key("in") || !map.contains_key("type") {
        return;
    }
    // Derived from `#[serde(default)]`: a field without a value is left out, and null is not allowed there.
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if let Some(example) = map.remove("example") {
        map.insert("examples".to_owned(), json!([example]));
    }
    // Also derived for unsigned numbers, which do not fit.
    if map.get("format").is_some_and(|format| format == "int32") {
        map.remove("format");
    }
}

fn unwrapped(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let starts_anew =
            line.is_empty() || line.starts_with("- ") || joined.is_empty() || joined.ends_with('\n');
        if !joined.is_empty() {
            joined.push(if starts_anew { '\n' } else { ' ' });
        }
        joined.push_str(line);
    }
    joined
}

fn renamed(name: &str) -> String {
    name.strip_prefix(PAGE).map_or_else(|| name.to_owned(), |item| format!("{item}Page"))
}

const PAGE: &str = "Page_";
const SCHEMAS: &str = "#/components/schemas/";
