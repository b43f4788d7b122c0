//! The deliveries of a webhook, finished and waiting, and sending them again.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::cursor::Cursor;
use sidetone_model::ids::{DeliveryId, WebhookId};
use sidetone_model::page::Page;
use sidetone_model::webhook::{DeliveryFilter, DeliveryStatus, DeliveryView};

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::params::{self, query};
use crate::routes::webhooks::visible;
use crate::state::ApiState;

query! {
    /// The parameters of the list.
    pub(crate) struct DeliveryParams {
        /// Items on a page.
        #[param(value_type = Option<i64>, minimum = 1, maximum = 500, default = 50)]
        limit: u32 = page::limit,
        /// Items to skip.
        #[param(value_type = Option<i64>, minimum = 0, default = 0)]
        offset: u64 = page::count,
        /// Pages by cursor in place of offsets: empty for the first page, then the `next_cursor` of the page before, with the
        /// same other parameters.
        #[param(value_type = Option<String>, max_length = 4096)]
        cursor: Cursor = page::cursor,
        /// Deliveries with this status.
        #[param(inline)]
        status: DeliveryStatus = status,
    }
}

/// List deliveries
///
/// The deliveries of a webhook of the last 30 days, newest event first, each with its attempts.
#[utoipa::path(
    get,
    path = "/webhooks/{id}/deliveries",
    operation_id = "listWebhookDeliveries",
    tag = "Webhooks",
    params(("id" = WebhookId, Path, description = "The webhook's `id`."), DeliveryParams),
    responses((status = 200, description = "The page.", body = Page<DeliveryView>)),
    extensions(("x-permission" = json!("webhooks:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<DeliveryView>>, ApiError> {
    caller.require(Permission::WebhooksRead)?;
    let DeliveryParams { limit, offset, cursor, status } = params::read(&uri)?;
    let window = params::window(&uri, &caller, (limit, offset, cursor))?;
    let filter = DeliveryFilter { status };
    let id = visible(&caller, &state, &id).await?.id;
    let page = state.webhooks()?.deliveries(caller.scope(), id, filter, window).await?;
    Ok(Json(page.map(|delivery| delivery.view(false))))
}

/// Read a delivery
///
/// One delivery with its payload.
#[utoipa::path(
    get,
    path = "/webhooks/{id}/deliveries/{delivery_id}",
    operation_id = "getWebhookDelivery",
    tag = "Webhooks",
    params(
        ("id" = WebhookId, Path, description = "The webhook's `id`."),
        ("delivery_id" = DeliveryId, Path, description = "The delivery's `id`."),
    ),
    responses((status = 200, description = "The delivery.", body = DeliveryView)),
    extensions(("x-permission" = json!("webhooks:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, delivery)): Path<(String, String)>,
) -> Result<Json<DeliveryView>, ApiError> {
    caller.require(Permission::WebhooksRead)?;
    let webhook: WebhookId = page::path_id("id", &id)?;
    let delivery: DeliveryId = page::path_id("delivery_id", &delivery)?;
    visible(&caller, &state, &id).await?;
    let found = state.webhooks()?.delivery(caller.scope(), webhook, delivery).await?;
    let found = found.ok_or_else(|| ApiError::not_found("the webhook has no such delivery"))?;
    Ok(Json(found.view(true)))
}

/// Send again
///
/// Restarts the schedule of a delivery, whatever its status: it is tried now, with the same `webhook-id` and the same
/// body. A delivery that is being tried at this moment does not change.
#[utoipa::path(
    post,
    path = "/webhooks/{id}/deliveries/{delivery_id}/redeliver",
    operation_id = "redeliverWebhookDelivery",
    tag = "Webhooks",
    params(
        ("id" = WebhookId, Path, description = "The webhook's `id`."),
        ("delivery_id" = DeliveryId, Path, description = "The delivery's `id`."),
    ),
    responses(
        (status = 202, description = "The delivery, queued again.", body = DeliveryView),
        (status = 409, description = "The webhook is switched off.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("webhooks:write"))),
)]
pub(crate) async fn redeliver(
    caller: Caller,
    State(state): State<ApiState>,
    Path((id, delivery)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    caller.require(Permission::WebhooksWrite)?;
    let webhook: WebhookId = page::path_id("id", &id)?;
    let delivery: DeliveryId = page::path_id("delivery_id", &delivery)?;
    visible(&caller, &state, &id).await?;
    let now = (state.clock)();
    let queued = state.webhooks()?.redeliver(caller.scope(), webhook, delivery, now).await?;
    Ok((StatusCode::ACCEPTED, Json(queued.view(true))).into_response())
}

fn status(value: &str) -> Result<DeliveryStatus, page::Wrong> {
    DeliveryStatus::from_name(value).ok_or_else(|| {
        let words: Vec<&str> = DeliveryStatus::ALL.iter().map(|(_, word)| *word).collect();
        format!("must be one of {}", words.join(", "))
    })
}
