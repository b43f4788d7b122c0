//! Trunks: carriers and peers.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::{Permission, Scope};
use sidetone_model::directory::{Secret, StrictSource};
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::page::Page;
use sidetone_model::rules;
use sidetone_model::trunk::{NewTrunk, TrunkChange, TrunkRecord, TrunkView};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, BY_NAME, Kind, ListParams, NameSortParam, OrganisationParam};
use crate::managed::{created, max_call_seconds, seen};
use crate::page;
use crate::state::ApiState;

/// A trunk: all of it to make one, what changes of it to change one.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `trunk_change` reads")]
pub(crate) struct TrunkBody {
    /// The organisation that alone uses it. Null is a trunk that all share, which an operator makes. Of a new trunk the
    /// caller's own organisation unless given.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    organisation_id: Option<OrganisationId>,
    /// Unique name; a new trunk has to have one.
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Where calls go, such as `sip:carrier.example:5060`; empty takes none. Who is no operator names a public one. A
    /// carrier is one organisation's, or shared: one that another organisation has is refused.
    address: Option<String>,
    /// Networks that its calls come from. Calls from one network are those of one tenant. Who is no operator names
    /// public ones of 24 bits or more (IPv6: 48).
    #[schema(max_items = 64, example = json!(["192.0.2.0/24"]))]
    accept_from: Option<Vec<String>>,
    /// Lower is tried first; 10 unless given.
    #[schema(minimum = 0, maximum = 65535)]
    priority: Option<i64>,
    /// Who we are there; may be empty.
    #[schema(max_length = 128)]
    username: Option<String>,
    /// The password of `username`; empty answers no challenge. Never shown.
    #[schema(max_length = 128, write_only)]
    password: Option<String>,
    /// The only realm that gets our credentials; empty takes the one that the trunk's own address names.
    #[schema(max_length = 128)]
    realm: Option<String>,
    /// Whether we register there; needs an address and a username.
    register: Option<bool>,
    /// Numbers that go out exactly as dialled, such as `112`.
    #[schema(max_items = 64)]
    short_numbers: Option<Vec<String>>,
    /// Which address its media must come from; null, as when it is left out of a new one, takes the node's setting.
    #[schema(value_type = Option<String>, pattern = "^(any|sdp|signalling)$", extensions(("x-nullable" = json!(true))))]
    strict_source: Option<StrictSource>,
    /// How many seconds an answered call over it lasts at most; null, as when it is left out of a new one, leaves the
    /// organisation's limit, or the node's.
    #[schema(minimum = 60, maximum = 86_400, extensions(("x-nullable" = json!(true))))]
    max_call_seconds: Option<i64>,
}

const KIND: Kind = Kind { sorts: BY_NAME, organisation_id: true, team_id: false };
const READ_ONLY: &[&str] = &["id", "has_password", "created_at", "updated_at"];

