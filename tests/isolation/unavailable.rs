//! An unavailable database: every operation returns 503 with `Retry-After`, nothing is stored, and no other caller
//! waits.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};
use tokio::runtime::Runtime;

use crate::common::database::{Kind, chosen};
use crate::common::site;
use crate::isolation::client::{self, Answer};
use crate::isolation::fixture::Fixture;
use crate::isolation::policy::{ROWS, Row, Shape};

/// Operations that do not use the shared connections of the organisations: the switch answers, or they belong to
/// authentication.
const WITHOUT_THE_DATABASE: &[&str] = &[
    "POST /api/v1/auth/login",
    "GET /api/v1/calls",
    "GET /api/v1/calls/{uuid}",
    "GET /api/v1/calls/{uuid}/quality",
    "POST /api/v1/calls/{uuid}/conference",
    "POST /api/v1/calls/{uuid}/transfer",
    "POST /api/v1/calls/{uuid}/play",
    "DELETE /api/v1/calls/{uuid}/play",
    "POST /api/v1/calls/{uuid}/hold",
    "POST /api/v1/calls/{uuid}/unhold",
    "GET /api/v1/calls/{uuid}/signalling",
    "POST /api/v1/calls/{uuid}/park",
    "DELETE /api/v1/calls/{uuid}",
    "GET /api/v1/registrations",
    "GET /api/v1/conferences",
    "GET /api/v1/conferences/{room}",
    "GET /api/v1/conferences/by-call/{uuid}",
    "POST /api/v1/conferences/{room}/lock",
    "POST /api/v1/conferences/{room}/unlock",
    "POST /api/v1/conferences/{room}/members/{id}/mute",
    "POST /api/v1/conferences/{room}/members/{id}/unmute",
    "POST /api/v1/conferences/{room}/members/{id}/deaf",
    "POST /api/v1/conferences/{room}/members/{id}/undeaf",
    "POST /api/v1/conferences/{room}/members/{id}/gain",
    "POST /api/v1/conferences/{room}/members/{id}/hold",
    "POST /api/v1/conferences/{room}/members/{id}/unhold",
    "POST /api/v1/conferences/{room}/members/{id}/lock-mute",
    "POST /api/v1/conferences/{room}/members/{id}/whisper",
    "POST /api/v1/conferences/{room}/members/{id}/unwhisper",
    "POST /api/v1/conferences/{room}/mute-all",
    "POST /api/v1/conferences/{room}/record",
    "POST /api/v1/conferences/{room}/stop-playing",
    "POST /api/v1/conferences/{room}/members/{id}/kick",
    "POST /api/v1/conferences/{room}/end",
    "GET /api/v1/docs",
    "GET /api/v1/docs/style.css",
    "GET /api/v1/nodes",
    "GET /api/v1/openapi.json",
    "GET /",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
];

fn unavailable(row: &Row, answer: &Answer) {
    assert_eq!(answer.status, 503, "{}: {} {}", row.operation, answer.status, answer.text);
    assert_eq!(answer.json()["error"]["code"], "node_busy", "{}: {}", row.operation, answer.text);
    assert!(answer.head.contains("\r\nretry-after: "), "{}: {}", row.operation, answer.head);
    assert!(answer.head.contains("\r\nx-ratelimit-limit: "), "{}: {}", row.operation, answer.head);
}

#[test]
fn every_operation_says_503_while_the_database_is_away() {
    let fixture = Fixture::new();
    let operator = fixture.operator().to_owned();
    fixture.on_engine(fixture.store.close_shared());
    let mut others = Vec::new();
    for row in ROWS {
        let token = if row.operator { &operator } else { &fixture.acme.key };
        let token = if row.shape == Shape::Session { &operator } else { token };
        let path = row.path(&fixture.acme);
        let answer = fixture.send(row.method(), &path, Some(token), &row.body(&fixture.acme));
        if answer.status == 503 {
            unavailable(row, &answer);
        } else {
            assert!(answer.status < 500, "{}: {} {}", row.operation, answer.status, answer.text);
            others.push(row.operation);
        }
    }
    assert_eq!(others, WITHOUT_THE_DATABASE, "these need no database");
    fixture.on_engine(fixture.store.close());
    for row in ROWS.iter().filter(|row| !matches!(row.shape, Shape::Local | Shape::Public)) {
        let path = row.path(&fixture.acme);
        let answer = fixture.send(row.method(), &path, Some(&fixture.acme.key), &row.body(&fixture.acme));
        unavailable(row, &answer);
    }
}

