//! The live stream of a running engine: events of calls, readers that stop reading, and the end of the stream.

use std::net::SocketAddr;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use serde_json::{Value, json};
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::OrganisationId;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use crate::common::records::at;
use crate::common::site::{Site, answering, directory, talking, until, within};

/// A stream over a socket, without chunked encoding.
struct Live(BufReader<TcpStream>);

impl Live {
    async fn open(http: SocketAddr, key: &str) -> Live {
        Self::over(TcpStream::connect(http).await.unwrap(), key).await
    }

    /// A stream whose sockets have small buffers: on loopback they take megabytes otherwise.
    async fn narrow(http: SocketAddr, key: &str) -> Live {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        setsockopt(&socket, sockopt::TcpMaxSeg, &1000).unwrap();
        Self::over(socket.connect(http).await.unwrap(), key).await
    }

    async fn over(mut stream: TcpStream, key: &str) -> Live {
        let head = format!("GET /api/v1/events HTTP/1.0\r\nAuthorization: Bearer {key}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut live = Live(BufReader::with_capacity(256, stream));
        assert!(live.line().await.unwrap().starts_with("HTTP/1.0 200"));
        // The head and the first comment.
        while live.line().await.unwrap() != ": live" {}
        assert_eq!(live.line().await.as_deref(), Some(""));
        live
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let len = within("a line of the stream", self.0.read_line(&mut line)).await.unwrap();
        (len > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event: its kind and its envelope; `None` at the end.
    async fn event(&mut self) -> Option<(String, Value)> {
        let mut kind = String::new();
        loop {
            let line = self.line().await?;
            if let Some(text) = line.strip_prefix("event: ") {
                kind = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                return Some((kind, serde_json::from_str(text).unwrap()));
            }
        }
    }
}

const KEY: &str = "tel_acmeboss0001_0123456789abcdefghijklmnopqrstuvwxyz";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ends_is_on_the_stream_with_its_record() {
    // A stream without events is neither idle nor stalled.
    let site = Site::configured(&directory(), |config| {
        let settings = &mut config.http.settings;
        (settings.stall_time, settings.idle_time) = (Duration::from_millis(200), Duration::from_millis(200));
    })
    .await;
    let mut live = Live::open(site.http, KEY).await;
    let (caller, _callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    within("the call", caller.call(talking("1002", 900))).await.unwrap();
    let ended = loop {
        let (kind, envelope) = live.event().await.unwrap();
        if kind == "call.ended" {
            break envelope;
        }
    };
    let record = site.record().await;
    assert_eq!(ended["type"], "call.ended");
    assert_eq!(ended["timestamp"], record["ended_at"]);
    assert_eq!(ended["data"]["call_uuid"], record["call_uuid"]);
    assert_eq!(ended["data"]["cost_amount"], Value::Null, "what only margin:read shows is on no stream");
    // The engine stops, and with it every stream, without waiting for their readers.
    let (rest, _dir) = tokio::join!(
        async {
            let mut rest = Vec::new();
            within("the end", live.0.read_to_end(&mut rest)).await.unwrap();
            rest
        },
        within("the engine stops", site.stop(Duration::ZERO))
    );
    assert!(!String::from_utf8(rest).unwrap().contains("data:"));
}

fn key(number: usize) -> String {
    format!("tel_slowreader{number:02}_0123456789abcdefghijklmnopqrstuvwxyz")
}

/// T12: two hundred streams whose readers stop reading; another reader and calls are not affected, and each of the two
/// hundred is notified of the events that it missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stop_reading_harm_nobody_and_are_told_what_they_missed() {
    let mut text = directory();
    for number in 0..SLOW_KEYS {
        text += &format!(
            "[[organisations.api_keys]]\nname = \"slow{number}\"\nkey = \"{}\"\npreset = \"read_only\"\n\
             allow = [\"127.0.0.1\"]\n",
            key(number)
        );
    }
    let site = Site::configured(&text, |config| {
        config.http.settings.connections_per_address_max = 400;
        // Otherwise readers that accept nothing are disconnected after half a minute, and a slow machine may need
        // longer.
        config.http.settings.stall_time = Duration::from_secs(300);
    })
    .await;
    let mut healthy = Live::open(site.http, KEY).await;
    let mut slow = Vec::new();
    for number in 0..SLOW_KEYS * 5 {
        slow.push(Live::narrow(site.http, &key(number / 5)).await);
    }
    let store = &site.engine().store;
    let acme = organisation(&site).await;
    let (caller, _callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);

    // More than one stream may lag plus the capacity of the sockets.
    let padding = "x".repeat(4000);
    let mut written = Vec::new();
    while written.len() < EVENTS {
        let part: Vec<Event> = (0..50)
            .map(|number| {
                let data = json!({"number": written.len() + number, "padding": padding});
                Event::of(EventKind::CallInfoSent, acme, None, at(0), &data)
            })
            .collect();
        store.store_events(&part).await.unwrap();
        written.extend(part.iter().map(|event| event.id.to_string()));
        // The healthy reader never lags.
        while healthy_has(&mut healthy, &written).await {}
    }
    let outcome = within("a call meanwhile", caller.call(talking("1002", 300))).await.unwrap();
    assert_eq!(outcome.status, 200);
    until("every slow reader is behind", || {
        let gaps = site.engine().event_gaps_total();
        gaps.get("slow_reader") == Some(&(SLOW_KEYS as u64 * 5))
    })
    .await;

    // Now one of them resumes reading: no event is missing before the gap, and the stream ends with it.
    let mut reader = slow.swap_remove(17);
    let mut read = 0;
    let gap = loop {
        let (kind, envelope) = reader.event().await.unwrap();
        if kind == "stream.gap" {
            break envelope;
        }
        assert_eq!(envelope["id"], written[read]);
        read += 1;
    };
    assert!(read >= 256, "{read}");
    assert_eq!(gap["data"]["reason"], "slow_reader");
    assert_eq!(gap["data"]["first_id"], written[read]);
    assert!(gap["data"]["events"].as_u64().unwrap() >= (EVENTS - read) as u64);
    assert_eq!(reader.event().await, None);
    drop(slow);
    until("nobody else is left", || site.engine().event_streams() == 1).await;
}

/// Reads one event; returns whether more of `written` are still to come.
async fn healthy_has(healthy: &mut Live, written: &[String]) -> bool {
    let (_, envelope) = healthy.event().await.unwrap();
    let number = usize::try_from(envelope["data"]["number"].as_u64().unwrap()).unwrap();
    assert_eq!(envelope["id"], written[number]);
    number + 1 < written.len()
}

/// The organisation that the site declares.
async fn organisation(site: &Site) -> OrganisationId {
    let snapshot = site.engine().store.directory().await.unwrap();
    snapshot.organisations[0].id
}

const SLOW_KEYS: usize = 40;
const EVENTS: usize = 700;
