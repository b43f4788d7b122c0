//! Notes to phones: sent into a call or to a user's devices, and read with their results.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::{CallId, ExtensionId, RoomId};
use sidetone_model::note::{Note, NoteQuery, NoteRecord, NoteSent};
use sidetone_model::page::Page;

use crate::auth::Caller;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::page::path_id;
use crate::routes::note_query::{NoteParams, list};
use crate::routes::note_schema::NoteBody;
use crate::state::ApiState;

/// Send a note into a call
///
/// Shows a note on every phone of the organisation that is on the live call, as SIP INFO inside its dialog. The
/// answer comes when the note and its event `call.info.sent` are stored. `GET /calls/{uuid}/infos` shows what each
/// phone answered and when a person tapped Acknowledge; the event `call.info.acked` reports the tap. A phone that
/// refuses the note stays in the call. Send an `Idempotency-Key`, so that a repeated request does not show the note
/// twice. Do not send a note every second; for anything urgent use a call or a push.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/info",
    operation_id = "sendCallInfo",
    tag = "Notes",
    params(("uuid" = CallId, Path, description = "The live call's `call_uuid`.")),
    request_body = NoteBody,
    responses(
        (status = 202, description = "The note is stored and being sent.", body = NoteSent),
        (status = 409, description = "The call has no phone on it, or is not answered yet (`conflict`).", body = ErrorBody),
        (status = 503, description = "The node is overloaded; nothing was sent (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn send_to_call(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call: CallId = path_id("uuid", &uuid)?;
    let note = body.parse(Note::parse)?;
    accepted(state.notes()?.send_to_call(caller.scope(), call, note).await?)
}

/// Send a note to a person
///
/// Shows a note on every registered device of the extension, with or without a call, as SIP MESSAGE from `events@`
/// and the organisation's SIP domain. Use this channel when unsure. It does not need the phone's app to be in the
/// foreground, and does not bring it there: for anything urgent use a call or a push.
#[utoipa::path(
    post,
    path = "/extensions/{id}/message",
    operation_id = "sendExtensionMessage",
    tag = "Notes",
    params(("id" = ExtensionId, Path, description = "The extension.")),
    request_body = NoteBody,
    responses(
        (status = 202, description = "The note is stored and being sent.", body = NoteSent),
        (status = 409, description = "The extension has no registered device (`conflict`).", body = ErrorBody),
        (status = 503, description = "The node is overloaded; nothing was sent (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn send_to_extension(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsControl)?;
    let extension: ExtensionId = path_id("id", &id)?;
    let note = body.parse(Note::parse)?;
    accepted(state.notes()?.send_to_extension(caller.scope(), extension, note).await?)
}

/// List the notes of a call
///
/// The notes sent into a call, newest first, with one receipt per phone. Notes of finished calls are kept for 30
/// days. `sent` means that a phone accepted the note, `acked` that a person tapped the button.
#[utoipa::path(
    get,
    path = "/calls/{uuid}/infos",
    operation_id = "listCallInfos",
    tag = "Notes",
    params(("uuid" = CallId, Path, description = "The call's `call_uuid`."), NoteParams),
    responses(
        (status = 200, description = "The notes.", body = Page<NoteRecord>),
        (status = 503, description = "The node is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn of_call(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    uri: Uri,
) -> Result<Json<Page<NoteRecord>>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = path_id("uuid", &uuid)?;
    let query: NoteQuery = list(&uri, &caller)?;
    Ok(Json(state.notes()?.of_call(caller.scope(), call, &query).await?))
}

/// List the notes of a person
///
/// Like `GET /calls/{uuid}/infos`, for the notes sent to the devices of an extension.
#[utoipa::path(
    get,
    path = "/extensions/{id}/messages",
    operation_id = "listExtensionMessages",
    tag = "Notes",
    params(("id" = ExtensionId, Path, description = "The extension."), NoteParams),
    responses((status = 200, description = "The notes.", body = Page<NoteRecord>)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn of_extension(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Page<NoteRecord>>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let extension: ExtensionId = path_id("id", &id)?;
    let query = list(&uri, &caller)?;
    Ok(Json(state.notes()?.of_extension(caller.scope(), extension, &query).await?))
}

/// List the notes of a room
///
/// Like `GET /calls/{uuid}/infos`, for the notes that a conference room sent to its phones: `member-join` and
/// `member-leave` to all phones, and `roster` to the phone that joins. A receipt's `member` is the id of the member
/// in the live room.
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}/messages",
    operation_id = "listConferenceRoomMessages",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room."), NoteParams),
    responses((status = 200, description = "The notes.", body = Page<NoteRecord>)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn of_room(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Page<NoteRecord>>, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let room: RoomId = path_id("id", &id)?;
    let query = list(&uri, &caller)?;
    Ok(Json(state.notes()?.of_room(caller.scope(), room, &query).await?))
}

fn accepted(sent: NoteSent) -> Result<Response, ApiError> {
    Ok((StatusCode::ACCEPTED, Json(sent)).into_response())
}
