//! Phone numbers and their destinations.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::directory::{Destination, DestinationKind};
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{NumberId, OrganisationId};
use sidetone_model::number::{NewNumber, NumberChange, NumberRecord, NumberView};
use sidetone_model::page::Page;
use sidetone_model::rules;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::declare::{checked, id_of, null_or, nullable, optional, parsed, required};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, ListParams, NumberSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::params::With;
use crate::state::ApiState;

body! {
    /// A new phone number.
    pub(crate) struct NewNumberBody {
        /// The owner; the caller's organisation by default.
        organisation_id: Option<OrganisationId> = optional(id_of(StoredRule::Organisation)),
        /// The number in E.164, with its `+`.
        #[schema(pattern = "^\\+[1-9][0-9]{1,14}$", example = "+442079460123")]
        number: String = required(checked(StoredRule::FreePhoneNumber, parsed(rules::e164))),
        /// The kind of destination.
        #[schema(inline)]
        destination: DestinationKind = required(kind),
        /// The destination, in the same organisation. A conference without it asks its callers for the room's number.
        destination_id: Option<Uuid> = null_or(Fields::uuid),
    }
    ignores &["id", "created_at", "updated_at"];
    checks |fields: &mut Fields| {
        if let (Some(kind), Some(id), false) = (destination, destination_id, fields.is_refused("destination_id")) {
            check_destination(fields, Destination::of(kind, id));
        }
    };
}

body! {
    /// Changes of a phone number; omitted fields keep their values.
    pub(crate) struct NumberChangeBody(stored: &NumberRecord) {
        /// The new number.
        #[schema(pattern = "^\\+[1-9][0-9]{1,14}$")]
        number: Option<String> = optional(checked(StoredRule::FreePhoneNumber, parsed(rules::e164))),
        /// The new kind of destination; an extension needs a `destination_id`.
        #[schema(inline)]
        destination: Option<DestinationKind> = optional(kind),
        /// The new destination; null is a conference that asks its callers for the room's number.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        destination_id: Option<Option<Uuid>> = nullable(Fields::uuid),
    }
    ignores &["id", "organisation_id", "created_at", "updated_at"];
    checks |fields: &mut Fields| {
        if !fields.is_refused("destination") && !fields.is_refused("destination_id") {
            let change = NumberChange {
                kind: destination.flatten(),
                destination_id: destination_id.flatten(),
                ..NumberChange::default()
            };
            let changed = change.destination(stored.destination);
            if changed.as_ref().ok() != Some(&stored.destination) {
                check_destination(fields, changed.map_err(|problem| problem.message));
            }
        }
    };
}

type ListQuery = With<ListParams, With<NumberSortParam, OrganisationParam>>;

/// List phone numbers
///
/// A page of the numbers in the caller's scope, by number by default. Numbers belong to no team: a caller who sees
/// only one team sees none.
#[utoipa::path(
    get,
    path = "/numbers",
    operation_id = "listNumbers",
    tag = "Directory",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<NumberView<'static>>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let listing = listing::read::<ListQuery>(&uri, &caller)?;
    let page = state.directory()?.numbers.list(caller.scope(), &listing).await?;
    Ok(Json(page.as_ref().map(NumberRecord::view)).into_response())
}

/// Create a phone number
///
/// A call from a trunk to the number reaches its destination: an extension or a conference. With a `destination_id`,
/// a caller of the conference is asked only for that room's PIN; without it, for the room's number first.
#[utoipa::path(
    post,
    path = "/numbers",
    operation_id = "createNumber",
    tag = "Directory",
    request_body = NewNumberBody,
    responses(
        (status = 201, description = "The number; `Location` names it.", body = NumberView<'static>),
        (status = 409, description = "The number is already in use.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let (organisation_id, number, destination) = body.read_new(&caller, &state, new_number).await?;
    let organisation_id = caller.organisation(organisation_id)?;
    let new = NewNumber { organisation_id, number, destination };
    let number = state.directory()?.numbers.create(caller.scope(), new, (state.clock)()).await?;
    Ok(created("numbers", number.id, number.view()))
}

/// Read a phone number
#[utoipa::path(
    get,
    path = "/numbers/{id}",
    operation_id = "getNumber",
    tag = "Directory",
    params(("id" = NumberId, Path, description = "The number's `id`.")),
    responses((status = 200, description = "The number.", body = NumberView<'static>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    Ok(Json(visible(&caller, &state, &id).await?.view()).into_response())
}

/// Change a phone number
///
/// A JSON merge patch: omitted fields keep their values. Read-only fields are ignored, so that a resource can be sent
/// back as it was read.
#[utoipa::path(
    patch,
    path = "/numbers/{id}",
    operation_id = "changeNumber",
    tag = "Directory",
    params(("id" = NumberId, Path, description = "The number's `id`.")),
    request_body = NumberChangeBody,
    responses(
        (status = 200, description = "The whole number.", body = NumberView<'static>),
        (status = 409, description = "The number is already in use.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let stored = visible(&caller, &state, &id).await?;
    let (id, organisation) = (stored.id, Some(stored.organisation_id));
    let change = body
        .read_change(&caller, &state, organisation, id.0, |fields| number_change(fields, &stored))
        .await?;
    let number = state.directory()?.numbers.change(caller.scope(), id, change, (state.clock)()).await?;
    Ok(Json(number.view()).into_response())
}

/// Remove a phone number
#[utoipa::path(
    delete,
    path = "/numbers/{id}",
    operation_id = "deleteNumber",
    tag = "Directory",
    params(("id" = NumberId, Path, description = "The number's `id`.")),
    responses((status = 204, description = "Removed.")),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    state.directory()?.numbers.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn visible(caller: &Caller, state: &ApiState, id: &str) -> Result<NumberRecord, ApiError> {
    let id: NumberId = page::path_id("id", id)?;
    let found = state.directory()?.numbers.find(id).await?;
    seen(found, "number", |found| caller.scope().covers(found.organisation_id, None))
}

fn number_change(fields: &mut Fields, stored: &NumberRecord) -> Option<NumberChange> {
    let NumberChangeBody { number, destination: kind, destination_id } =
        NumberChangeBody::read(fields, stored)?;
    Some(NumberChange { number, kind, destination_id })
}

/// Reads a new number with its owner and destination.
fn new_number(fields: &mut Fields) -> Option<(Option<OrganisationId>, String, Destination)> {
    let new = NewNumberBody::read(fields)?;
    let destination = Destination::of(new.destination, new.destination_id).ok()?;
    Some((new.organisation_id, new.number, destination))
}

/// Refuses an invalid destination; adds a check against the stored data for a valid one.
fn check_destination(fields: &mut Fields, destination: Result<Destination, impl Into<String>>) {
    match destination {
        Ok(Destination::Conference(None)) => {}
        Ok(Destination::Conference(Some(room))) => fields.check(DESTINATION, StoredRule::Room, room),
        Ok(Destination::Extension(extension)) => fields.check(DESTINATION, StoredRule::Extension, extension),
        Err(message) => _ = fields.refuse::<()>(DESTINATION, message),
    }
}

fn kind(fields: &mut Fields, name: &'static str) -> Option<DestinationKind> {
    fields.parsed(name, |kind| DestinationKind::from_name(kind).ok_or("must be conference or extension"))
}

const DESTINATION: &str = "destination_id";
