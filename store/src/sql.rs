//! One statement text for both databases.
//!
//! There are two concrete pools instead of a driver limited to the features that both have in common: the kind of
//! database is fixed when it is opened, and a statement means the same in both. Values are 64-bit integers, texts and
//! packed bytes, like the columns: ids, enum values and decimals are texts; timestamps, counts, money and booleans
//! are integers.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Postgres, Row as _, Sqlite};

pub(super) use crate::connection::{Connection, Connections};
pub(super) use crate::pool::Pool;
use crate::pool::Target;
use crate::transaction::Held;
pub(super) use crate::transaction::Transaction;

/// A statement with a literal text; values from clients are bound to its parameters.
pub(super) fn sql(text: &'static str) -> Query {
    Query { text: Cow::Borrowed(text), values: Vec::new() }
}

/// A statement and the values of its parameters, in the order `$1`, `$2`, …
#[derive(Debug)]
pub(super) struct Query {
    text: Cow<'static, str>,
    values: Vec<Value>,
}

/// A bound value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Bytes(Option<Vec<u8>>),
    Integer(Option<i64>),
    Text(Option<String>),
}

/// The result of a statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    rows_affected: u64,
}

/// A row of a result.
#[derive(Debug)]
pub(super) enum Row {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

impl Query {
    /// A statement assembled from literals, with its values; its parameters are `?`, in their order.
    pub(super) fn of_literals(text: String, values: Vec<Value>) -> Self {
        Self { text: Cow::Owned(text), values }
    }

    /// Binds the next parameter.
    #[must_use]
    pub(super) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Runs a statement that returns no rows.
    pub(super) fn execute<'c>(
        self,
        on: impl Into<Target<'c>>,
    ) -> impl Future<Output = Result<Done, sqlx::Error>> + Send + 'c {
        let answer = self.run(on.into(), Wanted::Count);
        async move {
            let rows_affected = match answer.await? {
                Answer::Count(rows) => rows,
                Answer::Rows(rows) => rows.len() as u64,
            };
            Ok(Done { rows_affected })
        }
    }

    /// Returns every row.
    pub(super) fn fetch_all<'c>(
        self,
        on: impl Into<Target<'c>>,
    ) -> impl Future<Output = Result<Vec<Row>, sqlx::Error>> + Send + 'c {
        let answer = self.run(on.into(), Wanted::Rows);
        async move { Ok(answer.await?.rows()) }
    }

    /// Returns the first row, if there is one.
    pub(super) fn fetch_optional<'c>(
        self,
        on: impl Into<Target<'c>>,
    ) -> impl Future<Output = Result<Option<Row>, sqlx::Error>> + Send + 'c {
        let answer = self.run(on.into(), Wanted::First);
        async move { Ok(answer.await?.rows().pop()) }
    }

    /// Returns the first row of a result that always has one.
    pub(super) fn fetch_one<'c>(
        self,
        on: impl Into<Target<'c>>,
    ) -> impl Future<Output = Result<Row, sqlx::Error>> + Send + 'c {
        let row = self.fetch_optional(on);
        async move { row.await?.ok_or(sqlx::Error::RowNotFound) }
    }

    /// Runs the statement in the transaction of the unit of work, in the given transaction, or on a
    /// connection of the pool.
    ///
    /// Boxed: otherwise the future of a function with many statements would be as large as all of them
    /// together.
    fn run(self, target: Target<'_>, wanted: Wanted) -> BoxedAnswer<'_> {
        Box::pin(self.run_unboxed(target, wanted))
    }

    async fn run_unboxed(self, target: Target<'_>, wanted: Wanted) -> Result<Answer, sqlx::Error> {
        let mut held = target.held();
        match held.as_mut().and_then(Held::connection).map_or(target, Target::Connection) {
            Target::Connection(connection) => {
                let vitals = connection.vitals().clone();
                vitals.answered(self.on(connection, wanted)).await
            }
            Target::Pool(pool) => {
                let answer = async {
                    let mut connection = pool.lend().await?;
                    self.on(&mut connection, wanted).await
                };
                pool.vitals().answered(answer).await
            }
        }
    }

    async fn on(self, connection: &mut Connection, wanted: Wanted) -> Result<Answer, sqlx::Error> {
        match connection {
            Connection::Postgres(lent, _) => {
                let (query, connection) = (self.postgres(), &mut **lent);
                Ok(match wanted {
                    Wanted::Count => Answer::Count(query.execute(connection).await?.rows_affected()),
                    Wanted::First => {
                        let row = query.fetch_optional(connection).await?;
                        Answer::Rows(row.into_iter().map(Row::Postgres).collect())
                    }
                    Wanted::Rows => {
                        let rows = query.fetch_all(connection).await?;
                        Answer::Rows(rows.into_iter().map(Row::Postgres).collect())
                    }
                })
            }
            Connection::Sqlite(lent, _) => {
                let (query, connection) = (self.sqlite(), &mut **lent);
                Ok(match wanted {
                    Wanted::Count => Answer::Count(query.execute(connection).await?.rows_affected()),
                    Wanted::First => {
                        let row = query.fetch_optional(connection).await?;
                        Answer::Rows(row.into_iter().map(Row::Sqlite).collect())
                    }
                    Wanted::Rows => {
                        let rows = query.fetch_all(connection).await?;
                        Answer::Rows(rows.into_iter().map(Row::Sqlite).collect())
                    }
                })
            }
        }
    }

    fn sqlite(self) -> sqlx::query::Query<'static, Sqlite, SqliteArguments> {
        let query = match self.text {
            Cow::Borrowed(text) => sqlx::query(text),
            // Safe: `Statement` builds these only from `&'static str`s and parameter numbers.
            Cow::Owned(text) => sqlx::query(AssertSqlSafe(text)),
        };
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Bytes(bytes) => query.bind(bytes),
            Value::Integer(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
        })
    }

    fn postgres(self) -> sqlx::query::Query<'static, Postgres, PgArguments> {
        let query = match self.text {
            Cow::Borrowed(text) => sqlx::query(text),
            // Safe: `Statement` builds these only from `&'static str`s and parameter numbers.
            Cow::Owned(text) => sqlx::query(AssertSqlSafe(numbered(&text))),
        };
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Bytes(bytes) => query.bind(bytes),
            Value::Integer(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
        })
    }
}

