//! Checks the layers of `ARCHITECTURE.md`: which part may import which, where SQL lives, who starts tasks; and that
//! files form no import cycles.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/finder_tests.rs"]
mod finder_tests;
#[path = "architecture/imports.rs"]
mod imports;
#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/structure.rs"]
mod structure;
#[path = "architecture/tenancy.rs"]
mod tenancy;

use std::fs;
use std::path::{Path, PathBuf};

/// A folder or file, the names that must not occur in its `use` lines or paths, and why.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    (
        "switch/src/conference",
        &["sidetone_sip", "sidetone_media", "crate::call", "crate::io", "crate::live", "crate::machine"],
        "rooms are machines that know neither SIP nor RTP",
    ),
    (
        "src/accounts",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip", "sidetone_media"],
        "accounts know neither SQL nor HTTP",
    ),
    (
        "src/call_info",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip", "sidetone_media"],
        "a callback knows neither SQL, the API nor calls",
    ),
    (
        "src/outbound_http",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip", "sidetone_media"],
        "the HTTP client knows none of its users",
    ),
    (
        "src/prompts",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip"],
        "prompts know neither SQL, the API nor SIP",
    ),
    (
        "src/prompts/library.rs",
        &["tokio"],
        "a clip is in memory before it is played, so playing needs no task",
    ),
    (
        "src/recorder",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip"],
        "a recording knows only the mix and the disk",
    ),
    (
        "src/recorder/recordings.rs",
        &["tokio", "std::fs"],
        "what follows a failed write is decided without I/O, so that tests can fail any write",
    ),
    (
        "src/traces",
        &["tokio", "sqlx", "axum", "sidetone_api", "sidetone_sip"],
        "a trace knows only a leg and the disk",
    ),
    ("src/traces/sink.rs", &["std::fs"], "an RTP worker must not block"),
    ("src/recorder/sink.rs", &["tokio", "std::fs"], "a mix must not block"),
    (
        "src/recorder/thread.rs",
        &["tokio"],
        "writing is on a thread of its own, so that a disk that stalls blocks only it",
    ),
    (
        "src/tap",
        &["sqlx", "axum", "sidetone_api", "crate::driver", "sidetone_switch::machine"],
        "a tap has no switch and no API of its own",
    ),
    ("src/tap/cdr_mapper.rs", &["tokio"], "records are built without I/O"),
    (
        "src/tap/session.rs",
        &["tokio", "nix", "netring"],
        "packets are its inputs; another file receives them",
    ),
    (
        "src/webhooks",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip", "sidetone_media"],
        "webhooks use the store and the HTTP client only",
    ),
    ("src/webhooks/schedule.rs", &["tokio"], "the times of retries are computed without I/O"),
    ("src/webhooks/scheduler.rs", &["tokio"], "the next sender is selected without I/O"),
];

/// Folders in which only the listed parts may use a name: `(root, allowed parts, names, why)`.
const LIMITED: &[(&str, &[&str], &[&str], &str)] = &[
    (
        "media/src",
        &["media/src/net"],
        &["sidetone_wire", "crossbeam_channel"],
        "sockets are in media/src/net",
    ),
    ("cluster/src", &["cluster/src/nats"], &["async_nats", "tokio"], "connections are in cluster/src/nats"),
    ("sip/src", &["sip/src/message"], &["rsip"], "rsip is used by the message layer only"),
    ("sip/src", &["sip/src/sdp"], &["sdp_types"], "sdp-types is used by the SDP layer only"),
    ("sip/src", &["sip/src/transport"], &["tokio", "socket2"], "sockets are in sip/src/transport"),
    ("src", &["src/tap/ring.rs"], &["netring"], "frames of the kernel's ring are borrowed in one file"),
];

