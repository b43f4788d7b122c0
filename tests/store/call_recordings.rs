//! Recordings of calls: reported once when they are playable, kept for their organisation's retention time, and never
//! treated as files without an owner.

use std::time::{Duration, SystemTime};

use serde_json::json;
use sidetone::recorder::{DataDisk, Playback};
use sidetone_model::call_recording::{CallRecording, CallRecordingEnd};
use sidetone_model::event::EventKind;
use sidetone_model::ids::{CallId, CallRecordingId, ConferenceSessionId, OrganisationId};
use sidetone_model::organisation::{OrganisationChange, Organisations};
use sidetone_store::Store;
use uuid::Uuid;

use crate::common::records::{TempDir, at};
use crate::store::sessions::{EVERYTHING, NODE, events, home};
use crate::store::with_store;

const CALL: CallId = CallId(Uuid::from_u128(0xCA11));

fn id(number: u128) -> CallRecordingId {
    CallRecordingId(Uuid::from_u128(number))
}

async fn begin(store: &Store, owner: OrganisationId, number: u128) {
    let recording = CallRecording {
        id: id(number),
        call_uuid: CALL,
        linked_call_uuid: None,
        organisation_id: owner,
        team_id: None,
        started_at: at(number as i64),
        ended_at: None,
        bytes: 0,
        seconds: 0,
        error: None,
    };
    store.begin_call_recording(NODE, &recording).await.unwrap();
}

async fn end(store: &Store, owner: OrganisationId, number: u128, bytes: u64, error: Option<&str>) {
    let error = error.map(str::to_owned);
    let end = CallRecordingEnd { id: id(number), organisation_id: owner, bytes, error, at: at(60) };
    // A commit whose response is lost is repeated.
    for _ in 0..2 {
        store.complete_call_recording(&end).await.unwrap();
    }
}

#[test]
fn a_recording_of_a_call_is_reported_once_and_by_its_owner_alone() {
    with_store(async |store| {
        let owner = home(store).await.owner;
        let nobody = OrganisationId(Uuid::from_u128(0xDEAD));
        for number in 1..=4 {
            begin(store, owner, number).await;
        }
        let open = async || store.unfinished_call_recordings(NODE).await.unwrap().len();
        store.discard_call_recording(nobody, id(4)).await.unwrap();
        assert_eq!(open().await, 4, "another organisation's");
        store.discard_call_recording(owner, id(4)).await.unwrap();
        end(store, nobody, 1, 64_080, None).await;
        assert_eq!(open().await, 3);
        end(store, owner, 1, 192_080, None).await;
        end(store, owner, 2, 64_080, Some("the disk of recordings is full")).await;
        end(store, owner, 3, 0, Some("the disk of recordings is full")).await;
        assert_eq!(open().await, 0);
        let ready = events(store, EventKind::RecordingReady).await;
        let expected = [
            json!({"recording_id": id(1), "call_uuid": CALL, "bytes": 192_080, "seconds": 3}),
            json!({"recording_id": id(2), "call_uuid": CALL, "bytes": 64_080, "seconds": 1,
                "error": "the disk of recordings is full"}),
        ];
        assert_eq!(ready, expected.map(|data| (owner, data)));
        let found = store.recordings_of_call(CALL).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.id, one.bytes, one.ended_at)).collect();
        assert_eq!(found, [1, 2, 3].map(|n| (id(n), [192_080, 64_080, 0][n as usize - 1], Some(at(60)))));
        assert!(store.recordings_of_call(CallId(Uuid::nil())).await.unwrap().is_empty());
    });
}

/// The recording of two linked calls is a recording of both, and only its owner links it.
#[test]
fn a_recording_of_linked_calls_belongs_to_both() {
    with_store(async |store| {
        let owner = home(store).await.owner;
        let (nobody, linked) = (OrganisationId(Uuid::from_u128(0xDEAD)), CallId(Uuid::from_u128(0xCA12)));
        begin(store, owner, 1).await;
        begin(store, owner, 2).await;
        store.link_call_recording(nobody, id(1), linked).await.unwrap();
        assert!(store.recordings_of_call(linked).await.unwrap().is_empty(), "another organisation's");
        store.link_call_recording(owner, id(1), linked).await.unwrap();
        end(store, owner, 1, 64_080, None).await;
        let of = async |call| {
            let found = store.recordings_of_call(call).await.unwrap();
            found.into_iter().map(|one| (one.id, one.call_uuid, one.linked_call_uuid)).collect::<Vec<_>>()
        };
        let both = (id(1), CALL, Some(linked));
        assert_eq!((of(linked).await, of(CALL).await), (vec![both], vec![both, (id(2), CALL, None)]));
        let ready = events(store, EventKind::RecordingReady).await;
        let expected = json!({"recording_id": id(1), "call_uuid": CALL, "linked_call_uuid": linked,
            "bytes": 64_080, "seconds": 1});
        assert_eq!(ready, [(owner, expected)]);
    });
}

#[test]
fn recordings_of_calls_are_deleted_after_their_time_and_are_no_strays() {
    with_store(async |store| {
        let (dir, owner) = (TempDir::new(), home(store).await.owner);
        let disk = DataDisk::of(dir.path());
        let path = |number| disk.path(owner, ConferenceSessionId(id(number).0));
        std::fs::create_dir_all(path(1).parent().unwrap()).unwrap();
        for number in [1, 2, 3] {
            std::fs::write(path(number), [0; 1_044]).unwrap();
        }
        // 1 is complete, 2 is being written, and 3 belongs to no call.
        begin(store, owner, 1).await;
        begin(store, owner, 2).await;
        end(store, owner, 1, 1_044, None).await;
        let playback = Playback::new(NODE, store.clone(), disk.clone());
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(playback.purge_strays(later).await.unwrap(), 1);
        assert_eq!([1, 2, 3].map(|number| path(number).exists()), [true, true, false]);
        let change =
            OrganisationChange { recording_retention_days: Some(30), ..OrganisationChange::default() };
        Organisations::change(store, EVERYTHING, owner, change, at(0)).await.unwrap();
        let month = 30 * 86_400;
        playback.purge(at(60 + month).plus_micros(-1)).await.unwrap();
        assert!(path(1).exists(), "not yet");
        playback.purge(at(60 + month)).await.unwrap();
        assert_eq!([1, 2].map(|number| path(number).exists()), [false, true], "a recording under way stays");
        assert_eq!(store.recordings_of_call(CALL).await.unwrap()[0].bytes, 0);
    });
}
