//! The pages of the panel over a large call log: how long Home, Calls and a call take in a whole engine, on SQLite and,
//! when `SIDETONE_TEST_POSTGRES` names a server, on PostgreSQL.
//!
//! `cargo bench --bench panel_pages`. `benches/README.md` lists the variables that set the size, and what was measured.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a bench is a driver, without its input it has nothing to measure, and it uses a part of another's"
)]

#[path = "../../tests/common/database.rs"]
mod database;
#[path = "../cdr_log/records.rs"]
mod records;
#[path = "../cdr_log/site.rs"]
mod site;
mod visitor;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone::provision::{Declaration, apply};
use sidetone_model::cdr::Cdr;
use sidetone_model::device::Device;
use sidetone_model::ids::OrganisationId;
use sidetone_model::media_quality::{
    CallQuality, LegQuality, LegSide, QualitySecond, QualityState, QualityTimeline,
};
use sidetone_model::ports::CdrSink;
use sidetone_model::quality::{Hundredths, MediaVerdict};
use sidetone_model::time::Timestamp;
use sidetone_store::Store;

use crate::database::{Kind, TestDatabase, kinds};
use crate::records::{Maker, YEAR_START_US, YEAR_US};
use crate::site::Site;
use crate::visitor::Visitor;

struct Size {
    records: usize,
    /// The days over which the records are spread.
    days: usize,
    /// Requests of each page, after the first one.
    requests: usize,
}

impl Size {
    fn of_environment() -> Self {
        let number = |name: &str, default: usize| match std::env::var(name) {
            Ok(text) => text.replace('_', "").parse().unwrap_or_else(|_| panic!("{name}: a number")),
            Err(_) => default,
        };
        Self {
            records: number("SIDETONE_BENCH_RECORDS", 1_000_000),
            days: number("SIDETONE_BENCH_DAYS", 30),
            requests: number("SIDETONE_BENCH_REQUESTS", 100),
        }
    }
}

fn main() {
    let size = Size::of_environment();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for kind in kinds() {
            if std::env::var("SIDETONE_BENCH_ONLY")
                .is_ok_and(|only| !format!("{kind:?}").eq_ignore_ascii_case(&only))
            {
                continue;
            }
            measure(kind, &size).await;
        }
    });
}

async fn measure(kind: Kind, size: &Size) {
    println!("\n# {kind:?}: {} records of one organisation in {} days", size.records, size.days);
    let dir = site::folder();
    let database = TestDatabase::new(kind, dir.path()).await;
    let store = Store::open(&database.database).await.unwrap();
    let organisation = site::declare(&store, 1).await[0];
    declare_users(&store, PAGES * USERS_PER_PAGE).await;
    let began = Instant::now();
    let mut calls = Calls::new(organisation, size.days);
    let mut batch = Vec::with_capacity(FILL_BATCH);
    for index in 0..size.records {
        batch.push(calls.record(index as f64 / size.records as f64));
        if batch.len() == FILL_BATCH || index + 1 == size.records {
            store.store(&batch).await.unwrap();
            batch.clear();
        }
    }
    let explained: Vec<Cdr> = (0..EXPLAINED).map(|_| calls.explained()).collect();
    store.store(&explained).await.unwrap();
    println!("filled in {:.0?}", began.elapsed());
    let site = Site::start(&database.database).await;
    println!("{:<34} {:>8} {:>8} {:>8} {:>8} {:>9}", "ms", "first", "p50", "p95", "most", "bytes");
    let extension = calls.extension.unwrap();
    let pages: [_; PAGES] = [
        ("Home, 24 hours", vec!["/".to_owned()]),
        ("Home, 7 days", vec!["/?days=7".to_owned()]),
        ("Calls", vec!["/calls".to_owned()]),
        ("Calls of an extension", vec![format!("/calls?extension_id={extension}")]),
        ("Calls with a bad verdict", vec!["/calls?media_verdict_b=lossy_inbound".to_owned()]),
        ("Calls, search of a number", vec!["/calls?q=%2B44770033".to_owned()]),
        (
            "Calls, another number each time",
            (0..=size.requests).map(|of| format!("/calls?q=%2B4477{of:04}")).collect(),
        ),
        ("A call", explained.iter().map(|call| format!("/calls/{}", call.call_uuid)).collect()),
    ];
    for (place, (name, paths)) in pages.iter().enumerate() {
        // Several users, because the request rate is limited per user.
        let mut visitors: Vec<Visitor> = (0..USERS_PER_PAGE)
            .map(|user| Visitor::log_in(site.http(), &email(place * USERS_PER_PAGE + user), PASSWORD))
            .collect();
        let mut times = Histogram::<u64>::new(3).unwrap();
        let (mut first, mut bytes) = (Duration::ZERO, 0);
        for round in 0..=size.requests {
            // The engine is in use: the newest hour changes before every request.
            store.store(&[calls.record(1.0)]).await.unwrap();
            let began = Instant::now();
            bytes = visitors[round % USERS_PER_PAGE].open(&paths[round % paths.len()]);
            match round {
                0 => first = began.elapsed(),
                _ => times.record(u64::try_from(began.elapsed().as_micros()).unwrap()).unwrap(),
            }
        }
        let millis = |quantile| times.value_at_quantile(quantile) as f64 / 1_000.0;
        println!(
            "{name:<34} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {bytes:>9}",
            first.as_secs_f64() * 1_000.0,
            millis(0.5),
            millis(0.95),
            millis(1.0),
        );
    }
    site.stop().await;
    store.close().await;
}

