//! Why a database operation failed, and which problem a client gets.

use std::path::PathBuf;

use sidetone_model::problem::Problem;

use crate::failure::Failure;
use crate::location::Location;

/// Why a database operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A stored value does not fit its column.
    #[error("read the database: column {column} holds what this version does not understand")]
    Corrupt {
        /// The column.
        column: &'static str,
    },
    /// The file's directory cannot be created.
    #[error("open the database {}: {source}", path.display())]
    Directory {
        /// The database file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The schema cannot be migrated to this version.
    #[error("bring the database {location} to this version: {source}")]
    Migrate {
        /// The database.
        location: Location,
        /// The error.
        #[source]
        source: Box<sqlx::migrate::MigrateError>,
    },
    /// The database cannot be opened.
    #[error("open the database {location}: {}", words(source))]
    Open {
        /// The database.
        location: Location,
        /// The database's error.
        #[source]
        source: sqlx::Error,
    },
    /// The user of the database may not create tables in it.
    #[error(
        "create tables in the database {location}: {user} may not create in the schema \"{schema}\"; let its owner \
         run GRANT CREATE ON SCHEMA \"{schema}\" TO \"{user}\""
    )]
    Privilege {
        /// The database.
        location: Location,
        /// The current schema, empty if there is none.
        schema: String,
        /// The user.
        user: String,
    },
    /// The database has another version, and must not be changed.
    #[error(
        "use the database {location}: {} version wrote it; {}",
        if *newer { "a newer" } else { "an older" },
        if *newer { "use that version, or another database" } else { "start the engine, which brings it to this version" }
    )]
    Schema {
        /// The database.
        location: Location,
        /// Whether it is newer than this program.
        newer: bool,
    },
    /// Another row already has a value that must be unique.
    #[error("write the database: another row already has this {column}")]
    Taken {
        /// The column.
        column: &'static str,
    },
    /// A statement failed.
    #[error("use the database: {0}")]
    Sql(#[from] sqlx::Error),
}

/// The message of the server or the file, without the library's text around it, and a remedy if one is known.
fn words(error: &sqlx::Error) -> String {
    let refusal = match error {
        sqlx::Error::Database(refusal) => refusal,
        sqlx::Error::Io(failed) if failed.kind() == std::io::ErrorKind::ConnectionRefused => {
            return format!("{failed}; start the server, or name the address at which it listens");
        }
        sqlx::Error::PoolTimedOut => {
            return "the database does not answer in time; check that it runs and that the way to it is open"
                .to_owned();
        }
        other => return other.to_string(),
    };
    match refusal.code().as_deref() {
        // PostgreSQL's invalid_catalog_name.
        Some("3D000") => format!("{}; create it first, such as with createdb", refusal.message()),
        _ => refusal.message().to_owned(),
    }
}

impl StoreError {
    /// Whether the same work can succeed later: the database was busy or away.
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreError::Sql(failed) if Failure::of(failed) == Failure::Passing)
    }

    /// The error of a failed migration.
    pub(super) fn of_migration(location: &Location, source: sqlx::migrate::MigrateError) -> Self {
        let location = location.clone();
        match source {
            // Only a newer version has migrations that this one does not know.
            sqlx::migrate::MigrateError::VersionMissing(_) => StoreError::Schema { location, newer: true },
            source => StoreError::Migrate { location, source: Box::new(source) },
        }
    }
}

impl From<StoreError> for Problem {
    /// Normally a check before the statement gives a better message; without one this is still a conflict.
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Sql(sqlx::Error::Database(refusal)) if refusal.is_foreign_key_violation() => {
                Problem::Conflict("something still refers to it, or what it refers to is gone".to_owned())
            }
            StoreError::Sql(sqlx::Error::Database(refusal)) if refusal.is_unique_violation() => {
                Problem::Conflict("another one already has this".to_owned())
            }
            StoreError::Sql(failed) => match Failure::of(failed) {
                Failure::Passing => {
                    Problem::Unavailable { retry_after_s: RETRY_AFTER_S, reason: error.to_string() }
                }
                Failure::Refused => Problem::Refused(error.to_string()),
                Failure::Unknown => Problem::Internal(error.to_string()),
            },
            _ => Problem::Internal(error.to_string()),
        }
    }
}

/// Seconds after which a client may retry a request that the database could not execute.
const RETRY_AFTER_S: u64 = 2;
