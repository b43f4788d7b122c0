//! A database, a NATS server, and nodes on 127.0.0.1, .2 and .3.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use sidetone_store::Store;

use super::nats::{Nats, program};
use crate::common::database::{Kind, TestDatabase, server};
use crate::common::ports::free;
use crate::common::records::TempDir;
use crate::common::site::{declare_in, found};
use crate::service::client::{Answer, Ask};
use crate::service::idempotency::directory;
use crate::service::served::{Served, Start, program_file};

/// The settings shared by the nodes.
pub struct Cluster {
    pub nats: Nats,
    pub database: TestDatabase,
    /// The address of NATS in the nodes' configuration.
    pub nats_url: String,
    /// The silence after which another node records a node's calls.
    pub lost_after_s: u64,
    /// Whether nodes accept SIP from each other.
    pub has_edge: bool,
    /// The folder with the TLS files between nodes: `NAME.pem`, `NAME.key` and `authority.pem`; `None` for UDP.
    pub tls: Option<PathBuf>,
    /// The URL of the database in the nodes' configuration.
    pub database_url: String,
    /// More sections of the configuration.
    pub more: String,
    /// More keys of `[media]`.
    pub media: &'static str,
    /// `RUST_LOG` of the nodes.
    pub log: &'static str,
    dir: TempDir,
}

/// A node and its data.
pub struct Node {
    pub served: Served,
    pub name: &'static str,
    pub data: TempDir,
}

impl Cluster {
    /// A database with the directory of the idempotency tests, and NATS; `None` with a notice where one is missing.
    pub async fn start() -> Option<Cluster> {
        let (Some(program), Some(_)) = (program(), server()) else {
            eprintln!(
                "NOTICE: the cluster is NOT tested: it needs nats-server (apt-get install nats-server) and \
                 SIDETONE_TEST_POSTGRES"
            );
            return None;
        };
        let dir = TempDir::new();
        let database = TestDatabase::new(Kind::Postgres, dir.path()).await;
        let store = Store::open(&database.database).await.unwrap();
        declare_in(&store, &(directory() + ROOMS)).await;
        store.close().await;
        // A port that the system does not choose for others: a test stops the server and starts it again on it.
        let nats = Nats::start(&program, free(1)).await;
        let (nats_url, database_url) = (nats.url(), database.url());
        Some(Cluster {
            nats,
            database,
            nats_url,
            lost_after_s: 60,
            has_edge: true,
            tls: None,
            database_url,
            more: String::new(),
            media: "",
            log: "info",
            dir,
        })
    }

    /// Starts a node at `127.0.0.HOST`.
    pub async fn node(&self, name: &'static str, host: u8) -> Node {
        self.node_on(name, host, TempDir::new()).await
    }

    /// Starts two nodes, and waits until each sees the other; returns them with the operator's token.
    pub async fn two(&self) -> (Node, Node, String) {
        let (first, second) = (self.node("first", 1).await, self.node("second", 2).await);
        let token = operator(first.http()).await;
        for node in [&first, &second] {
            node.sees(&token, &[("first", "up"), ("second", "up")]).await;
        }
        (first, second, token)
    }