async fn declare_users(store: &Store, count: usize) {
    let mut text = "[[organisations]]\nname = \"Organisation 0000\"\nsip_domain = \"o0.test\"\n".to_owned();
    for number in 0..count {
        text += &format!(
            "[[organisations.users]]\nemail = \"{}\"\nname = \"Ada\"\nrole = \"org_admin\"\n\
             password = \"{PASSWORD}\"\n",
            email(number)
        );
    }
    let declaration = Declaration::parse(text.parse().unwrap()).unwrap();
    let now = Timestamp::from_micros(YEAR_START_US);
    apply(store, &[declaration], false, now, &mut StdRng::seed_from_u64(2)).await.unwrap();
}

/// The calls of an organisation up to now.
struct Calls {
    maker: Maker,
    rng: StdRng,
    organisation: OrganisationId,
    period_us: i64,
    extension: Option<sidetone_model::ids::ExtensionId>,
}

impl Calls {
    fn new(organisation: OrganisationId, days: usize) -> Self {
        let period_us = i64::try_from(days).unwrap() * 86_400_000_000;
        Self { maker: Maker::new(9), rng: StdRng::seed_from_u64(9), organisation, period_us, extension: None }
    }

    /// A call at `place` (0 to 1) within the period that ends now.
    fn record(&mut self, place: f64) -> Cdr {
        let mut cdr = self.maker.record(self.organisation, 0, place);
        let made = YEAR_START_US + (place * YEAR_US as f64) as i64;
        let shift = now_us() - ((1.0 - place) * self.period_us as f64) as i64 - made;
        cdr.started_at = cdr.started_at.plus_micros(shift);
        let moved = |at: Timestamp| at.plus_micros(shift);
        cdr.answered_at = cdr.answered_at.map(moved);
        cdr.ended_at = cdr.ended_at.map(moved);
        cdr.device_a = self.device();
        cdr.device_b = self.device();
        self.extension = cdr.extension_id;
        cdr
    }

    fn device(&mut self) -> Device {
        let (make, network) = (self.rng.random_range(0..24), self.rng.random_range(0..2_000));
        Device {
            user_agent: Some(format!("Example Phone {make}")),
            network: Some(format!("10.{}.{}.0/24", network / 250, network % 250)),
        }
    }

    /// A call of five minutes with the quality of both legs, second by second.
    fn explained(&mut self) -> Cdr {
        let mut cdr = self.record(1.0);
        let begins_at = cdr.started_at;
        let mut leg = |side| {
            let mut leg: LegQuality = serde_json::from_value(serde_json::json!({
                "leg": side, "media_verdict": "lossy_inbound", "sentence": "Packets were lost.", "party": "1001",
                "codec": "PCMU", "inbound": {"loss_pct": 1.5, "packets": 15_000}, "outbound": {},
            }))
            .unwrap();
            let rows = (0..300).map(|_| QualitySecond {
                received: 50,
                lost: self.rng.random_range(0..3),
                jitter_max_ms: Some(Hundredths(self.rng.random_range(100..2_000))),
                interval_mean_ms: Some(Hundredths(2_000)),
                interval_max_ms: Some(Hundredths(self.rng.random_range(2_000..6_000))),
                lateness_max_ms: Some(Hundredths(self.rng.random_range(0..4_000))),
                level_dbov: Some(Hundredths(self.rng.random_range(-60..-10) * 100)),
                audio_expected: true,
                ..QualitySecond::default()
            });
            leg.inbound.timeline = Some(QualityTimeline::new(begins_at, 1, rows.collect()));
            leg
        };
        let legs = vec![leg(LegSide::A), leg(LegSide::B)];
        let quality = CallQuality::of_legs(cdr.call_uuid, QualityState::Final, begins_at, legs);
        cdr.quality.verdict = Some(MediaVerdict::LossyInbound);
        cdr.media = Some(Box::new(quality));
        cdr
    }
}

fn now_us() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

fn email(number: usize) -> String {
    format!("ada{number}@o0.test")
}

const PAGES: usize = 8;
const USERS_PER_PAGE: usize = 3;
const PASSWORD: &str = "correct horse battery staple";
const FILL_BATCH: usize = 2_000;
/// Calls whose pages are opened in turn.
const EXPLAINED: usize = 20;
