//! The same queries as plain SQL: what the database needs without the store.

use sqlx::postgres::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Executor, Row};

use crate::cases::Case;
use crate::database::Kind;

pub enum Bare {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

impl Bare {
    pub async fn connect(kind: Kind, url: &str) -> Self {
        match kind {
            Kind::Postgres => Bare::Postgres(PgPool::connect(url).await.unwrap()),
            Kind::Sqlite => {
                let options: SqliteConnectOptions = url.parse().unwrap();
                Bare::Sqlite(SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap())
            }
        }
    }

    /// Rows of the page.
    pub async fn page(&self, case: &Case) -> usize {
        let text = AssertSqlSafe(format!("SELECT * FROM cdrs WHERE {} {}", case.condition, case.tail));
        match self {
            Bare::Postgres(pool) => pool.fetch_all(sqlx::query(text)).await.unwrap().len(),
            Bare::Sqlite(pool) => pool.fetch_all(sqlx::query(text)).await.unwrap().len(),
        }
    }

    /// The number of matching records.
    pub async fn count(&self, case: &Case) -> u64 {
        let text = AssertSqlSafe(format!("SELECT COUNT(*) FROM cdrs WHERE {}", case.condition));
        let count: i64 = match self {
            Bare::Postgres(pool) => pool.fetch_one(sqlx::query(text)).await.unwrap().get(0),
            Bare::Sqlite(pool) => pool.fetch_one(sqlx::query(text)).await.unwrap().get(0),
        };
        count.unsigned_abs()
    }

    /// Completes after a bulk fill what happens during a gradual one: statistics, and the WAL copied into the file.
    pub async fn settle(&self) {
        match self {
            Bare::Postgres(pool) => drop(pool.execute("VACUUM ANALYZE").await.unwrap()),
            Bare::Sqlite(pool) => drop(pool.execute("PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap()),
        }
    }

    /// The bytes of every table and index of the call log.
    pub async fn sizes(&self) -> Vec<(String, i64)> {
        match self {
            Bare::Postgres(pool) => {
                let rows = pool
                    .fetch_all(
                        "SELECT relname::text, pg_relation_size(oid) FROM pg_class
                         WHERE relkind IN ('r', 'i') AND relname LIKE '%cdr%' ORDER BY 1",
                    )
                    .await
                    .unwrap();
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
            // The library is built without `dbstat`, so the file is reported as one total.
            Bare::Sqlite(pool) => {
                let row = pool
                    .fetch_one(
                        "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()",
                    )
                    .await
                    .unwrap();
                vec![("the whole file".to_owned(), row.get(0))]
            }
        }
    }

    pub async fn close(&self) {
        match self {
            Bare::Postgres(pool) => pool.close().await,
            Bare::Sqlite(pool) => pool.close().await,
        }
    }
}
