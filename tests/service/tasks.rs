//! Item 9 of the robustness work: a panic in any task is counted, and the specified reaction for the task follows.
#![cfg(debug_assertions)]

use std::sync::Arc;

use sidetone::hep::{HepPassword, HepSettings};
use sidetone::supervise::{Condition, Reaction, Task};
use sidetone_phone::Phone;
use tokio::task::JoinHandle;

use crate::common::records::TempDir;
use crate::common::site::{
    self, Site, answering, calls, declare, directory, open_end, phone_config, registered, talking, until,
    within,
};
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

fn place(caller: &Arc<Phone>, number: &str) -> JoinHandle<()> {
    let (caller, plan) = (Arc::clone(caller), open_end(number));
    tokio::spawn(async move {
        let _ = caller.call(plan).await;
    })
}

/// The tasks of a switch that are restarted. The one that prepares the texts of old records is left out: with
/// none to prepare it ends immediately. Those of a cluster need NATS.
fn restarted() -> impl Iterator<Item = Task> {
    let elsewhere = [
        Task::Bindings,
        Task::CallCopies,
        Task::CallLogTexts,
        Task::Changes,
        Task::Cluster,
        Task::Credit,
        Task::FileQuestions,
        Task::LimitQuestions,
        Task::Limits,
        Task::LostCalls,
        Task::NodeLinks,
        Task::Peers,
        Task::RoomOwners,
        Task::SplitRooms,
        Task::TapWriter,
    ];
    Task::ALL
        .into_iter()
        .filter(move |task| task.reaction() == Reaction::Restart && !elsewhere.contains(task))
}

async fn metrics(site: &Site) -> String {
    Ask::new("GET", "/metrics").send(site.http).await.text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_any_task_is_counted_and_calls_go_on() {
    let homer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = homer.local_addr().unwrap().to_string();
    // With the tasks that are off by default.
    let site = Site::configured(&directory(), |config| {
        config.signalling.keep_days = 1;
        config.hep =
            Some(HepSettings { is_udp: true, server, capture_id: 1, password: HepPassword::default() });
    })
    .await;
    let caller = Arc::new(site.phone("1001", answering()).await);
    let callee = site.phone("1002", answering()).await;
    let placed = place(&caller, "1002");
    calls(&callee, 0, 1).await;
    let supervisor = site.engine().supervisor().clone();
    for task in restarted() {
        until(task.as_str(), || supervisor.condition(task) == Condition::Running).await;
        supervisor.inject(task);
        until(task.as_str(), || supervisor.panics(task) == 1).await;
        until(task.as_str(), || supervisor.condition(task) == Condition::Running).await;
        assert_eq!(site.engine().live_calls(), 1, "{} ended a call", task.as_str());
    }
    // A worker of the relay survives a panic in its turn; the end of a call makes it report the panic.
    supervisor.inject(Task::Relay);
    let other = site.phone("1003", answering()).await;
    let _fourth = site.phone("1004", answering()).await;
    assert_eq!(within("a call", other.call(talking("1004", 300))).await.unwrap().status, 200);
    let counted = |text: &str, task: Task| {
        text.contains(&format!("sidetone_panics_total{{task=\"{}\"}} 1\n", task.as_str()))
    };
    let mut text = String::new();
    within("the panic of the relay", async {
        while !counted(&text, Task::Relay) {
            text = metrics(&site).await;
        }
    })
    .await;
    for task in restarted() {
        assert!(counted(&text, task), "{}: {text}", task.as_str());
    }
    // The relay reports its panic before the switch has ended the second call. That the remaining call is the
    // first one, the audio shows.
    until("the end of the second call", || site.engine().live_calls() == 1).await;
    let heard = callee.heard();
    until("audio after the panics", || callee.heard() > heard + 50).await;
    caller.hang_up().await.unwrap();
    placed.await.unwrap();
    // The records passed through the journal, the writer and the events, which had panicked.
    let records = site.records(2).await;
    assert!(records.iter().all(|record| record["hangup_cause"] == "NORMAL_CLEARING"), "{records:#?}");
    let ready = Ask::new("GET", "/readyz").send(site.http).await;
    assert_eq!(ready.status, 200, "{ready:?}");
}

/// `/readyz` names a task that panics repeatedly, and no other task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readyz_names_the_task_that_starts_again() {
    let site = Site::start().await;
    let supervisor = site.engine().supervisor().clone();
    let readiness = within("503", async {
        loop {
            // Each panic doubles the pause, and the task is named during the pause.
            supervisor.inject(Task::Sweep);
            let answer = Ask::new("GET", "/readyz").send(site.http).await;
            if answer.status == 503 {
                return answer;
            }
        }
    })
    .await;
    assert!(readiness.text.contains("sweep: starts again after a panic"), "{readiness:?}");
    within("200", async { while Ask::new("GET", "/readyz").send(site.http).await.status != 200 {} }).await;
}

/// The essential tasks: the process exits, logs the reason, and has lost nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_switch_or_the_journal_ends_the_process_and_loses_no_record() {
    for task in [Task::Sip, Task::Journal] {
        let dir = TempDir::new();
        declare(dir.path(), &directory()).await;
        let text = || config(dir.path(), "[http]\nlisten = \"127.0.0.1:0\"\n");
        let start = Start {
            config: text(),
            log: "info",
            files_max: None,
            env: vec![("SIDETONE_PANIC_TASK", task.as_str().to_owned())],
        };
        let mut engine = Served::with(dir.path(), start).await;
        let caller = Arc::new(registered(phone_config(engine.sip, "1001", answering())).await);
        let callee = registered(phone_config(engine.sip, "1002", answering())).await;
        let placed: Vec<_> = (0..5).map(|_| place(&caller, "1002")).collect();
        calls(&caller, 0, 5).await;
        calls(&callee, 0, 5).await;
        engine.signal("USR2");
        let status = within("exit", engine.ended()).await;
        assert_eq!(status.code(), Some(1), "{}", engine.said());
        let words = format!("sidetone: the task {} panicked", task.as_str());
        until("the reason", || engine.said().contains(&words)).await;
        assert!(engine.said().contains("supervisor.rs"), "the place is logged: {}", engine.said());
        placed.iter().for_each(JoinHandle::abort);
        let start = Start { config: text(), log: "info", files_max: None, env: Vec::new() };
        let engine = Served::with(dir.path(), start).await;
        let records = site::records(engine.http, 5).await;
        assert!(records.iter().all(|record| record["hangup_cause"] == "CRASH"), "{records:#?}");
    }
}
