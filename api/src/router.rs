//! All routes, and the layers that every request and answer passes.
//!
//! # How to add a route
//!
//! 1. Put `#[utoipa::path(get, path = "/things/{id}", operation_id = "getThing", tag = "Things", ..)]` on the handler.
//!    Its doc comment is the documentation: the first line the title, the rest the description.
//! 2. `params(..)`, `request_body = ThingBody` and `responses((status = 200, description = "..", body = ThingView))`
//!    describe the request and the answers. Types of bodies derive `ToSchema`; in the model behind
//!    `#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]`. An `Option` is documented as left out when it has
//!    no value; one that is written as null carries `#[schema(required)]`. Lists are `body = Page<ThingView>`.
//! 3. `extensions(("x-permission" = json!("calls:read")))` declares the permission; `security(())` declares
//!    that no token is needed. Failures that follow from that (400, 401, 403, 404, 408, 413, 414, 415, 429,
//!    500, 503) and the common headers are added; declare the others:
//!    `(status = 409, description = "..", body = ErrorBody)`.
//! 4. Add `.routes(routes!(things::find))` to [`v1`]; handlers of one path go into one `routes!`. Do not use
//!    `.route(..)`: its routes would be undocumented, and a test refuses them.
//! 5. Update the committed document: `SIDETONE_BLESS=1 cargo test -p sidetone-api --test openapi`. On a merge
//!    conflict take either version and generate it again.

use std::any::Any;
use std::sync::{Arc, LazyLock, OnceLock};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Router};
use serde_json::Value;
use tokio::time::Instant;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::error::{ApiError, enveloped};
use crate::metrics::{HttpMetrics, method_label, scrape};
use crate::openapi::complete;
use crate::routes::openapi::{LazyReference, Reference};
use crate::routes::{agents, api_keys, teams, users, webhook_deliveries, webhooks};
use crate::routes::{
    ai_prices, auth as login, call_conference, call_operations, call_parking, call_prompts, call_quality,
    call_recordings, call_requests, call_signalling, call_trace, calls, cdr_export, cdrs,
    conference_controls, conference_member_controls, conference_people, conference_rooms, conference_sounds,
    conferences, conversation_list, conversations, docs, events, extensions, health, message_waiting, nodes,
    notes, numbers, openapi as reference, organisations, prompts, rates, recordings, registrations,
    room_meetings, room_sessions, spoken_names, start, totals, trunks, verdict_counts,
};
use crate::state::ApiState;
use crate::{arrival, auth, compression, cors, idempotency, peers};

/// All routes, with these ports.
pub fn router(state: ApiState) -> Router {
    let http = Arc::clone(&state.http);
    let catch_panic = CatchPanicLayer::custom(move |panic| panicked(&http, panic));
    // `nest` does not pass on its own path with a slash, which is not a resource.
    let slash = Router::new().route("/api/v1/", any(nothing_here));
    let (probes, v1) = &*ROUTES;
    probes
        .clone()
        .nest("/api/v1", counted(v1.clone().fallback(nothing_here), &state))
        .merge(counted(slash, &state))
        .layer(catch_panic)
        .layer(from_fn_with_state(state.clone(), cors::share))
        .layer(from_fn_with_state(state.clone(), finish))
        .layer(compression::layer())
        .layer(from_fn(compression::plain_head))
        .with_state(state)
}

/// Adds the layers of the API to its routes, such as the one that counts requests.
fn counted(routes: Router<ApiState>, state: &ApiState) -> Router<ApiState> {
    let http = Arc::clone(&state.http);
    routes
        .layer(from_fn(arrival::name_undecodable))
        .layer(from_fn_with_state(state.clone(), peers::route))
        .layer(CatchPanicLayer::custom(move |panic| panicked(&http, panic)))
        .layer(from_fn_with_state(state.clone(), auth::act))
        .layer(from_fn_with_state(state.clone(), idempotency::once))
        .layer(from_fn_with_state(state.clone(), arrival::read_body))
        .layer(from_fn(arrival::bound_address))
        .layer(from_fn_with_state(state.clone(), auth::identify))
        .layer(Extension(LazyReference { generated: &REFERENCE, document: openapi }))
}

/// The document of every route, as `GET /api/v1/openapi.json` answers it.
pub fn openapi() -> Value {
    complete(probes().nest("/api/v1", v1()).get_openapi())
}

/// The routes that control live calls.
fn call_control() -> OpenApiRouter<ApiState> {
    OpenApiRouter::default()
        .routes(routes!(call_conference::merge))
        .routes(routes!(call_operations::hold))
        .routes(routes!(call_operations::move_to_room))
        .routes(routes!(call_operations::transfer))
        .routes(routes!(call_operations::unhold))
        .routes(routes!(call_parking::park))
        .routes(routes!(call_parking::pick_up))
        .routes(routes!(call_prompts::play, call_prompts::stop))
        .routes(routes!(call_recordings::record))
        .routes(routes!(call_recordings::list))
        .routes(routes!(call_recordings::play))
        .routes(routes!(call_recordings::delete))
}

