//! Fields that several tables of an apply file have in common.

use sidetone_model::directory::Network;
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use toml::Value;

use crate::fields::Fields;

/// Networks in canonical form; the whole Internet is refused.
pub(super) fn networks(fields: &mut Fields<'_>, key: &'static str, texts: &[String]) -> Vec<Network> {
    let mut networks = Vec::with_capacity(texts.len());
    for text in texts {
        match rules::network(text) {
            Ok(network) => networks.push(network),
            Err(message) => {
                fields.refuse::<()>(key, format!("\"{text}\" {message}"));
            }
        }
    }
    networks
}

/// The longest duration of an answered call.
pub(super) fn max_call_seconds(fields: &mut Fields<'_>) -> Option<u32> {
    fields.integer("max_call_seconds", rules::CALL_SECONDS).and_then(|seconds| u32::try_from(seconds).ok())
}

pub(super) fn name_of(fields: &mut Fields<'_>) -> Option<String> {
    fields.required_checked("name", rules::name)
}

/// A timestamp, in quotes or not; `Some(None)` if omitted.
pub(super) fn instant(fields: &mut Fields<'_>, key: &'static str) -> Option<Option<Timestamp>> {
    let text = match fields.take(key) {
        None => return Some(None),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    match Timestamp::parse_bound(&text) {
        Ok(instant) => Some(Some(instant)),
        Err(_) => fields.refuse(key, "must be an instant such as \"2026-01-01T00:00:00Z\""),
    }
}
