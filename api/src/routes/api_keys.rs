//! Managing integration keys: a key's text is shown once and not stored.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::{ApiKeyId, OrganisationId};
use sidetone_model::key::{KeyChange, KeyRecord, NewKey, RATE_DEFAULT, RATE_MAX};
use sidetone_model::page::Page;
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, BY_NAME, Kind, ListParams, NameSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::state::ApiState;

/// A key as it is shown: everything but its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub(crate) struct KeyView {
    id: ApiKeyId,
    organisation_id: OrganisationId,
    /// Unique within the organisation.
    name: String,
    /// How the key's text begins, up to the secret.
    #[schema(example = "tel_ABCDEFGHIJKL")]
    prefix: String,
    /// How the key's text ends.
    #[schema(min_length = 4, max_length = 4)]
    last4: String,
    permissions: Vec<Permission>,
    /// The preset that the permissions were copied from; a later change of the preset does not change the key.
    #[schema(required)]
    preset: Option<String>,
    /// The addresses and networks that the key may be used from.
    #[schema(example = json!(["192.0.2.0/24"]))]
    allow: Vec<String>,
    /// Requests a minute.
    rate_per_minute: u32,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<KeyRecord> for KeyView {
    fn from(record: KeyRecord) -> Self {
        let KeyRecord { id, organisation_id, name, prefix, last4, permissions, preset, .. } = record;
        let allow = record.allow.iter().map(ToString::to_string).collect();
        let KeyRecord { rate_per_minute, created_at, updated_at, .. } = record;
        Self {
            id,
            organisation_id,
            name,
            prefix,
            last4,
            permissions,
            preset,
            allow,
            rate_per_minute,
            created_at,
            updated_at,
        }
    }
}

/// A key that was made, with its text.
#[derive(Serialize, ToSchema)]
#[schema(as = NewApiKey)]
pub(crate) struct NewKeyView {
    #[serde(flatten)]
    record: KeyView,
    /// What the integration sends as `Authorization: Bearer <key>`; never shown again.
    key: String,
}

/// A key to be made.
#[derive(ToSchema)]
#[schema(as = NewApiKeyBody)]
#[expect(dead_code, reason = "says in the document what `create` reads")]
pub(crate) struct NewKeyBody {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Either these or a preset.
    permissions: Option<Vec<Permission>>,
    /// A set of permissions, copied into the key: `billing`, `conferences`, `dialler`, `full`, `notes` or
    /// `read_only`.
    preset: Option<String>,
    /// Addresses and networks that the key may be used from; not the whole Internet.
    #[schema(min_items = 1, max_items = 64, example = json!(["192.0.2.0/24"]))]
    allow: Vec<String>,
    #[schema(minimum = 1, maximum = 60000, default = 600)]
    rate_per_minute: Option<i64>,
    /// Whose it will be; the caller's own organisation unless an operator names another.
    organisation_id: Option<OrganisationId>,
}

/// What changes of a key.
#[derive(ToSchema)]
#[schema(as = ApiKeyChangeBody)]
#[expect(dead_code, reason = "says in the document what `change` reads")]
pub(crate) struct KeyChangeBody {
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Either these or a preset.
    permissions: Option<Vec<Permission>>,
    /// A set of permissions, copied into the key.
    #[schema(extensions(("x-nullable" = json!(true))))]
    preset: Option<String>,
    #[schema(min_items = 1, max_items = 64)]
    allow: Option<Vec<String>>,
    #[schema(minimum = 1, maximum = 60000)]
    rate_per_minute: Option<i64>,
}

