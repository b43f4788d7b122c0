//! The program, started with a script.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::records::TempDir;
use crate::common::site::{DOMAIN, PASSWORD};

/// The result of a run of the program.
pub struct Run {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// The lines of the standard output, as JSON.
    pub fn events(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of this name.
    pub fn all(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == name).collect()
    }

    /// Asserts that the run succeeded.
    pub fn assert_done(&self) {
        assert_eq!(self.status, 0, "{}{}", self.out, self.err);
    }
}

/// Runs the program; `change` adds arguments, files named in them are in the run's own directory.
pub async fn run(switch: SocketAddr, user: &str, script: &str, arguments: &[&str]) -> Run {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("script"), script).unwrap();
    std::fs::write(dir.path().join("password"), format!("{PASSWORD}\n")).unwrap();
    let server = switch.to_string();
    let mut all = vec!["--user", user, "--domain", DOMAIN, "--server", &server, "--script", "script"];
    if !arguments.contains(&"--password-file") {
        all.extend(["--password-file", "password"]);
    }
    all.extend(arguments);
    start(dir.path(), &all).await
}

/// Runs `sidetone phone` with only these arguments.
pub async fn start(dir: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidetone"));
    command.arg("phone").args(arguments).env_clear().current_dir(dir).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}
