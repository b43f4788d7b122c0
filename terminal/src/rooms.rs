//! The live rooms as rows: first those with members who wait for a moderator, then by the worst known audio of a
//! member, then by size, largest first.

use std::collections::HashMap;

use serde_json::Value;
use sidetone_model::time::Timestamp;

use crate::call_page::Summary;
use crate::json::{duration, figure, flag, instant, list, or_dash, raw, text};
use crate::list::{Badness, Row};
use crate::screen::{Column, Tone, Width};

/// The columns of the rooms.
pub(crate) const COLUMNS: [Column; 7] = [
    Column::text("Room", Width::Share(2)),
    Column::number("Members", 7),
    Column::number("Waiting", 7),
    Column::number("Worst MOS", 9),
    Column::text("Talking", Width::Share(2)),
    Column::text("State", Width::Share(1)),
    Column::number("Time", 8),
];

pub(crate) fn rows(rooms: &[Value], summaries: &HashMap<String, Summary>, wall: Timestamp) -> Vec<Row> {
    rooms.iter().map(|room| row(room, summaries, wall)).collect()
}

fn row(room: &Value, summaries: &HashMap<String, Summary>, wall: Timestamp) -> Row {
    let members = list(room, "members");
    let waiting = members.iter().filter(|member| flag(member, "waiting")).count();
    let talking: Vec<String> = members.iter().filter(|member| flag(member, "talking")).map(name_of).collect();
    let mos = members.iter().filter_map(|member| summaries.get(raw(member, "call_uuid"))?.mos);
    let worst = mos.reduce(f64::min);
    let size = i64::try_from(members.len()).unwrap_or(i64::MAX);
    let (class, rank) = match (waiting, worst) {
        (1.., _) => (0, -size),
        (0, Some(mos)) => (1, (mos * 100.0) as i64),
        (0, None) => (2, -size),
    };
    let states = [("locked", "locked"), ("recording", "recorded"), ("all_muted", "all muted")];
    let states: Vec<&str> =
        states.into_iter().filter(|(key, _)| flag(room, key)).map(|(_, label)| label).collect();
    Row {
        id: raw(room, "room_id").to_owned(),
        badness: Badness { class, rank },
        tone: if waiting > 0 { Tone::Warn } else { Tone::Plain },
        cells: vec![
            or_dash(text(room, "room_name")),
            members.len().to_string(),
            waiting.to_string(),
            figure(worst, 2),
            or_dash(talking.join(", ")),
            or_dash(states.join(", ")),
            duration(instant(room, "started_at"), wall),
        ],
    }
}

/// The name of a member, or its number.
fn name_of(member: &Value) -> String {
    let name = text(member, "name");
    if name.is_empty() { text(member, "number") } else { name }
}
