//! The complete life of traces: written, read again, refused by a disk, deleted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use sidetone_media::session::{Report, Session, SessionConfig};
use sidetone_media::time::Micros;
use sidetone_media::trace::{Replay, TraceSink, TracedSession};
use sidetone_model::ids::CallId;
use sidetone_model::time::Timestamp;
use sidetone_switch::io::LegName;
use uuid::Uuid;

use crate::driver::Tracing;
use crate::supervise::Supervisor;
use crate::traces::counters::TraceCounters;
use crate::traces::sink::{FileSink, TraceFile};
use crate::traces::{TraceSettings, Traces};

const ON: TraceSettings = TraceSettings { on: true, days: 7 };
const DAY_US: i64 = 24 * 3_600 * 1_000_000;
/// 2026-09-21T14:13:20Z.
const NOW_US: i64 = 1_790_000_000_000_000;

fn now() -> Timestamp {
    Timestamp::from_micros(NOW_US)
}

fn leg(number: u128, fork: Option<usize>) -> LegName {
    LegName { call: CallId(Uuid::from_u128(number)), fork }
}

/// A leg with some packets, with a trace if traces are on.
fn talk(traces: &Traces, leg: LegName, packets: i64) -> Report {
    let mut session = TracedSession::new(Session::new(SessionConfig::default()));
    if let Some((head, sink)) = traces.begins().begin(leg) {
        session.trace(head, sink);
    }
    session.answer(Micros(0));
    for n in 0..packets {
        let mut datagram = [0_u8; 172];
        datagram[..2].copy_from_slice(&[0x80, 0]);
        datagram[2..4].copy_from_slice(&(n as u16).to_be_bytes());
        session.receive(Micros(n * 20_000), ([192, 0, 2, 1], 4000).into(), &datagram);
    }
    session.close(Micros(packets * 20_000))
}

fn replay(path: &Path) -> Report {
    let bytes = std::fs::read(path).unwrap();
    let mut replay = Replay::new();
    let used = replay.feed(&bytes).unwrap();
    replay.finish(bytes.len() - used).unwrap().report
}

/// Waits for an effect of the thread.
#[expect(clippy::disallowed_methods, reason = "a test that waits must end")]
fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_leg_is_found_again_on_disk() {
    let dir = tempdir("found");
    let traces =
        Traces::start(dir.clone(), "node one".to_owned(), ON, 0, now, &Supervisor::default()).unwrap();
    let counters = traces.counters();
    let mut live = Vec::new();
    for (number, fork, name) in [(1, None, "a"), (1, Some(0), "b"), (2, Some(1), "b2")] {
        let report = talk(&traces, leg(number, fork), 3_000);
        let file = report.trace.clone().unwrap();
        let expected = format!("2026-09-21/{}-{name}.trace", Uuid::from_u128(number));
        assert_eq!((file.name.as_str(), file.missing), (expected.as_str(), 0));
        live.push(report);
    }
    traces.set(TraceSettings { on: false, ..ON });
    assert_eq!(talk(&traces, leg(3, None), 10).trace, None, "switched off");
    traces.stop();
    let mut bytes = 0;
    for report in live {
        let file = report.trace.clone().unwrap();
        let path = dir.join(&file.name);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), file.bytes);
        let told = sidetone_capture::read("leg", &mut std::fs::File::open(&path).unwrap(), &mut |_| {});
        let call = &told.analysis.calls[0];
        let whose = if file.name.ends_with("-a.trace") { "the caller" } else { "the called party" };
        assert!(call.quality().sentence.contains(whose), "{}: {}", file.name, call.quality().sentence);
        assert_eq!(replay(&path), Report { trace: None, ..report });
        bytes += file.bytes;
    }
    assert_eq!((counters.begun(), counters.bytes(), counters.dropped()), (3, bytes, 0));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_disk_without_room_costs_the_trace_alone() {
    let dir = tempdir("full");
    let traces =
        Traces::start(dir.clone(), String::new(), ON, u64::MAX, now, &Supervisor::default()).unwrap();
    let report = talk(&traces, leg(1, None), 50_000);
    assert_eq!(report.counters.datagrams, 50_000);
    let counters = traces.counters();
    traces.stop();
    assert!(counters.dropped() > 0);
    assert_eq!(counters.bytes(), 0);
    assert!(!dir.join(report.trace.unwrap().name).exists());
}

#[test]
fn a_worker_never_waits_for_a_slow_disk() {
    let (blocks, received) = bounded(2);
    let (_emptied, empties) = bounded(2);
    let file = TraceFile { name: "x".to_owned(), path: "x".into(), over: AtomicBool::new(false) };
    let counters = Arc::new(TraceCounters::default());
    let sink = FileSink { file: Arc::new(file), blocks, empties, counters: Arc::clone(&counters) };
    for _ in 0..2 {
        assert!(sink.append(vec![1]).is_some());
    }
    assert!(sink.append(vec![2]).is_none());
    assert_eq!(counters.dropped(), 1);
    received.recv().unwrap();
    assert!(sink.append(vec![3]).is_some(), "what is said of the end finds room again");
    sink.file.over.store(true, Relaxed);
    assert!(sink.append(vec![4]).is_none(), "the disk has refused");
}

#[test]
fn days_pass() {
    static CLOCK_US: AtomicI64 = AtomicI64::new(NOW_US);
    fn clock() -> Timestamp {
        Timestamp::from_micros(CLOCK_US.load(Relaxed))
    }
    let dir = tempdir("days");
    let old = ["2026-09-01", "2026-09-13", "2026-09-14", "notes", "2026-9-1"];
    for day in old {
        std::fs::create_dir_all(dir.join(day)).unwrap();
        for n in 0..200 {
            std::fs::write(dir.join(day).join(format!("{n}.trace")), "x").unwrap();
        }
    }
    std::fs::write(dir.join("2026-09-01/mine.txt"), "not a trace").unwrap();
    let traces = Traces::start(dir.clone(), String::new(), ON, 0, clock, &Supervisor::default()).unwrap();
    let kept = talk(&traces, leg(1, None), 100).trace.unwrap();
    until("the trace is written", || dir.join(&kept.name).exists());
    until("the old day is gone", || !dir.join("2026-09-13").exists());
    until("the other is empty", || std::fs::read_dir(dir.join("2026-09-01")).unwrap().count() == 1);
    let left = |day: &str| std::fs::read_dir(dir.join(day)).map_or(0, Iterator::count);
    assert_eq!(
        [left("2026-09-14"), left("notes"), left("2026-9-1")],
        [200, 200, 200],
        "not ours, or not old"
    );
    CLOCK_US.fetch_add(8 * DAY_US, Relaxed);
    until("the trace is gone", || !dir.join(&kept.name).exists());
    traces.stop();
    std::fs::remove_dir_all(dir).unwrap();
}

fn tempdir(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("sidetone-traces-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}
