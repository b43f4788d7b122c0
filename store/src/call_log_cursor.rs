//! Pages of the call log by cursor, for every filter, sort and order: each page begins after the last record of the
//! previous one.

use sidetone_model::access::Scope;
use sidetone_model::call_log::{CdrQuery, CdrSort};
use sidetone_model::cdr::Cdr;
use sidetone_model::cursor::{Cursor, KeyValue};
use sidetone_model::page::{Order, Page};
use sidetone_model::time::Timestamp;

use crate::call_log_query::{Reading, Texts, matching, order_by};
use crate::cdrs::cdr;
use crate::paging::{SortColumn, Sorting, by_cursor};
use crate::sql::{Connection, Row};
use crate::statement::Statement;
use crate::{Store, StoreError};

impl Store {
    /// The page of `query` that begins at `cursor`; `total` was counted for a first page. `texts` states where the
    /// texts are sorted.
    pub(super) async fn cdrs_by_cursor(
        &self,
        scope: Scope,
        query: &CdrQuery,
        (cursor, total): (&Cursor, Option<u64>),
        texts: Texts,
        on: &mut Connection,
    ) -> Result<Page<Cdr>, StoreError> {
        let mut filter = query.filter.clone();
        // The filter's own time bound advances too, for a database that seeks by that bound and not by the position.
        if let (CdrSort::StartedAt, Some(KeyValue::Integer(at))) = (query.sort, cursor.key.first()) {
            let at = Timestamp::from_micros(*at);
            match query.order {
                Order::Ascending => filter.from = filter.from.max(Some(at)),
                Order::Descending => {
                    let end = at.plus_micros(1);
                    filter.to = Some(filter.to.map_or(end, |to| to.min(end)));
                }
            }
        }
        let searched = self.search_calls(scope, &filter, on).await?;
        let reading = Reading { calls: searched.calls(), ..Reading::whole(scope, &filter) };
        let sorting = Sorting { columns: columns(query.sort, texts), order: query.order };
        let rows = rows(&reading, query.sort, sorting, (cursor, query.window.limit), on).await?;
        let page = by_cursor(rows, total, query.window.limit, cursor, |row| key(row, sorting))?;
        page.try_map(|row| cdr(&row))
    }
}

/// The rows after the cursor, one more than `limit` if there are more. Records without a value in the sort column
/// come after all others.
async fn rows(
    reading: &Reading<'_>,
    sort: CdrSort,
    sorting: Sorting,
    (cursor, limit): (&Cursor, u32),
    on: &mut Connection,
) -> Result<Vec<Row>, StoreError> {
    let wanted = i64::from(limit) + 1;
    let Some((present, missing, missing_clause)) = order_by(sort, sorting.order, Texts::Whole).nullable
    else {
        return part(reading, "", (sorting, &cursor.key), wanted, on).await;
    };
    let is_missing = matches!(cursor.key.first(), Some(KeyValue::Missing));
    let mut rows = match is_missing {
        true => Vec::new(),
        false => part(reading, present, (sorting, &cursor.key), wanted, on).await?,
    };
    let left = wanted - i64::try_from(rows.len()).unwrap_or(wanted);
    if left > 0 {
        let mut statement = Statement::new("SELECT * FROM cdrs");
        matching(&mut statement, reading);
        statement.push(missing);
        let by_id = Sorting { columns: &[CALL], order: sorting.order };
        by_id.behind(&mut statement, if is_missing { cursor.key.get(1..).unwrap_or_default() } else { &[] });
        statement.push(missing_clause);
        statement.bind(" LIMIT ", left, "");
        rows.extend(statement.query().fetch_all(on).await?);
    }
    Ok(rows)
}

/// At most `wanted` rows after a key that also satisfy `also`.
async fn part(
    reading: &Reading<'_>,
    also: &'static str,
    (sorting, key): (Sorting, &[KeyValue]),
    wanted: i64,
    on: &mut Connection,
) -> Result<Vec<Row>, StoreError> {
    let select = |statement: &mut Statement, reading: &Reading<'_>| {
        statement.push("SELECT * FROM cdrs");
        matching(statement, reading);
        statement.push(also);
        sorting.behind(statement, key);
        sorting.push(statement);
        statement.bind(" LIMIT ", wanted, "");
    };
    let mut statement = Statement::new("");
    match reading.by_extension() {
        // The first `wanted` rows of each kind contain the first `wanted` of both.
        Some([own, called]) => {
            statement.push("SELECT * FROM (SELECT * FROM (");
            select(&mut statement, &own);
            statement.push(") AS own UNION ALL SELECT * FROM (");
            select(&mut statement, &called);
            statement.push(") AS called) AS kinds");
            sorting.push(&mut statement);
            statement.bind(" LIMIT ", wanted, "");
        }
        None => select(&mut statement, reading),
    }
    Ok(statement.query().fetch_all(on).await?)
}

/// The sort values of a row; the first may be missing.
fn key(row: &Row, sorting: Sorting) -> Result<Vec<KeyValue>, StoreError> {
    sorting.columns.iter().map(|column| column.value_or_missing(row)).collect()
}

const fn columns(sort: CdrSort, texts: Texts) -> &'static [SortColumn] {
    match (sort, texts) {
        (CdrSort::Billsec, _) => &[SortColumn::Integer("billsec"), CALL],
        (CdrSort::CallerNumber, Texts::Indexed) => {
            &[SortColumn::TextBy("SUBSTR(caller_number, 1, 300)", "caller_number"), CALL]
        }
        (CdrSort::CallerNumber, Texts::Whole) => &[SortColumn::Text("caller_number"), CALL],
        (CdrSort::DestinationNumber, Texts::Indexed) => {
            &[SortColumn::TextBy("SUBSTR(destination_number, 1, 300)", "destination_number"), CALL]
        }
        (CdrSort::DestinationNumber, Texts::Whole) => &[SortColumn::Text("destination_number"), CALL],
        (CdrSort::Direction, _) => &[SortColumn::Text("direction"), CALL],
        (CdrSort::EndedAt, _) => &[SortColumn::Integer("ended_at_us"), CALL],
        (CdrSort::Mos, _) => &[SortColumn::Integer("mos_hundredths"), CALL],
        (CdrSort::SellAmount, _) => &[SortColumn::Integer("sell_scaled"), CALL],
        (CdrSort::StartedAt, _) => &[SortColumn::Integer("started_at_us"), CALL],
    }
}

const CALL: SortColumn = SortColumn::Text("call_uuid");
