//! Calls that programs place: the request, its progress and its cancellation. Also ends any live call.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use sidetone_model::access::Permission;
use sidetone_model::call_fields::GivenFields;
use sidetone_model::call_request::{
    CallRequest, Placeable, RequestQuery, RequestState, RequestedCall, WouldCall,
};
use sidetone_model::cursor::Cursor;
use sidetone_model::ids::{CallId, CallRequestId, OrganisationId};
use sidetone_model::page::Page;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::declare::{integer, optional, parsed, required, text};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::listing::OrganisationParam;
use crate::managed::seen;
use crate::page::{self, Wrong};
use crate::params::{self, With, query};
use crate::state::ApiState;

body! {
    /// A call to place.
    pub(crate) struct NewCallBody(state: &ApiState) {
        /// The extension that rings first: its id or number, the id of its agent, or the email address of its user.
        #[schema(min_length = 1, max_length = 254, example = "1001")]
        from: String = required(text(1..=254)),
        /// The number that is called when `from` has answered: an extension, a conference room (its number or
        /// `svc-room-<id>`), or an outside number as the extension would dial it.
        #[schema(min_length = 1, max_length = 128, example = "+441632960001")]
        to: String = required(text(1..=128)),
        /// One of the organisation's phone numbers, shown to an outside party; the default is the number that the
        /// extension shows.
        #[schema(min_length = 1, max_length = 64)]
        caller_id: Option<String> = optional(text(1..=64)),
        /// A text of yours: on the call's record, and a filter of the call log.
        #[schema(min_length = 1, max_length = 128, example = "ticket-4711")]
        reference: Option<String> = optional(text(1..=128)),
        /// The URL that the progress is reported to: `https` on a public address. `ringing`, `answered` and `completed`
        /// are sent in this order, at least once, signed with the organisation's `callback_secret`.
        #[schema(max_length = 2048, pattern = "^[Hh][Tt][Tt][Pp][Ss]://[^\\s#]+$", example = "https://crm.example/calls")]
        callback_url: Option<String> = optional(parsed(|url| state.check_outgoing_url(url).map(|()| url.to_owned()))),
        /// How long each side rings; 30 by default.
        #[schema(value_type = Option<i32>, minimum = 5, maximum = 120, default = 30)]
        ring_seconds: Option<u32> = optional(integer(5..=120)),
        /// Whether the phone of `from` is requested to answer by itself.
        #[schema(default = false)]
        auto_answer: Option<bool> = optional(Fields::boolean),
        /// The longest duration of the answered call.
        #[schema(value_type = Option<i32>, minimum = 1, maximum = 14400)]
        max_seconds: Option<u32> = optional(integer(1..=14_400)),
        /// Texts of yours, at most 2 KB as JSON; shown with the request, the live call and in the callbacks.
        variables: Option<BTreeMap<String, String>> = optional(variables),
        /// The organisation in which `from` is looked up; the caller's own by default.
        organisation_id: Option<OrganisationId> = optional(Fields::uuid),
    }
}

query! {
    /// The parameter of a placement.
    pub(crate) struct PlaceParams {
        /// `true`: every check is made, and nothing is stored or rings.
        dry_run: bool = page::boolean,
    }
}

query! {
    /// The parameters of the list.
    pub(crate) struct RequestParams {
        /// Requests in this state.
        #[param(inline)]
        state: RequestState = request_state,
        /// Requests with this reference.
        #[param(max_length = 1000)]
        reference: String = page::text,
        /// Requests on a page.
        #[param(value_type = Option<i32>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Requests to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
    }
}

type RequestListQuery = With<RequestParams, OrganisationParam>;

/// A request that was stored; its call follows.
#[derive(Serialize, ToSchema)]
pub(crate) struct CallPlaced {
    /// The call, and its record later.
    call_uuid: CallId,
    /// The request.
    call_request_id: CallRequestId,
    /// Its state.
    state: RequestState,
}

/// What a request would do.
#[derive(Serialize, ToSchema)]
pub(crate) struct DryRun {
    /// The result of the checks.
    would: WouldCall,
    /// What may keep the call from succeeding.
    warnings: Vec<String>,
}

