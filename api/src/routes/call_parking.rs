//! Parking of live calls, and their pick-up.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::call_fields::GivenFields;
use sidetone_model::call_operation::CallOperation;
use sidetone_model::call_parking::{PARK_SECONDS, ParkOrder, ParkedIn};
use sidetone_model::ids::{CallId, LegId};
use sidetone_model::problem::Problem;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::declare::{integer, optional, required, text};
use crate::body::{Body, Fields, NoBody, body};
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::routes::call_operations::{judged, live_or_ended, of_leg};
use crate::state::ApiState;

body! {
    /// Who parks the other party of a call, and where.
    pub(crate) struct ParkBody {
        /// The leg that parks the other party and then leaves, a `uuid` of the call's `legs`; by default the phone of the
        /// call's `extension_id`.
        leg: Option<LegId> = optional(Fields::uuid),
        /// The slot; by default the lowest free one.
        #[schema(value_type = Option<i32>, minimum = 1, maximum = 99)]
        slot: Option<u16> = optional(integer(1..=99)),
        /// After how many seconds the party is returned to the extension that parked it.
        #[schema(value_type = Option<i32>, minimum = 10, maximum = 3600, default = 300)]
        seconds: Option<u32> = optional(integer(10..=3_600)),
    }
}

body! {
    /// Who picks up a call.
    pub(crate) struct PickUpBody {
        /// The extension whose phones are called: its id or number, the id of its agent, or the email address of its user.
        #[schema(min_length = 1, max_length = 254, example = "1002")]
        from: String = required(text(1..=254)),
    }
}

/// A parked call.
#[derive(Serialize, ToSchema)]
pub(crate) struct ParkedCall {
    /// The call of the parked party; after a transfer it may be another one than the call in the path.
    call_uuid: CallId,
    /// Where it is parked.
    #[serde(flatten)]
    parked: ParkedIn,
}

/// A pick-up that has begun.
#[derive(Serialize, ToSchema)]
pub(crate) struct PickUpBegun {
    /// The call to the phones of the extension.
    call_uuid: CallId,
}

/// Park a call
///
/// The party that the leg talks to waits in a slot of the organisation and hears its music (the prompt `hold-music`); the
/// phone of the leg is hung up. `POST /calls/{uuid}/pickup` connects the party with another extension, and
/// `GET /calls?parked_slot=` finds it. After `seconds` the extension that parked it is called for 30 seconds; if it does
/// not answer, the call ends with `PARK_TIMEOUT`.
///
/// 409 while the call is not answered, is in a room, is being transferred or changed, when the leg is no phone of an
/// extension, when the party's codec cannot be encoded, when the slot is taken, and when the call has ended.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/park",
    operation_id = "parkCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    request_body = Option<ParkBody>,
    responses(
        (status = 200, description = "The party is parked.", body = ParkedCall),
        (status = 409, description = "The call cannot be parked now (`conflict`).", body = ErrorBody),
        (status = 422, description = "A field is wrong (`unprocessable`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn park(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: NoBody,
) -> Result<Json<ParkedCall>, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    let body = body.or_empty().read_open(["leg"], ParkBody::read)?;
    live_or_ended(&caller, &state, call).await?;
    let given = of_leg(call, body.texts());
    let ParkBody { leg, slot, seconds } = judged(&caller, &state, body, given).await?;
    let order = ParkOrder { call, leg, slot, seconds: seconds.unwrap_or(PARK_SECONDS) };
    let call_uuid = state.call_requests()?.operate(CallOperation::Park(order)).await?;
    let parked = state.live_calls()?.find(call_uuid).await?.and_then(|live| live.parked);
    let ended = || ApiError::from(Problem::Conflict("the parked party has left".to_owned()));
    Ok(Json(ParkedCall { call_uuid, parked: parked.ok_or_else(ended)? }))
}

/// Pick up a call
///
/// Calls the phones of an extension of the call's organisation for 30 seconds, and connects the one that answers with the
/// parked party, or with the caller of a call that still rings elsewhere. If none answers, the party waits on. Forwarding
/// and do not disturb of the extension do not apply. Each call has its own record, linked by `transferred_from` and
/// `transferred_to`.
///
/// 409 when the call is neither parked nor ringing, while another extension picks it up or it is being returned, when the
/// extension has no registered phone, and when the call has ended. 403 when `from` is outside the caller's scope.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/pickup",
    operation_id = "pickUpCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    request_body = PickUpBody,
    responses(
        (status = 202, description = "The phones of the extension are called.", body = PickUpBegun),
        (status = 409, description = "The call cannot be picked up now (`conflict`).", body = ErrorBody),
        (status = 422, description = "A field is wrong (`unprocessable`).", body = ErrorBody),
        (status = 503, description = "The node accepts no call now; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn pick_up(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    let body = body.read_open(["from"], PickUpBody::read)?;
    let organisation = live_or_ended(&caller, &state, call).await?.organisation_id;
    let [from] = body.texts();
    let given = GivenFields::Placement { organisation, from, to: None, caller_id: None, has_callback: false };
    let PickUpBody { from } = judged(&caller, &state, body, given).await?;
    let call_uuid = state.call_requests()?.pick_up(caller.scope(), organisation, call, &from).await?;
    Ok((StatusCode::ACCEPTED, Json(PickUpBegun { call_uuid })).into_response())
}
