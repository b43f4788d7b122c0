//! The registrations as rows: devices that do not respond first, then those that were not probed, then the slowest.

use serde_json::Value;
use sidetone_model::time::Timestamp;

use crate::json::{duration, figure, instant, number, or_dash, raw, text, words};
use crate::list::{Badness, Row};
use crate::screen::{Column, Tone, Width};

/// The columns of the registrations.
pub(crate) const COLUMNS: [Column; 8] = [
    Column::text("State", Width::Cells(12)),
    Column::number("Trip ms", 7),
    Column::text("Extension", Width::Cells(10)),
    Column::text("Name", Width::Share(1)),
    Column::text("From", Width::Cells(22)),
    Column::text("Over", Width::Cells(4)),
    Column::text("Device", Width::Share(2)),
    Column::number("Since", 9),
];

pub(crate) fn rows(registrations: &[Value], wall: Timestamp) -> Vec<Row> {
    registrations.iter().map(|registration| row(registration, wall)).collect()
}

fn row(registration: &Value, wall: Timestamp) -> Row {
    let state = raw(registration, "state");
    let (class, tone) = match state {
        "unreachable" => (0, Tone::Bad),
        "reachable" => (2, Tone::Good),
        _ => (1, Tone::Dim),
    };
    let trip = number(registration, &["round_trip_ms"]);
    // The slowest first.
    let rank = trip.map_or(i64::MAX, |trip| -((trip * 1_000.0) as i64));
    Row {
        id: format!("{} {}", raw(registration, "extension_id"), raw(registration, "contact")),
        badness: Badness { class, rank },
        tone,
        cells: vec![
            or_dash(words(state)),
            figure(trip, 1),
            text(registration, "number"),
            or_dash(text(registration, "name")),
            or_dash(text(registration, "source")),
            text(registration, "transport"),
            or_dash(text(registration, "user_agent")),
            duration(instant(registration, "registered_at"), wall),
        ],
    }
}
