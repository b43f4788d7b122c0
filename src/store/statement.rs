//! A statement put together from literals, for lists whose filters are combined freely.
//!
//! Only literals of this program become SQL; what a caller sent is bound, never written.

use crate::store::sql::{Query, Value};

/// SQL and the values of its parameters, in the text that SQLite and PostgreSQL share.
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
        self.text.push('$');
        self.text.push_str(&self.values.len().to_string());
        self.text.push_str(after);
    }

    /// Adds `before` and the next parameter when there is a value; an id or a word goes in as its text.
    pub(super) fn bind_text(&mut self, before: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.bind(before, value.to_string(), "");
        }
    }

    /// The statement ready to run.
    pub(super) fn query(self) -> Query {
        Query::of_literals(self.text, self.values)
    }
}

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
        assert_eq!(statement.text, "SELECT a FROM t WHERE TRUE AND b = $1 AND (d, e) < ($2, $3) ORDER BY a");
        assert_eq!(statement.values.len(), 3);
    }
}
