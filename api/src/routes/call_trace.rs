//! The header-only trace of a leg of a finished call.

use axum::body::Body;
use axum::extract::{OriginalUri, Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::CallId;
use sidetone_model::media_quality::LegSide;
use utoipa::IntoParams;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::pieces::pieces;
use crate::routes::cdr_params::Binary;
use crate::routes::cdrs::record_of;
use crate::state::ApiState;

/// The parameters, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `side` names every wrong parameter")]
pub(crate) struct TraceParams {
    /// Whose leg: `a` is the caller's, `b` the called party's.
    #[param(default = "a")]
    leg: Option<LegSide>,
}

/// Fetch the trace of a call record
///
/// When each RTP packet of a leg came, with its header, and what else its figures depend on, without audio and without
/// a name: what `sidetone analyze` reads and judges again. `/cdrs/{uuid}/quality` says which legs have a trace; it is kept
/// on the node that carried the call, for the days of `media.trace_days`.
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}/trace",
    operation_id = "getCdrTrace",
    tag = "Call log",
    params(("uuid" = CallId, Path, description = "The call's `call_uuid`."), TraceParams),
    responses(
        (
            status = 200,
            description = "The trace as it was written.",
            content((inline(Binary) = "application/octet-stream")),
            headers(("Content-Disposition" = String, description = "The file's name.")),
        ),
        (
            status = 404,
            description = "There is no such record, no trace was kept of the leg, or it is on another node.",
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
    let mut side = LegSide::A;
    page::read(&uri, |name, value| {
        side = match (name, value) {
            ("leg", "a") => LegSide::A,
            ("leg", "b") => LegSide::B,
            ("leg", _) => return Err("must be a, the caller's leg, or b, the called party's".to_owned()),
            _ => return Err("is not a parameter here, only leg is".to_owned()),
        };
        Ok(())
    })?;
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
        Some(traces) => traces.open(&trace).await?,
        None => None,
    };
    let file = opened.ok_or_else(|| {
        ApiError::not_found(
            "the trace is not on this node: ask the node that carried the call; traces are deleted after \
             media.trace_days",
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
