//! Limits that all nodes enforce together: outbound calls of an organisation, and requests of a key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_phone::{Phone, PhoneConfig};
use sidetone_store::Store;
use tokio::task::JoinHandle;

use super::site::{Cluster, Node, operator};
use crate::common::site::{
    answering, calls, declare_in, found, open_end, phone_config, registered, talking, within,
};
use crate::service::client::Ask;
use crate::service::idempotency::directory;
use crate::service::two_nodes::Line;

/// Keys with few requests a minute: each is counted in one window only.
const SLOW_KEYS: [&str; 9] = [
    "tel_slow0001_0123456789abcdef0123456789abcdef",
    "tel_slow0002_0123456789abcdef0123456789abcdef",
    "tel_slow0003_0123456789abcdef0123456789abcdef",
    "tel_slow0004_0123456789abcdef0123456789abcdef",
    "tel_slow0005_0123456789abcdef0123456789abcdef",
    "tel_slow0006_0123456789abcdef0123456789abcdef",
    "tel_slow0007_0123456789abcdef0123456789abcdef",
    "tel_slow0008_0123456789abcdef0123456789abcdef",
    "tel_slow0009_0123456789abcdef0123456789abcdef",
];
const OTHER_KEY: &str = "tel_idle0001_0123456789abcdef0123456789abcdef";
const WORLD: &str = "+447700900123";

/// A phone that takes the calls of a trunk.
pub async fn carrier(node: std::net::SocketAddr) -> Phone {
    let config = phone_config(node, "carrier", answering());
    Phone::start(PhoneConfig { domain: "carrier.example".into(), ..config }).await.unwrap()
}

/// Declares a trunk, a limit of outbound calls, and keys with few requests a minute.
async fn limit(cluster: &Cluster, carrier: &Phone, outbound: u32) {
    let key = |name: &str, key: &str| {
        format!(
            "[[organisations.api_keys]]\nname = \"{name}\"\nkey = \"{key}\"\npreset = \"full\"\n\
             allow = [\"127.0.0.1\"]\nrate_per_minute = 30\n"
        )
    };
    let domain = "sip_domain = \"acme.test\"\n";
    let slow: String =
        SLOW_KEYS.into_iter().enumerate().map(|(at, text)| key(&format!("slow{at}"), text)).collect();
    let more = format!("{domain}max_outbound_calls = {outbound}\n{slow}{}", key("idle", OTHER_KEY));
    let text = directory().replacen(domain, &more, 1);
    let trunk = format!("[[trunks]]\nname = \"carrier\"\naddress = \"sip:{}\"\n", carrier.local());
    let store = Store::open(&cluster.database.database).await.unwrap();
    declare_in(&store, &format!("{text}{trunk}")).await;
    store.close().await;
}

/// An external call that stays up.
pub struct Outbound {
    phone: Arc<Phone>,
    pub placed: JoinHandle<()>,
}

impl Outbound {
    pub async fn of(phone: &Arc<Phone>) -> Outbound {
        let caller = Arc::clone(phone);
        let placed = tokio::spawn(async move { drop(caller.call(open_end(WORLD)).await) });
        calls(phone, 0, 1).await;
        Outbound { phone: Arc::clone(phone), placed }
    }

    pub async fn when_there_is_a_place(phone: &Arc<Phone>) -> Outbound {
        found("a place for a call", async || Outbound::attempt(phone).await).await
    }

    /// The call, or none when it is refused.
    pub async fn attempt(phone: &Arc<Phone>) -> Option<Outbound> {
        let caller = Arc::clone(phone);
        let mut placed = tokio::spawn(async move { drop(caller.call(open_end(WORLD)).await) });
        let mut state = phone.calls();
        tokio::select! {
            _ = state.wait_for(|calls| calls.up == 1) => {}
            _ = &mut placed => return None,
        }
        Some(Outbound { phone: Arc::clone(phone), placed })
    }

