//! Phones that join, leave, press keys and are controlled at random over real sockets. The state of the live room, the
//! events and the notes on the phones agree, and nothing is lost or duplicated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use sidetone_model::event::EventKind;
use sidetone_model::ids::RoomId;
use sidetone_phone::{Channel, Parcel, Phone};
use sidetone_store::Store;
use tokio::task::JoinHandle;

use crate::common::records::TempDir;
use crate::common::room::{directory, events, make, session};
use crate::common::site::{Site, answering, declare, found, open_end, post, until};

/// The phones of the room; any of them may be in it or joining.
struct Crowd {
    site: Site,
    room: RoomId,
    phones: Vec<Arc<Phone>>,
    /// The calls that were placed, also those that have ended.
    placed: Vec<JoinHandle<()>>,
    rng: StdRng,
    /// Successful controls, by kind.
    done: BTreeMap<&'static str, usize>,
}

impl Crowd {
    async fn gather(seed: u64) -> Crowd {
        let dir = TempDir::new();
        let last = FIRST + PHONES as u32 - 1;
        declare(dir.path(), &directory(last)).await;
        let room = make(dir.path(), "200", |_| {}).await;
        let site = Site::reopen(dir).await;
        let mut phones = Vec::new();
        for number in FIRST..=last {
            phones.push(Arc::new(site.phone(&number.to_string(), answering()).await));
        }
        let (placed, rng) = (Vec::new(), StdRng::seed_from_u64(seed));
        Crowd { site, room, phones, placed, rng, done: BTreeMap::new() }
    }

    fn path(&self) -> String {
        format!("/conferences/svc-room-{}", self.room)
    }

    /// The live room; `None` when it has no members.
    async fn live(&self) -> Option<Value> {
        match self.site.get(&self.path()).await {
            (200, live) => Some(live),
            (404, _) => None,
            other => panic!("{other:?}"),
        }
    }

    /// One random action on the room; it need not be complete when this returns.
    async fn step(&mut self) {
        let phone = Arc::clone(&self.phones[self.rng.random_range(0..PHONES)]);
        let is_up = phone.calls().borrow().up > 0;
        match self.rng.random_range(0..10) {
            0..=3 if !is_up => {
                self.placed.push(tokio::spawn(async move {
                    let _ = phone.call(open_end("200")).await;
                }));
            }
            0..=1 => phone.hang_up().await.unwrap(),
            2..=4 => {
                let key = if self.rng.random() { "1" } else { "2" };
                for signal in ["*", key] {
                    let mut pressed =
                        Parcel::new(Channel::Info, format!("Signal={signal}\r\nDuration=160\r\n"));
                    pressed.content_type = "application/dtmf-relay".to_owned();
                    // It may have left in the meantime.
                    let _ = phone.send(pressed).await;
                }
            }
            5..=7 => self.control_member().await,
            8 => {
                let what = if self.rng.random() { "lock" } else { "unlock" };
                self.control(what, "").await;
            }
            _ => {
                let on = json!({"on": self.rng.random::<bool>()}).to_string();
                self.control("record", &on).await;
            }
        }
    }

    /// Waits until the members have received more audio: their audio is the pace of the test.
    async fn hear_on(&self) {
        let heard = || self.phones.iter().map(|phone| phone.heard()).sum::<u64>();
        let is_quiet = || self.phones.iter().all(|phone| phone.calls().borrow().up == 0);
        let before = heard();
        until("something is heard", || heard() > before || is_quiet()).await;
    }

    async fn control_member(&mut self) {
        let Some(live) = self.live().await else { return };
        let members = live["members"].as_array().unwrap();
        let member = members[self.rng.random_range(0..members.len())]["id"].as_u64().unwrap();
        let what = match self.rng.random_range(0..9) {
            0..4 => "mute",
            4..8 => "unmute",
            _ => "kick",
        };
        let path = format!("{}/members/{member}/{what}", self.path());
        let (status, answer) = post(self.site.http, &path, "", "").await;
        // A member from the last read may have left.
        assert!([200, 204, 404].contains(&status), "{path}: {status} {answer}");
        *self.done.entry(what).or_default() += usize::from(status != 404);
    }

    async fn control(&mut self, what: &'static str, body: &str) {
        let (status, answer) = post(self.site.http, &format!("{}/{what}", self.path()), "", body).await;
        assert!([200, 204, 404].contains(&status), "{what}: {status} {answer}");
        *self.done.entry(what).or_default() += usize::from(status != 404);
    }

