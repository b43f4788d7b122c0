//! Stored conference rooms, and dialling a party into one.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::{CallId, RoomId};
use sidetone_model::page::Page;
use sidetone_model::room::{DialKind, Pin, Room, RoomDialled, RoomName, RoomView};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::entity_tag::{expected, tagged};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, ListParams, NameSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::params::With;
use crate::routes::conference_room_body::{ConferenceRoomChangeBody, DialBody, NewConferenceRoomBody};
use crate::routes::conferences;
use crate::state::ApiState;

/// The party that is being rung.
#[derive(Serialize, ToSchema)]
pub(crate) struct Dialling {
    /// The extension or the number, as it was dialled.
    #[schema(example = "+441632960001")]
    dialling: String,
    /// The call to the party. A party that was already being rung has the call of the first request.
    call_uuid: CallId,
}

type ListQuery = With<ListParams, With<NameSortParam, OrganisationParam>>;

/// List conference rooms
///
/// A page of the rooms in the caller's scope, by name by default. Rooms belong to no team: a caller who sees only one
/// team sees no rooms here, and in `GET /conferences` those with a member of the team. The PINs are shown: they are
/// invitation codes.
#[utoipa::path(
    get,
    path = "/conference-rooms",
    operation_id = "listConferenceRooms",
    tag = "Conference rooms",
    params(ListQuery),
    responses(
        (status = 200, description = "The page.", body = Page<RoomView<'static>>),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let listing = listing::read::<ListQuery>(&uri, &caller)?;
    let page = state.rooms()?.list(caller.scope(), &listing).await?;
    let ids: Vec<RoomId> = page.items.iter().map(|room| room.id).collect();
    let live = state.live_members(&ids).await?;
    let items = page.items.iter().zip(live).map(|(room, live)| room.view(live)).collect();
    Ok(Json(page.as_ref().with(items)).into_response())
}

/// Create a conference room
///
/// Extensions of the organisation dial its number within two seconds. To admit outside callers, set a phone number's
/// `destination` to `conference`. A room without a `participant_pin` admits every caller who can dial it.
#[utoipa::path(
    post,
    path = "/conference-rooms",
    operation_id = "createConferenceRoom",
    tag = "Conference rooms",
    request_body = NewConferenceRoomBody,
    responses(
        (
            status = 201,
            description = "The room; `Location` names it.",
            body = RoomView<'static>,
            headers(("ETag" = String, description = "Names the last change of the settings; for `If-Match`.")),
        ),
        (status = 409, description = "Another room of the organisation has the number.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let body = body.read_new(&caller, &state, NewConferenceRoomBody::read).await?;
    let organisation_id = caller.organisation(body.organisation_id)?;
    let new = body.room(organisation_id);
    let room = state.rooms()?.create(caller.scope(), new, (state.clock)()).await?;
    Ok(tagged(created("conference-rooms", room.id, room.view(0)), room.updated_at))
}

/// Read a conference room
///
/// Callers with the role `team_supervisor` or `agent` read a room while they see it live, with empty PINs.
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}",
    operation_id = "getConferenceRoom",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room's `id`.")),
    responses(
        (
            status = 200,
            description = "The room.",
            body = RoomView<'static>,
            headers(("ETag" = String, description = "Names the last change of the settings; for `If-Match`.")),
        ),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let room = stored_or_live(&caller, &state, &id).await?;
    shown(&state, &room).await
}

/// Change a conference room
///
/// A JSON merge patch: omitted fields keep their values. Read-only fields are ignored, so that a resource can be sent
/// back as it was read. `If-Match` refuses the change of a room that another request changed since. A live room keeps its settings until it ends, except the PINs and `max_members`, which apply
/// to the next caller.
#[utoipa::path(
    patch,
    path = "/conference-rooms/{id}",
    operation_id = "changeConferenceRoom",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room's `id`."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the room as it was read: 412 if it was changed since."),
    ),
    request_body = ConferenceRoomChangeBody,
    responses(
        (
            status = 200,
            description = "The whole room.",
            body = RoomView<'static>,
            headers(("ETag" = String, description = "Names the last change of the settings; for `If-Match`.")),
        ),
        (status = 409, description = "Another room of the organisation has the number.", body = ErrorBody),
        (status = 412, description = "The room was changed since (`precondition_failed`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let stored = visible(&caller, &state, &id).await?;
    let expected = expected(&headers)?;
    let (id, organisation) = (stored.id, Some(stored.organisation_id));
    let read = |fields: &mut Fields| ConferenceRoomChangeBody::read(fields, &stored);
    let change = body.read_change(&caller, &state, organisation, id.0, read).await?.into();
    let room = state.rooms()?.change(caller.scope(), id, expected, change, (state.clock)()).await?;
    shown(&state, &room).await
}

/// Remove a conference room
///
/// Its sessions can no longer be read.
#[utoipa::path(
    delete,
    path = "/conference-rooms/{id}",
    operation_id = "deleteConferenceRoom",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room's `id`."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the room as it was read: 412 if it was changed since."),
    ),
    responses(
        (status = 204, description = "Removed."),
        (status = 412, description = "The room was changed since (`precondition_failed`).", body = ErrorBody),
        (
            status = 409,
            description = "Phone numbers point at the room (the message names them), or the room is live.",
            body = ErrorBody,
        ),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let expected = expected(&headers)?;
    if state.live_members(&[id]).await?.iter().any(|members| *members > 0) {
        return Err(ApiError::conflict(format!(
            "the room is live: end it first, POST /conferences/{}/end",
            RoomName::from(id)
        )));
    }
    state.rooms()?.delete(caller.scope(), id, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Dial a party into a room
///
/// Rings an extension, which shows the room's number and name. With the kind `external` it dials an outside number:
/// the call is routed and billed as an outbound call and presents the organisation's first phone number. The party
/// that answers joins in the given role without a PIN; with `confirm`, once it has pressed 1. The response is sent while the call is ringing; the live room
/// shows whether it was answered. The room may be empty before. A party that does not join is the event
/// `conference.dial_failed` with its `call_uuid` and the cause.
///
/// Callers with the role `team_supervisor` dial into the rooms that they see live.
#[utoipa::path(
    post,
    path = "/conference-rooms/{id}/dial",
    operation_id = "dialIntoConferenceRoom",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room's `id`.")),
    request_body = DialBody,
    responses(
        (status = 202, description = "The call is ringing.", body = Dialling),
        (
            status = 409,
            description = "No phone of the extension is registered, there is no credit or no route to the \
                number, the room is full, or it is locked and the role is participant.",
            body = ErrorBody,
        ),
        (status = 503, description = "The node accepts no more calls now (`node_busy`); nothing rang.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:control"))),
)]
pub(crate) async fn dial(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesControl)?;
    let room = stored_or_live(&caller, &state, &id).await?;
    let request = dialled(&state, &room, body).await?.into();
    let RoomDialled { target, call } = state.live_rooms()?.dial(room.id, request).await?;
    Ok((StatusCode::ACCEPTED, Json(Dialling { dialling: target, call_uuid: call })).into_response())
}

