//! The event itself.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::event::{EventKind, EventViewers};
use crate::ids::{EventId, OrganisationId, TeamId};
use crate::time::Timestamp;

/// An event of one organisation; written as its envelope `{id, type, timestamp, organisation_id, data}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// UUIDv7: greater than every earlier id of this process.
    pub id: EventId,
    /// Dotted name such as `call.ended`.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// When it happened.
    pub timestamp: Timestamp,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The team of the call that the event is about: a user who sees one team sees only that team's events.
    /// It is not part of the envelope.
    #[serde(skip)]
    pub team_id: Option<TeamId>,
    /// For an event of a live room: further teams and extensions whose users see it. Not part of the envelope.
    #[serde(skip)]
    pub viewers: Option<Arc<EventViewers>>,
    /// The payload of that kind.
    pub data: Map<String, Value>,
}

/// The fields of an envelope before its payload.
#[derive(Serialize)]
struct Head<'a> {
    id: &'a EventId,
    #[serde(rename = "type")]
    kind: &'a EventKind,
    timestamp: &'a Timestamp,
    organisation_id: &'a OrganisationId,
}

/// The position of an event in the log. Positions only grow, with gaps between them.
///
/// A reader that has read everything up to a position and continues after it misses no event, whichever node stored
/// it: an event never becomes visible before one that is already readable. Ids do not guarantee that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub i64);

/// An event with its position in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedEvent {
    /// The position.
    pub position: Position,
    /// The event.
    pub event: Event,
}

impl Event {
    /// Returns a new event of `organisation` that happened at `timestamp`.
    ///
    /// Call it in the transaction that stores the event: a stream that starts at a time compares that time
    /// with the creation time in the id.
    pub fn new(
        kind: EventKind,
        organisation_id: OrganisationId,
        team_id: Option<TeamId>,
        timestamp: Timestamp,
        data: Map<String, Value>,
    ) -> Self {
        Self { id: EventId(Uuid::now_v7()), kind, timestamp, organisation_id, team_id, viewers: None, data }
    }

    /// Like [`Event::new`], with the fields of `data` as its payload; a value that is not an object gives an
    /// empty payload.
    pub fn of(
        kind: EventKind,
        organisation_id: OrganisationId,
        team_id: Option<TeamId>,
        timestamp: Timestamp,
        data: &impl Serialize,
    ) -> Self {
        let data = match serde_json::to_value(data) {
            Ok(Value::Object(data)) => data,
            _ => Map::new(),
        };
        Self::new(kind, organisation_id, team_id, timestamp, data)
    }

    /// The envelope as it is sent, with the same bytes each time.
    pub fn envelope(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The same envelope, with `data` as the payload's JSON text, so that a payload that is both stored and
    /// sent is formatted once.
    pub fn envelope_of(&self, data: &str) -> String {
        let Event { id, kind, timestamp, organisation_id, .. } = self;
        let head = Head { id, kind, timestamp, organisation_id };
        let mut text = serde_json::to_string(&head).unwrap_or_default();
        text.pop();
        text.reserve_exact(data.len() + 10);
        text.push_str(",\"data\":");
        text.push_str(data);
        text.push('}');
        text
    }
}

impl EventId {
    /// The creation time of the id, to the millisecond; `None` if the id is not a UUIDv7.
    pub fn made_at(self) -> Option<Timestamp> {
        (self.0.get_version_num() == 7)
            .then(|| i64::try_from(self.0.as_u128() >> 80).ok())
            .flatten()
            .and_then(|millis| millis.checked_mul(1000))
            .map(Timestamp::from_micros)
    }

    /// The smallest id that can be created at `at`: earlier ids are smaller.
    pub fn first_at(at: Timestamp) -> Self {
        let millis = at.as_micros().max(0).unsigned_abs() / 1000;
        // Only version 7 and the variant of RFC 9562 are set.
        EventId(Uuid::from_u128((u128::from(millis) & MILLIS_MASK) << 80 | 0x7000_8000_0000_0000_0000))
    }
}

/// The 48 bits of the time in a UUIDv7.
const MILLIS_MASK: u128 = 0xFFFF_FFFF_FFFF;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(number: u32) -> Event {
        let organisation = OrganisationId(Uuid::from_u128(1));
        let team = Some(crate::ids::TeamId(Uuid::from_u128(2)));
        let at = Timestamp::from_micros(1_767_225_600_123_456);
        Event::of(EventKind::CallEnded, organisation, team, at, &json!({"number": number}))
    }

    /// C5: the envelope has these fields in this order, without the team.
    #[test]
    fn the_envelope_is_that_of_the_decision() {
        let event = event(7);
        let expected = format!(
            r#"{{"id":"{}","type":"call.ended","timestamp":"2026-01-01T00:00:00.123Z","organisation_id":"00000000-0000-0000-0000-000000000001","data":{{"number":7}}}}"#,
            event.id
        );
        assert_eq!(event.envelope(), expected);
        let data = serde_json::to_string(&event.data).unwrap();
        assert_eq!(event.envelope_of(&data), expected);
    }

    #[test]
    fn ids_of_a_process_only_grow_also_within_a_millisecond() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..20_000).map(|n| event(n).id).collect::<Vec<_>>()))
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let ids = thread.join().unwrap();
            assert!(ids.is_sorted_by(|a, b| a < b));
            assert!(ids.is_sorted_by(|a, b| a.to_string() < b.to_string()), "and so do their texts");
            all.extend(ids);
        }
        let len = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), len);
    }

    #[test]
    fn an_id_knows_when_it_was_made() {
        let at = Timestamp::from_micros(1_767_225_600_123_456);
        assert_eq!(EventId::first_at(at).made_at(), Some(at.whole_millis()));
        assert_eq!(EventId::first_at(at).to_string(), "019b76da-a87b-7000-8000-000000000000");
        assert_eq!(EventId(Uuid::from_u128(5)).made_at(), None);
        assert!(EventId::first_at(Timestamp::from_micros(-1)).made_at().is_some());
        let made = event(1).id;
        let made_at = made.made_at().unwrap();
        assert!(made >= EventId::first_at(made_at));
        assert!(made < EventId::first_at(made_at.plus_micros(1000)));
    }
}
