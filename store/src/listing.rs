//! Lists of managed resources: keys, users, teams, agents. One structure, a table each.

use sidetone_model::access::Scope;
use sidetone_model::listing::{Listing, ListingSort};
use sidetone_model::page::{Order, Page};

use crate::columns::number;
use crate::scope::within_by;
use crate::search::containing;
use crate::sql::Row;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// The literals of one table; it has `organisation_id`, `search`, `created_at_us` and `id`.
pub(super) struct Table {
    /// `SELECT COUNT(*) AS total FROM …`
    pub(super) count: &'static str,
    /// `SELECT … FROM …`
    pub(super) select: &'static str,
    /// ` AND column = `, with the column that contains the team of a row; `None` where rows have no team.
    pub(super) team: Option<&'static str>,
    /// ` ORDER BY …` by name, ascending and descending.
    pub(super) by_name: [&'static str; 2],
}

impl Store {
    /// The rows inside `scope` that the listing selects.
    pub(super) async fn page<T>(
        &self,
        scope: Scope,
        listing: &Listing,
        table: &Table,
        read: fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let mut total = Statement::new(table.count);
        matching(&mut total, scope, listing, table);
        let mut items = Statement::new(table.select);
        matching(&mut items, scope, listing, table);
        let [ascending, descending] = table.by_name;
        items.push(match (listing.sort, listing.order) {
            (ListingSort::Name, Order::Ascending) => ascending,
            (ListingSort::Name, Order::Descending) => descending,
            (ListingSort::CreatedAt, Order::Ascending) => " ORDER BY created_at_us ASC, id ASC",
            (ListingSort::CreatedAt, Order::Descending) => " ORDER BY created_at_us DESC, id DESC",
        });
        let window = listing.window;
        items.bind(" LIMIT ", i64::from(window.limit), "");
        items.bind(" OFFSET ", i64::try_from(window.offset).unwrap_or(i64::MAX), "");
        // Both statements see one snapshot, so the total matches these items.
        let mut transaction = self.readers().begin_read().await?;
        let total = total.query().fetch_one(&mut *transaction).await?;
        let rows = items.query().fetch_all(&mut *transaction).await?;
        Ok(Page {
            items: rows.iter().map(read).collect::<Result<_, _>>()?,
            total: number(&total, "total")?,
            limit: window.limit,
            offset: window.offset,
        })
    }
}

fn matching(statement: &mut Statement, scope: Scope, listing: &Listing, table: &Table) {
    within_by(statement, scope, table.team);
    statement.bind_text(" AND organisation_id = ", listing.organisation_id);
    match (listing.team_id, table.team) {
        (Some(team), Some(column)) => statement.bind(column, team.to_string(), ""),
        (Some(_), None) => statement.push(" AND FALSE"),
        (None, _) => {}
    }
    if let Some(q) = &listing.q {
        statement.bind(" AND search LIKE ", containing(q), r" ESCAPE '\'");
    }
}
