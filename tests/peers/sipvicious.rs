//! sipvicious (svmap, svwar, svcrack) scans the engine and finds no version, no extension and no password.

use std::process::{Command, Stdio};

use crate::peers::are_peers_wanted;
use crate::peers::engine::Engine;
use crate::peers::tell;

/// The output of a sipvicious program on the engine; `None` where it is not installed.
fn scan(engine: &Engine, program: &str, args: &[&str]) -> Option<String> {
    let (host, port) = engine.sip().rsplit_once(':').unwrap();
    let output = Command::new(format!("sipvicious_{program}"))
        .args(args)
        .args(["-p", port, host])
        .env("HOME", engine.dir())
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let said = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&said).into_owned())
}

/// The rows of the table that a scan ends with.
fn rows(said: &str) -> Vec<Vec<&str>> {
    let cells = |line: &'_ str| -> bool { line.starts_with('|') && line.ends_with('|') };
    let rows = said.lines().map(str::trim).filter(|line| cells(line));
    rows.skip(1).map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn scanners_learn_no_version_no_extension_and_no_password() {
    if !are_peers_wanted() {
        return;
    }
    let engine = Engine::start(2);
    let mut answered = 0;
    for method in ["OPTIONS", "INVITE", "REGISTER"] {
        let Some(said) = scan(&engine, "svmap", &["-m", method]) else {
            return tell("NOTICE: sipvicious is not installed (pip install sipvicious): scans are SKIPPED");
        };
        answered += rows(&said).len();
        let low = said.to_lowercase();
        assert!(!low.contains("sidetone") && !said.contains(env!("CARGO_PKG_VERSION")), "{said}");
    }
    assert!(answered > 0, "svmap found the engine, so that it could have learnt something");

    for method in ["REGISTER", "INVITE", "OPTIONS"] {
        for force in [&[][..], &["--force"]] {
            let args = [&["-m", method, "-e", "995-1010", "-t", "0.05"][..], force].concat();
            let said = scan(&engine, "svwar", &args).unwrap();
            // It reports either all extensions or none.
            let found: Vec<&str> = rows(&said).iter().filter_map(|row| row.first().copied()).collect();
            let is_all = (995..=1010).all(|number| found.contains(&number.to_string().as_str()));
            assert!(found.is_empty() || is_all, "{method} {force:?}: {said}");
        }
    }

    // The cracker works: it finds a password that is its first guess.
    let file = engine.dir().join("words");
    std::fs::write(&file, "the-second-secret\n").unwrap();
    let words = file.to_str().unwrap();
    let said = scan(&engine, "svcrack", &["-u", "1002", "-d", words]).unwrap();
    assert!(rows(&said).iter().any(|row| row.contains(&"the-second-secret")), "{said}");
    let words: String = (0..300).map(|number| format!("guess{number}\n")).collect();
    std::fs::write(&file, format!("{words}the-first-secret\n")).unwrap();
    for user in ["1001", "1999"] {
        let args = ["-u", user, "-d", file.to_str().unwrap(), "-t", "0.02"];
        let said = scan(&engine, "svcrack", &args).unwrap();
        assert!(!rows(&said).iter().any(|row| row.contains(&"the-first-secret")), "{user}: {said}");
    }
}
