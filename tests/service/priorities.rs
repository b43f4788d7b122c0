//! The threads of the switch have priority over threads that no call depends on.

use std::collections::BTreeMap;
use std::fs;

use crate::common::records::TempDir;
use crate::common::site::{declare, directory};
use crate::service::served::{Served, Start, config};

/// The names of the threads of a process, each with the niceness of its threads.
fn niceness(pid: u32) -> BTreeMap<String, Vec<i32>> {
    let mut all: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        // proc(5): the name in parentheses, then the fields from the third on; niceness is the nineteenth.
        let Ok(stat) = fs::read_to_string(thread.unwrap().path().join("stat")) else { continue };
        let (name, fields) = stat.split_once('(').unwrap().1.rsplit_once(") ").unwrap();
        let nice = fields.split(' ').nth(19 - 3).unwrap().parse().unwrap();
        all.entry(name.to_owned()).or_default().push(nice);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_threads_leave_a_full_processor_to_the_calls() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let more = "[http]\nlisten = \"127.0.0.1:0\"\n";
    let start = Start { config: config(dir.path(), more), log: "info", files_max: None, env: Vec::new() };
    let engine = Served::with(dir.path(), start).await;
    let threads = niceness(engine.pid());
    let own = threads["sidetone"][0];
    for name in ["switch", "rtp-0", "journal"] {
        assert!(threads[name].iter().all(|nice| *nice == own), "{name}: {threads:?}");
    }
    assert!(threads["background"].iter().all(|nice| *nice == own + 5), "{threads:?}");
    // On SQLite the connection that stores records has a thread of its own.
    if let Some(sqlite) = threads.get("sqlx-sqlite-wor") {
        assert!(sqlite.contains(&(own + 5)), "{threads:?}");
    }
}
