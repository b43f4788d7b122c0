//! The form of notes that a phone reads, and the list of those it has shown.
//!
//! The phone interprets four fields; every other field is a row, in the order sent.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sidetone_media::time::Micros;
use sidetone_model::exact_json::ExactJson;
use sidetone_sip::ua::LegKey;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;

/// A note that the phone was shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownNote {
    /// The id for an acknowledgement.
    pub id: String,
    /// The heading.
    pub title: String,
    /// The lines under the heading.
    pub body: Option<String>,
    /// The colour of its tag.
    pub level: Level,
    /// Whether it has an acknowledge button.
    pub ack: bool,
    /// Every other field, in the order sent.
    pub rows: Vec<(String, ExactJson)>,
    /// How it arrived.
    pub channel: Channel,
    /// The URI in From.
    pub from: String,
    /// The Call-ID of its call; `None` for a MESSAGE.
    pub call_id: Option<String>,
    /// When it arrived, Unix time.
    pub at: Micros,
    /// The note, to read its fields; it may have fewer digits than the note as received.
    pub json: Value,
    /// The note as received, without white space.
    pub exact: ExactJson,
}

/// The channel of a note and its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// INFO inside a call.
    Info,
    /// MESSAGE, with or without a call.
    Message,
}

/// The level of a note. A phone treats an unknown level as `Info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Information.
    #[default]
    Info,
    /// Needs attention.
    Warning,
    /// Stays visible until it is dismissed.
    Alert,
}

/// How a phone handles an incoming note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Noting {
    /// Shows it and answers 200 after a delay, like a slow phone.
    Late(std::time::Duration),
    /// Shows nothing and never answers.
    Ignore,
    /// Shows nothing and answers with this status.
    Refuse(u16),
    /// Shows it and answers 200.
    #[default]
    Show,
    /// Shows it, answers 200, and acknowledges it immediately if it has the button.
    Tap,
}

/// A request with a custom body: as a phone of another manufacturer would send it, or forged.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// INFO is sent in the newest call that is up, MESSAGE to the events identity.
    pub channel: Channel,
    /// The Content-Type.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
    /// The extension in From; `None` means the phone's own.
    pub from: Option<String>,
    /// The user part of a MESSAGE's target.
    pub to: String,
    /// Whether a challenge is answered, with the phone's own password.
    pub authenticates: bool,
}

impl Parcel {
    /// A JSON body, sent like the phone's acknowledgements.
    pub fn new(channel: Channel, body: impl Into<Vec<u8>>) -> Self {
        Parcel {
            channel,
            content_type: JSON.to_owned(),
            body: body.into(),
            from: None,
            to: EVENTS.to_owned(),
            authenticates: true,
        }
    }
}

impl Level {
    /// `info`, `warning`, `alert`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Alert => "alert",
        }
    }
}

impl Channel {
    /// `info`, `message`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Channel::Info => "info",
            Channel::Message => "message",
        }
    }
}

/// The source and channel of a note.
pub(super) struct Arrival {
    pub(super) channel: Channel,
    pub(super) from: String,
    pub(super) call_id: Option<String>,
    pub(super) at: Micros,
}

impl ShownNote {
    /// Parses a body; `None` if it is not a note: not a JSON object, or without `id` or `title`.
    pub(super) fn read(body: &[u8], arrival: Arrival) -> Option<ShownNote> {
        let json: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let exact = ExactJson::object(body).ok()?;
        let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        let level = match text("level").as_deref() {
            Some("alert") => Level::Alert,
            Some("warning") => Level::Warning,
            _ => Level::Info,
        };
        let rows = exact.members().unwrap_or_default();
        Some(ShownNote {
            id: text("id").filter(|id| !id.is_empty())?,
            title: text("title").filter(|title| !title.is_empty())?,
            body: text("body").filter(|body| !body.is_empty()),
            level,
            ack: json.get("ack").and_then(Value::as_bool).unwrap_or_default(),
            rows: rows.into_iter().filter(|(name, _)| !KNOWN.contains(&name.as_str())).collect(),
            channel: arrival.channel,
            from: arrival.from,
            call_id: arrival.call_id,
            at: arrival.at,
            json: Value::Object(json),
            exact,
        })
    }

    /// The message that the phone sends when its user presses the acknowledge button at `at`, Unix time.
    pub fn acknowledgement(&self, at: Micros) -> Value {
        json!({ "ack": true, "id": self.id, "title": self.title, "at": rfc3339(at) })
    }
}

