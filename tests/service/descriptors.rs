//! A process without free descriptors: it waits, burns nothing, and goes on.

use std::time::Instant;

use tokio::net::TcpStream;

use crate::client::Ask;
use crate::records::TempDir;
use crate::served::{Served, Start, config};
use crate::site::{declare, directory, within};

/// Processor time of a process, in hundredths of a second.
fn cpu(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Behind the name, which may hold anything: utime and stime are the fields 14 and 15.
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_descriptors_it_waits_and_recovers() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let http =
        "[http]\nlisten = \"127.0.0.1:0\"\nconnections_per_address_max = 1000\nheader_seconds = 3600\n";
    let start =
        Start { config: config(dir.path(), http), log: "error,sidetone_api=debug", files_max: Some(90) };
    let engine = Served::with(dir.path(), start).await;
    let mut held = Vec::new();
    for _ in 0..120 {
        held.push(within("a connection", TcpStream::connect(engine.http)).await.unwrap());
    }
    engine.says("the system gives no connection", 1).await;
    let (before, began) = (cpu(engine.pid()), Instant::now());
    // Its pauses double: the fourth failure after the first comes 0.75 s behind it, however fast the machine is.
    engine.says("the system still gives no connection", 4).await;
    let used = cpu(engine.pid()) - before;
    let passed = u64::try_from(began.elapsed().as_millis()).unwrap() / 10;
    assert!(used * 4 < passed, "{used} of {passed} hundredths of a second");
    assert_eq!(engine.said().matches("the system gives no connection").count(), 1, "{}", engine.said());
    drop(held);
    let answer = Ask::new("GET", "/healthz").send(engine.http).await;
    assert_eq!(answer.status, 200);
}
