//! The content of a note: the rules in the API documentation, and the JSON that a phone receives.

use serde_json::Value;
use uuid::Uuid;

use crate::call::words;
use crate::exact_json::{self, ExactJson};
use crate::ids::NoteId;
use crate::json::{self, kind_of};
use crate::problem::FieldProblem;

/// A valid note: a title, and rows in the order in which they were sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Every field as a phone receives it, including `title`, `body`, `level` and `ack`, without the id.
    rows: Vec<(String, ExactJson)>,
    title: String,
    level: NoteLevel,
    ack: bool,
}

words! {
    /// The level of a note.
    NoteLevel {
        /// Keeps its banner up until dismissed.
        Alert = "alert",
        /// The default level of a note.
        Info = "info",
        /// In between.
        Warning = "warning",
    }
}

impl NoteLevel {
    /// Every name of a level with its level, the aliases among them.
    pub const NAMES: [(&'static str, NoteLevel); 6] = [
        ("alert", NoteLevel::Alert),
        ("critical", NoteLevel::Alert),
        ("error", NoteLevel::Alert),
        ("info", NoteLevel::Info),
        ("warn", NoteLevel::Warning),
        ("warning", NoteLevel::Warning),
    ];

    /// The level of that name or alias: `warn` is a warning, `critical` and `error` are alerts.
    pub fn from_alias(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }
}

impl Note {
    /// Reads a note from an integrator.
    ///
    /// # Errors
    /// Every wrong field, in the order of the note; a problem of the complete note has the name `body`, as in
    /// every other request.
    pub fn parse(bytes: &[u8]) -> Result<Note, Vec<FieldProblem>> {
        let object = json::object(bytes)?;
        let sent = exact_json::members(bytes);
        let mut note = Note {
            rows: Vec::with_capacity(object.len() + 1),
            title: String::new(),
            level: NoteLevel::Info,
            ack: false,
        };
        let mut problems = Vec::new();
        let (untitled, unlevelled) = (!object.contains_key("title"), !object.contains_key("level"));
        // Names are unique, so both have the same members in the same order.
        for ((name, value), (_, exact)) in object.into_iter().zip(sent) {
            match note.take(&name, value, exact) {
                Ok(row) => note.rows.push((name, row)),
                Err(message) => problems.push(FieldProblem { field: json::shown(&name), message }),
            }
        }
        if untitled {
            problems.push(FieldProblem { field: "title".to_owned(), message: "is required".to_owned() });
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        if unlevelled {
            note.rows.push(("level".to_owned(), ExactJson::text(note.level.as_str())));
        }
        // Every id has the same length.
        let size_bytes = note.payload(NoteId(Uuid::nil())).len();
        if size_bytes > WHOLE_BYTES_MAX {
            let message = format!(
                "must stay under 4 KB: with its id the note is {size_bytes} bytes of JSON, at most \
                 {WHOLE_BYTES_MAX} are sent"
            );
            return Err(vec![FieldProblem { field: "body".to_owned(), message }]);
        }
        Ok(note)
    }

    /// Returns the field as a phone receives it; `exact` is its value as it was sent.
    fn take(&mut self, name: &str, value: Value, exact: ExactJson) -> Result<ExactJson, String> {
        match (name, value) {
            ("ack", Value::Bool(ack)) => {
                self.ack = ack;
                Ok(exact)
            }
            ("ack", other) => Err(mistyped("true or false", &other)),
            ("body", Value::String(_)) => Ok(exact),
            ("body", other) => Err(mistyped("a string", &other)),
            // The field marks notes that rooms send: no other note may have it.
            ("event", _) => Err("is reserved for what the service itself sends".to_owned()),
            ("id", _) => Err("is assigned by the service, leave it out".to_owned()),
            ("level", Value::String(level)) => {
                let level = NoteLevel::from_alias(&level).ok_or_else(|| {
                    "must be one of info, warning, alert, or warn, critical, error for these".to_owned()
                })?;
                self.level = level;
                Ok(ExactJson::text(level.as_str()))
            }
            ("level", other) => Err(mistyped("a string", &other)),
            ("title", Value::String(title)) => {
                self.title = title_of(&title)?;
                Ok(ExactJson::text(&self.title))
            }
            ("title", other) => Err(mistyped("a string", &other)),
            _ => Ok(exact),
        }
    }

    /// The payload for a phone: compact JSON, first the `id`, then the fields in the order in which they were
    /// sent, with every number unchanged. `level` is always present.
    pub fn payload(&self, id: NoteId) -> String {
        let mut payload = format!("{{\"id\":\"{id}\"");
        for (name, value) in &self.rows {
            payload.push(',');
            payload.push_str(ExactJson::text(name).as_str());
            payload.push(':');
            payload.push_str(value.as_str());
        }
        payload.push('}');
        payload
    }

    /// The heading.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The level.
    pub fn level(&self) -> NoteLevel {
        self.level
    }

    /// Whether the phone shows an Acknowledge button.
    pub fn ack(&self) -> bool {
        self.ack
    }
}

/// A title is one line, without control characters and surrounding white space.
fn title_of(title: &str) -> Result<String, String> {
    let plain: String = title.chars().filter(|c| !c.is_control()).collect();
    let plain = plain.trim();
    match plain.chars().count() {
        0 => Err("must not be empty".to_owned()),
        len if len > TITLE_LEN_MAX => Err(format!("must be at most {TITLE_LEN_MAX} characters, not {len}")),
        _ => Ok(plain.to_owned()),
    }
}

fn mistyped(wanted: &str, found: &Value) -> String {
    format!("must be {wanted}, not {}", kind_of(found))
}

/// Characters (Unicode scalar values) of a title, counted after trimming.
pub const TITLE_LEN_MAX: usize = 200;
/// Octets of the JSON that is sent to a phone, with its id: a complete note stays under 4 KB.
pub const WHOLE_BYTES_MAX: usize = 4_095;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn problems(text: &str) -> String {
        let problems = Note::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|p| format!("{}: {}", p.field, p.message)).collect::<Vec<_>>().join("; ")
    }