/// List keys
#[utoipa::path(
    get,
    path = "/api-keys",
    operation_id = "listApiKeys",
    tag = "Integration keys",
    params(ListParams, OrganisationParam, NameSortParam),
    responses((status = 200, description = "The page.", body = Page<KeyView>)),
    extensions(("x-permission" = json!("keys:write"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<KeyView>>, ApiError> {
    caller.require(Permission::KeysWrite)?;
    let kind = Kind { sorts: BY_NAME, organisation_id: true, team_id: false };
    let listing = listing::read(&uri, &caller, &kind)?;
    let page = state.panel()?.keys.list(caller.scope(), &listing).await?;
    Ok(Json(page.map(KeyView::from)))
}

/// Create a key
///
/// The answer holds the key's text, once. Nobody gives a permission that they do not hold.
#[utoipa::path(
    post,
    path = "/api-keys",
    operation_id = "createApiKey",
    tag = "Integration keys",
    request_body = NewKeyBody,
    responses(
        (status = 201, description = "The key and its text.", body = NewKeyView),
        (status = 409, description = "The organisation has a key of that name.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("keys:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::KeysWrite)?;
    let (organisation, new) = body.read(|fields| {
        let organisation = fields.uuid("organisation_id");
        let name = fields.required("name", |fields, name| fields.parsed(name, rules::name));
        let (permissions, preset) = grant(fields);
        let wrong = (permissions.is_none() && fields.has("permissions"))
            || (preset.is_none() && fields.has("preset"));
        let granted = match (permissions, preset.flatten()) {
            (Some(_), Some(_)) => fields.refuse("preset", NOT_BOTH),
            (Some(permissions), None) => Some((permissions, None)),
            (None, Some((preset, permissions))) => Some((permissions, Some(preset))),
            (None, None) if wrong => None,
            (None, None) => fields.refuse("permissions", "is required, or a preset"),
        };
        let allow = fields.required("allow", allow);
        let rate = rate(fields).unwrap_or(RATE_DEFAULT);
        fields.read_only(&["id", "prefix", "last4", "created_at", "updated_at"]);
        let (permissions, preset) = granted?;
        let new = NewKey {
            organisation_id: caller.principal().organisation_id,
            name: name?,
            permissions,
            preset,
            allow: allow?,
            rate_per_minute: rate,
        };
        Some((organisation, new))
    })?;
    let new = NewKey { organisation_id: caller.organisation(organisation)?, ..new };
    require_held(&caller, &new.permissions)?;
    let (record, text) = state.panel()?.keys.create(new, (state.clock)()).await?;
    let view = NewKeyView { record: record.into(), key: text.0 };
    Ok(created("api-keys", view.record.id, view))
}

/// Read a key
#[utoipa::path(
    get,
    path = "/api-keys/{id}",
    operation_id = "getApiKey",
    tag = "Integration keys",
    params(("id" = ApiKeyId, Path, description = "The key's id.")),
    responses((status = 200, description = "The key.", body = KeyView)),
    extensions(("x-permission" = json!("keys:write"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<KeyView>, ApiError> {
    caller.require(Permission::KeysWrite)?;
    let id = page::path_id("id", &id)?;
    Ok(Json(own(&caller, state.panel()?.keys.find_record(id).await?)?.into()))
}

/// Change a key
///
/// Its text stays as it is: for another one make another key. Nobody gives a permission that they do not hold.
#[utoipa::path(
    patch,
    path = "/api-keys/{id}",
    operation_id = "changeApiKey",
    tag = "Integration keys",
    params(("id" = ApiKeyId, Path, description = "The key's id.")),
    request_body = KeyChangeBody,
    responses(
        (status = 200, description = "The key.", body = KeyView),
        (status = 409, description = "The organisation has a key of that name.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("keys:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<KeyView>, ApiError> {
    caller.require(Permission::KeysWrite)?;
    let id = page::path_id("id", &id)?;
    let keys = &state.panel()?.keys;
    let record = own(&caller, keys.find_record(id).await?)?;
    let change = body.read(|fields| {
        let name = fields.parsed("name", rules::name);
        let (permissions, preset) = grant(fields);
        let permissions = match (permissions, preset) {
            // Unchanged: the permissions of the preset when the key was created.
            (Some(permissions), preset)
                if permissions == record.permissions
                    && preset
                        .as_ref()
                        .is_none_or(|p| p.as_ref().map(|(name, _)| name) == record.preset.as_ref()) =>
            {
                None
            }
            (Some(_), Some(Some(_))) => fields.refuse("preset", NOT_BOTH),
            (Some(permissions), _) => Some((permissions, None)),
            (None, Some(Some((preset, permissions)))) => Some((permissions, Some(preset))),
            (None, _) => None,
        };
        let change =
            KeyChange { name, permissions, allow: allow(fields, "allow"), rate_per_minute: rate(fields) };
        fields.read_only(&["id", "organisation_id", "prefix", "last4", "created_at", "updated_at"]);
        Some(change)
    })?;
    if let Some((permissions, _)) = &change.permissions {
        require_held(&caller, permissions)?;
    }
    if change == KeyChange::default() {
        return Ok(Json(record.into()));
    }
    Ok(Json(keys.change(caller.scope(), id, change, (state.clock)()).await?.into()))
}

/// Delete a key
///
/// Requests with it are answered 401 from then on.
#[utoipa::path(
    delete,
    path = "/api-keys/{id}",
    operation_id = "deleteApiKey",
    tag = "Integration keys",
    params(("id" = ApiKeyId, Path, description = "The key's id.")),
    responses((status = 204, description = "The key is gone.")),
    extensions(("x-permission" = json!("keys:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::KeysWrite)?;
    let id = page::path_id("id", &id)?;
    let keys = &state.panel()?.keys;
    own(&caller, keys.find_record(id).await?)?;
    keys.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the key if the caller may see it.
fn own(caller: &Caller, found: Option<KeyRecord>) -> Result<KeyRecord, ApiError> {
    seen(found, "key", |key| caller.scope().covers(key.organisation_id, None))
}

fn require_held(caller: &Caller, permissions: &[Permission]) -> Result<(), ApiError> {
    let lacking: Vec<&str> =
        caller.principal().cannot_grant(permissions).into_iter().map(Permission::as_str).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let lacking = lacking.join(", ");
    Err(ApiError::forbidden(format!("nobody gives what they do not hold, the caller lacks {lacking}")))
}

/// The name of a preset, with its current permissions.
type Preset = (String, Vec<Permission>);

/// The permissions in the request, in order, and its preset.
fn grant(fields: &mut Fields) -> (Option<Vec<Permission>>, Option<Option<Preset>>) {
    let permissions = fields.texts("permissions", 0..=PERMISSIONS_LEN_MAX, |name| {
        Permission::from_name(name).ok_or_else(|| {
            let known: Vec<&str> = Permission::ALL.iter().map(|known| known.as_str()).collect();
            format!("must be one of {}", known.join(", "))
        })
    });
    let preset = fields.or_null("preset", |fields, name| {
        fields.parsed(name, |text| {
            let permissions = Permission::preset(text);
            permissions
                .map(|permissions| (text.to_owned(), permissions))
                .ok_or_else(|| format!("must be one of {}", Permission::PRESETS.join(", ")))
        })
    });
    let permissions = permissions.map(|mut permissions| {
        permissions.sort_unstable();
        permissions.dedup();
        permissions
    });
    (permissions, preset)
}

fn allow(fields: &mut Fields, name: &'static str) -> Option<Vec<sidetone_model::directory::Network>> {
    fields.texts(name, 1..=rules::NETWORKS_MAX, rules::network)
}

fn rate(fields: &mut Fields) -> Option<u32> {
    fields.integer("rate_per_minute", 1..=RATE_MAX.into()).and_then(|rate| u32::try_from(rate).ok())
}

const NOT_BOTH: &str = "give permissions or a preset, not both";
/// More than exist; a name may be repeated.
const PERMISSIONS_LEN_MAX: usize = 100;