/// A member of the workspace, the members it may depend on, and the crates it never depends on. A member cannot
/// import what it does not depend on, so its files need no rule of their own.
const MEMBERS: &[(&str, &[&str], &[&str])] = &[
    ("api", &["model"], &["sqlx"]),
    ("call", &["media", "model", "sip"], IO),
    ("capture", &["call", "media", "model", "report", "sip"], IO),
    ("cluster", &["model"], &["axum", "hyper", "nix", "socket2", "sqlx"]),
    ("media", &["wire"], &["axum", "nix", "socket2", "sqlx", "tokio"]),
    ("model", &[], IO),
    ("panel", &["model", "report"], &["hyper", "sqlx"]),
    ("phone", &["media", "model", "sip"], &["axum", "sqlx"]),
    ("report", &["model"], IO),
    ("sip", &[], &["axum", "sqlx"]),
    ("store", &["model"], &["axum"]),
    ("switch", &["call", "media", "model", "sip"], IO),
    ("terminal", &["model"], &["axum", "crossterm", "hyper", "nix", "sqlx", "tokio"]),
    ("wire", &[], &["axum", "sqlx", "tokio"]),
];

/// The crates that a crate without I/O never depends on.
const IO: &[&str] = &["axum", "crossbeam-channel", "nix", "socket2", "sqlx", "tokio"];

#[test]
fn forbidden_imports_are_absent() {
    let mut broken = Vec::new();
    for (place, names, why) in FORBIDDEN {
        for file in rust_files(place) {
            broken.extend(naming(&file, names).into_iter().map(|line| format!("{line}: {why}")));
        }
    }
    for (root, parts, names, why) in LIMITED {
        for file in rust_files(root) {
            let path = relative(&file);
            if parts.iter().any(|part| path.starts_with(part)) {
                continue;
            }
            broken.extend(naming(&file, names).into_iter().map(|line| format!("{line}: {why}")));
        }
    }
    assert!(broken.is_empty(), "forbidden imports:\n{}", broken.join("\n"));
}

/// Every rule names an existing folder or module: after a rename it would pass without checking anything.
#[test]
fn rules_name_what_exists() {
    let forbidden = FORBIDDEN.iter().map(|(place, names, _)| (*place, *names));
    let limited = LIMITED.iter().map(|(place, _, names, _)| (*place, *names));
    let mut missing = Vec::new();
    for (place, names) in forbidden.chain(limited) {
        if rust_files(place).is_empty() {
            missing.push(place.to_owned());
        }
        let source = place.find("src").map_or(place, |at| &place[..at + "src".len()]);
        for module in names.iter().filter_map(|name| name.strip_prefix("crate::")) {
            let path = root().join(source).join(module.replace("::", "/"));
            if !path.is_dir() && !path.with_extension("rs").is_file() {
                missing.push(format!("{place}: crate::{module}"));
            }
        }
    }
    for (place, parts, ..) in LIMITED {
        missing.extend(
            parts.iter().filter(|part| !root().join(part).exists()).map(|part| format!("{place}: {part}")),
        );
    }
    assert!(missing.is_empty(), "rules name files that do not exist: {missing:#?}");
}