/// List trunks
///
/// A page of the trunks that the caller manages, by name unless asked otherwise. Those that all share are the
/// operator's.
#[utoipa::path(
    get,
    path = "/trunks",
    operation_id = "listTrunks",
    tag = "Trunks",
    params(ListParams, NameSortParam, OrganisationParam),
    responses((status = 200, description = "The page.", body = Page<TrunkView<'static>>)),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let listing = listing::read(&uri, &caller, &KIND)?;
    let Page { items, total, limit, offset } =
        state.directory()?.trunks.list(caller.scope(), &listing).await?;
    let items: Vec<_> = items.iter().map(TrunkRecord::view).collect();
    Ok(Json(Page { items, total, limit, offset }).into_response())
}

/// Create a trunk
#[utoipa::path(
    post,
    path = "/trunks",
    operation_id = "createTrunk",
    tag = "Trunks",
    request_body = TrunkBody,
    responses(
        (status = 201, description = "The trunk; `Location` names it.", body = TrunkView<'static>),
        (
            status = 409,
            description = "Another trunk has the name, or a trunk of another organisation has the carrier or one of the networks.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let (owner, mut new) = body.read(new_trunk)?;
    new.organisation_id = match owner {
        Some(None) => None,
        Some(named) => Some(caller.organisation(named)?),
        None => Some(caller.organisation(None)?),
    };
    require_own(&caller, new.organisation_id)?;
    let trunk = state.directory()?.trunks.create(caller.scope(), new, (state.clock)()).await?;
    Ok(created("trunks", trunk.id, trunk.view()))
}

/// Read a trunk
#[utoipa::path(
    get,
    path = "/trunks/{id}",
    operation_id = "getTrunk",
    tag = "Trunks",
    params(("id" = TrunkId, Path, description = "The trunk's `id`.")),
    responses((status = 200, description = "The trunk.", body = TrunkView<'static>)),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    Ok(Json(visible(&caller, &state, &id).await?.view()).into_response())
}

/// Change a trunk
///
/// A JSON merge patch: what is left out stays as it is. Read-only fields are ignored, so that what was read can be
/// sent back.
#[utoipa::path(
    patch,
    path = "/trunks/{id}",
    operation_id = "changeTrunk",
    tag = "Trunks",
    params(("id" = TrunkId, Path, description = "The trunk's `id`.")),
    request_body = TrunkBody,
    responses(
        (status = 200, description = "The whole trunk.", body = TrunkView<'static>),
        (
            status = 409,
            description = "Another trunk has the name, or a trunk of another organisation has the carrier or one of the networks.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let change = body.read(trunk_change)?;
    if let Some(owner) = change.organisation_id {
        require_own(&caller, owner)?;
    }
    let trunk = state.directory()?.trunks.change(caller.scope(), id, change, (state.clock)()).await?;
    Ok(Json(trunk.view()).into_response())
}

/// Remove a trunk
#[utoipa::path(
    delete,
    path = "/trunks/{id}",
    operation_id = "deleteTrunk",
    tag = "Trunks",
    params(("id" = TrunkId, Path, description = "The trunk's `id`.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 409, description = "Rates are given for it.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("trunks:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::TrunksWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    state.directory()?.trunks.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Only the operator may change a trunk that all organisations share.
fn require_own(caller: &Caller, owner: Option<OrganisationId>) -> Result<(), ApiError> {
    match owner {
        None if caller.scope() != Scope::Everything => {
            Err(ApiError::forbidden("only an operator has trunks that all organisations share"))
        }
        owner => caller.narrow(owner),
    }
}

async fn visible(caller: &Caller, state: &ApiState, id: &str) -> Result<TrunkRecord, ApiError> {
    let id: TrunkId = page::path_id("id", id)?;
    let found = state.directory()?.trunks.find(id).await?;
    let scope = caller.scope();
    seen(found, "trunk", |found| match found.organisation_id {
        None => scope == Scope::Everything,
        Some(owner) => scope.covers(owner, None),
    })
}

fn new_trunk(fields: &mut Fields) -> Option<(Option<Option<OrganisationId>>, NewTrunk)> {
    let change = trunk_change(fields)?;
    let name = fields.require_given("name", change.name);
    let new = NewTrunk {
        // The handler sets the caller's organisation.
        organisation_id: None,
        name: name?,
        address: change.address.flatten(),
        accept_from: change.accept_from.unwrap_or_default(),
        priority: change.priority.unwrap_or(rules::PRIORITY_DEFAULT),
        username: change.username.unwrap_or_default(),
        password: change.password.unwrap_or_default(),
        realm: change.realm.unwrap_or_default(),
        register: change.register.unwrap_or_default(),
        short_numbers: change.short_numbers.unwrap_or_default(),
        strict_source: change.strict_source.flatten(),
        max_call_seconds: change.max_call_seconds.flatten(),
    };
    Some((change.organisation_id, new))
}

fn trunk_change(fields: &mut Fields) -> Option<TrunkChange> {
    let priority = fields.integer("priority", 0..=i64::from(u16::MAX));
    let change = TrunkChange {
        organisation_id: fields.or_null("organisation_id", Fields::uuid),
        name: fields.parsed("name", rules::name),
        address: fields.parsed("address", |text| {
            if text.is_empty() { Ok(None) } else { rules::trunk_address(text).map(Some) }
        }),
        accept_from: fields.texts("accept_from", 0..=rules::NETWORKS_MAX, rules::network),
        priority: priority.and_then(|priority| u16::try_from(priority).ok()),
        username: fields.parsed("username", rules::trunk_identity),
        password: fields.parsed("password", rules::trunk_password).map(Secret),
        realm: fields.parsed("realm", rules::trunk_identity),
        register: fields.boolean("register"),
        short_numbers: fields.texts("short_numbers", 0..=rules::SHORT_NUMBERS_MAX, rules::short_number),
        strict_source: fields
            .or_null("strict_source", |fields, name| fields.parsed(name, rules::strict_source)),
        max_call_seconds: max_call_seconds(fields),
    };
    fields.read_only(READ_ONLY);
    Some(change)
}
