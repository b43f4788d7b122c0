//! Notes, their receipts and their events, on SQLite and on PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::event::{EventKind, Position};
use sidetone_model::idempotency::{Claim, Idempotency, KeptAnswer, Once};
use sidetone_model::ids::{CallId, ExtensionId, LegId, NodeId, NoteId, OrganisationId};
use sidetone_model::note::rules::outcome;
use sidetone_model::note::{
    Acknowledgement, Change, NewNote, NewReceipt, Note, NoteChannel, NoteLevel, NoteLog, NoteQuery,
    NoteRecord, NoteSource, NoteStatus, PhoneAnswer, Tap, Tapper, Written,
};
use sidetone_model::page::Window;
use sidetone_model::problem::Problem;
use sidetone_store::{IdempotencyKeys, Store};
use uuid::Uuid;

use crate::common::records::{at, organisation};
use crate::common::schema::documented;
use crate::store::with_store;

const NODE: NodeId = NodeId(Uuid::from_u128(0x0DE));
const CALL: CallId = CallId(Uuid::from_u128(0xCA11));
const EXTENSION: ExtensionId = ExtensionId(Uuid::from_u128(0xE1));

fn id(number: u128) -> NoteId {
    NoteId(Uuid::from_u128(0x4073_0000 + number))
}

fn leg(number: u128) -> LegId {
    LegId(Uuid::from_u128(0x1E60 + number))
}

/// Note `number`, sent at that second to two legs of [`CALL`].
fn info(number: u128) -> NewNote {
    let text =
        json!({"title": format!("note {number}"), "body": "text", "level": "warn", "ack": true, "row": [1]});
    let note = Note::parse(text.to_string().as_bytes()).unwrap();
    let receipt = |number, name: &str| NewReceipt {
        member: leg(number).to_string(),
        name: name.to_owned(),
        device: String::new(),
    };
    NewNote {
        id: id(number),
        organisation_id: organisation(1),
        team_id: None,
        channel: NoteChannel::Info,
        call_uuid: Some(CALL),
        extension_id: None,
        room: None,
        title: note.title().to_owned(),
        level: note.level(),
        ack: note.ack(),
        source: NoteSource::Api,
        sent_at: at(number as i64),
        payload: note.payload(id(number)).into(),
        error: None,
        node: NODE,
        receipts: vec![receipt(1, "Ada"), receipt(2, "1002")],
    }
}

/// Note `number`, sent to these devices of [`EXTENSION`].
fn message(number: u128, devices: &[&str]) -> NewNote {
    let receipt = |device: &&str| NewReceipt {
        member: EXTENSION.to_string(),
        name: "Ada".to_owned(),
        device: (*device).to_owned(),
    };
    NewNote {
        channel: NoteChannel::Message,
        call_uuid: None,
        extension_id: Some(EXTENSION),
        receipts: devices.iter().map(receipt).collect(),
        ..info(number)
    }
}

async fn store_note(store: &Store, note: NewNote) {
    assert_eq!(store.write_changes(&[Change::Sent(Box::new(note))]).await.unwrap(), [Written::Done]);
}

async fn answered(store: &Store, number: u128, place: usize, answer: PhoneAnswer) {
    let change = Change::Answered { note: id(number), place, outcome: outcome(answer) };
    assert_eq!(store.write_changes(&[change]).await.unwrap(), [Written::Done]);
}

fn by_leg(number: u128) -> Tapper {
    Tapper::Leg { organisation: organisation(1), leg: leg(number) }
}

fn by_device(device: Option<&str>) -> Tapper {
    Tapper::Device {
        organisation: organisation(1),
        extension: EXTENSION,
        address: "sip:1001@acme.test".to_owned(),
        device: device.map(str::to_owned),
    }
}

/// The effect of an acknowledgement made at `second` of note `number`, received at second 100.
async fn tap(store: &Store, number: u128, by: Tapper, second: i64) -> Written {
    let acknowledgement = Acknowledgement { id: id(number), at: Some(at(second)) };
    let tap = Tap { by, acknowledgement, now: at(100) };
    store.write_changes(&[Change::Acked(tap)]).await.unwrap()[0]
}

async fn notes(store: &Store, query: NoteQuery) -> Vec<NoteRecord> {
    store.notes_of_call(organisation(1), CALL, &query).await.unwrap().items
}

async fn only(store: &Store) -> NoteRecord {
    let [note] = notes(store, NoteQuery::default()).await.try_into().unwrap();
    note
}

async fn events(store: &Store, kind: EventKind) -> Vec<(OrganisationId, Value)> {
    let batch = store.events_after(Scope::Everything, Position::default(), 500).await.unwrap();
    batch.events.iter().for_each(|placed| documented(&placed.event));
    let of_kind = batch.events.into_iter().filter(|placed| placed.event.kind == kind);
    of_kind.map(|placed| (placed.event.organisation_id, Value::Object(placed.event.data))).collect()
}

