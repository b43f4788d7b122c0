//! A database of its own for every test: a SQLite file, or a database of the PostgreSQL server that
//! `SIDETONE_TEST_POSTGRES` names.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "benches and other crates use a part")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{LazyLock, Once};

use sidetone_store::{Database, Location, Store};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Row};
use uuid::Uuid;

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Postgres,
    Sqlite,
}

/// A database; it is removed when the value is dropped.
pub struct TestDatabase {
    pub database: Database,
    server: Option<(String, String)>,
}

/// The database kinds that a contract is tested on: both, or only SQLite, with a notice, when no server is named.
pub fn kinds() -> Vec<Kind> {
    static NOTICE: Once = Once::new();
    if server().is_some() {
        return vec![Kind::Sqlite, Kind::Postgres];
    }
    NOTICE.call_once(|| {
        eprintln!(
            "\nNOTICE: PostgreSQL is NOT tested: SIDETONE_TEST_POSTGRES names no server (postgres://…)\n"
        );
    });
    vec![Kind::Sqlite]
}

/// The kind for tests that run on one: SQLite, or the value of `SIDETONE_TEST_DATABASE`.
pub fn chosen() -> Kind {
    match std::env::var("SIDETONE_TEST_DATABASE").as_deref() {
        Ok("postgres") => Kind::Postgres,
        Ok("sqlite" | "") | Err(_) => Kind::Sqlite,
        Ok(other) => panic!("SIDETONE_TEST_DATABASE: sqlite or postgres, not {other}"),
    }
}

impl TestDatabase {
    /// A database with this version's schema and no rows; a SQLite file is in `dir`. Running every migration in every
    /// test would take a fifth of the processor time of the tests over HTTP.
    pub async fn new(kind: Kind, dir: &Path) -> Self {
        match kind {
            Kind::Sqlite => {
                let file = dir.join("new/sidetone.db");
                std::fs::create_dir_all(dir.join("new")).unwrap();
                write_schema(&file);
                Self { database: (&file).into(), server: None }
            }
            Kind::Postgres => Self::on_server(&copy_of(&TEMPLATE)).await,
        }
    }

    /// A database without a table; a SQLite file would be in `dir`.
    pub async fn bare(kind: Kind, dir: &Path) -> Self {
        match kind {
            Kind::Sqlite => Self { database: (&dir.join("new/sidetone.db")).into(), server: None },
            Kind::Postgres => Self::on_server("").await,
        }
    }

    /// A database with the same tables and rows; a SQLite file is in `dir`. Nothing may be connected to this one.
    pub async fn copy(&self, dir: &Path) -> Self {
        match (&self.server, &self.database.location) {
            (Some((_, name)), _) => Self::on_server(&copy_of(name)).await,
            (None, location) => {
                let file = dir.join("new/sidetone.db");
                std::fs::create_dir_all(dir.join("new")).unwrap();
                std::fs::copy(location.to_string(), &file).unwrap();
                Self { database: (&file).into(), server: None }
            }
        }
    }

    async fn on_server(how: &str) -> Self {
        let server = server().expect("SIDETONE_TEST_POSTGRES names a server");
        let name = format!("sidetone_test_{}", Uuid::new_v4().simple());
        administer(&server, format!("CREATE DATABASE {name}{how}")).await.unwrap();
        let location: Location = url_of(&server, &name).parse().unwrap();
        Self { database: location.into(), server: Some((server, name)) }
    }

