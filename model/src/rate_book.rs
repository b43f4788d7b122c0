//! The ports of rating: the stored rates and accounts.

use crate::access::Scope;
use crate::ids::OrganisationId;
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::rating::{Account, Rate, RateFilter};
use crate::time::Timestamp;

/// The stored rates of one kind.
pub trait RateBook<R: Rate>: Send + Sync {
    /// A page of the rates inside `scope` that match, sorted by key and then by start.
    fn list(&self, scope: Scope, filter: RateFilter, window: Window) -> PortFuture<'_, Page<R>>;

    /// Returns one rate, of any organisation; the caller decides by its scope whether it may be shown.
    fn find(&self, id: R::Id) -> PortFuture<'_, Option<R>>;

    /// Adds a rate under its own id.
    ///
    /// A `Conflict` if a rate with the same key and start exists, an `InvalidRequest` if the organisation or
    /// the trunk does not exist.
    fn create(&self, rate: R, now: Timestamp) -> PortFuture<'_, ()>;

    /// Replaces the rate with the id of `rate`; calls that have begun keep their prices. A `Conflict` as
    /// above, a `NotFound` if the rate does not exist.
    fn replace(&self, rate: R, now: Timestamp) -> PortFuture<'_, ()>;

    /// Removes a rate; `false` if it does not exist.
    fn delete(&self, id: R::Id) -> PortFuture<'_, bool>;
}

/// The credit accounts of organisations.
pub trait Accounts: Send + Sync {
    /// The account of an organisation; `None` when there is no such organisation.
    fn account(&self, organisation: OrganisationId) -> PortFuture<'_, Option<Account>>;
}
