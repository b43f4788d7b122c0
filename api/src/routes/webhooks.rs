//! Managing webhooks: a webhook's secret is shown when it is created and never again.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::access::Permission;
use sidetone_model::event::{EventPattern, EventPatterns};
use sidetone_model::ids::{OrganisationId, WebhookId};
use sidetone_model::listing::ListingSort;
use sidetone_model::page::Page;
use sidetone_model::webhook::{
    DESCRIPTION_LEN_MAX, DeliveryView, NewWebhook, WebhookChange, WebhookRecord, WebhookView,
    require_readable,
};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Caller;
use crate::body::{Body, Fields};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, Kind, ListParams, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::state::ApiState;

/// A webhook with the secret that was just made for it.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookWithSecret)]
pub(crate) struct SecretView {
    #[serde(flatten)]
    webhook: WebhookView,
    /// What signs; never shown again.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDAAAAAAAAAAA=")]
    secret: String,
}

/// A webhook to be made.
#[derive(ToSchema)]
#[schema(as = NewWebhookBody)]
#[expect(dead_code, reason = "says in the document what `create` reads")]
pub(crate) struct NewWebhookBody {
    /// Where events are sent: `https`, on a public address, without a user or a password in it.
    #[schema(max_length = 2048, example = "https://crm.example.com/sidetone")]
    url: String,
    /// Which events: names such as `call.ended`, families such as `call.info.*`, or `*`. Whoever names them has to be
    /// allowed to read them.
    #[schema(min_items = 1, max_items = 32, example = json!(["conference.*", "call.info.acked"]))]
    events: Vec<String>,
    /// For people, on one line; empty unless given.
    #[schema(max_length = 200)]
    description: Option<String>,
    /// Whether anything is sent; true unless given.
    active: Option<bool>,
    /// Whose events; the caller's own organisation unless an operator names another.
    organisation_id: Option<OrganisationId>,
}

/// What changes of a webhook.
#[derive(ToSchema)]
#[schema(as = WebhookChangeBody)]
#[expect(dead_code, reason = "says in the document what `change` reads")]
pub(crate) struct WebhookChangeBody {
    /// Another address; its failures until now are forgotten.
    #[schema(max_length = 2048)]
    url: Option<String>,
    #[schema(min_items = 1, max_items = 32)]
    events: Option<Vec<String>>,
    #[schema(max_length = 200)]
    description: Option<String>,
    /// False cancels what waits; events of the time until it is true again are not queued.
    active: Option<bool>,
}

