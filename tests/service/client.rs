//! A plain HTTP/1.1 client, one connection per request.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request to send.
#[derive(Clone)]
pub struct Ask {
    method: &'static str,
    path: String,
    headers: String,
    body: String,
}

/// A response, read completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// In lower case.
    pub head: String,
    pub text: String,
}

impl Ask {
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: String::new(), body: String::new() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers += &format!("{name}: {value}\r\n");
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string();
        self.header("Content-Type", "application/json")
    }

    pub fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", key)
    }

    /// Sends it; a server that disconnects is an error.
    pub async fn try_send(&self, to: SocketAddr) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(to).await?;
        let Ask { method, path, headers, body } = self;
        let len = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len}\r\n{headers}\r\n{body}"
        );
        stream.write_all(text.as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(Answer { status, head: head.to_ascii_lowercase(), text: body.to_owned() })
    }

    pub async fn send(&self, to: SocketAddr) -> Answer {
        crate::common::site::within(&self.path, self.try_send(to)).await.unwrap()
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }

    pub fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line == header)
    }
}
