//! Pages of the call log over a million records while calls are up (catalogue H16).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sidetone_model::access::Scope;
use sidetone_model::page::Window;
use sidetone_model::ports::{CdrLog, CdrSink};
use sidetone_store::Store;

use crate::common::chosen::database_in;
use crate::common::records::TempDir;
use crate::long::check::{Checks, note, percentile_ms, seconds, setting, spread_ms};
use crate::long::engine::{Engine, Start, apply, key, organisation};
use crate::long::office::{Loss, Office};
use crate::long::year::Maker;

/// Readers that send requests by the clock over persistent connections; a time counts from when its request was due.
#[test]
#[ignore = "long: five minutes, of which filling takes most"]
fn long_h16_records_under_load() {
    let count: usize = setting("SIDETONE_H16_RECORDS", 1_000_000);
    let lasts = seconds("SIDETONE_H16_SECONDS", 60);
    let rps: u32 = setting("SIDETONE_H16_REQUESTS_PER_SECOND", 200);
    let mut checks = Checks::default();
    let temporary = TempDir::new();
    let kept = std::env::var_os("SIDETONE_H16_DIR").map(PathBuf::from);
    let dir = kept.as_deref().unwrap_or(temporary.path());
    apply(dir, &organisation(1, DOMAIN, 1_000, 2 * PAIRS));
    fill(dir, count);
    let mut engine = Engine::start(dir, &Start::default());
    let office = Office::open(&engine, 50, DOMAIN, 1_000, 2 * PAIRS);
    office.register();
    office.connect(0..UP);

    // The same calls, existing and new, without a reader.
    let control = talk(&office, lasts / 4, |_| {}).0;
    let (asked, failed) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let (loss, placed) = talk(&office, lasts, |stop| {
        std::thread::scope(|scope| {
            for reader in 0..READERS {
                let (http, asked, failed) = (engine.http, &asked, &failed);
                scope.spawn(move || read(http, reader, rps, stop, asked, failed));
            }
        });
    });
    let (took, failed) = (asked.into_inner().unwrap(), failed.into_inner());
    let rate = took.len() as f64 / lasts.as_secs_f64();
    let figure = format!("{} at {rate:.0}/s, failed {failed}", spread_ms(&took));
    let right = failed == 0 && percentile_ms(&took, 0.99) < 50.0 && rate >= f64::from(rps) * 0.99;
    checks.check("H16 page", right, figure, "p99 < 50 ms, all answered");
    let up = office.up(0..UP);
    let figure = format!(
        "{up} of {UP} calls up, {placed} placed beside them, {} of {} packets lost; without readers {} of {}",
        loss.lost, loss.sent, control.lost, control.sent
    );
    let right = up == UP && loss.percent() <= control.percent() + 0.1;
    checks.check("H16 media", right && engine.is_alive(), figure, "as without readers, + 0.1 %");
    checks.end();
}

/// Records of a year, unless the folder has them from an earlier run.
fn fill(dir: &Path, count: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&database_in(dir)).await.unwrap();
        let owner = store.directory().await.unwrap().organisations[0].id;
        let one = Window::at(0, 1);
        let there = store.list(Scope::Organisation(owner), one.into()).await.unwrap().total;
        let began = Instant::now();
        if there < count as u64 {
            let mut maker = Maker::new(7);
            let places: Vec<f64> = (0..count).map(|index| index as f64 / count as f64).collect();
            for places in places.chunks(FILL_BATCH) {
                let batch: Vec<_> = places.iter().map(|place| maker.record(owner, 0, *place)).collect();
                store.store(&batch).await.unwrap();
            }
            let per_second = count as f64 / began.elapsed().as_secs_f64();
            note(format!("{count} records stored, {per_second:.0}/s in transactions of {FILL_BATCH}"));
        }
        store.close().await;
    });
}

/// Places short calls beside the existing ones while `work` runs. Returns the loss of the existing calls, and the
/// number of short calls.
fn talk(office: &Office, lasts: Duration, work: impl FnOnce(&AtomicBool)) -> (Loss, u64) {
    let (stop, placed) = (AtomicBool::new(false), AtomicU64::new(0));
    let window = office.window();
    std::thread::scope(|scope| {
        for pair in UP..PAIRS as usize {
            let (stop, placed) = (&stop, &placed);
            scope.spawn(move || {
                let [caller, callee] = [0, 1].map(|side| &office.phones[2 * pair + side]);
                while !stop.load(Ordering::Relaxed) {
                    let answer = caller.call(&callee.number);
                    placed.fetch_add(
                        u64::from(answer.is_some_and(|answer| answer.status == 200)),
                        Ordering::Relaxed,
                    );
                    std::thread::sleep(TALK);
                    caller.bye();
                }
            });
        }
        let stop = &stop;
        scope.spawn(move || {
            std::thread::sleep(lasts);
            stop.store(true, Ordering::Relaxed);
        });
        work(stop);
    });
    (office.loss(&window, 0..UP), placed.into_inner())
}

/// One connection's share of the requests.
fn read(
    http: SocketAddr,
    reader: u32,
    rps: u32,
    stop: &AtomicBool,
    asked: &Mutex<Vec<Duration>>,
    failed: &AtomicU64,
) {
    let every = Duration::from_secs(1) * READERS / rps;
    let mut due = Instant::now() + every * reader / READERS;
    let mut connection = Connection::open(http);
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if connection.page().is_some() {
            times.push(due.elapsed());
        } else {
            failed.fetch_add(1, Ordering::Relaxed);
            connection = Connection::open(http);
        }
        due += every;
    }
    asked.lock().unwrap().append(&mut times);
}

/// A persistent connection.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(http: SocketAddr) -> Connection {
        let stream = TcpStream::connect(http).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Connection(BufReader::new(stream))
    }

    /// Requests a page and reads all of it; `None` when the status is not 200.
    fn page(&mut self) -> Option<()> {
        let head = format!(
            "GET /api/v1/cdrs?limit=50 HTTP/1.1\r\nHost: load.test\r\nAuthorization: Bearer {}\r\n\r\n",
            key(1)
        );
        self.0.get_mut().write_all(head.as_bytes()).ok()?;
        let (mut line, mut length, mut is_ok) = (String::new(), None, false);
        while self.0.read_line(&mut line).ok()? > 2 {
            is_ok |= line.starts_with("HTTP/1.1 200 ");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
            line.clear();
        }
        let mut body = vec![0; length?];
        self.0.read_exact(&mut body).ok()?;
        is_ok.then_some(())
    }
}

const DOMAIN: &str = "load.test";
/// Calls that are up all the time.
const UP: usize = 20;
/// Including the short calls: ten pairs, about five calls a second.
const PAIRS: u32 = 30;
const TALK: Duration = Duration::from_secs(2);
const READERS: u32 = 8;
const FILL_BATCH: usize = 2_000;
