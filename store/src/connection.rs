//! The connections to either database, and one of them in use.

use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{Postgres, Sqlite};

use crate::database_health::Vitals;
use crate::lent_connection::LentConnection;

/// The connections of one kind.
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
    /// The time limits of its answers.
    pub(super) fn vitals(&self) -> &Vitals {
        match self {
            Connection::Postgres(_, vitals) | Connection::Sqlite(_, vitals) => vitals,
        }
    }
}
