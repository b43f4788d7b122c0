//! D3 and D4 with calls: a PostgreSQL that is stopped, and one that is slow. Long tests on a server of their own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_phone::{Answering, CallPlan, Phone};
use sidetone_store::Location;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use uuid::Uuid;

use crate::common::site::{Site, directory, until, within};

/// A server of one test; stopped and removed when dropped.
struct Server {
    dir: PathBuf,
    url: String,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/postgres")
}

impl Server {
    fn start() -> Server {
        let dir = std::env::temp_dir().join(format!("sidetone-pg-{}", Uuid::new_v4()));
        let started = Command::new(script()).arg("start").arg(&dir).output().unwrap();
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        Server { dir, url: String::from_utf8(started.stdout).unwrap().trim().to_owned() }
    }

    /// The server's process and all of its children.
    fn processes(&self) -> Vec<String> {
        let file = std::fs::read_to_string(self.dir.join("data/postmaster.pid")).unwrap();
        let postmaster = file.lines().next().unwrap().to_owned();
        let children = Command::new("pgrep").arg("-P").arg(&postmaster).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        [postmaster].into_iter().chain(children.lines().map(str::to_owned)).collect()
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").arg(signal).args(self.processes()).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be stopped by SIGSTOP.
        let _ = Command::new("kill").arg("-CONT").args(self.processes()).status();
        let _ = Command::new(script()).arg("stop").arg(&self.dir).status();
    }
}

/// An engine on the database at `url`, and six phones of it.
async fn site(url: &str) -> (Site, Vec<Arc<Phone>>) {
    let location: Location = url.parse().unwrap();
    let database = location.clone().into();
    let store = sidetone_store::Store::open(&database).await.unwrap();
    crate::common::site::declare_in(&store, &directory()).await;
    store.close().await;
    let site = Site::configured(&directory(), |config| config.database = database).await;
    let mut phones = Vec::new();
    for number in 1001..=1006 {
        let silent = Answering::Answer { after: Duration::ZERO, talk: None };
        phones.push(Arc::new(site.phone(&number.to_string(), silent).await));
    }
    (site, phones)
}

/// Call `number` of the first three phones to the last three, up for `millis`.
fn place(
    phones: &[Arc<Phone>],
    number: usize,
    millis: u64,
) -> tokio::task::JoinHandle<(u16, bool, Duration)> {
    let (caller, callee) = (Arc::clone(&phones[number % 3]), 1004 + number % 3);
    let plan = CallPlan {
        talk: None,
        talk_time: Some(Duration::from_millis(millis)),
        ..CallPlan::to(callee.to_string())
    };
    tokio::spawn(async move {
        let began = Instant::now();
        let outcome = caller.call(plan).await.unwrap();
        (outcome.status, outcome.ended_by_peer, began.elapsed().saturating_sub(Duration::from_millis(millis)))
    })
}

/// The status of a read, and how long it took.
async fn read(site: &Site) -> (u16, Duration) {
    let began = Instant::now();
    let (status, _) = site.get("/cdrs?limit=1").await;
    (status, began.elapsed())
}

