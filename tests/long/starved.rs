//! The engine with too few resources: memory (catalogue T10), processors (T11).

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::records::TempDir;
use crate::long::check::{Checks, note, seconds, setting};
use crate::long::engine::{Engine, Start, apply, found, organisation};
use crate::long::office::Office;
use crate::long::usage::Sample;

/// Limits the address space to twice the need of the calls that the media ports admit, and offers half as many calls
/// again.
#[test]
#[ignore = "long: one minute"]
fn long_t10_memory_cap() {
    let mut checks = Checks::default();
    let phones = 2 * OFFERED;
    let start = |wrapper| Start { ports: CHANNELS.to_owned(), wrapper, ..Start::default() };
    let dir = TempDir::new();
    apply(dir.path(), &organisation(1, DOMAIN, 1_000, phones));
    let steady = {
        let engine = Engine::start(dir.path(), &start(Vec::new()));
        let office = Office::open(&engine, 50, DOMAIN, 1_000, phones);
        office.register();
        office.connect(0..ADMITTED as usize);
        std::thread::sleep(Duration::from_secs(3));
        Sample::of(engine.pid(), Duration::ZERO).unwrap()
    };
    let cap = steady.virtual_kib * 1024 * 2;
    note(format!(
        "steady state: {} MiB of address space, {:.0} MiB resident",
        steady.virtual_kib >> 10,
        steady.rss_mib()
    ));
    let prlimit = ["prlimit".to_owned(), format!("--as={cap}")];
    let mut engine = Engine::start(dir.path(), &start(prlimit.to_vec()));
    let office = Office::open(&engine, 50, DOMAIN, 1_000, phones);
    office.register();
    let before = engine.metrics().of("sidetone_call_records_stored_total", "").unwrap_or(0.0);
    let statuses: Vec<u16> = (0..OFFERED as usize)
        .map(|pair| {
            let callee = &office.phones[2 * pair + 1];
            office.phones[2 * pair].call(&callee.number).map_or(0, |answer| answer.status)
        })
        .collect();
    let window = office.window();
    std::thread::sleep(seconds("SIDETONE_T10_SECONDS", 20));
    let up: Vec<usize> = (0..OFFERED as usize).filter(|pair| office.up(*pair..pair + 1) == 1).collect();
    let mut loss = crate::long::office::Loss::default();
    for pair in &up {
        let of = office.loss(&window, *pair..pair + 1);
        loss.sent += of.sent;
        loss.lost += of.lost;
    }
    let admitted = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 503).count();
    let right =
        admitted >= ADMITTED as usize * 9 / 10 && refused > 0 && admitted + refused == OFFERED as usize;
    checks.check(
        "T10 admission",
        right,
        format!("{admitted} up, {refused} × 503 of {OFFERED}"),
        "the rest gets 503",
    );
    let figure = format!("{} of {} packets lost", loss.lost, loss.sent);
    checks.check(
        "T10 quality",
        up.len() == admitted && loss.percent() <= 0.1,
        figure,
        "≤ 0.1 % lost, all up",
    );
    checks.check("T10 memory", engine.is_alive(), engine.is_alive(), "0 out of memory");
    for pair in &up {
        office.phones[2 * pair].bye();
    }
    let billed = |engine: &Engine| {
        let records = engine.records(1);
        records.iter().filter(|record| record["billsec"].as_u64() > Some(0)).count()
    };
    found("the records", Duration::from_secs(60), || {
        let stored = engine.metrics().of("sidetone_call_records_stored_total", "").unwrap_or(0.0);
        (stored - before >= admitted as f64).then_some(())
    });
    let billed = billed(&engine);
    checks.check(
        "T10 billing",
        billed <= admitted,
        format!("{billed} records with seconds"),
        "none of the refused",
    );
    checks.end();
}

