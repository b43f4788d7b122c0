//! `/healthz` and `/readyz`, for whoever watches the process; without authentication.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use crate::error::ApiError;
use crate::state::ApiState;

/// The answer of a healthy process.
#[derive(Serialize)]
pub(crate) struct Health {
    status: &'static str,
}

/// The process runs.
pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// The engine can do its work; 503 says what keeps it from it.
pub(crate) async fn ready(State(state): State<ApiState>) -> Result<Json<Health>, ApiError> {
    let unready = state.readiness.unready();
    if unready.is_empty() { Ok(Json(Health { status: "ready" })) } else { Err(ApiError::not_ready(&unready)) }
}
