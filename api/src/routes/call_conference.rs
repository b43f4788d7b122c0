//! Merging two live calls into one conference.

use axum::Json;
use axum::extract::{Path, State};
use sidetone_model::access::{Permission, Who};
use sidetone_model::ids::CallId;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::managed::seen;
use crate::page;
use crate::routes::conferences::{LiveRoomView, view};
use crate::state::ApiState;

/// The call that a call is merged with.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `merge` reads")]
pub(crate) struct MergeBody {
    /// The UUID of the other call.
    with: CallId,
}

/// Merge two calls
///
/// Everybody in the two calls becomes a member of the live room `svc-conf-<call uuid>`, named after the call of the path,
/// and the answer is that room. A phone that is in both calls is seated once: its leg of the call of the path stays, unless
/// it has put that one on hold and talks in the other. Who is on hold is asked back. From then on each of them leaves on
/// their own; a call lasts until the last of its parties is gone. Emits `call.conferenced`.
///
/// 409 while one of the calls is not answered, is in a room already, or is put on hold or resumed at that moment, and
/// when the calls are of two organisations.
#[utoipa::path(
    post,
    path = "/calls/{uuid}/conference",
    operation_id = "mergeCalls",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call that the room is named after.")),
    request_body = MergeBody,
    responses(
        (status = 200, description = "The room with its members.", body = LiveRoomView),
        (status = 503, description = "The switch has too much to do; nothing was done (`node_busy`).", body = ErrorBody),
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
    let with: CallId = body.read(|fields| fields.required("with", Fields::uuid))?;
    for call in [call, with] {
        let found = state.live_calls()?.find(call).await?;
        let scope = caller.scope();
        seen(found, "call that is up", |call| scope.covers(call.organisation_id, call.team_id))?;
    }
    let by = match caller.principal().who {
        Who::User(user) => state.rooms()?.extensions_of(user).await?,
        Who::Key(_) => Vec::new(),
    };
    let room = state.live_rooms()?.merge(call, with, by).await?;
    Ok(Json(view(&caller, room)))
}
