//! D8: a process is killed during a migration, at every step and on both databases.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sidetone_store::Store;
use sqlx::migrate::{Migration, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::common::database::{Kind, TestDatabase, kinds};
use crate::common::records::{TempDir, ended};
use crate::service::served::config;

async fn migrations() -> Vec<Migration> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations"));
    Migrator::new(folder).await.unwrap().iter().cloned().collect()
}

/// The first `count` migrations.
async fn first(count: usize) -> Migrator {
    Migrator::with_migrations(migrations().await.into_iter().take(count).collect())
}

/// The tables, columns and indexes, and the completed migrations.
async fn schema(database: &TestDatabase, kind: Kind) -> Vec<Vec<Option<String>>> {
    let statement = match kind {
        Kind::Sqlite => "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name",
        Kind::Postgres => {
            "SELECT table_name::text || '.' || column_name::text, data_type::text FROM information_schema.columns
             WHERE table_schema = 'public' ORDER BY 1"
        }
    };
    let mut rows = database.texts(statement).await;
    rows.extend(database.texts("SELECT CAST(version AS TEXT) FROM _sqlx_migrations ORDER BY version").await);
    rows
}

/// The statements of a migration up to its middle, cut at a semicolon that ends a line.
fn half(migration: &Migration) -> String {
    let text = migration.sql.as_str();
    let ends: Vec<usize> = text.match_indices(";\n").map(|(at, _)| at + 2).collect();
    let cut = ends.get(ends.len().saturating_sub(1) / 2).copied().unwrap_or(text.len());
    text[..cut].to_owned()
}

/// The folder of a SQLite file.
fn folder_of(database: &TestDatabase) -> PathBuf {
    Path::new(database.url().trim_start_matches("sqlite://")).parent().unwrap().to_owned()
}

