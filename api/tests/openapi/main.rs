//! The committed API document is current, complete, and matches the routes.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]
#![allow(unreachable_pub, reason = "parts of a test")]

mod compat;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value};
use sidetone_model::access::Permission;

/// `SIDETONE_BLESS=1 cargo test -p sidetone-api --test openapi` writes the document again. A build with features has
/// a longer document than the committed one, which is that of the default build.
#[test]
#[cfg_attr(feature = "parquet", ignore = "the committed document is the default build's")]
fn the_committed_document_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let text = format!("{:#}\n", sidetone_api::openapi());
    if std::env::var_os("SIDETONE_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "api/openapi.json is not what the code says; look at what changed with \
         SIDETONE_BLESS=1 cargo test -p sidetone-api --test openapi; git diff api/openapi.json"
    );
}

/// Routes not added by `OpenApiRouter::routes` would be missing in the document.
#[test]
fn every_route_is_registered_with_its_documentation() {
    let mut broken = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.ends_with("tests.rs") {
                continue;
            }
            for (at, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
                let bare = [".route(", ".route_service(", ".nest_service(", ".fallback_service("];
                // A path where there is nothing needs no documentation.
                if line.contains("any(nothing_here)") {
                    continue;
                }
                if !line.trim_start().starts_with("//") && bare.iter().any(|call| line.contains(call)) {
                    broken.push(format!("{}:{}", path.display(), at + 1));
                }
            }
        }
    }
    assert!(broken.is_empty(), "routes without documentation, see api/src/router.rs: {broken:?}");
}

/// The released document may only grow. `SIDETONE_RELEASE=1 cargo test -p sidetone-api --test openapi` saves the
/// public part of the document as released.
#[test]
fn what_was_released_still_holds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.released.json");
    let document = sidetone_api::openapi();
    if std::env::var_os("SIDETONE_RELEASE").is_some() {
        std::fs::write(&path, format!("{:#}\n", public(document.clone()))).unwrap();
    }
    let released: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert!(!operations(&released).is_empty());
    let broken = compat::breaks(&released, &document);
    assert!(
        broken.is_empty(),
        "v1 does not change incompatibly, make it another field or another version:\n{}",
        broken.join("\n")
    );
}

/// The document without the operations that may change without notice.
fn public(mut document: Value) -> Value {
    let paths = document["paths"].as_object_mut().unwrap();
    for item in paths.values_mut() {
        item.as_object_mut().unwrap().retain(|_, operation| operation["x-stability"] == "public");
    }
    paths.retain(|_, item| !item.as_object().unwrap().is_empty());
    document
}

#[test]
fn every_reference_leads_somewhere() {
    let document = sidetone_api::openapi();
    let mut targets = BTreeSet::new();
    visit(&document, &mut |map| {
        if let Some(Value::String(target)) = map.get("$ref") {
            targets.insert(target.clone());
        }
    });
    assert!(targets.contains("#/components/schemas/ErrorBody"));
    for target in targets {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{target} is nowhere; is its type ToSchema and named?");
    }
}

#[test]
fn every_operation_has_its_words() {
    let mut ids = BTreeMap::new();
    for (name, operation) in operations(&sidetone_api::openapi()) {
        for key in ["operationId", "summary", "tags"] {
            assert!(operation.contains_key(key), "{name} has no {key}");
        }
        let id = operation["operationId"].as_str().unwrap().to_owned();
        assert_eq!(ids.insert(id.clone(), name.clone()), None, "{id} is used twice");
        let public = operation.get("security").is_some();
        match operation.get("x-permission").map(|permission| permission.as_str().unwrap()) {
            Some(permission) => {
                assert!(!public, "{name} needs a permission and no token");
                assert!(Permission::from_name(permission).is_some(), "{name}: unknown {permission}");
            }
            // Every authenticated caller may use these operations, and no others.
            None => assert!(public || ANYBODY.contains(&id.as_str()), "{name} names no x-permission"),
        }
        for parameter in operation.get("parameters").and_then(Value::as_array).into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{name}: {} is not described", parameter["name"]);
        }
    }
}

/// Operations that need a token but no permission; each kind of event of `streamEvents` needs its own.
const ANYBODY: &[&str] = &["changePassword", "getSelf", "logout", "streamEvents"];

/// Every operation as `GET /path`.
fn operations(document: &Value) -> Vec<(String, Map<String, Value>)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let item = item.as_object().unwrap().clone().into_iter();
        let path = path.clone();
        item.map(move |(method, operation)| {
            (format!("{} {path}", method.to_uppercase()), operation.as_object().unwrap().clone())
        })
    };
    paths.iter().flat_map(of_path).collect()
}

fn visit(value: &Value, see: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| visit(item, see)),
        Value::Object(map) => {
            see(map);
            map.values().for_each(|item| visit(item, see));
        }
        _ => {}
    }
}
