//! Recordings: reported once they are playable, kept for the organisation's retention time, and no file without a
//! session.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::json;
use sidetone::recorder::{DataDisk, Playback};
use sidetone_model::event::EventKind;
use sidetone_model::ids::{NodeId, OrganisationId};
use sidetone_model::organisation::{OrganisationChange, Organisations};
use sidetone_model::problem::Problem;
use sidetone_model::recording::Recordings as _;
use sidetone_model::room::rows::{RecordingRow, Rows, SessionRow};
use sidetone_model::time::Timestamp;
use sidetone_store::{Orphaned, Store};
use uuid::Uuid;

use crate::common::records::{TempDir, at};
use crate::store::sessions::{EVERYTHING, Home, NODE, events, home, row, session};
use crate::store::with_store;

fn complete(home: Home, number: u128, bytes: u64) -> RecordingRow {
    RecordingRow { session: session(number), organisation_id: home.owner, bytes, error: None }
}

async fn put(store: &Store, sessions: Vec<SessionRow>, recordings: Vec<RecordingRow>) {
    let rows = Rows { sessions, recordings, ..Rows::default() };
    // A commit whose response is lost is repeated.
    for _ in 0..2 {
        store.store_sessions(NODE, &rows).await.unwrap();
    }
}

#[test]
fn a_recording_is_told_of_once_when_it_can_be_played() {
    with_store(async |store| {
        let home = home(store).await;
        let told = async || events(store, EventKind::RecordingReady).await.len();
        let bytes = async || store.session_recording(EVERYTHING, home.room, session(1)).await.unwrap().bytes;
        let recording = SessionRow { is_recorded: true, is_recording: true, ..row(home, 1) };
        let paused = SessionRow { is_recording: false, ..recording.clone() };
        put(store, vec![paused], vec![complete(home, 1, 1_044)]).await;
        assert_eq!((bytes().await, told().await), (Some(1_044), 0), "the room is live");
        put(store, vec![recording.clone()], vec![]).await;
        assert_eq!(bytes().await, None, "it grows again");
        put(store, vec![SessionRow { ended_at: Some(at(60)), ..recording }], vec![]).await;
        assert_eq!((bytes().await, told().await), (None, 0), "it is being written out");
        put(store, vec![], vec![complete(home, 1, 96_080)]).await;
        let expected = json!({"session_id": session(1), "room_id": home.room, "bytes": 96_080, "channels": 1, "seconds": 3,
            "room": format!("svc-room-{}", home.room)});
        assert_eq!(events(store, EventKind::RecordingReady).await, [(home.owner, expected)]);

        // Complete before the end; empty; and in a session that a crash interrupted.
        let over = |number| SessionRow { is_recorded: true, ended_at: Some(at(60)), ..row(home, number) };
        put(store, vec![over(2)], vec![complete(home, 2, 1_044)]).await;
        put(store, vec![over(3)], vec![complete(home, 3, 0)]).await;
        assert_eq!(told().await, 2);
        put(store, vec![SessionRow { ended_at: None, ..over(4) }], vec![complete(home, 4, 1_044)]).await;
        assert_eq!(told().await, 2);
        store.close_sessions(Orphaned::Of(NODE)).await.unwrap();
        assert_eq!(told().await, 3);
    });
}

/// A directory of recordings with a file for each of these sessions.
fn files(dir: &TempDir, owner: OrganisationId, numbers: &[u128]) -> DataDisk {
    let disk = DataDisk::of(dir.path());
    for number in numbers {
        let path = disk.path(owner, session(*number));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, [0; 1_044]).unwrap();
    }
    disk
}

fn left(disk: &DataDisk, owner: OrganisationId, numbers: &[u128]) -> Vec<u128> {
    numbers.iter().copied().filter(|number| disk.path(owner, session(*number)).exists()).collect()
}

fn day(day: i64) -> Timestamp {
    at(day * 86_400)
}

async fn keep(store: &Store, owner: OrganisationId, days: u32) {
    let change = OrganisationChange { recording_retention_days: Some(days), ..OrganisationChange::default() };
    Organisations::change(store, EVERYTHING, owner, change, at(0)).await.unwrap();
}

