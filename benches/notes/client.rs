//! The clients that send notes, and the one that reads the live stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// A connection that is kept open.
pub struct Connection {
    stream: BufReader<TcpStream>,
    key: &'static str,
}

impl Connection {
    pub async fn open(http: SocketAddr, key: &'static str) -> Self {
        let stream = TcpStream::connect(http).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), key }
    }

    /// The uuids of the calls that are up.
    pub async fn calls(&mut self) -> Vec<String> {
        let (status, page) = self.exchange("GET", "/calls?limit=500", "").await;
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().unwrap();
        items.iter().map(|call| call["uuid"].as_str().unwrap().to_owned()).collect()
    }

    /// Sends a note into a call and waits until it is accepted.
    pub async fn note(&mut self, call: &str, mark: &str, place: usize) {
        let note = json!({"title": format!("{mark} {place}"), "body": "Gold customer, owes nothing",
            "ack": true, "level": "info", "customer": 4711, "since": "2019-03-01"});
        let (status, answer) = self.exchange("POST", &format!("/calls/{call}/info"), &note.to_string()).await;
        assert_eq!(status, 202, "{answer}");
    }

    async fn exchange(&mut self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: sidetone.test\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut len = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                len = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }
}

/// The time at which the acknowledgement of each note was read from the stream.
pub struct Heard {
    at: Arc<Mutex<(Vec<Option<Instant>>, usize)>>,
    all: Arc<Notify>,
    reader: tokio::task::JoinHandle<()>,
}

impl Heard {
    /// Reads the acknowledgements of notes with that mark.
    pub async fn listen(http: SocketAddr, key: &str, mark: &str, count: usize) -> Self {
        let mut stream = TcpStream::connect(http).await.unwrap();
        // HTTP/1.0: the body is the events, without chunks.
        let request = format!(
            "GET /api/v1/events?events=call.info.acked HTTP/1.0\r\nHost: sidetone.test\r\n\
             Authorization: Bearer {key}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next_line().await.unwrap().unwrap();
        assert!(first.contains(" 200 "), "{first}");
        while lines.next_line().await.unwrap().unwrap() != "" {}
        let at = Arc::new(Mutex::new((vec![None; count], count)));
        let all = Arc::new(Notify::new());
        let (hears, done, mark) = (Arc::clone(&at), Arc::clone(&all), format!("{mark} "));
        let reader = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let Some(data) = line.strip_prefix("data:") else { continue };
                let now = Instant::now();
                let event: Value = serde_json::from_str(data).unwrap();
                let Some(title) = event["data"]["title"].as_str() else { continue };
                let Some(place) = title.strip_prefix(&mark) else { continue };
                let mut heard = hears.lock();
                let (at, missing) = &mut *heard;
                let at = &mut at[place.parse::<usize>().unwrap()];
                assert!(at.is_none(), "told twice: {title}");
                *at = Some(now);
                *missing -= 1;
                if *missing == 0 {
                    done.notify_one();
                }
            }
        });
        Self { at, all, reader }
    }

    /// What was read once all acknowledgements arrived, or at `until`.
    pub async fn all(self, until: Instant) -> Vec<Option<Instant>> {
        // Missing acknowledgements then count as lost.
        let _ = tokio::time::timeout_at(until.into(), self.all.notified()).await;
        self.reader.abort();
        let heard = self.at.lock();
        heard.0.clone()
    }
}
