//! Registrations with a trunk: exactly one node makes each.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use sidetone_model::ids::NodeId;
use sidetone_model::rendezvous;
use sidetone_store::Store;
use tokio::net::UdpSocket;
use uuid::Uuid;

use super::site::{Cluster, Node};
use crate::common::site::{declare_in, found};
use crate::service::client::Ask;
use crate::service::idempotency::directory;

/// A registrar over UDP that accepts every client: whether each host is registered.
#[derive(Clone, Default)]
struct Registrar(Arc<Mutex<BTreeMap<IpAddr, bool>>>);

impl Registrar {
    async fn start() -> (Self, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let registrar = Registrar::default();
        let contacts = registrar.clone();
        tokio::spawn(async move {
            let mut bytes = vec![0; 4_096];
            while let Ok((len, from)) = socket.recv_from(&mut bytes).await {
                let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
                let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
                if text.starts_with("REGISTER ") {
                    contacts.0.lock().insert(from.ip(), line("Expires: ") != "Expires: 0");
                }
                let kept = ["Via: ", "From: ", "Call-ID: ", "CSeq: ", "Expires: ", "Contact: "].map(line);
                let lines = kept.iter().filter(|line| !line.is_empty()).map(|line| format!("{line}\r\n"));
                let answer = format!(
                    "SIP/2.0 200 OK\r\n{}{};tag=r\r\nContent-Length: 0\r\n\r\n",
                    lines.collect::<String>(),
                    line("To: ")
                );
                let _ = socket.send_to(answer.as_bytes(), from).await;
            }
        });
        (registrar, address)
    }

    /// The hosts that are registered.
    fn registered(&self) -> Vec<IpAddr> {
        self.0.lock().iter().filter(|(_, is_registered)| **is_registered).map(|(host, _)| *host).collect()
    }
}

async fn get(node: &Node, path: &str, token: &str) -> Value {
    let answer = Ask::new("GET", format!("/api/v1{path}")).bearer(token).send(node.http()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Waits until a node shows the registration.
async fn shows_it(node: &Node, trunk: &str, token: &str) {
    found("the registration", async || {
        let status = get(node, &format!("/trunks/{trunk}/status"), token).await;
        (status["registration"]["state"] == "registered").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_registers_with_a_trunk_and_another_one_when_it_dies() {
    let Some(cluster) = Cluster::start().await else { return };
    let (registrar, address) = Registrar::start().await;
    let trunk = format!(
        "[[trunks]]\nname = \"carrier\"\naddress = \"sip:{address}\"\nusername = \"acme\"\npassword = \"a long secret\"\n\
         register = true\n"
    );
    let store = Store::open(&cluster.database.database).await.unwrap();
    declare_in(&store, &format!("{}{trunk}", directory())).await;
    store.close().await;
    let (first, second, token) = cluster.two().await;
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    let trunk = id(&get(&first, "/trunks", &token).await["items"][0]);
    let nodes = get(&first, "/nodes", &token).await["items"].as_array().unwrap().clone();
    let nodes: Vec<NodeId> = nodes.iter().map(|node| id(node).parse().unwrap()).collect();
    let home = rendezvous::home(nodes.iter().copied(), trunk.parse::<Uuid>().unwrap());
    // They are listed by name.
    let (home, other) = if home == Some(nodes[0]) { (first, second) } else { (second, first) };
    found("the home alone is registered", async || {
        (registrar.registered() == [home.http().ip()]).then_some(())
    })
    .await;
    for node in [&home, &other] {
        shows_it(node, &trunk, &token).await;
    }
    home.served.kill();
    found("the other node is registered", async || {
        registrar.registered().contains(&other.http().ip()).then_some(())
    })
    .await;
    shows_it(&other, &trunk, &token).await;
}
