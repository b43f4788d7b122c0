//! The history of a room with real phones: its session, its events, its notes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_model::event::EventKind;
use sidetone_model::ids::RoomId;
use sidetone_phone::{CallPlan, Phone};
use tokio::task::JoinHandle;

use crate::common::records::TempDir;
use crate::common::room::{directory, events, make, session};
use crate::common::site::{Site, answering, calls, declare, found, open_end, until, within};

/// An engine with one room at 200.
async fn site() -> (Site, RoomId) {
    let dir = TempDir::new();
    declare(dir.path(), &directory(1006)).await;
    let room = make(dir.path(), "200", |_| {}).await;
    (Site::reopen(dir).await, room)
}

/// A phone that is in the room until it hangs up.
async fn join(site: &Site, number: &str) -> (Arc<Phone>, JoinHandle<()>) {
    let phone = Arc::new(site.phone(number, answering()).await);
    let caller = Arc::clone(&phone);
    let call = tokio::spawn(async move {
        caller.call(open_end("200")).await.unwrap();
    });
    calls(&phone, 0, 1).await;
    (phone, call)
}

/// The notes of a room that a phone showed, by event and the members that it names.
fn shown(phone: &Phone) -> Vec<String> {
    phone
        .notes()
        .iter()
        .map(|note| {
            let word = |name: &str| note.json[name].to_string().replace('"', "");
            match note.json["members"].as_array() {
                Some(members) => format!("{} {} of {}", word("event"), members.len(), word("count")),
                None => format!("{} {} of {}", word("event"), word("member"), word("count")),
            }
        })
        .collect()
}

async fn noted(phone: &Phone, count: u64) -> Vec<String> {
    within("notes", phone.notes_count().wait_for(|shown| *shown >= count)).await.unwrap();
    shown(phone)
}

fn actions(events: &[Value]) -> Vec<String> {
    let talk = ["start-talking", "stop-talking"];
    let untold = events.iter().filter(|event| !talk.iter().any(|talk| event["action"] == *talk));
    untold.map(|event| format!("{} {}", event["action"].as_str().unwrap(), event["member"])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_leaves_its_people_its_events_and_its_notes() {
    let (site, room) = site().await;
    let (ada, ada_call) = join(&site, "1001").await;
    session(site.http, room, |session| session["members"].as_array().unwrap().len() == 1).await;
    let (bob, bob_call) = join(&site, "1002").await;
    assert_eq!(noted(&ada, 2).await, ["roster 1 of 1", "member-join 2 of 2"]);
    assert_eq!(noted(&bob, 1).await, ["roster 2 of 2"]);
    let live = session(site.http, room, |session| session["peak_members"] == 2).await;
    assert_eq!((&live["ended_at"], &live["has_recording"]), (&Value::Null, &json!(false)));
    bob.hang_up().await.unwrap();
    bob_call.await.unwrap();
    assert_eq!(noted(&ada, 3).await[2], "member-leave 2 of 1");
    ada.hang_up().await.unwrap();
    ada_call.await.unwrap();

    let over = session(site.http, room, |session| !session["ended_at"].is_null()).await;
    let numbers: Vec<&Value> =
        over["members"].as_array().unwrap().iter().map(|member| &member["number"]).collect();
    assert_eq!(numbers, ["1001", "1002"]);
    assert!(over["members"].as_array().unwrap().iter().all(|member| !member["left_at"].is_null()
        && member["extension_id"].is_string()
        && member["role"] == "participant"));
    let path = format!("/conference-rooms/{room}/sessions/{}", over["id"].as_str().unwrap());
    assert_eq!(site.get(&path).await, (200, over.clone()));

    let events = events(&site.engine().store, EventKind::ConferenceUpdated).await;
    assert_eq!(actions(&events), ["joined 1", "joined 2", "left 2", "left 1", "ended null"]);
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.iter().copied().eq(1..=events.len() as u64), "{seqs:?}");
    let revisions: Vec<u64> = events.iter().map(|event| event["revision"].as_u64().unwrap()).collect();
    assert!(revisions.is_sorted(), "{revisions:?}");
    assert!(events.iter().all(|event| event["session_id"] == over["id"] && event["room_id"] == json!(room)));

    let notes = found("receipts", async || {
        let (status, page) = site.get(&format!("/conference-rooms/{room}/messages?source=conference")).await;
        assert_eq!(status, 200, "{page}");
        let notes = page["items"].as_array().unwrap().clone();
        (notes.len() == 4 && notes.iter().all(|note| note["status"] == "sent")).then_some(notes)
    })
    .await;
    let receipts: Vec<(&Value, &Value)> = notes
        .iter()
        .rev()
        .map(|note| (&note["payload"]["event"], &note["recipients"][0]["member"]))
        .collect();
    let expected = [("roster", "1"), ("member-join", "1"), ("roster", "2"), ("member-leave", "1")];
    let mut receipts: Vec<(&str, &str)> =
        receipts.iter().map(|(event, member)| (event.as_str().unwrap(), member.as_str().unwrap())).collect();
    receipts.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(receipts, expected);
    assert!(notes.iter().all(|note| note["room_id"] == json!(room) && note["ack"] == false));
    site.stop(Duration::ZERO).await;
}

/// A clean stop ends a live session, with its members.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_ends_with_its_engine() {
    let (site, room) = site().await;
    let (_ada, _call) = join(&site, "1001").await;
    session(site.http, room, |session| session["members"].as_array().unwrap().len() == 1).await;
    let dir = site.stop(Duration::ZERO).await;
    let site = Site::reopen(dir).await;
    let over = session(site.http, room, |_| true).await;
    assert!(!over["ended_at"].is_null() && !over["members"][0]["left_at"].is_null(), "{over}");
    let events = events(&site.engine().store, EventKind::ConferenceUpdated).await;
    let ends = events.iter().filter(|event| event["action"] == "ended").count();
    assert_eq!(ends, 1);
    site.stop(Duration::ZERO).await;
}

