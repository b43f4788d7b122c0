//! The live stream of events.

use axum::extract::{OriginalUri, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::event::{EventFilter, EventPattern, EventPatternError, EventPatterns, Start};
use sidetone_model::ids::EventId;
use sidetone_model::problem::FieldProblem;
use sidetone_model::time::Timestamp;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};
use uuid::Uuid;

use crate::auth::{Caller, Standing};
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::routes::cdr_params::Bound;
use crate::state::ApiState;
use crate::stream::{EventBody, STREAMS_PER_CALLER_MAX};

/// Follow events live
///
/// What happens, as server-sent events that do not end. Each has `id:` (a UUIDv7), `event:` (its kind) and `data:`, the
/// envelope `{id, type, timestamp, organisation_id, data}` on one line, the same that webhooks deliver. Delivery is at
/// least once and not in order; an event that is known by its `id` is to be ignored.
///
/// A client that comes back with `Last-Event-ID` gets what it missed, up to 15 hours; `since` does the same for an
/// instant. Where that is impossible, or a client reads too slowly, an event `stream.gap` says so: `data.reason` is
/// `too_old` or `unknown_id` (what was stored since `data.replay_from` follows) or `slow_reader` (`data.first_id` to
/// `data.last_id` are missing and the stream ends; coming back with `Last-Event-ID` gets them). The comment `: live`
/// says that what was stored has been shown; `: keep-alive` comes every 15 seconds without an event.
///
/// The stream ends when the token does, when what the caller may see changes, and when the engine stops.
///
/// Needs the permission that each kind needs: `conferences:read` for `conference.*`, `recordings:listen` for
/// `recording.*`, `directory:write` for `security.*`, `calls:read` for all others.
/// Without `events`, a caller is shown the kinds that they may see; users who see one team alone are shown its events.
#[utoipa::path(
    get,
    path = "/events",
    operation_id = "streamEvents",
    tag = "Events",
    params(StreamParams, LastEventId),
    responses(
        (
            status = 200,
            description = "Events, until one side ends the connection.",
            body = String,
            content_type = "text/event-stream",
            headers(("X-Accel-Buffering" = String, description = "`no`: a proxy must not hold events back.")),
        ),
        (status = 503, description = "Too many streams are open, see `Retry-After` (`node_busy`).", body = ErrorBody),
    ),
)]
pub(crate) async fn stream(
    caller: Caller,
    standing: Standing,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = read(&uri, &headers)?;
    let patterns = allowed(&caller, query.patterns)?;
    let streams = state.event_streams()?;
    let place = state
        .stream_places
        .take(caller.principal().who)
        .ok_or_else(|| ApiError::too_many_streams(STREAMS_PER_CALLER_MAX))?;
    let filter =
        EventFilter { scope: caller.scope(), permissions: caller.principal().permissions.clone(), patterns };
    let source = streams.open(filter, query.start, (state.clock)()).await?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, EventBody::new(source, state, standing, place).into_body()).into_response())
}

/// The parameters of the request.
struct StreamQuery {
    patterns: Option<EventPatterns>,
    start: Start,
}

fn read(uri: &Uri, headers: &HeaderMap) -> Result<StreamQuery, ApiError> {
    let (mut patterns, mut since) = (None, None);
    page::read(uri, |name, value| {
        match name {
            "events" => patterns = Some(value.parse().map_err(|error: EventPatternError| error.to_string())?),
            "since" => since = Some(Timestamp::parse_bound(value).map_err(|error| error.to_string())?),
            _ => return Err("is not a parameter of this stream".to_owned()),
        }
        Ok(())
    })?;
    // A browser that reconnects sends the original URL: Last-Event-ID is more recent than `since`.
    let start = match (last_event_id(headers)?, since) {
        (Some(id), _) => Start::After(id),
        (None, Some(at)) => Start::Since(at),
        (None, None) => Start::Now,
    };
    Ok(StreamQuery { patterns, start })
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, ApiError> {
    let mut values = headers.get_all(LAST_EVENT_ID).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| page::uuid(text).ok());
    match (id, values.next()) {
        (Some(id), None) => Ok(Some(EventId(id))),
        _ => Err(ApiError::invalid(vec![FieldProblem {
            field: "Last-Event-ID".to_owned(),
            message: "must be the id of an event".to_owned(),
        }])),
    }
}

/// What the caller may receive of what was requested; everything the caller may see if nothing was requested.
fn allowed(caller: &Caller, asked: Option<EventPatterns>) -> Result<EventPatterns, ApiError> {
    let patterns = asked.unwrap_or_else(EventPatterns::all);
    let permissions = &caller.principal().permissions;
    for pattern in patterns.iter() {
        if !pattern.is_open_to(permissions) {
            let mut needed: Vec<&str> = pattern.permissions().map(Permission::as_str).collect();
            needed.sort_unstable();
            needed.dedup();
            let needed = needed.join(" or ");
            return Err(ApiError::forbidden(format!(
                "events {pattern}: the caller lacks the permission {needed}"
            )));
        }
    }
    Ok(patterns)
}

/// The part of the events.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: the reader names every wrong field")]
struct StreamParams {
    /// Kinds and families of kinds, with commas between; everything unless given.
    #[param(inline, example = "conference.*,call.info.*")]
    events: Option<Patterns>,
    /// First of all what was stored at this instant or later, for 15 hours at most: an RFC 3339 timestamp, or
    /// `YYYY-MM-DD` for its midnight in UTC.
    #[param(inline, example = "2026-01-31T12:00:00Z")]
    since: Option<Bound>,
}

/// Where to go on.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "described, never made: the reader names every wrong field")]
struct LastEventId {
    /// The `id:` that was read last: what came behind it follows. Counts more than `since`.
    #[param(rename = "Last-Event-ID", value_type = String, format = Uuid, required = false)]
    last_event_id: Option<Uuid>,
}

/// `conference.*,call.info.*`
struct Patterns;

impl PartialSchema for Patterns {
    fn schema() -> RefOr<Schema> {
        let known: Vec<String> = EventPattern::known()
            .into_iter()
            .map(|text| text.replace('.', "\\.").replace('*', "\\*"))
            .collect();
        let (one, more) = (known.join("|"), EventPatterns::LEN_MAX - 1);
        let text = ObjectBuilder::new().schema_type(Type::String);
        RefOr::T(Schema::Object(text.pattern(Some(format!("^({one})(,({one})){{0,{more}}}$"))).build()))
    }
}

impl ToSchema for Patterns {}

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
