//! Controls of one member of a live room beyond mute and kick: loudness, deafness, hold, a locked mute, a whisper.
//!
//! Every action is idempotent.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use sidetone_model::access::Permission;
use sidetone_model::room::{Control, GainChange, MemberGain};

use crate::auth::Caller;
use crate::body::declare::{integer, optional, required};
use crate::body::{Body, Fields, NoBody, body};
use crate::error::{ApiError, ErrorBody};
use crate::routes::conference_controls::{member, obey, run};
use crate::state::ApiState;

body! {
    /// How loud a member is for the others: at least one of both.
    pub(crate) struct GainBody {
        /// The fixed gain in decibels.
        #[schema(value_type = Option<i32>, minimum = -24, maximum = 24, example = 6)]
        gain_db: Option<i8> = optional(integer(-GAIN_MAX..=GAIN_MAX)),
        /// Whether the member's speech is brought to -24 dBov, before the fixed gain.
        automatic_gain: Option<bool> = optional(Fields::boolean),
    }
    checks |fields: &mut Fields| {
        let is_empty = gain_db == Some(None) && automatic_gain == Some(None);
        if is_empty && !fields.is_refused("gain_db") && !fields.is_refused("automatic_gain") {
            _ = fields.refuse::<()>("gain_db", "is required, or automatic_gain");
        }
    };
}

body! {
    /// Who is to hear the member.
    pub(crate) struct WhisperBody {
        /// The `id` of another member.
        #[schema(minimum = 1, example = 2)]
        to: u32 = required(integer(1..=u32::MAX.into())),
    }
}

const GAIN_MAX: i64 = MemberGain::DECIBELS_MAX as i64;

/// Let a member hear nothing
///
/// The member hears silence in place of the room, and the prompts for it alone. The others still hear it.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/deaf",
    operation_id = "deafConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    responses(
        (status = 204, description = "The member hears nothing of the room."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn deaf(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Deaf(member(&id)?, true))).await
}

/// Change how loud a member is
///
/// Changes the gain with which the others hear the member. A field that is left out stays as it is.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/gain",
    operation_id = "gainConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    request_body = GainBody,
    responses(
        (status = 204, description = "The gain is as requested."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn gain(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::ConferencesControl)?;
    let GainBody { gain_db, automatic_gain } = body.read(GainBody::read)?;
    let change = GainChange { gain_db, automatic_gain };
    run(&caller, &state, &room, Control::Gain(member(&id)?, change)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Put a member on hold
///
/// The member hears the hold music, is not heard and is not recorded.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/hold",
    operation_id = "holdConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    responses(
        (status = 204, description = "The member is on hold."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn hold(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Hold(member(&id)?, true))).await
}

/// Mute a member, who cannot unmute
///
/// Mutes the member like `mute`, and a participant cannot end that with `*2`: only `unmute` does. A moderator still
/// can.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/lock-mute",
    operation_id = "lockMuteConferenceMember",
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
pub(crate) async fn lock_mute(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::MuteLocked(member(&id)?))).await
}

/// Let a member hear again
///
/// The member hears the room again.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/undeaf",
    operation_id = "undeafConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    responses(
        (status = 204, description = "The member is not deaf."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn undeaf(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Deaf(member(&id)?, false))).await
}

/// Take a member from hold
///
/// The member hears the room and is heard again.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/unhold",
    operation_id = "unholdConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    responses(
        (status = 204, description = "The member is not on hold."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn unhold(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Hold(member(&id)?, false))).await
}

/// End a whisper
///
/// All members hear the member again.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/unwhisper",
    operation_id = "unwhisperConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    responses(
        (status = 204, description = "All members hear the member."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn unwhisper(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::Whisper(member(&id)?, None))).await
}

/// Let only one member hear a member
///
/// The member hears the room, and only the member `to` hears it: to coach an agent, for example. It is in no recording.
/// When that member leaves, the whisperer is muted and the whisper ends.
#[utoipa::path(
    post,
    path = "/conferences/{room}/members/{id}/whisper",
    operation_id = "whisperConferenceMember",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = "The switch's name of the room."),
        ("id" = u32, Path, description = "The member's `id`."),
    ),
    request_body = WhisperBody,
    responses(
        (status = 204, description = "Only the member `to` hears the member."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn whisper(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, id)): Path<(String, String)>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::ConferencesControl)?;
    let WhisperBody { to } = body.read(WhisperBody::read)?;
    run(&caller, &state, &room, Control::Whisper(member(&id)?, Some(to))).await?;
    Ok(StatusCode::NO_CONTENT)
}
