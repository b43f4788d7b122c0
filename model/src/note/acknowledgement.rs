//! The message that a phone sends when its user taps Acknowledge.

use serde_json::Value;

use crate::ids::NoteId;
use crate::json;
use crate::time::Timestamp;

/// An acknowledgement, as the phone reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The note.
    pub id: NoteId,
    /// When the user tapped, by the phone's clock; `None` when it is not given.
    pub at: Option<Timestamp>,
}

impl Acknowledgement {
    /// Reads `{"ack": true, "id": …, "title"?: …, "at"?: …}`; the title and further fields are ignored.
    pub fn parse(bytes: &[u8]) -> Option<Acknowledgement> {
        if bytes.len() > BYTES_MAX {
            return None;
        }
        let object = json::object(bytes).ok()?;
        if object.get("ack") != Some(&Value::Bool(true)) {
            return None;
        }
        let id = object.get("id").and_then(Value::as_str).filter(|id| id.len() == UUID_LEN)?;
        let at = match object.get("at") {
            None | Some(Value::Null) => None,
            Some(at) => Some(at.as_str()?.parse().ok()?),
        };
        Some(Acknowledgement { id: id.parse().ok()?, at })
    }

    /// The time to store: the phone's own, but not before the note was sent, nor more than a minute after
    /// `now`, because the phone's clock may be wrong.
    pub fn acked_at(&self, sent_at: Timestamp, now: Timestamp) -> Timestamp {
        self.at.unwrap_or(now).min(now.plus_micros(AHEAD_MAX_US)).max(sent_at)
    }
}

/// A phone may return the complete note with the acknowledgement.
const BYTES_MAX: usize = 8 * 1024;
/// How far a phone's clock may be ahead.
const AHEAD_MAX_US: i64 = 60 * 1_000_000;
const UUID_LEN: usize = 36;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_tap_is_a_tap() {
        let id = "0190a000-0000-7000-8000-000000000001";
        let whole = format!(r#"{{"ack":true,"id":"{id}","title":"a","at":"2026-01-01T00:00:01+01:00"}}"#);
        let read = Acknowledgement::parse(whole.as_bytes()).unwrap();
        assert_eq!(read.id.to_string(), id);
        assert_eq!(read.at.unwrap().to_string(), "2025-12-31T23:00:01.000Z");
        for good in [
            format!(r#"{{"ack":true,"id":"{id}"}}"#),
            format!(r#"{{"x":1,"id":"{id}","at":null,"ack":true}}"#),
        ] {
            assert_eq!(Acknowledgement::parse(good.as_bytes()).unwrap().at, None, "{good}");
        }
        let bad = [
            String::new(),
            "{}".to_owned(),
            format!(r#"{{"ack":false,"id":"{id}"}}"#),
            format!(r#"{{"ack":"true","id":"{id}"}}"#),
            format!(r#"{{"ack":1,"id":"{id}"}}"#),
            format!(r#"{{"id":"{id}"}}"#),
            r#"{"ack":true}"#.to_owned(),
            r#"{"ack":true,"id":"7"}"#.to_owned(),
            format!(r#"{{"ack":true,"id":"{}"}}"#, id.replace('-', "")),
            format!(r#"{{"ack":true,"id":"{id}","id":"{id}"}}"#),
            format!(r#"{{"ack":true,"id":"{id}","at":"yesterday"}}"#),
            format!(r#"{{"ack":true,"id":"{id}","at":1}}"#),
            format!(r#"[{{"ack":true,"id":"{id}"}}]"#),
            format!(r#"{{"ack":true,"id":"{id}","x":"{}"}}"#, "y".repeat(BYTES_MAX)),
        ];
        for bad in bad {
            assert_eq!(Acknowledgement::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn the_tap_lies_between_the_sending_and_a_minute_from_now() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let (sent, now) = (at(100), at(200));
        let cases = [
            (None, 200),
            (Some(150), 150),
            (Some(99), 100),
            (Some(260), 260),
            (Some(261), 260),
            (Some(0), 100),
        ];
        for (tapped, counts) in cases {
            let tap = Acknowledgement { id: NoteId(uuid::Uuid::nil()), at: tapped.map(at) };
            assert_eq!(tap.acked_at(sent, now), at(counts), "{tapped:?}");
        }
        // It also works if the switch's clock was set back.
        let tap = Acknowledgement { id: NoteId(uuid::Uuid::nil()), at: None };
        assert_eq!(tap.acked_at(at(900), now), at(900));
    }

    proptest! {
        #[test]
        fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Acknowledgement::parse(&bytes);
        }
    }
}
