//! The prompts and music that callers hear, an organisation's own or the built-in ones.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::OrganisationId;
use sidetone_model::prompt::{Prompt, PromptRecord, PromptView, Prompts, SoundName};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::auth::Caller;
use crate::body::Sound;
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::routes::cdr_params::Binary;
use crate::routes::organisations::visible;
use crate::state::ApiState;

/// Every prompt of an organisation.
#[derive(Serialize, ToSchema)]
pub(crate) struct PromptList {
    /// Sorted by name.
    items: Vec<PromptView>,
}

/// The name of a prompt, or of a sound that only the organisation has.
pub(crate) struct PromptName;

impl PartialSchema for PromptName {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[a-z0-9-]{1,36}$")).build().into()
    }
}

impl ToSchema for PromptName {}

/// List the prompts of an organisation
///
/// The sounds that callers hear: for each prompt the organisation's own or the built-in one; and the sounds that only
/// the organisation has, whose names begin with `own-`.
#[utoipa::path(
    get,
    path = "/organisations/{id}/prompts",
    operation_id = "listPrompts",
    tag = "Conference rooms",
    params(("id" = OrganisationId, Path, description = "The organisation's `id`.")),
    responses((status = 200, description = "The whole list.", body = PromptList)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let organisation = visible(&caller, &state, &id).await?.id;
    let items = state.prompts()?.list(organisation).await?;
    Ok(Json(PromptList { items: items.iter().map(PromptRecord::view).collect() }).into_response())
}

/// Read the sound of a prompt
///
/// The stored WAV file, or the built-in one.
#[utoipa::path(
    get,
    path = "/organisations/{id}/prompts/{name}",
    operation_id = "getPrompt",
    tag = "Conference rooms",
    params(
        ("id" = OrganisationId, Path, description = "The organisation's `id`."),
        ("name" = inline(PromptName), Path, description = "The prompt, such as `alone`, or a sound `own-…`."),
    ),
    responses((status = 200, description = "The file.", content((inline(Binary) = "audio/wav")))),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let (prompts, organisation, name) = named(&caller, &state, &id, &name).await?;
    let wav = prompts.wav(organisation, name).await?;
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("audio/wav"))], wav).into_response())
}

/// Store the sound of a prompt
///
/// A WAV file of at most 4 MiB and 120 seconds: PCM of 8, 16, 24 or 32 bits, 32-bit floating point, u-law or A-law, one or
/// two channels, 8 to 48 kHz. Callers hear it within two seconds.
///
/// A name that begins with `own-`, and has 1 to 32 more lower-case letters, digits and hyphens, is a sound that only
/// the organisation has, to be played by `POST /conferences/{room}/play`. There may be 20, with 17 minutes of audio in all.
#[utoipa::path(
    put,
    path = "/organisations/{id}/prompts/{name}",
    operation_id = "putPrompt",
    tag = "Conference rooms",
    params(
        ("id" = OrganisationId, Path, description = "The organisation's `id`."),
        ("name" = inline(PromptName), Path, description = "The prompt, such as `alone`, or a sound `own-…`."),
    ),
    request_body(content((inline(Binary) = "audio/wav"))),
    responses(
        (status = 200, description = "The prompt as it is now.", body = PromptView),
        (status = 409, description = "The storage for sounds is full, or there are 20 sounds `own-…`.", body = ErrorBody),
        (status = 415, description = "The body is not `audio/wav` (`unsupported_media_type`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn put(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, name)): Path<(String, String)>,
    body: Sound,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let (prompts, organisation, name) = named(&caller, &state, &id, &name).await?;
    let stored = prompts.put(organisation, name, body.wav()?, (state.clock)()).await?;
    Ok(Json(stored.view()).into_response())
}

/// Remove the sound of a prompt
///
/// Callers hear the built-in sound again; a sound `own-…` is gone.
#[utoipa::path(
    delete,
    path = "/organisations/{id}/prompts/{name}",
    operation_id = "deletePrompt",
    tag = "Conference rooms",
    params(
        ("id" = OrganisationId, Path, description = "The organisation's `id`."),
        ("name" = inline(PromptName), Path, description = "The prompt, such as `alone`, or a sound `own-…`."),
    ),
    responses((status = 204, description = "Removed.")),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let (prompts, organisation, name) = named(&caller, &state, &id, &name).await?;
    prompts.remove(organisation, name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the organisation and the prompt in a path.
async fn named<'a>(
    caller: &Caller,
    state: &'a ApiState,
    id: &str,
    name: &str,
) -> Result<(&'a dyn Prompts, OrganisationId, SoundName), ApiError> {
    let organisation = visible(caller, state, id).await?.id;
    let name = SoundName::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Prompt::ALL.iter().map(|prompt| prompt.as_str()).collect();
        ApiError::not_found(format!(
            "there is no prompt {}, there are {} and own-…",
            page::shown(name),
            names.join(", ")
        ))
    })?;
    Ok((state.prompts()?, organisation, name))
}
