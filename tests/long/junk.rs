//! A million mutated datagrams (catalogue P5).

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::common::mutations::{METHODS, cases};
use crate::common::records::TempDir;
use crate::long::check::{Checks, seconds, setting};
use crate::long::engine::{Engine, Start, apply, organisation};
use crate::long::flooder::{Flood, Make};
use crate::long::office::{Office, address};
use crate::long::usage::Sample;

#[test]
#[ignore = "long: five minutes"]
fn long_p5_million_junk_messages() {
    let count: u64 = setting("SIDETONE_P5_COUNT", 1_000_000);
    let rate: u64 = setting("SIDETONE_P5_PER_SECOND", 5_000);
    let quiet = seconds("SIDETONE_P5_QUIET_SECONDS", 60);
    let mut checks = Checks::default();
    let dir = TempDir::new();
    apply(dir.path(), &organisation(1, "load.test", 1_000, 2 * CALLS));
    let mut engine = Engine::start(dir.path(), &Start::default());
    let office = Office::open(&engine, 50, "load.test", 1_000, 2 * CALLS);
    office.register();
    office.connect(0..CALLS as usize);
    // Wait until the engine has allocated what it keeps permanently.
    std::thread::sleep(Duration::from_secs(5));
    let before = Sample::of(engine.pid(), Duration::ZERO).unwrap();
    let window = office.window();

    let sources: Vec<Ipv4Addr> = (0..64).map(|index| address(68, index)).collect();
    let (began, flood) = (Instant::now(), Flood::start(engine.sip, &sources, rate, mutated(5)));
    while flood.sent() < count && began.elapsed() < Duration::from_secs(4 * count / rate + 60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (sent, per_second) = flood.stop();
    std::thread::sleep(quiet);
    let after = Sample::of(engine.pid(), Duration::ZERO).unwrap();
    let loss = office.loss(&window, 0..CALLS as usize);

    checks.check("P5 datagrams", sent >= count, format!("{sent} at {per_second:.0}/s"), &count.to_string());
    let metrics = engine.metrics();
    let panics = metrics.of("sidetone_panics_total", "").unwrap_or(0.0);
    let unharmed = engine.is_alive() && panics == 0.0 && !engine.log().contains("panicked");
    checks.check("P5 panics", unharmed, panics, "0");
    let grown = after.rss_mib() - before.rss_mib();
    checks.check(
        "P5 memory",
        grown <= 20.0,
        format!("{grown:.1} MiB more after {quiet:?} of quiet"),
        "≤ 20 MiB",
    );
    // A keep-alive of the engine may be in progress at any moment.
    let deadline = Instant::now() + Duration::from_secs(40);
    let left = || {
        let metrics = engine.metrics();
        [metrics.of("sidetone_sip_transactions", ""), metrics.of("sidetone_legs_live", "")]
    };
    let expected = [Some(0.0), Some(f64::from(2 * CALLS))];
    while left() != expected && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
    }
    let left = left();
    checks.check(
        "P5 transactions",
        left == expected,
        format!("transactions, legs {left:?}"),
        "0 beside the live calls",
    );
    let up = office.up(0..CALLS as usize);
    let figure = format!("{up} of {CALLS} up, {:.3} % of packets lost", loss.percent());
    checks.check("P5 live calls", up == CALLS as usize && loss.percent() <= 0.1, figure, "all, ≤ 0.1 %");
    checks.end();
}

/// Broken requests, broken further at random.
fn mutated(seed: u64) -> Make {
    let mut rng = StdRng::seed_from_u64(seed);
    let seeds: Vec<Vec<u8>> = METHODS
        .iter()
        .enumerate()
        .flat_map(|(serial, method)| cases(method, "UDP", serial as u64))
        .map(|case| case.bytes)
        .filter(|bytes| bytes.len() <= 3_000)
        .collect();
    Box::new(move |number, _, out| {
        out.extend_from_slice(&seeds[rng.random_range(0..seeds.len())]);
        for _ in 0..rng.random_range(0..6) {
            let at = rng.random_range(0..out.len());
            match rng.random_range(0..4) {
                0 => out[at] = rng.random(),
                1 => out.insert(at, rng.random()),
                2 => drop(out.remove(at)),
                _ => out[at] ^= 1 << rng.random_range(0..8),
            }
        }
        if rng.random_range(0..8) == 0 {
            out.truncate(rng.random_range(1..=out.len()));
        }
        // Some are identical, as retransmissions are.
        if number % 4 != 0 {
            let (digits, from) = (number.to_string(), rng.random_range(0..out.len()));
            out.splice(from..from, digits.bytes());
        }
    })
}

const CALLS: u32 = 10;
