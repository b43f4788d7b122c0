//! The query of a list of managed resources: the same for all of them.

use axum::http::Uri;
use sidetone_model::ids::{OrganisationId, TeamId};
use sidetone_model::listing::{Listing, ListingSort};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page;

/// The parameters of one list in addition to the common ones.
pub(crate) struct Kind {
    /// The keys of `sort`.
    pub(crate) sorts: &'static [(&'static str, ListingSort)],
    /// Whether its resources belong to organisations.
    pub(crate) organisation_id: bool,
    /// Whether its resources belong to teams.
    pub(crate) team_id: bool,
}

/// Reads the query of `uri`.
///
/// # Errors
/// `invalid_request` with every wrong parameter; `forbidden` when it filters by a foreign organisation.
pub(crate) fn read(uri: &Uri, caller: &Caller, kind: &Kind) -> Result<Listing, ApiError> {
    let mut listing = Listing::default();
    page::read(uri, |name, value| {
        match name {
            "limit" => listing.window.limit = page::limit(value)?,
            "offset" => listing.window.offset = page::count(value)?,
            "order" => listing.order = page::order(value)?,
            "organisation_id" if kind.organisation_id => {
                listing.organisation_id = Some(page::uuid(value)?.into());
            }
            "q" => listing.q = page::text(value)?,
            "sort" => listing.sort = sort(value, kind.sorts)?,
            "team_id" if kind.team_id => listing.team_id = Some(page::uuid(value)?.into()),
            _ => page::unknown()?,
        }
        Ok(())
    })?;
    caller.narrow(listing.organisation_id)?;
    Ok(listing)
}

fn sort(value: &str, known: &[(&str, ListingSort)]) -> Result<ListingSort, page::Wrong> {
    known.iter().find(|(name, _)| *name == value).map(|(_, sort)| *sort).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("unknown key '{}', must be one of {}", page::shown(value), names.join(", "))
    })
}

/// The parameters of every list, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
pub(crate) struct ListParams {
    /// Items of a page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Items to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
    /// Which way; `asc` unless given.
    #[param(inline)]
    order: Option<OrderKey>,
    /// Free text, in any case, over names and numbers; `%` and `_` match themselves.
    #[param(max_length = 1000)]
    q: Option<String>,
}

/// The parameter of lists whose things belong to organisations, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
pub(crate) struct OrganisationParam {
    /// One organisation; outside the caller's scope answers 403.
    organisation_id: Option<OrganisationId>,
}

/// The parameter of lists whose things belong to teams, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
pub(crate) struct TeamParam {
    /// One team.
    team_id: Option<TeamId>,
}

/// The sort of lists whose things have names, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
pub(crate) struct NameSortParam {
    /// Sorted by what; `id` decides between equals.
    #[param(inline)]
    sort: Option<NameSortKey>,
}

/// The sort of lists whose things have numbers, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
pub(crate) struct NumberSortParam {
    /// Sorted by what; `id` decides between equals.
    #[param(inline)]
    sort: Option<NumberSortKey>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case", default = "name")]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
enum NameSortKey {
    CreatedAt,
    Name,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case", default = "number")]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
enum NumberSortKey {
    CreatedAt,
    Number,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case", default = "asc")]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
enum OrderKey {
    Asc,
    Desc,
}

/// The sorts of [`NameSortParam`].
pub(crate) const BY_NAME: &[(&str, ListingSort)] =
    &[("created_at", ListingSort::CreatedAt), ("name", ListingSort::Name)];
/// The sorts of [`NumberSortParam`].
pub(crate) const BY_NUMBER: &[(&str, ListingSort)] =
    &[("created_at", ListingSort::CreatedAt), ("number", ListingSort::Name)];
