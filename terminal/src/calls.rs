//! The live calls as rows: the worst audio first, then those without figures, then those that ring.

use std::collections::HashMap;

use serde_json::Value;
use sidetone_model::time::Timestamp;

use crate::call_page::{Summary, states};
use crate::json::{duration, instant, list, or_dash, raw, text, verdict_class, verdict_tone};
use crate::list::{Badness, Row};
use crate::screen::{Column, Width};

/// The columns of the calls.
pub(crate) const COLUMNS: [Column; 9] = [
    Column::text("Verdict", Width::Cells(24)),
    Column::number("MOS", 4),
    Column::number("Loss %", 6),
    Column::number("Jitter", 7),
    Column::text("From", Width::Share(2)),
    Column::text("To", Width::Share(2)),
    Column::text("State", Width::Cells(19)),
    Column::number("Time", 8),
    Column::text("Codecs", Width::Share(1)),
];

pub(crate) fn rows(calls: &[Value], summaries: &HashMap<String, Summary>, wall: Timestamp) -> Vec<Row> {
    let nothing = Summary::default();
    calls
        .iter()
        .map(|call| {
            let id = raw(call, "uuid").to_owned();
            let summary = summaries.get(&id).unwrap_or(&nothing);
            row(id, call, summary, wall)
        })
        .collect()
}

fn row(id: String, call: &Value, summary: &Summary, wall: Timestamp) -> Row {
    let is_answered = raw(call, "state") == "answered";
    let class = if is_answered { verdict_class(&summary.verdict) } else { CLASS_RINGING };
    let rank = summary.mos.map_or(i64::MAX, |mos| (mos * 100.0) as i64);
    let mut codecs: Vec<String> =
        list(call, "legs").iter().map(|leg| text(leg, "codec")).filter(|codec| !codec.is_empty()).collect();
    codecs.dedup();
    let began = instant(call, if is_answered { "answered_at" } else { "started_at" });
    let mut cells = summary.cells();
    cells.extend([
        or_dash(text(call, "caller")),
        or_dash(text(call, "destination")),
        states(call),
        duration(began, wall),
        or_dash(codecs.join(", ")),
    ]);
    Row { id, badness: Badness { class, rank }, tone: verdict_tone(&summary.verdict), cells }
}

/// After every call that is up.
const CLASS_RINGING: u8 = 4;
