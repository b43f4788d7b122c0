//! The engine as a process: its directory declared by `sidetone apply`, its addresses, its metrics and its log.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::chosen::url_in;

/// Every extension's password.
pub const PASSWORD: &str = "correct horse battery staple";
/// The key of every organisation made by [`organisation`], by its number.
pub fn key(organisation: usize) -> String {
    format!("tel_loadboss{organisation:04}_0123456789abcdefghijklmnopqrstuvwxyz")
}

/// The declaration of an organisation with extensions `first..first + count`.
pub fn organisation(index: usize, domain: &str, first: u32, count: u32) -> String {
    let mut text = format!(
        "[[organisations]]\nname = \"Load {index}\"\nsip_domain = \"{domain}\"\ncurrency = \"EUR\"\n\
         [[organisations.api_keys]]\nname = \"boss\"\nkey = \"{}\"\n\
         permissions = [\"calls:read\", \"calls:control\", \"conferences:read\", \"directory:write\"]\n\
         allow = [\"127.0.0.1\"]\nrate_per_minute = 60000\n",
        key(index)
    );
    for number in first..first + count {
        text += &format!("[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"{PASSWORD}\"\n");
    }
    text
}

/// How an engine is started.
pub struct Start {
    /// Settings after the usual ones; sections of those cannot be repeated.
    pub more: String,
    /// SIP listeners in addition to UDP and TCP, such as `tls://127.0.0.1:0`.
    pub listen: Vec<&'static str>,
    /// The range of media ports.
    pub ports: String,
    /// `RUST_LOG`.
    pub log: &'static str,
    /// A command that runs the engine, such as `prlimit --as=…`.
    pub wrapper: Vec<String>,
}

impl Default for Start {
    fn default() -> Self {
        Start {
            more: String::new(),
            listen: Vec::new(),
            ports: "12000-31999".to_owned(),
            log: "warn",
            wrapper: Vec::new(),
        }
    }
}

/// A running `sidetone serve`; killed when dropped.
pub struct Engine {
    process: Child,
    pub sip: SocketAddr,
    pub tcp: SocketAddr,
    /// `None` without such a listener.
    pub tls: Option<SocketAddr>,
    pub http: SocketAddr,
    log: PathBuf,
}

