//! Conversations: read by callers who may read the call, reported by the operators of agents.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::conversation::{ConversationView, FoundConversation, Reporter, Sight};
use sidetone_model::ids::{CallId, ConversationId};

use crate::auth::Caller;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::page::path_id;
use crate::routes::cdrs::may_see;
use crate::routes::conversation_body::{self, ConversationBody};
use crate::state::ApiState;

/// Read a conversation
///
/// One conversation with its transcript and `assembled_context`.
#[utoipa::path(
    get,
    path = "/conversations/{id}",
    operation_id = "getConversation",
    tag = "Conversations",
    params(("id" = ConversationId, Path, description = "The conversation.")),
    responses((status = 200, description = "The conversation.", body = ConversationView<'static>)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let id: ConversationId = path_id("id", &id)?;
    let found = state.conversations()?.find(id).await?;
    show(&caller, found, "there is no such conversation")
}

/// Read the conversation of a call
///
/// Like `GET /conversations/{id}`; 404 when the call has no conversation.
#[utoipa::path(
    get,
    path = "/cdrs/{uuid}/conversation",
    operation_id = "getConversationOfCall",
    tag = "Conversations",
    params(("uuid" = CallId, Path, description = "The call's `call_uuid`.")),
    responses((status = 200, description = "The conversation.", body = ConversationView<'static>)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn find_by_call(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsRead)?;
    let call: CallId = path_id("uuid", &uuid)?;
    // A call may end without a conversation, and a conversation exists before its call ends.
    if let Some(cdr) = state.cdrs.find(call).await? {
        may_see(&caller, &cdr)?;
    }
    let found = state.conversations()?.find_by_call(caller.scope(), call).await?;
    show(&caller, found, "the call has no conversation")
}

/// Report a conversation
///
/// For the service that runs the agents. Send a report when something has changed during the call, and one with
/// `ended_at` after the call. A repeated report changes nothing. A report contains the whole conversation except the
/// turns: stored turns stay, new ones are added, and a turn that differs from the stored one with the same `seq` gets
/// 409. The report with `ended_at` completes the conversation: it is priced and reviewed, and the event
/// `conversation.completed` is stored. Afterwards only `summary`, `contact_id` and `contact_e164` can change. Fields
/// that only the platform sets are ignored. Send a long transcript in several reports, because a body is limited to 1
/// MiB.
#[utoipa::path(
    put,
    path = "/conversations/{id}",
    operation_id = "putConversation",
    tag = "Conversations",
    params(("id" = ConversationId, Path, description = "The conversation's id, chosen by the reporting service.")),
    request_body = ConversationBody,
    responses(
        (status = 200, description = "The conversation as it is stored.", body = ConversationView<'static>),
        (status = 201, description = "A new conversation.", body = ConversationView<'static>),
        (status = 409, description = "The report contradicts the stored conversation; the message names the turn or the fields, or the conversation that the call already has (`conflict`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("conversations:write"))),
)]
pub(crate) async fn report(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::ConversationsWrite)?;
    let id: ConversationId = path_id("id", &id)?;
    let sent = body.bytes();
    let report = body.read(|fields| conversation_body::report(fields, id, &sent))?;
    caller.narrow(report.organisation_id)?;
    let home = caller.principal().organisation_id;
    let reporter = Reporter { scope: caller.scope(), home, named: report.organisation_id };
    let reported = state.conversations()?.report(reporter, id, report.draft, (state.clock)()).await?;
    let body = Json(reported.conversation.view(sight(&caller))).into_response();
    if !reported.created {
        return Ok(body);
    }
    let location = HeaderValue::from_str(&format!("/api/v1/conversations/{id}"));
    let location = location.map_err(|_| ApiError::internal())?;
    Ok((StatusCode::CREATED, [(LOCATION, location)], body).into_response())
}

fn show(caller: &Caller, found: Option<FoundConversation>, none: &str) -> Result<Response, ApiError> {
    let found = found.ok_or_else(|| ApiError::not_found(none))?;
    if !found.is_in(caller.scope()) {
        return Err(ApiError::forbidden("the conversation belongs to another organisation or team"));
    }
    Ok(Json(found.conversation.view(sight(caller))).into_response())
}

/// Which amounts the caller may see.
pub(crate) fn sight(caller: &Caller) -> Sight {
    Sight { billing: caller.may(Permission::BillingRead), margin: caller.may(Permission::MarginRead) }
}
