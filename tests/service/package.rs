//! The files of the package refer to existing metrics (alerts and dashboards) and keys (sample configuration).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::records::TempDir;
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging")
}

/// The names of metrics in a text, without the suffixes of histograms in PromQL.
fn metrics(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("sidetone_") || word.starts_with("process_"))
        .map(|word| word.trim_end_matches("_bucket").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_and_dashboards_use_metrics_of_the_engine() {
    let dir = TempDir::new();
    let start = Start {
        config: config(dir.path(), "[http]\nlisten = \"127.0.0.1:0\"\n"),
        log: "",
        files_max: None,
        env: Vec::new(),
    };
    let engine = Served::with(dir.path(), start).await;
    let page = Ask::new("GET", "/metrics").send(engine.http).await;
    let known: BTreeSet<String> = page
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    for (file, count) in
        [("prometheus/sidetone.rules.yml", 12), ("grafana/operations.json", 12), ("grafana/quality.json", 8)]
    {
        let text = std::fs::read_to_string(packaging().join(file)).unwrap();
        let used = metrics(&text);
        assert!(used.len() >= count, "{file}: {used:?}");
        let unknown: Vec<&String> = used.difference(&known).collect();
        assert_eq!(unknown, Vec::<&String>::new(), "{file}");
    }
}

#[test]
fn the_sample_configuration_is_read() {
    let sample = packaging().join("sidetone.toml");
    let config = sidetone::config::Config::load(Some(&sample), std::iter::empty()).unwrap();
    assert_eq!(config.node.data_dir, Path::new("/var/lib/sidetone"));
}

#[test]
fn prometheus_accepts_the_alerts() {
    let rules = packaging().join("prometheus/sidetone.rules.yml");
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/alerts.yml");
    for (what, file) in [("check", rules), ("test", cases)] {
        let checked = std::process::Command::new("promtool").args([what, "rules"]).arg(&file).output();
        let Ok(output) = checked else {
            println!("NOTICE: promtool is missing; the alerts are not checked");
            return;
        };
        let text = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&text));
    }
}