/// The notes that a phone has shown; its task writes them and its owner reads them.
pub(super) struct Notebook {
    kept: Mutex<VecDeque<Kept>>,
    count: watch::Sender<u64>,
}

#[derive(Clone)]
struct Kept {
    note: ShownNote,
    leg: Option<LegKey>,
}

impl Notebook {
    pub(super) fn new() -> Self {
        Notebook { kept: Mutex::default(), count: watch::Sender::new(0) }
    }

    pub(super) fn keep(&self, note: ShownNote, leg: Option<LegKey>) {
        let mut kept = self.kept.lock();
        if kept.len() >= NOTES_MAX {
            kept.pop_front();
        }
        kept.push_back(Kept { note, leg });
        drop(kept);
        self.count.send_modify(|count| *count += 1);
    }

    pub(super) fn count(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    pub(super) fn all(&self) -> Vec<ShownNote> {
        self.kept.lock().iter().map(|kept| kept.note.clone()).collect()
    }

    /// The newest note with this id, and its leg.
    pub(super) fn find(&self, id: &str) -> Option<(ShownNote, Option<LegKey>)> {
        let kept = self.kept.lock();
        kept.iter().rev().find(|kept| kept.note.id == id).map(|kept| (kept.note.clone(), kept.leg))
    }
}

/// A time in the format of notes.
pub(super) fn rfc3339(at: Micros) -> String {
    let nanos = i128::from(at.0) * 1_000;
    let written =
        OffsetDateTime::from_unix_timestamp_nanos(nanos).ok().and_then(|at| at.format(&Rfc3339).ok());
    written.unwrap_or_default()
}

/// The content type of notes and acknowledgements.
pub(super) const JSON: &str = "application/json";
/// The user part of the organisation's events identity.
pub(super) const EVENTS: &str = "events";
/// The fields that are not rows.
const KNOWN: [&str; 5] = ["id", "title", "body", "level", "ack"];
/// Notes that a phone keeps; the oldest are dropped first.
const NOTES_MAX: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Option<ShownNote> {
        let arrival = Arrival {
            channel: Channel::Message,
            from: "sip:events@acme.test".into(),
            call_id: None,
            at: Micros(0),
        };
        ShownNote::read(body.as_bytes(), arrival)
    }

    #[test]
    fn four_fields_have_a_meaning_and_the_others_are_rows_in_their_order() {
        let note = read(
            r#"{"zebra": 1, "title": "Debt", "id": "n1", "level": "alert", "ack": true, "body": "900 euros",
                "apple": {"deep": [1, 2]}, "ack_by": null}"#,
        )
        .unwrap();
        assert_eq!(
            (note.id.as_str(), note.title.as_str(), note.body.as_deref()),
            ("n1", "Debt", Some("900 euros"))
        );
        assert_eq!((note.level, note.ack), (Level::Alert, true));
        let names: Vec<&str> = note.rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["zebra", "apple", "ack_by"]);
    }

    #[test]
    fn numbers_keep_their_digits() {
        let note =
            read(r#"{"id": "n", "title": "t", "owes": 900.00, "no": 12345678901234567890123, "of": [1.10]}"#);
        let note = note.unwrap();
        let values: Vec<&str> = note.rows.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["900.00", "12345678901234567890123", "[1.10]"]);
        assert_eq!(
            note.exact.as_str(),
            r#"{"id":"n","title":"t","owes":900.00,"no":12345678901234567890123,"of":[1.10]}"#
        );
    }

    #[test]
    fn what_is_no_note_is_not_shown() {
        for body in
            ["", "[]", "{}", r#"{"title": "no id"}"#, r#"{"id": "no title"}"#, r#"{"id": 1, "title": "x"}"#]
        {
            assert_eq!(read(body), None, "{body}");
        }
        // An unknown level of a later version must not hide a note.
        assert_eq!(read(r#"{"id": "n", "title": "t", "level": "new"}"#).unwrap().level, Level::Info);
    }

    #[test]
    fn an_acknowledgement_names_the_note_and_the_moment() {
        let note = read(r#"{"id": "n1", "title": "Debt", "ack": true}"#).unwrap();
        assert_eq!(
            note.acknowledgement(Micros(1_795_253_400_250_000)).to_string(),
            r#"{"ack":true,"id":"n1","title":"Debt","at":"2026-11-21T09:30:00.25Z"}"#
        );
    }
}