/// The routes that control one member of a live room, except mute and kick, and those that play sounds into
/// it.
fn member_control() -> OpenApiRouter<ApiState> {
    OpenApiRouter::default()
        .routes(routes!(conference_member_controls::deaf))
        .routes(routes!(conference_member_controls::gain))
        .routes(routes!(conference_member_controls::hold))
        .routes(routes!(conference_member_controls::lock_mute))
        .routes(routes!(conference_member_controls::undeaf))
        .routes(routes!(conference_member_controls::unhold))
        .routes(routes!(conference_member_controls::unwhisper))
        .routes(routes!(conference_member_controls::whisper))
        .routes(routes!(conference_sounds::play))
        .routes(routes!(conference_sounds::stop))
}

/// The routes of the API, under `/api/v1`.
fn v1() -> OpenApiRouter<ApiState> {
    OpenApiRouter::default()
        .routes(routes!(ai_prices::list, ai_prices::create))
        .routes(routes!(ai_prices::find, ai_prices::change, ai_prices::remove))
        .routes(routes!(calls::find, call_requests::end))
        .routes(routes!(calls::list, call_requests::place))
        .routes(routes!(call_requests::find, call_requests::cancel))
        .routes(routes!(call_requests::list))
        .routes(routes!(registrations::list))
        .routes(routes!(trunks::status))
        .routes(routes!(call_quality::of_call))
        .routes(routes!(call_quality::of_record))
        .routes(routes!(call_signalling::of_call))
        .routes(routes!(call_signalling::of_record))
        .routes(routes!(call_trace::of_record))
        .routes(routes!(cdr_export::export))
        .routes(routes!(cdrs::find))
        .routes(routes!(cdrs::list))
        .routes(routes!(docs::page))
        .routes(routes!(docs::style))
        .routes(routes!(events::stream))
        .routes(routes!(login::change_password))
        .routes(routes!(login::log_in))
        .routes(routes!(login::log_out))
        .routes(routes!(login::me))
        .routes(routes!(nodes::list))
        .routes(routes!(notes::of_call))
        .routes(routes!(notes::of_extension))
        .routes(routes!(notes::of_room))
        .routes(routes!(notes::send_to_call))
        .routes(routes!(notes::send_to_extension))
        .routes(routes!(numbers::list, numbers::create))
        .routes(routes!(numbers::find, numbers::change, numbers::delete))
        .routes(routes!(organisations::list, organisations::create))
        .routes(routes!(organisations::find, organisations::change, organisations::delete))
        .routes(routes!(prompts::list))
        .routes(routes!(prompts::find, prompts::put, prompts::delete))
        .routes(routes!(conference_controls::end))
        .routes(routes!(conference_controls::kick))
        .routes(routes!(conference_controls::lock))
        .routes(routes!(conference_controls::mute))
        .routes(routes!(conference_controls::mute_all))
        .routes(routes!(conference_controls::record))
        .routes(routes!(conference_controls::unlock))
        .routes(routes!(conference_controls::unmute))
        .routes(routes!(conference_people::members, conference_people::set_members))
        .routes(routes!(conference_people::set_exemptions))
        .routes(routes!(conference_rooms::dial))
        .routes(routes!(conference_rooms::list, conference_rooms::create))
        .routes(routes!(conference_rooms::find, conference_rooms::change, conference_rooms::delete))
        .routes(routes!(conferences::by_call))
        .routes(routes!(conferences::find))
        .routes(routes!(conferences::list))
        .routes(routes!(reference::document))
        .routes(routes!(rates::cost::list, rates::cost::create))
        .routes(routes!(rates::cost::find, rates::cost::change, rates::cost::delete))
        .routes(routes!(rates::fx::list, rates::fx::create))
        .routes(routes!(rates::fx::find, rates::fx::change, rates::fx::delete))
        .routes(routes!(rates::sell::list, rates::sell::create))
        .routes(routes!(rates::sell::find, rates::sell::change, rates::sell::delete))
        .routes(routes!(totals::totals))
        .routes(routes!(verdict_counts::verdicts))
        .merge(call_control())
        .merge(member_control())
        .merge(conversation_routes())
        .merge(session_routes())
        .merge(management())
}

