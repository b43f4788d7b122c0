//! Live conference rooms.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::access::{Permission, Scope, Who};
use sidetone_model::ids::OrganisationId;
use sidetone_model::page::{Page, Window};
use sidetone_model::room::{LiveRoom, RoomName, RoomViewer};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::listing::OrganisationParam;
use crate::page;
use crate::state::ApiState;

/// The parameters of the list, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `query` names every wrong parameter")]
pub(crate) struct LiveRoomParams {
    /// How many rooms at most.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i32>,
    /// How many rooms to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
}

/// A conference room that somebody is in.
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
/// A page of the rooms that somebody is in now, the one that opened last first. Who has the role `team_supervisor` or
/// `agent` sees those that a member of their team, or their own extension, is in.
#[utoipa::path(
    get,
    path = "/conferences",
    operation_id = "listConferences",
    tag = "Live conference rooms",
    params(LiveRoomParams, OrganisationParam),
    responses(
        (status = 200, description = "The page.", body = Page<LiveRoomView>),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let (organisation, window) = query(&uri)?;
    caller.narrow(organisation)?;
    let viewer = viewer(&caller, &state).await?;
    let page = state.live_rooms()?.list(viewer, organisation, window).await?;
    Ok(Json(page.map(|room| view(&caller, room))).into_response())
}

/// Read a live room
///
/// 404 when nobody is in it. `revision` grows with every change, and is in the events of the room: of two readings the
/// larger is newer. `If-None-Match` with the `ETag` of an earlier reading answers 304 while nothing has changed but
/// `run_seconds`.
#[utoipa::path(
    get,
    path = "/conferences/{room}",
    operation_id = "getConference",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room, such as `svc-room-<room id>`."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier reading."),
    ),
    responses(
        (
            status = 200,
            description = "The room.",
            body = LiveRoomView,
            headers(("ETag" = String, description = "Of this revision of the room.")),
        ),
        (status = 304, description = "Nothing has changed since the reading that `If-None-Match` names."),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
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
/// By the call's UUID or that of any of its legs; 404 when it is in none.
#[utoipa::path(
    get,
    path = "/conferences/by-call/{uuid}",
    operation_id = "getConferenceByCall",
    tag = "Live conference rooms",
    params(
        ("uuid" = Uuid, Path, description = "The call's `call_uuid`, or the `uuid` of one of its legs."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier reading."),
    ),
    responses(
        (
            status = 200,
            description = "The room.",
            body = LiveRoomView,
            headers(("ETag" = String, description = "Of this revision of the room.")),
        ),
        (status = 304, description = "Nothing has changed since the reading that `If-None-Match` names."),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
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

/// Returns the live room in the path if the caller may see it: 404 when it has no members, whatever its name.
pub(super) async fn visible(caller: &Caller, state: &ApiState, name: &str) -> Result<LiveRoom, ApiError> {
    let live = state.live_rooms()?;
    let found = match name.parse::<RoomName>() {
        Ok(name) => live.find(name).await?,
        Err(_) => None,
    };
    let found = found.ok_or_else(|| ApiError::not_found("nobody is in the room"))?;
    seen(caller, state, found).await
}

async fn seen(caller: &Caller, state: &ApiState, room: LiveRoom) -> Result<LiveRoom, ApiError> {
    let viewer = viewer(caller, state).await?;
    if viewer.sees(&room) {
        return Ok(room);
    }
    Err(ApiError::forbidden("the live room is outside the caller's scope"))
}

/// The viewer of live rooms. The caller's own extensions matter only to a caller who sees one team.
async fn viewer(caller: &Caller, state: &ApiState) -> Result<RoomViewer, ApiError> {
    let scope = caller.scope();
    let extensions = match (scope, caller.principal().who) {
        (Scope::Team { .. }, Who::User(user)) => state.rooms()?.extensions_of(user).await?,
        _ => Vec::new(),
    };
    Ok(RoomViewer { scope, extensions })
}

/// Every room that is shown is in the caller's scope.
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

fn query(uri: &Uri) -> Result<(Option<OrganisationId>, Window), ApiError> {
    let (mut organisation, mut window) = (None, Window::default());
    page::read(uri, |name, value| {
        match name {
            "limit" => window.limit = page::limit(value)?,
            "offset" => window.offset = page::count(value)?,
            "organisation_id" => organisation = Some(page::uuid(value)?.into()),
            _ => page::unknown()?,
        }
        Ok(())
    })?;
    Ok((organisation, window))
}
