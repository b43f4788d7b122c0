//! The live stream of events.

use axum::extract::{OriginalUri, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::event::{
    EventFilter, EventPattern, EventPatternError, EventPatterns, EventReader, Start,
};
use sidetone_model::ids::EventId;
use sidetone_model::problem::FieldProblem;
use sidetone_model::time::Timestamp;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::auth::{Caller, Standing, own_extensions};
use crate::error::{ApiError, ErrorBody};
use crate::page::{self, Wrong};
use crate::params::{self, query};
use crate::routes::cdr_params::Bound;
use crate::state::ApiState;
use crate::stream::{EventBody, STREAMS_PER_CALLER_MAX};

/// Follow events live
///
/// An endless stream of server-sent events. Each has `id:` (a UUIDv7), `event:` (its kind) and `data:`, the envelope
/// `{id, type, timestamp, organisation_id, data}` on one line, as webhooks deliver it. Delivery is at least once and
/// not in order: ignore an event whose `id` is known.
///
/// A client that reconnects with `Last-Event-ID` gets the events it missed, up to 15 hours; `since` does the same for
/// an instant. If that is impossible, or a client reads too slowly, it gets the event `stream.gap`: `data.reason` is
/// `too_old` or `unknown_id` (the events stored since `data.replay_from` follow) or `slow_reader` (`data.first_id` to
/// `data.last_id` are missing and the stream ends; reconnect with `Last-Event-ID` to get them). The comment `: live`
/// marks the end of the stored events; `: keep-alive` is sent after 15 seconds without an event.
///
/// The stream ends when the token expires or is revoked, when the caller's scope, permissions or own extensions
/// change, and when the engine stops.
///
/// Needs the permission that each kind needs: `conferences:read` for `conference.*`, `recordings:listen` for
/// `recording.*`, `directory:write` for `security.*`, `calls:read` for all others. Without `events`, a caller gets
/// all kinds that it may read. A user who sees only one team gets the events of that team, and `conference.updated` of
/// the live rooms that it can read: those with a member of the team or with an extension of its own.
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
    let extensions = own_extensions(caller.principal(), &state).await?;
    let reader = EventReader { scope: caller.scope(), extensions: extensions.clone() };
    let filter = EventFilter { reader, permissions: caller.principal().permissions.clone(), patterns };
    let source = streams.open(filter, query.start, (state.clock)()).await?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, EventBody::new(source, state, (standing, extensions), place).into_body()).into_response())
}

/// The parameters of the request.
struct StreamQuery {
    patterns: Option<EventPatterns>,
    start: Start,
}

fn read(uri: &Uri, headers: &HeaderMap) -> Result<StreamQuery, ApiError> {
    let StreamParams { events: patterns, since } =
        params::read_or(uri, |_| "is not a parameter of this stream")?;
    // A browser that reconnects requests the original URL: Last-Event-ID is more recent than `since`.
    let start = match (LastEventId::read(headers)?.last_event_id, since) {
        (Some(id), _) => Start::After(id),
        (None, Some(at)) => Start::Since(at),
        (None, None) => Start::Now,
    };
    Ok(StreamQuery { patterns, start })
}

impl LastEventId {
    fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut values = headers.get_all(LAST_EVENT_ID).iter();
        let Some(value) = values.next() else { return Ok(Self { last_event_id: None }) };
        let id = value.to_str().ok().and_then(|text| page::id(text).ok());
        match (id, values.next()) {
            (Some(id), None) => Ok(Self { last_event_id: Some(id) }),
            _ => Err(ApiError::invalid(vec![FieldProblem {
                field: "Last-Event-ID".to_owned(),
                message: "must be the id of an event".to_owned(),
            }])),
        }
    }
}

/// Returns the requested events, all by default; 403 for a pattern of which the caller may receive no event.
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

query! {
    /// The part of the events.
    struct StreamParams {
        /// Kinds and families of kinds, separated by commas; all kinds by default.
        #[param(value_type = Option<Patterns>, inline, example = "conference.*,call.info.*")]
        events: EventPatterns = patterns,
        /// Starts with the events stored at this instant or later, at most 15 hours back: an RFC 3339 timestamp, or
        /// `YYYY-MM-DD` for its midnight in UTC.
        #[param(value_type = Option<Bound>, inline, example = "2026-01-31T12:00:00Z")]
        since: Timestamp = since,
    }
}

/// Where to go on.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
struct LastEventId {
    /// The last `id:` that the client read; later events follow. Takes precedence over `since`.
    #[param(rename = "Last-Event-ID", value_type = String, format = Uuid, required = false)]
    last_event_id: Option<EventId>,
}

fn patterns(value: &str) -> Result<EventPatterns, Wrong> {
    value.parse().map_err(|error: EventPatternError| error.to_string())
}

fn since(value: &str) -> Result<Timestamp, Wrong> {
    Timestamp::parse_bound(value).map_err(|error| error.to_string())
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
