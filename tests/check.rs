//! `sidetone check`: what it says of a machine, and its exit codes.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;

#[path = "common/records.rs"]
mod records;

use records::TempDir;
use sidetone::store::Store;

/// The exit code, stdout and stderr of `sidetone check` with this configuration.
fn check(dir: &Path, config: &str) -> (i32, String, String) {
    let file = dir.join("sidetone.toml");
    std::fs::write(&file, config).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["check", "--config"])
        .arg(&file)
        .env_clear()
        .current_dir(dir)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A port that nothing used a moment ago.
fn port() -> u16 {
    loop {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if port < u16::MAX && UdpSocket::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

fn config(media: u16) -> String {
    format!(
        "[node]\ndata_dir = \"data\"\n[sip]\nlisten = [\"udp://127.0.0.1:0\"]\n[http]\nlisten = \"127.0.0.1:0\"\n\
         [media]\nports = \"{media}-{}\"\n",
        media + 1
    )
}

#[test]
fn a_machine_that_is_fit_is_said_to_be() {
    let dir = TempDir::new();
    // Somebody else may take the ports in between: then they are in use, and others are tried.
    let found = (0..20).map(|_| check(dir.path(), &config(port()))).find(|(code, ..)| *code == 0);
    let (_, out, err) = found.unwrap();
    assert_eq!(err, "");
    let things: Vec<&str> = out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(things, ["data_dir", "database", "sip", "recordings", "http", "media", "open", "ok"], "{out}");
    assert!(out.contains("made at the first start"), "{out}");
    assert!(!dir.path().join("data").exists(), "nothing is made");
}

#[test]
fn every_problem_is_named_with_its_key() {
    let dir = TempDir::new();
    let held = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
    let [sip, rtp] = held.each_ref().map(|socket| socket.local_addr().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let web = listener.local_addr().unwrap();
    std::fs::write(dir.path().join("taken"), "a file").unwrap();
    std::fs::write(
        dir.path().join("junk.db"),
        "this is no database at all, however long it may be".repeat(50),
    )
    .unwrap();
    let first = rtp.port() - 1;
    let config = format!(
        "[node]\ndata_dir = \"taken\"\n[database]\nurl = \"sqlite://junk.db\"\n[sip]\nlisten = [\"udp://{sip}\"]\n\
         [http]\nlisten = \"{web}\"\n[media]\nports = \"{first}-{}\"\n\
         [outbound_http]\nextra_ca = \"taken\"\n",
        rtp.port()
    );
    let (code, _, err) = check(dir.path(), &config);
    assert_eq!(code, 1, "{err}");
    for said in [
        "[node] data_dir",
        "[database] url",
        "[sip] listen",
        "[http] listen",
        "[media] ports",
        "[outbound_http] extra_ca taken",
    ] {
        assert!(err.lines().any(|line| line.starts_with(&format!("sidetone: {said}"))), "{said}: {err}");
    }
    assert_eq!(err.lines().count(), 6, "{err}");
}

#[test]
fn a_wrong_configuration_is_another_exit_code() {
    let dir = TempDir::new();
    let (code, out, err) = check(dir.path(), "[http]\nlisten = \"everywhere\"\n[nodes]\n");
    assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
    assert!(err.contains("http.listen") && err.contains("nodes"), "{err}");
}

#[test]
fn a_port_of_ours_is_not_among_the_media_ports() {
    let dir = TempDir::new();
    let port = port();
    let config = config(port).replace("udp://127.0.0.1:0", &format!("udp://127.0.0.1:{port}"));
    let (code, _, err) = check(dir.path(), &config);
    assert_eq!(code, 1);
    assert!(err.contains("of [sip] listen is one of them"), "{err}");
}

#[test]
fn a_database_is_looked_at_and_left_alone() {
    let dir = TempDir::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let file = dir.path().join("data/sidetone.db");
    runtime.block_on(async { Store::open(&file).await.unwrap().close().await });
    let (_, out, _) = check(dir.path(), &config(port()));
    assert!(out.contains("database data/sidetone.db\n"), "{out}");
}
