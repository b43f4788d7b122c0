//! Classifies database failures: whether the same work can succeed later, and whether the row is the cause.

use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The database cannot execute the work now: no connection, a lock, a timeout, an I/O error. The same work can
    /// succeed later.
    Passing,
    /// The database refuses these values permanently: a constraint, an encoding, a length.
    Refused,
    /// Neither is certain: a statement that does not fit the schema, a value that cannot be decoded.
    Unknown,
}

impl Failure {
    /// Every class, each at the index of its discriminant.
    pub(super) const ALL: [Failure; 3] = [Failure::Passing, Failure::Refused, Failure::Unknown];

    /// The value of the metric's label.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Failure::Passing => "passing",
            Failure::Refused => "refused",
            Failure::Unknown => "unknown",
        }
    }

    /// Returns the class of `error`.
    pub(super) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::BeginFailed
            | sqlx::Error::Io(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::Protocol(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::WorkerCrashed => Failure::Passing,
            sqlx::Error::Encode(_) => Failure::Refused,
            sqlx::Error::Database(error) => {
                let code = error.code().unwrap_or_default();
                if error.try_downcast_ref::<PgDatabaseError>().is_some() {
                    of_sqlstate(&code)
                } else if error.try_downcast_ref::<SqliteError>().is_some() {
                    code.parse().map_or(Failure::Unknown, of_sqlite_code)
                } else {
                    Failure::Unknown
                }
            }
            _ => Failure::Unknown,
        }
    }
}

/// Returns the class of a PostgreSQL error code (Appendix A of its documentation).
fn of_sqlstate(code: &str) -> Failure {
    match code {
        // A statement on a server that became a standby, a transaction that took too long, a lock, a deadlock.
        "25006" | "25P03" | "25P04" | "40001" | "40P01" | "55006" | "55P03" => Failure::Passing,
        _ => match code.get(..2) {
            // Connections, resources, intervention by the operator, system errors.
            Some("08" | "53" | "57" | "58") => Failure::Passing,
            // Values that do not fit the column, constraints, limits of the server, triggers that raise.
            Some("22" | "23" | "44" | "54" | "P0") => Failure::Refused,
            _ => Failure::Unknown,
        },
    }
}

/// Returns the class of a SQLite result code, extended or not.
fn of_sqlite_code(code: u32) -> Failure {
    match code & 0xFF {
        // PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, SCHEMA
        3 | 5 | 6 | 7 | 8 | 9 | 10 | 13 | 14 | 15 | 17 => Failure::Passing,
        // TOOBIG, CONSTRAINT, MISMATCH
        18..=20 => Failure::Refused,
        _ => Failure::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_postgres_have_their_meaning() {
        let cases = [
            ("08006", Failure::Passing),
            ("22001", Failure::Refused),
            ("22021", Failure::Refused),
            ("23505", Failure::Refused),
            ("23514", Failure::Refused),
            ("25006", Failure::Passing),
            ("28P01", Failure::Unknown),
            ("40001", Failure::Passing),
            ("40P01", Failure::Passing),
            ("42P01", Failure::Unknown),
            ("53100", Failure::Passing),
            ("53300", Failure::Passing),
            ("54000", Failure::Refused),
            ("55P03", Failure::Passing),
            ("57014", Failure::Passing),
            ("57P01", Failure::Passing),
            ("57P03", Failure::Passing),
            ("58030", Failure::Passing),
            ("P0001", Failure::Refused),
            ("XX001", Failure::Unknown),
            ("", Failure::Unknown),
        ];
        for (code, expected) in cases {
            assert_eq!(of_sqlstate(code), expected, "{code}");
        }
    }

    #[test]
    fn codes_of_sqlite_have_their_meaning() {
        let cases = [
            ("ERROR", 1, Failure::Unknown),
            ("BUSY", 5, Failure::Passing),
            ("BUSY_SNAPSHOT", 517, Failure::Passing),
            ("LOCKED", 6, Failure::Passing),
            ("IOERR_WRITE", 778, Failure::Passing),
            ("CORRUPT", 11, Failure::Unknown),
            ("FULL", 13, Failure::Passing),
            ("CANTOPEN", 14, Failure::Passing),
            ("TOOBIG", 18, Failure::Refused),
            ("CONSTRAINT_UNIQUE", 2067, Failure::Refused),
            ("CONSTRAINT_TRIGGER", 1811, Failure::Refused),
            ("NOTADB", 26, Failure::Unknown),
        ];
        for (name, code, expected) in cases {
            assert_eq!(of_sqlite_code(code), expected, "{name}");
        }
    }

    #[test]
    fn failures_of_connections_pass() {
        let errors =
            [sqlx::Error::PoolTimedOut, sqlx::Error::PoolClosed, std::io::Error::other("broken").into()];
        for error in errors {
            assert_eq!(Failure::of(&error), Failure::Passing, "{error}");
        }
        assert_eq!(Failure::of(&sqlx::Error::RowNotFound), Failure::Unknown);
    }
}
