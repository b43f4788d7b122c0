//! One engine, or several nodes of a cluster behind one address for HTTP; `SIDETONE_TEST_NODES` sets the number.
//!
//! With `SIDETONE_TEST_NODES=3` each request over HTTP goes to the next node in turn, while phones and carriers stay at the
//! first one. It needs `SIDETONE_TEST_DATABASE=postgres`, and `SIDETONE_TEST_NATS` with the URL of a NATS server with
//! JetStream; `.ci/three-nodes` starts both.
#![allow(dead_code, unreachable_pub, reason = "benches and other crates use a part")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sidetone::app::Engine;
use sidetone::config::Config;
use sidetone_cluster::nats::{ClusterSettings, EdgeSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use super::waiting::PATIENCE;

/// How many nodes a test runs on: one, unless `SIDETONE_TEST_NODES` says otherwise.
pub fn count() -> usize {
    match std::env::var("SIDETONE_TEST_NODES").as_deref() {
        Err(_) | Ok("" | "1") => 1,
        Ok(text) => text.parse().expect("SIDETONE_TEST_NODES is a number of nodes"),
    }
}

/// An engine with the nodes beside it.
pub struct Nodes {
    /// The node of the phones.
    pub first: Engine,
    /// The address for HTTP: each request is answered by the next node.
    pub http: SocketAddr,
    others: Vec<Engine>,
}

impl Nodes {
    /// Starts the engine that `config` describes, and the nodes beside it, with their data below that of the first.
    pub async fn start(config: &Config) -> Nodes {
        // The future of an engine's start is large, and the threads of tests have small stacks.
        if count() == 1 {
            let first = Box::pin(Engine::start(config)).await.unwrap();
            return Nodes { http: first.http, first, others: Vec::new() };
        }
        let nats = std::env::var("SIDETONE_TEST_NATS").expect("SIDETONE_TEST_NATS names a NATS server");
        let mut cluster = ClusterSettings::new(&nats).unwrap();
        cluster.name = Uuid::new_v4().simple().to_string();
        let edge = EdgeSettings { listen: ([127, 0, 0, 1], 0).into(), key: KEY.to_owned(), tls: None };
        cluster.edge = Some(edge);
        let mut config = config.clone();
        config.cluster = Some(cluster);
        let first = Box::pin(Engine::start(&config)).await.unwrap();
        let (data_dir, mut others) = (config.node.data_dir.clone(), Vec::new());
        // A test that configures few media ports means those of the first node.
        config.media.ports = 12_000..=31_999;
        for number in 2..=count() {
            config.node.name = format!("node-{number}");
            config.node.data_dir = data_dir.join(&config.node.name);
            others.push(Box::pin(Engine::start(&config)).await.unwrap());
        }
        let addresses = std::iter::once(first.http).chain(others.iter().map(|node| node.http));
        let http = round_robin(addresses.collect()).await;
        let nodes = Nodes { first, http, others };
        nodes.see_each_other().await;
        nodes
    }

    /// Waits until every node sees all others: before that a node does not know which one to query for live calls.
    async fn see_each_other(&self) {
        let up = format!("sidetone_cluster_nodes{{state=\"up\"}} {}\n", count());
        let addresses = std::iter::once(self.first.http).chain(self.others.iter().map(|node| node.http));
        for address in addresses {
            let seen = async {
                while !metrics(address).await.contains(&up) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(PATIENCE, seen).await.expect("the nodes see each other");
        }
    }

    /// Returns the first node and the others.
    pub fn into_parts(self) -> (Engine, Vec<Engine>) {
        (self.first, self.others)
    }
}

/// Stops nodes beside the first one, which has stopped.
pub async fn stop(others: Vec<Engine>) {
    for node in others {
        node.stop(Duration::ZERO).await;
    }
}

/// Waits until the nodes beside the first one know the phones of this many extensions. The wait is short in tests that
/// remove phones again.
pub async fn know_phones(others: &[Engine], extensions: usize) {
    let known = async {
        for node in others {
            while binding_entries(&metrics(node.http).await).is_none_or(|known| known < extensions) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    if tokio::time::timeout(KNOWN_MAX, known).await.is_err() {
        eprintln!("NOTICE: not all nodes know {extensions} extensions with a phone");
    }
}

fn binding_entries(metrics: &str) -> Option<usize> {
    let line = metrics.lines().find_map(|line| line.strip_prefix("sidetone_cluster_binding_entries "));
    line.and_then(|value| value.parse().ok())
}

async fn metrics(address: SocketAddr) -> String {
    let mut text = String::new();
    let Ok(mut stream) = TcpStream::connect(address).await else { return text };
    let ask = b"GET /metrics HTTP/1.0\r\n\r\n";
    // A node that is busy is queried again.
    let _ = stream.write_all(ask).await;
    let _ = stream.read_to_string(&mut text).await;
    text
}

/// An address at which each request of the API is passed to the next node. Requests about one process (metrics and
/// health) are passed to the first.
async fn round_robin(nodes: Vec<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (nodes, turn) = (Arc::new(nodes), Arc::new(AtomicUsize::new(0)));
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(pass(near, Arc::clone(&nodes), Arc::clone(&turn)));
        }
    });
    address
}

/// Passes one request on. The response closes the connection, so that the client opens a new one for the next
/// request, which another node answers.
async fn pass(mut near: TcpStream, nodes: Arc<Vec<SocketAddr>>, turn: Arc<AtomicUsize>) {
    let mut bytes = Vec::new();
    while head_len(&bytes).is_none() {
        match near.read_buf(&mut bytes).await {
            Ok(1..) => {}
            _ => return,
        }
    }
    let body = bytes.split_off(head_len(&bytes).unwrap_or_default());
    let path = bytes.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let node = match OF_PROCESSES.iter().any(|known| known.as_bytes() == path) {
        true => nodes[0],
        false => nodes[turn.fetch_add(1, Ordering::Relaxed) % nodes.len()],
    };
    let Ok(mut far) = TcpStream::connect(node).await else { return };
    let head = closing(&bytes);
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.split(), far.split());
    let up = async {
        let sent = async {
            far_out.write_all(&head).await?;
            far_out.write_all(&body).await?;
            copy(&mut near_in, &mut far_out).await?;
            far_out.shutdown().await
        };
        // A node that has refused a long body stops reading; the client still writes the rest.
        if sent.await.is_err() {
            let _ = copy(&mut near_in, &mut sink()).await;
        }
    };
    // Either end may disconnect in between.
    let down = async {
        let _ = copy(&mut far_in, &mut near_out).await;
        let _ = near_out.shutdown().await;
    };
    tokio::join!(up, down);
}

