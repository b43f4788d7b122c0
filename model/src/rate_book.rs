//! The ports of what calls cost: the stored rates and accounts.

use crate::access::Scope;
use crate::ids::OrganisationId;
use crate::page::{Page, Window};
use crate::ports::PortFuture;
use crate::rating::{Account, Rate, RateFilter};
use crate::time::Timestamp;

/// The stored rates of one kind.
pub trait RateBook<R: Rate>: Send + Sync {
    /// A page of the rates inside `scope` that match, by what they are for and then by time.
    fn list(&self, scope: Scope, filter: RateFilter, window: Window) -> PortFuture<'_, Page<R>>;

    /// One rate, whoever it belongs to; the caller decides by its scope whether it may be shown.
    fn find(&self, id: R::Id) -> PortFuture<'_, Option<R>>;

    /// Adds a rate under the id that it carries.
    ///
    /// A `Conflict` when there is one for the same at the same time, an `InvalidRequest` when who pays or charges
    /// it does not exist.
    fn create(&self, rate: R, now: Timestamp) -> PortFuture<'_, ()>;

    /// Puts `rate` in the place of the one with its id, if there is one; calls that began keep their prices. A
    /// `Conflict` as above, a `NotFound` when it is gone.
    fn replace(&self, rate: R, now: Timestamp) -> PortFuture<'_, ()>;

    /// Removes a rate; `false` when there is none.
    fn delete(&self, id: R::Id) -> PortFuture<'_, bool>;
}

/// What organisations have to spend.
pub trait Accounts: Send + Sync {
    /// The account of an organisation; `None` when there is no such organisation.
    fn account(&self, organisation: OrganisationId) -> PortFuture<'_, Option<Account>>;
}
