//! Meetings: the report of a virtual agent that took part in a session of a room.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::{ConferenceSessionId, RoomId};
use sidetone_model::page::Page;
use sidetone_model::room::meeting::{Meeting, MeetingSummary};

use crate::auth::Caller;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::page::path_id;
use crate::routes::meeting_body::MeetingBody;
use crate::routes::room_sessions::{WindowParams, window};
use crate::state::ApiState;

/// Read the meeting of a session
///
/// The virtual agent's report of the session: the minutes, or why there are none, the notes on decisions, and the
/// transcript. 404 when no virtual agent took part in the session, and on an install without the AI module.
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}/sessions/{sid}/meeting",
    operation_id = "getMeeting",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room."),
        ("sid" = ConferenceSessionId, Path, description = "The session."),
    ),
    responses((status = 200, description = "The meeting.", body = Meeting)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, sid)): Path<(String, String)>,
) -> Result<Json<Meeting>, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let (room, session) = (path_id("id", &id)?, path_id("sid", &sid)?);
    Ok(Json(state.meetings()?.meeting(caller.scope(), room, session).await?))
}

/// List the meetings of a room
///
/// One row for each session of the room that a virtual agent took part in, newest first; `notes` and `turns` are
/// counts. 404 on an install without the AI module.
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}/meetings",
    operation_id = "listMeetings",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room."), WindowParams),
    responses((status = 200, description = "The meetings.", body = Page<MeetingSummary>)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Page<MeetingSummary>>, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let room: RoomId = path_id("id", &id)?;
    let window = window(&uri, &caller)?;
    Ok(Json(state.meetings()?.meetings(caller.scope(), room, window).await?))
}

/// Report the meeting of a session
///
/// For the service that runs the virtual agents. Send a report when something has changed; a repeated report changes
/// nothing. Each report contains the whole meeting and replaces the one before. The state is `running` while the
/// agent is in the room, `writing` while it writes, then `ready` with `minutes` or `failed` with `minutes_error`. The
/// state never goes back, except from `failed` to `ready`. The first report with minutes emits the event
/// `conference.minutes`, once per session. 404 on an install without the AI module.
#[utoipa::path(
    put,
    path = "/conference-rooms/{id}/sessions/{sid}/meeting",
    operation_id = "putMeeting",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room."),
        ("sid" = ConferenceSessionId, Path, description = "The session."),
    ),
    request_body = MeetingBody,
    responses(
        (status = 200, description = "The meeting as it is stored.", body = Meeting),
        (status = 201, description = "The first report of the session.", body = Meeting),
        (status = 409, description = "The report contradicts the stored one: another agent, or an earlier state (`conflict`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conversations:write"))),
)]
pub(crate) async fn put(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, sid)): Path<(String, String)>,
    OriginalUri(uri): OriginalUri,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConversationsWrite)?;
    let (room, session) = (path_id("id", &id)?, path_id("sid", &sid)?);
    let meetings = state.meetings()?;
    let report = body.read(MeetingBody::read)?.into();
    let reported = meetings.report(caller.scope(), room, session, report, (state.clock)()).await?;
    let body = Json(reported.meeting).into_response();
    if !reported.created {
        return Ok(body);
    }
    let location = HeaderValue::from_str(uri.path()).map_err(|_| ApiError::internal())?;
    Ok((StatusCode::CREATED, [(LOCATION, location)], body).into_response())
}
