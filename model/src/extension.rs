//! Extensions as the API manages them.

use serde::Serialize;

use crate::access::Scope;
use crate::directory::{Secret, StrictSource};
use crate::ids::{ExtensionId, OrganisationId, TeamId};
use crate::listing::Listing;
use crate::page::Page;
use crate::ports::PortFuture;
use crate::time::Timestamp;

/// A person's line; never its password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Extension))]
pub struct ExtensionRecord {
    /// The extension.
    pub id: ExtensionId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The team of its records; null when it is in none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub team_id: Option<TeamId>,
    /// The digits dialled for it, and what its phone registers as; unique within the organisation.
    pub number: String,
    /// The person's name; may be empty.
    pub name: String,
    /// The codecs offered, in order, with commas between; empty means that the codec profile decides: every codec
    /// that the switch carries.
    pub codec_string: String,
    /// Which address its media must come from; null takes the node's setting.
    #[cfg_attr(feature = "openapi", schema(required, inline))]
    pub strict_source: Option<StrictSource>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// An extension to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewExtension {
    /// Whose it will be.
    pub organisation_id: OrganisationId,
    /// Its team, of the same organisation.
    pub team_id: Option<TeamId>,
    /// Unique within the organisation.
    pub number: String,
    /// The person's name.
    pub name: String,
    /// The phone's password; generated when there is none.
    pub password: Option<Secret>,
    /// Codecs in order of preference; empty means every codec.
    pub codecs: Vec<String>,
    /// See [`ExtensionRecord`].
    pub strict_source: Option<StrictSource>,
}

/// The changes of an extension; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionChange {
    /// Another team, or none.
    pub team_id: Option<Option<TeamId>>,
    /// Another number; it requires a password, because the stored credential is not valid for another number.
    pub number: Option<String>,
    /// Another name.
    pub name: Option<String>,
    /// Another password.
    pub password: Option<Secret>,
    /// Other codecs.
    pub codecs: Option<Vec<String>>,
    /// Another source of media, or the node's setting.
    pub strict_source: Option<Option<StrictSource>>,
}

/// The stored extensions.
pub trait Extensions: Send + Sync {
    /// The extensions inside `scope`, by number unless asked otherwise.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<ExtensionRecord>>;

    /// One extension, of any organisation.
    fn find(&self, extension: ExtensionId) -> PortFuture<'_, Option<ExtensionRecord>>;

    /// Creates an extension inside `scope`, and returns its password if it was generated: it is not stored. A
    /// conflict when the organisation has one of that number.
    fn create(
        &self,
        scope: Scope,
        new: NewExtension,
        now: Timestamp,
    ) -> PortFuture<'_, (ExtensionRecord, Option<Secret>)>;

    /// Changes an extension inside `scope`; the changed extension must be inside as well.
    fn change(
        &self,
        scope: Scope,
        extension: ExtensionId,
        change: ExtensionChange,
        now: Timestamp,
    ) -> PortFuture<'_, ExtensionRecord>;

    /// Removes an extension inside `scope`. A conflict while a number leads to it or an agent takes its calls.
    fn delete(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, ()>;
}