    pub async fn ends(self) {
        self.phone.hang_up().await.unwrap();
        within("the end of the call", self.placed).await.unwrap();
        // Otherwise the next call of this phone may take this one for its own.
        calls(&self.phone, 0, 0).await;
    }
}

async fn phone(node: &Node, number: &str) -> Arc<Phone> {
    Arc::new(registered(phone_config(node.served.sip, number, answering())).await)
}

/// The status of a refused call.
pub async fn refused(phone: &Phone) -> u16 {
    within("the refusal", phone.call(open_end(WORLD))).await.unwrap().status
}

/// Waits until every node counts together with all others: no node decides by its share any more.
pub async fn counts_together(nodes: &[&Node], phone: &Arc<Phone>) {
    found("decisions of all nodes", async || {
        let before = by_share(nodes).await;
        Outbound::of(phone).await.ends().await;
        (by_share(nodes).await == before).then_some(())
    })
    .await;
}

/// The number of decisions that these nodes have made by their shares.
async fn by_share(nodes: &[&Node]) -> u64 {
    let mut sum = 0;
    for node in nodes {
        sum += node.metric("sidetone_cluster_limit_decisions_total{by=\"share\"}").await;
    }
    sum
}

/// A call of this phone that the home of the limit admits. A decision by the share of a node is repeated: the home was
/// late, and learns of such a call only afterwards.
async fn home_admits(nodes: &[&Node], phone: &Arc<Phone>) -> Outbound {
    found("a decision of the home", async || {
        let before = by_share(nodes).await;
        let call = Outbound::attempt(phone).await;
        if by_share(nodes).await == before {
            return Some(call.expect("the home admits the call"));
        }
        if let Some(call) = call {
            call.ends().await;
        }
        None
    })
    .await
}

/// The same as soon as the home has a place.
async fn home_has_a_place(nodes: &[&Node], phone: &Arc<Phone>) -> Outbound {
    found("a place for a call", async || {
        let before = by_share(nodes).await;
        let call = Outbound::attempt(phone).await?;
        if by_share(nodes).await == before {
            return Some(call);
        }
        call.ends().await;
        None
    })
    .await
}

