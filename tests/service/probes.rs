//! Successful health probes and scrapes leave no line in the log.

use crate::common::records::TempDir;
use crate::common::site::within;
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_are_logged_only_when_they_fail() {
    let dir = TempDir::new();
    let more = "[http]\nlisten = \"127.0.0.1:0\"\ntrusted_proxies = [\"127.0.0.1/32\"]\n";
    let start = Start { config: config(dir.path(), more), log: "", files_max: None, env: Vec::new() };
    let mut engine = Served::with(dir.path(), start).await;
    for path in ["/healthz", "/readyz", "/metrics", "/"] {
        assert_eq!(Ask::new("GET", path).send(engine.http).await.status, 200, "{path}");
    }
    // Through a proxy, for a client address that may not read them.
    let refused = Ask::new("GET", "/metrics").header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(refused.send(engine.http).await.status, 403);
    engine.says("request answered", 2).await;
    engine.signal("TERM");
    within("exit", engine.ended()).await;
    let log = engine.said();
    let answered: Vec<&str> = log.lines().filter(|line| line.contains("request answered")).collect();
    assert_eq!(answered.len(), 2, "{log}");
    assert!(answered[0].contains("http.route=\"/\""), "{log}");
    assert!(answered[1].contains("http.route=\"/metrics\"") && answered[1].contains("403"), "{log}");
}