/// The sort of webhooks, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described, never made: `listing::read` names every wrong parameter")]
pub(crate) struct UrlSortParam {
    /// Sorted by what; `id` decides between equals.
    #[param(inline)]
    sort: Option<UrlSortKey>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case", default = "url")]
#[expect(dead_code, reason = "described, never made: `listing::read` names every wrong parameter")]
enum UrlSortKey {
    CreatedAt,
    Url,
}

const KIND: Kind = Kind {
    sorts: &[("created_at", ListingSort::CreatedAt), ("url", ListingSort::Name)],
    organisation_id: true,
    team_id: false,
};
const READ_ONLY: &[&str] =
    &["id", "disabled_reason", "failing_since", "old_secret_until", "created_at", "updated_at"];

/// List webhooks
#[utoipa::path(
    get,
    path = "/webhooks",
    operation_id = "listWebhooks",
    tag = "Webhooks",
    params(ListParams, OrganisationParam, UrlSortParam),
    responses((status = 200, description = "The page.", body = Page<WebhookView>)),
    extensions(("x-permission" = json!("webhooks:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<WebhookView>>, ApiError> {
    caller.require(Permission::WebhooksRead)?;
    let listing = listing::read(&uri, &caller, &KIND)?;
    let page = state.webhooks()?.list(caller.scope(), &listing).await?;
    let now = (state.clock)();
    Ok(Json(page.map(|webhook| webhook.view(now))))
}

/// Create a webhook
///
/// The answer holds the secret that signs, once. From then on every event that matches is sent to the address, signed,
/// and tried again for about 15 hours until the endpoint answers 2xx. Nobody subscribes to what they may not read.
#[utoipa::path(
    post,
    path = "/webhooks",
    operation_id = "createWebhook",
    tag = "Webhooks",
    request_body = NewWebhookBody,
    responses(
        (status = 201, description = "The webhook and its secret.", body = SecretView),
        (status = 409, description = "The organisation has 50 webhooks.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("webhooks:write"))),
)]
pub(crate) async fn create(
    caller: Caller,
    State(state): State<ApiState>,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Permission::WebhooksWrite)?;
    let (organisation, new) = body.read(|fields| {
        let organisation = fields.uuid("organisation_id");
        let change = webhook_change(fields, &state);
        let url = fields.require_given("url", change.url);
        let events = fields.require_given("events", change.events);
        let new = NewWebhook {
            // Set below.
            organisation_id: caller.principal().organisation_id,
            url: url?,
            events: events?,
            description: change.description.unwrap_or_default(),
            active: change.active.unwrap_or(true),
        };
        Some((organisation, new))
    })?;
    let new = NewWebhook { organisation_id: caller.organisation(organisation)?, ..new };
    require_readable_by(&caller, &new.events)?;
    let now = (state.clock)();
    let (webhook, secret) = state.webhooks()?.create(new, now).await?;
    Ok(created("webhooks", webhook.id, SecretView { webhook: webhook.view(now), secret: secret.0 }))
}

/// Read a webhook
#[utoipa::path(
    get,
    path = "/webhooks/{id}",
    operation_id = "getWebhook",
    tag = "Webhooks",
    params(("id" = WebhookId, Path, description = "The webhook's `id`.")),
    responses((status = 200, description = "The webhook.", body = WebhookView)),
    extensions(("x-permission" = json!("webhooks:read"))),
)]
pub(crate) async fn find(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<WebhookView>, ApiError> {
    caller.require(Permission::WebhooksRead)?;
    let webhook = visible(&caller, &state, &id).await?;
    Ok(Json(webhook.view((state.clock)())))
}

/// Change a webhook
///
/// A JSON merge patch: what is left out stays as it is. Read-only fields are ignored, so that what was read can be sent
/// back. `{"active": true}` switches a webhook on again that was switched off after three days of failures.
#[utoipa::path(
    patch,
    path = "/webhooks/{id}",
    operation_id = "changeWebhook",
    tag = "Webhooks",
    params(("id" = WebhookId, Path, description = "The webhook's `id`.")),
    request_body = WebhookChangeBody,
    responses((status = 200, description = "The whole webhook.", body = WebhookView)),
    extensions(("x-permission" = json!("webhooks:write"))),
)]
pub(crate) async fn change(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<WebhookView>, ApiError> {
    caller.require(Permission::WebhooksWrite)?;
    let before = visible(&caller, &state, &id).await?;
    let change = body.read(|fields| {
        fields.read_only(&["organisation_id"]);
        Some(webhook_change(fields, &state))
    })?;
    // Patterns that the webhook already has need no permission of this caller.
    if let Some(events) = change.events.as_deref().filter(|events| *events != before.events) {
        require_readable_by(&caller, events)?;
    }
    let now = (state.clock)();
    if change == WebhookChange::default() {
        return Ok(Json(before.view(now)));
    }
    let after = state.webhooks()?.change(caller.scope(), before.id, change, now).await?;
    Ok(Json(after.view(now)))
}

/// Delete a webhook
///
/// What waits for it, or is being tried, is cancelled.
#[utoipa::path(
    delete,
    path = "/webhooks/{id}",
    operation_id = "deleteWebhook",
    tag = "Webhooks",
    params(("id" = WebhookId, Path, description = "The webhook's `id`.")),
    responses((status = 204, description = "The webhook is gone.")),
    extensions(("x-permission" = json!("webhooks:write"))),
)]
pub(crate) async fn delete(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Permission::WebhooksWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    state.webhooks()?.delete(caller.scope(), id, (state.clock)()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Rotate the secret of a webhook
///
/// The answer holds the new secret, once. For 24 hours `webhook-signature` carries two signatures, one of each secret;
/// `X-Service-Signature`, which has room for one, is the new secret's from now on.
#[utoipa::path(
    post,
    path = "/webhooks/{id}/rotate-secret",
    operation_id = "rotateWebhookSecret",
    tag = "Webhooks",
    params(("id" = WebhookId, Path, description = "The webhook's `id`.")),
    responses((status = 200, description = "The webhook and its new secret.", body = SecretView)),
    extensions(("x-permission" = json!("webhooks:write"))),
)]
pub(crate) async fn rotate_secret(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<SecretView>, ApiError> {
    caller.require(Permission::WebhooksWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let now = (state.clock)();
    let (webhook, secret) = state.webhooks()?.rotate_secret(caller.scope(), id, now).await?;
    Ok(Json(SecretView { webhook: webhook.view(now), secret: secret.0 }))
}

/// Send a test event
///
/// Queues the event `webhook.test` for this webhook alone, whatever it subscribes to. It is signed, delivered and tried
/// again like any other; the answer is its delivery, to be read again for how it went.
#[utoipa::path(
    post,
    path = "/webhooks/{id}/test",
    operation_id = "testWebhook",
    tag = "Webhooks",
    params(("id" = WebhookId, Path, description = "The webhook's `id`.")),
    responses(
        (status = 202, description = "The delivery, queued.", body = DeliveryView),
        (status = 409, description = "The webhook is switched off.", body = ErrorBody),
    ),
    extensions(("x-permission" = json!("webhooks:write"))),
)]
pub(crate) async fn test(
    caller: Caller,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Permission::WebhooksWrite)?;
    let id = visible(&caller, &state, &id).await?.id;
    let delivery = state.webhooks()?.test(caller.scope(), id, (state.clock)()).await?;
    Ok((StatusCode::ACCEPTED, Json(delivery.view(true))).into_response())
}