/// Fifty join at the same instant: every member is notified of every later one, one INFO at a time, and none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_who_join_at_once_hear_of_each_other() {
    let dir = TempDir::new();
    declare(dir.path(), &directory(1000 + CROWD)).await;
    let room = make(dir.path(), "200", |_| {}).await;
    let site = Site::reopen(dir).await;
    let mut phones = Vec::new();
    for number in 1..=CROWD {
        phones.push(Arc::new(site.phone(&(1000 + number).to_string(), answering()).await));
    }
    let began = Instant::now();
    for phone in &phones {
        let phone = Arc::clone(phone);
        let plan = CallPlan { talk_time: None, ..CallPlan::to("200") };
        tokio::spawn(async move { phone.call(plan).await });
    }
    let everybody = session(site.http, room, |session| session["peak_members"] == CROWD).await;
    assert_eq!(everybody["members"].as_array().unwrap().len(), CROWD as usize);
    let joined = began.elapsed();
    // One note per pair, and a roster per member.
    let infos = u64::from(CROWD * (CROWD - 1) / 2 + CROWD);
    let shown = || phones.iter().map(|phone| *phone.notes_count().borrow()).sum::<u64>();
    until("every note on its phone", || shown() >= infos).await;
    eprintln!("{CROWD} joined within {joined:?}, {infos} notes were shown within {:?}", began.elapsed());
    let receipts = found("the receipts", async || {
        let (status, page) = site.get(&format!("/conference-rooms/{room}/messages?limit=500")).await;
        assert_eq!(status, 200, "{page}");
        let notes = page["items"].as_array().unwrap().iter();
        let receipts: Vec<Value> =
            notes.flat_map(|note| note["recipients"].as_array().unwrap()).cloned().collect();
        // A note has the status `sent` as soon as one phone has responded.
        receipts.iter().all(|receipt| receipt["status"] == "sent").then_some(receipts)
    })
    .await;
    assert_eq!(receipts.len() as u64, infos);
    assert!(receipts.iter().all(|receipt| receipt["sip_status"] == 200));
    assert_eq!(shown(), infos, "nothing was shown twice");
    site.stop(Duration::ZERO).await;
}

const CROWD: u32 = 50;
