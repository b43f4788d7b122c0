//! What an explanation adds to the JSON of `analyze`: everything the API says of a leg that has no place there yet.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use sidetone_media::session::Report;
use sidetone_media::verdict::{Party, RULES_VERSION};
use sidetone_model::media_quality::{LegQuality, LegSide};

use crate::quality::{self, WallClock};

/// Adds to a call what the API says of its caller's leg.
pub(super) fn call<S: Serializer>(report: &Report, serializer: S) -> Result<S::Ok, S::Error> {
    let quality = quality::leg(report, LegSide::A, None, WallClock::unix());
    add(&quality, &["leg", "party", "media_verdict", "codec", "trace"], serializer)
}

/// Adds to a stream why it was judged so, and the figures that it does not have under their names already.
pub(super) fn stream<S: Serializer>(report: &Report, serializer: S) -> Result<S::Ok, S::Error> {
    let quality = quality::leg_of(report, LegSide::A, Party::Sender, None, WallClock::unix());
    let figures = object(&quality.inbound)?;
    let mut more = object(&quality)?;
    for name in ["leg", "party", "media_verdict", "codec", "trace", "addresses", "inbound", "outbound"] {
        more.shift_remove(name);
    }
    more.extend(figures.into_iter().filter(|(name, _)| !STREAM_FIGURES.contains(&name.as_str())));
    write(more, serializer)
}

fn add<S: Serializer>(quality: &LegQuality, without: &[&str], serializer: S) -> Result<S::Ok, S::Error> {
    let mut more = object(quality)?;
    for name in without {
        more.shift_remove(*name);
    }
    if quality.media_verdict.is_some() {
        more.insert("rules_version".to_owned(), RULES_VERSION.into());
    }
    write(more, serializer)
}

fn object<E: serde::ser::Error>(value: &impl Serialize) -> Result<Map<String, Value>, E> {
    match serde_json::to_value(value).map_err(E::custom)? {
        Value::Object(object) => Ok(object),
        _ => Ok(Map::new()),
    }
}

fn write<S: Serializer>(object: Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(object.len()))?;
    for (name, value) in &object {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// What every stream has at its top, from before it was explained.
const STREAM_FIGURES: [&str; 17] = [
    "ssrc",
    "payload_types",
    "codec",
    "clock_rate",
    "packets",
    "expected",
    "lost",
    "loss_pct",
    "duplicates",
    "reordered",
    "jitter_ms",
    "jitter_mean_ms",
    "mean_interval_ms",
    "max_gap_ms",
    "ptime_ms",
    "quality_pct",
    "mos",
];
