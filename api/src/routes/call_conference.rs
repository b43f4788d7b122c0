//! Merging two live calls into one conference.

use axum::Json;
use axum::extract::{Path, State};
use sidetone_model::access::{Permission, Who};
use sidetone_model::ids::CallId;
use sidetone_model::room::Requester;

use crate::auth::Caller;
use crate::body::declare::required;
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::managed::seen;
use crate::page;
use crate::routes::conferences::{LiveRoomView, view};
use crate::state::ApiState;

body! {
    /// The call that a call is merged with.
    pub(crate) struct MergeBody {
        /// The UUID of the other call.
        with: CallId = required(Fields::uuid),
    }
}

/// Merge two calls
///
/// Every party of the two calls becomes a member of the live room `svc-conf-<call uuid>`, named after the call in the
/// path; the answer is that room. A phone in both calls joins once: with its leg of the call in the path, unless that
/// leg is on hold and the other is not. Parties on hold are resumed. Each member can then leave independently; a call
/// lasts until its last party leaves. Emits `call.conferenced`.
///
/// 409 while one of the calls is not answered, is already in a room, or is being put on hold or resumed, and when the
/// calls belong to two organisations.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/conference",
    operation_id = "mergeCalls",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call that the room is named after.")),
    request_body = MergeBody,
    responses(
        (status = 200, description = "The room with its members.", body = LiveRoomView),
        (status = 503, description = "The switch is overloaded; nothing was done (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn merge(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    body: Body,
) -> Result<Json<LiveRoomView>, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call = page::path_id("uuid", &uuid)?;
    let MergeBody { with } = body.read(MergeBody::read)?;
    for call in [call, with] {
        let found = state.live_calls()?.find(call).await?;
        let scope = caller.scope();
        seen(found, "call that is up", |call| scope.covers(call.organisation_id, call.team_id))?;
    }
    let who = caller.principal().who;
    let extensions = match who {
        Who::User(user) => state.rooms()?.extensions_of(user).await?,
        Who::Key(_) => Vec::new(),
    };
    let by = Requester { who: Some(who), extensions };
    let room = state.live_rooms()?.merge(call, with, by).await?;
    Ok(Json(view(&caller, room)))
}
