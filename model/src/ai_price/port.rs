//! The stored prices of AI models.

use crate::access::Scope;
use crate::ai_price::{AiPrice, AiPriceKind};
use crate::ids::{AiPriceId, OrganisationId};
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// A filter of prices; every given condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AiPriceFilter {
    /// One side of the bill.
    pub kind: Option<AiPriceKind>,
    /// Prices of one organisation, without those for all organisations.
    pub organisation_id: Option<OrganisationId>,
    /// One provider.
    pub provider: Option<String>,
}

/// The stored prices of AI models.
pub trait AiPrices: Send + Sync {
    /// A page of the prices inside `scope`, by provider, model and start. An organisation's scope contains
    /// its own prices and those for all organisations.
    fn list(&self, scope: Scope, filter: AiPriceFilter, window: Window) -> PortFuture<'_, Page<AiPrice>>;

    /// Returns one price, for any organisation.
    fn find(&self, id: AiPriceId) -> PortFuture<'_, Option<AiPrice>>;

    /// Stores a new price, or changes a stored one.
    ///
    /// # Errors
    /// [`crate::problem::Problem::Conflict`] when another price is for the same side, customer, provider,
    /// models and start; [`crate::problem::Problem::InvalidRequest`] when there is no such organisation.
    fn put(&self, price: AiPrice, now: Timestamp) -> PortFuture<'_, ()>;

    /// Removes a price; returns whether it existed. Conversations already settled with it do not change.
    fn remove(&self, id: AiPriceId) -> PortFuture<'_, bool>;
}
