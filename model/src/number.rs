//! Phone numbers as they are managed.

use serde::Serialize;
use uuid::Uuid;

use crate::access::Scope;
use crate::directory::Destination;
use crate::ids::{NumberId, OrganisationId};
use crate::listing::Listing;
use crate::page::Page;
use crate::ports::PortFuture;
use crate::time::Timestamp;

/// A phone number and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberRecord {
    /// Primary key.
    pub id: NumberId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// E.164 with `+`; unique over all organisations.
    pub number: String,
    /// Where a call to it goes.
    pub destination: Destination,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl NumberRecord {
    /// The number as callers see it.
    pub fn view(&self) -> NumberView<'_> {
        let (destination, destination_id) = match self.destination {
            Destination::Extension(extension) => ("extension", extension.0),
        };
        NumberView {
            id: self.id,
            organisation_id: self.organisation_id,
            number: &self.number,
            destination,
            destination_id,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// A phone number as callers see it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Number))]
pub struct NumberView<'a> {
    /// The number's id.
    id: NumberId,
    /// Whose it is.
    organisation_id: OrganisationId,
    /// The number in E.164, with its `+`; unique over all organisations.
    number: &'a str,
    /// What kind of thing a call to it reaches: `extension`. More kinds may come.
    destination: &'a str,
    /// Which one.
    destination_id: Uuid,
    /// When it was made.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

/// A phone number to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNumber {
    /// Whose it will be.
    pub organisation_id: OrganisationId,
    /// Not taken by anybody.
    pub number: String,
    /// Something of the same organisation.
    pub destination: Destination,
}

/// What changes of a phone number; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberChange {
    /// Another number.
    pub number: Option<String>,
    /// Another destination.
    pub destination: Option<Destination>,
}

/// The stored phone numbers.
pub trait Numbers: Send + Sync {
    /// The numbers inside `scope`, by number unless asked otherwise.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<NumberRecord>>;

    /// One number, whoever owns it.
    fn find(&self, number: NumberId) -> PortFuture<'_, Option<NumberRecord>>;

    /// Makes a number inside `scope`. A conflict when somebody has it; invalid when the organisation does not have
    /// what it leads to.
    fn create(&self, scope: Scope, new: NewNumber, now: Timestamp) -> PortFuture<'_, NumberRecord>;

    /// Changes a number inside `scope`.
    fn change(
        &self,
        scope: Scope,
        number: NumberId,
        change: NumberChange,
        now: Timestamp,
    ) -> PortFuture<'_, NumberRecord>;

    /// Removes a number inside `scope`.
    fn delete(&self, scope: Scope, number: NumberId) -> PortFuture<'_, ()>;
}
