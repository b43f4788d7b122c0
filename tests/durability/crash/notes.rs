//! A thousand notes and their webhook deliveries, with the engine killed in the middle, twice.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::event::Position;
use sidetone_phone::{Noting, Phone};
use sidetone_store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::place;
use crate::common::chosen::database_in;
use crate::common::killed::{Engine, reaching};
use crate::common::receiver::{Receiver, Reply};
use crate::common::records::TempDir;
use crate::common::site::{answering, calls, declare, directory, found, phone_config, registered, within};
use crate::common::waiting::POLL_EVERY;

/// Phones of the extensions, and the notes each showed; those of earlier rounds stay registered.
type Phones = Vec<(&'static str, Arc<Phone>)>;

/// The targets of the notes of one round.
struct Targets {
    calls: Vec<String>,
    extensions: Vec<String>,
}

/// The response to a request of the key with all permissions; `None` when the engine died during it.
async fn exchange(http: SocketAddr, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    exchange_with(http, method, path, "", body).await
}

/// The same with more header lines.
async fn exchange_with(
    http: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(http).await.ok()?;
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: sidetone.test\r\nAuthorization: Bearer {KEY}\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
}

/// Every item of a list.
async fn all(http: SocketAddr, path: &str) -> Vec<Value> {
    let mut items = Vec::new();
    loop {
        let separator = if path.contains('?') { '&' } else { '?' };
        let paged = format!("{path}{separator}limit=500&offset={}", items.len());
        let (status, page) = within(&paged, exchange(http, "GET", &paged, "")).await.unwrap();
        if status == 503 {
            // A busy machine: the request is repeated.
            tokio::time::sleep(POLL_EVERY).await;
            continue;
        }
        assert_eq!(status, 200, "{paged}: {page}");
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        if items.len() as u64 >= page["total"].as_u64().unwrap() {
            return items;
        }
    }
}

/// Four phones, two groups of five calls between them, and the uuids of the calls.
async fn talk(engine: &Engine, phones: &mut Phones) -> Targets {
    let mut fresh = Vec::new();
    for number in NUMBERS {
        let mut config = phone_config(engine.sip, number, answering());
        config.notes = Noting::Tap;
        fresh.push((number, Arc::new(registered(config).await)));
    }
    for ((_, caller), number) in fresh.iter().zip(&NUMBERS[2..]) {
        // The calls end with the engine.
        for _ in 0..CALLS {
            drop(place(caller, number));
        }
        calls(caller, 0, CALLS).await;
    }
    phones.extend(fresh);
    let live = all(engine.http, "/calls?state=answered").await;
    assert_eq!(live.len(), 2 * CALLS);
    let extensions = all(engine.http, "/extensions").await;
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    Targets {
        calls: live.iter().map(|call| text(call, "uuid")).collect(),
        extensions: NUMBERS
            .iter()
            .map(|number| text(extensions.iter().find(|item| item["number"] == *number).unwrap(), "id"))
            .collect(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_accepted_note_is_lost_and_none_is_shown_twice() {
    let dir = TempDir::new();
    let directory = directory().replacen(
        "[[organisations.api_keys]]",
        &format!(
            "[[organisations.api_keys]]\nname = \"all\"\nkey = \"{KEY}\"\npreset = \"full\"\n\
             allow = [\"127.0.0.1\"]\nrate_per_minute = 60000\n[[organisations.api_keys]]"
        ),
        1,
    );
    declare(dir.path(), &directory).await;
    // Slow enough that a kill happens in between.
    let receiver = Receiver::start(|_| Reply::status(204).after(Duration::from_millis(5))).await;
    let settings = reaching(&receiver, dir.path());
    let sent = Arc::new(AtomicUsize::new(0));
    let accepted: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let mut phones = Phones::new();
    let mut lists = BTreeSet::new();
    for (round, until) in KILLED_AT.into_iter().enumerate() {
        let engine = Engine::serve_with(dir.path(), &settings).await;
        if round == 0 {
            let webhook = json!({"url": receiver.url("/hook"), "events": ["call.info.sent"]}).to_string();
            let (status, made) = exchange(engine.http, "POST", "/webhooks", &webhook).await.unwrap();
            assert_eq!(status, 201, "{made}");
        }
        let targets = Arc::new(talk(&engine, &mut phones).await);
        lists.extend(targets.calls.iter().map(|call| format!("/calls/{call}/infos")));
        lists.extend(targets.extensions.iter().map(|id| format!("/extensions/{id}/messages")));
        let (told, mut counted) = watch::channel(0);
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let (sent, accepted) = (Arc::clone(&sent), Arc::clone(&accepted));
                let (targets, told, http) = (Arc::clone(&targets), told.clone(), engine.http);
                tokio::spawn(async move {
                    while let Some(place) = next(&sent) {
                        let Some(id) = note(http, &targets, place).await else { return };
                        let mut accepted = accepted.lock();
                        assert_eq!(accepted.insert(id, place), None, "an id was given twice");
                        told.send_replace(accepted.len());
                    }
                })
            })
            .collect();
        drop(told);
        // Never all of them before the last round: the watch channel closes when every sender has ended.
        let _ = within("notes", counted.wait_for(|count| *count >= until)).await;
        engine.kill();
        for sender in senders {
            sender.await.unwrap();
        }
    }

    let engine = Engine::serve_with(dir.path(), &settings).await;
    let mut kept = BTreeMap::new();
    for list in &lists {
        let records = found(list, async || {
            let records = all(engine.http, list).await;
            records.iter().all(|record| record["status"] != "pending").then_some(records)
        });
        let records = records.await.into_iter();
        kept.extend(records.map(|record| (record["id"].as_str().unwrap().to_owned(), record)));
    }
    let accepted = std::mem::take(&mut *accepted.lock());
    let without: Vec<_> = accepted.keys().filter(|id| !kept.contains_key(*id)).collect();
    assert!(without.is_empty(), "accepted and without a record: {without:?}");

    // No phone showed a note twice, nor a note without a record. Phones of earlier rounds are still registered, so
    // an extension has several.
    let mut shown = BTreeSet::new();
    for (place, (number, phone)) in phones.iter().enumerate() {
        for note in phone.notes() {
            assert!(kept.contains_key(&note.id), "{number} was shown {} that nobody kept", note.id);
            assert!(shown.insert((place, note.id.clone())), "{number} was shown {} twice", note.id);
        }
    }

    // Every note has exactly one event, and every event was delivered with its own id.
    let events = sent_events(dir.path()).await;
    let noted: BTreeSet<&String> = events.values().collect();
    assert_eq!(noted.len(), events.len(), "a note has two events");
    assert_eq!(noted, kept.keys().collect(), "records and events differ");
    let delivered = found("the deliveries", async || {
        let delivered = delivered(&receiver);
        events.keys().all(|id| delivered.contains_key(id)).then_some(delivered)
    })
    .await;
    assert_eq!(delivered, events, "an id stands for one event");
    engine.kill();
    eprintln!(
        "{} kills: {} notes accepted, {} kept, {} shown, {} events in {} deliveries",
        KILLED_AT.len(),
        accepted.len(),
        kept.len(),
        shown.len(),
        events.len(),
        receiver.seen.now().len()
    );
}

/// The next note's number; `None` when all were tried.
fn next(sent: &AtomicUsize) -> Option<usize> {
    let place = sent.fetch_add(1, Ordering::Relaxed);
    (place < NOTES).then_some(place)
}

/// Sends a note, every other one into a call. Returns its id when it was accepted, `None` when the engine died
/// during the request. A node that is too busy for it gets it again with the same key, as the document says.
async fn note(http: SocketAddr, targets: &Targets, place: usize) -> Option<String> {
    let body =
        json!({"title": format!("Note {place}"), "body": "Evacuate building 4", "ack": true}).to_string();
    let path = match place % 2 {
        0 => format!("/calls/{}/info", targets.calls[place / 2 % targets.calls.len()]),
        _ => format!("/extensions/{}/message", targets.extensions[place / 2 % targets.extensions.len()]),
    };
    let key = format!("Idempotency-Key: note-{place}\r\n");
    let accepted = async {
        loop {
            match exchange_with(http, "POST", &path, &key, &body).await {
                Some((503, answer)) if answer["error"]["code"] == "node_busy" => {
                    tokio::time::sleep(POLL_EVERY).await;
                }
                exchanged => return exchanged,
            }
        }
    };
    let (status, answer) = within(&path, accepted).await?;
    assert_eq!(status, 202, "{path}: {answer}");
    Some(answer["id"].as_str().unwrap().to_owned())
}

/// The note of every `call.info.sent` in the outbox, by the event's id.
async fn sent_events(dir: &Path) -> BTreeMap<String, String> {
    let store = Store::open(&database_in(dir)).await.unwrap();
    let (mut events, mut after) = (BTreeMap::new(), Position(0));
    loop {
        let batch = store.events_after(Scope::Everything, after, 500).await.unwrap();
        for event in batch.events.into_iter().map(|placed| placed.event) {
            if event.kind.as_str() == "call.info.sent" {
                let note = event.data["id"].as_str().unwrap().to_owned();
                assert_eq!(events.insert(event.id.to_string(), note), None);
            }
        }
        after = batch.next;
        if batch.is_last {
            store.close().await;
            return events;
        }
    }
}

/// The note in each delivered event, by the event's id.
fn delivered(receiver: &Receiver) -> BTreeMap<String, String> {
    let mut notes = BTreeMap::new();
    for request in receiver.seen.now() {
        let (id, event) = (request.header("webhook-id").to_owned(), request.json());
        assert_eq!(event["id"], id.as_str());
        let note = event["data"]["id"].as_str().unwrap().to_owned();
        let before = notes.insert(id, note.clone());
        assert!(before.is_none_or(|before| before == note), "the same id with another event");
    }
    notes
}

const CALLS: usize = 5;
const KEY: &str = "tel_acmeall00001_0123456789abcdefghijklmnopqrstuvwxyz";
/// The number of accepted notes after which the engine is killed, per round; the last round sends the rest.
const KILLED_AT: [usize; 3] = [300, 600, NOTES];
const NOTES: usize = 1_000;
const NUMBERS: [&str; 4] = ["1001", "1002", "1003", "1004"];
const SENDERS: usize = 16;
