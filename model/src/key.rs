//! Integration keys as the API manages them: all fields except the secret.

use crate::access::{Permission, Scope};
use crate::directory::Network;
use crate::directory::Secret;
use crate::ids::{ApiKeyId, OrganisationId};
use crate::listing::Listing;
use crate::page::Page;
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// A stored key as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Primary key.
    pub id: ApiKeyId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// Unique within the organisation.
    pub name: String,
    /// The part of the key's text before the secret: prefix and short id.
    pub prefix: String,
    /// The last four characters of the secret.
    pub last4: String,
    /// Its permissions.
    pub permissions: Vec<Permission>,
    /// The preset that the permissions were copied from.
    pub preset: Option<String>,
    /// The networks from which it may be used.
    pub allow: Vec<Network>,
    /// Requests a minute.
    pub rate_per_minute: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

/// A new key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// The owner.
    pub organisation_id: OrganisationId,
    /// Unique within the organisation.
    pub name: String,
    /// Its permissions.
    pub permissions: Vec<Permission>,
    /// The preset that the permissions were copied from.
    pub preset: Option<String>,
    /// The networks from which it may be used; 1 to [`NETWORKS_MAX`](crate::rules::NETWORKS_MAX) networks.
    pub allow: Vec<Network>,
    /// Requests a minute.
    pub rate_per_minute: u32,
}

/// The changes of a key; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyChange {
    /// The new name.
    pub name: Option<String>,
    /// Other permissions, and the preset that they were copied from.
    pub permissions: Option<(Vec<Permission>, Option<String>)>,
    /// Other addresses.
    pub allow: Option<Vec<Network>>,
    /// Another rate.
    pub rate_per_minute: Option<u32>,
}

/// The stored keys, for managing them.
pub trait Keys: Send + Sync {
    /// The keys inside `scope`, by name unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<KeyRecord>>;

    /// One key, of any organisation.
    fn find_record(&self, key: ApiKeyId) -> PortFuture<'_, Option<KeyRecord>>;

    /// Creates a key and returns its text, which is not stored. A conflict if the organisation has a key of
    /// that name.
    fn create(&self, new: NewKey, now: Timestamp) -> PortFuture<'_, (KeyRecord, Secret)>;

    /// Changes a key inside `scope`.
    fn change(
        &self,
        scope: Scope,
        key: ApiKeyId,
        change: KeyChange,
        now: Timestamp,
    ) -> PortFuture<'_, KeyRecord>;

    /// Removes a key inside `scope`; later requests with it are refused.
    fn delete(&self, scope: Scope, key: ApiKeyId) -> PortFuture<'_, ()>;
}

/// The default rate of a key, in requests a minute.
pub const RATE_DEFAULT: u32 = 600;
/// The highest rate of a key, in requests a minute.
pub const RATE_MAX: u32 = 60_000;
