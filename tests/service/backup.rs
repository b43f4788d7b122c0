//! D13: a copy made while calls are written is complete, and an engine starts on it.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sidetone_phone::CallPlan;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::common::chosen::url_in;
use crate::common::database::{Kind, chosen, server};
use crate::common::records::TempDir;
use crate::common::site::{answering, declare, directory, found, get, phone_config, registered, within};
use crate::service::served::{Served, Start, config};

/// The PostgreSQL client program `name`, of the newest version that is installed.
fn client(name: &str) -> Command {
    let mut found: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop().map_or_else(|| Command::new(name), Command::new)
}

/// Copies the database of `from` to that of `to`, while `from` is written.
async fn copied(from: &TempDir, to: &TempDir) {
    match chosen() {
        Kind::Sqlite => {
            let mut connection = SqliteConnection::connect(&url_in(from.path())).await.unwrap();
            let target = to.path().join("sidetone.db");
            let statement = format!("VACUUM INTO '{}'", target.display());
            connection.execute(AssertSqlSafe(statement)).await.unwrap();
            connection.close().await.unwrap();
            let mut copy = SqliteConnection::connect(&url_in(to.path())).await.unwrap();
            let (found,): (String,) =
                sqlx::query_as("PRAGMA integrity_check").fetch_one(&mut copy).await.unwrap();
            assert_eq!(found, "ok");
        }
        Kind::Postgres => {
            server().expect("SIDETONE_TEST_POSTGRES names a server");
            let dump = to.path().join("backup.dump");
            let dumped = client("pg_dump").args(["-Fc", "-f"]).arg(&dump).arg(url_in(from.path())).status();
            assert!(dumped.unwrap().success());
            let url = url_in(to.path());
            let restored = client("pg_restore").args(["--no-owner", "-d", &url]).arg(&dump).status();
            assert!(restored.unwrap().success());
        }
    }
}

/// The number of records, once there are at least `count`.
async fn at_least(http: SocketAddr, count: u64) -> u64 {
    found("records", async || {
        let (status, page) = get(http, "/cdrs?limit=1").await;
        if status == 503 {
            // A busy machine: the request is repeated.
            return None;
        }
        assert_eq!(status, 200, "{page}");
        page["total"].as_u64().filter(|total| *total >= count)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_whole_and_an_engine_starts_on_it() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let serve = async |dir: &TempDir| {
        let http = "[http]\nlisten = \"127.0.0.1:0\"\n";
        let start =
            Start { config: config(dir.path(), http), log: "error", files_max: None, env: Vec::new() };
        Served::with(dir.path(), start).await
    };
    let engine = serve(&dir).await;
    let caller = Arc::new(registered(phone_config(engine.sip, "1001", answering())).await);
    let _callee = registered(phone_config(engine.sip, "1002", answering())).await;
    let stop = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (caller, stop) = (Arc::clone(&caller), Arc::clone(&stop));
            tokio::spawn(async move {
                let plan = || CallPlan { talk_time: Some(Duration::from_millis(50)), ..CallPlan::to("1002") };
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(caller.call(plan()).await.unwrap().status, 200);
                }
            })
        })
        .collect();
    let before = at_least(engine.http, 20).await;
    let backup = TempDir::new();
    within("the copy", copied(&dir, &backup)).await;
    // The load continues after the copy.
    at_least(engine.http, before + 20).await;
    stop.store(true, Ordering::Relaxed);
    for call in load {
        within("the last calls", call).await.unwrap();
    }
    engine.kill();

    let restored = serve(&backup).await;
    let (status, page) = get(restored.http, "/cdrs?limit=1").await;
    assert_eq!(status, 200, "{page}");
    let total = page["total"].as_u64().unwrap();
    assert!(total >= before, "{total} of {before} records");
    let caller = registered(phone_config(restored.sip, "1001", answering())).await;
    let _callee = registered(phone_config(restored.sip, "1002", answering())).await;
    let plan = CallPlan { talk_time: Some(Duration::ZERO), ..CallPlan::to("1002") };
    assert_eq!(within("a call", caller.call(plan)).await.unwrap().status, 200);
    println!("D13: {:?}, {before} records before the copy, {total} in it", chosen());
}
