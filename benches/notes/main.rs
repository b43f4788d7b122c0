//! The round trip of a note: an HTTP request, INFO at the phone, the tap, `call.info.acked` on the live stream.
//!
//! The engine is the real binary in a process of its own; the carrier, the phones, the senders of notes and the reader
//! of the stream are in this one, on the same machine. Notes are sent by the clock, whatever became of earlier
//! ones: a time counts from when its note was due.
//!
//! `SIDETONE_BENCH_CALLS` calls are up (200), each rate runs for `SIDETONE_BENCH_SECONDS` (10, the slowest three times as
//! long), `SIDETONE_BENCH_RATES` are the rates (`1,100,1000`). `SIDETONE_TEST_DATABASE=postgres` measures on a server.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a bench may fail by panicking, prints its figures and reads the clock"
)]

#[path = "../../tests/common/chosen.rs"]
mod chosen;
mod client;
#[path = "../../tests/common/database.rs"]
mod database;
mod engine;
#[path = "../../tests/common/nodes.rs"]
mod nodes;
#[path = "../../tests/common/records.rs"]
mod records;
#[path = "../../tests/common/site.rs"]
mod site;
#[path = "../../tests/common/waiting.rs"]
mod waiting;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use sidetone_phone::{Answering, CallPlan, Noting, Phone};
use tokio::task::JoinHandle;

use crate::client::{Connection, Heard};
use crate::engine::{Engine, KEYS, PHONES, number};

fn main() {
    let setting = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let calls: usize = setting("SIDETONE_BENCH_CALLS", "200").parse().unwrap();
    let seconds: u64 = setting("SIDETONE_BENCH_SECONDS", "10").parse().unwrap();
    let rates = setting("SIDETONE_BENCH_RATES", "1,100,1000");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::serve().await;
        let (phones, carrier, placed) = talk(&engine, calls).await;
        let live = Connection::open(engine.http, KEYS[0]).await.calls().await;
        assert_eq!(live.len(), calls, "calls that are up");
        println!("{calls} calls up on {} phones, {:?}", phones.len(), database::chosen());
        println!(
            "{:>8} {:>7} | {:>15} | {:>15} | {:>15} {:>8} | {:>4}",
            "notes/s", "notes", "202 p50/p99 ms", "INFO p50/p99 ms", "acked p50/p99", "max", "lost"
        );
        for rate in rates.split(',').map(|rate| rate.trim().parse::<u64>().unwrap()) {
            let seconds = if rate < 10 { seconds * 3 } else { seconds };
            measure(&engine, &phones, &live, rate, seconds).await;
        }
        println!("engine: {}", engine.usage());
        carrier.hang_up().await.unwrap();
        for call in placed {
            call.await.unwrap();
        }
    });
}

/// The phones of the extensions, the carrier's phone, and its calls to the extensions.
async fn talk(engine: &Engine, calls: usize) -> (Vec<Phone>, Arc<Phone>, Vec<JoinHandle<()>>) {
    let quiet = || Answering::Answer { after: Duration::ZERO, talk: None };
    let mut phones = Vec::new();
    for extension in 0..PHONES {
        let mut config = site::phone_config(engine.sip, &format!("{}", 1001 + extension), quiet());
        config.notes = Noting::Tap;
        phones.push(site::registered(config).await);
    }
    let mut config = site::phone_config(engine.sip, "+447700900123", quiet());
    config.domain = "carrier.example".into();
    config.password = String::new();
    let carrier = Arc::new(Phone::start(config).await.unwrap());
    let mut placed = Vec::new();
    for call in 0..calls {
        let plan = CallPlan { talk_time: None, ..CallPlan::to(number(call % PHONES)) };
        let caller = Arc::clone(&carrier);
        placed.push(tokio::spawn(async move {
            assert_eq!(caller.call(plan).await.unwrap().status, 200);
        }));
        site::calls(&carrier, 0, call + 1).await;
    }
    (phones, carrier, placed)
}

/// Sends notes at that rate and prints when each was accepted, shown and acknowledged.
async fn measure(engine: &Engine, phones: &[Phone], live: &[String], rate: u64, seconds: u64) {
    let count = usize::try_from(rate * seconds).unwrap();
    let mark = format!("{rate}/s");
    let heard = Heard::listen(engine.http, KEYS[1], &mark, count).await;
    // Few enough senders that no connection is idle for longer than the engine keeps one open.
    let senders = SENDERS_MAX.min(usize::try_from(rate).unwrap().div_ceil(10));
    let pause = Duration::from_nanos(1_000_000_000 / rate);
    let began = Instant::now() + Duration::from_millis(200);
    let began_us = wall_us() + 200_000;
    let mut sending = Vec::new();
    for sender in 0..senders {
        let mut connection = Connection::open(engine.http, KEYS[sender % KEYS.len()]).await;
        let (live, mark) = (live.to_vec(), mark.clone());
        sending.push(tokio::spawn(async move {
            let mut accepted = Vec::new();
            for place in (sender..count).step_by(senders) {
                let due = began + pause * u32::try_from(place).unwrap();
                tokio::time::sleep_until(due.into()).await;
                connection.note(&live[place % live.len()], &mark, place).await;
                accepted.push(due.elapsed());
            }
            accepted
        }));
    }
    let mut accepted = histogram();
    for sender in sending {
        for elapsed in sender.await.unwrap() {
            record(&mut accepted, elapsed);
        }
    }
    let heard = heard.all(Instant::now() + LAST_MAX).await;
    let (mut shown, mut acked) = (histogram(), histogram());
    let notes: Vec<_> = phones.iter().flat_map(Phone::notes).collect();
    for note in notes.iter().filter(|note| note.title.starts_with(&format!("{mark} "))) {
        let place: u32 = note.title.rsplit(' ').next().unwrap().parse().unwrap();
        let due_us = began_us + i64::try_from((pause * place).as_micros()).unwrap();
        record(&mut shown, Duration::from_micros(u64::try_from(note.at.0 - due_us).unwrap_or_default()));
    }
    let mut lost = 0;
    for (place, at) in heard.into_iter().enumerate() {
        match at {
            Some(at) => record(&mut acked, at - (began + pause * u32::try_from(place).unwrap())),
            None => lost += 1,
        }
    }
    let column = |of: &Histogram<u64>| format!("{:.1} / {:.1}", millis(of, 0.5), millis(of, 0.99));
    println!(
        "{rate:>8} {count:>7} | {:>15} | {:>15} | {:>15} {:>8.1} | {lost:>4}",
        column(&accepted),
        column(&shown),
        column(&acked),
        millis(&acked, 1.0),
    );
}

/// Unix time, the clock by which phones record when they show a note.
fn wall_us() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since_epoch.as_micros()).unwrap()
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).unwrap()
}

fn record(histogram: &mut Histogram<u64>, elapsed: Duration) {
    histogram.record(u64::try_from(elapsed.as_micros()).unwrap()).unwrap();
}

fn millis(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    histogram.value_at_quantile(quantile) as f64 / 1000.0
}

/// How long to wait for the last acknowledgements.
const LAST_MAX: Duration = Duration::from_secs(20);
/// Connections that notes are sent by; at a thousand a second each sends one in 32 ms.
const SENDERS_MAX: usize = 32;
