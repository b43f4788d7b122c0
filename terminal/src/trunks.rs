//! The trunks as rows: those that are unreachable or refuse requests first.

use std::collections::HashMap;

use serde_json::Value;

use crate::json::{dash, figure, flag, list, number, or_dash, raw, text, words};
use crate::list::{Badness, Row};
use crate::screen::{Column, Tone, Width};

/// The columns of the trunks.
pub(crate) const COLUMNS: [Column; 7] = [
    Column::text("State", Width::Cells(16)),
    Column::text("Trunk", Width::Share(1)),
    Column::number("Calls", 5),
    Column::number("Trip ms", 7),
    Column::text("Registration", Width::Cells(12)),
    Column::text("Address", Width::Share(1)),
    Column::text("Last refusal", Width::Share(2)),
];

/// `statuses` are the responses of `GET /trunks/{id}/status`, by trunk.
pub(crate) fn rows(trunks: &[Value], statuses: &HashMap<String, Value>) -> Vec<Row> {
    trunks.iter().map(|trunk| row(trunk, statuses.get(raw(trunk, "id")).unwrap_or(&Value::Null))).collect()
}

fn row(trunk: &Value, status: &Value) -> Row {
    let addresses = list(status, "addresses");
    let down = addresses.iter().filter(|address| raw(address, "state") == "unreachable").count();
    let registration = status.get("registration").map_or("", |registration| raw(registration, "state"));
    let is_refused = flag(trunk, "register") && registration == "failed";
    let is_reachable = addresses.iter().any(|address| raw(address, "state") == "reachable");
    let (class, state, tone) = match down {
        1.. if down == addresses.len() => (0, "unreachable".to_owned(), Tone::Bad),
        _ if is_refused => (1, "not registered".to_owned(), Tone::Bad),
        1.. => (2, format!("{down} of {} down", addresses.len()), Tone::Warn),
        _ if is_reachable => (4, "reachable".to_owned(), Tone::Good),
        _ => (3, dash(), Tone::Dim),
    };
    let trips = addresses.iter().filter_map(|address| number(address, &["round_trip_ms"]));
    let calls = number(status, &["calls"]);
    Row {
        id: raw(trunk, "id").to_owned(),
        // The busiest first: their faults affect the most calls.
        badness: Badness { class, rank: -(calls.unwrap_or_default() as i64) },
        tone,
        cells: vec![
            state,
            or_dash(text(trunk, "name")),
            figure(calls, 0),
            figure(trips.reduce(f64::max), 1),
            or_dash(words(registration)),
            or_dash(text(trunk, "address")),
            list(status, "refusals").first().map_or_else(dash, refusal),
        ],
    }
}

/// `403 Forbidden (INVITE)`.
fn refusal(refusal: &Value) -> String {
    let status = number(refusal, &["status"]).map(|status| format!("{status:.0} ")).unwrap_or_default();
    format!("{status}{} ({})", text(refusal, "reason"), text(refusal, "method"))
}
