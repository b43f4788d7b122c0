//! Extensions: the lines of users.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::directory::{Secret, StrictSource};
use sidetone_model::extension::{ExtensionChange, ExtensionRecord, NewExtension};
use sidetone_model::ids::{ExtensionId, OrganisationId, TeamId};
use sidetone_model::page::Page;
use sidetone_model::rules;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, BY_NUMBER, Kind, ListParams, NumberSortParam, OrganisationParam, TeamParam};
use crate::managed::{created, seen};
use crate::page;
use crate::state::ApiState;

/// A new extension.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `create` reads")]
pub(crate) struct NewExtensionBody {
    /// Whose it is; the caller's own organisation unless given.
    organisation_id: Option<OrganisationId>,
    /// Its team; none unless given.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    team_id: Option<TeamId>,
    /// The digits dialled for it, unique within the organisation.
    #[schema(pattern = "^[0-9]{1,15}$", example = "1001")]
    number: String,
    /// The person's name; empty unless given.
    #[schema(max_length = 100)]
    name: Option<String>,
    /// What its phone registers with, neither its number nor its name; generated unless given.
    #[schema(min_length = 8, max_length = 128, write_only)]
    password: Option<String>,
    /// The codecs offered, in order, with commas between: of `opus`, `G722`, `PCMA`, `PCMU`. Empty, as when it is left
    /// out, means that the codec profile decides.
    #[schema(example = "opus,PCMA")]
    codec_string: Option<String>,
    /// Which address its media must come from; null, as when it is left out, takes the node's setting.
    #[schema(value_type = Option<String>, pattern = "^(any|sdp|signalling)$", extensions(("x-nullable" = json!(true))))]
    strict_source: Option<StrictSource>,
}

/// What changes of an extension; what is left out stays as it is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `change` reads")]
pub(crate) struct ExtensionChangeBody {
    /// Another team, or null for none.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    team_id: Option<TeamId>,
    /// Another number; a new password has to come with it, since a password belongs to a number.
    #[schema(pattern = "^[0-9]{1,15}$")]
    number: Option<String>,
    /// Another name.
    #[schema(max_length = 100)]
    name: Option<String>,
    /// Another password, neither the number nor the name. The registrations of the former one end at once.
    #[schema(min_length = 8, max_length = 128, write_only)]
    password: Option<String>,
    /// Other codecs.
    codec_string: Option<String>,
    /// Another source of media, or null for the node's setting.
    #[schema(value_type = Option<String>, pattern = "^(any|sdp|signalling)$", extensions(("x-nullable" = json!(true))))]
    strict_source: Option<StrictSource>,
}

/// An extension that was just made.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedExtension {
    #[serde(flatten)]
    extension: ExtensionRecord,
    /// The password, when it was made up: it is shown here and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
}

const KIND: Kind = Kind { sorts: BY_NUMBER, organisation_id: true, team_id: true };
const READ_ONLY: &[&str] = &["id", "organisation_id", "created_at", "updated_at"];

