//! The header-only trace of a leg of a finished call.

use axum::body::Body;
use axum::extract::{OriginalUri, Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::CallId;
use sidetone_model::media_quality::LegSide;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::page::{self, Wrong};
use crate::params::{self, query};
use crate::pieces::pieces;
use crate::routes::cdr_params::Binary;
use crate::routes::cdrs::record_of;
use crate::state::ApiState;

query! {
    /// The parameters.
    pub(crate) struct TraceParams {
        /// Whose leg: `a` is the caller's, `b` the called party's.
        #[param(default = "a")]
        leg: LegSide = leg,
    }
}

/// Fetch the trace of a call record
///
/// The arrival time and the header of each RTP packet of a leg, and what else its figures depend on, without audio or
/// names. `sidetone analyze` reads the file and judges the leg again. `/cdrs/{uuid}/quality` shows which legs have a
/// trace. The node that carried the call keeps it for `media.trace_days` days.
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}/trace",
    operation_id = "getCdrTrace",
    tag = "Call log",
    params(("uuid" = CallId, Path, description = "The call's `call_uuid`."), TraceParams),
    responses(
        (
            status = 200,
            description = "The trace file.",
            content((inline(Binary) = "application/octet-stream")),
            headers(("Content-Disposition" = String, description = "The file's name.")),
        ),
        (
            status = 404,
            description = "The record does not exist, the leg has no trace, or the node that has it is gone.",
            body = ErrorBody,
        ),
    ),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn of_record(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = page::path_id("uuid", &uuid)?;
    let query: TraceParams = params::read_or(&uri, |_| "is not a parameter here, only leg is")?;
    let side = query.leg.unwrap_or(LegSide::A);
    let cdr = record_of(&caller, &state, call).await?;
    let kept = match state.stored_quality() {
        Some(stored) => stored.of_record(&cdr).await?,
        None => None,
    };
    let of_side = kept.into_iter().flat_map(|kept| kept.legs).filter(|leg| leg.leg == side);
    let trace = of_side.filter_map(|leg| leg.trace).next().ok_or_else(|| {
        ApiError::not_found(
            "no trace was kept of this leg: media.trace switches traces on, for calls that begin after it",
        )
    })?;
    let opened = match state.leg_traces() {
        Some(traces) => traces.open(cdr.node_id, &trace).await?,
        None => None,
    };
    let file = opened.ok_or_else(|| {
        ApiError::not_found(
            "the node that carried the call is gone, or has deleted the trace, as it does after media.trace_days",
        )
    })?;
    let bytes = file.bytes();
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, bytes.to_string()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{call}-{}.trace\"", side.as_str())),
    ];
    Ok((headers, Body::from_stream(pieces("trace", file, 0, bytes))).into_response())
}

fn leg(value: &str) -> Result<LegSide, Wrong> {
    match value {
        "a" => Ok(LegSide::A),
        "b" => Ok(LegSide::B),
        _ => Err("must be a, the caller's leg, or b, the called party's".to_owned()),
    }
}
