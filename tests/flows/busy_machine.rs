//! A sender with even pacing is judged so even when other programs occupy the machine: the time for which the relay's
//! threads wait for a processor is not attributed to the sender, because the kernel timestamps each packet on arrival.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use sidetone::config::MediaIo;
use sidetone_capture as capture;
use sidetone_phone::{CallPlan, Tap};

use crate::common::site::{Site, answering, directory, has_io_uring, talk, within};

/// Loops that leave no processor idle; they end when dropped.
struct BusyLoops {
    goes_on: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl BusyLoops {
    fn start(count: usize) -> BusyLoops {
        let goes_on = Arc::new(AtomicBool::new(true));
        let spin = |goes_on: Arc<AtomicBool>| {
            move || {
                let mut turns = 0_u64;
                while goes_on.load(Ordering::Relaxed) {
                    turns = std::hint::black_box(turns + 1);
                }
                turns
            }
        };
        let threads = (0..count).map(|_| std::thread::spawn(spin(Arc::clone(&goes_on)))).collect();
        BusyLoops { goes_on, threads }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.goes_on.store(false, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok_and(|turns| turns > 0), "a loop did not run");
        }
    }
}

/// The verdict on the caller's packets, by its own capture, which timestamps each packet when it is passed to the
/// system.
fn sent_as(site: &Site, number: &str, tap: &Tap) -> Value {
    let path = site.dir.path().join(format!("{number}.pcap"));
    std::fs::write(&path, tap.to_pcap().unwrap()).unwrap();
    let outcome = capture::read("tap", &mut File::open(&path).unwrap(), &mut |_| {});
    serde_json::to_value(&outcome.analysis.calls[0]).unwrap()["media_verdict"].clone()
}

async fn judge(io: MediaIo) {
    let site = Site::configured(&directory(), |config| config.media.io = io).await;
    let _callee = site.phone("1002", answering()).await;
    let mut seen = Vec::new();
    for attempt in 1..=ATTEMPTS {
        let tap = Tap::default();
        let mut config = site.phone_config("1001", answering());
        config.tap = Some(tap.clone());
        let caller = site.phone_of(config).await;
        let busy = BusyLoops::start(2);
        let plan =
            CallPlan { talk: talk("clean duration=6s"), talk_time: Some(CALL), ..CallPlan::to("1002") };
        let outcome = within("the call", caller.call(plan)).await.unwrap();
        drop(busy);
        assert_eq!(outcome.status, 200);
        // The newest record is the first.
        let record = site.records(attempt).await.remove(0);
        let (sent, found) = (sent_as(&site, "1001", &tap), &record["media_verdict"]);
        if sent == "ok" {
            assert_eq!(*found, "ok", "{record:#}");
            return;
        }
        seen.push(format!("sent as {sent}, found {found}"));
    }
    eprintln!("NOT JUDGED: this machine let the sender keep its pace in none of {ATTEMPTS} calls: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paced_sender_is_ok_beside_two_busy_loops() {
    judge(MediaIo::Epoll).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paced_sender_is_ok_beside_two_busy_loops_over_io_uring() {
    if has_io_uring() {
        judge(MediaIo::IoUring).await;
    }
}

/// Longer than the scenario.
const CALL: Duration = Duration::from_millis(6_500);
const ATTEMPTS: usize = 5;