impl Engine {
    /// Starts the engine on the data of `dir` and waits until it is ready.
    pub fn start(dir: &Path, start: &Start) -> Engine {
        let file = config_file(dir, start);
        let log = dir.join("engine.log");
        let errors = File::options().create(true).append(true).open(&log).unwrap();
        let program = start.wrapper.first().cloned().unwrap_or_else(binary);
        let mut command = Command::new(program);
        if !start.wrapper.is_empty() {
            command.args(&start.wrapper[1..]).arg(binary());
        }
        command.arg("serve").arg("--config").arg(&file).env("RUST_LOG", start.log);
        let mut process = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let lines: Vec<String> =
            stdout.lines().map(Result::unwrap).take_while(|line| line != "ready").collect();
        let known = |prefix: &str| {
            let line = lines.iter().find_map(|line| line.strip_prefix(prefix));
            line.map(|address| address.parse().unwrap())
        };
        let address = |prefix: &str| {
            let none = || panic!("no {prefix} in {lines:?}: {}", fs::read_to_string(&log).unwrap());
            known(prefix).unwrap_or_else(none)
        };
        let (sip, tcp, tls) = (address("sip udp://"), address("sip tcp://"), known("sip tls://"));
        Engine { sip, tcp, tls, http: address("http http://"), process, log }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether the started process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// The engine's log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The status and body of `GET path`; `None` when there is no response in time.
    pub fn get(&self, path: &str, bearer: Option<&str>) -> Option<(u16, String)> {
        self.ask("GET", path, bearer, "")
    }

    /// The same of `POST path` with this JSON.
    pub fn post(&self, path: &str, bearer: &str, body: &Value) -> Option<(u16, String)> {
        self.ask("POST", path, Some(bearer), &body.to_string())
    }

    fn ask(&self, method: &str, path: &str, bearer: Option<&str>, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.http, HTTP_MAX).ok()?;
        stream.set_read_timeout(Some(HTTP_MAX)).ok()?;
        let bearer = bearer.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let content = match body.len() {
            0 => String::new(),
            length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: load.test\r\n{bearer}{content}Connection: close\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, unchunked(head, body)))
    }

    /// The call records of an organisation, newest first, 500 at most.
    pub fn records(&self, organisation: usize) -> Vec<Value> {
        let answer = self.get("/api/v1/cdrs?limit=500", Some(&key(organisation)));
        let page: Value = match answer {
            Some((200, body)) => serde_json::from_str(&body).unwrap(),
            other => panic!("the call log: {other:?}"),
        };
        page["items"].as_array().unwrap().clone()
    }

    /// The stored events of one kind, oldest first.
    ///
    /// # Errors
    /// The first line of a response that is not a stream.
    pub fn events(&self, kind: &str) -> Result<Vec<Value>, String> {
        let mut stream = TcpStream::connect_timeout(&self.http, HTTP_MAX).unwrap();
        stream.set_read_timeout(Some(HTTP_MAX)).unwrap();
        // With an old instant the stream begins with everything that is stored.
        let path = format!("/api/v1/events?since=2000-01-01&events={kind}");
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: load.test\r\nAuthorization: Bearer {}\r\n\r\n", key(1));
        stream.write_all(head.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines().map(|line| line.unwrap_or_default());
        let first = lines.next().unwrap_or_default();
        if !first.contains(" 200 ") {
            return Err(first);
        }
        let stored = lines.take_while(|line| !line.starts_with(": live"));
        let data = stored.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
        Ok(data.filter(|event: &Value| event["type"] == kind).collect())
    }

    /// The current content of `/metrics`.
    pub fn metrics(&self) -> Metrics {
        let answer = found("metrics", Duration::from_secs(60), || self.get("/metrics", None));
        Metrics { text: answer.1 }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Figures of `/metrics`.
pub struct Metrics {
    text: String,
}

impl Metrics {
    /// The sum of a family's samples whose labels hold `part`; `None` when there are none.
    pub fn of(&self, family: &str, part: &str) -> Option<f64> {
        let mut samples = self
            .text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' '))
            .filter(|(name, _)| name.split('{').next() == Some(family) && name.contains(part))
            .map(|(_, value)| value.parse::<f64>().unwrap())
            .peekable();
        samples.peek()?;
        Some(samples.sum())
    }

    /// The lines of a family.
    pub fn lines(&self, family: &str) -> Vec<&str> {
        self.text.lines().filter(|line| line.starts_with(family)).collect()
    }
}

/// Applies a declaration to the database of `dir`; returns how long that took.
pub fn apply(dir: &Path, declaration: &str) -> Duration {
    let file = dir.join("declared.toml");
    fs::write(&file, declaration).unwrap();
    let config = config_file(dir, &Start::default());
    let began = Instant::now();
    let output = Command::new(binary())
        .args([Path::new("apply"), &file, Path::new("--config"), &config])
        .stdout(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "apply: {}", String::from_utf8_lossy(&output.stderr));
    began.elapsed()
}

/// Polls until there is a value.
pub fn found<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {patience:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn config_file(dir: &Path, start: &Start) -> PathBuf {
    let file = dir.join("sidetone.toml");
    let listen = [["udp://127.0.0.1:0", "tcp://127.0.0.1:0"].as_slice(), &start.listen].concat();
    let text = format!(
        "[node]\ndata_dir = \"{0}\"\n[database]\nurl = \"{1}\"\n\
         [sip]\nlisten = {2:?}\n\
         [media]\nports = \"{3}\"\nworkers = 1\n[http]\nlisten = \"127.0.0.1:0\"\n{4}",
        dir.display(),
        url_in(dir),
        listen,
        start.ports,
        start.more
    );
    fs::write(&file, text).unwrap();
    file
}

/// The measured engine: another build of it when `SIDETONE_LONG_BINARY` names one.
fn binary() -> String {
    std::env::var("SIDETONE_LONG_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_sidetone").to_owned())
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        whole += &tail[..size];
        rest = &tail[size + 2..];
    }
    whole
}

const HTTP_MAX: Duration = Duration::from_secs(10);
