//! The query of a list of managed resources.
//!
//! A handler names its parameters as a type, such as
//! `With<ListParams, With<OrganisationParam, NameSortParam>>`, once for the document and for [`read`].

use axum::http::Uri;
use serde::Deserialize;
use sidetone_model::cursor::Cursor;
use sidetone_model::ids::{OrganisationId, TeamId};
use sidetone_model::listing::{Listing, ListingSort};
use sidetone_model::page::Order;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page;
use crate::params::{self, Parameters, With, query, sort_key, word};

/// Parameters that determine a listing.
pub(crate) trait ListingPart: Parameters {
    /// Puts the given parameters into `listing`.
    fn put(self, listing: &mut Listing);

    /// Takes out `limit`, `offset` and `cursor`.
    fn window(&mut self) -> WindowParts {
        WindowParts::default()
    }
}

/// `limit`, `offset` and `cursor` as they were given.
pub(crate) type WindowParts = (Option<u32>, Option<u64>, Option<Cursor>);

impl<A: ListingPart, B: ListingPart> ListingPart for With<A, B> {
    fn put(self, listing: &mut Listing) {
        self.0.put(listing);
        self.1.put(listing);
    }

    fn window(&mut self) -> WindowParts {
        // The first part has these parameters.
        self.0.window()
    }
}

/// Reads the query of `uri`.
///
/// # Errors
/// `invalid_request` with every wrong parameter; `forbidden` if it filters by another organisation that the
/// caller may not see.
pub(crate) fn read<P: ListingPart>(uri: &Uri, caller: &Caller) -> Result<Listing, ApiError> {
    let mut listing = Listing::default();
    let mut given = params::read::<P>(uri)?;
    listing.window = params::window(uri, caller, given.window())?;
    given.put(&mut listing);
    caller.narrow(listing.organisation_id)?;
    Ok(listing)
}

query! {
    /// The parameters of every list.
    pub(crate) struct ListParams {
        /// Items on a page.
        #[param(value_type = Option<i64>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Items to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
        /// Sort direction; `asc` by default.
        #[param(inline)]
        order: OrderKey = word,
        /// Searches names and numbers, ignoring case; `%` and `_` match literally.
        #[param(max_length = 1000)]
        q: String = page::text,
    }
}

impl ListingPart for ListParams {
    fn put(self, listing: &mut Listing) {
        listing.order = self.order.map_or(listing.order, Order::from);
        listing.q = params::search(self.q);
    }

    fn window(&mut self) -> WindowParts {
        (self.limit, self.offset, self.cursor.take())
    }
}

query! {
    /// The parameter of lists whose resources belong to organisations.
    pub(crate) struct OrganisationParam {
        /// One organisation; 403 outside the caller's scope.
        organisation_id: OrganisationId = page::id,
    }
}

impl ListingPart for OrganisationParam {
    fn put(self, listing: &mut Listing) {
        listing.organisation_id = self.organisation_id;
    }
}

query! {
    /// The parameter of lists whose resources belong to teams.
    pub(crate) struct TeamParam {
        /// One team.
        team_id: TeamId = page::id,
    }
}

impl ListingPart for TeamParam {
    fn put(self, listing: &mut Listing) {
        listing.team_id = self.team_id;
    }
}

query! {
    /// The sort of lists whose resources have names.
    pub(crate) struct NameSortParam {
        /// Sort key; equal values are sorted by `id`.
        #[param(inline)]
        sort: NameSortKey = sort_key,
    }
}

impl ListingPart for NameSortParam {
    fn put(self, listing: &mut Listing) {
        listing.sort = match self.sort {
            Some(NameSortKey::CreatedAt) => ListingSort::CreatedAt,
            Some(NameSortKey::Name) | None => ListingSort::Name,
        };
    }
}

query! {
    /// The sort of lists whose resources have numbers.
    pub(crate) struct NumberSortParam {
        /// Sort key; equal values are sorted by `id`.
        #[param(inline)]
        sort: NumberSortKey = sort_key,
    }
}

impl ListingPart for NumberSortParam {
    fn put(self, listing: &mut Listing) {
        listing.sort = match self.sort {
            Some(NumberSortKey::CreatedAt) => ListingSort::CreatedAt,
            Some(NumberSortKey::Number) | None => ListingSort::Name,
        };
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(default = "name")]
pub(crate) enum NameSortKey {
    CreatedAt,
    Name,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(default = "number")]
pub(crate) enum NumberSortKey {
    CreatedAt,
    Number,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(default = "asc")]
pub(crate) enum OrderKey {
    Asc,
    Desc,
}

impl From<OrderKey> for Order {
    fn from(key: OrderKey) -> Self {
        match key {
            OrderKey::Asc => Order::Ascending,
            OrderKey::Desc => Order::Descending,
        }
    }
}
