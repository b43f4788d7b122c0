//! A client that speaks HTTP/1.0: a response ends with its connection, a stream after the stored events.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// A response, read completely.
pub struct Answer {
    pub status: u16,
    /// The status line and the headers, in lower case.
    pub head: String,
    pub text: String,
}

impl Answer {
    /// The body as JSON; null when it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The error's message.
    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends one request, with `from` as the client address that a proxy in front of the engine reports.
pub fn send(
    engine: SocketAddr,
    from: Option<&str>,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> Answer {
    send_with(engine, from, method, path, token, "", body)
}

/// The same with more header lines.
pub fn send_with(
    engine: SocketAddr,
    from: Option<&str>,
    method: &str,
    path: &str,
    token: Option<&str>,
    lines: &str,
    body: &Value,
) -> Answer {
    let mut stream = TcpStream::connect(engine).unwrap();
    let mut head = format!("{method} {path} HTTP/1.0\r\nHost: sidetone.test\r\n{lines}");
    if let Some(from) = from {
        head += &format!("X-Forwarded-For: {from}\r\n");
    }
    if let Some(token) = token {
        head += &format!("Authorization: Bearer {token}\r\n");
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    if !body.is_empty() {
        head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    write!(stream, "{head}\r\n{body}").unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let len = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..len]);
        // A stream of events does not end; the comment `live` follows the stored events.
        if len == 0 || bytes.ends_with(b"\n\n: live\n\n") {
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), text: body.to_owned() }
}
