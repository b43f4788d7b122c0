//! Sounds that a program plays into a live room: to all members, or to one.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use sidetone_model::access::Permission;
use sidetone_model::problem::FieldProblem;
use sidetone_model::prompt::SoundName;
use sidetone_model::room::{Control, ControlRefused, PlayingSound};

use crate::auth::Caller;
use crate::body::declare::{integer, optional, parsed, required};
use crate::body::{Body, NoBody, body};
use crate::error::{ApiError, ErrorBody};
use crate::routes::conference_controls::obey;
use crate::routes::conferences::visible;
use crate::state::ApiState;

body! {
    /// What is to be played, and to whom.
    pub(crate) struct PlayBody {
        /// The name of a prompt, or of a sound `own-…` of the room's organisation.
        #[schema(value_type = String, pattern = "^[a-z0-9-]{1,36}$", example = "hold-music")]
        prompt: SoundName = required(parsed(sound)),
        /// The `id` of the only member that is to hear it.
        #[schema(minimum = 1, example = 2)]
        member: Option<u32> = optional(integer(1..=u32::MAX.into())),
    }
}

fn sound(name: &str) -> Result<SoundName, &'static str> {
    SoundName::from_name(name).ok_or("must be the name of a prompt, such as alone, or own-…")
}

/// Play a sound into a room
///
/// Plays a prompt or an uploaded sound once, to all members that hear the room, or to one. What all hear is in the
/// recording; members who wait with music do not hear it. One sound plays at a time; prompts play beside it.
/// `conference.updated` reports its begin (`playing`) and its end (`played`).
#[utoipa::path(
    post,
    path = "/conferences/{room}/play",
    operation_id = "playIntoConference",
    tag = "Live conference rooms",
    params(("room" = String, Path, description = "The switch's name of the room.")),
    request_body = PlayBody,
    responses(
        (status = 204, description = "The sound is being played."),
        (status = 409, description = "Another sound is being played.", body = ErrorBody),
        (status = 422, description = "The organisation has no such sound (`unprocessable`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn play(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::ConferencesControl)?;
    let mut body = body.read_open(["prompt", "member"], PlayBody::read)?;
    let live = visible(&caller, &state, &room).await?;
    let [named, heard] = body.texts();
    let mut wrong = Vec::new();
    let mut duration_ms = 0;
    if let Some(prompt) = named.and_then(|named| SoundName::from_name(&named)) {
        match state.prompts()?.ready(live.organisation_id, prompt).await? {
            Some(ready_ms) => duration_ms = ready_ms,
            None => {
                let message = format!("the organisation has no sound {prompt}: upload it first");
                wrong.push(FieldProblem { field: "prompt".to_owned(), message });
            }
        }
    }
    // If the only problem is an absent member, the switch answers 400.
    let is_there = |heard: &String| live.members.iter().any(|member| member.id.to_string() == *heard);
    if heard.is_some_and(|heard| !is_there(&heard)) && (body.is_wrong() || !wrong.is_empty()) {
        let (field, message) = ("member".to_owned(), ControlRefused::NoHearer.to_string());
        body.refuse(vec![FieldProblem { field, message }]);
    }
    if !body.is_wrong() && !wrong.is_empty() {
        return Err(ApiError::unprocessable(wrong));
    }
    let PlayBody { prompt, member } = body.refuse_beside(wrong)?;
    let control = Control::Play { sound: PlayingSound { prompt, member }, duration_ms };
    state.live_rooms()?.control(live.room, control).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stop the sound in a room
///
/// Ends the sound that is being played. Without one, nothing changes.
#[utoipa::path(
    post,
    path = "/conferences/{room}/stop-playing",
    operation_id = "stopPlayingIntoConference",
    tag = "Live conference rooms",
    params(("room" = String, Path, description = "The switch's name of the room.")),
    responses(
        (status = 204, description = "No sound is being played."),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn stop(
    caller: Caller,
    State(state): State<ApiState>,
    Path(room): Path<String>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    obey(&caller, &state, &room, body, || Ok(Control::StopSound)).await
}
