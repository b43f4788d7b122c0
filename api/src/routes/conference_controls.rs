//! Controls of a live room: every action that a moderator has keys for, and a few more.
//!
//! Every action except mute-all, which toggles, is idempotent. None needs a body; an empty object is
//! accepted.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::problem::FieldProblem;
use sidetone_model::room::{Control, ControlDone};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::declare::{integer, optional, required};
use crate::body::{Body, Fields, NoBody, body};
use crate::error::{ApiError, ErrorBody};
use crate::routes::conferences::visible;
use crate::state::ApiState;

/// Whether all participants are muted.
#[derive(Serialize, ToSchema)]
pub(crate) struct AllMuted {
    /// True when all members except moderators are muted.
    all_muted: bool,
}

body! {
    /// Whether to record.
    pub(crate) struct RecordBody {
        /// True starts recording the whole mix, false stops it.
        on: bool = required(Fields::boolean),
        /// With `on`: 1 records the whole mix on one channel, 2 the moderators on the left and all others on the right;
        /// while there is no moderator, the member who has been there for longest is on the left. The default is that of
        /// the stored room.
        #[schema(value_type = Option<i32>, minimum = 1, maximum = 2)]
        channels: Option<u16> = optional(integer(1..=2)),
    }
}

/// End a room
///
/// Hangs up all members and closes the room.
#[utoipa::path(
    post,
    path = "/conferences/{room}/end",
    operation_id = "endConference",
    tag = "Live conference rooms",
    params(("room" = String, Path, description = "The switch's name of the room.")),
    responses(
        (status = 204, description = "All members are hung up."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn end(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::End)).await
}

/// Hang a member up
///
/// Removes the member from the room and ends the call.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/kick",
    operation_id = "kickConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    responses(
        (status = 204, description = "The member is hung up."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn kick(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Kick(member(&id)?))).await
}

/// Lock a room
///
/// Only moderators can join. A locked room stays locked.
#[utoipa::path(
    post,
    path = "/conferences/{room}/lock",
    operation_id = "lockConference",
    tag = "Live conference rooms",
    params(("room" = String, Path, description = "The switch's name of the room.")),
    responses(
        (status = 204, description = "The room is locked."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn lock(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Lock)).await
}

/// Mute a member
///
/// Other members no longer hear this member, and the recording does not contain them.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/mute",
    operation_id = "muteConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    responses(
        (status = 204, description = "The member is muted."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn mute(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Mute(member(&id)?))).await
}

/// Mute or unmute all participants
///
/// Toggles `all_muted`. The first call mutes all members except moderators, and those who join later. The next call
/// unmutes the members that it muted.
#[utoipa::path(
    post,
    path = "/conferences/{room}/mute-all",
    operation_id = "muteAllConference",
    tag = "Live conference rooms",
    params(("room" = String, Path, description = "The switch's name of the room.")),
    responses(
        (status = 200, description = "The current state.", body = AllMuted),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn mute_all(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    body: NoBody,
) -> Result<Json<AllMuted>, ApiError> {
    caller.require(Permission::ConferencesControl)?;
    body.require()?;
    match run(&caller, &state, &room, Control::MuteAll).await? {
        ControlDone::AllMuted(all_muted) => Ok(Json(AllMuted { all_muted })),
        ControlDone::Done => Err(ApiError::internal()),
    }
}

/// Record a room, or stop recording
///
/// The whole mix is written to one file per session, which can be played when the session is over. All recordings of a
/// session have the same `channels`. A recording that cannot be written answers 409 with the cause. One that begins and
/// fails later, on a full disk for example, emits the event `recording.failed`; `recording` of the live room is false then.
#[utoipa::path(
    post,
    path = "/conferences/{room}/record",
    operation_id = "recordConference",
    tag = "Live conference rooms",
    params(("room" = String, Path, description = "The switch's name of the room.")),
    request_body = RecordBody,
    responses(
        (status = 204, description = "Recording is on or off as requested."),
        (
            status = 409,
            description = "The room is not recorded: the disk has too little space or cannot be written, or the session's \
                           file has another number of channels (`conflict`).",
            body = ErrorBody,
        ),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn record(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::ConferencesControl)?;
    let RecordBody { on, channels } = body.read(RecordBody::read)?;
    let room = visible(&caller, &state, &room).await?;
    if on
        && !room.recording
        && let Some(recordings) = &state.recordings
    {
        recordings.require_writable(room.organisation_id).await?;
    }
    if let Some(channels) = channels.filter(|_| on) {
        state.live_rooms()?.control(room.room, Control::RecordChannels(channels)).await?;
    }
    state.live_rooms()?.control(room.room, Control::Record(on)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Unlock a room
///
/// All callers can join again.
#[utoipa::path(
    post,
    path = "/conferences/{room}/unlock",
    operation_id = "unlockConference",
    tag = "Live conference rooms",
    params(("room" = String, Path, description = "The switch's name of the room.")),
    responses(
        (status = 204, description = "The room is not locked."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn unlock(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Unlock)).await
}

/// Unmute a member
///
/// The other members hear this member again.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/unmute",
    operation_id = "unmuteConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    responses(
        (status = 204, description = "The member is not muted."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn unmute(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Unmute(member(&id)?))).await
}

/// Executes `control` on a live room; the closure runs after the permission check.
pub(super) async fn obey(
    caller: &Caller,
    state: &ApiState,
    room: &str,
    body: NoBody,
    control: impl FnOnce() -> Result<Control, ApiError>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::ConferencesControl)?;
    body.require()?;
    run(caller, state, room, control()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Executes `control` on a room that the caller may see.
pub(super) async fn run(
    caller: &Caller,
    state: &ApiState,
    room: &str,
    control: Control,
) -> Result<ControlDone, ApiError> {
    let room = visible(caller, state, room).await?;
    Ok(state.live_rooms()?.control(room.room, control).await?)
}

/// Reads the member id in the path; only digits.
pub(super) fn member(id: &str) -> Result<u32, ApiError> {
    let digits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    id.parse().ok().filter(|_| digits).ok_or_else(|| {
        ApiError::invalid(vec![FieldProblem {
            field: "id".to_owned(),
            message: "must be a member's id, a whole number".to_owned(),
        }])
    })
}
