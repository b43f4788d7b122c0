//! Live calls.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::Uri;
use sidetone_model::access::Permission;
use sidetone_model::call::Direction;
use sidetone_model::call_parking::SLOTS;
use sidetone_model::cursor::Cursor;
use sidetone_model::ids::{CallId, ExtensionId};
use sidetone_model::live_call::{CallState, LiveCall, LiveCallQuery};
use sidetone_model::page::Page;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::listing::OrganisationParam;
use crate::managed::seen;
use crate::page::{self, Wrong};
use crate::params::{self, With, query};
use crate::state::ApiState;

query! {
    /// The parameters of the list.
    pub(crate) struct LiveCallParams {
        /// Calls with this extension on either side.
        extension_id: ExtensionId = page::id,
        /// The direction of the call.
        direction: Direction = direction,
        /// The state of the call.
        state: CallState = call_state,
        /// The call that is parked in this slot.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 99)]
        parked_slot: u16 = slot,
        /// Calls on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Calls to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
    }
}

type ListQuery = With<LiveCallParams, OrganisationParam>;

/// List live calls
///
/// A page of the calls that are up or being set up, newest first. A call must match every given filter. Callers with
/// the role `team_supervisor` or `agent` see the calls of their own team. Finished calls are in the call log.
///
/// In a cluster the page has those of all nodes; nodes that do not answer within 300 ms are named in the header
/// `X-Sidetone-Missing`, `offset` and `limit` together are at most 500, and there is one page by cursor.
#[utoipa::path(
    get,
    path = "/calls",
    operation_id = "listCalls",
    tag = "Live calls",
    params(ListQuery),
    responses(
        (status = 200, description = "The page.", body = Page<LiveCall>),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<LiveCall>>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let query = query(&uri, &caller)?;
    caller.narrow(query.organisation_id)?;
    Ok(Json(state.live_calls()?.list(caller.scope(), query).await?))
}

/// Read a live call
///
/// 404 once the call is over; the call log then has its record under the same UUID.
#[utoipa::path(
    get,
    path = "/calls/{uuid}",
    operation_id = "getCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    responses(
        (status = 200, description = "The call.", body = LiveCall),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
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

fn query(uri: &Uri, caller: &Caller) -> Result<LiveCallQuery, ApiError> {
    let With(query, OrganisationParam { organisation_id }) = params::read::<ListQuery>(uri)?;
    let LiveCallParams { extension_id, direction, state, parked_slot, limit, offset, cursor } = query;
    let window = params::window(uri, caller, (limit, offset, cursor))?;
    Ok(LiveCallQuery { organisation_id, extension_id, direction, state, parked_slot, window })
}

fn direction(value: &str) -> Result<Direction, Wrong> {
    Direction::from_name(value).ok_or_else(|| "must be inbound, internal or outbound".to_owned())
}

fn call_state(value: &str) -> Result<CallState, Wrong> {
    CallState::from_name(value).ok_or_else(|| "must be answered, queued or ringing".to_owned())
}

fn slot(value: &str) -> Result<u16, Wrong> {
    let slot = value.parse().ok().filter(|slot| SLOTS.contains(slot));
    slot.ok_or_else(|| format!("must be a whole number from {} to {}", SLOTS.start(), SLOTS.end()))
}
