//! Stored conference rooms, and dialling a party into one.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::RoomId;
use sidetone_model::page::Page;
use sidetone_model::room::{Room, RoomName, RoomView};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, BY_NAME, Kind, ListParams, NameSortParam, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::routes::conference_room_body::{
    ConferenceRoomChangeBody, DialBody, NewConferenceRoomBody, dial as dial_body, new_room, room_change,
};
use crate::state::ApiState;

/// Who is rung now.
#[derive(Serialize, ToSchema)]
pub(crate) struct Dialling {
    /// The extension or the number, as it was dialled.
    #[schema(example = "+441632960001")]
    dialling: String,
}

const KIND: Kind = Kind { sorts: BY_NAME, organisation_id: true, team_id: false };

/// List conference rooms
///
/// A page of the rooms that the caller sees, by name unless asked otherwise. Rooms belong to no team: who sees one team
/// alone sees none here, and in `GET /conferences` those that somebody of the team is in. The PINs are shown: they are
/// invitation codes.
#[utoipa::path(
    get,
    path = "/conference-rooms",
    operation_id = "listConferenceRooms",
    tag = "Conference rooms",
    params(ListParams, NameSortParam, OrganisationParam),
    responses(
        (status = 200, description = "The page.", body = Page<RoomView<'static>>),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let listing = listing::read(&uri, &caller, &KIND)?;
    let Page { items, total, limit, offset } = state.rooms()?.list(caller.scope(), &listing).await?;
    let ids: Vec<RoomId> = items.iter().map(|room| room.id).collect();
    let live = state.live_members(&ids).await?;
    let items: Vec<_> = items.iter().zip(live).map(|(room, live)| room.view(live)).collect();
    Ok(Json(Page { items, total, limit, offset }).into_response())
}

/// Create a conference room
///
/// Extensions of the organisation dial its number within two seconds. To admit outside callers, set a phone number's
/// `destination` to `conference`. A room without a `participant_pin` lets in whoever can dial it.
#[utoipa::path(
    post,
    path = "/conference-rooms",
    operation_id = "createConferenceRoom",
    tag = "Conference rooms",
    request_body = NewConferenceRoomBody,
    responses(
        (status = 201, description = "The room; `Location` names it.", body = RoomView<'static>),
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
    let (organisation_id, new) = body.read(new_room)?;
    let new = new(caller.organisation(organisation_id)?);
    let room = state.rooms()?.create(caller.scope(), new, (state.clock)()).await?;
    Ok(created("conference-rooms", room.id, room.view(0)))
}

/// Read a conference room
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}",
    operation_id = "getConferenceRoom",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room's `id`.")),
    responses(
        (status = 200, description = "The room.", body = RoomView<'static>),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let room = visible(&caller, &state, &id).await?;
    shown(&state, &room).await
}

/// Change a conference room
///
/// A JSON merge patch: what is left out stays as it is. Read-only fields are ignored, so that what was read can be
/// sent back. What a live room was opened with holds until it ends; PINs and `max_members` hold for who comes next.
#[utoipa::path(
    patch,
    path = "/conference-rooms/{id}",
    operation_id = "changeConferenceRoom",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room's `id`.")),
    request_body = ConferenceRoomChangeBody,
    responses(
        (status = 200, description = "The whole room.", body = RoomView<'static>),
        (status = 409, description = "Another room of the organisation has the number.", body = ErrorBody),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let change = body.read(room_change)?;
    let room = state.rooms()?.change(caller.scope(), id, change, (state.clock)()).await?;
    shown(&state, &room).await
}

/// Remove a conference room
///
/// Its sessions can no longer be read then.
#[utoipa::path(
    delete,
    path = "/conference-rooms/{id}",
    operation_id = "deleteConferenceRoom",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room's `id`.")),
    responses(
        (status = 204, description = "It is gone."),
        (
            status = 409,
            description = "Phone numbers lead to it, which the message names; or somebody is in it.",
            body = ErrorBody,
        ),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    if state.live_members(&[id]).await?.iter().any(|members| *members > 0) {
        return Err(ApiError::conflict(format!(
            "the room is live: end it first, POST /conferences/{}/end",
            RoomName::from(id)
        )));
    }
    state.rooms()?.delete(caller.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Dial somebody into a room
///
/// Rings an extension, which shows the room's number and name, or with the kind `external` a number of the world, which
/// is routed and billed as an outbound call and sees the organisation's first phone number. Whoever answers is seated in
/// the given role without keying a PIN. The answer comes while the call is ringing: whether it was answered shows in the
/// live room. Nobody has to be in the room before.
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
            description = "No phone of the extension is registered, there is no credit or no way to the number, the room \
                           is full, or it is locked and the role is participant.",
            body = ErrorBody,
        ),
        (status = 503, description = "The node can take no more calls now (`node_busy`); nothing rang.", body = ErrorBody),
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
    let room = visible(&caller, &state, &id).await?;
    let request = body.read(dial_body)?;
    let dialling = state.live_rooms()?.dial(room.id, request).await?;
    Ok((StatusCode::ACCEPTED, Json(Dialling { dialling })).into_response())
}

/// Returns the room in the path if the caller may see it.
pub(crate) async fn visible(caller: &Caller, state: &ApiState, id: &str) -> Result<Room, ApiError> {
    let id: RoomId = page::path_id("id", id)?;
    let found = state.rooms()?.find(id).await?;
    seen(found, "conference room", |found| caller.scope().covers(found.organisation_id, None))
}

async fn shown(state: &ApiState, room: &Room) -> Result<Response, ApiError> {
    let live = state.live_members(&[room.id]).await?.first().copied().unwrap_or_default();
    Ok(Json(room.view(live)).into_response())
}
