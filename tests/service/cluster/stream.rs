//! The events of a node, read from its stream for as long as a test lasts.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::common::site::within;
use crate::service::idempotency::ADMIN;

/// An open stream and what has arrived on it.
pub struct Stream {
    seen: watch::Receiver<Vec<Value>>,
    reader: JoinHandle<()>,
}

impl Stream {
    /// Opens the stream of a node, and returns when it is live.
    pub async fn open(http: SocketAddr) -> Stream {
        Stream::open_as(http, ADMIN).await
    }

    /// The same with another key.
    pub async fn open_as(http: SocketAddr, key: &str) -> Stream {
        let mut stream = TcpStream::connect(http).await.unwrap();
        let head = format!("GET /api/v1/events HTTP/1.0\r\nAuthorization: Bearer {key}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        let begin = async { while lines.next_line().await.unwrap().expect("an open stream") != ": live" {} };
        within("a live stream", begin).await;
        let (events, seen) = watch::channel(Vec::new());
        let reader = tokio::spawn(async move {
            // The stream ends with the node.
            while let Ok(Some(line)) = lines.next_line().await {
                let Some(data) = line.strip_prefix("data: ") else { continue };
                let event: Value = serde_json::from_str(data).unwrap();
                events.send_modify(|events: &mut Vec<Value>| events.push(event));
            }
        });
        Stream { seen, reader }
    }

    /// Waits until the node has ended it.
    pub async fn ends(mut self) {
        within("the end of the stream", &mut self.reader).await.unwrap();
    }

    /// The events of that type so far whose data have this value.
    pub fn of(&self, kind: &str, field: &str, value: &Value) -> Vec<Value> {
        matching(&self.seen.borrow(), kind, field, value)
    }

    /// Waits until this many of them have arrived.
    pub async fn has(&mut self, kind: &str, field: &str, value: &Value, count: usize) {
        let what = format!("{count} events {kind} with {field} {value}");
        let arrived = self.seen.wait_for(|seen| matching(seen, kind, field, value).len() >= count);
        within(&what, arrived).await.unwrap();
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn matching(events: &[Value], kind: &str, field: &str, value: &Value) -> Vec<Value> {
    events.iter().filter(|event| event["type"] == kind && event["data"][field] == *value).cloned().collect()
}
