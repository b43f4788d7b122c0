//! The membership of nodes: seen by all, lost, isolated, back.

use std::time::{Duration, Instant};

use super::nats::{Nats, program};
use super::site::{Cluster, STOPPED, operator};
use crate::common::records::TempDir;
use crate::common::site::{found, within};
use crate::service::client::Ask;
use crate::service::idempotency::ADMIN;
use crate::service::served::{Served, Start};
use crate::service::two_nodes::Line;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_see_each_other_a_death_an_order_to_stop_and_a_return() {
    let Some(cluster) = Cluster::start().await else { return };
    let first = cluster.node("first", 1).await;
    let second = cluster.node("second", 2).await;
    let third = cluster.node("third", 3).await;
    let token = operator(first.http()).await;
    let all_up = [("first", "up"), ("second", "up"), ("third", "up")];
    for node in [&first, &second, &third] {
        node.sees(&token, &all_up).await;
    }
    // Keys belong to organisations; only the operator sees nodes.
    assert_eq!(Ask::new("GET", "/api/v1/nodes").bearer(ADMIN).send(first.http()).await.status, 403);
    let page = Ask::new("GET", "/api/v1/nodes?limit=1&offset=1").bearer(&token).send(second.http()).await;
    let page = page.json();
    assert_eq!((page["total"].as_u64(), page["items"].as_array().unwrap().len()), (Some(3), 1), "{page}");
    let node = &page["items"][0];
    assert_eq!((node["name"].as_str(), node["this"].as_bool()), (Some("second"), Some(true)), "{page}");
    assert_eq!(node["http"], format!("http://{}", second.http()));
    assert_eq!(node["sip"][0], format!("udp://{}", second.served.sip));

    let config = cluster.config("first", 1, &first.data);
    // When NATS is late, the command finds fewer nodes.
    let (code, err) = found("three nodes that are up", async || {
        let (code, out, err) = cluster.command(&["nodes"], &config);
        (out.matches(" up ").count() == 3).then_some((code, err))
    })
    .await;
    assert_eq!((code, err.as_str()), (0, ""));
    let (_, out, _) = cluster.command(&["check"], &config);
    assert!(out.contains("cluster sidetone at nats://127.0.0.1:"), "{out}");

    let killed = Instant::now();
    let data = third.data;
    third.served.kill();
    first.sees(&token, &[("first", "up"), ("second", "up"), ("third", "gone")]).await;
    second.sees(&token, &[("first", "up"), ("second", "up"), ("third", "gone")]).await;
    eprintln!("a killed node is gone for both others after {:.1} s", killed.elapsed().as_secs_f64());
    let metrics = first.metrics().await;
    assert!(metrics.contains("sidetone_cluster_node_up{node=\"third\"} 0"), "{metrics}");
    assert!(metrics.contains("sidetone_cluster_nodes{state=\"up\"} 2"), "{metrics}");
    let code = found("a node that is gone", async || {
        let (code, out, _) = cluster.command(&["nodes"], &config);
        (out.matches(" gone ").count() == 1).then_some(code)
    })
    .await;
    assert_eq!(code, 1);

    let third = cluster.node_on("third", 3, data).await;
    first.sees(&token, &all_up).await;
    let mut second = second;
    second.served.signal("TERM");
    within("the end of the second node", second.served.ended()).await;
    first.sees(&token, &[("first", "up"), ("second", "left"), ("third", "up")]).await;
    third.sees(&token, &[("first", "up"), ("second", "left"), ("third", "up")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_nats_does_not_reach_says_so_goes_on_and_comes_back() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let line = Line::to(cluster.nats.address).await;
    let first = cluster.node("first", 1).await;
    let direct = std::mem::replace(&mut cluster.nats_url, format!("nats://{}", line.address));
    let second = cluster.node("second", 2).await;
    let token = operator(first.http()).await;
    let all_up = [("first", "up"), ("second", "up")];
    first.sees(&token, &all_up).await;
    second.sees(&token, &all_up).await;
    let ready = async |http| Ask::new("GET", "/readyz").send(http).await;
    assert!(!ready(second.http()).await.text.contains("cluster"));

    line.is_whole.send_replace(false);
    first.sees(&token, &[("first", "up"), ("second", "gone")]).await;
    // The isolated node does not declare any other one lost.
    second.sees(&token, &[("first", "unknown"), ("second", "up")]).await;
    let answer = found("the reason", async || {
        let answer = ready(second.http()).await;
        answer.text.contains("cluster: NATS does not answer").then_some(answer)
    })
    .await;
    assert_eq!(answer.status, 200, "it goes on: {answer:?}");
    assert!(!ready(first.http()).await.text.contains("cluster"));
    second.served.says("NATS does not answer: this node goes on", 1).await;
    let metrics = second.metrics().await;
    assert!(metrics.contains("sidetone_cluster_linked 0"), "{metrics}");

    line.is_whole.send_replace(true);
    let healed = Instant::now();
    second.sees(&token, &all_up).await;
    first.sees(&token, &all_up).await;
    eprintln!("a node that was cut off is back {:.1} s after the cut", healed.elapsed().as_secs_f64());
    assert!(!ready(second.http()).await.text.contains("cluster"));

    // The server loses its memory, and with it the bucket.
    let port = cluster.nats.address.port();
    cluster.nats.kill();
    second.served.says("NATS does not answer: this node goes on", 2).await;
    cluster.nats = Nats::start(&program().unwrap(), port).await;
    first.sees(&token, &all_up).await;
    second.sees(&token, &all_up).await;
    assert_eq!(
        second.served.said().matches("this node goes on with its own").count(),
        2,
        "one line for each time"
    );
    cluster.nats_url = direct;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_of_one_name_does_not_start() {
    let Some(cluster) = Cluster::start().await else { return };
    let first = cluster.node("same", 1).await;
    first.served.says("this node is a member of its cluster", 1).await;
    let token = operator(first.http()).await;
    first.sees(&token, &[("same", "up")]).await;
    let data = TempDir::new();
    let config = cluster.config("same", 2, &data);
    // It starts when the first process sends no heartbeat for 2.5 s.
    let (code, out, err) = found("the end of the second process", async || {
        let ended = cluster.command(&["serve"], &config);
        if ended.0 == STOPPED {
            // Until the heartbeat of the first process is the last one again.
            tokio::time::sleep(Duration::from_secs(3)).await;
            return None;
        }
        Some(ended)
    })
    .await;
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(
        err.contains("[node] name \"same\": another process of the cluster runs under this name"),
        "{err}"
    );
    first.sees(&token, &[("same", "up")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_starts_without_nats_and_joins_when_it_is_there() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let port = cluster.nats.address.port();
    cluster.nats.kill();
    let data = TempDir::new();
    let config = cluster.config("first", 1, &data);
    let (_, _, err) = cluster.command(&["check"], &config);
    assert!(err.contains("warning: [cluster] nats nats://127.0.0.1:"), "{err}");
    let (code, _, err) = cluster.command(&["nodes"], &config);
    assert_eq!(code, 1);
    assert!(err.contains("check that a NATS server with JetStream runs there"), "{err}");
    let start = Start { config, log: "info", files_max: None, env: Vec::new() };
    let served = Served::with(data.path(), start).await;
    let ready = Ask::new("GET", "/readyz").send(served.http).await;
    assert_eq!(ready.status, 200, "{ready:?}");
    cluster.nats = Nats::start(&program().unwrap(), port).await;
    served.says("this node is a member of its cluster", 1).await;
}
