//! The recording of a session, sent in the ranges that the caller requests.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::{ConferenceSessionId, RoomId};
use sidetone_model::open_file::OpenFile;

use crate::auth::Caller;
use crate::byte_range::{Answer, Version};
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::pieces::pieces;
use crate::routes::cdr_params::Binary;
use crate::routes::room_sessions::{ROOM_NAME, room_name};
use crate::state::ApiState;

/// Play the recording of a session
///
/// The whole mix as WAV: 16 kHz, 16 bits, mono; RF64 from 4 GiB. One byte range per request; several get 416. `ETag`,
/// `Last-Modified`, `If-Range`, `If-None-Match` and `If-Modified-Since` work as in RFC 9110. A recording cannot be
/// played while the room is live.
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}/sessions/{sid}/recording/audio",
    operation_id = "getSessionRecording",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room's `id`."),
        ("sid" = ConferenceSessionId, Path, description = "The session's `id`."),
        ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-65535`."),
        (
            "If-Range" = Option<String>,
            Header,
            description = "The `ETag` or `Last-Modified` of the version that the range belongs to.",
        ),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the version that the client has."),
    ),
    responses(
        (
            status = 200,
            description = "All of it.",
            content((inline(Binary) = "audio/wav")),
            headers(
                ("Accept-Ranges" = String, description = "`bytes`."),
                ("ETag" = String, description = "The version, a strong tag."),
                ("Last-Modified" = String, description = "The last change of the file."),
                ("Content-Disposition" = String, description = "The file's name."),
            ),
        ),
        (
            status = 206,
            description = "The requested bytes.",
            content((inline(Binary) = "audio/wav")),
            headers(
                ("Content-Range" = String, description = "The byte range and the total length."),
                ("ETag" = String, description = "The version, a strong tag."),
            ),
        ),
        (status = 304, description = "The client has this version."),
        (status = 404, description = "The room or session does not exist, or nothing was recorded.", body = ErrorBody),
        (status = 409, description = "The room is live: the recording may still grow.", body = ErrorBody),
        (
            status = 416,
            description = "The file does not have these bytes, or several ranges were requested \
                (`range_not_satisfiable`).",
            body = ErrorBody,
            headers(("Content-Range" = String, description = "The length in bytes.")),
        ),
    ),
    extensions(("x-permission" = json!("recordings:listen"))),
)]
pub(crate) async fn play(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, sid)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Permission::RecordingsListen)?;
    let room: RoomId = page::path_id("id", &id)?;
    let session: ConferenceSessionId = page::path_id("sid", &sid)?;
    let recording = state.recordings()?.open(caller.scope(), room.into(), session).await?;
    Ok(send(recording, &session.to_string(), &method, &headers))
}

/// Play the recording of a session by the switch's name of its room
///
/// As `GET /conference-rooms/{id}/sessions/{sid}/recording/audio`, also of merged calls, which have no stored room.
#[utoipa::path(
    get,
    path = "/conferences/{room}/sessions/{sid}/recording/audio",
    operation_id = "getRecordingByRoomName",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = ROOM_NAME),
        ("sid" = ConferenceSessionId, Path, description = "The session's `id`."),
        ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-65535`."),
    ),
    responses(
        (status = 200, description = "All of it.", content((inline(Binary) = "audio/wav"))),
        (status = 206, description = "The requested bytes.", content((inline(Binary) = "audio/wav"))),
        (status = 304, description = "The client has this version."),
        (status = 404, description = "The room or session does not exist, or nothing was recorded.", body = ErrorBody),
        (status = 409, description = "The room is live: the recording may still grow.", body = ErrorBody),
        (
            status = 416,
            description = "The file does not have these bytes, or several ranges were requested \
                (`range_not_satisfiable`).",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("recordings:listen"))),
)]
pub(crate) async fn play_by_name(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, sid)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Permission::RecordingsListen)?;
    let room = room_name(&room)?;
    let session: ConferenceSessionId = page::path_id("sid", &sid)?;
    let recording = state.recordings()?.open(caller.scope(), room, session).await?;
    Ok(send(recording, &session.to_string(), &method, &headers))
}

