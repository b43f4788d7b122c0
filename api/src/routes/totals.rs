//! Totals of call records.

use axum::Json;
use axum::extract::{OriginalUri, State};
use sidetone_model::access::Permission;
use sidetone_model::totals::CdrTotalsView;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::cdr_params::CdrFilterParams;
use crate::routes::cdr_query;
use crate::state::ApiState;

/// Add up call records
///
/// The sums over all records that match the filters, per currency. The sums are exact: stored amounts are added
/// without rounding. A `cost_unconverted` record counts in `sell_amount`, but not in `cost_amount` or `margin`.
#[utoipa::path(
    get,
    path = "/cdrs/totals",
    operation_id = "totalCdrs",
    tag = "Call log",
    params(CdrFilterParams),
    responses((status = 200, description = "The sums.", body = CdrTotalsView)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn totals(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<CdrTotalsView>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let filter = cdr_query::totals(&uri)?;
    caller.narrow(filter.organisation_id)?;
    let totals = state.cdrs.totals(caller.scope(), &filter).await?;
    Ok(Json(totals.view(caller.may(Permission::MarginRead))))
}
