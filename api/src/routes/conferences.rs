//! Live conference rooms.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::cursor::Cursor;
use sidetone_model::ids::RoomId;
use sidetone_model::page::Page;
use sidetone_model::room::{LiveRoom, RoomName, RoomViewer};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::{Caller, own_extensions};
use crate::error::{ApiError, ErrorBody};
use crate::listing::OrganisationParam;
use crate::page;
use crate::params::{self, With, query};
use crate::state::ApiState;

query! {
    /// The parameters of the list.
    pub(crate) struct LiveRoomParams {
        /// Rooms on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Rooms to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
    }
}

type ListQuery = With<LiveRoomParams, OrganisationParam>;

/// A live conference room.
#[derive(Serialize, ToSchema)]
#[schema(as = LiveConferenceView)]
pub(crate) struct LiveRoomView {
    #[serde(flatten)]
    room: LiveRoom,
    /// Whether the caller of this request may use the controls.
    can_control: bool,
}

/// List live rooms
///
/// A page of the live rooms, the latest first. Callers with the role `team_supervisor` or `agent` see the rooms with
/// a member of their team or their own extension.
///
/// In a cluster the page has those of all nodes; nodes that do not answer within 300 ms are named in the header
/// `X-Sidetone-Missing`, `offset` and `limit` together are at most 500, and there is one page by cursor.
#[utoipa::path(
    get,
    path = "/conferences",
    operation_id = "listConferences",
    tag = "Live conference rooms",
    params(ListQuery),
    responses(
        (status = 200, description = "The page.", body = Page<LiveRoomView>),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let With(LiveRoomParams { limit, offset, cursor }, OrganisationParam { organisation_id: organisation }) =
        params::read::<ListQuery>(&uri)?;
    let window = params::window(&uri, &caller, (limit, offset, cursor))?;
    caller.narrow(organisation)?;
    let viewer = viewer(&caller, &state).await?;
    let page = state.live_rooms()?.list(viewer, organisation, window).await?;
    Ok(Json(page.map(|room| view(&caller, room))).into_response())
}

/// Read a live room
///
/// 404 when the room is not live. `revision` grows with every change and is part of the room's events: the answer
/// with the larger revision is newer. `If-None-Match` with an earlier `ETag` gets 304 while only `run_seconds` has
/// changed.
#[utoipa::path(
    get,
    path = "/conferences/{room}",
    operation_id = "getConference",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room, such as `svc-room-<room id>`."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer."),
    ),
    responses(
        (
            status = 200,
            description = "The room.",
            body = LiveRoomView,
            headers(("ETag" = String, description = "Identifies this revision of the room.")),
        ),
        (status = 304, description = "The room has not changed since the answer with the `ETag` in `If-None-Match`."),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let room = visible(&caller, &state, &room).await?;
    Ok(answered(view(&caller, room), &headers))
}

/// Read the live room that a call is in
///
/// Accepts the UUID of the call or of one of its legs; 404 when the call is in no room.
#[utoipa::path(
    get,
    path = "/conferences/by-call/{uuid}",
    operation_id = "getConferenceByCall",
    tag = "Live conference rooms",
    params(
        ("uuid" = Uuid, Path, description = "The call's `call_uuid`, or the `uuid` of one of its legs."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer."),
    ),
    responses(
        (
            status = 200,
            description = "The room.",
            body = LiveRoomView,
            headers(("ETag" = String, description = "Identifies this revision of the room.")),
        ),
        (status = 304, description = "The room has not changed since the answer with the `ETag` in `If-None-Match`."),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn by_call(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let call: Uuid = page::path_id("uuid", &uuid)?;
    let found = state.live_rooms()?.by_call(call).await?;
    let found = found.ok_or_else(|| ApiError::not_found("the call is in no conference room"))?;
    let room = seen(&caller, &state, found).await?;
    Ok(answered(view(&caller, room), &headers))
}

/// Returns the live room in the path if the caller may see it: 404 if it has no members or the name is
/// invalid.
pub(super) async fn visible(caller: &Caller, state: &ApiState, name: &str) -> Result<LiveRoom, ApiError> {
    let live = state.live_rooms()?;
    let found = match name.parse::<RoomName>() {
        Ok(name) => live.find(name).await?,
        Err(_) => None,
    };
    let found = found.ok_or_else(|| ApiError::not_found("the room is not live"))?;
    seen(caller, state, found).await
}

/// Whether the stored room is live and the caller sees it.
pub(super) async fn is_seen(caller: &Caller, state: &ApiState, room: RoomId) -> Result<bool, ApiError> {
    let Some(live) = &state.live_rooms else { return Ok(false) };
    match live.find(RoomName::from(room)).await? {
        Some(room) => Ok(viewer(caller, state).await?.sees(&room)),
        None => Ok(false),
    }
}

async fn seen(caller: &Caller, state: &ApiState, room: LiveRoom) -> Result<LiveRoom, ApiError> {
    let viewer = viewer(caller, state).await?;
    if viewer.sees(&room) {
        return Ok(room);
    }
    Err(ApiError::forbidden("the live room is outside the caller's scope"))
}

/// The viewer of live rooms. The extensions of the caller matter only if the caller sees one team.
async fn viewer(caller: &Caller, state: &ApiState) -> Result<RoomViewer, ApiError> {
    let extensions = own_extensions(caller.principal(), state).await?;
    Ok(RoomViewer { scope: caller.scope(), extensions })
}

/// Every room passed to this function is in the caller's scope.
pub(super) fn view(caller: &Caller, room: LiveRoom) -> LiveRoomView {
    LiveRoomView { room, can_control: caller.may(Permission::ConferencesControl) }
}

/// The room, or 304 if it has not changed.
fn answered(view: LiveRoomView, headers: &HeaderMap) -> Response {
    let controls = if view.can_control { "c" } else { "r" };
    // Weak, because `run_seconds` grows without a change.
    let tag = format!("W/\"{}-{}-{controls}\"", view.room.session_id, view.room.revision);
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    // RFC 9110 §13.1.2: tags are compared weakly, and `*` matches any version.
    let weak = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let same = known
        .flat_map(|value| value.split(','))
        .any(|known| known.trim() == "*" || weak(known) == weak(&tag));
    let mut response =
        if same { StatusCode::NOT_MODIFIED.into_response() } else { Json(view).into_response() };
    // It consists of UUIDs, digits and quotes.
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}
