//! The senders of events to other machines and to streams; a switch and a tap use the same ones.

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::ids::NodeId;
use sidetone_store::{Listener, Store};
use tokio::sync::Notify;

use crate::clock::wall_clock;
use crate::events::Bus;
use crate::outbound_http::Client;
use crate::webhooks::service::WebhookService;
use crate::webhooks::worker::Worker;

/// The reader of the event log and the sender of webhooks; neither is started yet.
pub(crate) struct Senders {
    /// The live streams of events.
    pub(crate) events: Bus,
    /// Reports new events to the streams.
    pub(crate) listener: Listener,
    /// Sends to webhooks.
    pub(crate) webhooks: Worker,
    /// Manages webhooks.
    pub(crate) webhook_service: Arc<WebhookService>,
}

impl Senders {
    /// Builds both for this node.
    pub(crate) fn new(store: &Store, node: NodeId, outbound: &Client, rng: &mut StdRng) -> Self {
        let (events, listener) = (Bus::new(store), store.event_bell().listen());
        let wake = Arc::new(Notify::new());
        let webhook_service =
            WebhookService::new(store.clone(), StdRng::from_rng(&mut *rng), Arc::clone(&wake));
        let (carrier, clock) = (Arc::new(outbound.clone()), Arc::new(wall_clock));
        let webhooks = Worker::new(store.clone(), node, carrier, clock, StdRng::from_rng(rng), wake);
        Self { events, listener, webhooks, webhook_service: Arc::new(webhook_service) }
    }
}
