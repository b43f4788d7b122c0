//! A rolling upgrade of three nodes under 20 calls/s.
//!
//! `SIDETONE_BINARY=$PWD/target/release/sidetone cargo test --test engine -- long_rolling --ignored --nocapture` runs it
//! with a release build of the nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_phone::{Answering, CallPlan, Phone};
use tokio::sync::watch;

use super::kills::setting;
use super::long_kills::answered_calls;
use super::rate::Rate;
use super::site::{ALL_UP, Cluster, NAMES, Node};
use crate::common::site::{found, phone_config, registered, within};

const CALLERS: [&str; 3] = ["1001", "1002", "1003"];
const CALLEES: [&str; 3] = ["1004", "1005", "1006"];
/// New calls a second at all nodes.
const RATE: f64 = 20.0;
const HOLD: Duration = Duration::from_secs(3);
/// How long calls continue at all three nodes between two upgrades.
const PAUSE: Duration = Duration::from_secs(5);

/// The phones of a pair: they register at another node when theirs is drained.
type Pair = Arc<(Phone, Phone)>;

async fn pair(node: &Node, at: usize) -> Pair {
    let answering = Answering::Answer { after: Duration::ZERO, talk: None };
    let phone = async |number| registered(phone_config(node.served.sip, number, answering.clone())).await;
    Arc::new((phone(CALLERS[at]).await, phone(CALLEES[at]).await))
}

/// The status of a call of a pair. A draining node refuses it, and it is placed again at the pair's new node, as
/// a proxy in front of the nodes does.
async fn call(mut pairs: watch::Receiver<Pair>, at: usize) -> u16 {
    loop {
        let pair = Arc::clone(&pairs.borrow_and_update());
        let plan = CallPlan { talk_time: Some(HOLD), ..CallPlan::to(CALLEES[at]) };
        match pair.0.call(plan).await.map_or(0, |outcome| outcome.status) {
            503 => pairs.changed().await.unwrap(),
            status => return status,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: three upgrades under 20 calls/s, some minutes; needs a release build of the nodes"]
async fn long_rolling_upgrade_under_twenty_calls_a_second() {
    let Some(mut cluster) = Cluster::start().await else { return };
    cluster.log = "error";
    let (nodes, token) = cluster.three().await;
    let mut nodes = nodes.map(Some);
    let (mut present, mut rates) = (Vec::new(), Vec::new());
    for (at, node) in nodes.iter().enumerate() {
        let (moved, pairs) = watch::channel(pair(node.as_ref().unwrap(), at).await);
        rates.push(Rate::begin(RATE / NAMES.len() as f64, move |_| call(pairs.clone(), at)));
        present.push(moved);
    }
    let (began, mut places) = (Instant::now(), [0, 1, 2]);
    for round in 0..setting("SIDETONE_ROLLING_ROUNDS", 1) * nodes.len() as u64 {
        tokio::time::sleep(PAUSE).await;
        let drained = round as usize % nodes.len();
        let next = (drained + 1) % nodes.len();
        let config = cluster.config(NAMES[next], next as u8 + 1, &nodes[next].as_ref().unwrap().data);
        cluster.drain(NAMES[drained], &config).await;
        for at in (0..places.len()).filter(|at| places[*at] == drained) {
            present[at].send_replace(pair(nodes[next].as_ref().unwrap(), at).await);
        }
        places = places.map(|place| if place == drained { next } else { place });
        let Node { mut served, data, .. } = nodes[drained].take().unwrap();
        let status = within("the end of the node", served.ended()).await;
        assert!(status.success(), "{status}");
        let back = cluster.node_on(NAMES[drained], drained as u8 + 1, data).await;
        back.sees(&token, &ALL_UP).await;
        nodes[drained] = Some(back);
        // As with proxies and DNS: the node gets phones again.
        present[drained].send_replace(pair(nodes[drained].as_ref().unwrap(), drained).await);
        places[drained] = drained;
    }
    tokio::time::sleep(PAUSE).await;
    let took = began.elapsed();
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for rate in rates {
        for (status, count) in rate.ends().await {
            *statuses.entry(status).or_default() += count;
        }
    }
    let answered = statuses.get(&200).copied().unwrap_or_default();
    eprintln!("{} upgrades under {RATE} calls/s for {:.0} s: {statuses:?}", nodes.len(), took.as_secs_f64());
    assert_eq!(statuses.keys().collect::<Vec<_>>(), [&200], "calls failed: {statuses:?}");
    let url = cluster.database.url();
    found(&format!("{answered} records"), async || {
        let counts = answered_calls(&url).await;
        let recorded: u64 = CALLERS.iter().filter_map(|caller| counts.get(*caller)).sum();
        assert!(recorded <= answered, "{recorded} records of {answered} calls");
        (recorded == answered).then_some(())
    })
    .await;
}
