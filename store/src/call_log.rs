//! Reads the call log: every filter, sort and order of the API, in any combination.

use sidetone_model::access::Scope;
use sidetone_model::call_log::{CdrFilter, CdrPlace, CdrQuery, CdrSort};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_model::page::{Order, Page, Window};
use sidetone_model::ports::{CdrLog, PortFuture};
use sidetone_model::time::Timestamp;
use sidetone_model::totals::CdrTotals;
use sidetone_model::verdict_counts::{CountBy, VerdictGroup};

use crate::call_log_query::{FEW, Reading, Texts, matching, order_by};
use crate::call_log_search::Searched;
use crate::cdr_counts::{Counted, Rest, has_long_texts};
use crate::cdrs::cdr;
use crate::columns::number;
use crate::sql::{Connection, Row};
use crate::statement::Statement;
use crate::{Store, StoreError};

impl CdrLog for Store {
    fn list(&self, scope: Scope, query: CdrQuery) -> PortFuture<'_, Page<Cdr>> {
        Box::pin(async move { Ok(self.list_cdrs(scope, &query).await?) })
    }

    fn count<'a>(&'a self, scope: Scope, filter: &'a CdrFilter, count_max: u32) -> PortFuture<'a, u64> {
        Box::pin(async move { Ok(self.count_cdrs(scope, filter, count_max).await?) })
    }

    fn totals<'a>(&'a self, scope: Scope, filter: &'a CdrFilter) -> PortFuture<'a, CdrTotals> {
        Box::pin(async move { Ok(self.total_cdrs(scope, filter).await?) })
    }

    fn verdicts<'a>(
        &'a self,
        scope: Scope,
        filter: &'a CdrFilter,
        by: CountBy,
    ) -> PortFuture<'a, Vec<VerdictGroup>> {
        Box::pin(async move { Ok(self.count_verdicts(scope, filter, by).await?) })
    }

    fn chunk<'a>(
        &'a self,
        scope: Scope,
        filter: &'a CdrFilter,
        order: Order,
        after: Option<CdrPlace>,
        limit: u32,
    ) -> PortFuture<'a, Vec<Cdr>> {
        Box::pin(async move { Ok(self.cdr_chunk(scope, filter, order, after, limit).await?) })
    }

    fn find(&self, call: CallId) -> PortFuture<'_, Option<Cdr>> {
        Box::pin(async move { Ok(self.find_cdr(call).await?) })
    }
}

impl Store {
    async fn list_cdrs(&self, scope: Scope, query: &CdrQuery) -> Result<Page<Cdr>, StoreError> {
        let (filter, window) = (&query.filter, &query.window);
        if let Some(cursor) = &window.cursor {
            let total = match cursor.is_first() {
                true => Some(self.count_cdrs(scope, filter, u32::MAX).await?),
                false => None,
            };
            let mut transaction = self.readers().begin_read().await?;
            let texts = texts(scope, query, &mut transaction).await?;
            return self.cdrs_by_cursor(scope, query, (cursor, total), texts, &mut transaction).await;
        }
        // Both statements see one snapshot, so the total matches these items.
        let mut transaction = self.readers().begin_read().await?;
        let on = &mut *transaction;
        let searched = self.search_page(scope, query, on).await?;
        if let Searched::Page(calls, total) = &searched {
            let reading = Reading { calls: Some(calls), ..Reading::whole(scope, filter) };
            let rows = match calls.is_empty() {
                true => Vec::new(),
                false => page(&reading, query.sort, query.order, &Window::at(0, window.limit), on).await?,
            };
            return as_page(&rows, *total, window);
        }
        let known = match &searched {
            Searched::Total(total) => Some(*total),
            _ => counted(scope, filter, on).await?,
        };
        let calls = searched.calls();
        let texts = if calls.is_some() { Texts::Whole } else { texts(scope, query, on).await? };
        let is_rare = calls.is_none() && is_rare(scope, filter, on).await?;
        let reading = Reading { texts, calls, known, is_rare, ..Reading::whole(scope, filter) };
        let rows = match known {
            Some(total) if window.offset >= total => Vec::new(),
            _ => page(&reading, query.sort, query.order, window, on).await?,
        };
        let total = match known {
            Some(total) => total,
            // A page that is not full is the last one: its end gives the total.
            None if is_last(rows.len(), window) => window.offset.saturating_add(rows.len() as u64),
            None => count(&Reading { is_rare: true, ..reading }, u32::MAX, on).await?,
        };
        as_page(&rows, total, window)
    }

