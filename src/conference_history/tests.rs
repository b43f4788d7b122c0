//! The writer with a log that fails, and with very many changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, ConferenceSessionId, LegId, NodeId, OrganisationId, RoomId};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::room::Role;
use sidetone_model::room::event::{Person, RoomChange, RoomEvent};
use sidetone_model::room::rows::{EventSource, NewEvent, Rows, SessionLog};
use sidetone_model::time::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use super::*;
use crate::clock::Clock;

/// A database that fails the first few times.
#[derive(Default)]
struct Log {
    away: AtomicUsize,
    stored: Mutex<Vec<(Duration, Rows)>>,
    began: Mutex<Option<Instant>>,
}

impl SessionLog for Log {
    fn store<'a>(&'a self, _node: NodeId, rows: &'a Rows) -> PortFuture<'a, ()> {
        Box::pin(async move {
            let left = |left: usize| left.checked_sub(1);
            if self.away.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok() {
                return Err(Problem::Unavailable { reason: "away".to_owned(), retry_after_s: 1 });
            }
            let began = *self.began.lock().get_or_insert_with(Instant::now);
            self.stored.lock().push((began.elapsed(), rows.clone()));
            Ok(())
        })
    }
}

impl Log {
    fn events(&self) -> Vec<(Duration, NewEvent)> {
        let stored = self.stored.lock();
        stored.iter().flat_map(|(at, rows)| rows.events.iter().map(|event| (*at, event.clone()))).collect()
    }
}

fn event(session: u128, revision: u64, what: RoomChange) -> RoomEvent {
    RoomEvent {
        organisation_id: OrganisationId(Uuid::from_u128(1)),
        room: RoomId(Uuid::from_u128(session)).into(),
        room_id: Some(RoomId(Uuid::from_u128(session))),
        session: ConferenceSessionId(Uuid::from_u128(session)),
        at: Timestamp::from_micros(i64::try_from(revision).unwrap()),
        revision,
        what,
    }
}

fn joined(member: u32) -> RoomChange {
    RoomChange::Joined(Person {
        member,
        name: String::new(),
        number: "101".to_owned(),
        role: Role::Participant,
        extension_id: None,
        team_id: None,
        call_uuid: CallId(Uuid::from_u128(member.into())),
        leg: LegId(Uuid::from_u128(member.into())),
        joined_at: Timestamp::default(),
    })
}

fn open(sender: &HistorySender, session: u128) {
    sender.send(event(session, 1, RoomChange::Opened { room_name: "Board".to_owned() }));
}

fn start(away: usize) -> (Arc<Log>, HistorySender, Arc<HistoryCounters>, tokio::task::JoinHandle<()>) {
    let log = Arc::new(Log { away: AtomicUsize::new(away), ..Log::default() });
    let clock: Clock = Arc::new(|| Timestamp::from_micros(77));
    let (sender, writer) = history(log.clone(), NodeId(Uuid::nil()), clock);
    let counts = writer.counts();
    (log, sender, counts, {
        let mut writer = writer;
        tokio::spawn(async move { writer.run().await })
    })
}

#[tokio::test(start_paused = true)]
async fn a_database_that_comes_back_gets_everything_in_order_and_few_transactions() {
    let (log, sender, counts, writer) = start(3);
    for session in 1..=10 {
        open(&sender, session);
        for revision in 2..102 {
            sender.send(event(session, revision, RoomChange::Locked(revision % 2 == 0)));
        }
        sender.send(event(session, 102, RoomChange::Ended));
    }
    drop(sender);
    writer.await.unwrap();
    assert!(log.stored.lock().len() <= 5, "{}", log.stored.lock().len());
    assert_eq!((counts.stored(), counts.dropped(), counts.discarded(), counts.live()), (1_010, 0, 0, 0));
    for session in 1..=10_u128 {
        let events = log.events();
        let of = |event: &&(Duration, NewEvent)| event.1.session.0.as_u128() == session;
        let seqs: Vec<u64> = events.iter().filter(of).map(|(_, event)| event.seq).collect();
        assert!(seqs.iter().copied().eq(1..=101), "{session}: {seqs:?}");
    }
}

/// A session that was not ended ends with the switch, and a session is marked while it is live.
#[tokio::test(start_paused = true)]
async fn live_sessions_are_marked_and_end_with_the_switch() {
    let (log, sender, counts, writer) = start(0);
    open(&sender, 1);
    sender.send(event(1, 2, joined(1)));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(counts.live(), 1);
    let marks = |log: &Log| log.stored.lock().iter().filter(|(_, rows)| rows.seen_at.is_some()).count();
    assert!((5..=7).contains(&marks(&log)), "{}", marks(&log));
    drop(sender);
    writer.await.unwrap();
    let (_, last) = log.stored.lock().last().unwrap().clone();
    assert_eq!(last.sessions[0].ended_at, Some(Timestamp::from_micros(77)));
    assert_eq!(last.people[0].left_at, Some(Timestamp::from_micros(77)));
    assert_eq!((last.events.len(), counts.live()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_stores_nothing() {
    let (log, sender, _, writer) = start(0);
    open(&sender, 1);
    sender.send(event(1, 2, RoomChange::Ended));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.stored.lock().len(), 1);
    drop(sender);
    writer.await.unwrap();
}

/// W12: 200 changes a second in one room give at most two events a second, and the last one matches the room.
#[tokio::test(start_paused = true)]
async fn who_talks_is_told_twice_a_second_at_most() {
    let (log, sender, counts, writer) = start(0);
    open(&sender, 1);
    let mut talking = BTreeSet::new();
    for revision in 2..2_002 {
        let member = u32::try_from(revision * 7_919 % 50).unwrap();
        let on = talking.insert(member);
        if !on {
            talking.remove(&member);
        }
        sender.send(event(1, revision, RoomChange::Talking { member, talking: on }));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let events = log.events();
    let at: Vec<Duration> = events.iter().map(|(at, _)| *at).collect();
    assert!(at.windows(3).all(|three| three[2] - three[0] >= Duration::from_millis(999)), "{at:?}");
    let EventSource::Talk(last) = &events.last().unwrap().1.what else { panic!("no talk") };
    assert_eq!(last.all, talking.into_iter().collect::<Vec<_>>());
    assert_eq!((last.event.revision, counts.talk_dropped()), (2_001, 0));
    drop(sender);
    writer.await.unwrap();
}

/// A day without the database: memory is bounded, sessions are complete, and the missing events are counted.
#[tokio::test(start_paused = true)]
async fn too_much_to_wait_costs_events_and_nothing_else() {
    let (log, sender, counts, writer) = start(100);
    open(&sender, 1);
    let total = WAITING_MAX as u64 + 10_000;
    for revision in 2..total {
        let member = u32::try_from(revision / 2).unwrap();
        let what = if revision % 2 == 0 {
            joined(member)
        } else {
            RoomChange::Left { member, cause: HangupCause::NormalClearing, talked_ms: 0 }
        };
        sender.send(event(1, revision, what));
        if revision % 4_096 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    sender.send(event(1, total, RoomChange::Ended));
    drop(sender);
    writer.await.unwrap();
    assert_eq!(counts.dropped(), 0);
    assert!(counts.discarded() > 5_000, "{}", counts.discarded());
    assert_eq!(counts.stored() + counts.discarded(), total - 1);
    let people: BTreeSet<u32> =
        log.stored.lock().iter().flat_map(|(_, rows)| &rows.people).map(|row| row.person.member).collect();
    assert_eq!(people.len() as u64, total / 2 - 1);
}
