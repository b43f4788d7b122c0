//! The SIP messages of a call, live or finished.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::signalling::CallSignalling;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::managed::seen;
use crate::page::{self, Wrong};
use crate::params::{self, query};
use crate::routes::cdrs::record_of;
use crate::state::ApiState;

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum SignallingFormat {
    /// The messages with their summaries.
    Json,
    /// A ladder, and every message below it.
    Text,
}

query! {
    /// The parameters.
    pub(crate) struct SignallingParams {
        /// `json`, or `text` for a ladder that a terminal shows; without it, `Accept: text/plain` asks for the text.
        #[param(inline)]
        format: SignallingFormat = format,
    }
}

/// Read the SIP messages of a live call
///
/// What was received and sent so far in all dialogs of the call, as `/cdrs/{uuid}/signalling` has it when the call is
/// over. 404 when the node that carries the call keeps no messages (`signalling.keep_days`).
#[utoipa::path(
    get,
    path = "/calls/{uuid}/signalling",
    operation_id = "getCallSignalling",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID."), SignallingParams),
    responses(
        (
            status = 200,
            description = "The messages so far.",
            content((CallSignalling = "application/json"), (String = "text/plain")),
        ),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn of_call(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = page::path_id("uuid", &uuid)?;
    let format = format_of(&uri, &headers)?;
    let scope = caller.scope();
    let found = state.live_calls()?.find(call).await?;
    let live = seen(found, "call that is up", |call| scope.covers(call.organisation_id, call.team_id))?;
    answer(kept(&state, live.organisation_id, call).await?, format)
}

/// Read the SIP messages of a call record
///
/// Every message of the call's dialogs in the order in which the node received and sent them: both legs, failed
/// branches too, and the challenge before the call. A retransmission is counted with its message. Credentials, keys
/// of media and passwords in URIs are replaced by `[removed]`; of bodies only SDP is kept. A call keeps 64 KiB at most:
/// its start and its end. With `signalling.keep_days` a node keeps the messages of its calls for so many days.
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}/signalling",
    operation_id = "getCdrSignalling",
    tag = "Call log",
    params(("uuid" = CallId, Path, description = "The call's `call_uuid`."), SignallingParams),
    responses(
        (
            status = 200,
            description = "The messages.",
            content((CallSignalling = "application/json"), (String = "text/plain")),
        ),
        (
            status = 404,
            description = "The record does not exist, or no messages were kept with it, or their days are over.",
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
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = page::path_id("uuid", &uuid)?;
    let format = format_of(&uri, &headers)?;
    let cdr = record_of(&caller, &state, call).await?;
    answer(kept(&state, cdr.organisation_id, call).await?, format)
}

async fn kept(
    state: &ApiState,
    organisation: OrganisationId,
    call: CallId,
) -> Result<CallSignalling, ApiError> {
    let kept = match &state.signalling {
        Some(log) => log.of_call(organisation, call).await?,
        None => None,
    };
    kept.ok_or_else(|| {
        ApiError::not_found(
            "no SIP messages are kept with this call: set signalling.keep_days, the number of days, to keep those of \
             later calls",
        )
    })
}

fn answer(kept: CallSignalling, format: SignallingFormat) -> Result<Response, ApiError> {
    Ok(match format {
        SignallingFormat::Json => Json(kept).into_response(),
        SignallingFormat::Text => {
            ([(CONTENT_TYPE, "text/plain; charset=utf-8")], kept.to_text()).into_response()
        }
    })
}

fn format_of(uri: &Uri, headers: &HeaderMap) -> Result<SignallingFormat, ApiError> {
    let query: SignallingParams = params::read_or(uri, |_| "is not a parameter here, only format is")?;
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let by_header = if accepted.trim_start().starts_with("text/plain") {
        SignallingFormat::Text
    } else {
        SignallingFormat::Json
    };
    Ok(query.format.unwrap_or(by_header))
}

fn format(value: &str) -> Result<SignallingFormat, Wrong> {
    match value {
        "json" => Ok(SignallingFormat::Json),
        "text" => Ok(SignallingFormat::Text),
        _ => Err("must be json, or text for a ladder".to_owned()),
    }
}
