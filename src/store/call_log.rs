//! Reading the call log: every filter, sort and order of the public document, combined freely.
//!
//! The one place where a statement is put together from parts: with every filter optional, a whole literal
//! for each combination cannot be written, and one literal with `$n IS NULL OR …` keeps the database from
//! using an index.

use sidetone_model::access::Scope;
use sidetone_model::call::{Direction, Transport};
use sidetone_model::call_log::{CdrFilter, CdrPlace, CdrQuery, CdrSort};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_model::page::{Order, Page};
use sidetone_model::ports::{CdrLog, PortFuture};
use sidetone_model::time::Timestamp;
use sidetone_model::totals::CdrTotals;

use crate::store::cdrs::cdr;
use crate::store::columns::number;
use crate::store::scope::within;
use crate::store::search::containing;
use crate::store::statement::Statement;
use crate::store::{Store, StoreError};

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
        let window = query.window;
        let mut total = Statement::new("SELECT COUNT(*) AS total FROM cdrs");
        matching(&mut total, scope, &query.filter);
        let mut items = Statement::new("SELECT * FROM cdrs");
        matching(&mut items, scope, &query.filter);
        items.push(order_by(query.sort, query.order));
        items.bind(" LIMIT ", i64::from(window.limit), "");
        items.bind(" OFFSET ", i64::try_from(window.offset).unwrap_or(i64::MAX), "");
        // Both statements see one snapshot: the total is that of these items.
        let mut transaction = self.readers().begin_read().await?;
        let total = total.query().fetch_one(&mut *transaction).await?;
        let rows = items.query().fetch_all(&mut *transaction).await?;
        Ok(Page {
            items: rows.iter().map(cdr).collect::<Result<_, _>>()?,
            total: number(&total, "total")?,
            limit: window.limit,
            offset: window.offset,
        })
    }

    async fn count_cdrs(&self, scope: Scope, filter: &CdrFilter, count_max: u32) -> Result<u64, StoreError> {
        let mut statement = Statement::new("SELECT COUNT(*) AS total FROM (SELECT 1 AS one FROM cdrs");
        matching(&mut statement, scope, filter);
        statement.bind(" LIMIT ", i64::from(count_max), ") AS counted");
        number(&statement.query().fetch_one(self.readers()).await?, "total")
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
        // The filter's own bound moves along: a database that seeks by it and not by the place would read
        // everything before the place again for every chunk.
        match (after, order) {
            (Some(place), Order::Ascending) => filter.from = Some(place.started_at),
            (Some(place), Order::Descending) => filter.to = Some(place.started_at.plus_micros(1)),
            (None, _) => {}
        }
        let mut statement = Statement::new("SELECT * FROM cdrs");
        matching(&mut statement, scope, &filter);
        if let Some(place) = after {
            let behind = match order {
                Order::Ascending => " AND (started_at_us, call_uuid) > (",
                Order::Descending => " AND (started_at_us, call_uuid) < (",
            };
            statement.bind(behind, place.started_at.as_micros(), ", ");
            statement.bind("", place.call_uuid.to_string(), ")");
        }
        statement.push(order_by(CdrSort::StartedAt, order));
        statement.bind(" LIMIT ", i64::from(limit), "");
        statement.query().fetch_all(self.readers()).await?.iter().map(cdr).collect()
    }
}

/// Adds the condition: inside the scope, and every part of the filter.
pub(super) fn matching(statement: &mut Statement, scope: Scope, filter: &CdrFilter) {
    within(statement, scope);
    statement.bind_text(" AND organisation_id = ", filter.organisation_id);
    statement.bind_text(" AND agent_id = ", filter.agent_id);
    statement.bind_text(" AND campaign_id = ", filter.campaign_id);
    statement.bind_text(" AND direction = ", filter.direction.map(Direction::as_str));
    statement.bind_text(" AND extension_id = ", filter.extension_id);
    statement.bind_text(" AND hangup_cause = ", filter.hangup_cause.as_deref());
    statement.bind_text(" AND node_id = ", filter.node_id);
    statement.bind_text(" AND team_id = ", filter.team_id);
    statement.bind_text(" AND transport = ", filter.transport.map(Transport::as_str));
    statement.bind_text(" AND trunk_id = ", filter.trunk_id);
    if let Some(from) = filter.from.map(Timestamp::as_micros) {
        statement.bind(" AND started_at_us >= ", from, "");
    }
    if let Some(to) = filter.to.map(Timestamp::as_micros) {
        statement.bind(" AND started_at_us < ", to, "");
    }
    if let Some(billsec) = filter.min_billsec {
        statement.bind(" AND billsec >= ", i64::try_from(billsec).unwrap_or(i64::MAX), "");
    }
    match filter.transcoded {
        // As `Cdr::transcoded`: a leg without a codec is no other codec. Codec names are ASCII.
        Some(true) => statement.push(" AND (LOWER(codec_a) <> LOWER(codec_b)) IS TRUE"),
        Some(false) => statement.push(" AND (LOWER(codec_a) <> LOWER(codec_b)) IS NOT TRUE"),
        None => {}
    }
    if let Some(did) = &filter.did {
        statement.bind(" AND did_search LIKE ", containing(did), r" ESCAPE '\'");
    }
    if let Some(q) = &filter.q {
        statement.bind(" AND search LIKE ", containing(q), r" ESCAPE '\'");
    }
}

/// The clause of every sort in both orders, whole and literal.
///
/// Where a value may be missing it comes last either way, which the two databases only agree on when told;
/// columns that are never null are not told, since PostgreSQL would then leave their indexes unused.
fn order_by(sort: CdrSort, order: Order) -> &'static str {
    use CdrSort::*;
    use Order::*;
    match (sort, order) {
        (Billsec, Ascending) => " ORDER BY billsec ASC, call_uuid ASC",
        (Billsec, Descending) => " ORDER BY billsec DESC, call_uuid DESC",
        (CallerNumber, Ascending) => " ORDER BY caller_number ASC NULLS LAST, call_uuid ASC",
        (CallerNumber, Descending) => " ORDER BY caller_number DESC NULLS LAST, call_uuid DESC",
        (DestinationNumber, Ascending) => " ORDER BY destination_number ASC NULLS LAST, call_uuid ASC",
        (DestinationNumber, Descending) => " ORDER BY destination_number DESC NULLS LAST, call_uuid DESC",
        (Direction, Ascending) => " ORDER BY direction ASC, call_uuid ASC",
        (Direction, Descending) => " ORDER BY direction DESC, call_uuid DESC",
        (EndedAt, Ascending) => " ORDER BY ended_at_us ASC NULLS LAST, call_uuid ASC",
        (EndedAt, Descending) => " ORDER BY ended_at_us DESC NULLS LAST, call_uuid DESC",
        (SellAmount, Ascending) => " ORDER BY sell_scaled ASC, call_uuid ASC",
        (SellAmount, Descending) => " ORDER BY sell_scaled DESC, call_uuid DESC",
        (StartedAt, Ascending) => " ORDER BY started_at_us ASC, call_uuid ASC",
        (StartedAt, Descending) => " ORDER BY started_at_us DESC, call_uuid DESC",
    }
}
