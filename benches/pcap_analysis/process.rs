//! Processor time and memory, of this process and of others.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use sidetone_capture::report;
use sidetone_capture::{self as capture, EngineOptions, Source};

/// What one run took.
#[derive(Clone, Copy)]
pub struct Cost {
    pub user: Duration,
    pub system: Duration,
    pub elapsed: Duration,
}

impl Cost {
    /// The round of several that took the least processor time of the process; `elapsed` is the least of any round.
    pub fn least(rounds: u32, run: impl FnMut()) -> Self {
        Cost::least_by(UsageWho::RUSAGE_SELF, rounds, run)
    }

    /// The same for this thread.
    pub fn least_of_thread(rounds: u32, run: impl FnMut()) -> Self {
        Cost::least_by(UsageWho::RUSAGE_THREAD, rounds, run)
    }

    /// The same for the processes that a round starts and waits for.
    fn least_of_children(rounds: u32, run: impl FnMut()) -> Self {
        Cost::least_by(UsageWho::RUSAGE_CHILDREN, rounds, run)
    }

    fn least_by(who: UsageWho, rounds: u32, mut run: impl FnMut()) -> Self {
        let usage = || getrusage(who).expect("the system tells what was used");
        let costs = (0..rounds).map(|_| {
            let (before, begin) = (usage(), Instant::now());
            run();
            let (after, elapsed) = (usage(), begin.elapsed());
            let since = |time: fn(&Usage) -> TimeVal| duration(time(&after)) - duration(time(&before));
            Cost { user: since(Usage::user_time), system: since(Usage::system_time), elapsed }
        });
        let costs: Vec<Cost> = costs.collect();
        let elapsed = costs.iter().map(|cost| cost.elapsed).min().expect("at least one round");
        let least = costs.into_iter().min_by_key(|cost| cost.user + cost.system).expect("at least one round");
        Cost { elapsed, ..least }
    }
}

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1_000)
}

/// The largest resident size of a process that analyses `path` and writes the result as JSON.
pub fn peak_kib(path: &Path, threads: usize) -> u64 {
    let asked = format!("{threads} {}", path.display());
    let own = std::env::current_exe().expect("the bench knows its own file");
    let output = Command::new(own).env(CHILD, asked).stderr(Stdio::inherit()).output();
    let text = String::from_utf8(output.expect("the bench can be started again").stdout).expect("text");
    text.trim().parse().expect("a number")
}

/// The work of the process that [`peak_kib`] starts.
pub fn child(asked: &OsStr) {
    let asked = asked.to_string_lossy();
    let (threads, path) = asked.split_once(' ').expect("threads and a path");
    let options = EngineOptions { threads: threads.parse().expect("a number"), ..EngineOptions::default() };
    let file = Source::File(File::open(path).expect("the capture can be opened"));
    let outcome = capture::read_parts(options, path, file, &mut |_, _| {});
    let mut json = report::Json::object(std::io::sink());
    json.parts(outcome.parts).and_then(|()| json.finish()).expect("nothing refuses what is written");
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells what a process uses");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak is among it");
    println!("{}", peak.trim().trim_end_matches(" kB"));
}

/// The processor time of `tshark -z rtp,streams` and of `sidetone analyze` on the same file.
pub fn beside_tshark(path: &Path, rounds: u32) {
    let run = |command: &mut Command| {
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !run(Command::new("tshark").arg("--version")) {
        eprintln!("  tshark is not on the PATH: NOT compared with it");
        return;
    }
    let theirs = Cost::least_of_children(rounds, || {
        assert!(
            run(Command::new("tshark").args(["-q", "-z", "rtp,streams", "-r"]).arg(path)),
            "tshark failed"
        );
    });
    let total = |cost: Cost| (cost.user + cost.system).as_secs_f64();
    println!("  processor time: tshark {:.3} s", total(theirs));
    for threads in ["1", "2"] {
        let ours = Cost::least_of_children(rounds.max(ROUNDS_MIN), || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sidetone"));
            let command = command.args(["analyze", "--format", "json", "--threads", threads]).arg(path);
            assert!(run(command), "sidetone failed");
        });
        println!(
            "  sidetone analyze, {threads} thread(s): {:.4} s (user {:.4}, system {:.4}), {:.1} times less",
            total(ours),
            ours.user.as_secs_f64(),
            ours.system.as_secs_f64(),
            total(theirs) / total(ours)
        );
    }
}

/// A run of a tenth of a second is easily disturbed.
const ROUNDS_MIN: u32 = 7;
/// Set in the environment of a process that is to be measured: threads and a path.
pub const CHILD: &str = "SIDETONE_BENCH_CHILD";
