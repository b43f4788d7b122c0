//! Inspects a database without changing it: whether it can be reached, and which version wrote it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{ConnectOptions, Connection as _};

use crate::bell::Bell;
use crate::columns::number;
use crate::database_health::Vitals;
use crate::error::StoreError;
use crate::location::{Database, Location};
use crate::migrations::MIGRATIONS;
use crate::sql::{Connections, Pool, Row, sql};

/// The state of a database for this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// It has this version's schema.
    Current,
    /// It is empty or does not exist: the first start creates the schema.
    Missing,
    /// A newer version wrote it: this one cannot use it.
    Newer,
    /// An older version wrote it: the next start migrates it to this one.
    Older,
}

/// The parties whose media is encrypted by SRTP with keys in SDP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SrtpParties {
    /// The number of such extensions.
    pub extensions: u64,
    /// The names and addresses of such trunks, by name.
    pub trunks: Vec<(String, Option<String>)>,
}

/// Inspects a database; creates and changes nothing, not even a file beside it.
///
/// # Errors
/// When it cannot be reached, is not a database, or does not let its user create tables.
pub(super) async fn probe(database: &Database) -> Result<Schema, StoreError> {
    let Some(pool) = connect(database).await? else { return Ok(Schema::Missing) };
    let found = async { Ok((schema(&pool).await?, forbidden_schema(&pool).await?)) }.await;
    pool.close().await;
    let location = database.location.clone();
    match found {
        Ok((Schema::Newer, _)) => Ok(Schema::Newer),
        Ok((_, Some((schema, user)))) => Err(StoreError::Privilege { location, schema, user }),
        Ok((schema, None)) => Ok(schema),
        Err(source) => Err(StoreError::Open { location, source }),
    }
}

/// Returns the schema in which the user may not create tables, and the user. Every start needs the privilege: the
/// server checks it even for what exists.
async fn forbidden_schema(pool: &Pool) -> Result<Option<(String, String)>, sqlx::Error> {
    if !pool.is_postgres() {
        return Ok(None);
    }
    let row = sql(
        "SELECT COALESCE(CAST(current_schema() AS TEXT), '') AS schema, CAST(CURRENT_USER AS TEXT) AS person,
                          CASE WHEN has_schema_privilege(current_schema(), 'CREATE') THEN CAST(1 AS BIGINT)
                               ELSE CAST(0 AS BIGINT) END AS granted",
    )
    .fetch_one(pool)
    .await?;
    let is_granted = row.try_get::<i64>("granted")? == 1;
    Ok(if is_granted { None } else { Some((row.try_get("schema")?, row.try_get("person")?)) })
}

/// Returns the parties with SRTP in a database with this version's schema; the database is not changed.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn srtp_parties(database: &Database) -> Result<SrtpParties, StoreError> {
    let Some(pool) = connect(database).await? else { return Ok(SrtpParties::default()) };
    let parties = read_srtp_parties(&pool).await;
    pool.close().await;
    parties
}

async fn read_srtp_parties(pool: &Pool) -> Result<SrtpParties, StoreError> {
    let row = sql("SELECT COUNT(*) AS total FROM extensions WHERE srtp <> 'off'").fetch_one(pool).await?;
    let trunks =
        sql("SELECT name, address FROM trunks WHERE srtp <> 'off' ORDER BY name").fetch_all(pool).await?;
    let trunk = |row: &Row| Ok((row.try_get("name")?, row.try_get("address")?));
    Ok(SrtpParties {
        extensions: number(&row, "total")?,
        trunks: trunks.iter().map(trunk).collect::<Result<_, StoreError>>()?,
    })
}

/// Opens a database for reading; `None` if there is none yet.
async fn connect(database: &Database) -> Result<Option<Pool>, StoreError> {
    let failed = |source| StoreError::Open { location: database.location.clone(), source };
    let connections = match &database.location {
        Location::Sqlite(path) if !path.exists() => return Ok(None),
        Location::Sqlite(path) => {
            // Opening a file that no process has open would leave log files beside it, so it is opened as immutable.
            let is_at_rest = !log_of(path).exists();
            let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(is_at_rest);
            let pool: SqlitePool = SqlitePoolOptions::new()
                .max_connections(1)
                .acquire_timeout(PROBE_TIME)
                .connect_with(options)
                .await
                .map_err(failed)?;
            Connections::Sqlite(pool)
        }
        Location::Postgres(url) => {
            let options = url.options().map_err(failed)?;
            connect_once(&options).await.map_err(failed)?;
            let pool: PgPool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(PROBE_TIME)
                .connect_with(options)
                .await
                .map_err(failed)?;
            Connections::Postgres(pool)
        }
    };
    let vitals = Vitals::of_server(PROBE_TIME, None, Arc::default());
    Ok(Some(Pool::new(connections, vitals, Bell::default())))
}

/// Connects once: a pool would retry and then report only a timeout.
pub(super) async fn connect_once(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let connected = async { options.connect().await?.close().await };
    let connected = tokio::time::timeout(PROBE_TIME, connected).await;
    connected.unwrap_or_else(|_| Err(sqlx::Error::PoolTimedOut))
}

/// The write-ahead log of a SQLite file, which exists while the file is open.
fn log_of(file: &Path) -> PathBuf {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

async fn schema(pool: &Pool) -> Result<Schema, sqlx::Error> {
    // Checks first that it is a database at all.
    sql("SELECT 1 AS one").fetch_one(pool).await?;
    let migrations = if pool.is_postgres() {
        sql("SELECT CAST(COUNT(*) AS BIGINT) AS tables FROM information_schema.tables
             WHERE table_name = '_sqlx_migrations'")
    } else {
        sql("SELECT COUNT(*) AS tables FROM sqlite_master WHERE name = '_sqlx_migrations'")
    };
    let migrations = migrations.fetch_one(pool).await?;
    if migrations.try_get::<i64>("tables")? == 0 {
        return Ok(Schema::Missing);
    }
    let rows = sql("SELECT version FROM _sqlx_migrations ORDER BY version").fetch_all(pool).await?;
    let stored = rows.iter().map(|row| row.try_get("version")).collect::<Result<Vec<i64>, _>>()?;
    let own: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.version).collect();
    Ok(if stored.iter().any(|version| !own.contains(version)) {
        Schema::Newer
    } else if own.iter().any(|version| !stored.contains(version)) {
        Schema::Older
    } else {
        Schema::Current
    })
}

/// How long a server may take to accept a connection.
const PROBE_TIME: Duration = Duration::from_secs(5);
