//! D10 and D11 for two nodes on one PostgreSQL, without a cluster beyond the common database.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::common::chosen::url_in;
use crate::common::database::server;
use crate::common::records::TempDir;
use crate::common::site::{
    self, answering, calls, declare, directory, open_end, phone_config, registered, within,
};
use crate::service::client::Ask;
use crate::service::idempotency::{ADMIN, directory as people, post, teams};
use crate::service::served::{Served, Start};

/// A connection to the database that can be interrupted.
pub struct Line {
    pub address: SocketAddr,
    pub is_whole: watch::Sender<bool>,
}

impl Line {
    pub async fn to(target: SocketAddr) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_whole, state) = watch::channel(true);
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let mut state = state.clone();
                tokio::spawn(async move {
                    if !*state.borrow() {
                        return;
                    }
                    let Ok(mut far) = TcpStream::connect(target).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        _ = state.wait_for(|is_whole| !*is_whole) => {}
                    }
                });
            }
        });
        Line { address, is_whole }
    }
}

/// A node with its own data directory on another node's database.
async fn node(name: &str, data: &TempDir, url: &str) -> Served {
    let config = format!(
        "[database]\nurl = \"{url}\"\n[sip]\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [media]\nports = \"12000-31999\"\nworkers = 1\n\
         [node]\nname = \"{name}\"\ndata_dir = \"{}\"\n[http]\nlisten = \"127.0.0.1:0\"\n",
        data.path().display()
    );
    let start = Start { config, log: "error", files_max: None, env: Vec::new() };
    Served::with(data.path(), start).await
}

/// The address in a URL of the server.
pub fn address_in(url: &str) -> SocketAddr {
    let rest = url.split_once("://").unwrap().1;
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    host.split(['/', '?']).next().unwrap().parse().unwrap()
}

