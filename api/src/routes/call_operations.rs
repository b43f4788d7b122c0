//! Operations on live calls: transfer, the move into a conference room, and hold.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::call_fields::GivenFields;
use sidetone_model::call_operation::{CallOperation, HoldOrder, MoveOrder, TransferOrder, TransferTarget};
use sidetone_model::ids::{CallId, LegId, RoomId};
use sidetone_model::live_call::LiveCall;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::room::RoomName;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::declare::{optional, required, text};
use crate::body::{Body, Fields, NoBody, OpenBody, body};
use crate::error::{ApiError, ErrorBody};
use crate::managed::seen;
use crate::page;
use crate::state::ApiState;

body! {
    /// Where a party of a call is transferred to: exactly one of `to` and `with`.
    pub(crate) struct TransferBody {
        /// A number, as the transferring extension would dial it: a blind transfer.
        #[schema(min_length = 1, max_length = 128, example = "1003")]
        to: Option<String> = optional(text(1..=128)),
        /// Another live call of the same extension, whose far end is joined: an attended transfer.
        with: Option<CallId> = optional(Fields::uuid),
        /// The leg that transfers and then leaves, a `uuid` of the call's `legs`; by default the phone of the call's
        /// `extension_id`.
        leg: Option<LegId> = optional(Fields::uuid),
    }
}

body! {
    /// The room that a call moves into.
    pub(crate) struct MoveBody {
        /// The room, of the call's organisation.
        room_id: RoomId = required(Fields::uuid),
        /// The leg that moves, a `uuid` of the call's `legs`, while the other is hung up; by default both move.
        leg: Option<LegId> = optional(Fields::uuid),
    }
}

body! {
    /// Who puts the other party of a call on hold.
    pub(crate) struct HoldBody {
        /// The leg that holds, a `uuid` of the call's `legs`; by default the phone of the call's `extension_id`.
        leg: Option<LegId> = optional(Fields::uuid),
    }
}

/// Whether a call is on hold.
#[derive(Serialize, ToSchema)]
pub(crate) struct HoldState {
    /// The leg that holds; null when none does.
    #[schema(required)]
    held_by: Option<LegId>,
}

/// A transfer that has begun.
#[derive(Serialize, ToSchema)]
pub(crate) struct TransferBegun {
    /// The call of the target.
    call_uuid: CallId,
}

/// A call that is moving into a room.
#[derive(Serialize, ToSchema)]
pub(crate) struct MovedToRoom {
    /// The live room.
    #[schema(value_type = String, example = "svc-room-0f6c1c0e-5a51-4cc5-8a5e-1f3a0d6f6b11")]
    room: RoomName,
}

