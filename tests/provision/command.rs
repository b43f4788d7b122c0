//! `sidetone apply`: its output and its exit codes.

use std::process::{Command, Output};

use serde_json::Value;
use sidetone::store::Store;

use crate::ACME;
use crate::records::TempDir;

/// The binary in `dir`, with its database there.
fn sidetone(dir: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .current_dir(dir.path())
        .env("SIDETONE_NODE__DATA_DIR", dir.path())
        .env_remove("SIDETONE_CONFIG")
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn the_command_prints_the_object_of_the_contract_and_exits_0() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    let output = sidetone(&dir, &["apply", "acme.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["created"], 8);
    let output = sidetone(&dir, &["apply", "acme.toml"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "0 created, 0 changed, 8 unchanged\n");
}

#[test]
fn a_wrong_command_line_or_file_exits_2_with_one_line() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("bad.toml"), "[[organisations]]\nnme = \"A\"\n").unwrap();
    std::fs::write(dir.path().join("torn.toml"), "[[organisations\n").unwrap();
    std::fs::write(dir.path().join("config.toml"), "[sip]\nlistn = 1\n").unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["apply", "missing.toml"], "sidetone: missing.toml: cannot be read"),
        (&["apply", "bad.toml", "torn.toml"], "sidetone: torn.toml: line 1"),
        (&["apply", "bad.toml"], "sidetone: bad.toml: organisations[0].name: is missing; bad.toml: "),
        (&["apply", "bad.toml", "--config", "config.toml"], "sidetone: config.toml: sip.listn: unknown key"),
    ];
    for (args, expected) in cases {
        let output = sidetone(&dir, args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.starts_with(expected) && text.lines().count() == 1, "{args:?}: {text}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(sidetone(&dir, &["apply"]).status.code(), Some(2));
    assert_eq!(sidetone(&dir, &["frobnicate"]).status.code(), Some(2));
}

#[test]
fn a_database_that_cannot_be_opened_exits_1() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    std::fs::write(dir.path().join("sidetone.db"), "this is not a database, whatever its name says").unwrap();
    let output = sidetone(&dir, &["apply", "acme.toml"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("sidetone.db") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_running_engine_sees_what_another_process_applies() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&dir.path().join("sidetone.db")).await.unwrap();
        assert_eq!(store.directory_revision().await.unwrap(), 0);
        assert_eq!(sidetone(&dir, &["apply", "acme.toml"]).status.code(), Some(0));
        assert_eq!(store.directory_revision().await.unwrap(), 1);
        assert_eq!(store.directory().await.unwrap().extensions.len(), 2);
        store.close().await;
    });
}
