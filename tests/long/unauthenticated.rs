//! Valid requests without credentials, thousands a second for minutes (catalogue T2).

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::common::records::TempDir;
use crate::long::check::{Checks, seconds, setting};
use crate::long::engine::{Engine, Start, apply, organisation};
use crate::long::flooder::{Flood, requests};
use crate::long::office::{Office, address};
use crate::long::usage::{Sampler, peak_mib, slope_mib_per_s};

#[test]
#[ignore = "long: two minutes"]
fn long_t2_requests_without_credentials() {
    let lasts = seconds("SIDETONE_T2_SECONDS", 120);
    let rate = setting("SIDETONE_T2_PER_SECOND", 5_000);
    let mut checks = Checks::default();
    let dir = TempDir::new();
    apply(dir.path(), &organisation(1, "load.test", 1_000, 200));
    let mut engine = Engine::start(dir.path(), &Start::default());
    let office = Office::open(&engine, 50, "load.test", 1_000, 4);
    office.register();
    let sources: Vec<Ipv4Addr> = (0..SOURCES).map(|index| address(69, index)).collect();
    let sampler = Sampler::start(engine.pid());
    let flood = Flood::start(engine.sip, &sources, rate, requests(&["REGISTER", "INVITE"], "load.test", 2));
    std::thread::sleep(lasts / 2);
    let during = engine.metrics();
    std::thread::sleep(lasts / 2);
    let (sent, per_second) = flood.stop();
    let samples = sampler.stop();

    checks.check(
        "T2 rate",
        per_second >= 0.9 * rate as f64,
        format!("{sent} at {per_second:.0}/s"),
        "5,000/s",
    );
    let slope = slope_mib_per_s(&samples, lasts.min(Duration::from_secs(30))) * 60.0;
    let figure = format!("{slope:.2} MiB/min behind 30 s, {:.0} MiB at the peak", peak_mib(&samples));
    checks.check("T2 memory", slope < 1.0, figure, "< 1 MiB/min");
    let left = [during.of("sidetone_calls_live", ""), during.of("sidetone_legs_live", "")];
    checks.check("T2 dialogs", left == [Some(0.0); 2], format!("calls, legs {left:?}"), "0");
    let alive = engine.is_alive() && office.phones[0].register().is_some_and(|answer| answer.status == 200);
    checks.check("T2 afterwards", alive, alive, "a phone registers");
    checks.end();
}

const SOURCES: u32 = 100;
