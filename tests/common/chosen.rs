//! The database of a data directory, on the kind that `SIDETONE_TEST_DATABASE` chooses.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "benches and other crates use a part")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use sidetone_store::{Database, Location};

use super::database::{Kind, TEMPLATE, administered, chosen, copy_of, server, url_of, write_schema};
use super::records::WHEN_DROPPED;

/// The value of `[database] url` for an engine with its data in `dir`: a file in there, or a database that is created
/// on the first request, and dropped with the directory.
pub fn url_in(dir: &Path) -> String {
    url_with(dir, String::new)
}

fn url_with(dir: &Path, how: impl FnOnce() -> String) -> String {
    match chosen() {
        Kind::Sqlite => format!("sqlite://{}/sidetone.db", dir.display()),
        Kind::Postgres => {
            let server = server().expect("SIDETONE_TEST_POSTGRES names a server");
            let name = name_of(dir);
            if MADE.lock().unwrap().insert(name.clone()) {
                WHEN_DROPPED.get_or_init(|| forget);
                administered(&server, format!("CREATE DATABASE {name}{}", how())).unwrap();
            }
            url_of(&server, &name)
        }
    }
}

/// The same as a [`Database`] setting.
pub fn database_in(dir: &Path) -> Database {
    url_in(dir).parse::<Location>().unwrap().into()
}

/// The same; a new database has this version's schema.
pub fn migrated_in(dir: &Path) -> Database {
    let file = dir.join("sidetone.db");
    if chosen() == Kind::Sqlite && !file.exists() {
        write_schema(&file);
    }
    url_with(dir, || copy_of(&TEMPLATE)).parse::<Location>().unwrap().into()
}

fn forget(dir: &Path) {
    let name = name_of(dir);
    if MADE.lock().unwrap().remove(&name) {
        let Some(server) = server() else { return };
        // Databases left on a test server are harmless.
        let _ = administered(&server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    }
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap().to_str().unwrap();
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

static MADE: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
