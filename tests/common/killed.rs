//! The engine as a process of its own, to be killed.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::chosen::url_in;
use super::receiver::Receiver;
use super::site::within;

/// The real binary; killed with SIGKILL when dropped.
pub struct Engine {
    process: Child,
    pub sip: SocketAddr,
    pub http: SocketAddr,
}

impl Engine {
    /// Starts `sidetone serve` and waits for its `ready`.
    pub async fn serve(dir: &Path) -> Engine {
        Engine::serve_with(dir, "").await
    }

    /// The same with more settings.
    pub async fn serve_with(dir: &Path, more: &str) -> Engine {
        let file = dir.join("sidetone.toml");
        let text = format!(
            "[node]\ndata_dir = \"{0}\"\nbusy_cpu_percent = 0\nbusy_late_percent = 0\n[database]\nurl = \"{1}\"\n\
             [sip]\nlisten = [\"udp://127.0.0.1:0\"]\n[media]\nports = \"12000-31999\"\nworkers = 1\n\
             [http]\nlisten = \"127.0.0.1:0\"\n{more}",
            dir.display(),
            url_in(dir)
        );
        std::fs::write(&file, text).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_sidetone"))
            .arg("serve")
            .arg("--config")
            .arg(&file)
            .env("RUST_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = process.stdout.take().unwrap();
        let lines = tokio::task::spawn_blocking(move || {
            let lines = BufReader::new(stdout).lines().map(Result::unwrap);
            lines.take_while(|line| line != "ready").collect::<Vec<_>>()
        });
        let lines = within("ready", lines).await.unwrap();
        let address = |prefix: &str| {
            let line = lines.iter().find_map(|line| line.strip_prefix(prefix));
            line.unwrap_or_else(|| panic!("no {prefix} in {lines:?}")).parse().unwrap()
        };
        Engine { sip: address("sip udp://"), http: address("http http://"), process }
    }

    /// SIGTERM, and the end in order.
    pub async fn stop(mut self) {
        let sent = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
        let ended = tokio::task::spawn_blocking(move || self.process.wait().unwrap());
        assert_eq!(within("the end of the process", ended).await.unwrap().code(), Some(0));
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The settings with which webhooks reach `receiver`.
pub fn reaching(receiver: &Receiver, dir: &Path) -> String {
    format!(
        "[outbound_http]\nallow_addresses = [\"127.0.0.1/32\"]\nextra_ca = \"{}\"\nports = [{}]\n",
        receiver.settings(dir).extra_ca.unwrap().display(),
        receiver.address.port()
    )
}
