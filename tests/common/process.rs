//! A program that runs beside the test: killed when dropped, its output available for the failure message.

use std::ffi::OsStr;
use std::fmt;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A running program.
pub struct Process {
    name: &'static str,
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Process {
    /// Starts `program` of the Debian package `package`, with `dir` as its current directory.
    pub fn spawn<A: AsRef<OsStr>>(
        name: &'static str,
        program: impl AsRef<OsStr>,
        package: &str,
        dir: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let program = program.as_ref();
        let mut child = Command::new(program)
            .args(args)
            .current_dir(dir)
            .env("HOME", dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?}: {error}; apt-get install {package}"));
        let said = Arc::new(Mutex::new(String::new()));
        listen(child.stdout.take().unwrap(), Arc::clone(&said));
        listen(child.stderr.take().unwrap(), Arc::clone(&said));
        Self { name, child, said }
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Types a line into the program's terminal.
    pub fn type_line(&mut self, line: &str) {
        let typed = self.child.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes());
        assert!(typed.is_ok(), "{self} takes no input");
    }

    /// Types without ending the line, like single key presses.
    pub fn type_text(&mut self, text: &str) {
        let typed = self.child.stdin.as_mut().unwrap().write_all(text.as_bytes());
        assert!(typed.is_ok(), "{self} takes no input");
    }

    /// Waits for that time, like a person at a phone.
    pub fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        self.wait("the time", |_| (Instant::now() >= until).then_some(()));
    }

    /// The program's output so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until the output contains `text`, and returns all output so far.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.wait(&format!("{text:?}"), |process| {
            let said = process.said();
            said.contains(text).then_some(said)
        })
    }

    /// Sends SIGTERM and waits: a program with child processes ends them only this way.
    pub fn terminate(&mut self) {
        let _ = Command::new("kill").arg(self.id().to_string()).status();
        let deadline = Instant::now() + END_MAX;
        while self.child.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < deadline {
            std::thread::park_timeout(POLL);
        }
    }

    /// Waits until the program ends by itself.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "{self} does not end");
            std::thread::park_timeout(POLL);
        }
    }

    /// Waits until `condition` returns a value; a program that ends before that fails the test.
    pub fn wait<T>(&mut self, what: &str, mut condition: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            // Checked before the condition, so that the last output is still read.
            let ended = self.child.try_wait().unwrap();
            if let Some(answer) = condition(self) {
                return answer;
            }
            if let Some(status) = ended {
                panic!("{self} ended ({status}) before {what}");
            }
            assert!(Instant::now() < deadline, "{self} waited in vain for {what}");
            std::thread::park_timeout(POLL);
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The line that baresip repeats all the time would leave no room for the others.
        let said = self.said();
        let said: String = said.split_inclusive('\r').filter(|line| !line.contains("(bit/s)")).collect();
        let from = said.floor_char_boundary(said.len().saturating_sub(SHOWN_LEN_MAX));
        write!(f, "--- {} says ---\n{}\n--- {}", self.name, &said[from..], self.name)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until the program closes its end; output beyond the limit is discarded.
fn listen(mut from: impl Read + Send + 'static, said: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4_096];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            let mut said = said.lock().unwrap();
            if said.len() < SAID_LEN_MAX {
                said.push_str(&String::from_utf8_lossy(&bytes[..len]));
            }
        }
    });
}

const POLL: Duration = Duration::from_millis(20);
const SAID_LEN_MAX: usize = 4_000_000;
const SHOWN_LEN_MAX: usize = 6_000;
const END_MAX: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_secs(120);
