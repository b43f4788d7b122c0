//! The notifications of the engine to a service manager (sd_notify(3)): ready, alive, reloading, stopping.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::common::records::TempDir;
use crate::common::site::within;
use crate::service::served::{Served, Start, config};

/// The next message that contains `text`; earlier ones are skipped.
async fn told(socket: &UnixDatagram, text: &'static str) -> (String, Vec<String>) {
    let socket = socket.try_clone().unwrap();
    let reading = tokio::task::spawn_blocking(move || {
        let (mut before, mut bytes) = (Vec::new(), [0; 512]);
        loop {
            let count = socket.recv(&mut bytes).unwrap();
            let message = String::from_utf8_lossy(&bytes[..count]).into_owned();
            if message.contains(text) {
                return (message, before);
            }
            before.push(message);
        }
    });
    within(text, reading).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_manager_is_notified() {
    let dir = TempDir::new();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let env = vec![("NOTIFY_SOCKET", path.display().to_string()), ("WATCHDOG_USEC", "300000".to_owned())];
    let more = "drain_seconds = 7\n[http]\nlisten = \"127.0.0.1:0\"\n";
    let start = Start { config: config(dir.path(), more), log: "info", files_max: None, env };
    let mut engine = Served::with(dir.path(), start).await;
    assert_eq!(told(&socket, "READY=1").await.1, Vec::<String>::new(), "nothing comes before");
    told(&socket, "WATCHDOG=1").await;
    told(&socket, "WATCHDOG=1").await;

    engine.signal("HUP");
    let (reloading, _) = told(&socket, "RELOADING=1").await;
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    told(&socket, "READY=1").await;

    engine.signal("TERM");
    let (stopping, _) = told(&socket, "STOPPING=1").await;
    assert!(stopping.contains("EXTEND_TIMEOUT_USEC=52000000"), "{stopping}");
    assert_eq!(within("exit", engine.ended()).await.code(), Some(0), "{}", engine.said());
}

/// The unit sandboxes the service, according to systemd's own score.
#[test]
fn systemd_calls_the_unit_ok() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/sidetone.service");
    let analysed = std::process::Command::new("systemd-analyze")
        .args(["security", "--offline=yes", "--no-pager", unit])
        .output();
    let Ok(output) = analysed else {
        println!("NOTICE: systemd-analyze is missing; the unit is not analysed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let overall = text.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_default();
    assert!(overall.contains("OK"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