/// Transfer a call
///
/// What the phone of an extension does with REFER, ordered by a program. With `to`, the number is called within the dial
/// plan of the extension and at its cost, and shows the transferred party; when it answers, both are joined and the phone
/// leaves. If it does not answer, the call goes on as before. With `with`, the far ends of two calls of the extension are
/// joined, at once or when the second call is answered. Each call has its own record, linked by `transferred_from` and
/// `transferred_to`.
///
/// 409 while the call is not answered, is in a room, is being transferred or changed, when the leg is no phone of an
/// extension, and when `to` is an extension without a registered phone. 422 when `to` cannot be dialled.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/transfer",
    operation_id = "transferCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    request_body = TransferBody,
    responses(
        (status = 202, description = "The transfer has begun; follow the call of its target.", body = TransferBegun),
        (status = 409, description = "The call cannot be transferred now (`conflict`).", body = ErrorBody),
        (status = 422, description = "A field is wrong (`unprocessable`).", body = ErrorBody),
        (status = 503, description = "The node accepts no call now; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn transfer(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    let body = body.read_open(["to", "with", "leg"], TransferBody::read)?;
    require_visible(&caller, &state, call).await?;
    let [number, with, leg] = body.texts();
    let (leg, with) = (uuid_of(leg).map(LegId), uuid_of(with).map(CallId));
    let given = GivenFields::Operation { call, leg, to: number, with, room: None };
    let TransferBody { to, with, leg } = judged(&caller, &state, body, given).await?;
    let to = match (to, with) {
        (Some(number), None) => TransferTarget::Number(number),
        (None, Some(with)) => {
            require_visible(&caller, &state, with).await?;
            TransferTarget::Call(with)
        }
        (Some(_), Some(_)) | (None, None) => {
            let (field, message) = ("to".to_owned(), "give one of to and with".to_owned());
            return Err(ApiError::unprocessable(vec![FieldProblem { field, message }]));
        }
    };
    let order = CallOperation::Transfer(TransferOrder { call, leg, to });
    let call_uuid = state.call_requests()?.operate(order).await?;
    Ok((StatusCode::ACCEPTED, Json(TransferBegun { call_uuid })).into_response())
}

/// Move a call into a conference room
///
/// Both parties become members of the room without a PIN, or only the party of `leg` while the other is hung up. Parties on
/// hold are resumed. Each member can then leave independently; the call lasts until its last party leaves.
///
/// 409 while the call is not answered, is in a room, is linked with another call by a transfer, or is being changed, and
/// when the room is locked or full. The parties of linked calls are brought into a room by
/// `POST /conference-rooms/{id}/dial`; the message says so.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/move-to-room",
    operation_id = "moveCallToRoom",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    request_body = MoveBody,
    responses(
        (status = 202, description = "The parties are moving; read the room.", body = MovedToRoom),
        (status = 409, description = "The call cannot move now (`conflict`).", body = ErrorBody),
        (status = 422, description = "A field is wrong (`unprocessable`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn move_to_room(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    let body = body.read_open(["room_id", "leg"], MoveBody::read)?;
    require_visible(&caller, &state, call).await?;
    let [room, leg] = body.texts().map(uuid_of);
    let (leg, room) = (leg.map(LegId), room.map(RoomId));
    let given = GivenFields::Operation { call, leg, to: None, with: None, room };
    let MoveBody { room_id: room, leg } = judged(&caller, &state, body, given).await?;
    let found = state.rooms()?.find(room).await?;
    seen(found, "conference room", |found| caller.scope().reaches(found.organisation_id))?;
    let order = CallOperation::MoveToRoom(MoveOrder { call, leg, room });
    state.call_requests()?.operate(order).await?;
    Ok((StatusCode::ACCEPTED, Json(MovedToRoom { room: RoomName::Stored(room) })).into_response())
}

/// Put a call on hold
///
/// The party that the leg talks to hears the organisation's music (the prompt `hold-music`), and the leg hears
/// nothing, from now on. Both phones are sent a re-INVITE that says so; a phone that refuses it is on hold all the
/// same. Repeating the request changes nothing. The hold ends with `unhold`, with a transfer of the party, a move
/// into a room or the end of the call; a phone cannot end it.
///
/// 409 while the call is not answered, is in a room, or is being changed, when the other leg holds, and when a party's codec
/// cannot be decoded.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/hold",
    operation_id = "holdCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    request_body = Option<HoldBody>,
    responses(
        (status = 200, description = "The call is on hold.", body = HoldState),
        (status = 409, description = "The call cannot be put on hold now (`conflict`).", body = ErrorBody),
        (status = 422, description = "A field is wrong (`unprocessable`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn hold(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: NoBody,
) -> Result<Json<HoldState>, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    let body = body.or_empty().read_open(["leg"], HoldBody::read)?;
    require_visible(&caller, &state, call).await?;
    let given = of_leg(call, body.texts());
    let HoldBody { leg } = judged(&caller, &state, body, given).await?;
    state.call_requests()?.operate(CallOperation::Hold(HoldOrder { call, leg })).await?;
    let held_by = state.live_calls()?.find(call).await?.and_then(|live| live.held_by);
    Ok(Json(HoldState { held_by }))
}

/// Resume a call
///
/// The parties talk to each other again. A hold that a phone began itself is not affected.
///
/// 409 when no program has put the call on hold, and while the call is being changed.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/unhold",
    operation_id = "unholdCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    responses(
        (status = 200, description = "The call goes on.", body = HoldState),
        (status = 409, description = "No program has put the call on hold (`conflict`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn unhold(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: NoBody,
) -> Result<Json<HoldState>, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    body.require()?;
    require_visible(&caller, &state, call).await?;
    state.call_requests()?.operate(CallOperation::Unhold(call)).await?;
    Ok(Json(HoldState { held_by: None }))
}

/// Returns a body. If a field is wrong in itself, the other fields are checked by the switch as well.
///
/// # Errors
/// 400 with every field that is wrong in itself; 422 if the switch reports further fields.
pub(super) async fn judged<T, const N: usize>(
    caller: &Caller,
    state: &ApiState,
    body: OpenBody<T, N>,
    given: GivenFields,
) -> Result<T, ApiError> {
    if !body.is_wrong() {
        return body.finish();
    }
    let wrong = state.call_requests()?.wrong_fields(caller.scope(), given).await?;
    body.refuse_beside(wrong)
}

/// The fields of an operation whose only field is the leg.
pub(super) fn of_leg(call: CallId, [leg]: [Option<String>; 1]) -> GivenFields {
    GivenFields::Operation { call, leg: uuid_of(leg).map(LegId), to: None, with: None, room: None }
}

fn uuid_of(text: Option<String>) -> Option<Uuid> {
    text.and_then(|text| text.parse().ok())
}

/// Checks that the caller may see a live call.
async fn require_visible(caller: &Caller, state: &ApiState, call: CallId) -> Result<(), ApiError> {
    visible(caller, state, call).await.map(drop)
}

/// Returns a live call that the caller may see; a conflict if the call has ended and only its record exists.
///
/// # Errors
/// 404 if neither exists, 409 if the call has ended, 403 if it belongs to another organisation or team.
pub(crate) async fn live_or_ended(
    caller: &Caller,
    state: &ApiState,
    call: CallId,
) -> Result<LiveCall, ApiError> {
    if let Some(live) = state.live_calls()?.find(call).await? {
        return seen(Some(live), "call that is up", |call| {
            caller.scope().covers(call.organisation_id, call.team_id)
        });
    }
    let record = state.cdrs.find(call).await?;
    seen(record, "call that is up", |record| caller.scope().covers(record.organisation_id, record.team_id))?;
    Err(ApiError::from(Problem::Conflict("the call has ended".to_owned())))
}

/// Returns a live call that the caller may see.
///
/// # Errors
/// 404 when there is none, 403 when it belongs to another organisation or team.
pub(crate) async fn visible(caller: &Caller, state: &ApiState, call: CallId) -> Result<LiveCall, ApiError> {
    let found = state.live_calls()?.find(call).await?;
    let scope = caller.scope();
    seen(found, "call that is up", |call| scope.covers(call.organisation_id, call.team_id))
}