/// The home of the limit refuses a call of this phone, which may have another one. A decision by the share of a node
/// is repeated.
async fn home_refuses(nodes: &[&Node], phone: &Phone) {
    found("a decision of the home", async || {
        let before = by_share(nodes).await;
        let outcome = within("the call", phone.call(talking(WORLD, 0))).await.unwrap();
        if by_share(nodes).await != before {
            return None;
        }
        assert_eq!(outcome.status, 503);
        Some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outbound_calls_of_three_nodes_are_limited_together() {
    let Some(cluster) = Cluster::start().await else { return };
    let carrier = carrier("127.0.0.1:9".parse().unwrap()).await;
    limit(&cluster, &carrier, 2).await;
    let (first, second) = (cluster.node("first", 1).await, cluster.node("second", 2).await);
    let third = cluster.node("third", 3).await;
    let token = operator(first.http()).await;
    let all = [("first", "up"), ("second", "up"), ("third", "up")];
    for node in [&first, &second, &third] {
        node.sees(&token, &all).await;
    }
    let [one, two, three] =
        [phone(&first, "1001").await, phone(&second, "1002").await, phone(&third, "1003").await];
    let nodes = [&first, &second, &third];
    for phone in [&one, &two, &three] {
        counts_together(&nodes, phone).await;
    }
    let at_first = home_admits(&nodes, &one).await;
    let at_second = home_admits(&nodes, &two).await;
    // Two are up at other nodes.
    home_refuses(&nodes, &three).await;
    home_refuses(&nodes, &one).await;
    at_first.ends().await;
    // The place becomes free as soon as the message of that arrives.
    let began = Instant::now();
    let at_third = home_has_a_place(&nodes, &three).await;
    eprintln!("a place was free again after {:.2} s at most", began.elapsed().as_secs_f64());
    home_refuses(&nodes, &one).await;

    // The second node dies: its call is no longer counted when the others notice.
    at_second.placed.abort();
    second.served.kill();
    first.sees(&token, &[("first", "up"), ("second", "gone"), ("third", "up")]).await;
    let nodes = [&first, &third];
    let at_first = home_has_a_place(&nodes, &one).await;
    let four = phone(&third, "1004").await;
    // Not counted twice, and not less.
    home_refuses(&nodes, &four).await;
    at_third.ends().await;
    at_first.ends().await;
}

/// Whether both phones are refused, and no node decided that by its share.
async fn all_are_refused(nodes: [&Node; 2], phones: [&Arc<Phone>; 2]) -> bool {
    let before = by_share(&nodes).await;
    let mut refused = true;
    for phone in phones {
        if let Some(call) = Outbound::attempt(phone).await {
            refused = false;
            call.ends().await;
        }
    }
    refused && by_share(&nodes).await == before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_node_that_is_cut_off_from_nats_stay_counted_until_it_dies() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let carrier = carrier("127.0.0.1:9".parse().unwrap()).await;
    limit(&cluster, &carrier, 2).await;
    let (first, second) = (cluster.node("first", 1).await, cluster.node("second", 2).await);
    let line = Line::to(cluster.nats.address).await;
    cluster.nats_url = format!("nats://{}", line.address);
    let third = cluster.node("third", 3).await;
    let token = operator(first.http()).await;
    let nodes = [&first, &second];
    for node in [&first, &second, &third] {
        node.sees(&token, &[("first", "up"), ("second", "up"), ("third", "up")]).await;
    }
    let [one, two, three, four] = [
        phone(&first, "1001").await,
        phone(&second, "1002").await,
        phone(&third, "1003").await,
        phone(&third, "1004").await,
    ];
    for phone in [&one, &two, &three] {
        counts_together(&[&first, &second, &third], phone).await;
    }
    let all = [&first, &second, &third];
    let held = [home_admits(&all, &three).await, home_admits(&all, &four).await];
    line.is_whole.send_replace(false);
    for node in nodes {
        node.sees(&token, &[("first", "up"), ("second", "up"), ("third", "gone")]).await;
    }
    found("the refusals of the home", async || all_are_refused(nodes, [&one, &two]).await.then_some(()))
        .await;
    // For longer than a dead node is counted.
    let began = Instant::now();
    let mut rounds = tokio::time::interval(Duration::from_millis(500));
    while began.elapsed() < Duration::from_secs(9) {
        rounds.tick().await;
        for phone in [&one, &two] {
            home_refuses(&nodes, phone).await;
        }
    }
    assert_eq!((three.calls().borrow().up, four.calls().borrow().up), (1, 1), "they were up all the time");
    // It dies: its heartbeat in the database stops.
    held.into_iter().for_each(|call| call.placed.abort());
    third.served.kill();
    let died = Instant::now();
    let calls = [Outbound::when_there_is_a_place(&one).await, Outbound::when_there_is_a_place(&two).await];
    eprintln!("its places were free {:.1} s after its death", died.elapsed().as_secs_f64());
    for call in calls {
        call.ends().await;
    }
}

/// The number of `count` requests with a key that these nodes accept, in turns.
async fn let_through(nodes: &[&Node], key: &str, count: usize) -> usize {
    let mut allowed = 0;
    for at in 0..count {
        let node = nodes[at % nodes.len()];
        let answer = Ask::new("GET", "/api/v1/teams").bearer(key).send(node.http()).await;
        assert!(matches!(answer.status, 200 | 429), "{answer:?}");
        assert!(answer.head.contains("x-ratelimit-limit: 30"), "{answer:?}");
        allowed += usize::from(answer.status == 200);
    }
    allowed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requests_of_a_key_are_counted_by_all_nodes_and_by_the_share_without_nats() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let carrier = carrier("127.0.0.1:9".parse().unwrap()).await;
    limit(&cluster, &carrier, 2).await;
    let first = cluster.node("first", 1).await;
    let line = Line::to(cluster.nats.address).await;
    cluster.nats_url = format!("nats://{}", line.address);
    let second = cluster.node("second", 2).await;
    let token = operator(first.http()).await;
    for node in [&first, &second] {
        node.sees(&token, &[("first", "up"), ("second", "up")]).await;
    }
    // After a late answer of the home, a node decides by its share for a second.
    let (both, mut keys) = ([&first, &second], SLOW_KEYS.into_iter());
    let allowed = found("a window counted by the home alone", async || {
        let (key, before) = (keys.next().expect("a key for each attempt"), by_share(&both).await);
        let began = Instant::now();
        let allowed = let_through(&both, key, 60).await;
        assert!(began.elapsed() < Duration::from_secs(50), "the machine is too slow for one window");
        if by_share(&both).await != before {
            tokio::time::sleep(Duration::from_secs(1)).await;
            return None;
        }
        Some(allowed)
    })
    .await;
    assert_eq!(allowed, 30, "the limit of one node");

    // A node that is cut off uses its own share.
    line.is_whole.send_replace(false);
    found("the isolation", async || {
        second.metrics().await.contains("sidetone_cluster_linked 0\n").then_some(())
    })
    .await;
    let shared = second.metric("sidetone_cluster_limit_decisions_total{by=\"share\"}").await;
    assert_eq!(let_through(&[&second], OTHER_KEY, 30).await, 15, "half of the limit");
    assert!(second.metric("sidetone_cluster_limit_decisions_total{by=\"share\"}").await > shared);
}

/// The balance of the one organisation in cents, as a node shows it.
async fn balance(node: &Node, token: &str) -> i64 {
    let answer = Ask::new("GET", "/api/v1/organisations").bearer(token).send(node.http()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.json()["items"][0]["balance"].as_str().unwrap().to_owned();
    text.replace('.', "").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credit_is_spent_once_and_not_once_at_every_node() {
    let Some(cluster) = Cluster::start().await else { return };
    let carrier = carrier("127.0.0.1:9".parse().unwrap()).await;
    let declare = async |credit: u32| {
        let domain = "sip_domain = \"acme.test\"\n";
        let text =
            directory().replacen(domain, &format!("{domain}currency = \"EUR\"\ncredit = \"{credit}\"\n"), 1);
        let trunk = format!("[[trunks]]\nname = \"carrier\"\naddress = \"sip:{}\"\n", carrier.local());
        let rate = "[[sell_rates]]\norganisation = \"Acme\"\nprefix = \"+44\"\nper_minute = \"1\"\n\
                    currency = \"EUR\"\nincrements = [60, 60]\n";
        let store = Store::open(&cluster.database.database).await.unwrap();
        declare_in(&store, &format!("{text}{trunk}{rate}")).await;
        store.close().await;
    };
    declare(1).await;
    let (first, second, token) = cluster.two().await;
    let [one, two] = [phone(&first, "1001").await, phone(&second, "1002").await];
    // The first minute reserves the entire credit.
    let call = Outbound::of(&one).await;
    assert_eq!(refused(&two).await, 402, "the other node has it");
    call.ends().await;
    found("the charge", async || (balance(&second, &token).await == 0).then_some(())).await;
    for phone in [&one, &two] {
        assert_eq!(refused(phone).await, 402, "it is used up");
    }
    // With more credit both nodes have a reserve.
    declare(40).await;
    let granted = balance(&first, &token).await;
    assert!(granted > 3_000, "{granted}");
    let (at_first, at_second) =
        (Outbound::when_there_is_a_place(&one).await, Outbound::when_there_is_a_place(&two).await);
    at_first.ends().await;
    at_second.ends().await;
    found("the charges", async || (balance(&first, &token).await == granted - 200).then_some(())).await;
}
