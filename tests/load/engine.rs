//! The engine as a process, with the configuration that the load program has provisioned.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::process::Process;

/// A running `sidetone serve`; killed when dropped.
pub(crate) struct Engine {
    process: Process,
    pub(crate) sip: SocketAddr,
    http: SocketAddr,
}

impl Engine {
    /// Applies the directory of `dir`, starts the engine and waits until it is ready.
    pub(crate) fn start(dir: &Path) -> Engine {
        let binary = env!("CARGO_BIN_EXE_sidetone");
        let run = |args: &[&str]| Process::spawn("sidetone", binary, "sidetone", dir, args);
        let mut apply = run(&["apply", "site.toml"]);
        let applied = apply.wait_exit();
        assert!(applied.success(), "{apply} ended with {applied}");
        let mut process = run(&["serve"]);
        let output = process.wait_for("\nready\n");
        let address = |prefix: &str| {
            let line = output.lines().find_map(|line| line.strip_prefix(prefix));
            line.unwrap_or_else(|| panic!("no {prefix} in {output}")).parse().unwrap()
        };
        Engine { sip: address("sip udp://"), http: address("http http://"), process }
    }

    /// The number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The answer to `GET path`.
    pub(crate) fn get(&self, path: &str) -> Value {
        get(self.http, path)
    }

    /// The status and the answer to `POST path`.
    pub(crate) fn post(&self, path: &str, json: &str) -> (u16, Value) {
        send(self.http, "POST", path, json)
    }

    /// Waits until `condition` returns a value.
    pub(crate) fn until<T>(&self, what: &str, mut condition: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            if let Some(answer) = condition(self) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{}: waited in vain until {what}", self.process);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The call records, once there are `count` and all of them have ended.
    pub(crate) fn records(&mut self, count: usize) -> Vec<Value> {
        let http = self.http;
        self.process.wait(&format!("{count} records"), |_| {
            let page = get(http, "/api/v1/cdrs?limit=500");
            let items = page["items"].as_array().unwrap();
            let is_whole = items.len() >= count && items.iter().all(|item| !item["ended_at"].is_null());
            is_whole.then(|| items.clone())
        })
    }
}

fn get(http: SocketAddr, path: &str) -> Value {
    let (status, body) = send(http, "GET", path, "");
    assert_eq!(status, 200, "{body}");
    body
}

/// The status and the body of an answer.
fn send(http: SocketAddr, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(http).unwrap();
    stream.set_read_timeout(Some(HTTP_READ_MAX)).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: load.test\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// As the load program declares it.
const KEY: &str = "tel_loadboss0001_0123456789abcdefghijklmnopqrstuvwxyz";
const HTTP_READ_MAX: Duration = Duration::from_secs(60);
const WAIT_MAX: Duration = Duration::from_secs(60);