/// List extensions
///
/// A page of the extensions that the caller sees, by number unless asked otherwise.
#[utoipa::path(
    get,
    path = "/extensions",
    operation_id = "listExtensions",
    tag = "Directory",
    params(ListParams, NumberSortParam, OrganisationParam, TeamParam),
    responses((status = 200, description = "The page.", body = Page<ExtensionRecord>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<ExtensionRecord>>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let listing = listing::read(&uri, &caller, &KIND)?;
    Ok(Json(state.directory()?.extensions.list(caller.scope(), &listing).await?))
}

/// Create an extension
///
/// A phone registers as `number` at the organisation's SIP domain. Without a password one is made up and answered
/// once.
#[utoipa::path(
    post,
    path = "/extensions",
    operation_id = "createExtension",
    tag = "Directory",
    request_body = NewExtensionBody,
    responses(
        (status = 201, description = "The extension; `Location` names it.", body = CreatedExtension),
        (status = 409, description = "The organisation has an extension of that number.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let (organisation_id, mut new) = body.read(new_extension)?;
    new.organisation_id = caller.organisation(organisation_id)?;
    let now = (state.clock)();
    let (extension, password) = state.directory()?.extensions.create(caller.scope(), new, now).await?;
    let id = extension.id;
    let password = password.map(|password| password.0);
    Ok(created("extensions", id, CreatedExtension { extension, password }))
}

/// Read an extension
#[utoipa::path(
    get,
    path = "/extensions/{id}",
    operation_id = "getExtension",
    tag = "Directory",
    params(("id" = ExtensionId, Path, description = "The extension's `id`.")),
    responses((status = 200, description = "The extension.", body = ExtensionRecord)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<ExtensionRecord>, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    Ok(Json(visible(&caller, &state, &id).await?))
}

/// Change an extension
///
/// A JSON merge patch: what is left out stays as it is. Read-only fields are ignored, so that what was read can be
/// sent back.
#[utoipa::path(
    patch,
    path = "/extensions/{id}",
    operation_id = "changeExtension",
    tag = "Directory",
    params(("id" = ExtensionId, Path, description = "The extension's `id`.")),
    request_body = ExtensionChangeBody,
    responses(
        (status = 200, description = "The whole extension.", body = ExtensionRecord),
        (status = 409, description = "The organisation has another extension of that number.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<ExtensionRecord>, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let change = body.read(extension_change)?;
    let now = (state.clock)();
    Ok(Json(state.directory()?.extensions.change(caller.scope(), id, change, now).await?))
}

/// Remove an extension
///
/// Its phone is not let in any more. Its call records stay.
#[utoipa::path(
    delete,
    path = "/extensions/{id}",
    operation_id = "deleteExtension",
    tag = "Directory",
    params(("id" = ExtensionId, Path, description = "The extension's `id`.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 409, description = "Something leads to it; the message names what.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    state.directory()?.extensions.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn visible(caller: &Caller, state: &ApiState, id: &str) -> Result<ExtensionRecord, ApiError> {
    let id: ExtensionId = page::path_id("id", id)?;
    let found = state.directory()?.extensions.find(id).await?;
    seen(found, "extension", |found| caller.scope().covers(found.organisation_id, found.team_id))
}

fn new_extension(fields: &mut Fields) -> Option<(Option<OrganisationId>, NewExtension)> {
    let organisation_id = fields.uuid("organisation_id");
    let number = fields.required("number", |fields, name| fields.parsed(name, rules::extension_number));
    let new = NewExtension {
        // The handler sets the caller's organisation.
        organisation_id: OrganisationId(uuid::Uuid::nil()),
        team_id: fields.or_null("team_id", Fields::uuid).flatten(),
        number: number.unwrap_or_default(),
        name: fields.parsed("name", rules::label).unwrap_or_default(),
        password: fields.parsed("password", rules::password).map(Secret),
        codecs: fields.parsed("codec_string", codecs).unwrap_or_default(),
        strict_source: strict_source(fields).flatten(),
    };
    fields.read_only(&["id", "created_at", "updated_at"]);
    Some((organisation_id, new))
}

fn extension_change(fields: &mut Fields) -> Option<ExtensionChange> {
    let change = ExtensionChange {
        team_id: fields.or_null("team_id", Fields::uuid),
        number: fields.parsed("number", rules::extension_number),
        name: fields.parsed("name", rules::label),
        password: fields.parsed("password", rules::password).map(Secret),
        codecs: fields.parsed("codec_string", codecs),
        strict_source: strict_source(fields),
    };
    fields.read_only(READ_ONLY);
    Some(change)
}

fn strict_source(fields: &mut Fields) -> Option<Option<StrictSource>> {
    fields.or_null("strict_source", |fields, name| fields.parsed(name, rules::strict_source))
}

/// Reads `opus, PCMA` as the switch's codec names.
fn codecs(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim).filter(|_| !text.trim().is_empty());
    rules::codecs(names).map_err(|wrong| wrong.join("; "))
}
