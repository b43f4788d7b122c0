//! The sessions of conference rooms: their members and times.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use sidetone_model::access::Permission;
use sidetone_model::cursor::Cursor;
use sidetone_model::ids::{ConferenceSessionId, RoomId};
use sidetone_model::page::{Page, Window};
use sidetone_model::room::session::SessionRecord;
use sidetone_model::room::{RoomName, RoomNameError};

use crate::auth::Caller;
use crate::error::ApiError;
use crate::page::{self, path_id};
use crate::params::{self, query};
use crate::state::ApiState;

/// List the sessions of a room
///
/// Every session of the room, newest first: from the first member's arrival to the last one's departure, with the
/// members, the default members that it rang, and whether there is a recording. A live session has `ended_at` null;
/// it is listed within a second of the first member's arrival. Merged calls have no stored room: their session is read
/// at `GET /conferences/{room}/sessions`.
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}/sessions",
    operation_id = "listConferenceSessions",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room."), WindowParams),
    responses((status = 200, description = "The sessions.", body = Page<SessionRecord>)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Page<SessionRecord>>, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let room: RoomId = path_id("id", &id)?;
    let window = window(&uri, &caller)?;
    let now = (state.clock)();
    Ok(Json(state.room_history()?.sessions.sessions(caller.scope(), room.into(), window, now).await?))
}

/// Read a session of a room
///
/// One session as `GET /conference-rooms/{id}/sessions` lists it.
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}/sessions/{sid}",
    operation_id = "getConferenceSession",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room."),
        ("sid" = ConferenceSessionId, Path, description = "The session."),
    ),
    responses((status = 200, description = "The session.", body = SessionRecord)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, sid)): Path<(String, String)>,
) -> Result<Json<SessionRecord>, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let (room, session): (RoomId, _) = (path_id("id", &id)?, path_id("sid", &sid)?);
    let now = (state.clock)();
    Ok(Json(state.room_history()?.sessions.session(caller.scope(), room.into(), session, now).await?))
}

/// List the sessions of a room by the switch's name
///
/// As `GET /conference-rooms/{id}/sessions`, also of merged calls (`svc-conf-<call uuid>`), which have no stored room.
/// Merged calls have one session, which stays readable after its end.
#[utoipa::path(
    get,
    path = "/conferences/{room}/sessions",
    operation_id = "listSessionsByRoomName",
    tag = "Live conference rooms",
    params(("room" = String, Path, description = ROOM_NAME), WindowParams),
    responses((status = 200, description = "The sessions.", body = Page<SessionRecord>)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn list_by_name(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    uri: Uri,
) -> Result<Json<Page<SessionRecord>>, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let room = room_name(&room)?;
    let window = window(&uri, &caller)?;
    let now = (state.clock)();
    Ok(Json(state.room_history()?.sessions.sessions(caller.scope(), room, window, now).await?))
}

/// Read a session of a room by the switch's name
///
/// One session as `GET /conferences/{room}/sessions` lists it.
#[utoipa::path(
    get,
    path = "/conferences/{room}/sessions/{sid}",
    operation_id = "getSessionByRoomName",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = ROOM_NAME),
        ("sid" = ConferenceSessionId, Path, description = "The session."),
    ),
    responses((status = 200, description = "The session.", body = SessionRecord)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn find_by_name(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, sid)): Path<(String, String)>,
) -> Result<Json<SessionRecord>, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let (room, session) = (room_name(&room)?, path_id("sid", &sid)?);
    let now = (state.clock)();
    Ok(Json(state.room_history()?.sessions.session(caller.scope(), room, session, now).await?))
}

/// Reads the switch's name of a room in a path.
///
/// # Errors
/// `not_found` for an invalid name, as for a room that is not live.
pub(crate) fn room_name(text: &str) -> Result<RoomName, ApiError> {
    text.parse().map_err(|error: RoomNameError| {
        ApiError::not_found(format!("there is no such room: its name {error}"))
    })
}

/// Reads the window of a list from `uri`.
///
/// # Errors
/// `invalid_request` with every wrong parameter.
pub(crate) fn window(uri: &Uri, caller: &Caller) -> Result<Window, ApiError> {
    let WindowParams { limit, offset, cursor } = params::read(uri)?;
    params::window(uri, caller, (limit, offset, cursor))
}

query! {
    /// The parameters of a list that has no filters.
    pub(crate) struct WindowParams {
        /// Items on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Items to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
    }
}

/// The description of the path parameter `room`.
pub(crate) const ROOM_NAME: &str =
    "The switch's name of the room: `svc-room-<room id>`, or `svc-conf-<call uuid>` for merged calls.";