#[test]
fn recordings_are_deleted_after_their_time_and_not_before() {
    with_store(async |store| {
        let dir = TempDir::new();
        let home = home(store).await;
        let all = [1, 2, 3, 4];
        let disk = files(&dir, home.owner, &all);
        for (number, ended) in [(1, Some(day(1))), (2, Some(day(2))), (3, Some(day(3))), (4, None)] {
            let over = SessionRow { ended_at: ended, is_recorded: true, ..row(home, number) };
            put(store, vec![over], vec![complete(home, number, 1_044)]).await;
        }
        let playback = Playback::new(NODE, store.clone(), disk.clone());
        let now = day(32);
        assert!(!playback.purge(now).await.unwrap());
        assert_eq!(left(&disk, home.owner, &all), all, "0 is for ever");
        keep(store, home.owner, 30).await;
        Playback::new(NodeId(Uuid::from_u128(1)), store.clone(), disk.clone()).purge(now).await.unwrap();
        playback.purge(day(31).plus_micros(-1)).await.unwrap();
        assert_eq!(left(&disk, home.owner, &all), all, "not this node's, and not yet");
        // A crash after the file was removed and before the session was updated: the purge is repeated.
        std::fs::remove_file(disk.path(home.owner, session(1))).unwrap();
        playback.purge(now).await.unwrap();
        assert_eq!(left(&disk, home.owner, &all), [3, 4]);
        let bytes = async |number| {
            store.session_recording(EVERYTHING, home.room, session(number)).await.unwrap().bytes
        };
        let known = [bytes(1).await, bytes(2).await, bytes(3).await];
        assert_eq!(known, [Some(0), Some(0), Some(1_044)]);
        assert!(store.expired_recordings(NODE, now).await.unwrap().is_empty());
        // A live session is never purged, however old its recording is.
        playback.purge(day(3_000)).await.unwrap();
        assert_eq!(left(&disk, home.owner, &all), [4]);
    });
}

#[test]
fn a_download_that_began_before_the_deletion_ends_whole() {
    with_store(async |store| {
        let dir = TempDir::new();
        let home = home(store).await;
        let disk = files(&dir, home.owner, &[1]);
        let over = SessionRow { ended_at: Some(day(1)), is_recorded: true, ..row(home, 1) };
        put(store, vec![over], vec![complete(home, 1, 1_044)]).await;
        let playback = Playback::new(NODE, store.clone(), disk.clone());
        let open = async || playback.open(EVERYTHING, home.room.into(), session(1)).await;
        let file = open().await.unwrap();
        let first = file.read(0, 44).await.unwrap();
        playback.delete(EVERYTHING, home.room.into(), session(1)).await.unwrap();
        assert_eq!((file.bytes(), first.len()), (1_044, 44));
        assert_eq!(file.read(44, 1_000).await.unwrap().len(), 1_000);
        assert!(left(&disk, home.owner, &[1]).is_empty());
        assert!(matches!(open().await, Err(Problem::NotFound(_))));
    });
}

#[test]
fn what_is_declared_is_kept_and_what_is_left_out_stays() {
    with_store(async |store| {
        let Home { owner, .. } = home(store).await;
        let days =
            async || Organisations::find(store, owner).await.unwrap().unwrap().recording_retention_days;
        assert_eq!(days().await, 0);
        for (declared, changed) in [(90, true), (90, false), (0, true)] {
            let mut write = store.write().await.unwrap();
            let change = write.declare_recording_retention(owner, declared, at(5)).await.unwrap();
            write.commit().await.unwrap();
            assert_eq!(change == sidetone_store::Change::Changed, changed);
            assert_eq!(days().await, declared);
        }
    });
}

#[test]
fn files_that_no_session_tells_of_are_deleted_and_nothing_else_is() {
    with_store(async |store| {
        let dir = TempDir::new();
        let home = home(store).await;
        let numbers: Vec<u128> = (1..=200).collect();
        let disk = files(&dir, home.owner, &numbers);
        let nobody = OrganisationId(Uuid::from_u128(0xDEAD));
        files(&dir, nobody, &[1]);
        let others: Vec<PathBuf> =
            ["notes.txt", "x/y.wav"].iter().map(|name| disk.dir().join(name)).collect();
        for other in &others {
            std::fs::create_dir_all(other.parent().unwrap()).unwrap();
            std::fs::write(other, "mine").unwrap();
        }
        // 1 is complete, 2 is in progress, 3 was deleted, and the rest are unknown.
        let live = |number| SessionRow { is_recorded: true, ..row(home, number) };
        put(store, vec![live(1)], vec![complete(home, 1, 1_044)]).await;
        put(store, vec![live(2)], vec![]).await;
        put(store, vec![live(3)], vec![complete(home, 3, 0)]).await;
        let playback = Playback::new(NODE, store.clone(), disk.clone());
        let long_ago = SystemTime::now() - Duration::from_secs(3_600);
        assert_eq!(playback.purge_strays(long_ago).await.unwrap(), 0, "too new to be nobody's");
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(playback.purge_strays(later).await.unwrap(), 199);
        assert_eq!(left(&disk, home.owner, &numbers), [1, 2]);
        assert!(left(&disk, nobody, &[1]).is_empty(), "another organisation's session of that id is none");
        assert!(others.iter().all(|other| other.exists()));
        assert_eq!(playback.purge_strays(later).await.unwrap(), 0);
        let empty = Playback::new(NODE, store.clone(), DataDisk::of(&dir.path().join("nowhere")));
        assert_eq!(empty.purge_strays(later).await.unwrap(), 0);
    });
}