#[test]
fn a_note_is_stored_with_its_receipts_and_its_event() {
    with_store(async |store| {
        store_note(store, info(1)).await;
        let note = only(store).await;
        let payload = json!({"id": id(1), "title": "note 1", "body": "text", "level": "warning", "ack": true, "row": [1]});
        let receipt = |number, name: &str| json!({"member": leg(number), "name": name, "sent_at": at(1), "acked_at": null, "status": "pending"});
        assert_eq!(
            serde_json::to_value(&note).unwrap(),
            json!({
                "id": id(1), "channel": "info", "call_uuid": CALL, "title": "note 1", "body": "text",
                "level": "warning", "ack": true, "source": "api", "status": "pending",
                "recipients": [receipt(1, "Ada"), receipt(2, "1002")],
                "recipient_count": 2, "acked_count": 0, "sent_at": at(1), "payload": payload,
            })
        );
        let sent = json!({"id": id(1), "channel": "info", "title": "note 1", "level": "warning", "ack": true,
            "source": "api", "call_uuid": CALL, "legs": [leg(1), leg(2)]});
        assert_eq!(events(store, EventKind::CallInfoSent).await, [(organisation(1), sent)]);
        assert_eq!(store.owner_of_call(CALL).await.unwrap(), Some((organisation(1), None)));
        assert_eq!(store.owner_of_call(CallId(Uuid::nil())).await.unwrap(), None);
    });
}

#[test]
fn what_phones_answer_is_kept_one_by_one_and_the_best_decides() {
    with_store(async |store| {
        store_note(store, info(1)).await;
        answered(store, 1, 1, PhoneAnswer::Status(415)).await;
        let note = only(store).await;
        assert_eq!((note.status, note.error), (NoteStatus::Pending, None));
        assert_eq!(note.recipients[1].error.as_deref(), Some("phone does not support notes (415)"));
        assert_eq!(note.recipients[1].sip_status, Some(415));
        answered(store, 1, 0, PhoneAnswer::Silence).await;
        let note = only(store).await;
        let why = "phone did not answer within 32 seconds; phone does not support notes (415)";
        assert_eq!((note.status, note.error.as_deref()), (NoteStatus::Failed, Some(why)));
        // A late response changes neither result.
        answered(store, 1, 0, PhoneAnswer::Status(200)).await;
        assert_eq!(only(store).await.status, NoteStatus::Failed);

        store_note(store, info(2)).await;
        answered(store, 2, 0, PhoneAnswer::Status(200)).await;
        answered(store, 2, 1, PhoneAnswer::Unreachable).await;
        let note = notes(store, NoteQuery::default()).await.remove(0);
        assert_eq!((note.id, note.status, note.error), (id(2), NoteStatus::Sent, None));
        assert_eq!(note.recipients[0].status, NoteStatus::Sent);
    });
}

/// S6: only the first valid acknowledgement counts.
#[test]
fn s6_forged_repeated_and_unasked_acknowledgements_change_nothing() {
    with_store(async |store| {
        store_note(store, info(1)).await;
        store_note(store, NewNote { ack: false, ..info(2) }).await;
        store_note(store, message(3, &["sip:a"])).await;
        let foreign = |by: Tapper| match by {
            Tapper::Leg { leg, .. } => Tapper::Leg { organisation: organisation(2), leg },
            Tapper::Device { extension, address, device, .. } => {
                Tapper::Device { organisation: organisation(2), extension, address, device }
            }
        };
        let other = Tapper::Device {
            organisation: organisation(1),
            extension: ExtensionId(Uuid::nil()),
            address: "sip:1009@acme.test".to_owned(),
            device: Some("sip:a".to_owned()),
        };
        let before = notes(store, NoteQuery::default()).await;
        for (number, by, why) in [
            (9, by_leg(1), "no such note"),
            (1, by_leg(3), "a leg that the note did not go to"),
            (1, foreign(by_leg(1)), "another organisation"),
            (1, by_device(Some("")), "a note by INFO is acknowledged by INFO"),
            (2, by_leg(1), "the note did not ask"),
            (3, by_leg(1), "a note by MESSAGE is acknowledged by MESSAGE"),
            (3, other, "another extension"),
            (3, foreign(by_device(Some("sip:a"))), "another organisation"),
        ] {
            assert_eq!(tap(store, number, by, 50).await, Written::Refused, "{why}");
        }
        assert_eq!(notes(store, NoteQuery::default()).await, before);
        assert!(events(store, EventKind::CallInfoAcked).await.is_empty());

        assert_eq!(tap(store, 1, by_leg(2), 50).await, Written::Done);
        assert_eq!(tap(store, 1, by_leg(2), 60).await, Written::Refused, "once");
        let note = notes(store, NoteQuery { status: Some(NoteStatus::Acked), ..NoteQuery::default() })
            .await
            .remove(0);
        assert_eq!((note.acked_count, note.recipient_count), (1, 2));
        assert_eq!(note.recipients[1].acked_at, Some(at(50)));
        assert_eq!(note.recipients[0].acked_at, None);
        let acked =
            json!({"id": id(1), "title": "note 1", "leg": leg(2), "acked_at": at(50), "call_uuid": CALL});
        assert_eq!(events(store, EventKind::CallInfoAcked).await, [(organisation(1), acked)]);

        // The other phone has its own.
        assert_eq!(tap(store, 1, by_leg(1), 0).await, Written::Done);
        let note = notes(store, NoteQuery { acked: Some(true), ..NoteQuery::default() }).await.remove(0);
        // An acknowledgement before the note was sent counts at the time of sending.
        assert_eq!((note.acked_count, note.recipients[0].acked_at), (2, Some(at(1))));
        assert_eq!(events(store, EventKind::CallInfoAcked).await.len(), 2);
        // A late response of the phone: the acknowledgement stays.
        answered(store, 1, 0, PhoneAnswer::Status(200)).await;
        assert_eq!(
            notes(store, NoteQuery { acked: Some(true), ..NoteQuery::default() }).await[0].status,
            NoteStatus::Acked
        );
    });
}

