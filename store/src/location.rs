//! Where the database is, and how it is used: the section `[database]`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// The database of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Where it is.
    pub location: Location,
    /// Connections that read, at most.
    pub readers_max: u32,
    /// Connections that write, at most; SQLite has one.
    pub writers_max: u32,
    /// How long one statement of a reader may take on PostgreSQL.
    pub statement_timeout: Duration,
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A PostgreSQL server.
    Postgres(PostgresUrl),
    /// A SQLite file.
    Sqlite(PathBuf),
}

/// The URL of a PostgreSQL database; displayed without its password and its parameters.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

/// What is wrong with a URL; the URL itself is not repeated, because it may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// No file name.
    #[error("must name a file, such as sqlite://data/sidetone.db")]
    File,
    /// SQLite's name for a database without a file.
    #[error(
        "must name a file, such as sqlite://data/sidetone.db: in memory, every connection has a database of its own"
    )]
    Memory,
    /// Not a PostgreSQL URL.
    #[error("must be a URL such as postgres://user:password@host/database")]
    Postgres,
    /// Neither kind of database.
    #[error("must begin with sqlite:// or postgres://, such as sqlite://data/sidetone.db")]
    Scheme,
}

impl Database {
    /// The database at `location`, with default settings.
    pub fn at(location: Location) -> Self {
        Self {
            location,
            readers_max: READERS_MAX,
            writers_max: WRITERS_MAX,
            statement_timeout: STATEMENT_TIMEOUT,
        }
    }
}

impl From<&Path> for Database {
    fn from(file: &Path) -> Self {
        Self::at(Location::Sqlite(file.to_path_buf()))
    }
}

impl From<&PathBuf> for Database {
    fn from(file: &PathBuf) -> Self {
        file.as_path().into()
    }
}

impl From<&Database> for Database {
    fn from(database: &Database) -> Self {
        database.clone()
    }
}

impl From<Location> for Database {
    fn from(location: Location) -> Self {
        Self::at(location)
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(url: &str) -> Result<Self, LocationError> {
        if let Some(file) = url.strip_prefix("sqlite://") {
            if file == ":memory:" {
                return Err(LocationError::Memory);
            }
            let named = !file.is_empty() && !file.contains('?');
            return if named { Ok(Location::Sqlite(file.into())) } else { Err(LocationError::File) };
        }
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(LocationError::Scheme);
        }
        let url = PostgresUrl(url.to_owned());
        url.options().map_err(|_| LocationError::Postgres)?;
        Ok(Location::Postgres(url))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Postgres(url) => url.fmt(f),
            Location::Sqlite(file) => file.display().fmt(f),
        }
    }
}

impl PostgresUrl {
    /// The options of a connection.
    ///
    /// Without an `sslmode`, a server on another host must present a certificate for its name, because
    /// credentials and call records cross the network.
    pub(super) fn options(&self) -> Result<PgConnectOptions, sqlx::Error> {
        let options = PgConnectOptions::from_str(&self.0)?;
        let near = options.get_socket().is_some()
            || matches!(options.get_host(), "localhost" | "127.0.0.1" | "::1" | "[::1]")
            || options.get_host().starts_with('/');
        let chosen = self.0.contains("sslmode=") || self.0.contains("ssl-mode=");
        Ok(if near || chosen { options } else { options.ssl_mode(PgSslMode::VerifyFull) })
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("postgres", ""));
        // A parameter may contain a password too.
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        match rest.rsplit_once('@') {
            Some((credentials, place)) => {
                let user = credentials.split(':').next().unwrap_or_default();
                write!(f, "{scheme}://{user}@{place}")
            }
            None => write!(f, "{scheme}://{rest}"),
        }
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const READERS_MAX: u32 = 8;
const WRITERS_MAX: u32 = 4;
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        let cases = [
            ("postgres://u:p@ss@db.example:5433/calls?sslmode=require", "postgres://u@db.example:5433/calls"),
            ("postgresql://u@db/calls?password=secret", "postgresql://u@db/calls"),
            ("postgres://db/calls", "postgres://db/calls"),
        ];
        for (url, shown) in cases {
            let url = PostgresUrl(url.to_owned());
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
        }
    }

    #[test]
    fn urls_are_of_two_kinds() {
        let cases = [
            ("sqlite://data/sidetone.db", Ok(Location::Sqlite("data/sidetone.db".into()))),
            ("sqlite://", Err(LocationError::File)),
            ("sqlite://a.db?mode=ro", Err(LocationError::File)),
            ("sqlite://:memory:", Err(LocationError::Memory)),
            ("mysql://a/b", Err(LocationError::Scheme)),
            ("postgres://h:notaport/d", Err(LocationError::Postgres)),
        ];
        for (url, expected) in cases {
            assert_eq!(url.parse::<Location>(), expected, "{url}");
        }
        assert!(matches!("postgres://u:p@h/d".parse(), Ok(Location::Postgres(_))));
    }

    #[test]
    fn a_server_elsewhere_shows_a_certificate_unless_told_otherwise() {
        let mode = |url: &str| PostgresUrl(url.to_owned()).options().map(|options| options.get_ssl_mode());
        let cases = [
            ("postgres://u@db.example/d", PgSslMode::VerifyFull),
            ("postgres://u@db.example/d?sslmode=disable", PgSslMode::Disable),
            ("postgres://u@localhost/d", PgSslMode::Prefer),
            ("postgres://u@127.0.0.1/d", PgSslMode::Prefer),
        ];
        for (url, expected) in cases {
            let mode = mode(url).map(|mode| format!("{mode:?}")).map_err(|error| error.to_string());
            assert_eq!(mode, Ok(format!("{expected:?}")), "{url}");
        }
    }
}
