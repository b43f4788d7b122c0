//! The route that Prometheus reads.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use sidetone_model::metrics::Family;

use crate::auth;
use crate::error::{ApiError, ErrorBody};
use crate::metrics::text;
use crate::state::ApiState;

/// The engine's metrics
///
/// In the text format of Prometheus; for this host and the networks of `[http] metrics_allow`.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "Operations",
    responses(
        (status = 200, description = "All metrics.", body = String, content_type = "text/plain"),
        (status = 403, description = "Not from this address (`forbidden`).", body = ErrorBody),
    ),
    security(()),
)]
pub(crate) async fn metrics(State(state): State<ApiState>, request: Request) -> Result<Response, ApiError> {
    if !may_read(&state, &request) {
        return Err(ApiError::forbidden(
            "metrics are served only to this host, add the network to [http] metrics_allow",
        ));
    }
    let mut families = state.metrics.families().await?;
    families.extend(state.http.families(&state.server));
    families.push(
        Family::counter("sidetone_http_panics_total", "Handlers that panicked; anything but 0 is a bug.")
            .is(state.http.panics() + state.server.panics()),
    );
    let logins =
        Family::counter("sidetone_http_login_failures_total", "Logins that were refused, by reason.");
    families.push(
        state
            .attempts
            .refusals()
            .fold(logins, |family, (reason, count)| family.with([("reason", reason)], count)),
    );
    let tokens = Family::counter(
        "sidetone_http_token_failures_total",
        "API keys and sessions that were refused, by reason.",
    );
    families.push(
        state
            .attempts
            .token_refusals()
            .fold(tokens, |family, (reason, count)| family.with([("reason", reason)], count)),
    );
    Ok(([(CONTENT_TYPE, text::CONTENT_TYPE)], text::write(&families)).into_response())
}

/// Whether the request comes from an address that may read the metrics.
///
/// A proxy on this host has this host's address. Then the client's own address decides, and access is refused
/// if that is not known.
fn may_read(state: &ApiState, request: &Request) -> bool {
    let settings = state.settings.current();
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else { return false };
    let headers = request.headers();
    auth::is_client_known(peer.ip(), headers, &settings.trusted_proxies)
        && settings.may_read_metrics(auth::client_address(peer.ip(), headers, &settings.trusted_proxies))
}
