//! Phone numbers and their destinations.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::directory::{Destination, DestinationKind};
use sidetone_model::ids::{NumberId, OrganisationId};
use sidetone_model::number::{NewNumber, NumberChange, NumberRecord, NumberView};
use sidetone_model::page::Page;
use sidetone_model::rules;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, BY_NUMBER, Kind, ListParams, NumberSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::state::ApiState;

/// A new phone number.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `create` reads")]
pub(crate) struct NewNumberBody {
    /// Whose it is; the caller's own organisation unless given.
    organisation_id: Option<OrganisationId>,
    /// The number in E.164, with its `+`.
    #[schema(pattern = "^\\+[1-9][0-9]{1,14}$", example = "+442071230000")]
    number: String,
    /// What kind of thing a call to it reaches.
    #[schema(inline)]
    destination: DestinationKey,
    /// Which one, of the same organisation. A conference without one asks its caller for the room's number.
    destination_id: Option<Uuid>,
}

/// What changes of a phone number; what is left out stays as it is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `change` reads")]
pub(crate) struct NumberChangeBody {
    /// Another number.
    #[schema(pattern = "^\\+[1-9][0-9]{1,14}$")]
    number: Option<String>,
    /// Another kind of destination; an extension comes with a `destination_id`.
    #[schema(inline)]
    destination: Option<DestinationKey>,
    /// Another destination; null is a conference whose caller is asked for the room's number.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    destination_id: Option<Uuid>,
}

/// What a number can lead to.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "says in the document what `destination` reads")]
enum DestinationKey {
    Conference,
    Extension,
}

const KIND: Kind = Kind { sorts: BY_NUMBER, organisation_id: true, team_id: false };
const READ_ONLY: &[&str] = &["id", "organisation_id", "created_at", "updated_at"];

/// List phone numbers
///
/// A page of the numbers that the caller sees, by number unless asked otherwise. Numbers belong to no team: who sees
/// one team alone sees none.
#[utoipa::path(
    get,
    path = "/numbers",
    operation_id = "listNumbers",
    tag = "Directory",
    params(ListParams, NumberSortParam, OrganisationParam),
    responses((status = 200, description = "The page.", body = Page<NumberView<'static>>)),
    extensions(("x-permission" = json!("directory:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryRead)?;
    let listing = listing::read(&uri, &caller, &KIND)?;
    let Page { items, total, limit, offset } =
        state.directory()?.numbers.list(caller.scope(), &listing).await?;
    let items: Vec<_> = items.iter().map(NumberRecord::view).collect();
    Ok(Json(Page { items, total, limit, offset }).into_response())
}

/// Create a phone number
///
/// A call that a trunk brings to the number reaches its destination: an extension, or a conference. With a
/// `destination_id` the caller of a conference is asked for that room's PIN alone; without one for the room's number
/// first.
#[utoipa::path(
    post,
    path = "/numbers",
    operation_id = "createNumber",
    tag = "Directory",
    request_body = NewNumberBody,
    responses(
        (status = 201, description = "The number; `Location` names it.", body = NumberView<'static>),
        (status = 409, description = "The number is taken, by whomever.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("directory:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::DirectoryWrite)?;
    let (organisation_id, number, destination) = body.read(new_number)?;
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
/// A JSON merge patch: what is left out stays as it is. Read-only fields are ignored, so that what was read can be
/// sent back.
#[utoipa::path(
    patch,
    path = "/numbers/{id}",
    operation_id = "changeNumber",
    tag = "Directory",
    params(("id" = NumberId, Path, description = "The number's `id`.")),
    request_body = NumberChangeBody,
    responses(
        (status = 200, description = "The whole number.", body = NumberView<'static>),
        (status = 409, description = "The number is taken, by whomever.", body = ErrorBody),
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
    let id = visible(&caller, &state, &id).await?.id;
    let change = body.read(number_change)?;
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
    responses((status = 204, description = "It is gone.")),
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

fn new_number(fields: &mut Fields) -> Option<(Option<OrganisationId>, String, Destination)> {
    let organisation_id = fields.uuid("organisation_id");
    let number = fields.required("number", |fields, name| fields.parsed(name, rules::e164));
    let kind = fields.required("destination", destination);
    let given = fields.has("destination_id");
    let id = fields.or_null("destination_id", Fields::uuid::<Uuid>);
    fields.read_only(&["id", "created_at", "updated_at"]);
    if given && id.is_none() {
        return None;
    }
    match Destination::of(kind?, id.flatten()) {
        Ok(destination) => Some((organisation_id, number?, destination)),
        Err(message) => fields.refuse("destination_id", message),
    }
}

fn number_change(fields: &mut Fields) -> Option<NumberChange> {
    let number = fields.parsed("number", rules::e164);
    let kind = destination(fields, "destination");
    let destination_id = fields.or_null("destination_id", Fields::uuid::<Uuid>);
    fields.read_only(READ_ONLY);
    Some(NumberChange { number, kind, destination_id })
}

fn destination(fields: &mut Fields, name: &'static str) -> Option<DestinationKind> {
    fields.parsed(name, |kind| DestinationKind::from_name(kind).ok_or("must be conference or extension"))
}
