//! The call log.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::page::Page;
use sidetone_model::problem::FieldProblem;

use crate::auth::Caller;
use crate::error::ApiError;
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
    narrow(&caller, query.filter.organisation_id)?;
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
    let call = call_id(&uuid)?;
    let cdr =
        state.cdrs.find(call).await?.ok_or_else(|| ApiError::not_found("there is no such call record"))?;
    if !caller.scope().covers(cdr.organisation_id) {
        return Err(ApiError::forbidden("the call record belongs to another organisation"));
    }
    Ok(Json(cdr.view(caller.may(Permission::MarginRead))).into_response())
}

fn call_id(text: &str) -> Result<CallId, ApiError> {
    cdr_query::uuid(text)
        .map(CallId)
        .map_err(|message| ApiError::invalid(vec![FieldProblem { field: "uuid".to_owned(), message }]))
}

/// Refuses a list of an organisation that the caller may not see, whether it exists or not.
pub(crate) fn narrow(caller: &Caller, organisation: Option<OrganisationId>) -> Result<(), ApiError> {
    match organisation {
        Some(organisation) if !caller.scope().covers(organisation) => {
            Err(ApiError::forbidden("organisation_id is outside the scope of the key"))
        }
        _ => Ok(()),
    }
}
