//! Managing webhooks: a webhook's secret is shown when it is created and never again.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use sidetone_model::access::Permission;
use sidetone_model::event::{EventPattern, EventPatterns};
use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{OrganisationId, WebhookId};
use sidetone_model::listing::{Listing, ListingSort};
use sidetone_model::page::Page;
use sidetone_model::webhook::{
    DESCRIPTION_LEN_MAX, DeliveryView, NewWebhook, WebhookChange, WebhookRecord, WebhookView,
    require_readable,
};
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::declare::{id_of, optional, parsed, required, text};
use crate::body::{Body, Fields, body};
use crate::error::{ApiError, ErrorBody};
use crate::listing::{self, ListParams, ListingPart, OrganisationParam};
use crate::managed::{created, seen};
use crate::page;
use crate::params::{With, query, sort_key};
use crate::state::ApiState;

/// A webhook with its new secret.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookWithSecret)]
pub(crate) struct SecretView {
    #[serde(flatten)]
    webhook: WebhookView,
    /// The signing secret; never shown again.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDAAAAAAAAAAA=")]
    secret: String,
}

body! {
    /// A new webhook.
    #[schema(as = NewWebhookBody)]
    pub(crate) struct NewWebhookBody(state: &ApiState) {
        /// The URL that events are sent to: `https` on a public address, without a user or password.
        #[schema(max_length = 2048, example = "https://crm.example.com/sidetone")]
        url: String = required(parsed(|url| state.check_outgoing_url(url).map(|()| url.to_owned()))),
        /// The events to send: names such as `call.ended`, families such as `call.info.*`, or `*`. The caller must be
        /// allowed to read them.
        #[schema(value_type = Vec<String>, min_items = 1, max_items = 32, example = json!(["conference.*", "call.info.acked"]))]
        events: Vec<EventPattern> = required(events),
        /// A description on one line; empty by default.
        #[schema(max_length = 200)]
        description: Option<String> = optional(text(0..=DESCRIPTION_LEN_MAX)),
        /// Whether events are sent; true by default.
        active: Option<bool> = optional(Fields::boolean),
        /// The organisation whose events are sent; the caller's own by default, any for an operator.
        organisation_id: Option<OrganisationId> = optional(id_of(StoredRule::Organisation)),
    }
    ignores READ_ONLY;
}

body! {
    /// Changes of a webhook.
    #[schema(as = WebhookChangeBody)]
    pub(crate) struct WebhookChangeBody(state: &ApiState) {
        /// The new URL; earlier failures no longer count.
        #[schema(max_length = 2048)]
        url: Option<String> = optional(parsed(|url| state.check_outgoing_url(url).map(|()| url.to_owned()))),
        #[schema(value_type = Option<Vec<String>>, min_items = 1, max_items = 32)]
        events: Option<Vec<EventPattern>> = optional(events),
        #[schema(max_length = 200)]
        description: Option<String> = optional(text(0..=DESCRIPTION_LEN_MAX)),
        /// False cancels the queued deliveries; events are not queued until it is true again.
        active: Option<bool> = optional(Fields::boolean),
    }
    ignores READ_ONLY;
}

query! {
    /// The sort of webhooks.
    pub(crate) struct UrlSortParam {
        /// Sort key; equal values are sorted by `id`.
        #[param(inline)]
        sort: UrlSortKey = sort_key,
    }
}

impl ListingPart for UrlSortParam {
    fn put(self, listing: &mut Listing) {
        listing.sort = match self.sort {
            Some(UrlSortKey::CreatedAt) => ListingSort::CreatedAt,
            Some(UrlSortKey::Url) | None => ListingSort::Name,
        };
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(default = "url")]
pub(crate) enum UrlSortKey {
    CreatedAt,
    Url,
}

type ListQuery = With<ListParams, With<OrganisationParam, UrlSortParam>>;
const READ_ONLY: &[&str] =
    &["id", "disabled_reason", "failing_since", "old_secret_until", "created_at", "updated_at"];

/// List webhooks
#[utoipa::path(
    get,
    path = "/webhooks",
    operation_id = "listWebhooks",
    tag = "Webhooks",
    params(ListQuery),
    responses((status = 200, description = "The page.", body = Page<WebhookView>)),
    extensions(("x-permission" = json!("webhooks:read"))),
)]
pub(crate) async fn list(
    caller: Caller,
    State(state): State<ApiState>,
    OriginalUri(uri): OriginalUri,
) -> Result<Json<Page<WebhookView>>, ApiError> {
    caller.require(Permission::WebhooksRead)?;
    let listing = listing::read::<ListQuery>(&uri, &caller)?;
    let page = state.webhooks()?.list(caller.scope(), &listing).await?;
    let now = (state.clock)();
    Ok(Json(page.map(|webhook| webhook.view(now))))
}

/// Create a webhook
///
/// The answer contains the signing secret, which is never shown again. Each matching event is sent to the URL,
/// signed, and retried for about 15 hours until the endpoint answers 2xx. A caller can only subscribe to events that
/// it may read.
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
    let NewWebhookBody { url, events, description, active, organisation_id } =
        body.read_new(&caller, &state, |fields| NewWebhookBody::read(fields, &state)).await?;
    let new = NewWebhook {
        organisation_id: caller.organisation(organisation_id)?,
        url,
        events,
        description: description.unwrap_or_default(),
        active: active.unwrap_or(true),
    };
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
/// A JSON merge patch: omitted fields keep their values. Read-only fields are ignored, so that a resource can be sent
/// back as it was read. `{"active": true}` switches a webhook on again after three days of failures switched it off.
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
    let WebhookChangeBody { url, events, description, active } = body.read(|fields| {
        fields.read_only(&["organisation_id"]);
        WebhookChangeBody::read(fields, &state)
    })?;
    let change = WebhookChange { url, events, description, active };
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
/// Its queued and running deliveries are cancelled.
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
/// The answer contains the new secret, which is never shown again. For 24 hours `webhook-signature` carries two
/// signatures, one per secret; `X-Service-Signature` has only one, made with the new secret from now on.
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
/// Queues the event `webhook.test` for this webhook only, whatever it subscribes to. It is signed, delivered and
/// retried like any other event. The answer is its delivery; read it again to see the result.
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
        "a caller subscribes only to events that it may read, the caller lacks {}",
        lacking.join(", ")
    )))
}

fn events(fields: &mut Fields, name: &'static str) -> Option<Vec<EventPattern>> {
    fields.texts(name, 1..=EventPatterns::LEN_MAX, str::parse::<EventPattern>).map(distinct)
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
