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
/// The sums over every record that the filters of the call log leave, for each currency. They are those of the
/// records to the last digit: amounts are added as they are stored, never rounded again. A record that is
/// `cost_unconverted` counts in `sell_amount` and is left out of `cost_amount` and `margin`.
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
