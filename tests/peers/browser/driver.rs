//! Drives headless Chromium by the DevTools protocol.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use rcgen::{KeyPair, PublicKeyData};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::common::process::Process;
use crate::peers::engine::{self, Engine};
use crate::peers::peer;
use crate::peers::sound;

/// Whether Chromium is installed.
pub fn is_there() -> bool {
    Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// A page that is the phone of an extension, with a tone as its microphone.
pub struct Browser {
    /// The tone of its microphone.
    pub hz: f64,
    process: Process,
    runtime: Runtime,
    devtools: WebSocketStream<TcpStream>,
    /// The DevTools session of the page.
    session: String,
    serial: u64,
}

impl Browser {
    /// Opens the page in a browser of its own and registers it over WSS at the engine, whose certificate is the only
    /// unknown one that the browser accepts.
    pub fn register(engine: &Engine, number: &str) -> Browser {
        let (password, hz) = peer::phone(number);
        let sound_file = engine.dir().join("microphone.wav");
        sound::write_tone(&sound_file, 30, hz);
        let page = serve_page();
        let mut process = start(engine, &sound_file.display().to_string());
        let said = process.wait("the address of DevTools", |process| {
            let said = process.said();
            let (_, address) = said.split_once("DevTools listening on ws://")?;
            address.split_once('\n').map(|(address, _)| address.trim().to_owned())
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (address, _) = said.split_once('/').unwrap();
        let devtools = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            tokio_tungstenite::client_async(format!("ws://{said}"), stream).await.unwrap().0
        });
        let session = String::new();
        let mut browser = Browser { hz, process, runtime, devtools, session, serial: 0 };
        let url = json!({"url": format!("http://{page}/")});
        let target = browser.command("Target.createTarget", url)["targetId"].clone();
        let attached = browser.command("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        browser
            .wait("the page", |browser| (browser.eval("typeof Phone === 'function'") == true).then_some(()));
        let at = engine.sip_wss();
        let phone = format!(
            "window.phone = new Phone('wss://{at}/', '{number}', '{password}', 'acme.test'); phone.register()"
        );
        let status = browser.eval(&phone);
        assert_eq!(status, 200, "the registration; {browser}");
        browser
    }

    /// Calls a number, without waiting for the answer.
    pub fn call(&mut self, number: &str) {
        self.eval(&format!("phone.dial('{number}').then(status => phone.status = status); 0"));
    }

    /// Waits until the phone of the page is in a state, see `phone.js`.
    pub fn wait_state(&mut self, state: &str) {
        self.wait(state, |browser| (browser.eval("phone.state") == state).then_some(()));
    }

    /// Waits until it rings, and answers.
    pub fn answer(&mut self) {
        self.wait_state("incoming");
        self.eval("phone.answer().then(() => 0)");
        self.wait_state("talking");
    }

    /// Offers audio in this direction inside the call; returns the status.
    pub fn offer(&mut self, direction: &str) -> Value {
        self.eval(&format!("phone.offer('{direction}')"))
    }

    /// Hangs up the answered call.
    pub fn hang_up(&mut self) {
        let status = self.eval("phone.hangUp()");
        assert_eq!(status, 200, "its BYE; {self}");
    }

    /// Waits until that many of its calls have ended.
    pub fn ended(&mut self, count: u32) {
        self.wait("the end of its call", |browser| (browser.eval("phone.ended") == count).then_some(()));
    }

    /// Waits until it receives these tones and no other of the test.
    pub fn hears(&mut self, wanted: &[f64]) {
        let tones = peer::TONES_HZ;
        self.wait(&format!("{wanted:?} in what it hears"), |browser| {
            let loud = browser.eval(&format!("phone.loud({tones:?})"));
            let loud: Vec<f64> = loud.as_array()?.iter().filter_map(Value::as_f64).collect();
            peer::are_only(wanted, &loud).then_some(())
        });
    }

    /// The value of an expression in the page, with promises resolved.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.command("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer:#}; {}", self.process);
        answer["result"]["value"].clone()
    }

    /// Waits until `condition` returns a value, while the test's other programs run.
    pub fn wait<T>(&mut self, what: &str, mut condition: impl FnMut(&mut Browser) -> Option<T>) -> T {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            if let Some(answer) = condition(self) {
                return answer;
            }
            if Instant::now() >= deadline {
                let log = self.eval("phone.log.join('\\n')");
                let heard = self.eval(&format!("phone.loud({:?}).join(' ')", peer::TONES_HZ));
                let log = log.as_str().unwrap_or_default();
                panic!(
                    "Chromium waited in vain for {what}; it hears {heard}; its SIP:\n{log}\n{}",
                    self.process
                );
            }
            std::thread::park_timeout(POLL);
        }
    }

    /// The result of a command of DevTools.
    fn command(&mut self, method: &str, params: Value) -> Value {
        self.serial += 1;
        let mut command = json!({"id": self.serial, "method": method, "params": params});
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        let (serial, devtools) = (self.serial, &mut self.devtools);
        let exchange = async {
            devtools.send(Message::text(command.to_string())).await.ok()?;
            while let Some(Ok(frame)) = devtools.next().await {
                let Message::Text(text) = frame else { continue };
                let answer: Value = serde_json::from_str(&text).ok()?;
                // Events have no id.
                if answer["id"] == serial {
                    return Some(answer);
                }
            }
            None
        };
        let answer = self.runtime.block_on(async { tokio::time::timeout(WAIT_MAX, exchange).await });
        let answer = answer.ok().flatten();
        let answer = answer.unwrap_or_else(|| panic!("{method} has no answer; {}", self.process));
        assert!(answer["error"].is_null(), "{method}: {answer:#}; {}", self.process);
        answer["result"].clone()
    }
}