    /// Waits until the phones, the room and the events agree on who is in it, who is muted, and whether it is
    /// locked and recorded. Events arrive a moment after the change.
    async fn compare(&self) {
        found("phones, room and events to agree", async || {
            let up: BTreeSet<String> = (FIRST..)
                .zip(&self.phones)
                .filter(|(_, phone)| phone.calls().borrow().up > 0)
                .map(|(number, _)| number.to_string())
                .collect();
            let ringing = self.phones.iter().any(|phone| phone.calls().borrow().ringing > 0);
            let Some(live) = self.live().await else { return (up.is_empty() && !ringing).then_some(()) };
            let members = live["members"].as_array().unwrap();
            let of = |field: &str| -> BTreeSet<u64> {
                let which = members.iter().filter(|member| field.is_empty() || member[field] == true);
                which.map(|member| member["id"].as_u64().unwrap()).collect()
            };
            let there: BTreeSet<String> =
                members.iter().map(|member| member["number"].as_str().unwrap().to_owned()).collect();
            let told = self.told(&live["session_id"]).await;
            let story = Story::of(&told, live["revision"].as_u64().unwrap());
            let agree = !ringing
                && up == there
                && (&story.members, &story.muted) == (&of(""), &of("muted"))
                && (json!(story.locked), json!(story.recording))
                    == (live["locked"].clone(), live["recording"].clone());
            agree.then_some(())
        })
        .await;
    }

    /// The events of a session in their order.
    async fn told(&self, session: &Value) -> Vec<Value> {
        let all = events(&self.site.engine().store, EventKind::ConferenceUpdated).await;
        all.into_iter().filter(|event| event["session_id"] == *session).collect()
    }
}

/// The state of the room as derived from the events of a session.
#[derive(Default)]
struct Story {
    members: BTreeSet<u64>,
    muted: BTreeSet<u64>,
    /// Members whose own start event arrived, and the list of talkers in the last event.
    talking: (BTreeSet<u64>, Vec<Value>),
    locked: bool,
    recording: bool,
    is_over: bool,
    /// Each member that joined, by member id, with the members that were there then.
    joins: BTreeMap<u64, BTreeSet<u64>>,
    leaves: BTreeMap<u64, BTreeSet<u64>>,
}

impl Story {
    /// The state up to a revision; no event may occur twice.
    fn of(events: &[Value], until: u64) -> Story {
        let mut story = Story::default();
        for (place, event) in events.iter().enumerate() {
            assert_eq!(event["seq"], place + 1, "an event is missing or twice: {events:#?}");
            if event["revision"].as_u64().unwrap() <= until {
                story.tell(event);
            }
        }
        story
    }

    fn tell(&mut self, event: &Value) {
        let member = event["member"].as_u64().unwrap_or(0);
        let action = event["action"].as_str().unwrap();
        assert!(!self.is_over, "told after the end: {event}");
        let is_news = match action {
            "joined" => {
                self.joins.insert(member, self.members.clone());
                self.members.insert(member)
            }
            "left" => {
                self.muted.remove(&member);
                self.talking.0.remove(&member);
                self.talking.1.retain(|talks| *talks != member);
                let was_there = self.members.remove(&member);
                self.leaves.insert(member, self.members.clone());
                was_there
            }
            "mute-member" => self.muted.insert(member),
            "unmute-member" => self.muted.remove(&member),
            "start-talking" | "stop-talking" => {
                let (told, shown) = &mut self.talking;
                let is_told =
                    if action == "start-talking" { told.insert(member) } else { told.remove(&member) };
                let all = event["talking"].as_array().unwrap().clone();
                // A member that starts while another one's event is sent is in the list before its own event arrives.
                is_told | (std::mem::replace(shown, all.clone()) != all)
            }
            "locked" | "unlocked" => std::mem::replace(&mut self.locked, action == "locked") != self.locked,
            "recording" => {
                let on = event["recording"] == true;
                std::mem::replace(&mut self.recording, on) != on
            }
            "ended" => {
                self.is_over = true;
                true
            }
            other => panic!("{other}"),
        };
        assert!(is_news, "told twice: {event}");
        let is_there = ["left", "ended", "locked", "unlocked", "recording"].contains(&action)
            || self.members.contains(&member);
        assert!(is_there, "of somebody who is not there: {event}");
    }
}

