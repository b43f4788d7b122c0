//! Editing the document as JSON.

use serde_json::{Map, Value, json};

/// Passes the object under `key` to `edit`; inserts an empty one if there is none.
pub(super) fn within(map: &mut Map<String, Value>, key: &str, edit: impl FnOnce(&mut Map<String, Value>)) {
    if let Value::Object(inner) = map.entry(key).or_insert_with(|| json!({})) {
        edit(inner);
    }
}
