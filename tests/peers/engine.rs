//! The `sidetone` binary with two phones declared, and its call log over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;

use crate::common::ports;
use crate::common::process::Process;
use crate::common::records::TempDir;

/// The settings of an engine.
#[derive(Default)]
pub struct Start<'a> {
    /// The number of calls for which it has ports.
    pub calls: u16,
    /// More directory text after the first organisation, its extensions 1001 and 1002 and its key.
    pub directory: &'a str,
    /// More settings after the configuration.
    pub settings: &'a str,
    /// The setting `srtp` of every extension; empty leaves it out.
    pub srtp: &'a str,
    /// Whether every extension has video.
    pub video: bool,
}

impl Start<'_> {
    fn directory(&self) -> String {
        let directory = format!("{DIRECTORY}{}", self.directory);
        // Trunks have passwords too, but without indentation.
        let with = |directory: String, line: &str| {
            directory.replace("\n  password =", &format!("\n  {line}\n  password ="))
        };
        let directory = match self.srtp {
            "" => directory,
            srtp => with(directory, &format!("srtp = \"{srtp}\"")),
        };
        if self.video { with(directory, "video = \"pass\"") } else { directory }
    }
}

/// A running engine; stops when dropped.
pub struct Engine {
    process: Process,
    sip: String,
    sip_tcp: String,
    sip_tls: String,
    sip_wss: String,
    http: String,
    media_ports: Range<u16>,
    dir: TempDir,
}

impl Engine {
    /// Starts the engine with extensions 1001 and 1002 of `acme.test` and ports for that many calls.
    pub fn start(calls: u16) -> Self {
        Self::with(calls, "")
    }

    /// The same with more directory text.
    pub fn with(calls: u16, more: &str) -> Self {
        Self::run(&Start { calls, directory: more, ..Start::default() })
    }

    /// Starts an engine with these settings.
    pub fn run(start: &Start<'_>) -> Self {
        let Start { calls, settings, .. } = start;
        let dir = TempDir::new();
        // Two port pairs a call; as many again may be in quarantine or in use by others.
        let count = calls * 8;
        let first = ports::free(count);
        let config = format!(
            "[node]\ndata_dir = \"{}\"\n[sip]\nlisten = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\", \"tls://127.0.0.1:0\", \
             \"wss://127.0.0.1:0\"]\n[[tls.certificates]]\ncertificate = \"{AUTHORITY}\"\nkey = \"{KEY_FILE}\"\n\
             [media]\nports = \"{first}-{}\"\n[http]\nlisten = \"127.0.0.1:0\"\n{settings}",
            dir.path().display(),
            first + count - 1,
        );
        std::fs::write(dir.path().join("sidetone.toml"), config).unwrap();
        certify(dir.path(), "site", "acme.test");
        std::fs::write(dir.path().join("directory.toml"), start.directory()).unwrap();
        let run = |args: &[&str]| Process::spawn("sidetone", BINARY, "sidetone", dir.path(), args);
        let mut apply = run(&["apply", "directory.toml"]);
        let applied = apply.wait_exit();
        assert!(applied.success(), "{apply} ended with {applied}");
        let mut process = run(&["serve"]);
        let said = process.wait_for("\nready\n");
        let after = |prefix: &str| {
            said.lines().find_map(|line| line.strip_prefix(prefix)).expect("a line per listener").to_owned()
        };
        let (sip, sip_tcp, sip_tls) = (after("sip udp://"), after("sip tcp://"), after("sip tls://"));
        let (sip_wss, http) = (after("sip wss://"), after("http http://"));
        let media_ports = first..first + count;
        Self { sip, sip_tcp, sip_tls, sip_wss, http, media_ports, process, dir }
    }

    /// The address for SIP, `ADDRESS:PORT`.
    pub fn sip(&self) -> &str {
        &self.sip
    }

    /// The same over TCP.
    pub fn sip_tcp(&self) -> &str {
        &self.sip_tcp
    }

    /// The same over TLS; its certificate is its own authority, in the file [`AUTHORITY`].
    pub fn sip_tls(&self) -> &str {
        &self.sip_tls
    }

    /// The same over a WebSocket over TLS.
    pub fn sip_wss(&self) -> &str {
        &self.sip_wss
    }