    async fn count_cdrs(&self, scope: Scope, filter: &CdrFilter, count_max: u32) -> Result<u64, StoreError> {
        let mut transaction = self.readers().begin_read().await?;
        let on = &mut *transaction;
        if let Some(total) = counted(scope, filter, on).await? {
            return Ok(total.min(count_max.into()));
        }
        let searched = self.search_calls(scope, filter, on).await?;
        if let Searched::Total(total) = searched {
            return Ok(total.min(count_max.into()));
        }
        let query = CdrQuery { filter: filter.clone(), ..CdrQuery::default() };
        let texts = texts(scope, &query, on).await?;
        let reading =
            Reading { texts, calls: searched.calls(), is_rare: true, ..Reading::whole(scope, filter) };
        count(&reading, count_max, on).await
    }

    async fn cdr_chunk(
        &self,
        scope: Scope,
        filter: &CdrFilter,
        order: Order,
        after: Option<CdrPlace>,
        limit: u32,
    ) -> Result<Vec<Cdr>, StoreError> {
        let mut filter = filter.clone();
        // The filter's own time bound advances with the position. Otherwise a database that seeks by that bound, and
        // not by the position, would read everything before the position again for every chunk.
        match (after, order) {
            (Some(place), Order::Ascending) => filter.from = Some(place.started_at),
            (Some(place), Order::Descending) => filter.to = Some(place.started_at.plus_micros(1)),
            (None, _) => {}
        }
        let mut transaction = self.readers().begin_read().await?;
        let searched = self.search_calls(scope, &filter, &mut transaction).await?;
        let mut statement = Statement::new("SELECT * FROM cdrs");
        matching(&mut statement, &Reading { calls: searched.calls(), ..Reading::whole(scope, &filter) });
        if let Some(place) = after {
            let behind = match order {
                Order::Ascending => " AND (started_at_us, call_uuid) > (",
                Order::Descending => " AND (started_at_us, call_uuid) < (",
            };
            statement.bind(behind, place.started_at.as_micros(), ", ");
            statement.bind("", place.call_uuid.to_string(), ")");
        }
        statement.push(order_by(CdrSort::StartedAt, order, Texts::Whole).clause);
        statement.bind(" LIMIT ", i64::from(limit), "");
        statement.query().fetch_all(&mut *transaction).await?.iter().map(cdr).collect()
    }
}

fn as_page(rows: &[Row], total: u64, window: &Window) -> Result<Page<Cdr>, StoreError> {
    Ok(Page::by_offset(rows.iter().map(cdr).collect::<Result<_, _>>()?, total, window))
}

/// Whether the page ends before its window does; then the end of the page is the end of the list.
fn is_last(rows: usize, window: &Window) -> bool {
    (rows as u64) < u64::from(window.limit) && (rows > 0 || window.offset == 0)
}

/// The total from the stored counts, when they cover the filter.
async fn counted(scope: Scope, filter: &CdrFilter, on: &mut Connection) -> Result<Option<u64>, StoreError> {
    let Some(asked) = Counted::of(scope, filter) else { return Ok(None) };
    let (mut total, rest) = asked.read(on).await?;
    for rest in rest {
        let mut statement = Statement::new("SELECT COUNT(*) AS total FROM cdrs");
        match rest {
            Rest::Started(from_us, to_us) => {
                let part = CdrFilter {
                    from: Some(Timestamp::from_micros(from_us)),
                    to: Some(Timestamp::from_micros(to_us)),
                    ..filter.clone()
                };
                matching(&mut statement, &Reading::whole(scope, &part));
            }
            Rest::BilledLessThan(billsec) => {
                // With this value the index of `billsec` is used.
                matching(&mut statement, &Reading { known: Some(0), ..Reading::whole(scope, filter) });
                statement.bind(" AND billsec < ", i64::try_from(billsec).unwrap_or(i64::MAX), "");
            }
        }
        let row = statement.query().fetch_one(&mut *on).await?;
        total = total.saturating_add(number(&row, "total")?);
    }
    Ok(Some(total))
}

/// Whether `mos_max` selects so few records of one organisation that its index is used to find them.
async fn is_rare(scope: Scope, filter: &CdrFilter, on: &mut Connection) -> Result<bool, StoreError> {
    let Some(mos_max) = filter.mos_max else { return Ok(false) };
    let Some(organisation_id) = scope.organisation().or(filter.organisation_id) else { return Ok(false) };
    let bad =
        CdrFilter { mos_max: Some(mos_max), organisation_id: Some(organisation_id), ..CdrFilter::default() };
    let mut statement = Statement::new("SELECT COUNT(*) AS total FROM (SELECT 1 AS one FROM cdrs");
    matching(&mut statement, &Reading { is_rare: true, ..Reading::whole(Scope::Everything, &bad) });
    statement.bind(" LIMIT ", i64::try_from(FEW).unwrap_or(i64::MAX), ") AS counted");
    Ok(number::<u64>(&statement.query().fetch_one(on).await?, "total")? < FEW)
}

