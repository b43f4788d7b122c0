//! Pages of lists, by offset or by cursor.
//!
//! A page by cursor begins after the sort values of the last item of the previous page (a keyset). So it neither
//! skips nor repeats an item when others are added or deleted, and costs the same at any depth. The total is counted
//! for the first page and passed on in the cursor.

use sidetone_model::cursor::{Cursor, KeyValue};
use sidetone_model::page::{Order, Page, Window};

use crate::StoreError;
use crate::columns::number;
use crate::sql::{Connection, Row};
use crate::statement::Statement;

/// A list: the literals of its statements, and its condition.
pub(super) struct List<'a> {
    /// `SELECT COUNT(*) AS total FROM …`
    pub(super) count: &'static str,
    /// `SELECT … FROM …`, with the columns of the sorting.
    pub(super) items: &'static str,
    /// Adds the condition, from `WHERE` on.
    pub(super) matching: &'a (dyn Fn(&mut Statement) + Sync),
    /// How the items are sorted.
    pub(super) sorting: Sorting,
}

/// A sort by columns without NULL, all in one direction; no two rows have the same values.
#[derive(Clone, Copy)]
pub(super) struct Sorting {
    pub(super) columns: &'static [SortColumn],
    pub(super) order: Order,
}

/// A column of a sort.
#[derive(Clone, Copy)]
pub(super) enum SortColumn {
    /// The name of a BIGINT.
    Integer(&'static str),
    /// The name of a TEXT.
    Text(&'static str),
    /// An indexed expression with the value of a TEXT, and the name of that.
    TextBy(&'static str, &'static str),
}

impl Sorting {
    /// A sort with the largest values first.
    pub(super) const fn descending(columns: &'static [SortColumn]) -> Self {
        Self { columns, order: Order::Descending }
    }

    /// A sort with the smallest values first.
    pub(super) const fn ascending(columns: &'static [SortColumn]) -> Self {
        Self { columns, order: Order::Ascending }
    }

    /// Adds ` ORDER BY …`.
    pub(super) fn push(&self, statement: &mut Statement) {
        let direction = match self.order {
            Order::Ascending => " ASC",
            Order::Descending => " DESC",
        };
        for (at, column) in self.columns.iter().enumerate() {
            statement.push(if at == 0 { " ORDER BY " } else { ", " });
            statement.push(column.name());
            statement.push(direction);
        }
    }

    /// Adds the condition for rows after `key`; no condition for an empty key.
    pub(super) fn behind(&self, statement: &mut Statement, key: &[KeyValue]) {
        if key.is_empty() {
            return;
        }
        let fits = key.len() == self.columns.len() && self.columns.iter().zip(key).all(|pair| is_kind(&pair));
        if !fits {
            // A cursor that no list of this program has created.
            return statement.push(" AND FALSE");
        }
        for (at, column) in self.columns.iter().enumerate() {
            statement.push(if at == 0 { " AND (" } else { ", " });
            statement.push(column.name());
        }
        statement.push(match self.order {
            Order::Ascending => ") > (",
            Order::Descending => ") < (",
        });
        for (at, value) in key.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            match value {
                KeyValue::Integer(number) => statement.bind(before, *number, ""),
                KeyValue::Text(text) => statement.bind(before, text.as_str(), ""),
                KeyValue::Missing => {}
            }
        }
        statement.push(")");
    }

    /// Returns the sort values of a row.
    pub(super) fn key(&self, row: &Row) -> Result<Vec<KeyValue>, StoreError> {
        self.columns.iter().map(|column| column.value_or_missing(row)).collect()
    }
}

impl SortColumn {
    /// The column, or the indexed expression.
    fn name(self) -> &'static str {
        match self {
            SortColumn::Integer(name) | SortColumn::Text(name) | SortColumn::TextBy(name, _) => name,
        }
    }

    /// Returns the value of a row.
    pub(super) fn value_or_missing(self, row: &Row) -> Result<KeyValue, StoreError> {
        let value = match self {
            SortColumn::Integer(name) => row.try_get::<Option<i64>>(name)?.map(KeyValue::Integer),
            SortColumn::Text(name) | SortColumn::TextBy(_, name) => {
                row.try_get::<Option<String>>(name)?.map(KeyValue::Text)
            }
        };
        Ok(value.unwrap_or(KeyValue::Missing))
    }
}

fn is_kind((column, value): &(&SortColumn, &KeyValue)) -> bool {
    matches!(
        (column, value),
        (SortColumn::Integer(_), KeyValue::Integer(_))
            | (SortColumn::Text(_) | SortColumn::TextBy(..), KeyValue::Text(_))
    )
}

/// Reads the rows of a window within `on`, a transaction, so that the total matches the items.
pub(super) async fn rows(
    on: &mut Connection,
    list: &List<'_>,
    window: &Window,
) -> Result<Page<Row>, StoreError> {
    let total = match window.cursor.as_ref().filter(|cursor| !cursor.is_first()) {
        Some(_) => None,
        None => {
            let mut total = Statement::new(list.count);
            (list.matching)(&mut total);
            Some(number(&total.query().fetch_one(&mut *on).await?, "total")?)
        }
    };
    let mut items = Statement::new(list.items);
    (list.matching)(&mut items);
    let Some(cursor) = &window.cursor else {
        list.sorting.push(&mut items);
        items.bind(" LIMIT ", i64::from(window.limit), "");
        items.bind(" OFFSET ", i64::try_from(window.offset).unwrap_or(i64::MAX), "");
        let rows = items.query().fetch_all(on).await?;
        return Ok(Page::by_offset(rows, total.unwrap_or_default(), window));
    };
    list.sorting.behind(&mut items, &cursor.key);
    list.sorting.push(&mut items);
    items.bind(" LIMIT ", i64::from(window.limit) + 1, "");
    let rows = items.query().fetch_all(on).await?;
    by_cursor(rows, total, window.limit, cursor, |row| list.sorting.key(row))
}

/// Builds a page from rows that were read with one more than `limit`, if there is one.
pub(super) fn by_cursor(
    mut rows: Vec<Row>,
    total: Option<u64>,
    limit: u32,
    cursor: &Cursor,
    key: impl Fn(&Row) -> Result<Vec<KeyValue>, StoreError>,
) -> Result<Page<Row>, StoreError> {
    let has_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| has_more).map(key).transpose()?;
    Ok(Page::by_cursor(rows, total, limit, cursor, next))
}
