//! SIGHUP, which `kill -HUP` and a closed terminal send: the tap reads its configuration again and goes on.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::common::chosen::url_in;
use crate::common::database::{Kind, chosen};
use crate::common::records::TempDir;
use crate::common::site::{declare, directory};
use crate::tap::apart::apart;

/// Starts `sidetone tap` on the loopback, and waits for its `ready`.
fn tap(dir: &TempDir) -> (Child, BufReader<ChildStderr>) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["tap", "-i", "lo", "--no-http", "--quiet", "--config", "tap.toml"])
        .current_dir(dir.path())
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let ready = lines.any(|line| line == "ready");
    let mut stderr = BufReader::new(process.stderr.take().unwrap());
    if !ready {
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        panic!("the tap does not start: {said}");
    }
    (process, stderr)
}

fn signal(process: &Child, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(process.id().to_string()).status();
    assert!(sent.unwrap().success());
}

/// Reads lines until one contains `text`.
fn said_until(text: &str, stderr: &mut impl BufRead) -> String {
    let mut said = String::new();
    while !said.contains(text) {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "no {text:?} in {said}");
    }
    said
}

#[test]
fn a_hangup_reads_the_configuration_again_and_ends_nothing() {
    if chosen() == Kind::Postgres {
        eprintln!("SKIPPED: the database server is not in the test's own network");
        return;
    }
    apart(|| {
        let dir = TempDir::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(declare(dir.path(), &directory()));
        let write = |more: &str| {
            let (at, url) = (dir.path().display(), url_in(dir.path()));
            let text = format!("[node]\ndata_dir = \"{at}\"\n[database]\nurl = \"{url}\"\n{more}");
            std::fs::write(dir.path().join("tap.toml"), text).unwrap();
        };
        write("");
        let (mut process, mut stderr) = tap(&dir);

        write(
            "[sip]\nlisten = [\"udp://127.0.0.1:0\"]\n[tap]\norganisation = \"Acme\"\nverdict = { loss_pct = 9.0 }\n",
        );
        signal(&process, "HUP");
        let said = said_until("needs a restart: [tap] organisation", &mut stderr);
        assert!(said.contains("the configuration was reloaded") && !said.contains("[sip]"), "{said}");
        write("[tap]\nverdict = { loss = 9.0 }\n");
        signal(&process, "HUP");
        let said = said_until("nothing has changed", &mut stderr);
        assert!(said.contains("tap.verdict.loss: unknown threshold"), "{said}");

        // Its output has no reader from now on, as after the end of an SSH session.
        drop(stderr);
        signal(&process, "HUP");
        signal(&process, "TERM");
        assert_eq!(process.wait().unwrap().code(), Some(0), "it ends in order");
    });
}
