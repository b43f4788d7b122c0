//! Writes the items of a stream as `text/event-stream` of the HTML standard.

use axum::body::Bytes;
use serde_json::json;
use sidetone_model::event::{Gap, StreamItem};
use sidetone_model::time::Timestamp;

/// Sets the client's delay before it reconnects.
pub(super) const BEGINNING: Bytes = Bytes::from_static(b"retry: 3000\n\n");
/// Shows that the connection works although there are no events.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");
/// Marks that all stored events were sent.
const LIVE: Bytes = Bytes::from_static(b": live\n\n");

/// Returns the text of an item.
pub(super) fn frame(item: &StreamItem, now: Timestamp) -> Bytes {
    match item {
        // JSON on one line: it contains no line ends.
        StreamItem::Event(event) => {
            format!("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.kind.as_str(), event.envelope).into()
        }
        // Without an id: a client that reconnects continues after its last event.
        StreamItem::Gap(gap) => format!("event: stream.gap\ndata: {}\n\n", envelope(gap, now)).into(),
        StreamItem::Live => LIVE,
    }
}

fn envelope(gap: &Gap, now: Timestamp) -> String {
    let reason = gap.reason();
    let data = match gap {
        Gap::SlowReader { first, last, events } => json!({
            "reason": reason,
            "first_id": first.to_string(),
            "last_id": last.to_string(),
            "events": events,
            "message": "events came faster than they were read; connect again with Last-Event-ID to get them",
        }),
        Gap::TooOld { replay_from } => json!({
            "reason": reason,
            "replay_from": replay_from.to_string(),
            "message": "events are replayed for 15 hours; read again what you keep, then go on from here",
        }),
        Gap::UnknownId { replay_from } => json!({
            "reason": reason,
            "replay_from": replay_from.to_string(),
            "message": "there is no such event; read again what you keep, then go on from here",
        }),
    };
    json!({"type": "stream.gap", "timestamp": now.to_string(), "data": data}).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sidetone_model::event::{EventKind, Position, StreamedEvent};
    use sidetone_model::ids::{EventId, OrganisationId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_text_is_that_of_the_standard() {
        let now = Timestamp::from_micros(1_767_225_600_000_000);
        let id = |number| EventId(Uuid::from_u128(number));
        let event = StreamedEvent {
            position: Position(1),
            id: id(1),
            kind: EventKind::CallEnded,
            organisation_id: OrganisationId(Uuid::from_u128(9)),
            team_id: None,
            viewers: None,
            envelope: r#"{"id":"x"}"#.to_owned(),
        };
        let text = |item| String::from_utf8(frame(&item, now).to_vec()).unwrap();
        assert_eq!(
            text(StreamItem::Event(Arc::new(event))),
            "id: 00000000-0000-0000-0000-000000000001\nevent: call.ended\ndata: {\"id\":\"x\"}\n\n"
        );
        assert_eq!(text(StreamItem::Live), ": live\n\n");
        let gap = text(StreamItem::Gap(Gap::SlowReader { first: id(2), last: id(3), events: 2 }));
        let data = gap.strip_prefix("event: stream.gap\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], "stream.gap");
        assert_eq!(data["timestamp"], "2026-01-01T00:00:00.000Z");
        assert_eq!(data["data"]["reason"], "slow_reader");
        assert_eq!(data["data"]["last_id"], id(3).to_string());
        let gap = text(StreamItem::Gap(Gap::TooOld { replay_from: now }));
        assert!(gap.contains(r#""reason":"too_old","replay_from":"2026-01-01T00:00:00.000Z""#), "{gap}");
    }
}
