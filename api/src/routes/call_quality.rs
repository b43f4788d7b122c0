//! The media quality of a call, live or finished.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::Uri;
use sidetone_model::access::Permission;
use sidetone_model::ids::CallId;
use sidetone_model::media_quality::CallQuality;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::managed::seen;
use crate::page;
use crate::params::{self, query};
use crate::routes::cdrs::record_of;
use crate::state::ApiState;

query! {
    /// The parameters.
    pub(crate) struct QualityParams {
        /// Whether to include one row per second; `false` leaves them out.
        #[param(default = true)]
        timeline: bool = page::boolean,
    }
}

/// Read the media of a live call
///
/// The current figures of both legs, and the verdict if the call ended now. 404 once the call is over;
/// `/cdrs/{uuid}/quality` then has the final figures.
#[utoipa::path(
    get,
    path = "/calls/{uuid}/quality",
    operation_id = "getCallQuality",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID."), QualityParams),
    responses(
        (status = 200, description = "The current figures.", body = CallQuality),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn of_call(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<CallQuality>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = page::path_id("uuid", &uuid)?;
    let timeline = with_timeline(&uri)?;
    let found = state.live_quality()?.quality(call).await?;
    if found.is_none() {
        return Err(ApiError::not_found(
            "there is no such call that is up; when it is over its media is under /cdrs/{uuid}/quality",
        ));
    }
    let scope = caller.scope();
    let found = seen(found, "call that is up", |live| scope.covers(live.organisation_id, live.team_id))?;
    Ok(answer(found.quality, timeline))
}

/// Read the media of a call record
///
/// The verdict on both legs with the rule that fired, its numbers and thresholds, what every other rule measured, the
/// figures in both directions, and one row per second. A call without media has no legs, and its `sentence` states
/// that. A record that is older than these figures has only the verdict.
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}/quality",
    operation_id = "getCdrQuality",
    tag = "Call log",
    params(("uuid" = CallId, Path, description = "The call's `call_uuid`."), QualityParams),
    responses((status = 200, description = "The stored figures.", body = CallQuality)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn of_record(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<CallQuality>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = page::path_id("uuid", &uuid)?;
    let timeline = with_timeline(&uri)?;
    let cdr = record_of(&caller, &state, call).await?;
    let kept = match state.stored_quality() {
        Some(stored) => stored.of_record(&cdr).await?,
        None => None,
    };
    Ok(answer(kept.unwrap_or_else(|| CallQuality::nothing_of(&cdr)), timeline))
}

fn answer(quality: CallQuality, timeline: bool) -> Json<CallQuality> {
    Json(if timeline { quality } else { quality.without_timeline() })
}

fn with_timeline(uri: &Uri) -> Result<bool, ApiError> {
    let query: QualityParams = params::read_or(uri, |_| "is not a parameter here, only timeline is")?;
    Ok(query.timeline.unwrap_or(true))
}