/// Waits for exactly `count` records; returns how long that took.
async fn stored(site: &Site, count: u64) -> Duration {
    let began = Instant::now();
    within("the records", async {
        loop {
            let (status, page) = site.get("/cdrs?limit=1").await;
            if status == 200 && page["total"].as_u64() >= Some(count) {
                assert_eq!(page["total"], count);
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    began.elapsed()
}

async fn freeze(calls: usize, frozen: Duration) {
    let server = Server::start();
    let (site, phones) = site(&server.url).await;
    let up_for = u64::try_from(frozen.as_millis()).unwrap() + 15_000;
    let up: Vec<_> = (0..calls).map(|number| place(&phones, number, up_for)).collect();
    until("the calls are up", || site.engine().live_calls() == calls).await;
    server.signal("-STOP");
    let frozen_at = Instant::now();
    let (mut reads, mut slowest, mut during) = (0, Duration::ZERO, Vec::new());
    while frozen_at.elapsed() < frozen {
        let (status, took) = read(&site).await;
        assert_eq!(status, 503, "a read while the server is stopped");
        (reads, slowest) = (reads + 1, slowest.max(took));
        during.push(place(&phones, during.len(), 200));
        assert!(site.engine().live_calls() >= calls, "a call ended");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    server.signal("-CONT");
    let new = during.len();
    for call in up.into_iter().chain(during) {
        let (status, ended_by_peer, _) = within("a call", call).await.unwrap();
        assert_eq!((status, ended_by_peer), (200, false));
    }
    let took = stored(&site, (calls + new) as u64).await;
    eprintln!(
        "D3 frozen {frozen:?} with {calls} calls: none ended, {new} new ones carried, {reads} reads answered 503, slowest \
         {slowest:?}; all {} records stored {took:?} after the last call",
        calls + new
    );
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    site.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a server of its own is stopped for 5 s with 20 calls up"]
async fn long_calls_survive_a_database_that_is_stopped_for_a_while() {
    freeze(20, Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a server of its own is stopped for 30 s with 200 calls up"]
async fn long_two_hundred_calls_survive_a_database_that_is_stopped_for_30_s() {
    freeze(200, Duration::from_secs(30)).await;
}

/// A relay to `server` that delays every piece by the channel's current value.
async fn slow(server: String, delay: watch::Receiver<Duration>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            let far = TcpStream::connect(&server).await.unwrap();
            let ((near_out, near_in), (far_out, far_in)) = (near.into_split(), far.into_split());
            tokio::spawn(pass(near_out, far_in, delay.clone()));
            let no_delay = watch::channel(Duration::ZERO).1;
            tokio::spawn(pass(far_out, near_in, no_delay));
        }
    });
    address
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    delay: watch::Receiver<Duration>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(len @ 1..) = from.read(&mut bytes).await {
        let delay = *delay.borrow();
        tokio::time::sleep(delay).await;
        if to.write_all(&bytes[..len]).await.is_err() {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a server of its own answers 2 s late for 30 s"]
async fn long_calls_do_not_wait_for_a_slow_database() {
    let server = Server::start();
    let (delay, delayed) = watch::channel(Duration::ZERO);
    let (_, authority) = server.url.split_once('@').unwrap();
    let (host, _) = authority.split_once('/').unwrap();
    let address = slow(host.to_owned(), delayed).await;
    let (site, phones) = site(&server.url.replace(host, &address.to_string())).await;
    delay.send(Duration::from_secs(2)).unwrap();
    let began = Instant::now();
    let (mut setups, mut statuses, mut slowest) = (Vec::new(), Vec::new(), Duration::ZERO);
    while began.elapsed() < Duration::from_secs(30) {
        let calls: Vec<_> = (0..6).map(|number| place(&phones, number, 200)).collect();
        let (status, took) = read(&site).await;
        statuses.push(status);
        slowest = slowest.max(took);
        for call in calls {
            let (status, ended_by_peer, setup) = within("a call", call).await.unwrap();
            assert_eq!((status, ended_by_peer), (200, false));
            setups.push(setup);
        }
    }
    delay.send(Duration::ZERO).unwrap();
    setups.sort_unstable();
    let (p50, p99) = (setups[setups.len() / 2], setups[setups.len() * 99 / 100]);
    let took = stored(&site, setups.len() as u64).await;
    assert!(statuses.iter().all(|status| *status == 503), "{statuses:?}");
    eprintln!(
        "D4 slow by 2 s: {} calls, set up and ended beside their time: p50 {p50:?}, p99 {p99:?}; {} reads answered 503, slowest \
         {slowest:?}; all records stored {took:?} after the delay ended",
        setups.len(),
        statuses.len()
    );
    site.stop(Duration::ZERO).await;
}