    /// The rows of a statement, read by another client; all columns are text.
    pub async fn texts(&self, statement: &'static str) -> Vec<Vec<Option<String>>> {
        match &self.server {
            Some(_) => {
                let mut connection = PgConnection::connect(&self.url()).await.unwrap();
                let rows = sqlx::query(statement).fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| (0..row.len()).map(|index| row.get(index)).collect()).collect()
            }
            None => {
                let mut connection = SqliteConnection::connect(&self.url()).await.unwrap();
                let rows = sqlx::query(statement).fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| (0..row.len()).map(|index| row.get(index)).collect()).collect()
            }
        }
    }

    /// The URL for another client.
    pub fn url(&self) -> String {
        match (&self.server, &self.database.location) {
            (Some((server, name)), _) => url_of(server, name),
            (None, location) => format!("sqlite://{location}"),
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some((server, name)) = self.server.take() else { return };
        // Databases left on a test server are harmless.
        let _ = administered(&server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    }
}

/// The server's URL.
pub fn server() -> Option<String> {
    std::env::var("SIDETONE_TEST_POSTGRES").ok().filter(|url| !url.is_empty())
}

/// `server` with the database `name` in place of its own.
pub fn url_of(server: &str, name: &str) -> String {
    let (head, parameters) = server.split_once('?').map_or((server, None), |(head, tail)| (head, Some(tail)));
    let (scheme, rest) = head.split_once("://").unwrap();
    let host = rest.split_once('/').map_or(rest, |(host, _)| host);
    let parameters = parameters.map(|parameters| format!("?{parameters}")).unwrap_or_default();
    format!("{scheme}://{host}/{name}{parameters}")
}

async fn administer(server: &str, statement: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server).await?;
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
    connection.close().await
}

/// Runs a statement on the server, within a runtime or without one.
pub fn administered(server: &str, statement: String) -> Result<(), sqlx::Error> {
    let server = server.to_owned();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(administer(&server, statement))
    });
    thread.join().unwrap()
}

/// Writes a SQLite file with this version's schema.
pub fn write_schema(file: &Path) {
    std::fs::write(file, &*SCHEMA).unwrap();
}

/// A SQLite file after all migrations, made once in a process.
static SCHEMA: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let dir = std::env::temp_dir().join(format!("sidetone-schema-{}", Uuid::new_v4()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("sidetone.db");
    migrate((&file).into());
    assert!(!dir.join("sidetone.db-wal").exists(), "the log of a closed database is merged into its file");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    bytes
});

/// The name of a database on the server with this version's schema. It is kept there for the next run of the tests.
pub static TEMPLATE: LazyLock<String> = LazyLock::new(|| {
    let server = server().expect("SIDETONE_TEST_POSTGRES names a server");
    let name = format!("sidetone_schema_{:016x}", hash_of_migrations());
    let draft = format!("sidetone_draft_{}", Uuid::new_v4().simple());
    let names = format!("SELECT 1 / COUNT(*) FROM pg_database WHERE datname = '{name}'");
    if administered(&server, names.clone()).is_ok() {
        return name;
    }
    administered(&server, format!("CREATE DATABASE {draft}")).unwrap();
    migrate(url_of(&server, &draft).parse::<Location>().unwrap().into());
    // A database with a connection cannot be renamed: wait for the end of the connections that were closed a moment
    // ago.
    let ended =
        format!("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{draft}'");
    administered(&server, ended).unwrap();
    // Another process may have been faster.
    if administered(&server, format!("ALTER DATABASE {draft} RENAME TO {name}")).is_err() {
        administered(&server, names).unwrap();
    }
    administered(&server, format!("DROP DATABASE IF EXISTS {draft} WITH (FORCE)")).unwrap();
    name
});

/// The end of a `CREATE DATABASE` for a copy of this database.
pub fn copy_of(name: &str) -> String {
    format!(" TEMPLATE {name} {}", *STRATEGY)
}

/// How the server copies a template: by its files takes a third of the processor time of writing every page to the log,
/// which is the default of PostgreSQL since version 15. Older versions copy the files and have no word for it.
static STRATEGY: LazyLock<&str> = LazyLock::new(|| {
    let server = server().expect("SIDETONE_TEST_POSTGRES names a server");
    let is_known = "SELECT 1 / (current_setting('server_version_num')::int >= 150000)::int";
    if administered(&server, is_known.to_owned()).is_ok() { "STRATEGY FILE_COPY" } else { "" }
});

/// Runs all migrations, within a runtime or without one.
fn migrate(database: Database) {
    let migrate = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Store::open(&database).await.unwrap();
            store.close().await;
        });
    };
    std::thread::spawn(migrate).join().unwrap();
}

fn hash_of_migrations() -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        std::fs::read(file).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}
