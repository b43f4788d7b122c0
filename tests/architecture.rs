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
const FLOORS: &[(&str, &[&str], &str)] = &[
    (
        "switch/src/conference",
        &["sidetone_sip", "sidetone_media", "crate::call", "crate::io", "crate::live", "crate::machine"],
        "rooms are pure",
    ),
    (
        "src/accounts",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip", "sidetone_media"],
        "accounts stand between the face and the store",
    ),
    (
        "src/call_info",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip", "sidetone_media"],
        "a callback is beside the calls",
    ),
    (
        "src/outbound_http",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip", "sidetone_media"],
        "the guarded client imports none of its users",
    ),
    ("src/prompts", &["sqlx", "axum", "sidetone_api", "sidetone_sip"], "sounds are played by others"),
    ("src/prompts/library.rs", &["tokio"], "a clip is in memory before it is asked for"),
    (
        "src/recorder",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip"],
        "a recording knows the mix and the disk",
    ),
    (
        "src/recorder/recordings.rs",
        &["tokio", "std::fs"],
        "what is done when a disk fails is tried on every disk",
    ),
    (
        "src/traces",
        &["tokio", "sqlx", "axum", "sidetone_api", "sidetone_sip"],
        "a trace knows a leg and the disk",
    ),
    ("src/traces/sink.rs", &["std::fs"], "a worker waits for nothing"),
    ("src/recorder/sink.rs", &["tokio", "std::fs"], "a mix waits for nothing"),
    ("src/recorder/thread.rs", &["tokio"], "a disk that stalls holds up one thread"),
    (
        "src/tap",
        &["sqlx", "axum", "sidetone_api", "crate::driver", "sidetone_switch::machine"],
        "a tap carries no calls",
    ),
    ("src/tap/cdr_mapper.rs", &["tokio"], "a record of what was heard is built purely"),
    ("src/tap/session.rs", &["tokio", "nix", "netring"], "packets come from anywhere"),
    (
        "src/webhooks",
        &["sqlx", "axum", "sidetone_api", "sidetone_sip", "sidetone_media"],
        "webhooks import only the store",
    ),
    ("src/webhooks/schedule.rs", &["tokio"], "when to try again is pure"),
    ("src/webhooks/scheduler.rs", &["tokio"], "who may send now is pure"),
];

/// Folders in which only the listed parts may use a name: `(root, allowed parts, names, why)`.
const ONLY: &[(&str, &[&str], &[&str], &str)] = &[
    (
        "media/src",
        &["media/src/net"],
        &["sidetone_wire", "crossbeam_channel"],
        "sockets live in media/src/net",
    ),
    ("cluster/src", &["cluster/src/nats"], &["async_nats", "tokio"], "sockets live in cluster/src/nats"),
    ("sip/src", &["sip/src/message"], &["rsip"], "rsip stays behind the message layer"),
    ("sip/src", &["sip/src/sdp"], &["sdp_types"], "sdp-types stays behind the SDP layer"),
    ("sip/src", &["sip/src/transport"], &["tokio", "socket2"], "sockets live in sip/src/transport"),
    ("src", &["src/tap/ring.rs"], &["netring"], "frames are lent and never let go"),
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
fn floors_are_kept() {
    let mut broken = Vec::new();
    for (room, names, why) in FLOORS {
        for file in rust_files(room) {
            broken.extend(naming(&file, names).into_iter().map(|line| format!("{line}: {why}")));
        }
    }
    for (root, parts, names, why) in ONLY {
        for file in rust_files(root) {
            let path = relative(&file);
            if parts.iter().any(|part| path.starts_with(part)) {
                continue;
            }
            broken.extend(naming(&file, names).into_iter().map(|line| format!("{line}: {why}")));
        }
    }
    assert!(broken.is_empty(), "floors crossed:\n{}", broken.join("\n"));
}

/// Every rule names an existing folder or module: after a rename it would pass without checking anything.
#[test]
fn rules_name_what_exists() {
    let floors = FLOORS.iter().map(|(place, names, _)| (*place, *names));
    let only = ONLY.iter().map(|(place, _, names, _)| (*place, *names));
    let mut missing = Vec::new();
    for (place, names) in floors.chain(only) {
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
    for (place, parts, ..) in ONLY {
        missing.extend(
            parts.iter().filter(|part| !root().join(part).exists()).map(|part| format!("{place}: {part}")),
        );
    }
    assert!(missing.is_empty(), "rules name what is not there: {missing:#?}");
}

/// Cargo refuses an import that the manifest does not name; this checks the manifests.
#[test]
fn members_depend_on_lower_floors_only() {
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
fn unsafe_lives_in_wire() {
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
fn only_entry_points_know_the_composition_root() {
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
fn sql_lives_in_the_store() {
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
    ("sip/src/transport/tcp/task.rs", "counts panics, tells the driver, starts the listener again"),
    ("media/src/net/relay.rs", "the workers catch panics themselves; one that ends is noted"),
    ("media/src/net/real_time.rs", "tries whether a thread may have a priority; it is joined at once"),
    ("api/src/server/accept.rs", "a set of connections whose ends are looked at; a panic is counted"),
    ("api/src/idempotency/layer.rs", "awaited at once; a panic is a 500"),
    ("src/call_info/asking.rs", "a set of requests, each of them supervised"),
    (
        "src/call_requests/callbacks.rs",
        "a set of posts whose ends are looked at; a panic is a failed attempt",
    ),
    ("src/webhooks/worker.rs", "a set of posts whose ends are looked at; a panic is counted"),
    ("store/src/lent_connection.rs", "gives a connection back; after a panic the pool opens another one"),
    (
        "store/src/database_health.rs",
        "asks whether the server answers; without it the time-outs of statements hold",
    ),
    ("capture/src/read_ahead.rs", "threads of one analysis, joined before it returns"),
    ("phone/src", "phones, no part of the engine"),
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
    assert!(broken.is_empty(), "these begin tasks that have no owner: {broken:#?}");
    let unused: Vec<_> = SPAWNERS.iter().zip(used).filter(|(_, used)| !used).collect();
    assert!(unused.is_empty(), "these begin none any more: {unused:?}");
}

/// A `mod.rs` contains only declarations, and no `foo.rs` exists beside `foo/`.
#[test]
fn modules_have_one_door() {
    let mut broken = Vec::new();
    for root in sources() {
        for file in rust_files(&root) {
            if file.with_extension("").is_dir() {
                broken.push(format!("{} stands beside a folder of its name", relative(&file)));
            }
            if file.ends_with("mod.rs") {
                let holds_code =
                    |(_, line): &(usize, String)| line.starts_with("fn ") || line.starts_with("impl");
                if code_lines(&file).iter().any(holds_code) {
                    broken.push(format!("{} holds code", relative(&file)));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
}

/// The helper of the rules above finds the names that it should find: a check that cannot fail is worthless.
#[test]
fn the_reader_finds_a_crossing() {
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
fn rust_files(room: &str) -> Vec<PathBuf> {
    let path = root().join(room);
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