#[test]
fn a_person_with_two_devices_may_tap_on_each() {
    with_store(async |store| {
        store_note(store, message(1, &["sip:a", "sip:b"])).await;
        assert_eq!(tap(store, 1, by_device(Some("sip:b")), 50).await, Written::Done);
        assert_eq!(tap(store, 1, by_device(Some("sip:b")), 51).await, Written::Refused);
        assert_eq!(tap(store, 1, by_device(None), 52).await, Written::Refused);
        assert_eq!(tap(store, 1, by_device(Some("sip:a")), 53).await, Written::Done);
        let page = store.notes_of_extension(organisation(1), EXTENSION, &NoteQuery::default()).await.unwrap();
        let note = &page.items[0];
        assert_eq!((page.total, note.acked_count, note.extension_id), (1, 2, Some(EXTENSION)));
        let acked: Vec<_> = note.recipients.iter().map(|receipt| receipt.acked_at).collect();
        assert_eq!(acked, [Some(at(53)), Some(at(50))]);
        let events = events(store, EventKind::CallInfoAcked).await;
        let expected = |device, second| json!({"id": id(1), "title": "note 1", "leg": "sip:1001@acme.test", "device": device, "acked_at": at(second)});
        assert_eq!(
            events,
            [(organisation(1), expected("sip:b", 50)), (organisation(1), expected("sip:a", 53))]
        );
        let devices: Vec<_> = note.recipients.iter().map(|receipt| receipt.device.as_deref()).collect();
        assert_eq!(devices, [Some("sip:a"), Some("sip:b")]);
    });
}

#[test]
fn filters_narrow_and_pages_are_disjoint() {
    with_store(async |store| {
        for number in 1..=7 {
            let level = if number % 2 == 0 { NoteLevel::Alert } else { NoteLevel::Info };
            let source = if number == 3 { NoteSource::Url } else { NoteSource::Api };
            store_note(store, NewNote { level, source, ..info(number) }).await;
        }
        answered(store, 1, 0, PhoneAnswer::Status(200)).await;
        assert_eq!(tap(store, 2, by_leg(1), 50).await, Written::Done);
        let found = async |query: NoteQuery| {
            let page = store.notes_of_call(organisation(1), CALL, &query).await.unwrap();
            let found: Vec<u128> = page.items.iter().map(|note| note.id.0.as_u128() - 0x4073_0000).collect();
            (found, page.total)
        };
        let all = NoteQuery::default();
        assert_eq!(found(all.clone()).await, (vec![7, 6, 5, 4, 3, 2, 1], 7));
        assert_eq!(found(NoteQuery { status: Some(NoteStatus::Sent), ..all.clone() }).await, (vec![1], 1));
        assert_eq!(
            found(NoteQuery { level: Some(NoteLevel::Alert), ..all.clone() }).await,
            (vec![6, 4, 2], 3)
        );
        assert_eq!(found(NoteQuery { source: Some(NoteSource::Url), ..all.clone() }).await, (vec![3], 1));
        assert_eq!(found(NoteQuery { acked: Some(true), ..all.clone() }).await, (vec![2], 1));
        assert_eq!(
            found(NoteQuery { acked: Some(false), since: Some(at(6)), ..all.clone() }).await,
            (vec![7, 6], 2)
        );
        assert_eq!(found(NoteQuery { since: Some(at(6).plus_micros(1)), ..all.clone() }).await, (vec![7], 1));
        assert_eq!(found(NoteQuery { window: Window::at(2, 3), ..all.clone() }).await, (vec![5, 4, 3], 7));
        assert_eq!(found(NoteQuery { window: Window::at(9, 3), ..all.clone() }).await, (vec![], 7));
        let foreign = store.notes_of_call(organisation(2), CALL, &all).await.unwrap();
        assert_eq!((foreign.items.len(), foreign.total), (0, 0));
    });
}

