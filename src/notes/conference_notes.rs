//! The notes that rooms send to the phones in them: `member-join`, `member-leave`, `roster`.

use bytes::Bytes;
use serde_json::{Map, Value};
use sidetone_model::ids::{CallId, LegId, NodeId, NoteId};
use sidetone_model::note::{
    Destination, Dispatch, FromRoom, NewNote, NewReceipt, NoteChannel, NoteLevel, NoteSource,
};
use sidetone_model::time::Timestamp;
use sidetone_switch::conference::RoomNote;
use uuid::Uuid;

use crate::clock::Clock;
use crate::notes::Orders;

/// Stores the notes of rooms and sends them; clones share the tasks.
#[derive(Clone)]
pub struct ConferenceNotes {
    orders: Orders,
    node: NodeId,
    clock: Clock,
}

impl ConferenceNotes {
    pub(super) fn new(orders: Orders, node: NodeId, clock: Clock) -> Self {
        Self { orders, node, clock }
    }

    /// Takes a note of a room; never blocks. If the queue is full, the note is not sent; the call continues.
    pub fn send(&self, note: RoomNote) {
        if note.to.is_empty() {
            return;
        }
        let (note, dispatch) = stored(note, self.node, (self.clock)());
        if !self.orders.announce(note, dispatch) {
            tracing::warn!("notes of a room are not sent: too many notes wait to be stored");
        }
    }
}

/// A room's note in its stored form: one note, a receipt for each phone.
fn stored(told: RoomNote, node: NodeId, sent_at: Timestamp) -> (NewNote, Dispatch) {
    let id = NoteId(Uuid::now_v7());
    let payload = Bytes::from(payload(id, &told.payload));
    let text = |name: &str| told.payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let legs: Vec<(CallId, LegId)> = told.to.iter().map(|phone| (phone.call, phone.leg)).collect();
    let receipts = told
        .to
        .iter()
        .map(|phone| NewReceipt {
            member: phone.member.to_string(),
            name: phone.name.clone(),
            device: String::new(),
        })
        .collect();
    let note = NewNote {
        id,
        organisation_id: told.organisation,
        team_id: None,
        channel: NoteChannel::Info,
        call_uuid: one_call(&legs),
        extension_id: None,
        room: Some(FromRoom {
            room: told.room,
            session: told.session,
            legs: legs.iter().map(|(_, leg)| *leg).collect(),
        }),
        title: text("title").to_owned(),
        level: NoteLevel::from_name(text("level")).unwrap_or(NoteLevel::Info),
        ack: false,
        source: NoteSource::Conference,
        sent_at,
        payload: payload.clone(),
        error: None,
        node,
        receipts,
    };
    (note, Dispatch { note: id, to: Destination::Calls(legs), payload })
}

/// The call, if all legs belong to the same call: then the note belongs to that call too.
fn one_call(legs: &[(CallId, LegId)]) -> Option<CallId> {
    let (first, _) = legs.first()?;
    legs.iter().all(|(call, _)| call == first).then_some(*first)
}

/// The payload for the phones: the `id` before the fields in order.
fn payload(id: NoteId, fields: &Map<String, Value>) -> String {
    let mut payload = Map::with_capacity(fields.len() + 1);
    payload.insert("id".to_owned(), Value::from(id.to_string()));
    payload.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    // Names are texts and numbers finite, so they can always be written.
    serde_json::to_string(&payload).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sidetone_model::ids::{ConferenceSessionId, OrganisationId, RoomId};

    use super::*;
    use sidetone_switch::conference::RoomPhone;

    fn told(phones: &[(u32, u128)]) -> RoomNote {
        let fields = json!({"title": "Ada joined", "level": "info", "event": "member-join", "member": 1,
            "name": "Ada", "count": 2});
        RoomNote {
            organisation: OrganisationId(Uuid::from_u128(1)),
            room: RoomId(Uuid::from_u128(9)).into(),
            session: ConferenceSessionId(Uuid::from_u128(2)),
            to: phones
                .iter()
                .map(|(member, call)| RoomPhone {
                    member: *member,
                    name: format!("Person {member}"),
                    call: CallId(Uuid::from_u128(*call)),
                    leg: LegId(Uuid::from_u128(100 + call)),
                })
                .collect(),
            payload: fields.as_object().unwrap().clone(),
        }
    }

    #[test]
    fn one_note_has_a_receipt_for_each_phone_by_its_member() {
        let (note, dispatch) = stored(told(&[(2, 5), (3, 6)]), NodeId(Uuid::nil()), Timestamp::default());
        let members: Vec<&str> = note.receipts.iter().map(|receipt| receipt.member.as_str()).collect();
        assert_eq!((members, dispatch.to.len()), (vec!["2", "3"], 2));
        assert_eq!((note.call_uuid, note.source, note.ack), (None, NoteSource::Conference, false));
        let sent: Value = serde_json::from_slice(&dispatch.payload).unwrap();
        let names: Vec<&String> = sent.as_object().unwrap().keys().collect();
        assert_eq!(names, ["id", "title", "level", "event", "member", "name", "count"]);
        let event = note.sent_data();
        assert_eq!(event["source"], "conference");
        assert_eq!(event["legs"], json!([leg(105), leg(106)]));
        assert_eq!(event["room_id"], json!(Uuid::from_u128(9)));
        assert!(!event.contains_key("call_uuid"));
        let (alone, _) = stored(told(&[(2, 5)]), NodeId(Uuid::nil()), Timestamp::default());
        assert_eq!(alone.call_uuid, Some(CallId(Uuid::from_u128(5))));
    }

    fn leg(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }
}
