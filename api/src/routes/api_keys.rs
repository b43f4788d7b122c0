//! Managing integration keys: a key's text is shown once and not stored.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::directory::Network;
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{ApiKeyId, OrganisationId};
use sidetone_model::key::{KeyChange, KeyRecord, NewKey, RATE_DEFAULT, RATE_MAX};
use sidetone_model::page::Page;
use sidetone_model::rules;
use sidetone_model::time::Timestamp;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::declare::{checked, id_of, integer, null_or, nullable, optional, parsed, required, texts};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, ListParams, NameSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::params::With;
use crate::state::ApiState;

/// A key without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub(crate) struct KeyView {
    id: ApiKeyId,
    organisation_id: OrganisationId,
    /// Unique within the organisation.
    name: String,
    /// The key's text up to the secret.
    #[schema(example = "tel_ABCDEFGHIJKL")]
    prefix: String,
    /// The last characters of the key's text.
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

/// A new key with its text.
#[derive(Serialize, ToSchema)]
#[schema(as = NewApiKey)]
pub(crate) struct NewKeyView {
    #[serde(flatten)]
    record: KeyView,
    /// The key; send it as `Authorization: Bearer <key>`. It is never shown again.
    key: String,
}

body! {
    /// A new key.
    #[schema(as = NewApiKeyBody)]
    pub(crate) struct NewKeyBody {
        #[schema(min_length = 1, max_length = 100)]
        name: String = required(checked(StoredRule::FreeKeyName, parsed(rules::name))),
        /// Either permissions or a preset.
        permissions: Option<Vec<Permission>> = optional(permissions_of),
        /// A set of permissions, copied into the key: `billing`, `conferences`, `dialler`, `full`, `notes` or
        /// `read_only`, or `recordings`.
        #[schema(value_type = Option<String>, example = "read_only")]
        preset: Option<Preset> = null_or(parsed(preset_of)),
        /// Addresses and networks that the key may be used from; not the whole Internet.
        #[schema(value_type = Vec<String>, min_items = 1, max_items = 64, example = json!(["192.0.2.0/24"]))]
        allow: Vec<Network> = required(texts(1..=rules::NETWORKS_MAX, rules::network)),
        #[schema(value_type = Option<i64>, minimum = 1, maximum = 60000, default = 600)]
        rate_per_minute: Option<u32> = optional(integer(1..=RATE_MAX.into())),
        /// The owner; the caller's organisation by default, any organisation for an operator.
        organisation_id: Option<OrganisationId> = optional(id_of(StoredRule::Organisation)),
    }
    ignores &["id", "prefix", "last4", "created_at", "updated_at"];
    checks |fields: &mut Fields| match (permissions.as_ref(), preset.as_ref()) {
        (Some(Some(_)), Some(Some(_))) => _ = fields.refuse::<()>("preset", NOT_BOTH),
        (Some(None), Some(None)) if !fields.is_refused("permissions") && !fields.is_refused("preset") => {
            fields.refuse::<()>("permissions", "is required, or a preset");
        }
        _ => {}
    };
}

body! {
    /// Changes of a key.
    #[schema(as = ApiKeyChangeBody)]
    pub(crate) struct KeyChangeBody {
        #[schema(min_length = 1, max_length = 100)]
        name: Option<String> = optional(checked(StoredRule::FreeKeyName, parsed(rules::name))),
        /// Either permissions or a preset.
        permissions: Option<Vec<Permission>> = optional(permissions_of),
        /// A set of permissions, copied into the key.
        #[schema(value_type = Option<String>, extensions(("x-nullable" = json!(true))))]
        preset: Option<Option<Preset>> = nullable(parsed(preset_of)),
        #[schema(value_type = Option<Vec<String>>, min_items = 1, max_items = 64)]
        allow: Option<Vec<Network>> = optional(texts(1..=rules::NETWORKS_MAX, rules::network)),
        #[schema(value_type = Option<i64>, minimum = 1, maximum = 60000)]
        rate_per_minute: Option<u32> = optional(integer(1..=RATE_MAX.into())),
    }
    ignores &["id", "organisation_id", "prefix", "last4", "created_at", "updated_at"];
}

type ListQuery = With<ListParams, With<OrganisationParam, NameSortParam>>;

/// List keys
#[utoipa::path(
    get,
    path = "/api-keys",
    operation_id = "listApiKeys",
    tag = "Integration keys",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<KeyView>)),
    extensions(("x-permission" = json!("keys:write"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<KeyView>>, ApiError> {
    caller.require(Permission::KeysWrite)?;
    let listing = listing::read::<ListQuery>(&uri, &caller)?;
    let page = state.panel()?.keys.list(caller.scope(), &listing).await?;
    Ok(Json(page.map(KeyView::from)))
}

/// Create a key
///
/// The answer contains the key's text, which is never shown again. A caller can only grant permissions that it holds.
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
    let new = body.read_new(&caller, &state, NewKeyBody::read).await?;
    let (permissions, preset) = match (new.permissions, new.preset) {
        (permissions, None) => (permissions.unwrap_or_default(), None),
        (_, Some((preset, permissions))) => (permissions, Some(preset)),
    };
    let new = NewKey {
        organisation_id: caller.organisation(new.organisation_id)?,
        name: new.name,
        permissions,
        preset,
        allow: new.allow,
        rate_per_minute: new.rate_per_minute.unwrap_or(RATE_DEFAULT),
    };
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
/// The key's text cannot change: create another key instead. A caller can only grant permissions that it holds.
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
    let id: ApiKeyId = page::path_id("id", &id)?;
    let keys = &state.panel()?.keys;
    let record = own(&caller, keys.find_record(id).await?)?;
    let organisation = Some(record.organisation_id);
    let read = |fields: &mut Fields| {
        let KeyChangeBody { name, permissions, preset, allow, rate_per_minute } =
            KeyChangeBody::read(fields)?;
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
        Some(KeyChange { name, permissions, allow, rate_per_minute })
    };
    let change = body.read_change(&caller, &state, organisation, id.0, read).await?;
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
/// Requests with this key get 401 from now on.
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
    Err(ApiError::forbidden(format!(
        "a caller grants only permissions that it holds, the caller lacks {lacking}"
    )))
}

/// The name of a preset, with its current permissions.
type Preset = (String, Vec<Permission>);

/// Reads permissions, sorted and without duplicates.
fn permissions_of(fields: &mut Fields, name: &'static str) -> Option<Vec<Permission>> {
    let mut permissions = fields.texts(name, 0..=PERMISSIONS_LEN_MAX, |name| {
        Permission::from_name(name).ok_or_else(|| {
            let known: Vec<&str> = Permission::ALL.iter().map(|known| known.as_str()).collect();
            format!("must be one of {}", known.join(", "))
        })
    })?;
    permissions.sort_unstable();
    permissions.dedup();
    Some(permissions)
}

fn preset_of(name: &str) -> Result<Preset, String> {
    Permission::preset(name)
        .map(|permissions| (name.to_owned(), permissions))
        .ok_or_else(|| format!("must be one of {}", Permission::PRESETS.join(", ")))
}

const NOT_BOTH: &str = "give permissions or a preset, not both";
/// More than the number of permissions; a name may be repeated.
const PERMISSIONS_LEN_MAX: usize = 100;