/// Waits until an administrator reads `count` records of calls that have ended.
async fn ended(http: SocketAddr, count: usize) {
    within("records", async {
        loop {
            let page = Ask::new("GET", "/api/v1/cdrs?limit=10").bearer(ADMIN).send(http).await;
            assert_eq!(page.status, 200, "{page:?}");
            let page = page.json();
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= count, "{page}");
            if items.len() == count && items.iter().all(|item| !item["ended_at"].is_null()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

fn is_postgres() -> bool {
    let is_there =
        server().is_some() && crate::common::database::chosen() == crate::common::database::Kind::Postgres;
    if !is_there {
        eprintln!("NOTICE: D10 and D11 need SIDETONE_TEST_DATABASE=postgres: not tested");
    }
    is_there
}

/// D10: the records of a killed node come from its journal when it starts again; the other node continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_node_that_is_killed_are_recorded_at_its_next_start() {
    if !is_postgres() {
        return;
    }
    let (first_data, second_data) = (TempDir::new(), TempDir::new());
    declare(first_data.path(), &directory()).await;
    let url = url_in(first_data.path());
    let first = node("first", &first_data, &url).await;
    let second = node("second", &second_data, &url).await;
    let caller = Arc::new(registered(phone_config(first.sip, "1001", answering())).await);
    let _callee = registered(phone_config(first.sip, "1002", answering())).await;
    let other = Arc::new(registered(phone_config(second.sip, "1003", answering())).await);
    let peer = registered(phone_config(second.sip, "1004", answering())).await;
    let place = |phone: &Arc<sidetone_phone::Phone>, number: &'static str| {
        let phone = Arc::clone(phone);
        tokio::spawn(async move { phone.call(open_end(number)).await })
    };
    let cut: Vec<_> = (0..5).map(|_| place(&caller, "1002")).collect();
    let kept = place(&other, "1004");
    calls(&caller, 0, 5).await;
    calls(&peer, 0, 1).await;
    first.kill();
    cut.iter().for_each(tokio::task::JoinHandle::abort);
    calls(&peer, 0, 1).await;
    let started = Instant::now();
    let first = node("first", &first_data, &url).await;
    let records = site::records(second.http, 5).await;
    let took = started.elapsed();
    assert!(records.iter().all(|record| record["hangup_cause"] == "CRASH"), "{records:#?}");
    other.hang_up().await.unwrap();
    within("the end of the kept call", kept).await.unwrap().unwrap();
    let records = site::records(first.http, 6).await;
    assert_eq!(records.iter().filter(|record| record["hangup_cause"] == "NORMAL_CLEARING").count(), 1);
    eprintln!(
        "D10: 5 calls of a killed node recorded {:.1} s after its start; the other node's call went on",
        took.as_secs_f64()
    );
}

/// D11: one node loses the database; a key sent to both nodes has one effect, and the node recovers by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_its_database_does_nothing_twice_and_comes_back() {
    if !is_postgres() {
        return;
    }
    let (first_data, second_data) = (TempDir::new(), TempDir::new());
    declare(first_data.path(), &people()).await;
    let url = url_in(first_data.path());
    let target = address_in(&url);
    let line = Line::to(target).await;
    let first =
        node("first", &first_data, &url.replace(&target.to_string(), &line.address.to_string())).await;
    let second = node("second", &second_data, &url).await;
    let caller = Arc::new(registered(phone_config(first.sip, "1001", answering())).await);
    let callee = registered(phone_config(first.sip, "1002", answering())).await;
    let placed = {
        let caller = Arc::clone(&caller);
        tokio::spawn(async move { caller.call(open_end("1002")).await })
    };
    calls(&callee, 0, 1).await;
    line.is_whole.send_replace(false);
    let asked = Instant::now();
    let ask = Ask::new("GET", "/api/v1/cdrs?limit=1").bearer(ADMIN);
    let refused = within("an answer without a database", ask.send(first.http)).await;
    let took = asked.elapsed();
    assert!(refused.status >= 500, "{refused:?}");
    let ask = post("/teams", ADMIN, "once", &json!({"name": "one"}));
    let on_first = within("an answer", ask.send(first.http)).await;
    assert!(on_first.status >= 500, "{on_first:?}");
    let on_second = within("an answer", ask.send(second.http)).await;
    assert_eq!(on_second.status, 201, "{on_second:?}");
    // The node is ready: its calls survive, and it reports the missing database.
    let ready = Ask::new("GET", "/readyz").send(first.http).await;
    assert_eq!(ready.status, 200, "{ready:?}");
    within("the database is named", async {
        while !Ask::new("GET", "/readyz").send(first.http).await.text.contains("database: it does not answer")
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // A call is set up and ended without a database, and its record waits in the journal.
    let other = registered(phone_config(first.sip, "1003", answering())).await;
    let plan =
        sidetone_phone::CallPlan { talk_time: Some(Duration::ZERO), ..sidetone_phone::CallPlan::to("1002") };
    assert_eq!(within("a call", other.call(plan)).await.unwrap().status, 200);
    let page = Ask::new("GET", "/api/v1/cdrs?limit=5").bearer(ADMIN).send(second.http).await;
    assert_eq!((page.status, page.json()["total"].as_u64()), (200, Some(0)), "{page:?}");

    line.is_whole.send_replace(true);
    let healed = Instant::now();
    ended(second.http, 1).await;
    within("the API of the node", async {
        let ask = Ask::new("GET", "/api/v1/cdrs?limit=1").bearer(ADMIN);
        while ask.send(first.http).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let back = healed.elapsed();
    // The failed request was not kept under its key: the response is that of the other node.
    let again = within("an answer", ask.send(first.http)).await;
    assert_eq!(
        (again.status, again.json()["id"].clone()),
        (201, on_second.json()["id"].clone()),
        "{again:?}"
    );
    assert_eq!(teams(second.http).await.iter().filter(|team| team["name"] == "one").count(), 1);
    caller.hang_up().await.unwrap();
    within("the end of the call", placed).await.unwrap().unwrap();
    ended(second.http, 2).await;
    eprintln!(
        "D11: without its database a node answers {} after {:.1} s, goes on with calls, and is back {:.1} s after the cut",
        refused.status,
        took.as_secs_f64(),
        back.as_secs_f64()
    );
}
