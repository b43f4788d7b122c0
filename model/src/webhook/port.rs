//! The ports of webhooks.

use crate::access::Scope;
use crate::directory::Secret;
use crate::ids::{DeliveryId, WebhookId};
use crate::listing::Listing;
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::time::Timestamp;
use crate::webhook::{DeliveryRecord, DeliveryStatus, NewWebhook, WebhookChange, WebhookRecord};

/// A filter of the deliveries of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Deliveries with this status.
    pub status: Option<DeliveryStatus>,
}

/// The stored webhooks, for managing them.
pub trait Webhooks: Send + Sync {
    /// The webhooks inside `scope`, by address unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<WebhookRecord>>;

    /// One webhook, of any organisation.
    fn find(&self, webhook: WebhookId) -> PortFuture<'_, Option<WebhookRecord>>;

    /// Creates a webhook and returns its secret, which is never shown again. A conflict when the organisation
    /// has [`WEBHOOKS_MAX`](crate::webhook::WEBHOOKS_MAX).
    fn create(&self, new: NewWebhook, now: Timestamp) -> PortFuture<'_, (WebhookRecord, Secret)>;

    /// Changes a webhook inside `scope`.
    fn change(
        &self,
        scope: Scope,
        webhook: WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> PortFuture<'_, WebhookRecord>;

    /// Removes a webhook inside `scope`; waiting and running deliveries are cancelled.
    fn delete(&self, scope: Scope, webhook: WebhookId, now: Timestamp) -> PortFuture<'_, ()>;

    /// Gives a webhook inside `scope` a new secret; the previous one also stays in use for 24 hours.
    fn rotate_secret(
        &self,
        scope: Scope,
        webhook: WebhookId,
        now: Timestamp,
    ) -> PortFuture<'_, (WebhookRecord, Secret)>;

    /// Queues a test event for a webhook inside `scope`. A conflict when it is disabled.
    fn test(&self, scope: Scope, webhook: WebhookId, now: Timestamp) -> PortFuture<'_, DeliveryRecord>;

    /// The deliveries of a webhook inside `scope`, those of the newest event first.
    fn deliveries(
        &self,
        scope: Scope,
        webhook: WebhookId,
        filter: DeliveryFilter,
        window: Window,
    ) -> PortFuture<'_, Page<DeliveryRecord>>;

    /// One delivery of a webhook inside `scope`.
    fn delivery(
        &self,
        scope: Scope,
        webhook: WebhookId,
        delivery: DeliveryId,
    ) -> PortFuture<'_, Option<DeliveryRecord>>;

    /// Restarts the schedule of a delivery; a delivery in an attempt does not change. A conflict if the
    /// webhook is disabled.
    fn redeliver(
        &self,
        scope: Scope,
        webhook: WebhookId,
        delivery: DeliveryId,
        now: Timestamp,
    ) -> PortFuture<'_, DeliveryRecord>;
}
