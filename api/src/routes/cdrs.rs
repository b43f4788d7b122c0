//! The call log.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::CallId;
use sidetone_model::page::Page;
use sidetone_model::problem::FieldProblem;
use uuid::Uuid;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page;
use crate::state::ApiState;

/// `GET /cdrs`: a page of the caller's records, newest first.
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let window = page::window(&uri, &PARAMETERS_LATER)?;
    let Page { items, total, limit, offset } = state.cdrs.list(caller.scope(), window).await?;
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

/// Hyphenated UUIDs alone: the other spellings would give one record several addresses.
fn call_id(text: &str) -> Result<CallId, ApiError> {
    let uuid = if text.len() == UUID_LEN { Uuid::try_parse(text).ok() } else { None };
    uuid.map(CallId).ok_or_else(|| {
        ApiError::invalid(vec![FieldProblem {
            field: "uuid".to_owned(),
            message: "must be a UUID".to_owned(),
        }])
    })
}

/// Parameters of the public document that a later version understands.
const PARAMETERS_LATER: [&str; 18] = [
    "agent_id",
    "campaign_id",
    "did",
    "direction",
    "extension_id",
    "from",
    "hangup_cause",
    "min_billsec",
    "node_id",
    "order",
    "organisation_id",
    "q",
    "sort",
    "team_id",
    "to",
    "transcoded",
    "transport",
    "trunk_id",
];
const UUID_LEN: usize = 36;
