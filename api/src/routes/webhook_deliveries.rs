//! The deliveries of a webhook, finished and waiting, and sending them again.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sidetone_model::access::Permission;
use sidetone_model::ids::{DeliveryId, WebhookId};
use sidetone_model::page::{Page, Window};
use sidetone_model::webhook::{DeliveryFilter, DeliveryStatus, DeliveryView};
use utoipa::IntoParams;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::page;
use crate::routes::webhooks::visible;
use crate::state::ApiState;

/// The parameters of the list, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `read` names every wrong parameter")]
pub(crate) struct DeliveryParams {
    /// Items of a page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Items to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
    /// Those that stand there.
    #[param(inline)]
    status: Option<DeliveryStatus>,
}

/// List deliveries
///
/// The deliveries of a webhook of the last 30 days, those of the newest event first, each with what was tried.
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
    let (filter, window) = read(&uri)?;
    let id = visible(&caller, &state, &id).await?.id;
    let page = state.webhooks()?.deliveries(caller.scope(), id, filter, window).await?;
    Ok(Json(page.map(|delivery| delivery.view(false))))
}

/// Read a delivery
///
/// One delivery with what is sent.
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
/// Begins the schedule of a delivery anew, whatever became of it: it is tried now, with the same `webhook-id` and the
/// same body. One that is being tried at this moment stays as it is.
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

fn read(uri: &Uri) -> Result<(DeliveryFilter, Window), ApiError> {
    let (mut filter, mut window) = (DeliveryFilter::default(), Window::default());
    page::read(uri, |name, value| {
        match name {
            "limit" => window.limit = page::limit(value)?,
            "offset" => window.offset = page::count(value)?,
            "status" => filter.status = Some(status(value)?),
            _ => page::unknown()?,
        }
        Ok(())
    })?;
    Ok((filter, window))
}

fn status(value: &str) -> Result<DeliveryStatus, page::Wrong> {
    DeliveryStatus::from_name(value).ok_or_else(|| {
        let words: Vec<&str> = DeliveryStatus::ALL.iter().map(|(_, word)| *word).collect();
        format!("must be one of {}", words.join(", "))
    })
}
