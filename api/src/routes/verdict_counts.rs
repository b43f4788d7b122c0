//! Verdicts of call records, counted by hour, day, trunk, extension, network or User-Agent.

use axum::Json;
use axum::extract::{OriginalUri, State};
use sidetone_model::access::Permission;
use sidetone_model::verdict_counts::{CountBy, VerdictCountsView, view};

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page;
use crate::params::{self, With, query, word};
use crate::routes::cdr_params::CdrFilterParams;
use crate::routes::cdr_query::filter_of;
use crate::state::ApiState;

query! {
    /// What is counted together.
    pub(crate) struct CountParams {
        /// What the legs of a group have in common; `day` by default.
        #[param(inline)]
        by: CountBy = word,
        /// Groups that are listed.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 100)]
        max_groups: u32 = page::limit,
    }
}

/// Count verdicts
///
/// How the legs of the records that match the filters were judged, by hour, day, trunk, extension, network or User-Agent.
/// Hours and days have both legs of each call; a trunk and an extension only the legs that they carried: a call from an
/// extension to a carrier counts its caller's leg for the extension, and its called party's leg for the trunk; a network
/// and a User-Agent those of their parties. Hours and days are listed in their order, the last ones if `max_groups` cuts
/// them; all others the worst first.
///
/// `worse` marks the groups whose share of bad legs is significantly above that of all others. A few bad calls are not
/// marked.
///
/// `by=extension`, `by=network` and `by=user_agent` also need `directory:read`, and `by=trunk` also needs `trunks:write`
/// (403). Give `from`: without it all records are counted. Of User-Agents, the 20,000 most frequent combinations of
/// the texts and verdicts of both sides are counted.
#[utoipa::path(
    get,
    path = "/cdrs/verdicts",
    operation_id = "countVerdicts",
    tag = "Call log",
    params(CdrFilterParams, CountParams),
    responses((status = 200, description = "The counts.", body = VerdictCountsView)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn verdicts(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<VerdictCountsView>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let With(filter, CountParams { by, max_groups }) =
        params::read::<With<CdrFilterParams, CountParams>>(&uri)?;
    let filter = filter_of(filter)?;
    let by = by.unwrap_or(CountBy::Day);
    match by {
        CountBy::Day | CountBy::Hour => {}
        CountBy::Extension | CountBy::Network | CountBy::UserAgent => {
            caller.require(Permission::DirectoryRead)?;
        }
        CountBy::Trunk => caller.require(Permission::TrunksWrite)?,
    }
    caller.narrow(filter.organisation_id)?;
    let groups = state.cdrs.verdicts(caller.scope(), &filter, by).await?;
    Ok(Json(view(by, groups, max_groups.unwrap_or(GROUPS_DEFAULT) as usize)))
}

/// Groups of an answer, unless `max_groups` names another number.
const GROUPS_DEFAULT: u32 = 100;
