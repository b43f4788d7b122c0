//! `/healthz` and `/readyz`, for monitoring; without authentication.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::state::ApiState;

/// The answer of a healthy process.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok` or `ready`.
    status: &'static str,
    /// Failures that the engine works around, such as an unreachable database; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    degraded: Vec<String>,
}

/// The process runs
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "getHealth",
    tag = "Operations",
    responses((status = 200, description = "It does.", body = Health)),
    security(()),
)]
pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "ok", degraded: Vec::new() })
}

/// Readiness of the engine
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "getReadiness",
    tag = "Operations",
    responses(
        (status = 200, description = "It can.", body = Health),
        (status = 503, description = "It cannot; the message names the reason (`not_ready`).",
            body = ErrorBody),
    ),
    security(()),
)]
pub(crate) async fn ready(State(state): State<ApiState>) -> Result<Json<Health>, ApiError> {
    let unready = state.readiness.unready();
    if !unready.is_empty() {
        return Err(ApiError::not_ready(&unready));
    }
    Ok(Json(Health { status: "ready", degraded: state.readiness.degraded() }))
}