/// A hundred calls and a room of three, beside two processes that use all processors.
#[test]
#[ignore = "long: two minutes"]
fn long_t11_processors_taken() {
    let calls: usize = setting("SIDETONE_T11_CALLS", 100);
    let lasts = seconds("SIDETONE_T11_SECONDS", 60);
    let mut checks = Checks::default();
    let dir = TempDir::new();
    let phones = 2 * u32::try_from(calls).unwrap() + MEMBERS;
    let room = "[[organisations.rooms]]\nname = \"Room\"\nnumber = \"200\"\nparticipant_pin = \"\"\n";
    apply(dir.path(), &(organisation(1, DOMAIN, 1_000, phones) + room));
    let mut engine = Engine::start(dir.path(), &Start::default());
    let office = Office::open(&engine, 50, DOMAIN, 1_000, phones);
    office.register();
    office.connect(0..calls);
    let members = &office.phones[2 * calls..];
    let joined =
        members.iter().filter(|phone| phone.call("200").is_some_and(|answer| answer.status == 200)).count();
    assert_eq!(joined, MEMBERS as usize, "the room");

    let before = lateness(&engine);
    let window = office.window();
    let mut stress = Stress::start(lasts);
    std::thread::sleep(lasts);
    stress.end();
    let loss = office.loss(&window, 0..calls);
    let late = lateness(&engine).since(&before);
    let up = office.up(0..calls);
    let in_room = members.iter().filter(|phone| phone.is_up()).count();
    let (p99, most) = (late.quantile_ms(0.99), late.quantile_ms(1.0));
    let figure = format!("p99 ≤ {p99} ms, most ≤ {most} ms of {} ticks", late.count);
    checks.check("T11 tick", late.count > 0.0 && p99 < 20.0, figure, "p99 < 20 ms late");
    let figure =
        format!("{up} of {calls} calls, {in_room} of {MEMBERS} members, {:.3} % lost", loss.percent());
    checks.check(
        "T11 calls",
        up == calls && in_room == MEMBERS as usize && engine.is_alive(),
        figure,
        "none dropped",
    );
    for pair in 0..calls {
        office.phones[2 * pair].bye();
    }
    let records = found("the records", Duration::from_secs(60), || {
        let records = engine.records(1);
        let ended = records.iter().filter(|record| record["destination_number"] != "200").count();
        (ended >= calls).then_some(records)
    });
    let mut verdicts = std::collections::BTreeMap::<String, u32>::new();
    for record in records.iter().filter(|record| record["destination_number"] != "200") {
        *verdicts.entry(record["media_verdict"].to_string()).or_default() += 1;
    }
    let ok = verdicts.get("\"ok\"").copied().unwrap_or(0) as usize;
    checks.check("T11 verdicts", ok == calls, format!("{verdicts:?}"), "all ok");
    checks.end();
}

/// `stress-ng`, which is killed when the value is dropped.
struct Stress(Child);

impl Stress {
    fn start(lasts: Duration) -> Stress {
        let timeout = format!("{}s", lasts.as_secs());
        let mut command = Command::new("stress-ng");
        command.args(["--cpu", "2", "--timeout", &timeout]).stdout(Stdio::null()).stderr(Stdio::null());
        Stress(command.spawn().expect("stress-ng is installed (apt install stress-ng)"))
    }

    fn end(&mut self) {
        // It may have reached its time limit.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Stress {
    fn drop(&mut self) {
        self.end();
    }
}

/// The histogram of tick lateness: counts up to each bound, in seconds.
struct Lateness {
    buckets: Vec<(f64, f64)>,
    count: f64,
}

fn lateness(engine: &Engine) -> Lateness {
    let metrics = engine.metrics();
    let bucket = |line: &&str| {
        let bound = line.split_once("le=\"")?.1.split('"').next()?.parse().ok()?;
        Some((bound, line.rsplit_once(' ')?.1.parse().ok()?))
    };
    let lines = metrics.lines("sidetone_mix_tick_lateness_seconds_bucket");
    let buckets = lines.iter().filter_map(bucket).collect();
    let count = metrics.of("sidetone_mix_tick_lateness_seconds_count", "").unwrap_or(0.0);
    Lateness { buckets, count }
}

impl Lateness {
    fn since(self, before: &Lateness) -> Lateness {
        let earlier = |bound: f64| {
            before.buckets.iter().find(|(known, _)| *known == bound).map_or(0.0, |(_, count)| *count)
        };
        let buckets =
            self.buckets.into_iter().map(|(bound, count)| (bound, count - earlier(bound))).collect();
        Lateness { buckets, count: self.count - before.count }
    }

    /// The smallest bound, in milliseconds, that covers this share.
    fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = self.count * share;
        self.buckets
            .iter()
            .find(|(_, count)| *count >= wanted)
            .map_or(f64::INFINITY, |(bound, _)| bound * 1e3)
    }
}

const DOMAIN: &str = "load.test";
/// Two pairs of ports for each of forty calls.
const CHANNELS: &str = "32000-32159";
const ADMITTED: u32 = 40;
const OFFERED: u32 = 60;
const MEMBERS: u32 = 3;
