//! Webhooks as the API manages them: the store, the generator of secrets, and the signal for the worker.

use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use sidetone_model::access::Scope;
use sidetone_model::directory::Secret;
use sidetone_model::ids::{DeliveryId, WebhookId};
use sidetone_model::listing::Listing;
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::time::Timestamp;
use sidetone_model::webhook::{
    DeliveryFilter, DeliveryRecord, NewWebhook, WebhookChange, WebhookRecord, Webhooks,
};
use sidetone_store::Store;
use tokio::sync::Notify;

use crate::webhooks::signing::new_secret;

/// The port of webhooks over the store.
pub struct WebhookService {
    store: Store,
    rng: Mutex<StdRng>,
    /// Notified when a delivery is due immediately.
    wake: Arc<Notify>,
}

impl WebhookService {
    /// Returns a port that notifies `wake` when there are deliveries to send.
    pub fn new(store: Store, rng: StdRng, wake: Arc<Notify>) -> Self {
        Self { store, rng: Mutex::new(rng), wake }
    }

    fn secret(&self) -> Secret {
        new_secret(&mut *self.rng.lock())
    }
}

impl Webhooks for WebhookService {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<WebhookRecord>> {
        Box::pin(async move { Ok(self.store.list_webhooks(scope, listing).await?) })
    }

    fn find(&self, webhook: WebhookId) -> PortFuture<'_, Option<WebhookRecord>> {
        Box::pin(async move { Ok(self.store.webhook(webhook).await?) })
    }

    fn create(&self, new: NewWebhook, now: Timestamp) -> PortFuture<'_, (WebhookRecord, Secret)> {
        Box::pin(async move {
            let secret = self.secret();
            Ok((self.store.create_webhook(new, &secret, now).await?, secret))
        })
    }

    fn change(
        &self,
        scope: Scope,
        webhook: WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> PortFuture<'_, WebhookRecord> {
        Box::pin(self.store.change_webhook(scope, webhook, change, now))
    }

    fn delete(&self, scope: Scope, webhook: WebhookId, now: Timestamp) -> PortFuture<'_, ()> {
        Box::pin(self.store.delete_webhook(scope, webhook, now))
    }

    fn rotate_secret(
        &self,
        scope: Scope,
        webhook: WebhookId,
        now: Timestamp,
    ) -> PortFuture<'_, (WebhookRecord, Secret)> {
        Box::pin(async move {
            let secret = self.secret();
            Ok((self.store.rotate_webhook_secret(scope, webhook, &secret, now).await?, secret))
        })
    }

    fn test(&self, scope: Scope, webhook: WebhookId, now: Timestamp) -> PortFuture<'_, DeliveryRecord> {
        Box::pin(async move {
            let queued = self.store.test_webhook(scope, webhook, now).await?;
            self.wake.notify_one();
            Ok(queued)
        })
    }

    fn deliveries(
        &self,
        scope: Scope,
        webhook: WebhookId,
        filter: DeliveryFilter,
        window: Window,
    ) -> PortFuture<'_, Page<DeliveryRecord>> {
        Box::pin(async move { Ok(self.store.webhook_deliveries(scope, webhook, filter, window).await?) })
    }

    fn delivery(
        &self,
        scope: Scope,
        webhook: WebhookId,
        delivery: DeliveryId,
    ) -> PortFuture<'_, Option<DeliveryRecord>> {
        Box::pin(async move { Ok(self.store.webhook_delivery(scope, webhook, delivery).await?) })
    }

    fn redeliver(
        &self,
        scope: Scope,
        webhook: WebhookId,
        delivery: DeliveryId,
        now: Timestamp,
    ) -> PortFuture<'_, DeliveryRecord> {
        Box::pin(async move {
            let queued = self.store.redeliver_webhook(scope, webhook, delivery, now).await?;
            self.wake.notify_one();
            Ok(queued)
        })
    }
}
