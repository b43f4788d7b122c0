//! D5: a complete engine whose disk fills up while calls are up.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_phone::{CallPlan, Phone};

use crate::common::records::TempDir;
use crate::common::site::{
    self, answering, calls, declare, directory, open_end, phone_config, registered, until, within,
};
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

/// A small disk of its own; it is unmounted when the value is dropped.
struct SmallDisk {
    dir: TempDir,
}

impl SmallDisk {
    /// `None` where this user may not mount.
    fn mount(mib: u32) -> Option<SmallDisk> {
        let dir = TempDir::new();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(dir.path())
            .status()
            .is_ok_and(|status| status.success());
        mounted.then_some(SmallDisk { dir })
    }

    fn data(&self) -> PathBuf {
        let dir = self.dir.path().join("data");
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Uses all free space.
    fn fill(&self) -> PathBuf {
        let path = self.dir.path().join("filler");
        let status = Command::new("dd")
            .args(["if=/dev/zero", &format!("of={}", path.display()), "bs=64k", "status=none"])
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "dd ends when the disk is full");
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.dir.path()).status();
    }
}

async fn serve(dir: &Path) -> Served {
    let more = "journal_reserve_mb = 16\n[http]\nlisten = \"127.0.0.1:0\"\n";
    let start = Start { config: config(dir, more), log: "info", files_max: None, env: Vec::new() };
    Served::with(dir, start).await
}

async fn status_of_a_call(phone: &Phone) -> u16 {
    let plan = CallPlan { talk_time: Some(Duration::from_millis(200)), ..CallPlan::to("1002") };
    within("a call", phone.call(plan)).await.unwrap().status
}

async fn metric(engine: &Served, name: &str) -> String {
    let text = Ask::new("GET", "/metrics").send(engine.http).await.text;
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name}")).rsplit(' ').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a disk of 64 MB runs full beside live calls; needs root"]
async fn long_a_full_disk_refuses_new_calls_and_keeps_the_records_of_live_ones() {
    let Some(disk) = SmallDisk::mount(64) else {
        println!("D5: skipped, this user may not mount a disk");
        return;
    };
    let dir = disk.data();
    declare(&dir, &directory()).await;
    let engine = serve(&dir).await;
    let caller = Arc::new(registered(phone_config(engine.sip, "1001", answering())).await);
    let callee = registered(phone_config(engine.sip, "1002", answering())).await;
    let other = registered(phone_config(engine.sip, "1003", answering())).await;
    const CALLS: usize = 10;
    let placed: Vec<_> = (0..CALLS)
        .map(|_| {
            let caller = Arc::clone(&caller);
            tokio::spawn(async move { caller.call(open_end("1002")).await })
        })
        .collect();
    calls(&caller, 0, CALLS).await;
    assert_eq!(status_of_a_call(&other).await, 200);

    let filler = disk.fill();
    let (filled, mut accepted) = (Instant::now(), 0);
    let refused_after = within("a refusal", async {
        loop {
            match status_of_a_call(&other).await {
                200 => accepted += 1,
                503 => return filled.elapsed(),
                other => panic!("{other}"),
            }
        }
    })
    .await;
    assert_eq!(metric(&engine, "sidetone_disk_full").await, "1");
    let readiness = Ask::new("GET", "/readyz").send(engine.http).await;
    assert!(readiness.status == 503 && readiness.text.contains("journal: the disk is full"), "{readiness:?}");
    // Live calls continue, and end with a record.
    let heard = callee.heard();
    until("audio on a full disk", || callee.heard() > heard + 50).await;
    caller.hang_up().await.unwrap();
    for call in placed {
        within("the end of a call", call).await.unwrap().unwrap();
    }

    std::fs::remove_file(filler).unwrap();
    let freed = Instant::now();
    within("readiness", async {
        while Ask::new("GET", "/readyz").send(engine.http).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let recovered_after = freed.elapsed();
    assert_eq!(status_of_a_call(&other).await, 200);
    assert_eq!(metric(&engine, "sidetone_disk_full").await, "0");
    let records = site::records(engine.http, CALLS + accepted + 2).await;
    let live = records.iter().filter(|record| record["caller_number"] == "1001");
    assert_eq!(live.filter(|record| record["hangup_cause"] == "NORMAL_CLEARING").count(), CALLS);
    assert_eq!(engine.said().matches("the disk of the journal is full").count(), 1, "{}", engine.said());
    println!(
        "D5: refused {:.1} s after the disk was full, {CALLS}/{CALLS} live calls recorded, recovered {:.1} s after it was freed",
        refused_after.as_secs_f64(),
        recovered_after.as_secs_f64()
    );
}