    fn note(text: &str) -> Note {
        Note::parse(text.as_bytes()).unwrap()
    }

    const ID: NoteId = NoteId(Uuid::nil());
    const HEAD: &str = r#"{"id":"00000000-0000-0000-0000-000000000000","#;

    #[test]
    fn a_phone_receives_the_fields_in_the_order_sent_behind_the_id() {
        let text = r#"{ "zebra": {"b":1,"a":[true,null]}, "title": " Owes\t900 EUR ", "level":"warn", "apple": "", "ack":true, "body":"a\nb" }"#;
        let note = note(text);
        let expected = r#""zebra":{"b":1,"a":[true,null]},"title":"Owes900 EUR","level":"warning","apple":"","ack":true,"body":"a\nb"}"#;
        assert_eq!(note.payload(ID), format!("{HEAD}{expected}"));
        assert_eq!((note.title(), note.level(), note.ack()), ("Owes900 EUR", NoteLevel::Warning, true));
    }

    #[test]
    fn levels_and_their_other_names() {
        let cases = [
            ("info", "info"),
            ("warning", "warning"),
            ("alert", "alert"),
            ("warn", "warning"),
            ("critical", "alert"),
            ("error", "alert"),
        ];
        for (sent, received) in cases {
            let note = note(&format!(r#"{{"title":"a","level":"{sent}"}}"#));
            assert_eq!(note.level().as_str(), received, "{sent}");
            assert!(note.payload(ID).ends_with(&format!(r#""level":"{received}"}}"#)), "{sent}");
        }
        let plain = note(r#"{"title":"a"}"#);
        assert_eq!((plain.level(), plain.ack()), (NoteLevel::Info, false));
        assert_eq!(plain.payload(ID), format!(r#"{HEAD}"title":"a","level":"info"}}"#));
    }

    #[test]
    fn other_fields_reach_the_phone_with_every_digit() {
        let rows =
            r#""order":12345678901234567890123,"owes":900.00,"rate":1E+2,"of":[{"x":-0.10}],"s":"é \" \\""#;
        let note = note(&format!(r#"{{"title":"a", {rows} , "level":"alert"}}"#));
        assert_eq!(note.payload(ID), format!(r#"{HEAD}"title":"a",{rows},"level":"alert"}}"#));
    }

    #[test]
    fn every_wrong_field_is_named_in_the_order_sent() {
        let cases = [
            ("{}", "title: is required"),
            ("[]", "body: must be a JSON object, not an array"),
            (r#"{"title":null}"#, "title: must be a string, not null"),
            (r#"{"title":""}"#, "title: must not be empty"),
            (r#"{"title":" \u0000\r\n "}"#, "title: must not be empty"),
            (r#"{"title":"a","body":1}"#, "body: must be a string, not a number"),
            (r#"{"title":"a","ack":"true"}"#, "ack: must be true or false, not a string"),
            (r#"{"title":"a","ack":1}"#, "ack: must be true or false, not a number"),
            (r#"{"title":"a","level":null}"#, "level: must be a string, not null"),
            (
                r#"{"title":"a","level":"Info"}"#,
                "level: must be one of info, warning, alert, or warn, critical, error for these",
            ),
            (r#"{"title":"a","id":"x"}"#, "id: is assigned by the service, leave it out"),
            (r#"{"title":"a","event":null}"#, "event: is reserved for what the service itself sends"),
            (r#"{"title":"a","title":"b"}"#, "title: is given more than once"),
            (r#"{"title":"a","x":{"y":1,"y":1}}"#, "x.y: is given more than once"),
            (
                r#"{"ack":0,"event":1,"title":2}"#,
                "ack: must be true or false, not a number; event: is reserved for what the service itself sends; \
                 title: must be a string, not a number",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(problems(text), expected, "{text}");
        }
        // Ordinary rows.
        note(r#"{"title":"a","member":1,"members":[],"count":3,"ID":1}"#);
    }

    #[test]
    fn a_title_has_two_hundred_characters_whatever_their_bytes() {
        let title = |len: usize| format!(r#"{{"title":"  {}\n"}}"#, "🦀".repeat(len));
        assert_eq!(note(&title(200)).title().chars().count(), 200);
        assert_eq!(problems(&title(201)), "title: must be at most 200 characters, not 201");
    }

    #[test]
    fn the_whole_is_measured_as_it_is_sent() {
        let fixed = HEAD.len() + r#""title":"a","x":"","level":"info"}"#.len();
        let sized = |size: usize| format!(r#"{{ "title": "a", "x": "{}" }}"#, "y".repeat(size - fixed));
        assert_eq!(note(&sized(4_095)).payload(ID).len(), 4_095);
        assert!(
            problems(&sized(4_096))
                .starts_with("body: must stay under 4 KB: with its id the note is 4096 bytes")
        );
        // White space is not counted; other characters count by their UTF-8 length.
        note(&format!("{}{}", sized(4_095), " ".repeat(10_000)));
        assert!(problems(&sized(4_095).replacen('y', "é", 1)).contains("4096 bytes"));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| {
            format!(r#"{{"title":"a","x":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1))
        };
        note(&nested(32));
        assert_eq!(problems(&nested(33)), "body: is nested deeper than 32 levels");
        assert_eq!(problems(&nested(10_000)), "body: is nested deeper than 32 levels");
    }

    proptest! {
        #[test]
        fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Note::parse(&bytes);
        }

        #[test]
        fn what_is_taken_keeps_its_rows_and_their_order(
            rows in prop::collection::vec(("[a-z]{1,6}", any::<Option<i32>>()), 0..12),
            title in "\\PC{0,210}",
        ) {
            let mut object = Map::new();
            for (name, value) in rows {
                object.insert(name, json!(value));
            }
            for reserved in ["ack", "body", "event", "id", "level"] {
                object.shift_remove(reserved);
            }
            object.insert("title".to_owned(), json!(title));
            let taken = Note::parse(serde_json::to_string(&object).unwrap().as_bytes());
            let len = title.trim().chars().count();
            prop_assert_eq!(taken.is_ok(), (1..=TITLE_LEN_MAX).contains(&len));
            if let Ok(note) = taken {
                let payload = note.payload(ID);
                prop_assert!(payload.len() <= WHOLE_BYTES_MAX);
                let received: Map<String, Value> = serde_json::from_str(&payload).unwrap();
                let names: Vec<&String> = received.keys().skip(1).collect();
                // A default level comes last.
                object.insert("level".to_owned(), json!("info"));
                prop_assert_eq!(names, object.keys().collect::<Vec<_>>());
                // If a phone sends a received note back as a new note, only its id is refused.
                let again = Note::parse(payload.as_bytes()).unwrap_err();
                prop_assert_eq!(again.len(), 1);
                prop_assert_eq!(again[0].field.as_str(), "id");
            }
        }
    }
}
