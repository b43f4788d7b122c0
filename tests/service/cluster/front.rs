//! kamailio with the configuration of `deploy/cluster` in front of two nodes.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use sidetone_phone::Phone;

use super::calls::{items, read};
use super::site::{Cluster, Node};
use crate::common::records::TempDir;
use crate::common::site::{answering, found, phone_config, registered, talking, within};

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/cluster/kamailio.cfg");

/// A running kamailio; killed when dropped.
struct Front {
    process: Child,
    address: SocketAddr,
    _dir: TempDir,
}

impl Front {
    /// Starts it before these nodes; `None` with a notice where it is not installed.
    async fn start(nodes: &[&Node]) -> Option<Front> {
        let there = Command::new("kamailio").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if there.is_err() {
            eprintln!("NOTICE: kamailio in front of nodes is NOT tested: apt-get install kamailio");
            return None;
        }
        let dir = TempDir::new();
        let list = dir.path().join("nodes.list");
        let lines: String = nodes.iter().map(|node| format!("1 sip:{}\n", node.served.sip)).collect();
        std::fs::write(&list, lines).unwrap();
        // kamailio does not accept port 0, so a free port of this address is chosen.
        let address = UdpSocket::bind("127.0.0.9:0").unwrap().local_addr().unwrap();
        let process = Command::new("kamailio")
            .args(["-f", CONFIG, "-DD", "-E", "-m", "64", "-M", "8", "-l"])
            .arg(format!("udp:{address}"))
            .arg("-A")
            .arg(format!("NODES=\"{}\"", list.display()))
            .arg("-Y")
            .arg(dir.path())
            .arg("-P")
            .arg(dir.path().join("pid"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Front { process, address, _dir: dir })
    }

    /// A phone that registers through it, as soon as it answers.
    async fn phone(&self, number: &'static str) -> Arc<Phone> {
        let phone = Phone::start(phone_config(self.address, number, answering())).await.unwrap();
        found("a registration", async || phone.register(number).await.ok()).await;
        Arc::new(phone)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // Its children end with it.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// Calls until it succeeds: the proxy notices a dead node within seconds.
async fn connects(caller: &Phone, number: &str) {
    found("a call through the proxy", async || {
        let outcome = within("the call", caller.call(talking(number, 300))).await.ok()?;
        (outcome.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phones_behind_kamailio_are_served_by_the_node_that_is_there() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, mut second, token) = cluster.two().await;
    let Some(front) = Front::start(&[&first, &second]).await else { return };
    let (one, two) = (front.phone("1001").await, front.phone("1002").await);
    connects(&one, "1002").await;
    connects(&two, "1001").await;
    // A phone without the proxy reaches them, too.
    let direct = registered(phone_config(first.served.sip, "1003", answering())).await;
    connects(&direct, "1002").await;
    found("three answered calls", async || {
        let all = items(&read(first.http(), "/cdrs?limit=100").await);
        (all.iter().filter(|one| one["answered_at"].is_string()).count() == 3).then_some(())
    })
    .await;

    // One node is drained: calls are sent to the other one.
    let config = cluster.config("first", 1, &first.data);
    cluster.drain("second", &config).await;
    let status = within("the end of the node", second.served.ended()).await;
    assert!(status.success(), "{status}");
    first.sees(&token, &[("first", "up"), ("second", "left")]).await;
    for (phone, number) in [(&one, "1001"), (&two, "1002")] {
        found("a registration at the other node", async || phone.register(number).await.ok()).await;
    }
    connects(&one, "1002").await;
    connects(&two, "1001").await;
}
