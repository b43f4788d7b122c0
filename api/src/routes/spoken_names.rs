//! The name that an extension has spoken, by which rooms announce it.

use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::ExtensionId;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::cdr_params::Binary;
use crate::routes::extensions::visible;
use crate::state::ApiState;

/// Listen to the spoken name of an extension
///
/// The name that was recorded when the extension first joined a room with `announce_names`. 404 when it has spoken none.
#[utoipa::path(
    get,
    path = "/extensions/{id}/spoken-name",
    operation_id = "getSpokenName",
    tag = "Directory",
    params(("id" = ExtensionId, Path, description = "The extension's `id`.")),
    responses((status = 200, description = "The file.", content((inline(Binary) = "audio/wav")))),
    extensions(("x-permission" = json!("recordings:listen"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::RecordingsListen)?;
    let extension = visible(&caller, &state, &id).await?.id;
    let wav = state.directory()?.extensions.spoken_name(caller.scope(), extension).await?;
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("audio/wav"))], wav).into_response())
}

/// Delete the spoken name of an extension
///
/// The extension is asked for its name again when it joins a room with `announce_names`. A session under way keeps the name.
#[utoipa::path(
    delete,
    path = "/extensions/{id}/spoken-name",
    operation_id = "deleteSpokenName",
    tag = "Directory",
    params(("id" = ExtensionId, Path, description = "The extension's `id`.")),
    responses((status = 204, description = "Deleted.")),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let extension = visible(&caller, &state, &id).await?.id;
    state.directory()?.extensions.remove_spoken_name(caller.scope(), extension).await?;
    Ok(StatusCode::NO_CONTENT)
}