    /// The ports of its media.
    pub fn media_ports(&self) -> Range<u16> {
        self.media_ports.clone()
    }

    /// A directory for the files of the test.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The records of the log, once there are `count` of them.
    pub fn records(&mut self, count: usize) -> Vec<Value> {
        let http = self.http.clone();
        self.process.wait(&format!("{count} records"), |_| {
            let page = get(&http, "/api/v1/cdrs?limit=100");
            let records = page["items"].as_array().unwrap();
            assert!(records.len() <= count, "more records than calls: {page:#}");
            (records.len() == count).then(|| records.clone())
        })
    }

    /// The body of `GET path`, whose status must be 200.
    pub fn get(&self, path: &str) -> Value {
        get(&self.http, path)
    }

    /// Waits until `condition` is true for the body of `GET path`.
    pub fn wait_for<T>(&mut self, path: &str, what: &str, condition: impl Fn(&Value) -> Option<T>) -> T {
        let http = self.http.clone();
        self.process.wait(what, |_| {
            let (status, body) = exchange(&http, "GET", path, "\r\n");
            (status == 200).then(|| condition(&body)).flatten()
        })
    }

    /// The status and body of `POST path`.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let head = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        exchange(&self.http, "POST", path, &format!("{head}\r\n{body}"))
    }

    /// The status of `PUT path` with a WAV file.
    pub fn upload(&self, path: &str, wav: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        stream.set_read_timeout(Some(HTTP_READ_MAX)).unwrap();
        let head = format!("PUT {path} HTTP/1.1\r\nHost: sidetone.test\r\nConnection: close\r\n");
        let kind = format!("Content-Type: audio/wav\r\nContent-Length: {}\r\n", wav.len());
        write!(stream, "{head}Authorization: Bearer {KEY}\r\n{kind}\r\n").unwrap();
        stream.write_all(wav).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// The status of `POST path` without a body.
    pub fn order(&self, path: &str) -> u16 {
        exchange(&self.http, "POST", path, "Content-Length: 0\r\n\r\n").0
    }

    /// The status of `DELETE path`.
    pub fn delete(&self, path: &str) -> u16 {
        exchange(&self.http, "DELETE", path, "\r\n").0
    }

    /// The engine's last log lines, for a failure message.
    pub fn log(&self) -> String {
        self.process.to_string()
    }
}

/// Writes a certificate for a name and the loopback, `STEM.pem`, and its key, `STEM.key`.
pub fn certify(dir: &Path, stem: &str, name: &str) {
    let key = KeyPair::generate().unwrap();
    // Linphone compares the name of a server only with names.
    let names = [name, "localhost", "127.0.0.1"].map(str::to_owned);
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    std::fs::write(dir.join(format!("{stem}.pem")), certificate.pem()).unwrap();
    std::fs::write(dir.join(format!("{stem}.key")), key.serialize_pem()).unwrap();
}

fn get(address: &str, path: &str) -> Value {
    let (status, body) = exchange(address, "GET", path, "\r\n");
    assert_eq!(status, 200, "{path}: {body}");
    body
}

/// Sends a request with `rest` after the common headers.
fn exchange(address: &str, method: &str, path: &str, rest: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HTTP_READ_MAX)).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: sidetone.test\r\nConnection: close\r\n");
    write!(stream, "{request}Authorization: Bearer {KEY}\r\n{rest}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    if body.is_empty() {
        return (status, Value::Null);
    }
    (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("{path}: {text}")))
}

/// The file of the engine's certificate.
pub const AUTHORITY: &str = "site.pem";
/// The file of its private key.
pub const KEY_FILE: &str = "site.key";
const BINARY: &str = env!("CARGO_BIN_EXE_sidetone");
const HTTP_READ_MAX: Duration = Duration::from_secs(60);
const KEY: &str = "tel_acmecrm00001_0123456789abcdefghijklmnopqrstuvwxyz";
const DIRECTORY: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.extensions]]
  number = "1001"
  name = "Caller"
  password = "the-first-secret"
  [[organisations.extensions]]
  number = "1002"
  name = "Callee"
  password = "the-second-secret"
  [[organisations.api_keys]]
  name = "crm"
  key = "tel_acmecrm00001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:control", "calls:read", "conferences:control", "conferences:read", "conferences:write"]
  allow = ["127.0.0.1"]
"#;
