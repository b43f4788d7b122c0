//! Which extensions are rung when a conference room opens, and which enter it without a PIN.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::ids::RoomId;
use sidetone_model::room::{Exemption, RoomMember};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::Body;
use crate::entity_tag::expected;
use crate::error::{ApiError, ErrorBody};
use crate::routes::conference_room_body::{RoomExemptionsBody, RoomMembersBody};
use crate::routes::conference_rooms::visible;
use crate::state::ApiState;

/// The default members of a room.
#[derive(Serialize, ToSchema)]
pub(crate) struct RoomMembers {
    /// In the order in which they are rung.
    items: Vec<RoomMember>,
}

/// The extensions that join a room without a PIN.
#[derive(Serialize, ToSchema)]
pub(crate) struct RoomExemptions {
    /// Sorted by the extensions' numbers.
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
    responses((status = 200, description = "The whole list.", body = RoomMembers)),
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
/// The extensions that are rung when the room opens, and again when they become free or register while it is live.
/// The list replaces the former one; a live room keeps the list it was opened with.
#[utoipa::path(
    put,
    path = "/conference-rooms/{id}/members",
    operation_id = "setConferenceRoomMembers",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room's `id`."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the room as it was read: 412 if it was changed since."),
    ),
    request_body = RoomMembersBody,
    responses(
        (status = 200, description = "The whole list.", body = RoomMembers),
        (status = 412, description = "The room was changed since (`precondition_failed`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn set_members(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<RoomMembers>, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let room = visible(&caller, &state, &id).await?;
    let (id, expected) = (room.id, expected(&headers)?);
    let organisation = Some(room.organisation_id);
    let members = body.read_change(&caller, &state, organisation, id.0, RoomMembersBody::read).await?.into();
    let items = state.rooms()?.set_members(caller.scope(), id, expected, members, (state.clock)()).await?;
    Ok(Json(RoomMembers { items }))
}

/// Replace the extensions that join without a PIN
///
/// Extensions that dial the room's number and join in a role without a PIN. Only a phone that authenticated with its
/// SIP password counts as an extension; an outside caller is never exempt. The list replaces the former one.
#[utoipa::path(
    put,
    path = "/conference-rooms/{id}/exemptions",
    operation_id = "setConferenceRoomExemptions",
    tag = "Conference rooms",
    params(
        ("id" = RoomId, Path, description = "The room's `id`."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the room as it was read: 412 if it was changed since."),
    ),
    request_body = RoomExemptionsBody,
    responses(
        (status = 200, description = "The whole list.", body = RoomExemptions),
        (status = 412, description = "The room was changed since (`precondition_failed`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conferences:write"))),
)]
pub(crate) async fn set_exemptions(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<RoomExemptions>, ApiError> {
    caller.require(Permission::ConferencesWrite)?;
    let room = visible(&caller, &state, &id).await?;
    let (id, expected) = (room.id, expected(&headers)?);
    let organisation = Some(room.organisation_id);
    let exemptions =
        body.read_change(&caller, &state, organisation, id.0, RoomExemptionsBody::read).await?.into();
    let items =
        state.rooms()?.set_exemptions(caller.scope(), id, expected, exemptions, (state.clock)()).await?;
    Ok(Json(RoomExemptions { items }))
}
