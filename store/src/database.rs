//! Opens the database: one writer, several readers, migrations first.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sidetone_model::ids::OrganisationId;
use sidetone_model::ports::Tenants;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use crate::bell::Bell;
use crate::connection_shares::{self, Shares};
use crate::database_health::{Heartbeat, Trouble, Vitals};
use crate::error::StoreError;
use crate::location::{Database, Location};
use crate::migrations::{MIGRATIONS, migrate_postgres};
use crate::planner_statistics;
use crate::probe::{self, Schema, SrtpParties};
use crate::sql::{Connections, Pool, sql};
use crate::text_blocks::{TextCache, Unmerged};
use crate::verdict_hours::VerdictHours;
use crate::webhook_place::HandOut;
use crate::write::WriteTransaction;

/// The database of one installation; clones share its connections.
#[derive(Debug, Clone)]
pub struct Store {
    writer: Pool,
    /// Connections that organisations share.
    readers: Pool,
    /// Connections for the engine and for authentication, which organisations cannot use up.
    own_readers: Pool,
    bell: Bell,
    hand_out: HandOut,
    text_cache: TextCache,
    unmerged: Unmerged,
    verdict_hours: VerdictHours,
    /// SQLite's write-ahead log, to which every commit is written first.
    wal: Option<Arc<Path>>,
}

impl Store {
    /// Opens the database, creates the SQLite file if it does not exist, and runs the migrations.
    ///
    /// # Errors
    /// When it cannot be opened, or was written by a newer version.
    pub async fn open(database: impl Into<Database>) -> Result<Self, StoreError> {
        let database = database.into();
        match &database.location {
            Location::Postgres(url) => {
                let options = url
                    .options()
                    .map_err(|source| StoreError::Open { location: database.location.clone(), source })?;
                Self::open_postgres(&database, options, true).await
            }
            Location::Sqlite(path) => Self::open_sqlite(&database, path).await,
        }
    }

    /// Opens the database for changes that are not committed: creates no file and changes no schema. If there
    /// is no database, an empty one in memory takes its place.
    ///
    /// # Errors
    /// When it cannot be opened, or another version wrote it.
    pub async fn open_for_trial(database: &Database) -> Result<Self, StoreError> {
        let location = database.location.clone();
        match (Self::probe(database).await?, &location) {
            (Schema::Missing, _) => Self::open_in_memory(database).await,
            (schema @ (Schema::Newer | Schema::Older), _) => {
                Err(StoreError::Schema { location, newer: schema == Schema::Newer })
            }
            (Schema::Current, Location::Postgres(url)) => {
                let failed = |source| StoreError::Open { location: location.clone(), source };
                Self::open_postgres(database, url.options().map_err(failed)?, false).await
            }
            (Schema::Current, Location::Sqlite(path)) => {
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .create_if_missing(false)
                    .foreign_keys(true)
                    .busy_timeout(WRITER_BUSY_TIMEOUT)
                    .disable_statement_logging();
                Self::on_one_connection(database, options).await
            }
        }
    }

    /// An empty database in memory, with the schema of this version.
    async fn open_in_memory(database: &Database) -> Result<Self, StoreError> {
        let options =
            SqliteConnectOptions::new().in_memory(true).foreign_keys(true).disable_statement_logging();
        let store = Self::on_one_connection(database, options).await?;
        if let Connections::Sqlite(writer) = store.writer.connections() {
            let migrated = MIGRATIONS.run(writer).await;
            migrated.map_err(|source| StoreError::of_migration(&database.location, source))?;
        }
        Ok(store)
    }

    /// A store whose readers and writers are the same single connection.
    async fn on_one_connection(
        database: &Database,
        options: SqliteConnectOptions,
    ) -> Result<Self, StoreError> {
        // A database in memory lasts as long as its connection.
        let pool: SqlitePool = kept_open()
            .max_connections(1)
            .acquire_timeout(WRITER_ACQUIRE_TIMEOUT)
            .connect_with(options)
            .await
            .map_err(|source| StoreError::Open { location: database.location.clone(), source })?;
        let trouble = Arc::new(Trouble::default());
        let part = || (Connections::Sqlite(pool.clone()), Vitals::of_file(Arc::clone(&trouble)));
        Ok(Self::of(database, part(), part(), part()))
    }

