//! Lists of managed resources: keys, users, teams, agents. One structure, a table each.

use sidetone_model::access::Scope;
use sidetone_model::listing::{Listing, ListingSort};
use sidetone_model::page::Page;

use crate::paging::{List, SortColumn, Sorting, rows};
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
    /// The sort by name: the column with the name, and `id`.
    pub(super) by_name: &'static [SortColumn],
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
        let columns = match listing.sort {
            ListingSort::Name => table.by_name,
            ListingSort::CreatedAt => BY_CREATION,
        };
        let list = List {
            count: table.count,
            items: table.select,
            matching: &|statement| matching(statement, scope, listing, table),
            sorting: Sorting { columns, order: listing.order },
        };
        // All statements see one snapshot, so the total matches these items.
        let mut transaction = self.readers().begin_read().await?;
        rows(&mut transaction, &list, &listing.window).await?.try_map(|row| read(&row))
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

const BY_CREATION: &[SortColumn] = &[SortColumn::Integer("created_at_us"), SortColumn::Text("id")];
