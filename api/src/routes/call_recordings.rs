//! Recordings of calls: begun by a program, listed, and played.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::call_recording::{CallRecording, RecordAction};
use sidetone_model::ids::{CallId, CallRecordingId};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::declare::{required, word};
use crate::body::{Body, body};
use crate::error::{ApiError, ErrorBody};
use crate::managed::seen;
use crate::page;
use crate::routes::call_operations::visible;
use crate::routes::cdr_params::Binary;
use crate::routes::cdrs::record_of;
use crate::routes::recordings::send;
use crate::state::ApiState;

body! {
    /// A step of the recording of a call.
    pub(crate) struct RecordBody {
        /// `start` and `stop` a recording; `pause` records silence until `resume`.
        action: RecordAction = required(word(&ACTIONS)),
    }
}

/// The recording of a call after a step.
#[derive(Serialize, ToSchema)]
pub(crate) struct CallRecordingState {
    /// The recording; its file can be played once it has ended.
    recording_id: CallRecordingId,
    /// `recording`, `paused` or `stopped`.
    #[schema(example = "recording")]
    state: &'static str,
}

/// The recordings of a call.
#[derive(Serialize, ToSchema)]
pub(crate) struct CallRecordingList {
    /// The oldest first; at most 500.
    items: Vec<CallRecording>,
}

/// Record a call
///
/// Both sides are recorded in one WAV file: 16 kHz, 16 bits, the caller on the left channel and the called party on
/// the right. The calls' packets are relayed as before. During a pause and during a hold by a program, silence is
/// recorded. The end of the call ends the recording, and so do a move into a room and a transfer, when its target has
/// answered. `recording.ready` reports that the file can be played; it is kept for the organisation's
/// `recording_retention_days`.
///
/// Of a call that a transfer or a pick-up has linked with another one, both parties are recorded: the party of the other call
/// takes the place, and the channel, of the one that left. The recording belongs to the call that `start` names; both calls
/// show it, have it among their recordings, and take the other steps. It ends when one of both parties leaves.
///
/// 409 while the call is not answered, is in a room, or is being changed, when a codec cannot be decoded, when the disk of
/// recordings has no room, when the call, or the one that it is linked with, is recorded already (`start`), and when it is not
/// recorded (other steps).
#[utoipa::path(
    post,
    path = "/calls/{uuid}/record",
    operation_id = "recordCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    request_body = RecordBody,
    responses(
        (status = 200, description = "The step is done.", body = CallRecordingState),
        (status = 409, description = "The step cannot be done now (`conflict`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn record(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: Body,
) -> Result<Json<CallRecordingState>, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    let RecordBody { action } = body.read(RecordBody::read)?;
    let live = visible(&caller, &state, call).await?;
    let recording_id = state.call_recordings()?.order(&live, action).await?;
    let state = match action {
        RecordAction::Pause => "paused",
        RecordAction::Resume | RecordAction::Start => "recording",
        RecordAction::Stop => "stopped",
    };
    Ok(Json(CallRecordingState { recording_id, state }))
}

/// List the recordings of a call
///
/// Those that programs have begun, the oldest first, also of a call that is up, and also those that were begun for a call
/// linked with it (`linked_call_uuid`).
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}/recordings",
    operation_id = "listCallRecordings",
    tag = "Call log",
    params(("uuid" = CallId, Path, description = "The record's `call_uuid`.")),
    responses((status = 200, description = "The recordings.", body = CallRecordingList)),
    extensions(("x-permission" = json!("recordings:listen"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
) -> Result<Json<CallRecordingList>, ApiError> {
    caller.require(Permission::RecordingsListen)?;
    let call = page::path_id("uuid", &uuid)?;
    Ok(Json(CallRecordingList { items: of_call(&caller, &state, call).await? }))
}

/// Play the recording of a call
///
/// WAV with two channels: the caller on the left, the called party on the right. Ranges and conditions work as for the
/// recording of a session.
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}/recordings/{rid}/audio",
    operation_id = "getCallRecording",
    tag = "Call log",
    params(
        ("uuid" = CallId, Path, description = "The record's `call_uuid`."),
        ("rid" = CallRecordingId, Path, description = "The recording's `id`."),
        ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-65535`."),
    ),
    responses(
        (status = 200, description = "All of it.", content((inline(Binary) = "audio/wav"))),
        (status = 206, description = "The requested bytes.", content((inline(Binary) = "audio/wav"))),
        (status = 304, description = "The client has this version."),
        (status = 404, description = "There is no such recording, or no file any more.", body = ErrorBody),
        (status = 409, description = "The recording is still being written.", body = ErrorBody),
        (
            status = 416,
            description = "The file does not have these bytes, or several ranges were requested \
                (`range_not_satisfiable`).",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("recordings:listen"))),
)]
pub(crate) async fn play(
    caller: Caller,
    State(state): State<ApiState>,
    Path((uuid, rid)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Permission::RecordingsListen)?;
    let recording = named(&caller, &state, &uuid, &rid).await?;
    let file = state.call_recordings()?.open(&recording).await?;
    Ok(send(file, &recording.id.to_string(), &method, &headers))
}

/// Delete the recording of a call
///
/// The file is deleted; the list shows the recording with 0 bytes. A download that has begun gets the whole file.
#[utoipa::path(
    delete,
    path = "/cdrs/{uuid}/recordings/{rid}",
    operation_id = "deleteCallRecording",
    tag = "Call log",
    params(
        ("uuid" = CallId, Path, description = "The record's `call_uuid`."),
        ("rid" = CallRecordingId, Path, description = "The recording's `id`."),
    ),
    responses(
        (status = 204, description = "Deleted."),
        (status = 404, description = "There is no such recording, or it is deleted.", body = ErrorBody),
        (
            status = 409,
            description = "The recording is still being written, or the node that has the file is gone.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("recordings:delete"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path((uuid, rid)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::RecordingsDelete)?;
    let recording = named(&caller, &state, &uuid, &rid).await?;
    state.call_recordings()?.delete(&recording).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The recording that a path names.
async fn named(caller: &Caller, state: &ApiState, uuid: &str, rid: &str) -> Result<CallRecording, ApiError> {
    let call = page::path_id("uuid", uuid)?;
    let id: CallRecordingId = page::path_id("rid", rid)?;
    let mut recordings = of_call(caller, state, call).await?.into_iter();
    seen(recordings.find(|recording| recording.id == id), "recording of the call", |_| true)
}

/// The recordings of a call that the caller may see. A call without recordings must have a record. A call that has
/// only recordings of a linked call must be live or have a record.
async fn of_call(caller: &Caller, state: &ApiState, call: CallId) -> Result<Vec<CallRecording>, ApiError> {
    let recordings = state.call_recordings()?.list(call).await?;
    let is_covered = match recordings.iter().find(|recording| recording.call_uuid == call) {
        Some(own) => caller.scope().covers(own.organisation_id, own.team_id),
        None if recordings.is_empty() => record_of(caller, state, call).await.map(|_| true)?,
        // A recording of a linked call has the team of that call.
        None => match state.live_calls()?.find(call).await? {
            Some(live) => caller.scope().covers(live.organisation_id, live.team_id),
            None => record_of(caller, state, call).await.map(|_| true)?,
        },
    };
    if !is_covered {
        return Err(ApiError::forbidden("the call is outside the caller's scope"));
    }
    Ok(recordings)
}

const ACTIONS: [(&str, RecordAction); 4] = [
    ("pause", RecordAction::Pause),
    ("resume", RecordAction::Resume),
    ("start", RecordAction::Start),
    ("stop", RecordAction::Stop),
];