/// Cargo refuses an import that the manifest does not name; this checks the manifests.
#[test]
fn members_depend_on_the_listed_members_only() {
    let mut broken = Vec::new();
    for (member, allowed, never) in MEMBERS {
        for name in dependencies(member) {
            let is_own = name.strip_prefix("sidetone-");
            if is_own.is_some_and(|own| !allowed.contains(&own)) || never.contains(&name.as_str()) {
                broken.push(format!("{member} depends on {name}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest is readable");
    let listed: Vec<String> = MEMBERS.iter().map(|(member, ..)| format!("{member:?}")).collect();
    let members = format!("members = [{}]", listed.join(", "));
    assert!(manifest.contains(&members), "MEMBERS lists what Cargo.toml does: {members}");
    assert!(dependencies("api").contains(&"sidetone-model".to_owned()), "manifests are read");
}

/// The workspace forbids `unsafe`; only the crate of the system calls has its own lints.
#[test]
fn only_wire_may_contain_unsafe() {
    let manifest = |member: &str| {
        fs::read_to_string(root().join(member).join("Cargo.toml")).expect("a member has a manifest")
    };
    assert!(manifest("").contains("\nunsafe_code = \"forbid\"\n"));
    for member in MEMBERS.iter().map(|(member, ..)| *member).chain([""]) {
        let is_lenient = !manifest(member).contains("\n[lints]\nworkspace = true\n");
        assert_eq!(is_lenient, member == "wire", "{member}");
    }
    assert!(manifest("wire").contains("\nundocumented_unsafe_blocks = \"deny\"\n"));
}

/// `app` imports every part, so that only the entry points and the root of a tap may import it.
#[test]
fn only_entry_points_import_the_composition_root() {
    let mut broken = Vec::new();
    for file in rust_files("src") {
        let path = relative(&file);
        if path.starts_with("src/app/")
            || path == "src/tap_app.rs"
            || path == "src/lib.rs"
            || path == "src/main.rs"
            || path.starts_with("src/cli")
        {
            continue;
        }
        for (number, line) in code_lines(&file) {
            if line.contains("crate::app") || line.contains("crate::tap_app") {
                broken.push(format!("{path}:{number}"));
            }
        }
    }
    assert!(broken.is_empty(), "these import the composition root: {broken:?}");
}

/// SQL statements are only in the store, next to the function that runs them.
#[test]
fn only_the_store_contains_sql() {
    let verbs = ["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", "CREATE TABLE"];
    let mut broken = Vec::new();
    for root in sources() {
        for file in rust_files(&root) {
            let path = relative(&file);
            if path.starts_with("store/src") {
                continue;
            }
            for (number, line) in code_lines(&file) {
                if verbs.iter().any(|verb| line.contains(&format!("\"{verb}"))) {
                    broken.push(format!("{path}:{number}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "SQL outside store/src: {broken:?}");
}

/// Where tasks and threads may be started: `(file or folder, why)`. All others belong to the supervisor.
const SPAWNERS: &[(&str, &str)] = &[
    ("src/supervise", "the supervisor itself"),
    ("sip/src/transport/tcp/task.rs", "counts panics, notifies the driver, restarts the listener"),
    ("media/src/net/relay.rs", "the workers catch panics themselves; the end of one is reported"),
    ("media/src/net/real_time.rs", "checks whether a thread may have a priority; it is joined immediately"),
    ("api/src/server/accept.rs", "a set of connections; their results are read and panics counted"),
    ("api/src/idempotency/layer.rs", "awaited immediately; a panic is a 500"),
    ("src/call_info/asking.rs", "a set of requests, each of them supervised"),
    (
        "src/call_requests/callbacks.rs",
        "a set of requests; their results are read, and a panic is a failed attempt",
    ),
    ("src/webhooks/worker.rs", "a set of requests; their results are read and panics counted"),
    ("store/src/lent_connection.rs", "returns a connection; after a panic the pool opens another one"),
    (
        "store/src/database_health.rs",
        "checks whether the server answers; without it the timeouts of statements still apply",
    ),
    ("capture/src/read_ahead.rs", "threads of one analysis, joined before it returns"),
    ("phone/src", "phones are not part of the engine"),
];

/// Whether a line starts a task or a thread. `spawn_blocking` does not count: its caller awaits it and gets its panic
/// as an error.
fn spawns(line: &str) -> bool {
    let begins =
        ["tokio::spawn(", "thread::spawn(", "task::spawn(", ".spawn(", ".spawn_scoped(", "spawn_local("];
    begins.iter().any(|call| line.contains(call)) || line.contains("thread::Builder")
}

/// Every task and thread has an owner that counts its panics (`src/supervise`).
#[test]
fn tasks_and_threads_belong_to_the_supervisor() {
    assert!(spawns("let task = tokio::spawn(work());"));
    assert!(spawns("std::thread::Builder::new()"));
    assert!(!spawns("let read = tokio::task::spawn_blocking(move || clip());"));
    let mut broken = Vec::new();
    let mut used = vec![false; SPAWNERS.len()];
    for root in sources() {
        for file in rust_files(&root).into_iter().filter(|file| !file.to_string_lossy().ends_with("tests.rs"))
        {
            let path = relative(&file);
            let allowed = SPAWNERS.iter().position(|(place, _)| path.starts_with(place));
            for (number, _) in code_lines(&file).into_iter().filter(|(_, line)| spawns(line)) {
                match allowed {
                    Some(place) => used[place] = true,
                    None => broken.push(format!("{path}:{number}")),
                }
            }
        }
    }
    assert!(broken.is_empty(), "these start tasks that have no owner: {broken:#?}");
    let unused: Vec<_> = SPAWNERS.iter().zip(used).filter(|(_, used)| !used).collect();
    assert!(unused.is_empty(), "these start no task any more: {unused:?}");
}

/// A `mod.rs` contains only declarations, and no `foo.rs` exists beside `foo/`.
#[test]
fn mod_files_contain_no_code() {
    let mut broken = Vec::new();
    for root in sources() {
        for file in rust_files(&root) {
            if file.with_extension("").is_dir() {
                broken.push(format!("{} is beside a folder of its name", relative(&file)));
            }
            if file.ends_with("mod.rs") {
                let is_code =
                    |(_, line): &(usize, String)| line.starts_with("fn ") || line.starts_with("impl");
                if code_lines(&file).iter().any(is_code) {
                    broken.push(format!("{} contains code", relative(&file)));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
}

/// The search of the rules above finds the names that it should find.
#[test]
fn the_search_finds_imports() {
    let line = |text: &str| names_one_of(text, &["tokio"]);
    assert!(line("use tokio::net::UdpSocket;"));
    assert!(line("let socket = tokio::net::UdpSocket::bind(address);"));
    assert!(line("use tokio;"));
    assert!(!line("use crate::tokio_like::Thing;"));
    assert!(!line("let tokio = 1;"));
    assert!(rust_files("model/src").len() > 5);
}

/// The lines that name one of `names` as a path or in a `use`, as `file:line`.
fn naming(file: &Path, names: &[&str]) -> Vec<String> {
    code_lines(file)
        .into_iter()
        .filter(|(_, line)| names_one_of(line, names))
        .map(|(number, _)| format!("{}:{number}", relative(file)))
        .collect()
}

fn names_one_of(line: &str, names: &[&str]) -> bool {
    names.iter().any(|name| {
        line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = &line[at + name.len()..];
            let word_starts = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
            word_starts && (after.starts_with("::") || (line.starts_with("use ") && after.starts_with(';')))
        })
    })
}

/// The numbered lines of a file before its tests, without comments.
fn code_lines(file: &Path) -> Vec<(usize, String)> {
    let code = fs::read_to_string(file).expect("source files are readable");
    code.lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .map(|(at, line)| (at + 1, line.trim_start().to_owned()))
        .filter(|(_, line)| !line.starts_with("//"))
        .collect()
}

/// The crates under `[dependencies]` of a member's manifest; those only for tests do not count.
fn dependencies(member: &str) -> Vec<String> {
    let manifest =
        fs::read_to_string(root().join(member).join("Cargo.toml")).expect("a member has a manifest");
    let section = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    section
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// The folders with source files of every crate.
fn sources() -> Vec<String> {
    let members = MEMBERS.iter().map(|(member, ..)| format!("{member}/src"));
    members.chain(["src".to_owned()]).collect()
}

/// Every Rust file of a part (a folder or one file).
fn rust_files(place: &str) -> Vec<PathBuf> {
    let path = root().join(place);
    if path.is_file() {
        return vec![path];
    }
    let mut found = Vec::new();
    let mut folders = vec![path];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn relative(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}