/// The notes of a room, each `(event, member, recipient)` with its id and the status of the receipt.
async fn notes(site: &Site, room: RoomId) -> Vec<Value> {
    let mut notes: Vec<Value> = Vec::new();
    loop {
        let path = format!("/conference-rooms/{room}/messages?limit=500&offset={}", notes.len());
        let (status, page) = site.get(&path).await;
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().unwrap();
        notes.extend(items.iter().cloned());
        if items.is_empty() {
            return notes;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_comes_and_goes_leaves_one_story() {
    let seed = std::env::var("SIDETONE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(5);
    eprintln!("seed {seed}");
    let mut crowd = Crowd::gather(seed).await;
    for step in 1..=STEPS {
        crowd.step().await;
        if step % COMPARED_EVERY == 0 {
            crowd.compare().await;
        }
        crowd.hear_on().await;
    }
    // A call of the last steps may begin after a hang-up of its phone.
    found("everyone has left", async || {
        for phone in &crowd.phones {
            phone.hang_up().await.unwrap();
        }
        (crowd.placed.iter().all(JoinHandle::is_finished) && crowd.site.engine().live_calls() == 0)
            .then_some(())
    })
    .await;
    session(crowd.site.http, crowd.room, |session| !session["ended_at"].is_null()).await;
    let path = format!("/conference-rooms/{}/sessions?limit=500", crowd.room);
    let (_, sessions) = crowd.site.get(&path).await;
    let mut expected = BTreeSet::new();
    let (mut told, mut joined) = (0, 0);
    for session in sessions["items"].as_array().unwrap() {
        let events = crowd.told(&session["id"]).await;
        let story = Story::of(&events, u64::MAX);
        assert!(story.is_over && story.members.is_empty(), "{session:#}");
        let people = session["members"].as_array().unwrap();
        let ids: BTreeSet<u64> = people.iter().map(|person| person["member"].as_u64().unwrap()).collect();
        assert_eq!(ids, story.joins.keys().copied().collect());
        assert!(people.iter().all(|person| !person["left_at"].is_null()), "{session:#}");
        let most = story.joins.values().map(|before| before.len() + 1).max().unwrap();
        assert_eq!(session["peak_members"], most);
        expected.extend(expected_notes(&session["id"], &story));
        (told, joined) = (told + events.len(), joined + people.len());
    }
    let settled = found("the receipts", async || {
        let notes = notes(&crowd.site, crowd.room).await;
        let receipts = || notes.iter().flat_map(|note| note["recipients"].as_array().unwrap());
        // Pages shift while notes are still being written: a note may be read twice, and another not at all.
        let ids: BTreeSet<&str> = notes.iter().map(|note| note["id"].as_str().unwrap()).collect();
        let is_all = ids.len() == notes.len() && receipts().count() >= expected.len();
        (is_all && receipts().all(|receipt| receipt["status"] != "pending")).then(|| notes.clone())
    })
    .await;
    compare_notes(&crowd, &settled, expected).await;
    eprintln!(
        "{} sessions, {joined} joins, {told} events, {} notes, controls {:?}",
        sessions["total"],
        settled.len(),
        crowd.done
    );
    crowd.site.stop(Duration::ZERO).await;
}

/// The notes due: every member is notified of joins and leaves, and a new member gets a roster: session, event, member,
/// recipient.
fn expected_notes(session: &Value, story: &Story) -> BTreeSet<(String, String, u64, u64)> {
    let session = session.as_str().unwrap();
    let note = |event: &str, member: u64, to: u64| (session.to_owned(), event.to_owned(), member, to);
    let mut notes = BTreeSet::new();
    for (member, others) in &story.joins {
        notes.insert(note("roster", 0, *member));
        notes.extend(others.iter().map(|to| note("member-join", *member, *to)));
    }
    for (member, others) in &story.leaves {
        notes.extend(others.iter().map(|to| note("member-leave", *member, *to)));
    }
    notes
}

async fn compare_notes(crowd: &Crowd, kept: &[Value], expected: BTreeSet<(String, String, u64, u64)>) {
    let sent = sent_into(&crowd.site.engine().store).await;
    let mut found = BTreeSet::new();
    // By note and number, how often: a phone whose second call is up before its first one has ended is a member
    // twice, and each of its two members is sent the note.
    let mut addressed: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut taken = addressed.clone();
    for note in kept {
        let (id, payload) = (note["id"].as_str().unwrap(), &note["payload"]);
        let (event, member) = (payload["event"].as_str().unwrap(), payload["member"].as_u64().unwrap_or(0));
        for receipt in note["recipients"].as_array().unwrap() {
            let to = receipt["member"].as_str().unwrap().parse().unwrap();
            assert!(found.insert((sent[id].clone(), event.to_owned(), member, to)), "twice: {note:#}");
            let key = (id.to_owned(), receipt["name"].as_str().unwrap().to_owned());
            *taken.entry(key.clone()).or_default() += usize::from(receipt["status"] == "sent");
            *addressed.entry(key).or_default() += 1;
        }
    }
    assert_eq!(found, expected, "what was noted is what happened");
    let mut shown: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (number, phone) in (FIRST..).zip(&crowd.phones) {
        for note in phone.notes() {
            *shown.entry((note.id.clone(), number.to_string())).or_default() += 1;
        }
    }
    for (key, times) in &shown {
        assert!(*times <= addressed[key], "{key:?} was shown {times} times, for {} members", addressed[key]);
    }
    // A phone that hung up may have shown a note and answered it with an error.
    for (key, times) in &taken {
        let seen = shown.get(key).copied().unwrap_or(0);
        assert!(*times <= seen, "{key:?} was taken {times} times and shown {seen} times");
    }
    let all: usize = shown.values().sum();
    // The others were for members that had left before; their number depends on the speed of this machine.
    assert!(all * 2 >= found.len(), "{all} of {} were shown", found.len());
    eprintln!("{} notes to one who was there twice", addressed.values().filter(|times| **times > 1).count());
}

/// The session of every note that a room sent, by the note's id.
async fn sent_into(store: &Store) -> BTreeMap<String, String> {
    let sent = events(store, EventKind::CallInfoSent).await;
    let text = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
    sent.iter().map(|event| (text(event, "id"), text(event, "session_id"))).collect()
}

/// The number of actions between two comparisons.
const COMPARED_EVERY: usize = 25;
const FIRST: u32 = 1001;
const PHONES: usize = 20;
const STEPS: usize = 400;