    /// Starts three nodes, and waits until each sees all; returns them with the operator's token.
    pub async fn three(&self) -> ([Node; 3], String) {
        let mut nodes = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            nodes.push(self.node(name, at as u8 + 1).await);
        }
        let token = operator(nodes[0].http()).await;
        for node in &nodes {
            node.sees(&token, &ALL_UP).await;
        }
        (nodes.try_into().ok().unwrap(), token)
    }

    /// Starts a node on the data of an earlier one.
    pub async fn node_on(&self, name: &'static str, host: u8, data: TempDir) -> Node {
        let config = self.config(name, host, &data);
        let start = Start { config, log: self.log, files_max: None, env: Vec::new() };
        Node { served: Served::with(data.path(), start).await, name, data }
    }

    pub fn config(&self, name: &str, host: u8, data: &TempDir) -> String {
        let edge = match self.has_edge {
            true => format!("listen = \"127.0.0.{host}:0\"\nkey = \"{KEY}\"\n"),
            false => String::new(),
        };
        let tls = self.tls.as_ref().map(|files| {
            let file = |file: &str| files.join(file).display().to_string();
            format!(
                "tls_certificate = \"{}\"\ntls_key = \"{}\"\ntls_authority = \"{}\"\n",
                file(&format!("{name}.pem")),
                file(&format!("{name}.key")),
                file("authority.pem")
            )
        });
        let edge = edge + &tls.unwrap_or_default();
        format!(
            "[database]\nurl = \"{}\"\n[sip]\nlisten = [\"udp://127.0.0.{host}:0\", \"tcp://127.0.0.{host}:0\"]\n\
             [media]\nports = \"12000-31999\"\nworkers = 1\nreal_time = false\n{}\
             [node]\nname = \"{name}\"\ndata_dir = \"{}\"\nbusy_cpu_percent = 0\nbusy_late_percent = 0\n\
             [http]\nlisten = \"127.0.0.{host}:0\"\n[cluster]\nnats = \"{}\"\nlost_after_seconds = {}\n{edge}{}",
            self.database_url,
            self.media,
            data.path().display(),
            self.nats_url,
            self.lost_after_s,
            self.more
        )
    }

    /// Runs a command of the program with the configuration of a node; returns its exit code, stdout and stderr. One
    /// that does not end is stopped, and its exit code is [`STOPPED`].
    pub fn command(&self, args: &[&str], config: &str) -> (i32, String, String) {
        let file = self.dir.path().join("command.toml");
        std::fs::write(&file, config).unwrap();
        let output = Command::new("timeout")
            .arg(COMMAND_SECONDS_MAX)
            .arg(program_file())
            .args(args)
            .arg("--config")
            .arg(&file)
            .env_remove("RUST_LOG")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Drains a node by the configuration of another one; returns what the command prints. It is repeated, because it
    /// finds no node when NATS is late.
    pub async fn drain(&self, node: &str, config: &str) -> String {
        let (out, err) = found("the drain", async || {
            let (code, out, err) = self.command(&["drain", "--node", node], config);
            if code != 0 {
                eprintln!("drain: exit code {code}: {err}");
            }
            (code == 0).then_some((out, err))
        })
        .await;
        assert_eq!(err, "");
        out
    }
}

impl Node {
    pub fn http(&self) -> SocketAddr {
        self.served.http
    }

    /// The node's page of metrics.
    pub async fn metrics(&self) -> String {
        Ask::new("GET", "/metrics").send(self.http()).await.text
    }

    /// The value of a metric with these labels, in the text form.
    pub async fn metric(&self, name: &str) -> u64 {
        let metrics = self.metrics().await;
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name} is missing")).parse().unwrap()
    }

    /// The states of the nodes as this one reports them, by name. Empty while it has no database.
    pub async fn states(&self, token: &str) -> Vec<(String, String)> {
        let answer = Ask::new("GET", "/api/v1/nodes").bearer(token).send(self.http()).await;
        if answer.status == 503 {
            return Vec::new();
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let nodes = answer.json()["items"].as_array().unwrap().clone();
        nodes.iter().map(|node| (text(&node["name"]), text(&node["state"]))).collect()
    }

    /// Waits until this node sees the others in these states.
    pub async fn sees(&self, token: &str, expected: &[(&str, &str)]) {
        found(&format!("{}: {expected:?}", self.name), async || {
            let states = self.states(token).await;
            let states: Vec<_> = states.iter().map(|(name, state)| (name.as_str(), state.as_str())).collect();
            (states == expected).then_some(())
        })
        .await;
    }
}

/// A room with PINs, and a number that prompts for the number of a room.
const ROOMS: &str = "[[organisations.rooms]]\nname = \"Board\"\nnumber = \"301\"\nparticipant_pin = \"4711\"\n\
     moderator_pin = \"0815\"\n[[organisations.numbers]]\nnumber = \"+442079460002\"\ndestination = { conference = true }\n";

/// The names of three nodes.
pub const NAMES: [&str; 3] = ["first", "second", "third"];
/// The states when each node sees all of them up.
pub const ALL_UP: [(&str, &str); 3] = [("first", "up"), ("second", "up"), ("third", "up")];
/// The exit code of a command that was stopped (coreutils `timeout`).
pub const STOPPED: i32 = 124;
/// Longer than any command runs on a busy machine.
const COMMAND_SECONDS_MAX: &str = "60";
/// The key that the nodes share.
const KEY: &str = "a key that all nodes of the tests share";

/// Repeats a request until every node that it concerns has answered in time.
pub async fn whole(http: SocketAddr, ask: &Ask) -> Answer {
    found("an answer of all nodes", async || {
        let answer = ask.send(http).await;
        (answer.status != 503 && !answer.head.contains("x-sidetone-missing")).then_some(answer)
    })
    .await
}

/// The token of the operator; every node accepts it.
pub async fn operator(http: SocketAddr) -> String {
    let login = json!({"email": "root@acme.test", "password": "a very good password"});
    let answer = Ask::new("POST", "/api/v1/auth/login").json(&login).send(http).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["token"].as_str().unwrap().to_owned()
}