/// The number of records, `count_max` at most.
async fn count(reading: &Reading<'_>, count_max: u32, on: &mut Connection) -> Result<u64, StoreError> {
    let all = [*reading];
    let kinds = reading.by_extension();
    let mut total: u64 = 0;
    for kind in kinds.as_ref().map_or(all.as_slice(), <[_; 2]>::as_slice) {
        let is_bounded = count_max < u32::MAX;
        let mut statement = Statement::new("SELECT COUNT(*) AS total FROM ");
        statement.push(if is_bounded { "(SELECT 1 AS one FROM cdrs" } else { "cdrs" });
        matching(&mut statement, kind);
        if is_bounded {
            statement.bind(" LIMIT ", i64::from(count_max), ") AS counted");
        }
        total = total.saturating_add(number(&statement.query().fetch_one(&mut *on).await?, "total")?);
    }
    Ok(total.min(count_max.into()))
}

/// Where the texts of the records are searched: in the index, unless some are too long for it.
async fn texts(scope: Scope, query: &CdrQuery, on: &mut Connection) -> Result<Texts, StoreError> {
    let filter = &query.filter;
    let sorted = matches!(query.sort, CdrSort::CallerNumber | CdrSort::DestinationNumber);
    if filter.q.is_none() && filter.did.is_none() && !sorted {
        return Ok(Texts::Whole);
    }
    let Some(organisation) = scope.organisation().or(filter.organisation_id) else { return Ok(Texts::Whole) };
    Ok(if has_long_texts(on, organisation).await? { Texts::Whole } else { Texts::Indexed })
}

/// The rows of a window. Records without a value in the sort column come after all others.
async fn page(
    reading: &Reading<'_>,
    sort: CdrSort,
    order: Order,
    window: &Window,
    on: &mut Connection,
) -> Result<Vec<Row>, StoreError> {
    let sorting = order_by(sort, order, reading.texts);
    let clause = match sort {
        CdrSort::StartedAt if reading.is_sorted_late() => reading.few_first(order),
        _ => sorting.clause,
    };
    let Some((present, missing, missing_clause)) = sorting.nullable else {
        return part(reading, "", clause, window, on).await;
    };
    let mut rows = part(reading, present, clause, window, on).await?;
    let left = window.limit.saturating_sub(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    if left == 0 {
        return Ok(rows);
    }
    let have = if is_last(rows.len(), window) {
        window.offset.saturating_add(rows.len() as u64)
    } else {
        let mut statement = Statement::new("SELECT COUNT(*) AS total FROM cdrs");
        matching(&mut statement, reading);
        statement.push(present);
        number(&statement.query().fetch_one(&mut *on).await?, "total")?
    };
    let rest = Window::at(window.offset.saturating_sub(have), left);
    rows.extend(part(reading, missing, missing_clause, &rest, on).await?);
    Ok(rows)
}

/// The rows of a window that also satisfy `also`. Their ids are read first, from the index alone where it covers the
/// filter, so that the records before the window are not read.
async fn part(
    reading: &Reading<'_>,
    also: &'static str,
    clause: &'static str,
    window: &Window,
    on: &mut Connection,
) -> Result<Vec<Row>, StoreError> {
    let mut statement = Statement::new("SELECT cdrs.* FROM (SELECT call_uuid AS page_uuid FROM ");
    match reading.by_extension() {
        Some(kinds) => {
            let end = window.offset.saturating_add(window.limit.into());
            each_kind(&mut statement, &kinds, (also, clause), i64::try_from(end).unwrap_or(i64::MAX));
        }
        None => {
            statement.push("cdrs");
            matching(&mut statement, reading);
            statement.push(also);
        }
    }
    statement.push(clause);
    statement.bind(" LIMIT ", i64::from(window.limit), "");
    statement.bind(" OFFSET ", i64::try_from(window.offset).unwrap_or(i64::MAX), ") AS page");
    // A CROSS JOIN keeps SQLite from reading `cdrs` first.
    statement.push(" CROSS JOIN cdrs WHERE cdrs.call_uuid = page.page_uuid");
    statement.push(clause);
    Ok(statement.query().fetch_all(on).await?)
}

/// Adds the first `end` records of each kind, in the order of `clause`: the first `end` of both together are among
/// them.
fn each_kind(
    statement: &mut Statement,
    kinds: &[Reading<'_>; 2],
    (also, clause): (&'static str, &'static str),
    end: i64,
) {
    for (at, kind) in kinds.iter().enumerate() {
        statement.push(if at == 0 { "(SELECT * FROM (" } else { " UNION ALL SELECT * FROM (" });
        statement.push(
            "SELECT call_uuid, started_at_us, ended_at_us, billsec, caller_number, destination_number, direction,
             mos_hundredths, sell_scaled FROM cdrs",
        );
        matching(statement, kind);
        statement.push(also);
        statement.push(clause);
        statement.bind(" LIMIT ", end, ") AS kind");
    }
    statement.push(") AS kinds");
}
