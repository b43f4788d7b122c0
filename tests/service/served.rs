//! The real binary in its own process, and its output.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::chosen::url_in;
use crate::common::site::{until, within};

/// A running `sidetone serve`; killed with SIGKILL when dropped.
pub struct Served {
    process: Child,
    pub sip: SocketAddr,
    pub http: SocketAddr,
    said: Arc<Mutex<String>>,
}

/// How it is started.
pub struct Start {
    pub config: String,
    pub log: &'static str,
    /// The limit of open files of the process; without it the system's limit.
    pub files_max: Option<u32>,
    /// More environment variables.
    pub env: Vec<(&'static str, String)>,
}

/// A configuration with free ports, followed by `more`.
pub fn config(dir: &Path, more: &str) -> String {
    format!(
        "[database]\nurl = \"{1}\"\n[sip]\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [media]\nports = \"12000-31999\"\nworkers = 1\n[node]\ndata_dir = \"{0}\"\n{more}",
        dir.display(),
        url_in(dir)
    )
}

/// The program under test: the one that was built with the tests, or the file in `SIDETONE_BINARY`.
pub fn program_file() -> PathBuf {
    std::env::var_os("SIDETONE_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_sidetone").into(), PathBuf::from)
}

impl Served {
    pub async fn with(dir: &Path, start: Start) -> Served {
        let file = dir.join("sidetone.toml");
        std::fs::write(&file, &start.config).unwrap();
        let limit = start.files_max.map_or_else(String::new, |max| format!("ulimit -n {max}; "));
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("{limit}exec \"$0\" serve --config \"$1\""))
            .arg(program_file())
            .arg(&file)
            .env_remove("RUST_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.envs(start.env);
        if !start.log.is_empty() {
            command.env("RUST_LOG", start.log);
        }
        let mut process = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        listen(process.stderr.take().unwrap(), Arc::clone(&said));
        let stdout = process.stdout.take().unwrap();
        let lines = tokio::task::spawn_blocking(move || {
            let lines = BufReader::new(stdout).lines().map(Result::unwrap);
            lines.take_while(|line| line != "ready").collect::<Vec<_>>()
        });
        let lines = within("ready", lines).await.unwrap();
        let address = |prefix: &str| {
            let line = lines.iter().find_map(|line| line.strip_prefix(prefix));
            line.unwrap_or_else(|| panic!("no {prefix} in {lines:?}; {}", said.lock().unwrap()))
                .parse()
                .unwrap()
        };
        Served { sip: address("sip udp://"), http: address("http http://"), process, said }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its output on stderr.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until the output contains `text` this many times.
    pub async fn says(&self, text: &str, times: usize) {
        until(text, || self.said().matches(text).count() >= times).await;
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits until it has exited by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of the process", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn listen(mut from: impl Read + Send + 'static, said: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            said.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..len]));
        }
    });
}
