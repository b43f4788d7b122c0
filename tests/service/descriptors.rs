//! A process without free descriptors: it waits, uses no processor time, and recovers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_phone::CallPlan;
use tokio::net::TcpStream;

use crate::common::records::TempDir;
use crate::common::site::{
    answering, calls, declare, directory, open_end, phone_config, registered, until, within,
};
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

/// Processor time of a process, in hundredths of a second.
fn cpu(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // After the name, which may contain anything: utime and stime are the fields 14 and 15.
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_descriptors_it_waits_and_recovers() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let http =
        "[http]\nlisten = \"127.0.0.1:0\"\nconnections_per_address_max = 1000\nheader_seconds = 3600\n";
    let start = Start {
        config: config(dir.path(), http),
        log: "error,sidetone_api=debug",
        files_max: Some(90),
        env: Vec::new(),
    };
    let engine = Served::with(dir.path(), start).await;
    let mut held = Vec::new();
    for _ in 0..120 {
        held.push(within("a connection", TcpStream::connect(engine.http)).await.unwrap());
    }
    engine.says("the system gives no connection", 1).await;
    let (before, began) = (cpu(engine.pid()), Instant::now());
    // Its pauses double: the fourth failure after the first comes 0.75 s later, however fast the machine is.
    engine.says("the system still gives no connection", 4).await;
    let used = cpu(engine.pid()) - before;
    let passed = u64::try_from(began.elapsed().as_millis()).unwrap() / 10;
    assert!(used * 4 < passed, "{used} of {passed} hundredths of a second");
    assert_eq!(engine.said().matches("the system gives no connection").count(), 1, "{}", engine.said());
    drop(held);
    let answer = Ask::new("GET", "/healthz").send(engine.http).await;
    assert_eq!(answer.status, 200);
}

/// T9: live calls keep their audio, new ones are refused, a failed set-up leaves nothing, and it recovers immediately.
async fn starved(failures: usize) {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let http =
        "[http]\nlisten = \"127.0.0.1:0\"\nconnections_per_address_max = 1000\nheader_seconds = 3600\n";
    let start = Start {
        config: config(dir.path(), http),
        log: "error,sidetone_api=debug",
        files_max: Some(256),
        env: Vec::new(),
    };
    let engine = Served::with(dir.path(), start).await;
    let caller = Arc::new(registered(phone_config(engine.sip, "1001", answering())).await);
    let callee = registered(phone_config(engine.sip, "1002", answering())).await;
    let other = registered(phone_config(engine.sip, "1003", answering())).await;
    let placed: Vec<_> = (0..5)
        .map(|_| {
            let caller = Arc::clone(&caller);
            tokio::spawn(async move { caller.call(open_end("1002")).await })
        })
        .collect();
    calls(&callee, 0, 5).await;
    let before = (metric(&engine, "sidetone_media_ports_open").await, open_files(engine.pid()));
    let mut held = Vec::new();
    for _ in 0..300 {
        held.push(within("a connection", TcpStream::connect(engine.http)).await.unwrap());
    }
    engine.says("the system gives no connection", 1).await;
    let (used, began, heard) = (cpu(engine.pid()), Instant::now(), callee.heard());
    let plan = || CallPlan { talk_time: Some(Duration::ZERO), ..CallPlan::to("1002") };
    for attempt in 0..failures {
        let status = within("a refusal", other.call(plan())).await.unwrap().status;
        assert_eq!(status, 503, "attempt {attempt}");
    }
    // 250 packets a second of five calls, sent by the test's process on a busy machine.
    until("audio of live calls", || callee.heard() > heard + 250).await;
    let (used, took) = (cpu(engine.pid()) - used, began.elapsed());

    let released = Instant::now();
    drop(held);
    within("a call", async { while other.call(plan()).await.unwrap().status != 200 {} }).await;
    let recovered = released.elapsed();
    assert_eq!(caller.calls().borrow().up, 5, "live calls go on");
    let (ports, files) = before;
    within("what was taken is given back", async {
        while metric(&engine, "sidetone_media_ports_open").await != ports
            || open_files(engine.pid()) > files + 4
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    caller.hang_up().await.unwrap();
    for call in placed {
        within("the end of a call", call).await.unwrap().unwrap();
    }
    eprintln!(
        "T9: {failures} failed set-ups, {ports} ports and {files} files open before and after; \
         {used} hundredths of a second of processor in {:.1} s; a call {:.2} s after the release",
        took.as_secs_f64(),
        recovered.as_secs_f64()
    );
}

async fn metric(engine: &Served, name: &str) -> String {
    let text = Ask::new("GET", "/metrics").send(engine.http).await.text;
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name}")).rsplit(' ').next().unwrap().to_owned()
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_calls_survive_a_process_without_descriptors() {
    starved(20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a thousand failed set-ups"]
async fn long_a_thousand_failed_set_ups_leak_nothing() {
    starved(1_000).await;
}
