//! The cost of a complete analysis (calls found, every stream and call judged): stage by stage, with one thread and
//! with several, the memory it takes, and TShark for comparison.
//!
//! Files are read through the page cache as `sidetone analyze` reads them. Times are processor time, user and
//! system apart, the least of several rounds, so other programs on the machine disturb them little.
//!
//! `SIDETONE_BENCH_PCAP=FILE` measures an existing capture instead of the generated ones;
//! `SIDETONE_BENCH_PACKETS` (1,000,000) and `SIDETONE_BENCH_ROUNDS` (7) set the size and the number of rounds.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a bench may fail by panicking, prints its figures and reads the clock"
)]

mod process;
mod stages;
mod traffic;

use std::path::{Path, PathBuf};

use crate::process::Cost;

fn main() {
    if let Some(asked) = std::env::var_os(process::CHILD) {
        return process::child(&asked);
    }
    let number = |name: &str, default: u32| {
        std::env::var(name).ok().and_then(|text| text.replace('_', "").parse().ok()).unwrap_or(default)
    };
    let rounds = number("SIDETONE_BENCH_ROUNDS", 7).max(1);
    let packets = number("SIDETONE_BENCH_PACKETS", 1_000_000).max(10_000);
    if let Some(path) = std::env::var_os("SIDETONE_BENCH_PCAP") {
        measure(&path.to_string_lossy(), Path::new(&path), rounds);
        return;
    }
    let folder = Folder::new();
    for (calls, network) in
        [(1, ROUGH), (1, FINE), (200, ROUGH), (200, FINE), (1_000, ROUGH), (20_000, ROUGH)]
    {
        let path = folder.0.join(format!("{calls}.pcap"));
        // Each call has at least 100 packets, so many calls make the file longer.
        traffic::write(&path, network, calls, packets.max(calls * 100));
        let calls = if calls == 1 { "one call".to_owned() } else { format!("{calls} calls") };
        measure(&format!("{calls}, {network}"), &path, rounds);
        std::fs::remove_file(&path).expect("the capture was written a moment ago");
    }
}

/// A network with a little loss and jitter.
const ROUGH: &str = "clean loss=0.5 jitter=0..20";
/// A network without loss and jitter.
const FINE: &str = "clean";

/// Measures everything about one capture.
fn measure(name: &str, path: &Path, rounds: u32) {
    let (size, found) = stages::look(path);
    let packets = found.packets.max(1);
    println!(
        "\n{name}: {packets} packets, {:.1} MB, {} calls, {} streams",
        size as f64 / 1e6,
        found.calls,
        found.streams
    );
    println!("  {:<34} {:>9} {:>9} {:>9} {:>12}", "ns per packet", "user", "system", "elapsed", "packets/s");
    let line = |what: &str, cost: Cost| {
        let per_packet = |time: std::time::Duration| time.as_nanos() as f64 / packets as f64;
        println!(
            "  {what:<34} {:>9.1} {:>9.1} {:>9.1} {:>12.0}",
            per_packet(cost.user),
            per_packet(cost.system),
            per_packet(cost.elapsed),
            packets as f64 / cost.elapsed.as_secs_f64()
        );
    };
    line("read", Cost::least(rounds, || stages::read(path)));
    line("read, records", Cost::least(rounds, || stages::walk(path)));
    line("read, records, headers", Cost::least(rounds, || stages::dissect(path)));
    let one = Cost::least(rounds, || stages::analyze(path, 1));
    line("all of it", one);
    println!(
        "  {:<34} {:>9.2} million packets per second of user time",
        "",
        packets as f64 / one.user.as_secs_f64() / 1e6
    );
    let two = Cost::least(rounds, || stages::analyze(path, 2));
    line("all of it, 2 threads", two);
    line("  of it, the engine's thread", Cost::least_of_thread(rounds, || stages::analyze(path, 2)));
    println!(
        "  {:<34} {:>9.2} times as fast as one",
        "",
        one.elapsed.as_secs_f64() / two.elapsed.as_secs_f64()
    );
    for threads in [1, 2] {
        let peak_kib = process::peak_kib(path, threads);
        let allowed_kib = 64 * 1_024 + found.streams as u64;
        println!("  peak memory, {threads} thread(s): {peak_kib} KiB of {allowed_kib}");
    }
    process::beside_tshark(path, rounds.min(3));
}

/// A folder that is removed when the value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("sidetone-pcap-analysis-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary folder is writable");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
