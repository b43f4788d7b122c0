//! The connections to either database, and one of them in use.

use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{Postgres, Sqlite};

use crate::database_health::Vitals;
use crate::lent_connection::LentConnection;

/// A pool of connections to one of the two databases.
#[derive(Debug, Clone)]
pub(super) enum Connections {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

/// A connection in use, within a transaction or not.
#[derive(Debug)]
pub(super) enum Connection {
    Postgres(LentConnection<Postgres>, Vitals),
    Sqlite(LentConnection<Sqlite>, Vitals),
}

impl Connection {
    /// The time limits for responses.
    pub(super) fn vitals(&self) -> &Vitals {
        match self {
            Connection::Postgres(_, vitals) | Connection::Sqlite(_, vitals) => vitals,
        }
    }
}
