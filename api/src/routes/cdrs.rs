//! The call log.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::cdr::{Cdr, CdrView};
use sidetone_model::ids::CallId;
use sidetone_model::page::Page;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page;
use crate::routes::cdr_query::{self, ListQuery};
use crate::state::ApiState;

/// List call records
///
/// A page of the caller's records, newest first by default. A record must match every given filter. Callers with the
/// role `team_supervisor` or `agent` see only the records of their own team.
#[utoipa::path(
    get,
    path = "/cdrs",
    operation_id = "listCdrs",
    tag = "Call log",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<CdrView<'static>>)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let query = cdr_query::list(&uri, &caller)?;
    caller.narrow(query.filter.organisation_id)?;
    let page = state.cdrs.list(caller.scope(), query).await?;
    let margin = caller.may(Permission::MarginRead);
    Ok(Json(page.as_ref().map(|cdr| cdr.view(margin))).into_response())
}

/// Read a call record
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}",
    operation_id = "getCdr",
    tag = "Call log",
    params(("uuid" = CallId, Path, description = "The call's `call_uuid`.")),
    responses((status = 200, description = "The record.", body = CdrView<'static>)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = page::path_id("uuid", &uuid)?;
    let cdr = record_of(&caller, &state, call).await?;
    Ok(Json(cdr.view(caller.may(Permission::MarginRead))).into_response())
}

/// Returns the record of a call if the caller may see it.
///
/// # Errors
/// 404 if it does not exist, 403 if it belongs to another organisation or team.
pub(crate) async fn record_of(caller: &Caller, state: &ApiState, call: CallId) -> Result<Cdr, ApiError> {
    let found = state.cdrs.find(call).await?;
    let cdr = found.ok_or_else(|| ApiError::not_found("there is no such call record"))?;
    may_see(caller, &cdr)?;
    Ok(cdr)
}

/// Refuses the record of another organisation or team.
///
/// # Errors
/// 403 for such a record.
pub(crate) fn may_see(caller: &Caller, cdr: &Cdr) -> Result<(), ApiError> {
    if caller.scope().covers(cdr.organisation_id, cdr.team_id) {
        return Ok(());
    }
    Err(ApiError::forbidden("the call record belongs to another organisation or team"))
}