/// Another client of the database, which blocks other clients until it is dropped.
enum Lock {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

/// Locks a table against all access, on SQLite the database against writes.
async fn lock(fixture: &Fixture, table: &str) -> Lock {
    match chosen() {
        Kind::Postgres => {
            let mut connection = PgConnection::connect(&fixture.database_url).await.unwrap();
            let statement = format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
            Lock::Postgres(connection)
        }
        Kind::Sqlite => {
            let mut connection = SqliteConnection::connect(&fixture.database_url).await.unwrap();
            sqlx::raw_sql("PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE")
                .execute(&mut connection)
                .await
                .unwrap();
            Lock::Sqlite(connection)
        }
    }
}

impl Lock {
    async fn release(self) {
        match self {
            Lock::Postgres(connection) => connection.close().await.unwrap(),
            Lock::Sqlite(connection) => connection.close().await.unwrap(),
        }
    }
}

#[test]
fn a_failure_that_passes_is_not_kept_for_its_key() {
    let fixture = Fixture::new();
    let runtime = Runtime::new().unwrap();
    let key = &fixture.acme.key;
    let post = || {
        let (body, line) = (json!({"name": "after the lock"}), "Idempotency-Key: passing\r\n");
        client::send_with(fixture.address(), None, "POST", "/api/v1/teams", Some(key), line, &body)
    };
    let held = runtime.block_on(lock(&fixture, "teams"));
    let answer = post();
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(answer.head.contains("\r\nretry-after: "), "{}", answer.head);
    runtime.block_on(held.release());
    let answer = post();
    assert_eq!(answer.status, 201, "the same key is carried out: {}", answer.text);
    assert!(!answer.head.contains("idempotency-replayed"), "{}", answer.head);
    let answer = post();
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert!(answer.head.contains("idempotency-replayed: true"), "{}", answer.head);
}

/// Waits until this many connections wait for a lock.
async fn waiting(fixture: &Fixture, count: i64) {
    let mut connection = PgConnection::connect(&fixture.database_url).await.unwrap();
    let query = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while sqlx::query_scalar::<_, i64>(query).fetch_one(&mut connection).await.unwrap() < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    connection.close().await.unwrap();
}

/// Only on PostgreSQL, where readers can be blocked.
#[test]
fn slow_reads_of_one_organisation_hold_up_no_other_and_no_login() {
    if chosen() == Kind::Sqlite {
        eprintln!(
            "NOTICE: readers of SQLite wait for nobody; SIDETONE_TEST_DATABASE=postgres runs this test"
        );
        return;
    }
    let fixture = Fixture::new();
    let runtime = Runtime::new().unwrap();
    let held = runtime.block_on(lock(&fixture, "cdrs"));
    let slow: Vec<u16> = std::thread::scope(|scope| {
        let reads: Vec<_> = (0..30)
            .map(|_| {
                scope.spawn(|| {
                    let key = Some(fixture.acme.key.as_str());
                    fixture.send("GET", "/api/v1/cdrs", key, &Value::Null).status
                })
            })
            .collect();
        runtime.block_on(site::within("reads that wait for the table", waiting(&fixture, 2)));
        for _ in 0..5 {
            let key = Some(fixture.bolt.key.as_str());
            let answer = fixture.send("GET", "/api/v1/teams", key, &Value::Null);
            assert_eq!(answer.status, 200, "another organisation: {}", answer.text);
            fixture.log_in(&fixture.acme.user("supervisor"));
        }
        runtime.block_on(held.release());
        reads.into_iter().map(|read| read.join().unwrap()).collect()
    });
    assert!(slow.iter().all(|status| [200, 503].contains(status)), "{slow:?}");
    let again = fixture.send("GET", "/api/v1/cdrs", Some(&fixture.acme.key), &Value::Null);
    assert_eq!(again.status, 200, "{}", again.text);
}
