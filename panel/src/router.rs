//! All pages, and the layers that every page passes.

use std::any::Any;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;

use crate::assets;
use crate::failure::Failure;
use crate::layout;
use crate::pages::{
    call, calls, deliveries, edit, events, home, live, live_call, live_room, login, nodes, own_extension,
    phones, prompts, report, rooms, settings, webhooks,
};
use crate::state::{Panel, PanelSettings};

/// The pages at `/`, in front of the routes of the HTTP API; every other path is answered by the API.
pub fn router(api: Router, settings: PanelSettings) -> Router {
    let panel = Panel { api, settings };
    pages()
        .route_layer(CatchPanicLayer::custom(panicked))
        .route_layer(from_fn(protect))
        .fallback(elsewhere)
        .with_state(panel)
}

fn pages() -> Router<Panel> {
    Router::new()
        .route("/", get(home::page))
        .route("/login", get(login::form).post(login::log_in))
        .route("/logout", post(login::log_out))
        .route("/calls", get(calls::list))
        .route("/calls/export", get(calls::export))
        .route("/calls/{uuid}", get(call::page))
        .route("/calls/{uuid}/recordings/{recording}", get(call::recording))
        .route("/calls/{uuid}/report", get(report::download))
        .route("/calls/{uuid}/signalling", get(call::signalling))
        .route("/calls/{uuid}/trace", get(call::trace))
        .route("/live", get(live::page))
        .route("/live/calls/{uuid}", get(live_call::page))
        .route("/live/calls/{uuid}/signalling", get(live_call::signalling))
        .route("/live/calls/{uuid}/hang-up", post(live::hang_up))
        .route("/live/calls/{uuid}/note", post(live::note))
        .route("/live/rooms/{room}", get(live_room::page))
        .route("/live/rooms/{room}/dial", post(live_room::dial))
        .route("/live/rooms/{room}/{control}", post(live_room::control))
        .route("/live/rooms/{room}/members/{member}/{control}", post(live_room::member))
        .route("/nodes", get(nodes::list))
        .route("/phones", get(phones::registrations))
        .route("/rooms", get(rooms::list))
        .route("/rooms/{room}", get(rooms::one))
        .route("/rooms/{room}/sessions/{session}/recording", get(rooms::recording))
        .route("/settings", get(settings::overview))
        .route("/settings/{list}", get(settings::list))
        .route("/settings/{list}/new", get(edit::new).post(edit::create))
        .route("/settings/{list}/{id}", get(edit::one).post(edit::change))
        .route("/settings/{list}/{id}/delete", post(edit::delete))
        .route("/settings/own-extension", get(own_extension::form).post(own_extension::change))
        .route("/settings/prompts", get(prompts::list).post(prompts::store))
        .route("/settings/prompts/new", get(prompts::new))
        .route("/settings/prompts/{name}/delete", post(prompts::delete))
        .route("/settings/prompts/{name}/sound", get(prompts::sound))
        .route("/settings/webhooks/{id}/deliveries", get(deliveries::list))
        .route("/settings/webhooks/{id}/deliveries/{delivery}", get(deliveries::one))
        .route("/settings/webhooks/{id}/deliveries/{delivery}/redeliver", post(deliveries::redeliver))
        .route("/settings/webhooks/{id}/rotate-secret", post(webhooks::rotate_secret))
        .route("/settings/webhooks/{id}/test", post(webhooks::test))
        .route("/trunks", get(phones::trunks))
        .route("/panel/events", get(events::stream))
        .route("/panel/{name}", get(assets::file))
}

/// Passes the request to the API. A browser that requests an unknown path gets a page instead.
async fn elsewhere(State(panel): State<Panel>, request: Request) -> Response {
    let wants_page = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let wants_page = wants_page.is_some_and(|accept| accept.contains("text/html"));
    let is_of_api = request.uri().path().starts_with("/api/");
    let Ok(response) = panel.api.oneshot(request).await;
    if wants_page && !is_of_api && response.status() == StatusCode::NOT_FOUND {
        let failure = Failure::nothing_here();
        return protected(layout::bare(failure.status, "Not found", &layout::failure(&failure)));
    }
    response
}

/// Adds the headers of pages to every answer of the panel.
async fn protect(request: Request, next: Next) -> Response {
    protected(next.run(request).await)
}

fn protected(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    // `no-referrer` would make browsers send `Origin: null` with forms.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The panic's text is not shown or logged, because it may contain a caller's data.
fn panicked(_panic: Box<dyn Any + Send + 'static>) -> Response {
    let failure = Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "this page cannot be shown");
    layout::bare(failure.status, "Failed", &layout::failure(&failure)).into_response()
}

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
/// Only the panel's own files are loaded and only its own origin is contacted; nothing inline is executed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