/// Reads the party to dial. If another field is wrong, its target is checked as well.
///
/// # Errors
/// 400 with every field that is wrong, as for a target that alone is wrong.
async fn dialled(state: &ApiState, room: &Room, body: Body) -> Result<DialBody, ApiError> {
    let mut body = body.read_open(["kind", "target"], DialBody::read)?;
    let [kind, target] = body.texts();
    let kind = kind.and_then(|kind| DialKind::from_name(&kind));
    let Some((kind, target)) = kind.zip(target).filter(|_| body.is_wrong()) else { return body.finish() };
    let wrong = state.live_rooms()?.wrong_target(room.organisation_id, kind, target).await?;
    body.refuse(wrong);
    body.finish()
}

/// Returns the room in the path if the caller may see it.
pub(crate) async fn visible(caller: &Caller, state: &ApiState, id: &str) -> Result<Room, ApiError> {
    let id: RoomId = page::path_id("id", id)?;
    let found = state.rooms()?.find(id).await?;
    seen(found, "conference room", |found| caller.scope().covers(found.organisation_id, None))
}

/// Returns the room in the path if the caller may see it; without its PINs if the caller only sees it live.
async fn stored_or_live(caller: &Caller, state: &ApiState, id: &str) -> Result<Room, ApiError> {
    match visible(caller, state, id).await {
        Err(refused) if refused.is_forbidden() => live(caller, state, id).await?.ok_or(refused),
        room => room,
    }
}

/// Returns the room without its PINs if the caller sees it live.
async fn live(caller: &Caller, state: &ApiState, id: &str) -> Result<Option<Room>, ApiError> {
    let id: RoomId = page::path_id("id", id)?;
    let is_seen = conferences::is_seen(caller, state, id).await?;
    let room = if is_seen { state.rooms()?.find(id).await? } else { None };
    Ok(room.map(|room| Room { participant_pin: Pin::default(), moderator_pin: Pin::default(), ..room }))
}

async fn shown(state: &ApiState, room: &Room) -> Result<Response, ApiError> {
    let live = state.live_members(&[room.id]).await?.first().copied().unwrap_or_default();
    Ok(tagged(Json(room.view(live)).into_response(), room.updated_at))
}
