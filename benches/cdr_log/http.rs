//! A client that keeps its connection, as an integration does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::site::KEY;

pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// The `total` of a list.
    pub fn total(&mut self, path: &str) -> u64 {
        self.ask(path, "1.1");
        let length = self.head("content-length:").expect("a list has a length").parse().unwrap();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        // The number is searched in the text, so that parsing the records is not measured.
        let text = String::from_utf8(body).unwrap();
        let (_, rest) = text.rsplit_once("\"total\":").unwrap_or_else(|| panic!("{path}: {text}"));
        rest.split(',').next().unwrap().parse().unwrap()
    }

    /// Counts the lines of a body that ends when the connection closes.
    pub fn lines(&mut self, path: &str) -> usize {
        self.ask(path, "1.0");
        self.head("");
        let mut lines = 0;
        let mut buffer = Vec::new();
        while self.stream.read_until(b'\n', &mut buffer).unwrap() > 0 {
            lines += 1;
            buffer.clear();
        }
        lines
    }

    fn ask(&mut self, path: &str, version: &str) {
        let request = format!(
            "GET /api/v1{path} HTTP/{version}\r\nHost: sidetone.test\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// Reads the head; returns the value of the header that begins with `name`.
    fn head(&mut self, name: &str) -> Option<String> {
        let mut found = None;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let line = line.trim_end();
            if line.is_empty() {
                return found;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix(name) {
                found = Some(value.trim().to_owned());
            }
        }
    }
}
