//! Hours of ordinary load: calls, a conference, notes, the HTTP API (catalogue T13).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::records::TempDir;
use crate::long::check::{Checks, note, setting};
use crate::long::engine::{Engine, Start, apply, found, key, organisation};
use crate::long::office::Office;
use crate::long::usage::{Sample, Sampler, peak_mib, slope_mib_per_s};

#[test]
#[ignore = "long: half an hour"]
fn long_t13_soak() {
    let lasts = Duration::from_secs_f64(60.0 * setting("SIDETONE_T13_MINUTES", 30.0));
    let cps: u32 = setting("SIDETONE_T13_CALLS_PER_SECOND", 20);
    let rps: u32 = setting("SIDETONE_T13_REQUESTS_PER_SECOND", 100);
    let mut checks = Checks::default();
    let dir = TempDir::new();
    let room = "[[organisations.rooms]]\nname = \"Room\"\nnumber = \"200\"\nparticipant_pin = \"\"\n";
    let phones = 2 * PAIRS + MEMBERS;
    apply(dir.path(), &(organisation(1, DOMAIN, 1_000, phones) + room));
    let mut engine = Engine::start(dir.path(), &Start::default());
    let office = Office::open(&engine, 50, DOMAIN, 1_000, phones);
    office.register();
    let tally = Tally::default();
    let stop = AtomicBool::new(false);
    let sampler = Sampler::start(engine.pid());
    let disk = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let (office, stop, tally) = (&office, &stop, &tally);
            scope.spawn(move || call_on(office, lane, cps, stop, tally));
        }
        let (engine, office, stop, tally, disk) = (&engine, &office, &stop, &tally, &disk);
        scope.spawn(move || meet(office, stop, tally));
        scope.spawn(move || note_down(engine, stop, tally));
        for _ in 0..READERS {
            scope.spawn(move || read(engine, rps, stop, tally));
        }
        let (began, mut last, mut registered) = (Instant::now(), Duration::ZERO, Instant::now());
        while began.elapsed() < lasts {
            if registered.elapsed() >= REGISTER_EVERY {
                registered = Instant::now();
                office.register();
            }
            std::thread::sleep(Duration::from_millis(500));
            if began.elapsed() >= last {
                disk.lock().unwrap().push((began.elapsed(), bytes_below(dir.path()), tally.calls()));
                last += lasts / 20;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let samples = sampler.stop();

    let warm = lasts / 3;
    note(format!("MiB resident after each twelfth: {}", in_twelfths(&samples, lasts)));
    let slope = slope_mib_per_s(&samples, warm) * 3_600.0;
    let figure =
        format!("{slope:.2} MiB/h behind the first third, {:.0} MiB at the peak", peak_mib(&samples));
    checks.check("T13 memory", slope < 1.0, figure, "< 1 MiB/h");
    let fds: Vec<usize> =
        samples.iter().filter(|sample| sample.at >= warm).map(|sample| sample.fds).collect();
    let (half, most) = (fds.len() / 2, |part: &[usize]| part.iter().max().copied().unwrap_or(0));
    let (first, second) = (most(&fds[..half]), most(&fds[half..]));
    checks.check("T13 descriptors", second <= first + 16, format!("{first} at most, then {second}"), "flat");
    let errors = tally.errors.lock().unwrap().clone();
    let figure =
        format!("{} calls, {} reads, {} errors {errors:?}", tally.calls(), tally.reads(), errors.len());
    checks.check("T13 errors", errors.is_empty() && engine.is_alive(), figure, "0");
    notes_arrive(&engine, &tally, &mut checks);
    disk_grows_as_predicted(&disk.into_inner().unwrap(), &mut checks);
    let panics = engine.metrics().of("sidetone_panics_total", "").unwrap_or(0.0);
    checks.check("T13 panics", panics == 0.0, panics, "0");
    checks.end();
}

/// The successful operations and the failures.
#[derive(Default)]
struct Tally {
    calls: AtomicU64,
    reads: AtomicU64,
    /// The extensions to which notes were sent, and the number of notes of each kind.
    noted: Mutex<BTreeSet<String>>,
    messages: AtomicU64,
    infos: AtomicU64,
    errors: Mutex<Vec<String>>,
}

impl Tally {
    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn error(&self, text: String) {
        let mut errors = self.errors.lock().unwrap();
        if errors.len() < 20 {
            errors.push(text);
        }
    }
}

/// The resident memory at the end of each twelfth of the time.
fn in_twelfths(samples: &[Sample], lasts: Duration) -> String {
    let at = |twelfth: u32| samples.iter().rfind(|sample| sample.at <= lasts * twelfth / 12);
    let sizes: Vec<String> =
        (1..=12).filter_map(at).map(|sample| format!("{:.0}", sample.rss_mib())).collect();
    sizes.join(" ")
}

/// Every note to an extension was accepted by its phone.
fn notes_arrive(engine: &Engine, tally: &Tally, checks: &mut Checks) {
    let (messages, infos) = (tally.messages.load(Ordering::Relaxed), tally.infos.load(Ordering::Relaxed));
    let extensions = tally.noted.lock().unwrap().clone();
    let sent = found("the last note", Duration::from_secs(30), || {
        let total = |status: &str| -> u64 {
            let of = |id: &String| -> u64 {
                let path = format!("/api/v1/extensions/{id}/messages?limit=1&status={status}");
                let body = engine.get(&path, Some(&key(1))).map(|(_, body)| body).unwrap_or_default();
                let page: Value = serde_json::from_str(&body).unwrap_or_default();
                page["total"].as_u64().unwrap_or_default()
            };
            extensions.iter().map(of).sum()
        };
        let (sent, failed) = (total("sent"), total("failed"));
        (sent + failed >= messages).then_some(sent)
    });
    let figure = format!("{sent} of {messages} to extensions taken, {infos} into calls sent");
    checks.check("T13 notes", sent == messages && messages > 0 && infos > 0, figure, "all taken");
}

/// The bytes per call on disk stay as in the first half of the time, ± 5 %.
fn disk_grows_as_predicted(disk: &[(Duration, u64, u64)], checks: &mut Checks) {
    let at = |share: usize| disk[(disk.len() - 1) * share / 4];
    let per_call = |from: (Duration, u64, u64), to: (Duration, u64, u64)| {
        (to.1 as f64 - from.1 as f64) / (to.2 - from.2).max(1) as f64
    };
    let (early, late) = (per_call(at(1), at(2)), per_call(at(2), at(4)));
    let figure = format!("{early:.0} octets a call, then {late:.0}");
    checks.check("T13 disk", late <= early * 1.05, figure, "as predicted, + 5 % at most");
}

/// Calls of two seconds, one after the other, on the lane's pairs.
fn call_on(office: &Office, lane: u32, cps: u32, stop: &AtomicBool, tally: &Tally) {
    let every = Duration::from_secs(1) * LANES / cps;
    std::thread::sleep(every * lane / LANES);
    let pairs: Vec<usize> =
        (0..PAIRS).filter(|pair| pair % LANES == lane).map(|pair| pair as usize).collect();
    let mut open = std::collections::VecDeque::new();
    for pair in pairs.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        let [caller, callee] = [0, 1].map(|side| &office.phones[2 * pair + side]);
        match caller.call(&callee.number) {
            Some(answer) if answer.status == 200 => {
                tally.calls.fetch_add(1, Ordering::Relaxed);
                open.push_back((began, *pair));
            }
            other => tally.error(format!("call: {other:?}")),
        }
        while open.front().is_some_and(|(began, _)| began.elapsed() >= TALK || open.len() + 1 >= pairs.len())
        {
            let Some((_, pair)) = open.pop_front() else { break };
            let ended = office.phones[2 * pair].bye();
            if ended.as_ref().is_none_or(|answer| answer.status != 200) {
                tally.error(format!("BYE: {ended:?}"));
            }
        }
        std::thread::sleep(every.saturating_sub(began.elapsed()));
    }
    for (_, pair) in open {
        office.phones[2 * pair].bye();
    }
}

