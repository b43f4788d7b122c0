//! Which extensions are rung when a conference room opens, and which enter it without a PIN.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::RoomId;
use sidetone_model::room::{Exemption, RoomMember};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::routes::conference_room_body::{
    RoomExemptionsBody, RoomMembersBody, exemptions as read_exemptions, members as read_members,
};
use crate::routes::conference_rooms::visible;
use crate::state::ApiState;

/// The default members of a room.
#[derive(Serialize, ToSchema)]
pub(crate) struct RoomMembers {
    /// In the order in which they are rung.
    items: Vec<RoomMember>,
}

/// Who enters a room without a PIN.
#[derive(Serialize, ToSchema)]
pub(crate) struct RoomExemptions {
    /// By the extensions' numbers.
    items: Vec<Exemption>,
}

/// List the default members of a room
///
/// The extensions that are rung when the room opens.
#[utoipa::path(
    get,
    path = "/conference-rooms/{id}/members",
    operation_id = "listConferenceRoomMembers",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room's `id`.")),
    responses((status = 200, description = "All of them.", body = RoomMembers)),
    extensions(("x-permission" = json!("conferences:read"))),
)]
pub(crate) async fn members(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<RoomMembers>, ApiError> {
    caller.require(Permission::ConferencesRead)?;
    let id = visible(&caller, &state, &id).await?.id;
    let items = state.rooms()?.members(caller.scope(), id).await?;
    Ok(Json(RoomMembers { items }))
}

/// Replace the default members of a room
///
/// The extensions that are rung when the room opens, and rung again as soon as they are free or registered while it is
/// up. What is sent is all of them; a room that is live goes on with those it was opened with.
#[utoipa::path(
    put,
    path = "/conference-rooms/{id}/members",
    operation_id = "setConferenceRoomMembers",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room's `id`.")),
    request_body = RoomMembersBody,
    responses((status = 200, description = "All of them.", body = RoomMembers)),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn set_members(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<RoomMembers>, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let members = body.read(read_members)?;
    let items = state.rooms()?.set_members(caller.scope(), id, members, (state.clock)()).await?;
    Ok(Json(RoomMembers { items }))
}

/// Replace who enters a room without a PIN
///
/// Extensions that dial the room's number and are seated in a role without a PIN. Only a phone that proved itself by the
/// directory's digest is an extension: an outside caller is never exempt. What is sent is all of them.
#[utoipa::path(
    put,
    path = "/conference-rooms/{id}/exemptions",
    operation_id = "setConferenceRoomExemptions",
    tag = "Conference rooms",
    params(("id" = RoomId, Path, description = "The room's `id`.")),
    request_body = RoomExemptionsBody,
    responses((status = 200, description = "All of them.", body = RoomExemptions)),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn set_exemptions(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<RoomExemptions>, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let exemptions = body.read(read_exemptions)?;
    let items = state.rooms()?.set_exemptions(caller.scope(), id, exemptions, (state.clock)()).await?;
    Ok(Json(RoomExemptions { items }))
}