fn head_len(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// The head with `Connection: close` instead of the client's value, unless it requests a WebSocket.
fn closing(head: &[u8]) -> Vec<u8> {
    let is_named = |line: &&[u8], name: &str| {
        line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    let lines: Vec<&[u8]> = head.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.iter().any(|line| is_named(line, "upgrade:")) {
        return head.to_vec();
    }
    let mut kept: Vec<&[u8]> = lines.into_iter().filter(|line| !is_named(line, "connection:")).collect();
    kept.insert(1, b"Connection: close\r\n");
    kept.concat()
}

#[test]
fn the_proxy_ends_connections_and_leaves_the_rest_of_a_request_alone() {
    let head = b"GET /a HTTP/1.1\r\nHost: x\r\nconnection: keep-alive\r\nA: b\r\n\r\n";
    let expected = b"GET /a HTTP/1.1\r\nConnection: close\r\nHost: x\r\nA: b\r\n\r\n";
    assert_eq!(closing(head), expected);
    let upgrade = b"GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(closing(upgrade), upgrade);
}

/// Paths about one process.
const OF_PROCESSES: [&str; 3] = ["/metrics", "/readyz", "/healthz"];
/// The key that the nodes share.
const KEY: &str = "a key that all nodes of the tests share";
/// Nodes learn of each other's phones about 0.2 s after the registration.
const KNOWN_MAX: Duration = Duration::from_secs(5);
