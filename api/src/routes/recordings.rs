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

use crate::auth::Caller;
use crate::byte_range::{Answer, Version};
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::pieces::pieces;
use crate::routes::cdr_params::Binary;
use crate::state::ApiState;

/// Play the recording of a session
///
/// The whole mix as WAV: 16 kHz, 16 bits, mono; from 4 GiB on RF64. One `Range` of bytes at a time; several are answered
/// 416. `ETag`, `Last-Modified`, `If-Range`, `If-None-Match` and `If-Modified-Since` are as in RFC 9110. While the room
/// is live the recording may grow, and is not played.
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
            description = "The `ETag` or `Last-Modified` of the version that a range is of.",
        ),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the version that the caller has."),
    ),
    responses(
        (
            status = 200,
            description = "All of it.",
            content((inline(Binary) = "audio/wav")),
            headers(
                ("Accept-Ranges" = String, description = "`bytes`."),
                ("ETag" = String, description = "The version, a strong tag."),
                ("Last-Modified" = String, description = "When it was written last."),
                ("Content-Disposition" = String, description = "The file's name."),
            ),
        ),
        (
            status = 206,
            description = "The bytes that were asked for.",
            content((inline(Binary) = "audio/wav")),
            headers(
                ("Content-Range" = String, description = "Which bytes of how many."),
                ("ETag" = String, description = "The version, a strong tag."),
            ),
        ),
        (status = 304, description = "The caller has this version."),
        (status = 404, description = "There is no such room or session, or nothing was recorded.", body = ErrorBody),
        (status = 409, description = "The room is live: the recording may still grow.", body = ErrorBody),
        (
            status = 416,
            description = "There are no such bytes, or several ranges were asked for \
                (`range_not_satisfiable`).",
            body = ErrorBody,
            headers(("Content-Range" = String, description = "How many bytes there are.")),
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
    let recording = state.recordings()?.open(caller.scope(), room, session).await?;
    let version = Version::new(recording.bytes(), recording.modified_at());
    let mut response = match version.answer(&headers, method == Method::HEAD) {
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
            return Ok(response);
        }
    };
    put(&mut response, ETAG, version.etag.clone());
    put(&mut response, LAST_MODIFIED, version.last_modified());
    if response.status() != StatusCode::NOT_MODIFIED {
        put(&mut response, ACCEPT_RANGES, "bytes".to_owned());
        put(&mut response, CONTENT_TYPE, "audio/wav".to_owned());
        put(&mut response, CONTENT_DISPOSITION, format!("inline; filename=\"{session}.wav\""));
    }
    Ok(response)
}

fn put(response: &mut Response, name: HeaderName, value: String) {
    // Digits, ids, tags and dates are valid header values.
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().insert(name, value);
    }
}

/// What is sent, for the log.
const RECORDING: &str = "recording";
