//! The ports: what the HTTP face and the switch ask of stored things.
//!
//! Object-safe and asynchronous without a runtime: a port returns a [`PortFuture`].

use std::net::IpAddr;

use crate::access::{Permission, Principal, Scope, Who};
use crate::call_log::{CdrFilter, CdrPlace, CdrQuery};
use crate::cdr::Cdr;
use crate::directory::Network;
use crate::ids::{ApiKeyId, CallId, OrganisationId};
use crate::news::News;
use crate::page::{Order, Page};
pub use crate::port_future::PortFuture;
use crate::rating::Drawn;
use crate::totals::CdrTotals;

/// The stored call records.
pub trait CdrLog: Send + Sync {
    /// A page of the records inside `scope` that the query asks for; `total` is exact.
    fn list(&self, scope: Scope, query: CdrQuery) -> PortFuture<'_, Page<Cdr>>;

    /// How many records inside `scope` match, counted no further than `count_max`.
    fn count<'a>(&'a self, scope: Scope, filter: &'a CdrFilter, count_max: u32) -> PortFuture<'a, u64>;

    /// What the records inside `scope` that match come to.
    fn totals<'a>(&'a self, scope: Scope, filter: &'a CdrFilter) -> PortFuture<'a, CdrTotals>;

    /// The next records inside `scope` that match, at most `limit`, by `started_at` and then `call_uuid`; from
    /// the first one, or from behind `after`. Fewer than `limit` means that there are no more.
    ///
    /// A reader that goes on behind the last record it got meets every record once, however long it
    /// takes: nothing is held between two chunks, and records are never changed.
    fn chunk<'a>(
        &'a self,
        scope: Scope,
        filter: &'a CdrFilter,
        order: Order,
        after: Option<CdrPlace>,
        limit: u32,
    ) -> PortFuture<'a, Vec<Cdr>>;

    /// One record, whoever owns it; the caller decides by [`Scope::covers`] whether it may be shown, since
    /// "foreign" (403) and "none" (404) are told apart.
    fn find(&self, call: CallId) -> PortFuture<'_, Option<Cdr>>;
}

/// Whose work is done, for stores that give each organisation a share of what they have.
pub trait Tenants: Send + Sync {
    /// Runs `work` for `organisation`: what it asks of the store counts against that organisation's share.
    fn acting_for(&self, organisation: OrganisationId, work: &mut dyn FnMut());
}

/// The stored integration keys.
pub trait ApiKeys: Send + Sync {
    /// The key whose text carries the short id `id`.
    fn find(&self, id: &str) -> PortFuture<'_, Option<ApiKey>>;
}

/// A stored integration key: everything but the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Primary key.
    pub key: ApiKeyId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// SHA-256 of the key's secret.
    pub secret_sha256: [u8; 32],
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// Where it may be used from; empty on an older key, which is refused.
    pub allow: Vec<Network>,
    /// Requests a minute.
    pub rate_per_minute: u32,
}

impl ApiKey {
    /// Whether the key may be used from `address`.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|network| network.contains(address))
    }

    /// The caller that presents this key.
    pub fn principal(&self) -> Principal {
        Principal {
            who: Who::Key(self.key),
            organisation_id: self.organisation_id,
            role: None,
            scope: Scope::Organisation(self.organisation_id),
            permissions: self.permissions.clone(),
        }
    }
}

/// Where ended calls are stored.
pub trait CdrSink: Send + Sync {
    /// Stores records that are not there yet, each with its event and what it takes from its organisation's
    /// credit, in one durable transaction.
    fn store<'a>(&'a self, cdrs: &'a [Cdr]) -> PortFuture<'a, Stored>;
}

/// What storing records did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// How many were not there yet.
    pub new: usize,
    /// What they took from credits, by organisation.
    pub drawn: Vec<Drawn>,
}

/// Where news of calls are stored as events.
pub trait NewsSink: Send + Sync {
    /// Stores the event of each, in one transaction.
    fn store<'a>(&'a self, news: &'a [News]) -> PortFuture<'a, ()>;
}

/// Which URLs a tenant may have us ask.
pub trait OutgoingUrls: Send + Sync {
    /// Whether `url` may be saved: `https` on a public address. What is not known before its name is looked up is checked
    /// when it is asked.
    ///
    /// # Errors
    /// What it must be, a lower-case fragment.
    fn check(&self, url: &str) -> Result<(), String>;
}

/// Whether the engine can do its work, for `/readyz`.
pub trait Readiness: Send + Sync {
    /// What is not ready, one fragment each; empty when everything is.
    fn unready(&self) -> Vec<String>;

    /// What fails while the engine works around it, one fragment each: it does not make the engine unready.
    fn degraded(&self) -> Vec<String> {
        Vec::new()
    }
}