/// Place a call
///
/// Rings the phones of `from`; when one has answered, calls `to` by the dial plan of the extension, with its price and
/// credit, and connects the two. The answer comes when the request is stored, before anything rings;
/// `GET /call-requests/{id}` shows how far it has come. There is one record, under `call_uuid`. Send an
/// `Idempotency-Key`, so that a repeated request does not ring twice.
///
/// 422 names every field that is wrong: an unknown `from` or `to`, no route, no rate, no credit, a `callback_url` while
/// the organisation has no `callback_secret`. 409 when `from` has no
/// registered phone. 503 (`node_busy`) at the limit of channels, without free media ports, under load, and while the node
/// drains: nothing rang. A key may place 60 calls a minute; refused requests and dry runs are not counted.
#[utoipa::path(
    post,
    path = "/calls",
    operation_id = "placeCall",
    tag = "Live calls",
    params(PlaceParams),
    request_body = NewCallBody,
    responses(
        (status = 200, description = "A dry run: what the request would do.", body = DryRun),
        (status = 202, description = "The request is stored, and its call follows.", body = CallPlaced),
        (status = 409, description = "`from` has no registered phone (`conflict`).", body = ErrorBody),
        (status = 422, description = "Fields are wrong (`unprocessable`).", body = ErrorBody),
        (status = 503, description = "The node accepts no call now; nothing rang (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn place(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::CallsControl)?;
    let PlaceParams { dry_run } =
        params::read_or(&uri, |_| "is not a parameter of this request, only dry_run is")?;
    let body = read(&caller, &state, body).await.map_err(ApiError::of_placement)?;
    let organisation = caller.organisation(body.organisation_id)?;
    let requested = RequestedCall {
        from: body.from,
        to: body.to,
        caller_id: body.caller_id,
        reference: body.reference,
        ring_seconds: body.ring_seconds.unwrap_or(RING_SECONDS),
        auto_answer: body.auto_answer.unwrap_or(false),
        max_seconds: body.max_seconds,
        variables: body.variables.unwrap_or_default(),
        callback_url: body.callback_url,
    };
    let requests = state.call_requests()?;
    if dry_run == Some(true) {
        let Placeable { would, warnings, .. } =
            requests.check(caller.scope(), organisation, requested).await?;
        return Ok(Json(DryRun { would, warnings }).into_response());
    }
    let allowance = state.limits.place_call(caller.principal().who, &*state.clock).await;
    let allowance = allowance.map_err(ApiError::rate_limited)?;
    let CallRequest { id, call_uuid, state: begun, .. } =
        match requests.place(caller.scope(), organisation, requested).await {
            Ok(placed) => placed,
            Err(problem) => {
                allowance.give_back();
                return Err(problem.into());
            }
        };
    allowance.count((state.clock)()).await;
    let placed = CallPlaced { call_uuid, call_request_id: id, state: begun };
    Ok((StatusCode::ACCEPTED, Json(placed)).into_response())
}

/// Reads the body. If a field is wrong in itself, the other fields are checked by the switch as well.
async fn read(caller: &Caller, state: &ApiState, body: Body) -> Result<NewCallBody, ApiError> {
    let mut body = body.read_open(JUDGED, |fields| NewCallBody::read(fields, state))?;
    if body.is_wrong() {
        let [from, to, caller_id, callback_url, organisation] = body.texts();
        let named = organisation.and_then(|named| page::id(&named).ok());
        let is_known = named.is_some() || !body.has("organisation_id");
        // Nothing is looked up in an organisation that the caller does not reach: the request is refused for that
        // reason.
        if let Some(organisation) = caller.organisation(named).ok().filter(|_| is_known) {
            let has_callback = callback_url.is_some();
            let given = GivenFields::Placement { organisation, from, to, caller_id, has_callback };
            body.refuse(state.call_requests()?.wrong_fields(caller.scope(), given).await?);
        }
    }
    body.finish()
}

/// The fields that the switch checks against the directory, and the organisation.
const JUDGED: [&str; 5] = ["from", "to", "caller_id", "callback_url", "organisation_id"];

/// List call requests
///
/// A page of the requests in the caller's scope, newest first. Requests are kept for 30 days. Callers with the role
/// `team_supervisor` or `agent` see those of their own team.
#[utoipa::path(
    get,
    path = "/call-requests",
    operation_id = "listCallRequests",
    tag = "Live calls",
    params(RequestListQuery),
    responses((status = 200, description = "The page.", body = Page<CallRequest>)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<CallRequest>>, ApiError> {
    caller.require(Permission::CallsRead)?;
    let With(given, OrganisationParam { organisation_id }) = params::read::<RequestListQuery>(&uri)?;
    caller.narrow(organisation_id)?;
    let RequestParams { state: wanted, reference, limit, offset, cursor } = given;
    let window = params::window(&uri, &caller, (limit, offset, cursor))?;
    let query = RequestQuery { organisation_id, state: wanted, reference, window };
    Ok(Json(state.call_requests()?.list(caller.scope(), &query).await?))
}

/// Read a call request
///
/// Its state, the reason if it failed, when each side answered, and the call's record once there is one.
#[utoipa::path(
    get,
    path = "/call-requests/{id}",
    operation_id = "getCallRequest",
    tag = "Live calls",
    params(("id" = CallRequestId, Path, description = "The `call_request_id`.")),
    responses((status = 200, description = "The request.", body = CallRequest)),
    extensions(("x-permission" = json!("calls:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<CallRequest>, ApiError> {
    caller.require(Permission::CallsRead)?;
    Ok(Json(visible(&caller, &state, &id).await?))
}

/// Cancel a call request
///
/// Stops the ringing, and hangs up `from` if it has answered. 409 once both sides have answered, or the request is
/// over. The state becomes `cancelled` within a second.
#[utoipa::path(
    delete,
    path = "/call-requests/{id}",
    operation_id = "cancelCallRequest",
    tag = "Live calls",
    params(("id" = CallRequestId, Path, description = "The `call_request_id`.")),
    responses(
        (status = 204, description = "It is cancelled."),
        (status = 409, description = "Both sides have answered, or it is over (`conflict`).", body = ErrorBody),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn cancel(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::CallsControl)?;
    let request = visible(&caller, &state, &id).await?;
    state.call_requests()?.cancel(request.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End a live call
///
/// Hangs up every party of the call, also while it rings. Its record follows in the call log.
#[utoipa::path(
    delete,
    path = "/calls/{uuid}",
    operation_id = "endCall",
    tag = "Live calls",
    params(("uuid" = CallId, Path, description = "The call's UUID.")),
    responses(
        (status = 204, description = "It is being hung up."),
        (status = 503, description = "The switch is overloaded (`node_busy`).", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("calls:control"))),
)]
pub(crate) async fn end(
    caller: Caller,
    State(state): State<ApiState>,
    Path(uuid): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::CallsControl)?;
    let call: CallId = page::path_id("uuid", &uuid)?;
    let found = state.live_calls()?.find(call).await?;
    let scope = caller.scope();
    seen(found, "call that is up", |call| scope.covers(call.organisation_id, call.team_id))?;
    match state.call_requests()?.end_call(call).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::not_found("there is no such call that is up")),
    }
}

/// Returns a request that the caller may see.
async fn visible(caller: &Caller, state: &ApiState, id: &str) -> Result<CallRequest, ApiError> {
    let found = state.call_requests()?.find(page::path_id("id", id)?).await?;
    let scope = caller.scope();
    seen(found, "call request", |request| scope.covers(request.organisation_id, request.team_id))
}

/// Reads the program's texts.
fn variables(fields: &mut Fields, name: &'static str) -> Option<BTreeMap<String, String>> {
    let value = fields.value(name)?;
    let long = value.to_string().len() > VARIABLES_LEN_MAX;
    let Value::Object(members) = value else { return fields.refuse(name, "must be an object of texts") };
    if long {
        return fields.refuse(name, format!("must be at most {VARIABLES_LEN_MAX} bytes of JSON"));
    }
    let texts = members.into_iter().map(|(name, value)| match value {
        Value::String(text) => Some((name, text)),
        _ => None,
    });
    match texts.collect() {
        Some(texts) => Some(texts),
        None => fields.refuse(name, "must be an object of texts: write numbers as strings"),
    }
}

fn request_state(value: &str) -> Result<RequestState, Wrong> {
    RequestState::from_name(value).ok_or_else(|| {
        let names: Vec<&str> = RequestState::ALL.iter().map(|(_, name)| *name).collect();
        format!("must be one of {}", names.join(", "))
    })
}

const RING_SECONDS: u32 = 30;
const VARIABLES_LEN_MAX: usize = 2048;