/// Delete the recording of a session
///
/// The session remains, without its recording. A download that has begun gets the whole file. The recording cannot be
/// deleted while the room is live.
#[utoipa::path(
    delete,
    path = "/conference-rooms/{id}/sessions/{sid}/recording",
    operation_id = "deleteSessionRecording",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room's `id`."),
        ("sid" = ConferenceSessionId, Path, description = "The session's `id`."),
    ),
    responses(
        (status = 204, description = "Deleted."),
        (
            status = 404,
            description = "The room or session does not exist, nothing was recorded, or the recording is deleted.",
            body = ErrorBody,
        ),
        (
            status = 409,
            description = "The room is live, so that the recording may still grow, or the node that has the file is gone.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("recordings:delete"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, sid)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::RecordingsDelete)?;
    let room: RoomId = page::path_id("id", &id)?;
    let session: ConferenceSessionId = page::path_id("sid", &sid)?;
    state.recordings()?.delete(caller.scope(), room.into(), session).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Delete the recording of a session by the switch's name of its room
///
/// As `DELETE /conference-rooms/{id}/sessions/{sid}/recording`, also of merged calls, which have no stored room.
#[utoipa::path(
    delete,
    path = "/conferences/{room}/sessions/{sid}/recording",
    operation_id = "deleteRecordingByRoomName",
    tag = "Live conference rooms",
    params(
        ("room" = String, Path, description = ROOM_NAME),
        ("sid" = ConferenceSessionId, Path, description = "The session's `id`."),
    ),
    responses(
        (status = 204, description = "Deleted."),
        (
            status = 404,
            description = "The room or session does not exist, nothing was recorded, or the recording is deleted.",
            body = ErrorBody,
        ),
        (
            status = 409,
            description = "The room is live, so that the recording may still grow, or the node that has the file is gone.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("recordings:delete"))),
)]
pub(crate) async fn delete_by_name(
    caller: Caller,
    State(state): State<ApiState>,
    Path((room, sid)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::RecordingsDelete)?;
    let room = room_name(&room)?;
    let session: ConferenceSessionId = page::path_id("sid", &sid)?;
    state.recordings()?.delete(caller.scope(), room, session).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a recording, or the range that the headers request, as a file with this name.
pub(crate) fn send(
    recording: Box<dyn OpenFile>,
    name: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    let version = Version::new(recording.bytes(), recording.modified_at());
    let mut response = match version.answer(headers, *method == Method::HEAD) {
        Answer::Full => {
            let mut response =
                Body::from_stream(pieces(RECORDING, recording, 0, version.bytes)).into_response();
            put(&mut response, CONTENT_LENGTH, version.bytes.to_string());
            response
        }
        Answer::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Answer::Part { first, last } => {
            let body = Body::from_stream(pieces(RECORDING, recording, first, last + 1));
            let mut response = (StatusCode::PARTIAL_CONTENT, body).into_response();
            put(&mut response, CONTENT_LENGTH, (last + 1 - first).to_string());
            put(&mut response, CONTENT_RANGE, format!("bytes {first}-{last}/{}", version.bytes));
            response
        }
        Answer::Unsatisfiable => {
            let mut response = ApiError::range_not_satisfiable(version.bytes).into_response();
            put(&mut response, CONTENT_RANGE, format!("bytes */{}", version.bytes));
            return response;
        }
    };
    put(&mut response, ETAG, version.etag.clone());
    put(&mut response, LAST_MODIFIED, version.last_modified());
    if response.status() != StatusCode::NOT_MODIFIED {
        put(&mut response, ACCEPT_RANGES, "bytes".to_owned());
        put(&mut response, CONTENT_TYPE, "audio/wav".to_owned());
        put(&mut response, CONTENT_DISPOSITION, format!("inline; filename=\"{name}.wav\""));
    }
    response
}

fn put(response: &mut Response, name: HeaderName, value: String) {
    // Digits, ids, tags and dates are valid header values.
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().insert(name, value);
    }
}

/// The kind of file, for the log.
const RECORDING: &str = "recording";
