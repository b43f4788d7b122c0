//! The engine: the real binary in its own process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::chosen::url_in;
use crate::records::TempDir;
use crate::site::{DOMAIN, PASSWORD, declare};

/// Keys of the organisation: each may send a thousand requests a second.
pub const KEYS: [&str; 4] = [
    "tel_benchkey0001_0123456789abcdefghijklmnopqrstuvwxyz",
    "tel_benchkey0002_0123456789abcdefghijklmnopqrstuvwxyz",
    "tel_benchkey0003_0123456789abcdefghijklmnopqrstuvwxyz",
    "tel_benchkey0004_0123456789abcdefghijklmnopqrstuvwxyz",
];
/// Extensions, each with a phone and a number.
pub const PHONES: usize = 20;

/// The number that rings an extension.
pub fn number(extension: usize) -> String {
    format!("+44207123{:04}", 1000 + extension)
}

/// A running engine; killed when dropped.
pub struct Engine {
    process: Child,
    pub sip: SocketAddr,
    pub http: SocketAddr,
    _dir: TempDir,
}

impl Engine {
    /// Starts `sidetone serve` and waits for its `ready`.
    pub async fn serve() -> Engine {
        let dir = TempDir::new();
        declare(dir.path(), &directory()).await;
        let file = dir.path().join("sidetone.toml");
        let text = format!(
            "[node]\ndata_dir = \"{0}\"\n[database]\nurl = \"{1}\"\n\
             [sip]\nlisten = [\"udp://127.0.0.1:0\"]\n[media]\nports = \"12000-31999\"\nworkers = 1\n\
             [http]\nlisten = \"127.0.0.1:0\"\n",
            dir.path().display(),
            url_in(dir.path())
        );
        fs::write(&file, text).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_sidetone"))
            .arg("serve")
            .arg("--config")
            .arg(&file)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = process.stdout.take().unwrap();
        let lines = BufReader::new(stdout).lines().map(Result::unwrap);
        let lines: Vec<String> = lines.take_while(|line| line != "ready").collect();
        let address = |prefix: &str| {
            let line = lines.iter().find_map(|line| line.strip_prefix(prefix));
            line.unwrap_or_else(|| panic!("no {prefix} in {lines:?}")).parse().unwrap()
        };
        Engine { sip: address("sip udp://"), http: address("http http://"), process, _dir: dir }
    }

    /// The processor time and memory that the engine used.
    pub fn usage(&self) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default().trim();
        format!("{:.1} s of processor time, {memory} in memory", ticks as f64 / 100.0)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn directory() -> String {
    let mut text = format!("[[organisations]]\nname = \"Acme\"\nsip_domain = \"{DOMAIN}\"\n");
    for (place, key) in KEYS.iter().enumerate() {
        text += &format!(
            "[[organisations.api_keys]]\nname = \"{place}\"\nkey = \"{key}\"\nrate_per_minute = 60000\n\
             permissions = [\"calls:control\", \"calls:read\"]\nallow = [\"127.0.0.1\"]\n"
        );
    }
    for place in 0..PHONES {
        let extension = 1001 + place;
        text +=
            &format!("[[organisations.extensions]]\nnumber = \"{extension}\"\npassword = \"{PASSWORD}\"\n");
        text += &format!(
            "[[organisations.numbers]]\nnumber = \"{}\"\ndestination = {{ extension = \"{extension}\" }}\n",
            number(place)
        );
    }
    text + "[[trunks]]\nname = \"carrier\"\naccept_from = [\"127.0.0.1\"]\n"
}