/// Returns the webhook in the path if the caller may see it.
pub(super) async fn visible(caller: &Caller, state: &ApiState, id: &str) -> Result<WebhookRecord, ApiError> {
    let id: WebhookId = page::path_id("id", id)?;
    let found = state.webhooks()?.find(id).await?;
    seen(found, "webhook", |webhook| caller.scope().covers(webhook.organisation_id, None))
}

fn require_readable_by(caller: &Caller, events: &[EventPattern]) -> Result<(), ApiError> {
    let lacking = require_readable(events, |permission| caller.may(permission));
    if lacking.is_empty() {
        return Ok(());
    }
    let lacking: Vec<&str> = lacking.into_iter().map(Permission::as_str).collect();
    Err(ApiError::forbidden(format!(
        "nobody subscribes to what they may not read, the caller lacks {}",
        lacking.join(", ")
    )))
}

fn webhook_change(fields: &mut Fields, state: &ApiState) -> WebhookChange {
    let change = WebhookChange {
        url: fields.parsed("url", |url| state.check_outgoing_url(url).map(|()| url.to_owned())),
        events: fields.texts("events", 1..=EventPatterns::LEN_MAX, str::parse::<EventPattern>).map(distinct),
        description: fields.text("description", 0..=DESCRIPTION_LEN_MAX),
        active: fields.boolean("active"),
    };
    fields.read_only(READ_ONLY);
    change
}

/// Each pattern once, in the given order.
fn distinct(patterns: Vec<EventPattern>) -> Vec<EventPattern> {
    let mut kept: Vec<EventPattern> = Vec::with_capacity(patterns.len());
    for pattern in patterns {
        if !kept.contains(&pattern) {
            kept.push(pattern);
        }
    }
    kept
}
