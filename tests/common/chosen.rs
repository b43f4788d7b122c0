//! The database of a data directory, on the kind that `SIDETONE_TEST_DATABASE` chooses.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "each test binary uses its own part")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use sidetone_store::{Database, Location, Store};
use uuid::Uuid;

use crate::database::{Kind, administered, chosen, server, url_of};
use crate::records::WHEN_DROPPED;

/// What `[database] url` says for an engine with its data in `dir`: a file in there, or a database that is made
/// when it is first asked for, and dropped with the directory.
pub fn url_in(dir: &Path) -> String {
    match chosen() {
        Kind::Sqlite => format!("sqlite://{}/sidetone.db", dir.display()),
        Kind::Postgres => {
            let server = server().expect("SIDETONE_TEST_POSTGRES names a server");
            let name = name_of(dir);
            if MADE.lock().unwrap().insert(name.clone()) {
                WHEN_DROPPED.get_or_init(|| forget);
                administered(&server, format!("CREATE DATABASE {name}")).unwrap();
            }
            url_of(&server, &name)
        }
    }
}

/// The same as a setting.
pub fn database_in(dir: &Path) -> Database {
    url_in(dir).parse::<Location>().unwrap().into()
}

/// The same, and a file has this version's schema before it is opened: running every migration in every test takes a
/// fifth of the processor time of the tests over HTTP.
pub fn migrated_in(dir: &Path) -> Database {
    let file = dir.join("sidetone.db");
    if chosen() == Kind::Sqlite && !file.exists() {
        std::fs::write(&file, &*MIGRATED).unwrap();
    }
    database_in(dir)
}

/// A SQLite file after all migrations, made once in a process.
static MIGRATED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let migrate = || {
        let dir = std::env::temp_dir().join(format!("sidetone-migrated-{}", Uuid::new_v4()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("sidetone.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Store::open(&Database::from(&file)).await.unwrap();
            store.close().await;
        });
        assert!(
            !dir.join("sidetone.db-wal").exists(),
            "the log of a closed database is merged into its file"
        );
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        bytes
    };
    // The caller may be within a runtime.
    std::thread::spawn(migrate).join().unwrap()
});

fn forget(dir: &Path) {
    let name = name_of(dir);
    if MADE.lock().unwrap().remove(&name) {
        let Some(server) = server() else { return };
        // What stays behind on a server of tests harms nobody.
        let _ = administered(&server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    }
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap().to_str().unwrap();
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

static MADE: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
