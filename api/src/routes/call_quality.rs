//! The media quality of a call, live or finished.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::Uri;
use sidetone_model::access::Permission;
use sidetone_model::ids::CallId;
use sidetone_model::media_quality::CallQuality;
use utoipa::IntoParams;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::managed::seen;
use crate::page;
use crate::routes::cdr_query::boolean;
use crate::routes::cdrs::record_of;
use crate::state::ApiState;

/// The parameters, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `with_timeline` names every wrong parameter")]
pub(crate) struct QualityParams {
    /// Whether the rows by the second are wanted; `false` leaves them out.
    #[param(default = true)]
    timeline: Option<bool>,
}

/// Read the media of a live call
///
/// The figures of both legs as they are now, and how they would be judged if the call ended here. 404 once the call is
/// over: then `/cdrs/{uuid}/quality` has the final ones.
#[utoipa::path(
    get,
    path = "/calls/{uuid}/quality",
    operation_id = "getCallQuality",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID."), QualityParams),
    responses(
        (status = 200, description = "What is known now.", body = CallQuality),
        (status = 503, description = "The switch has too much to do (`node_busy`).", body = ErrorBody),
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
/// The judgement on both legs with the rule that fired, its numbers and thresholds, what every other rule measured,
/// the figures in both directions, and a row for each second. A call without media has no legs, and its `sentence` says
/// so; a record from before these were kept has the judgement alone.
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}/quality",
    operation_id = "getCdrQuality",
    tag = "Call log",
    params(("uuid" = CallId, Path, description = "The call's `call_uuid`."), QualityParams),
    responses((status = 200, description = "What was kept.", body = CallQuality)),
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
    let mut timeline = true;
    page::read(uri, |name, value| {
        match name {
            "timeline" => timeline = boolean(value)?,
            _ => return Err("is not a parameter here, only timeline is".to_owned()),
        }
        Ok(())
    })?;
    Ok(timeline)
}