impl std::fmt::Display for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.process.fmt(f)
    }
}

/// Starts Chromium without a window, with a profile in the directory of the test.
fn start(engine: &Engine, microphone: &str) -> Process {
    let profile = engine.dir().join("chromium");
    std::fs::create_dir(&profile).unwrap();
    let args = [
        "--headless=new".to_owned(),
        // The tests run as root.
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-extensions".to_owned(),
        "--no-first-run".to_owned(),
        "--autoplay-policy=no-user-gesture-required".to_owned(),
        "--allow-loopback-in-peer-connection".to_owned(),
        "--use-fake-ui-for-media-stream".to_owned(),
        "--use-fake-device-for-media-stream".to_owned(),
        format!("--use-file-for-fake-audio-capture={microphone}"),
        format!("--ignore-certificate-errors-spki-list={}", key_hash(engine)),
        format!("--user-data-dir={}", profile.display()),
        "--remote-debugging-port=0".to_owned(),
        "about:blank".to_owned(),
    ];
    Process::spawn("chromium", PROGRAM, "chromium", engine.dir(), args)
}

/// The SHA-256 of the public key of the engine's certificate, in Base64.
fn key_hash(engine: &Engine) -> String {
    let pem = std::fs::read_to_string(engine.dir().join(engine::KEY_FILE)).unwrap();
    let key = KeyPair::from_pem(&pem).unwrap();
    STANDARD.encode(Sha256::digest(key.subject_public_key_info()))
}

/// Serves the page, which needs a loopback origin to get a microphone.
fn serve_page() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The request is read completely: closing a socket with unread data resets the connection.
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let _ = lines.take_while(|line| !line.is_empty()).count();
            let page = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{PAGE}",
                PAGE.len()
            );
            // A browser that disconnects gets no page.
            let _ = stream.write_all(page.as_bytes());
        }
    });
    address
}

const PROGRAM: &str = "chromium";
const PAGE: &str =
    concat!("<!doctype html><title>Phone</title><script>", include_str!("phone.js"), "</script>");
const POLL: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(60);
