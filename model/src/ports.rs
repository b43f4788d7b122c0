//! The ports through which the API and the switch use stored resources.
//!
//! Object-safe and asynchronous without a runtime: a port returns a [`PortFuture`].

use std::net::IpAddr;

use crate::access::{Permission, Principal, Scope, Who};
use crate::call_log::{CdrFilter, CdrPlace, CdrQuery};
use crate::cdr::Cdr;
use crate::directory::Network;
use crate::ids::{ApiKeyId, CallId, OrganisationId};
use crate::page::{Order, Page};
pub use crate::port_future::PortFuture;
use crate::rating::Drawn;
use crate::switch_event::SwitchEvent;
use crate::totals::CdrTotals;
use crate::verdict_counts::{CountBy, VerdictGroup};

/// The stored call records.
pub trait CdrLog: Send + Sync {
    /// A page of the records inside `scope` that the query selects; `total` is exact.
    fn list(&self, scope: Scope, query: CdrQuery) -> PortFuture<'_, Page<Cdr>>;

    /// Counts the records inside `scope` that match, up to `count_max`.
    fn count<'a>(&'a self, scope: Scope, filter: &'a CdrFilter, count_max: u32) -> PortFuture<'a, u64>;

    /// The totals of the records inside `scope` that match.
    fn totals<'a>(&'a self, scope: Scope, filter: &'a CdrFilter) -> PortFuture<'a, CdrTotals>;

    /// The legs of the records inside `scope` that match, counted by verdict and by `by`; in no order. Legs without a
    /// verdict are left out. So are legs without a trunk or extension if `by` is that.
    fn verdicts<'a>(
        &'a self,
        scope: Scope,
        filter: &'a CdrFilter,
        by: CountBy,
    ) -> PortFuture<'a, Vec<VerdictGroup>>;

    /// The next records inside `scope` that match, at most `limit`, by `started_at` and then `call_uuid`;
    /// from the first one, or from the one after `after`. Fewer than `limit` means that there are no more.
    ///
    /// A reader that continues after its last record gets every record once, however long it takes: no lock
    /// is held between two chunks, and records never change.
    fn chunk<'a>(
        &'a self,
        scope: Scope,
        filter: &'a CdrFilter,
        order: Order,
        after: Option<CdrPlace>,
        limit: u32,
    ) -> PortFuture<'a, Vec<Cdr>>;

    /// One record, of any organisation; the caller decides by [`Scope::covers`] whether it may be shown,
    /// because "of another organisation" (403) and "unknown" (404) get different answers.
    fn find(&self, call: CallId) -> PortFuture<'_, Option<Cdr>>;
}

/// Assigns work to an organisation, for stores that give each organisation a share of their connections.
pub trait Tenants: Send + Sync {
    /// Runs `work` for `organisation`: its use of the store counts against that organisation's share.
    fn acting_for(&self, organisation: OrganisationId, work: &mut dyn FnMut());
}

/// The stored integration keys.
pub trait ApiKeys: Send + Sync {
    /// Returns the key with the short id `id`.
    fn find(&self, id: &str) -> PortFuture<'_, Option<ApiKey>>;
}

/// A stored integration key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Primary key.
    pub key: ApiKeyId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// SHA-256 of the key's secret.
    pub secret_sha256: [u8; 32],
    /// Its permissions.
    pub permissions: Vec<Permission>,
    /// The networks from which it may be used; empty for an older key, which is refused.
    pub allow: Vec<Network>,
    /// Requests a minute.
    pub rate_per_minute: u32,
}

impl ApiKey {
    /// Whether the key may be used from `address`.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|network| network.contains(address))
    }

    /// The caller that authenticated with this key.
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

/// The store for ended calls.
pub trait CdrSink: Send + Sync {
    /// Stores new records, each with its event and its deduction from the organisation's credit, in one
    /// durable transaction.
    fn store<'a>(&'a self, cdrs: &'a [Cdr]) -> PortFuture<'a, Stored>;
}

/// The result of storing records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// The number of new records.
    pub new: usize,
    /// The deductions from credits, by organisation.
    pub drawn: Vec<Drawn>,
}

/// The rows of many calls that are stored together.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallRows<'a> {
    /// Notifications of the switch: each becomes an event or a change of a call request; they precede the
    /// records.
    pub events: &'a [SwitchEvent],
    /// Records of ended calls.
    pub records: &'a [Cdr],
}

/// The store for calls.
pub trait CallSink: Send + Sync {
    /// Stores each notification, and the new records, each with its event, its quality and its deduction from
    /// the organisation's credit, in one durable transaction.
    fn store_calls<'a>(&'a self, rows: CallRows<'a>) -> PortFuture<'a, Stored>;
}

/// The rules for URLs that we request for tenants.
pub trait OutgoingUrls: Send + Sync {
    /// Checks that `url` may be saved: `https` on a public address. Checks that require its name to be
    /// resolved are made at the time of the request.
    ///
    /// # Errors
    /// The rule that it breaks, a lower-case fragment.
    fn check(&self, url: &str) -> Result<(), String>;
}

/// Whether the engine can do its work, for `/readyz`.
pub trait Readiness: Send + Sync {
    /// Returns the parts that are not ready, one fragment each; empty if all are.
    fn unready(&self) -> Vec<String>;

    /// Returns the failures that do not stop the engine, one fragment each: they do not make the engine
    /// unready.
    fn degraded(&self) -> Vec<String> {
        Vec::new()
    }
}
