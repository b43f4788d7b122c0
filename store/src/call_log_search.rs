//! Answers queries of the call log from the text blocks.

use sidetone_model::access::Scope;
use sidetone_model::call_log::{CdrFilter, CdrQuery, CdrSort};
use sidetone_model::page::{Order, Window};

use crate::sql::Connection;
use crate::text_blocks::{Wanted, find};
use crate::{Store, StoreError};

/// What the text blocks answer without reading the records.
#[derive(Debug)]
pub(super) enum Searched {
    /// The ids of the matching records if there are few; at least one. The other conditions of the filter are not
    /// applied.
    Calls(Vec<String>),
    /// No answer: the records must be searched.
    No,
    /// The ids of the records of the page, and the total.
    Page(Vec<String>, u64),
    /// The number of records.
    Total(u64),
}

impl Searched {
    /// The ids of the few records that match the texts.
    pub(super) fn calls(&self) -> Option<&[String]> {
        match self {
            Searched::Calls(calls) => Some(calls),
            Searched::No | Searched::Page(..) | Searched::Total(_) => None,
        }
    }
}

impl Store {
    /// Searches the texts for a page of a list.
    pub(super) async fn search_page(
        &self,
        scope: Scope,
        query: &CdrQuery,
        on: &mut Connection,
    ) -> Result<Searched, StoreError> {
        let Some(wanted) = Wanted::of(scope, &query.filter) else { return Ok(Searched::No) };
        let Some(mut found) = find(on, self.text_cache(), &wanted).await? else { return Ok(Searched::No) };
        let (total, window) = (found.total(), &query.window);
        let is_near = window.offset.saturating_add(window.limit.into()) <= NEAR;
        Ok(if total == 0 {
            Searched::Total(0)
        } else if !wanted.has_more() && query.sort == CdrSort::StartedAt && is_near {
            Searched::Page(found.window(on, query.order, window).await?, total)
        } else if total <= FEW {
            Searched::Calls(found.window(on, Order::Ascending, &ALL).await?)
        } else if wanted.has_more() {
            Searched::No
        } else {
            Searched::Total(total)
        })
    }

    /// Searches the texts for the ids of all matching records, if there are few.
    pub(super) async fn search_calls(
        &self,
        scope: Scope,
        filter: &CdrFilter,
        on: &mut Connection,
    ) -> Result<Searched, StoreError> {
        let Some(wanted) = Wanted::of(scope, filter) else { return Ok(Searched::No) };
        let Some(mut found) = find(on, self.text_cache(), &wanted).await? else { return Ok(Searched::No) };
        let total = found.total();
        Ok(if total == 0 || (total > FEW && !wanted.has_more()) {
            Searched::Total(total)
        } else if total <= FEW {
            Searched::Calls(found.window(on, Order::Ascending, &ALL).await?)
        } else {
            Searched::No
        })
    }
}

/// Up to this number, reading each record by its id is faster than any index.
const FEW: u64 = 1_000;
/// Windows that end at or before this offset are read from the blocks; the keys of all records up to their end are in
/// memory.
const NEAR: u64 = 10_000;
const ALL: Window = Window { limit: u32::MAX, offset: 0, cursor: None };