#[test]
fn a_note_that_cannot_be_sent_is_kept_with_the_reason_and_has_no_event() {
    with_store(async |store| {
        let failed = NewNote {
            title: String::new(),
            payload: bytes::Bytes::new(),
            error: Some("the URL answered 500".to_owned()),
            source: NoteSource::Url,
            receipts: Vec::new(),
            ..info(1)
        };
        store_note(store, failed).await;
        let note = only(store).await;
        assert_eq!((note.status, note.error.as_deref()), (NoteStatus::Failed, Some("the URL answered 500")));
        assert_eq!((note.recipient_count, note.payload.as_str()), (0, "{}"));
        assert!(events(store, EventKind::CallInfoSent).await.is_empty());
    });
}

#[test]
fn what_nobody_answers_for_any_more_is_given_up_on() {
    with_store(async |store| {
        store_note(store, info(1)).await;
        store_note(store, info(2)).await;
        store_note(store, NewNote { node: NodeId(Uuid::nil()), ..info(3) }).await;
        answered(store, 1, 0, PhoneAnswer::Status(200)).await;
        assert_eq!(store.fail_pending_notes(Some(NODE), at(9), "the engine was restarted").await.unwrap(), 3);
        assert_eq!(store.fail_pending_notes(Some(NODE), at(9), "again").await.unwrap(), 0);
        let status = async || -> Vec<NoteStatus> {
            notes(store, NoteQuery::default()).await.iter().map(|note| note.status).collect()
        };
        assert_eq!(status().await, [NoteStatus::Pending, NoteStatus::Failed, NoteStatus::Sent]);
        let note = notes(store, NoteQuery::default()).await.remove(1);
        assert_eq!(note.error.as_deref(), Some("the engine was restarted"));
        assert_eq!(store.fail_pending_notes(None, at(3), "too early").await.unwrap(), 0);
        assert_eq!(store.fail_pending_notes(None, at(4), "nobody knows").await.unwrap(), 2);
        // A person may acknowledge nevertheless, because the phone showed the note.
        assert_eq!(tap(store, 3, by_leg(1), 50).await, Written::Done);
        assert_eq!(status().await, [NoteStatus::Acked, NoteStatus::Failed, NoteStatus::Sent]);
    });
}

#[test]
fn notes_are_kept_for_thirty_days() {
    with_store(async |store| {
        store_note(store, info(1)).await;
        store_note(store, info(2)).await;
        let days = |days: i64| days * 24 * 60 * 60;
        assert_eq!(store.purge_notes(at(days(30) + 1)).await.unwrap(), 0);
        assert_eq!(store.purge_notes(at(days(30) + 2)).await.unwrap(), 1);
        assert_eq!(only(store).await.id, id(2));
        assert_eq!(store.purge_notes(at(days(31))).await.unwrap(), 1);
        assert!(notes(store, NoteQuery::default()).await.is_empty());
    });
}

/// A note is sent when the response to its request is stored, not before, and never when it is not stored.
#[test]
fn within_a_unit_a_note_is_sent_after_the_commit() {
    with_store(async |store| {
        let keys = IdempotencyKeys::open(store.clone(), NODE).await.unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let run = async |number: u8, status: u16| {
            let (sent, inner) = (Arc::clone(&sent), Arc::clone(&sent));
            let work = async move {
                assert!(store.is_within_unit());
                let committed = Box::new(move || {
                    inner.fetch_add(1, Ordering::Relaxed);
                });
                store.write_within(&info(u128::from(number)), committed).await?;
                assert_eq!(sent.load(Ordering::Relaxed), 0, "sent before it is there for good");
                Ok(Some(KeptAnswer {
                    status,
                    content_type: None,
                    location: None,
                    sealed_body: String::new(),
                }))
            };
            keys.once(Claim { id: [number; 32], fingerprint: [number; 32] }, at(1), Box::pin(work)).await
        };
        assert!(!store.is_within_unit());
        let refused: Result<Once, Problem> = run(1, 409).await;
        refused.unwrap();
        assert_eq!(sent.load(Ordering::Relaxed), 0);
        assert!(notes(store, NoteQuery::default()).await.is_empty());
        assert_eq!(run(2, 202).await.unwrap(), Once::Executed);
        assert_eq!(sent.load(Ordering::Relaxed), 1);
        assert_eq!(only(store).await.id, id(2));
        assert_eq!(events(store, EventKind::CallInfoSent).await.len(), 1);
    });
}
