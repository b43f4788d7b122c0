//! Prompts that programs play into live calls.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::call_operation::CallOperation;
use sidetone_model::call_prompt::{LivePrompt, PlaySide};
use sidetone_model::ids::{CallId, PlayId};
use sidetone_model::problem::FieldProblem;
use sidetone_model::prompt::Prompt;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::declare::{optional, required, text};
use crate::body::{Body, NoBody, OpenBody, body};
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::routes::call_operations::live_or_ended;
use crate::state::ApiState;

body! {
    /// A prompt to play into a call.
    pub(crate) struct PlayBody {
        /// The name of a prompt of `GET /organisations/{id}/prompts`.
        #[schema(min_length = 1, max_length = 64, example = "goodbye")]
        prompt: String = required(text(1..=64)),
        /// Who hears it; by default both.
        #[schema(value_type = Option<PlaySide>, example = "both")]
        side: Option<String> = optional(text(1..=16)),
    }
}

/// Play a prompt into a call
///
/// The caller, the called party or both hear a prompt, the organisation's own or the built-in one, in the place of the
/// other party. A party that hears none hears the other as before. During a hold, the party on hold hears it in the
/// place of the music. One prompt plays at a time: another takes its place. `playing` of the live call shows it, and
/// `call.prompt_ended` reports its end with the `result` `finished`, `replaced`, `stopped`, `interrupted` (by a hold, a
/// transfer or a move into a room) or `call_ended`. A recording of the call does not contain the prompt.
///
/// A built-in prompt is in the language of the extension that hears it, else in that of the organisation. Of a call that a
/// transfer or a pick-up has linked with another one, the party of the other call takes the place of the one that left; both
/// calls show the prompt, each with its own `side`.
///
/// 409 while the call is not answered, is in a room, or is being changed, when a party's codec cannot be decoded, and when the
/// call has ended. 422 for an unknown `prompt` or `side`.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/play",
    operation_id = "playPrompt",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    request_body = PlayBody,
    responses(
        (status = 202, description = "The prompt begins.", body = LivePrompt),
        (status = 409, description = "No prompt can be played now (`conflict`).", body = ErrorBody),
        (status = 422, description = "A field is wrong (`unprocessable`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn play(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    let body = body.read_open(["prompt", "side"], PlayBody::read)?;
    live_or_ended(&caller, &state, call).await?;
    let prompt = judged(body)?;
    state.call_requests()?.operate(CallOperation::Play(call, Some(prompt))).await?;
    Ok((StatusCode::ACCEPTED, Json(prompt)).into_response())
}

/// Stop the prompt of a call
///
/// The parties hear each other again. Repeating the request changes nothing.
#[utoipa::path(
    delete,
    path = "/calls/{uuid}/play",
    operation_id = "stopPrompt",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    responses(
        (status = 204, description = "No prompt plays."),
        (status = 409, description = "The call has ended (`conflict`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn stop(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: NoBody,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    body.require()?;
    live_or_ended(&caller, &state, call).await?;
    state.call_requests()?.operate(CallOperation::Play(call, None)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the prompt to play, or every field that is wrong.
fn judged(body: OpenBody<PlayBody, 2>) -> Result<LivePrompt, ApiError> {
    let [named, heard_by] = body.texts();
    let side_of = |name: Option<&str>| name.map_or(Some(PlaySide::Both), PlaySide::from_name);
    let mut problems = Vec::new();
    let mut wrong = |field: &str, words: Vec<&str>| {
        let message = format!("must be one of {}", words.join(", "));
        problems.push(FieldProblem { field: field.to_owned(), message });
    };
    if named.is_some_and(|named| Prompt::from_name(&named).is_none()) {
        wrong("prompt", Prompt::ALL.iter().map(|prompt| prompt.as_str()).collect());
    }
    if side_of(heard_by.as_deref()).is_none() {
        wrong("side", PlaySide::ALL.iter().map(|(_, name)| *name).collect());
    }
    let PlayBody { prompt, side } = body.refuse_beside(problems)?;
    let known = Prompt::from_name(&prompt).zip(side_of(side.as_deref()));
    let (prompt, side) = known.ok_or_else(ApiError::internal)?;
    Ok(LivePrompt { play_id: PlayId(Uuid::now_v7()), prompt, side })
}