/// Runs the first `count` migrations.
async fn advance(database: &TestDatabase, kind: Kind, count: usize) {
    match kind {
        Kind::Sqlite => {
            std::fs::create_dir_all(folder_of(database)).unwrap();
            let url = format!("{}?mode=rwc", database.url());
            let mut connection = SqliteConnection::connect(&url).await.unwrap();
            connection.execute("PRAGMA journal_mode = WAL").await.unwrap();
            first(count).await.run(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
        Kind::Postgres => {
            let mut connection = PgConnection::connect(&database.url()).await.unwrap();
            first(count).await.run(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

/// Runs a part of a migration in a transaction that never ends, and crashes.
async fn interrupt(database: &TestDatabase, kind: Kind, migration: &Migration) {
    let next = half(migration);
    match kind {
        Kind::Sqlite => {
            let mut connection = SqliteConnection::connect(&database.url()).await.unwrap();
            connection.execute("BEGIN IMMEDIATE").await.unwrap();
            connection.execute(AssertSqlSafe(next)).await.unwrap();
            // A killed process leaves the files as they are now. This copy replaces the database
            // once the connection is closed, because closing writes to the original files, and removes some.
            let directory = folder_of(database);
            let left = TempDir::snapshot(&directory);
            connection.close().await.unwrap();
            for entry in std::fs::read_dir(&directory).unwrap() {
                std::fs::remove_file(entry.unwrap().path()).unwrap();
            }
            for entry in std::fs::read_dir(left.path()).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), directory.join(entry.file_name())).unwrap();
            }
        }
        Kind::Postgres => {
            let mut connection = PgConnection::connect(&database.url()).await.unwrap();
            connection.execute("BEGIN").await.unwrap();
            connection.execute(AssertSqlSafe(next)).await.unwrap();
            // Without closing the connection, like a killed process.
            drop(connection);
        }
    }
}

#[tokio::test]
async fn a_kill_in_the_middle_of_any_migration_is_finished_by_the_next_start() {
    let migrations = migrations().await;
    let steps = migrations.len();
    for kind in kinds() {
        let [whole_dir, partial_dir] = [TempDir::new(), TempDir::new()];
        let whole = TestDatabase::bare(kind, whole_dir.path()).await;
        Store::open(&whole.database).await.unwrap().close().await;
        let expected = schema(&whole, kind).await;
        // It has the migrations before the one that is interrupted, in a copy.
        let partial = TestDatabase::bare(kind, partial_dir.path()).await;
        for (done, migration) in migrations.iter().enumerate() {
            advance(&partial, kind, done).await;
            let dir = TempDir::new();
            let database = partial.copy(dir.path()).await;
            interrupt(&database, kind, migration).await;
            Store::open(&database.database).await.unwrap().close().await;
            assert_eq!(schema(&database, kind).await, expected, "{kind:?}, after step {done}");
        }
        println!("D8: {kind:?}, killed in each of {steps} migrations, the next start finished every one");
    }
}

/// The real process, killed at a random moment of its first start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: thirty starts that are killed"]
async fn long_kill_9_during_the_first_start_is_finished_by_the_next() {
    let dir = TempDir::new();
    let file = dir.path().join("sidetone.toml");
    std::fs::write(&file, config(dir.path(), "[http]\nlisten = \"127.0.0.1:0\"\n")).unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidetone"));
        command.arg("serve").arg("--config").arg(&file).env("RUST_LOG", "error");
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    for round in 0..30 {
        let mut process = start();
        // 5, 15, 25 … ms: each time more of the migrations are complete.
        tokio::time::sleep(Duration::from_millis(5 + 10 * round)).await;
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let store = Store::open(&crate::common::chosen::database_in(dir.path())).await;
    store.unwrap().close().await;
    println!("D8: 30 starts killed with SIGKILL, the next one opened the database");
}

/// The migrations of the last version, with a million records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a million records"]
async fn long_the_last_migrations_take_less_than_a_minute_with_a_million_records() {
    for kind in kinds() {
        let dir = TempDir::new();
        std::fs::create_dir_all(dir.path().join("new")).unwrap();
        let older = TestDatabase::bare(kind, dir.path()).await;
        let steps = migrations().await.len();
        fill(&older, kind, steps - 1).await;
        let began = Instant::now();
        let store = Store::open(&older.database).await.unwrap();
        let took = began.elapsed();
        store.close().await;
        let count = older.texts("SELECT CAST(COUNT(*) AS TEXT) FROM cdrs").await;
        assert_eq!(count[0][0].as_deref(), Some("1000000"));
        assert!(took < Duration::from_secs(60), "{took:?}");
        println!("D8: {kind:?}, N-1 → N with 1,000,000 records in {:.1} s", took.as_secs_f64());
    }
}

/// A million records in the schema of the first `done` migrations.
async fn fill(database: &TestDatabase, kind: Kind, done: usize) {
    let call = ended(0);
    let organisation = call.organisation_id;
    let columns = "call_uuid, organisation_id, direction, transport, started_at_us, answered_at_us, ended_at_us, \
                   billsec, billing_mode, caller_number, destination_number, hangup_cause, sell_scaled, cost_scaled, search";
    let values = format!(
        "'{organisation}', 'internal', 'sip', 1767225600000000 + n * 1000000, 1767225602000000 + n * 1000000, \
         1767225662000000 + n * 1000000, 60, 'free', '1001', '1002', 'NORMAL_CLEARING', 0, 0, '1001 1002'"
    );
    let owner = format!(
        "INSERT INTO organisations (id, name, sip_domain, currency, created_at_us, updated_at_us) \
         VALUES ('{organisation}', 'Acme', 'acme.test', 'EUR', 0, 0)"
    );
    advance(database, kind, done).await;
    match kind {
        Kind::Sqlite => {
            let mut connection = SqliteConnection::connect(&database.url()).await.unwrap();
            connection.execute(AssertSqlSafe(owner)).await.unwrap();
            let insert = format!(
                "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1000000) \
                 INSERT INTO cdrs ({columns}) SELECT printf('00000000-0000-4000-8000-%012x', n), {values} FROM number"
            );
            connection.execute(AssertSqlSafe(insert)).await.unwrap();
            connection.close().await.unwrap();
        }
        Kind::Postgres => {
            let mut connection = PgConnection::connect(&database.url()).await.unwrap();
            connection.execute(AssertSqlSafe(owner)).await.unwrap();
            let insert = format!(
                "INSERT INTO cdrs ({columns}) SELECT '00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'), {values} \
                 FROM generate_series(1, 1000000::bigint) AS number(n)"
            );
            connection.execute(AssertSqlSafe(insert)).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}