/// The routes of the sessions of rooms, under `/api/v1`.
fn session_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::default()
        .routes(routes!(recordings::delete))
        .routes(routes!(recordings::delete_by_name))
        .routes(routes!(recordings::play))
        .routes(routes!(recordings::play_by_name))
        .routes(routes!(room_meetings::find, room_meetings::put))
        .routes(routes!(room_meetings::list))
        .routes(routes!(room_sessions::find))
        .routes(routes!(room_sessions::find_by_name))
        .routes(routes!(room_sessions::list))
        .routes(routes!(room_sessions::list_by_name))
}

/// The routes of conversations, under `/api/v1`.
fn conversation_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::default()
        .routes(routes!(conversation_list::list))
        .routes(routes!(conversations::find, conversations::report))
        .routes(routes!(conversations::find_by_call))
}

/// The routes of trunks, extensions, teams, people, keys and webhooks, under `/api/v1`.
fn management() -> OpenApiRouter<ApiState> {
    OpenApiRouter::default()
        .routes(routes!(trunks::list, trunks::create))
        .routes(routes!(trunks::find, trunks::change, trunks::delete))
        .routes(routes!(extensions::list, extensions::create))
        .routes(routes!(extensions::find, extensions::change, extensions::delete))
        .routes(routes!(message_waiting::read, message_waiting::set))
        .routes(routes!(spoken_names::find, spoken_names::delete))
        .routes(routes!(agents::list, agents::create))
        .routes(routes!(agents::find, agents::change, agents::delete))
        .routes(routes!(api_keys::list, api_keys::create))
        .routes(routes!(api_keys::find, api_keys::change, api_keys::delete))
        .routes(routes!(teams::list, teams::create))
        .routes(routes!(teams::find, teams::change, teams::delete))
        .routes(routes!(users::list, users::create))
        .routes(routes!(users::find, users::change, users::delete))
        .routes(routes!(webhooks::list, webhooks::create))
        .routes(routes!(webhooks::find, webhooks::change, webhooks::delete))
        .routes(routes!(webhooks::rotate_secret))
        .routes(routes!(webhooks::test))
        .routes(routes!(webhook_deliveries::list))
        .routes(routes!(webhook_deliveries::find))
        .routes(routes!(webhook_deliveries::redeliver))
}

/// The routes outside of the API.
fn probes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::default()
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(scrape::metrics))
        .routes(routes!(start::page))
}

async fn nothing_here() -> ApiError {
    ApiError::not_found("there is nothing at this path")
}

/// The outermost layer: puts every failure into the envelope, adds the common headers, counts and logs.
async fn finish(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let request_id = request_id(&request);
    let shown_id = request_id.to_str().unwrap_or_default().to_owned();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let span = tracing::error_span!("request", request.id = shown_id);
    let response = next.run(request).instrument(span).await;
    let mut response = enveloped(response);
    let (status, took) = (response.status(), began.elapsed());
    state.http.answered(route.as_deref(), &method, status, took);
    // A successful health check, which comes every few seconds, is not logged.
    let is_quiet = status.is_success() && route.as_deref().is_some_and(|route| PROBES.contains(&route));
    if !is_quiet {
        // The template of the path is logged, because the path may contain a phone number and the query a
        // search.
        tracing::info!(
            request.id = shown_id,
            http.method = method_label(&method),
            http.route = route.as_deref().unwrap_or("unmatched"),
            http.status = status.as_u16(),
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "request answered"
        );
    }
    common_headers(response.headers_mut(), request_id);
    response
}

/// Adds the common headers.
pub(crate) fn common_headers(headers: &mut HeaderMap, request_id: HeaderValue) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REQUEST_ID, request_id);
}

/// The caller's own id if it is a short plain text, otherwise a new one.
fn request_id(request: &Request) -> HeaderValue {
    let own = request.headers().get(REQUEST_ID).filter(|id| {
        (1..=REQUEST_ID_LEN_MAX).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
    });
    own.cloned().unwrap_or_else(new_request_id)
}

/// A unique id.
pub(crate) fn new_request_id() -> HeaderValue {
    HeaderValue::from_str(&Uuid::new_v4().to_string()).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

/// The panic's text is not logged, because it may contain a caller's data. The panic hook of the process logs
/// the location.
fn panicked(http: &HttpMetrics, _panic: Box<dyn Any + Send + 'static>) -> Response {
    http.panicked();
    tracing::error!("a request handler panicked");
    ApiError::internal().into_response()
}

const CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");
static REFERENCE: OnceLock<Reference> = OnceLock::new();
/// [`probes`] and [`v1`]: made once per process, because a node of a cluster has two services of them, and tests start
/// many engines.
static ROUTES: LazyLock<(Router<ApiState>, Router<ApiState>)> =
    LazyLock::new(|| (Router::from(probes()), Router::from(v1())));
/// Routes that are logged only when they fail.
const PROBES: [&str; 3] = ["/healthz", "/metrics", "/readyz"];
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_LEN_MAX: usize = 128;