    async fn open_sqlite(database: &Database, path: &Path) -> Result<Self, StoreError> {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            // It contains credentials and call records: no other user of the machine may read it.
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .map_err(|source| StoreError::Directory { path: path.to_path_buf(), source })?;
        }
        let failed = |source| StoreError::Open { location: database.location.clone(), source };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Call records are written in groups: one sync for a hundred of them is cheap, and committed
            // records may then be removed from the journal.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(WRITER_BUSY_TIMEOUT)
            .disable_statement_logging();
        let writer: SqlitePool = kept_open()
            .max_connections(1)
            .acquire_timeout(WRITER_ACQUIRE_TIMEOUT)
            .connect_with(
                options
                    .clone()
                    .pragma("cache_size", WRITER_CACHE_KIB)
                    .pragma("temp_store", TEMPORARY)
                    .pragma("wal_autocheckpoint", CHECKPOINT_PAGES),
            )
            .await
            .map_err(failed)?;
        let migrated = MIGRATIONS.run(&writer).await;
        migrated.map_err(|source| StoreError::of_migration(&database.location, source))?;
        planner_statistics::fix(&writer).await.map_err(failed)?;
        let options = options
            .pragma("cache_size", READER_CACHE_KIB)
            .read_only(true)
            .create_if_missing(false)
            .busy_timeout(READER_TIMEOUT);
        let readers = async |connections| {
            let pool = SqlitePoolOptions::new()
                .max_connections(connections)
                .max_lifetime(None)
                .acquire_timeout(READER_TIMEOUT);
            let pool = patiently(|| pool.clone().connect_with(options.clone()));
            pool.await.map(Connections::Sqlite).map_err(failed)
        };
        let trouble = Arc::new(Trouble::default());
        let bounded = |connections| (connections, Vitals::of_file(Arc::clone(&trouble)));
        let store = Self::of(
            database,
            bounded(Connections::Sqlite(writer)),
            bounded(readers(database.readers_max).await?),
            bounded(readers(OWN_READERS_MAX).await?),
        );
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        Ok(Self { wal: Some(Path::new(&wal).into()), ..store })
    }

    async fn open_postgres(
        database: &Database,
        options: PgConnectOptions,
        migrate: bool,
    ) -> Result<Self, StoreError> {
        let location = &database.location;
        let failed = |source| StoreError::Open { location: database.location.clone(), source };
        let options = options.application_name("sidetone").disable_statement_logging();
        let writer = PgPoolOptions::new()
            .max_connections(database.writers_max)
            .acquire_timeout(WRITER_ACQUIRE_TIMEOUT)
            .connect_with(options.clone().options([
                ("lock_timeout", millis(WRITER_BUSY_TIMEOUT)),
                // A node that hangs within a transaction must not lock out the others.
                ("idle_in_transaction_session_timeout", millis(WRITER_IDLE_TIMEOUT)),
            ]))
            .await;
        if let Err(sqlx::Error::PoolTimedOut) = writer {
            // The pool waits for a server that is starting, and does not report why it did so in vain.
            probe::connect_once(&options).await.map_err(failed)?;
        }
        let writer = writer.map_err(failed)?;
        let heartbeat = Heartbeat::start(options.clone());
        if migrate {
            let migrated = heartbeat.unless_away(START_PATIENCE, migrate_postgres(&writer)).await;
            let migrated = migrated.ok_or_else(|| failed(silent()))?;
            migrated.map_err(|source| StoreError::of_migration(location, source))?;
        }
        let options = options.options([
            ("default_transaction_read_only", "on".to_owned()),
            ("statement_timeout", millis(database.statement_timeout)),
            // A generic plan for both large and small organisations would be wrong for either.
            ("plan_cache_mode", "force_custom_plan".to_owned()),
        ]);
        let readers = async |connections| {
            let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(READER_TIMEOUT);
            let pool = patiently(|| pool.clone().connect_with(options.clone()));
            pool.await.map(Connections::Postgres).map_err(failed)
        };
        let trouble = Arc::new(Trouble::default());
        let bounded = |connections, limit| {
            (connections, Vitals::of_server(limit, Some(heartbeat.clone()), Arc::clone(&trouble)))
        };
        let reader_max = database.statement_timeout.saturating_add(NETWORK_MAX);
        Ok(Self::of(
            database,
            bounded(Connections::Postgres(writer), WRITER_ANSWER_MAX),
            bounded(readers(database.readers_max).await?, reader_max),
            bounded(readers(OWN_READERS_MAX).await?, reader_max),
        ))
    }

    fn of(
        database: &Database,
        (writer, writer_vitals): (Connections, Vitals),
        (readers, reader_vitals): (Connections, Vitals),
        (own_readers, own_vitals): (Connections, Vitals),
    ) -> Self {
        let bell = Bell::default();
        // On PostgreSQL some connections are reserved for the engine's own writes; SQLite has only one that writes.
        let writers = match writer {
            Connections::Postgres(_) => database.writers_max.saturating_sub(OWN_WRITERS).max(1),
            Connections::Sqlite(_) => 1,
        };
        Self {
            writer: Pool::new(writer, writer_vitals, bell.clone()).shared(Shares::new(writers)),
            readers: Pool::new(readers, reader_vitals, bell.clone())
                .shared(Shares::new(database.readers_max)),
            own_readers: Pool::new(own_readers, own_vitals, bell.clone()),
            bell,
            hand_out: HandOut::default(),
            text_cache: TextCache::default(),
            unmerged: Unmerged::default(),
            verdict_hours: VerdictHours::default(),
            wal: None,
        }
    }

    /// SQLite's write-ahead log, to which every commit is written first.
    pub(crate) fn wal(&self) -> Option<&Path> {
        self.wal.as_deref()
    }

    /// Inspects a database; creates and changes nothing, not even a file beside it.
    ///
    /// # Errors
    /// When it cannot be reached, or is not a database.
    pub async fn probe(database: &Database) -> Result<Schema, StoreError> {
        probe::probe(database).await
    }

    /// Returns the parties with SRTP in a database with this version's schema; the database is not changed.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn srtp_parties(database: &Database) -> Result<SrtpParties, StoreError> {
        probe::srtp_parties(database).await
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sql("SELECT 1").execute(self.readers()).await?;
        Ok(())
    }

    /// Begins a transaction on the directory; nothing is visible before [`WriteTransaction::commit`]. There is one at
    /// a time in either database: the data that it reads does not change before it has written.
    ///
    /// # Errors
    /// When another writer holds the database for too long.
    pub async fn write(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.writer.begin_write().await?;
        if self.writer.is_postgres() {
            sql("SELECT revision FROM directory_revision WHERE id = 1 FOR UPDATE")
                .fetch_one(&mut *transaction)
                .await?;
        }
        Ok(WriteTransaction::new(transaction))
    }

    /// Closes the connections that organisations share and those that write; requests for them then fail as
    /// unavailable. The connections for authentication stay.
    pub async fn close_shared(&self) {
        tokio::join!(self.readers.close(), self.writer.close());
    }

    /// Closes every connection; SQLite's write-ahead log is merged into the file.
    pub async fn close(&self) {
        tokio::join!(self.readers.close(), self.own_readers.close());
        self.writer.close().await;
    }

    /// The verdict counts of complete hours.
    pub(super) fn verdict_hours(&self) -> &VerdictHours {
        &self.verdict_hours
    }

    /// The connections that write.
    pub(super) fn writer(&self) -> &Pool {
        &self.writer
    }

    /// The bell, rung by every commit of events through this store.
    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// How far events were queued for webhooks.
    pub(super) fn hand_out(&self) -> &HandOut {
        &self.hand_out
    }

    /// The texts of the most recently searched records.
    pub(super) fn text_cache(&self) -> &TextCache {
        &self.text_cache
    }

    /// How many blocks of texts were added and not merged.
    pub(super) fn unmerged(&self) -> &Unmerged {
        &self.unmerged
    }

    /// The read-only connections; organisations share these.
    pub(super) fn readers(&self) -> &Pool {
        if connection_shares::tenant().is_some() { &self.readers } else { &self.own_readers }
    }

    /// The number of database failures by kind: `passing`, `refused` or `unknown`.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.readers.vitals().trouble().failures()
    }
}

