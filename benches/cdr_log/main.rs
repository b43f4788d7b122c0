//! A large call log: how fast records are stored, and how long its lists take. Each time is shown beside that of the
//! bare SQL and of the complete HTTP request in the same run.
//!
//! `cargo bench --bench cdr_log`, on SQLite and, when `SIDETONE_TEST_POSTGRES` names a server, on PostgreSQL.
//! `benches/README.md` lists the variables that set the size, and what was measured.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a bench is a driver, and without its input it has nothing to measure"
)]

mod bare;
mod cases;
#[path = "../../tests/common/database.rs"]
mod database;
mod http;
mod records;
mod site;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sidetone::cdr::journal::Journal;
use sidetone::cdr::writer::CdrWriter;
use sidetone_model::access::Scope;
use sidetone_model::call_log::CdrSort;
use sidetone_model::ids::OrganisationId;
use sidetone_model::ports::{CdrLog, CdrSink};
use sidetone_store::Store;

use crate::bare::Bare;
use crate::cases::{Case, cases};
use crate::database::{Kind, TestDatabase, kinds};
use crate::http::Client;
use crate::records::Maker;
use crate::site::Site;

/// The size of a run.
pub struct Size {
    /// Records in total.
    pub records: usize,
    /// Records of the queried organisation; the others share the rest.
    pub largest: usize,
    pub organisations: usize,
    /// Requests of each case.
    pub requests: usize,
    /// How many of them the bare SQL runs as well.
    pub bare: usize,
    /// Records that are stored to measure the rate.
    pub stored: usize,
}

impl Size {
    fn of_environment() -> Self {
        let number = |name: &str, default: usize| match std::env::var(name) {
            Ok(text) => text.replace('_', "").parse().unwrap_or_else(|_| panic!("{name}: a number")),
            Err(_) => default,
        };
        let records = number("SIDETONE_BENCH_RECORDS", 40_000);
        let requests = number("SIDETONE_BENCH_REQUESTS", 30);
        Self {
            records,
            bare: number("SIDETONE_BENCH_BARE", requests),
            requests,
            largest: number("SIDETONE_BENCH_LARGEST", records / 2).min(records),
            organisations: number("SIDETONE_BENCH_ORGANISATIONS", 200),
            stored: number("SIDETONE_BENCH_STORED", 5_000),
        }
    }
}

fn main() {
    let size = Size::of_environment();
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for kind in kinds() {
            if std::env::var("SIDETONE_BENCH_ONLY")
                .is_ok_and(|only| !format!("{kind:?}").eq_ignore_ascii_case(&only))
            {
                continue;
            }
            measure(kind, &size, only.as_deref()).await;
        }
    });
}

async fn measure(kind: Kind, size: &Size, only: Option<&str>) {
    println!(
        "\n# {kind:?}: {} records, {} of them of the organisation asked, {} organisations",
        size.records, size.largest, size.organisations
    );
    let dir = site::folder();
    let database = TestDatabase::new(kind, dir.path()).await;
    let store = Store::open(&database.database).await.unwrap();
    let organisations = site::declare(&store, size.organisations).await;
    let began = Instant::now();
    fill(&store, size, &organisations).await;
    println!(
        "filled in {:.0?}, {:.0} records/s in transactions of {FILL_BATCH}",
        began.elapsed(),
        size.records as f64 / began.elapsed().as_secs_f64()
    );
    let bare = Bare::connect(kind, &database.url()).await;
    bare.settle().await;
    for (name, bytes) in bare.sizes().await {
        println!(
            "{name:<40} {:>9.1} MiB {:>7.1} bytes/record",
            bytes as f64 / 1_048_576.0,
            bytes as f64 / size.records as f64
        );
    }
    insert_rate(&store, size, &organisations).await;
    lists(&store, &database, &bare, size, only).await;
    store.close().await;
    bare.close().await;
}

async fn fill(store: &Store, size: &Size, organisations: &[OrganisationId]) {
    let mut maker = Maker::new(7);
    let mut batch = Vec::with_capacity(FILL_BATCH);
    let others = organisations.len() - 1;
    for index in 0..size.records {
        let place = index as f64 / size.records as f64;
        // Calls of all organisations are interleaved, as in operation.
        let large = (index as u128 * size.largest as u128) % (size.records as u128) < size.largest as u128;
        let number = if large || others == 0 { 0 } else { 1 + index % others };
        batch.push(maker.record(organisations[number], number, place));
        if batch.len() == FILL_BATCH || index + 1 == size.records {
            store.store(&batch).await.unwrap();
            batch.clear();
        }
    }
}

