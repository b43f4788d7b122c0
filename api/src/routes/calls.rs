//! Live calls.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::Uri;
use sidetone_model::access::Permission;
use sidetone_model::call::Direction;
use sidetone_model::ids::{CallId, ExtensionId};
use sidetone_model::live_call::{CallState, LiveCall, LiveCallQuery};
use sidetone_model::page::Page;
use utoipa::IntoParams;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::listing::OrganisationParam;
use crate::managed::seen;
use crate::page::{self, Wrong};
use crate::state::ApiState;

/// The parameters of the list, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `query` names every wrong parameter")]
pub(crate) struct LiveCallParams {
    /// Calls that this extension is on, on either side.
    extension_id: Option<ExtensionId>,
    /// Where the call came from and goes to.
    direction: Option<Direction>,
    /// How far the call is.
    state: Option<CallState>,
    /// How many calls at most.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i32>,
    /// How many calls to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
}

/// List live calls
///
/// A page of the calls that are up or being set up now, newest first. Every filter that is given must hold. Who has the
/// role `team_supervisor` or `agent` sees their own team's calls. A call that is over is in the call log.
#[utoipa::path(
    get,
    path = "/calls",
    operation_id = "listCalls",
    tag = "Live calls",
    params(LiveCallParams, OrganisationParam),
    responses(
        (status = 200, description = "The page.", body = Page<LiveCall>),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<LiveCall>>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let query = query(&uri)?;
    caller.narrow(query.organisation_id)?;
    Ok(Json(state.live_calls()?.list(caller.scope(), query).await?))
}

/// Read a live call
///
/// 404 once the call is over: then the call log has its record under the same UUID.
#[utoipa::path(
    get,
    path = "/calls/{uuid}",
    operation_id = "getCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    responses(
        (status = 200, description = "The call.", body = LiveCall),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
) -> Result<Json<LiveCall>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call = page::path_id("uuid", &uuid)?;
    let found = state.live_calls()?.find(call).await?;
    let scope = caller.scope();
    Ok(Json(seen(found, "call that is up", |call| scope.covers(call.organisation_id, call.team_id))?))
}

fn query(uri: &Uri) -> Result<LiveCallQuery, ApiError> {
    let mut query = LiveCallQuery::default();
    page::read(uri, |name, value| {
        match name {
            "direction" => query.direction = Some(direction(value)?),
            "extension_id" => query.extension_id = Some(page::uuid(value)?.into()),
            "limit" => query.window.limit = page::limit(value)?,
            "offset" => query.window.offset = page::count(value)?,
            "organisation_id" => query.organisation_id = Some(page::uuid(value)?.into()),
            "state" => query.state = Some(call_state(value)?),
            _ => page::unknown()?,
        }
        Ok(())
    })?;
    Ok(query)
}

fn direction(value: &str) -> Result<Direction, Wrong> {
    Direction::from_name(value).ok_or_else(|| "must be inbound, internal or outbound".to_owned())
}

fn call_state(value: &str) -> Result<CallState, Wrong> {
    CallState::from_name(value).ok_or_else(|| "must be answered, queued or ringing".to_owned())
}