impl Tenants for Store {
    fn acting_for(&self, organisation: OrganisationId, work: &mut dyn FnMut()) {
        connection_shares::acting_for(organisation, work);
    }
}

/// Options of SQLite connections that are never replaced. A file has no server whose connections age. Each new
/// connection fills its own page cache in its own arena, which the allocator does not release afterwards.
fn kept_open() -> SqlitePoolOptions {
    SqlitePoolOptions::new().idle_timeout(None).max_lifetime(None)
}

/// Opens readers. On a busy machine their first connection may take longer than a reader waits later, which must not
/// prevent the start.
async fn patiently<P, F: Future<Output = Result<P, sqlx::Error>>>(open: impl Fn() -> F) -> F::Output {
    for _ in 1..READER_TRIES {
        match open().await {
            Err(sqlx::Error::PoolTimedOut) => {}
            opened => return opened,
        }
    }
    open().await
}

fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(
        io::ErrorKind::TimedOut,
        "the server takes connections and does not answer; check that it runs",
    ))
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}

/// A record is in about twenty indexes. Their current pages stay in memory and are written back for many transactions
/// together. With a million records, groups of 100 and of 500 cost the same processor time and the same bytes written
/// with 128 MiB. A negative size is in KiB.
const WRITER_CACHE_KIB: &str = "-65536";
/// A statement with many rows keeps the pages that it changes until it ends, so that it can be undone alone. In a
/// file, this would double the writes of the write-ahead log and need a new file for each transaction.
const TEMPORARY: &str = "MEMORY";
const READER_CACHE_KIB: &str = "-16384";
/// Pages of the write-ahead log before it is merged into the file: 64 MiB.
const CHECKPOINT_PAGES: &str = "16384";
/// A reader that gets no connection in this time fails: lists must not hang.
const READER_TIMEOUT: Duration = Duration::from_millis(1500);
/// Tries to open the first connection of readers at the start, of [`READER_TIMEOUT`] each: 15 s together.
const READER_TRIES: u32 = 10;
/// Read connections for the engine itself and for authentication.
const OWN_READERS_MAX: u32 = 4;
/// PostgreSQL connections that organisations' requests cannot write on.
const OWN_WRITERS: u32 = 2;
/// How long a server may be unresponsive while its schema is migrated.
const START_PATIENCE: Duration = Duration::from_secs(15);
/// How much longer an answer may take than the statement, whose time the server limits itself.
const NETWORK_MAX: Duration = Duration::from_secs(1);
const WRITER_ANSWER_MAX: Duration = Duration::from_secs(30);
const WRITER_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
const WRITER_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const WRITER_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
mod tests {
    use super::*;

    /// T13: a writing connection that was reopened after 30 minutes left 72 MiB of memory allocated.
    #[tokio::test]
    async fn connections_to_a_file_are_not_replaced_by_age() {
        let dir = std::env::temp_dir().join(format!("sidetone-connections-{}", uuid::Uuid::new_v4()));

        let store = Store::open(dir.join("sidetone.db").as_path()).await.unwrap();
        for pool in [store.writer(), &store.readers, &store.own_readers] {
            assert_eq!(pool.max_lifetime(), None);
        }
        store.close().await;
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
