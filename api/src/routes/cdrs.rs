//! The call log.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::CallId;
use sidetone_model::page::Page;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page;
use crate::routes::cdr_query;
use crate::state::ApiState;

/// `GET /cdrs`: a page of the caller's records, newest first unless asked otherwise.
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let query = cdr_query::list(&uri)?;
    caller.narrow(query.filter.organisation_id)?;
    let Page { items, total, limit, offset } = state.cdrs.list(caller.scope(), query).await?;
    let margin = caller.may(Permission::MarginRead);
    let items: Vec<_> = items.iter().map(|cdr| cdr.view(margin)).collect();
    Ok(Json(Page { items, total, limit, offset }).into_response())
}

/// `GET /cdrs/{uuid}`: one record; 403 when it is somebody else's.
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = page::path_id("uuid", &uuid)?;
    let cdr =
        state.cdrs.find(call).await?.ok_or_else(|| ApiError::not_found("there is no such call record"))?;
    if !caller.scope().covers(cdr.organisation_id, cdr.team_id) {
        return Err(ApiError::forbidden("the call record belongs to another organisation or team"));
    }
    Ok(Json(cdr.view(caller.may(Permission::MarginRead))).into_response())
}
