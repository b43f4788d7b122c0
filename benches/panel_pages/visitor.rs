//! A browser's connection to the panel, with a session.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

pub struct Visitor {
    stream: BufReader<TcpStream>,
    cookie: String,
}

impl Visitor {
    /// Connects and begins a session.
    pub fn log_in(address: SocketAddr, email: &str, password: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut visitor = Self { stream: BufReader::new(stream), cookie: String::new() };
        let body = serde_json::json!({"email": email, "password": password}).to_string();
        let head = format!(
            "POST /api/v1/auth/login HTTP/1.1\r\nHost: sidetone.test\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        visitor.stream.get_mut().write_all((head + &body).as_bytes()).unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&visitor.answer()).unwrap();
        visitor.cookie = format!("sidetone_session={}", answer["token"].as_str().unwrap());
        visitor
    }

    /// Opens a page, which must succeed; returns its length.
    pub fn open(&mut self, path: &str) -> usize {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: sidetone.test\r\nAccept: text/html\r\nCookie: {}\r\n\r\n",
            self.cookie
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let body = self.answer();
        assert!(body.ends_with(b"</html>"), "{path}: {}", String::from_utf8_lossy(&body));
        body.len()
    }

    fn answer(&mut self) -> Vec<u8> {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let field = line.trim_end().to_ascii_lowercase();
            if field.is_empty() {
                break;
            }
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        body
    }
}
