//! Opening the database: one writer, several readers, migrations first.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sidetone_model::problem::Problem;
use sqlx::ConnectOptions;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use crate::store::write::WriteTransaction;

/// The database of one installation; clones share its connections.
#[derive(Debug, Clone)]
pub struct Store {
    writer: SqlitePool,
    readers: SqlitePool,
}

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A stored value is not of its column's kind.
    #[error("read the database: column {column} holds what this version does not understand")]
    Corrupt {
        /// The column.
        column: &'static str,
    },
    /// The file's directory cannot be made.
    #[error("open the database {}: {source}", path.display())]
    Directory {
        /// The database file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The schema cannot be brought to this version.
    #[error("bring the database {} to this version: {source}", path.display())]
    Migrate {
        /// The database file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: Box<sqlx::migrate::MigrateError>,
    },
    /// The file cannot be opened.
    #[error("open the database {}: {source}", path.display())]
    Open {
        /// The database file.
        path: PathBuf,
        /// What the database said.
        #[source]
        source: sqlx::Error,
    },
    /// Something else already has a value that only one may have.
    #[error("write the database: another row already has this {column}")]
    Taken {
        /// The column.
        column: &'static str,
    },
    /// A statement failed.
    #[error("use the database: {0}")]
    Sql(#[from] sqlx::Error),
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Problem::Internal(error.to_string())
    }
}

impl Store {
    /// Opens the SQLite file at `path`, creates it when it is not there, and runs the migrations.
    ///
    /// # Errors
    /// When the file cannot be opened, or was written by a newer version.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            // Credentials and call records are in it: nobody else on the machine reads them.
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .map_err(|source| StoreError::Directory { path: path.to_path_buf(), source })?;
        }
        let failed = |source| StoreError::Open { path: path.to_path_buf(), source };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Call records come in groups: one sync for a hundred of them is cheap, and what is
            // committed may then leave the journal.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(WRITER_BUSY_TIMEOUT)
            .disable_statement_logging();
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(WRITER_ACQUIRE_TIMEOUT)
            .connect_with(options.clone())
            .await
            .map_err(failed)?;
        MIGRATIONS
            .run(&writer)
            .await
            .map_err(|source| StoreError::Migrate { path: path.to_path_buf(), source: Box::new(source) })?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            .acquire_timeout(READER_TIMEOUT)
            .connect_with(options.read_only(true).create_if_missing(false).busy_timeout(READER_TIMEOUT))
            .await
            .map_err(failed)?;
        Ok(Self { writer, readers })
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(&self.readers).await?;
        Ok(())
    }

    /// Begins to write the directory; nothing is visible before [`WriteTransaction::commit`].
    ///
    /// # Errors
    /// When another writer holds the database for too long.
    pub async fn write(&self) -> Result<WriteTransaction, StoreError> {
        Ok(WriteTransaction::new(self.writer.begin_with("BEGIN IMMEDIATE").await?))
    }

    /// Closes every connection; the write-ahead log is folded into the file.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    pub(super) fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    pub(super) fn readers(&self) -> &SqlitePool {
        &self.readers
    }
}

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");
const READERS_MAX: u32 = 4;
/// A reader that gets no answer in this time fails: lists must not hang.
const READER_TIMEOUT: Duration = Duration::from_millis(1500);
const WRITER_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
const WRITER_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