/// The text with `$1`, `$2`, … instead of `?`.
fn numbered(text: &str) -> String {
    let mut numbered = String::with_capacity(text.len() * 2);
    for (index, part) in text.split('?').enumerate() {
        if index > 0 {
            // Writing to a text cannot fail.
            let _ = write!(numbered, "${index}");
        }
        numbered.push_str(part);
    }
    numbered
}

/// Which part of a result is read.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// The number of rows written.
    Count,
    /// The first row.
    First,
    /// Every row.
    Rows,
}

type BoxedAnswer<'c> = Pin<Box<dyn Future<Output = Result<Answer, sqlx::Error>> + Send + 'c>>;

/// The result from the database.
enum Answer {
    Count(u64),
    Rows(Vec<Row>),
}

impl Answer {
    fn rows(self) -> Vec<Row> {
        match self {
            Answer::Count(_) => Vec::new(),
            Answer::Rows(rows) => rows,
        }
    }
}

impl Done {
    /// The number of rows inserted, changed or deleted.
    pub(super) fn rows_affected(self) -> u64 {
        self.rows_affected
    }
}

impl Row {
    /// The value of a column.
    pub(super) fn try_get<'r, T: Column<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error> {
        match self {
            Row::Postgres(row) => T::of_postgres(row, column),
            Row::Sqlite(row) => T::of_sqlite(row, column),
        }
    }
}

/// A type that a column can be read as.
pub(super) trait Column<'r>: Sized {
    fn of_postgres(row: &'r PgRow, column: &str) -> Result<Self, sqlx::Error>;
    fn of_sqlite(row: &'r SqliteRow, column: &str) -> Result<Self, sqlx::Error>;
}

macro_rules! columns {
    ($($kind:ty),*) => {
        $(impl<'r> Column<'r> for $kind {
            fn of_postgres(row: &'r PgRow, column: &str) -> Result<Self, sqlx::Error> {
                row.try_get(column)
            }

            fn of_sqlite(row: &'r SqliteRow, column: &str) -> Result<Self, sqlx::Error> {
                row.try_get(column)
            }
        })*
    };
}

columns!(i64, Option<i64>, String, Option<String>, &'r str, Option<&'r str>, Option<Vec<u8>>);

impl From<Option<Vec<u8>>> for Value {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        Value::Bytes(bytes)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Integer(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Value::Integer(number)
    }
}

impl From<bool> for Value {
    /// A boolean column is a BIGINT of 0 and 1.
    fn from(holds: bool) -> Self {
        Value::Integer(Some(i64::from(holds)))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Value::Text(text.map(stored_text))
    }
}

/// A text as it is stored. PostgreSQL refuses one with a NUL: without this a record with one would stay in the
/// journal permanently.
pub(super) fn stored_text(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Some(text).into()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Some(text.to_owned()).into()
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Some(text.clone()).into()
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        text.map(str::to_owned).into()
    }
}

impl From<&Option<String>> for Value {
    fn from(text: &Option<String>) -> Self {
        text.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_for_postgresql() {
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
        assert_eq!(numbered("VALUES (?, ?), (?)"), "VALUES ($1, $2), ($3)");
    }

    #[test]
    fn values_are_integers_and_texts() {
        let cases: [(Value, Value); 6] = [
            (true.into(), Value::Integer(Some(1))),
            (false.into(), Value::Integer(Some(0))),
            (None::<i64>.into(), Value::Integer(None)),
            (None::<&str>.into(), Value::Text(None)),
            ("a".into(), Value::Text(Some("a".to_owned()))),
            ("a\0b".into(), Value::Text(Some("a\u{FFFD}b".to_owned()))),
        ];
        for (value, expected) in cases {
            assert_eq!(value, expected);
        }
    }
}