/// A room that fills and empties.
fn meet(office: &Office, stop: &AtomicBool, tally: &Tally) {
    let members = &office.phones[2 * PAIRS as usize..];
    while !stop.load(Ordering::Relaxed) {
        for member in members {
            let answer = member.call("200");
            if answer.as_ref().is_none_or(|answer| answer.status != 200) {
                tally.error(format!("room: {answer:?}"));
            }
        }
        std::thread::sleep(Duration::from_secs(5));
        for member in members {
            member.bye();
        }
    }
}

/// Twice a second a note into a live call, and one to an extension in that call.
fn note_down(engine: &Engine, stop: &AtomicBool, tally: &Tally) {
    let body = json!({"title": "Customer owes 900 EUR", "level": "info", "customer": "Jane Doe"});
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(500));
        let live = engine.get("/api/v1/calls?state=answered&limit=1", Some(&key(1)));
        let page: Value = live.and_then(|(_, body)| serde_json::from_str(&body).ok()).unwrap_or_default();
        let call = &page["items"][0];
        let (Some(uuid), Some(extension)) = (call["uuid"].as_str(), call["extension_id"].as_str()) else {
            continue;
        };
        match engine.post(&format!("/api/v1/calls/{uuid}/info"), &key(1), &body).map(|answer| answer.0) {
            Some(202) => drop(tally.infos.fetch_add(1, Ordering::Relaxed)),
            // The call ended in between.
            Some(404 | 409) => {}
            other => tally.error(format!("a note into a call: {other:?}")),
        }
        let path = format!("/api/v1/extensions/{extension}/message");
        match engine.post(&path, &key(1), &body).map(|answer| answer.0) {
            Some(202) => {
                tally.messages.fetch_add(1, Ordering::Relaxed);
                tally.noted.lock().unwrap().insert(extension.to_owned());
            }
            other => tally.error(format!("a note to an extension: {other:?}")),
        }
    }
}

/// Reads the call log and the live calls, in turn.
fn read(engine: &Engine, rps: u32, stop: &AtomicBool, tally: &Tally) {
    let every = Duration::from_secs(1) * READERS / rps;
    let paths = ["/api/v1/cdrs?limit=50", "/api/v1/calls", "/api/v1/conferences", "/readyz"];
    for path in paths.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
        let began = Instant::now();
        match engine.get(path, Some(&key(1))) {
            Some((200, _)) => {
                tally.reads.fetch_add(1, Ordering::Relaxed);
            }
            other => tally.error(format!("{path}: {:?}", other.map(|answer| answer.0))),
        }
        std::thread::sleep(every.saturating_sub(began.elapsed()));
    }
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(of) if of.is_dir() => bytes_below(&entry.path()),
        Ok(of) => of.len(),
        // A file of the database that was removed in the meantime.
        Err(_) => 0,
    };
    let bytes = entries.map(size).sum();
    if bytes > 0 {
        return bytes;
    }
    note(format!("{} is empty", dir.display()));
    0
}

const DOMAIN: &str = "load.test";
/// Enough for twenty two-second calls a second.
const PAIRS: u32 = 60;
const LANES: u32 = 10;
const MEMBERS: u32 = 3;
const READERS: u32 = 4;
const TALK: Duration = Duration::from_secs(2);
/// Well before the registrations of the phones expire (an hour).
const REGISTER_EVERY: Duration = Duration::from_secs(20 * 60);