/// Stores records through the journal and the writer's groups, as the engine does.
async fn insert_rate(store: &Store, size: &Size, organisations: &[OrganisationId]) {
    let dir = site::folder();
    let (journal, reader, _) = Journal::open(dir.path()).unwrap();
    let mut maker = Maker::new(8);
    let all: Vec<_> = (0..size.stored)
        .map(|index| {
            let number = if index % 2 == 0 { 0 } else { index % organisations.len() };
            maker.record(organisations[number], number, 1.0 + index as f64 / 1e9)
        })
        .collect();
    let sink = store.clone();
    let began = Instant::now();
    let writer = tokio::spawn(async move { CdrWriter::new(reader).run(&sink).await });
    let mut last = None;
    for cdr in all {
        loop {
            match journal.ended(cdr.clone()) {
                Ok(committed) => break last = Some(committed),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }
    assert!(last.unwrap().await);
    let journalled = began.elapsed();
    drop(journal);
    writer.await.unwrap();
    let rate = |elapsed: Duration| size.stored as f64 / elapsed.as_secs_f64();
    println!(
        "stored {} records: {:.0}/s durable in the journal, {:.0}/s in the database",
        size.stored,
        rate(journalled),
        rate(began.elapsed())
    );
}

async fn lists(store: &Store, database: &TestDatabase, bare: &Bare, size: &Size, only: Option<&str>) {
    let site = Site::start(&database.database).await;
    let mut client = Client::connect(site.http());
    println!(
        "{:<28} {:>9} | {:>16} | {:>16} | {:>16} | {:>16} | {:>6} | {:>8}",
        "p50 / p99 in ms", "matches", "SQL page", "SQL count", "store, both", "HTTP", "above", "first"
    );
    let largest = site::largest(store).await;
    for case in cases(largest) {
        if only.is_some_and(|only| !case.name.contains(only)) {
            continue;
        }
        let mut times = [(); 4].map(|()| Histogram::<u64>::new(3).unwrap());
        let (mut matches, mut first) = (0, Duration::ZERO);
        for round in 0..size.requests + WARM_UP {
            let mut taken = [Duration::ZERO; 4];
            let (page, elapsed) = timed(store.list(Scope::Organisation(largest), case.query.clone())).await;
            taken[2] = elapsed;
            let counted = page.unwrap().total;
            if round == 0 {
                (matches, first) = (counted, elapsed);
            }
            if round < WARM_UP + size.bare {
                taken[0] = timed(bare.page(&case)).await.1;
                let (counted, elapsed) = timed(bare.count(&case)).await;
                taken[1] = elapsed;
                assert_eq!(counted, matches, "{}", case.name);
            }
            assert_eq!(counted, matches, "{}", case.name);
            let began = Instant::now();
            let total = client.total(&case.path);
            taken[3] = began.elapsed();
            assert_eq!(total, counted, "{}", case.name);
            if round >= WARM_UP {
                for (histogram, taken) in times.iter_mut().zip(taken).filter(|(_, taken)| !taken.is_zero()) {
                    histogram.record(u64::try_from(taken.as_micros()).unwrap()).unwrap();
                }
            }
        }
        print_case(&case, matches, &times, first);
    }
    totals(store, size, only, largest).await;
    export(&mut client, size, only);
    drop(client);
    site.stop().await;
}

/// The sums of a filter, which read every record.
async fn totals(store: &Store, size: &Size, only: Option<&str>, largest: OrganisationId) {
    for case in cases(largest).iter().filter(|case| case.query.sort == CdrSort::StartedAt) {
        let name = format!("totals of {}", case.name);
        if only.is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let mut times = Histogram::<u64>::new(3).unwrap();
        for round in 0..size.bare.clamp(1, 5) + 1 {
            let totals = timed(store.totals(Scope::Organisation(largest), &case.query.filter)).await;
            totals.0.unwrap();
            if round > 0 {
                times.record(u64::try_from(totals.1.as_micros()).unwrap()).unwrap();
            }
        }
        let millis = |quantile| times.value_at_quantile(quantile) as f64 / 1000.0;
        println!("{name:<38} {:.2} / {:.2}", millis(0.5), millis(0.99));
    }
}

fn print_case(case: &Case, matches: u64, times: &[Histogram<u64>; 4], first: Duration) {
    let millis = |histogram: &Histogram<u64>, quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    let column = |histogram| format!("{:.2} / {:.2}", millis(histogram, 0.5), millis(histogram, 0.99));
    let [page, count, both, http] = times.each_ref().map(column);
    let above = (millis(&times[3], 0.5) / millis(&times[2], 0.5) - 1.0) * 100.0;
    println!(
        "{:<28} {matches:>9} | {page:>16} | {count:>16} | {both:>16} | {http:>16} | {above:>5.0}% | {:>8.1}",
        case.name,
        first.as_secs_f64() * 1000.0
    );
}

/// The export reads chunk by chunk: the time of a complete export, per record.
fn export(client: &mut Client, size: &Size, only: Option<&str>) {
    if only.is_some_and(|only| !"export".contains(only)) {
        return;
    }
    let began = Instant::now();
    // The export ends after a million records, which is less than a year of them.
    let lines = client.lines("/cdrs/export?format=ndjson&direction=inbound");
    let rate = lines as f64 / began.elapsed().as_secs_f64();
    println!("export of {lines} of {} records: {rate:.0} records/s", size.records);
}

async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    let value = work.await;
    (value, began.elapsed())
}

const FILL_BATCH: usize = 2_000;
/// Requests of a case before the measured ones.
const WARM_UP: usize = 2;
