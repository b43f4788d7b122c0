//! `node_busy` is reported before quality suffers: an engine with too little processor time refuses calls over the API
//! while existing calls are still good.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::process::Process;
use crate::common::records::TempDir;
use crate::load::engine::Engine;
use crate::load::load;
use crate::load::provision;

/// The lengths of the pauses, in milliseconds: the engine is stopped for that long five times a second. From 5 ms on,
/// packets of that time count as late; a listener's jitter buffer bridges several times that.
const PAUSES_MS: [u64; 8] = [10, 20, 30, 40, 60, 90, 120, 160];
/// 99 of 100 audio packets of a call arrive within this delay, in milliseconds; a longer one would be audible.
const DELAY_MAX_MS: f64 = 60.0;
/// The share of packets that may be lost, in percent.
const LOSS_MAX_PCT: f64 = 1.0;
/// A pause that exceeds its length by more than this is caused by the machine, not the test.
const OVERRUN_MAX: Duration = Duration::from_millis(15);
const CALLS: usize = 8;

/// Stops and continues a process.
struct Pauses {
    shell: Process,
    /// The longest excess of a pause over its intended length.
    overrun: Duration,
}

impl Pauses {
    fn of(pid: u32, dir: &Path) -> Self {
        let script = format!("while read signal; do kill -$signal {pid}; done");
        let shell = Process::spawn("sh", "/bin/sh", "dash", dir, ["-c", &script]);
        Self { shell, overrun: Duration::ZERO }
    }

    /// Stops the process five times a second for `pause`, until `holds` is true, at most for `time`; returns whether it
    /// was.
    fn until(&mut self, pause: Duration, time: Duration, mut holds: impl FnMut() -> bool) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let began = Instant::now();
            self.shell.type_line("STOP");
            std::thread::sleep(pause);
            self.shell.type_line("CONT");
            self.overrun = self.overrun.max(began.elapsed().saturating_sub(pause));
            if holds() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(200).saturating_sub(began.elapsed()));
        }
        false
    }
}

/// Gives the key of the load program the permission to place calls, and makes only late packets count as load.
fn prepare(dir: &Path) {
    let change = |file: &str, from: &str, to: &str| {
        let path = dir.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}: {text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    };
    change("site.toml", "[\"calls:read\"]", "[\"calls:read\", \"calls:control\"]");
    change("sidetone.toml", "[node]\n", "[node]\nbusy_cpu_percent = 0\nbusy_late_percent = 2\n");
}

/// Whether a call over the API is refused because the node is busy; `None` before the phone is registered.
fn is_busy(engine: &Engine) -> Option<bool> {
    let call = r#"{"from": "100000", "to": "100001"}"#;
    let (status, answer) = engine.post("/api/v1/calls?dry_run=true", call);
    match status {
        200 => Some(false),
        503 => {
            assert_eq!(answer["error"]["code"], "node_busy", "{answer}");
            Some(true)
        }
        // Its phone is not registered yet.
        409 => None,
        _ => panic!("{status}: {answer}"),
    }
}

#[test]
fn an_engine_that_is_late_refuses_calls_before_those_that_are_up_suffer() {
    let dir = TempDir::new();
    provision(&dir, "20");
    prepare(dir.path());
    let mut engine = Engine::start(dir.path());
    let sip = engine.sip.to_string();
    let generator = std::thread::spawn(move || {
        let rate = ["--rate", "4", "--seconds", "2", "--hold", "40", "--phones", "8", "--rtp"];
        load(&[&["calls", "--engine", &sip][..], &rate].concat())
    });
    engine.until("the calls are up and the node is not busy", |engine| {
        let up = engine.get("/api/v1/calls?limit=100")["total"].as_u64();
        (up == Some(CALLS as u64) && is_busy(engine) == Some(false)).then_some(())
    });
    let mut pauses = Pauses::of(engine.pid(), dir.path());
    let step = Duration::from_secs(3);
    let found = PAUSES_MS
        .into_iter()
        .find(|pause| pauses.until(Duration::from_millis(*pause), step, || is_busy(&engine) == Some(true)));
    let report = generator.join().unwrap();
    let records = engine.records(CALLS);
    judge(found, pauses.overrun, &report, &records);
}

/// Checks that the node became busy, and that existing calls were good until then and afterwards.
fn judge(found: Option<u64>, overrun: Duration, report: &Value, records: &[Value]) {
    let pause = found.unwrap_or_else(|| panic!("no pause of {PAUSES_MS:?} ms made the node busy"));
    let verdicts: Vec<&Value> = records.iter().map(|record| &record["media_verdict"]).collect();
    let figure = |name: &str| report[name].as_f64().unwrap_or_else(|| panic!("no {name}: {report:#}"));
    let (delay, loss) = (figure("delay p99 [ms]"), figure("loss [%]"));
    let is_good =
        verdicts.iter().all(|verdict| **verdict == "ok") && delay <= DELAY_MAX_MS && loss <= LOSS_MAX_PCT;
    let seen = format!(
        "busy at pauses of {pause} ms (up to {} ms longer than intended): verdicts {verdicts:?}, delay p99 {delay} ms, \
         loss {loss} %",
        overrun.as_millis()
    );
    if !is_good && overrun > OVERRUN_MAX {
        eprintln!("not judged, because this machine is overloaded by others: {seen}");
        return;
    }
    assert!(is_good, "quality suffered before node_busy came: {seen}");
}
