//! D12: the wall clock of a complete engine jumps by an hour and by a day, in both directions, and by a leap second.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sidetone_model::time::Timestamp;
use sidetone_phone::CallPlan;

use crate::common::records::TempDir;
use crate::common::site::{
    self, answering, calls, declare, directory, open_end, phone_config, registered, until, within,
};
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

fn instant(record: &Value, name: &str) -> i64 {
    serde_json::from_value::<Timestamp>(record[name].clone()).unwrap().as_micros()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: jumps of the wall clock under libfaketime"]
async fn long_jumps_of_the_wall_clock_leave_calls_and_registrations_alone() {
    if !Path::new(FAKETIME).exists() {
        println!("D12: skipped, libfaketime is not installed");
        return;
    }
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let offset = dir.path().join("offset");
    let set = |text: &str| std::fs::write(&offset, format!("{text}\n")).unwrap();
    set("+0");
    let env = vec![
        ("LD_PRELOAD", FAKETIME.to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", offset.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let http = "[http]\nlisten = \"127.0.0.1:0\"\n";
    let start = Start { config: config(dir.path(), http), log: "info", files_max: None, env };
    let engine = Served::with(dir.path(), start).await;
    let caller = Arc::new(registered(phone_config(engine.sip, "1001", answering())).await);
    let callee = registered(phone_config(engine.sip, "1002", answering())).await;
    let other = registered(phone_config(engine.sip, "1003", answering())).await;
    let _fourth = registered(phone_config(engine.sip, "1004", answering())).await;
    let began = Instant::now();
    let placed = {
        let caller = Arc::clone(&caller);
        tokio::spawn(async move { caller.call(open_end("1002")).await })
    };
    calls(&callee, 0, 1).await;

    let mut jumps = 0;
    // Total offset in seconds; the leap second at the end is no jump.
    for (offset, is_jump) in [
        ("+3600", true),
        ("+0", true),
        ("-3600", true),
        ("+0", true),
        ("+86400", true),
        ("+0", true),
        ("-86400", true),
        ("+0", true),
        ("-1", false),
    ] {
        set(offset);
        if is_jump {
            jumps += 1;
            engine.says("the wall clock jumped", jumps).await;
        } else {
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        // A new call between two registered phones, with media.
        let heard = callee.heard();
        let plan = CallPlan { talk_time: Some(Duration::from_millis(1_500)), ..CallPlan::to("1004") };
        assert_eq!(within("a call", other.call(plan)).await.unwrap().status, 200, "{offset}");
        until("audio of the long call", || callee.heard() > heard + 20).await;
    }
    assert_eq!(engine.said().matches("the wall clock jumped").count(), jumps, "a leap second is no jump");
    let text = Ask::new("GET", "/metrics").send(engine.http).await.text;
    assert!(text.contains(&format!("sidetone_clock_jumps_total {jumps}\n")), "{text}");
    assert!(text.contains("sidetone_sip_bindings 4\n"), "registrations stay: {text}");
    let lasted = began.elapsed().as_secs();
    caller.hang_up().await.unwrap();
    within("the end of the call", placed).await.unwrap().unwrap();

    let records = site::records(engine.http, 10).await;
    for record in &records {
        assert!(instant(record, "ended_at") >= instant(record, "answered_at"), "{record:#}");
        assert!(instant(record, "answered_at") >= instant(record, "started_at"), "{record:#}");
        let billsec = record["billsec"].as_u64().unwrap();
        if record["caller_number"] == "1001" {
            assert!(billsec.abs_diff(lasted) <= 1, "{billsec} of {lasted} s");
        } else {
            // Talk time on a busy machine; never hours.
            assert!((1..=30).contains(&billsec), "{record:#}");
        }
    }
    println!(
        "D12: {jumps} jumps of an hour and a day, one log line each; 10 records, the long call {lasted} s ±1"
    );
}
