//! A statement assembled from literals, for lists with freely combined filters and for many rows together.
//!
//! Only literals of this program become SQL; values from clients are always bound.

use crate::sql::{Query, Value};

/// SQL and the values of its parameters, in the text that SQLite and PostgreSQL share. A parameter is a `?`, which no
/// literal contains: SQLite looks up each named parameter in a list of all of them. [`Query`] numbers the parameters
/// for PostgreSQL.
#[derive(Debug)]
pub(super) struct Statement {
    text: String,
    values: Vec<Value>,
}

impl Statement {
    /// A statement that begins with `literal`.
    pub(super) fn new(literal: &'static str) -> Self {
        Self { text: literal.to_owned(), values: Vec::new() }
    }

    /// Adds `literal`.
    pub(super) fn push(&mut self, literal: &'static str) {
        self.text.push_str(literal);
    }

    /// Adds `before`, the next parameter bound to `value`, and `after`.
    pub(super) fn bind(&mut self, before: &'static str, value: impl Into<Value>, after: &'static str) {
        self.values.push(value.into());
        self.text.push_str(before);
        self.text.push('?');
        self.text.push_str(after);
    }

    /// Adds parameters bound to `values`, with commas between them.
    pub(super) fn list(&mut self, values: impl IntoIterator<Item = Value>) {
        let mut before = "";
        for value in values {
            self.bind(before, value, "");
            before = ", ";
        }
    }

    /// Adds `before` and the next parameter if there is a value; an id or an enum value is bound as its text.
    pub(super) fn bind_text(&mut self, before: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.bind(before, value.to_string(), "");
        }
    }

    /// Adds rows of values, `(?, ?), (?, ?)`, for use after `VALUES`.
    pub(super) fn rows<const N: usize>(&mut self, rows: impl IntoIterator<Item = [Value; N]>) {
        let mut before = "(";
        for row in rows {
            self.push(before);
            self.list(row);
            before = "), (";
        }
        self.push(")");
    }

    /// Returns the statement, ready to run.
    pub(super) fn query(self) -> Query {
        Query::of_literals(self.text, self.values)
    }
}

/// Splits the rows into parts for one statement each. Part lengths are powers of two, so that there are few statement
/// texts and the database keeps them prepared.
pub(super) fn parts<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let len = rows.len().checked_ilog2().map_or(0, |log| 1 << log).min(PART_LEN_MAX);
        let (part, rest) = rows.split_at_checked(len).filter(|(part, _)| !part.is_empty())?;
        rows = rest;
        Some(part)
    })
}

/// Rows of one statement: a power of two; with twenty columns far below SQLite's parameter limit.
const PART_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bound_and_never_written() {
        let mut statement = Statement::new("SELECT a FROM t WHERE TRUE");
        statement.bind_text(" AND b = ", Some("'; DROP TABLE t --"));
        statement.bind_text(" AND c = ", None::<String>);
        statement.bind(" AND (d, e) < (", 7, ", ");
        statement.bind("", "x".to_owned(), ")");
        statement.push(" ORDER BY a");
        assert_eq!(statement.text, "SELECT a FROM t WHERE TRUE AND b = ? AND (d, e) < (?, ?) ORDER BY a");
        assert_eq!(statement.values.len(), 3);
    }

    #[test]
    fn rows_are_listed_in_parts() {
        let mut statement = Statement::new("INSERT INTO t (a, b) VALUES ");
        statement.rows([[1.into(), "x".into()], [2.into(), "y".into()]]);
        statement.push(" ON CONFLICT DO NOTHING");
        assert_eq!(statement.text, "INSERT INTO t (a, b) VALUES (?, ?), (?, ?) ON CONFLICT DO NOTHING");
        for (len, expected) in [(0, vec![]), (1, vec![1]), (7, vec![4, 2, 1]), (200, vec![64, 64, 64, 8])] {
            let rows: Vec<usize> = (0..len).collect();
            let parts: Vec<&[usize]> = parts(&rows).collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), expected);
            assert_eq!(parts.concat(), rows);
        }
    }
}
