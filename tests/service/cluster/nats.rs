//! `nats-server` with JetStream, beside the test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::records::TempDir;
use crate::common::site::until;

/// A running server; killed when dropped.
pub struct Nats {
    process: Child,
    pub address: SocketAddr,
    /// The address of its counters.
    pub monitor: SocketAddr,
    _dir: TempDir,
}

/// The program, if it is installed.
pub fn program() -> Option<PathBuf> {
    ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"]
        .iter()
        .map(PathBuf::from)
        .find(|file| file.exists())
}

impl Nats {
    /// A server on this port.
    pub async fn start(program: &Path, port: u16) -> Nats {
        let dir = TempDir::new();
        let mut process = Command::new(program)
            .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-m", "-1", "-sd"])
            .arg(dir.path())
            .arg("--ports_file_dir")
            .arg(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let file = dir.path().join(format!("nats-server_{}.ports", process.id()));
        let (mut address, mut monitor) = (None, None);
        until("the ports of nats-server", || {
            assert!(process.try_wait().unwrap().is_none(), "nats-server ended");
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let ports: Value = serde_json::from_str(&text).unwrap_or_default();
            address = ports["nats"][0].as_str().and_then(|url| url.strip_prefix("nats://")?.parse().ok());
            monitor =
                ports["monitoring"][0].as_str().and_then(|url| url.strip_prefix("http://")?.parse().ok());
            address.is_some() && monitor.is_some()
        })
        .await;
        Nats { process, address: address.unwrap(), monitor: monitor.unwrap(), _dir: dir }
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
