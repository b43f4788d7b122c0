//! Phone numbers as the API manages them.

use serde::Serialize;
use uuid::Uuid;

use crate::access::Scope;
use crate::directory::{Destination, DestinationKind};
use crate::ids::{NumberId, OrganisationId};
use crate::listing::Listing;
use crate::page::Page;
use crate::port_future::PortFuture;
use crate::problem::FieldProblem;
use crate::time::Timestamp;

/// A phone number and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberRecord {
    /// Primary key.
    pub id: NumberId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// E.164 with `+`; unique over all organisations.
    pub number: String,
    /// The destination of a call to it.
    pub destination: Destination,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

impl NumberRecord {
    /// The number as clients see it.
    pub fn view(&self) -> NumberView<'_> {
        NumberView {
            id: self.id,
            organisation_id: self.organisation_id,
            number: &self.number,
            destination: self.destination.kind(),
            destination_id: self.destination.id(),
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
    /// The kind of destination. More kinds may follow.
    #[cfg_attr(feature = "openapi", schema(inline))]
    destination: DestinationKind,
    /// The destination; absent for a conference that asks its callers for the room's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_id: Option<Uuid>,
    /// When it was made.
    created_at: Timestamp,
    /// The last change.
    updated_at: Timestamp,
}

/// A phone number to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNumber {
    /// The owner.
    pub organisation_id: OrganisationId,
    /// A number that is not in use.
    pub number: String,
    /// It must belong to the same organisation.
    pub destination: Destination,
}

/// The changes of a phone number; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberChange {
    /// The new number.
    pub number: Option<String>,
    /// Another kind of destination.
    pub kind: Option<DestinationKind>,
    /// Another destination, or none.
    pub destination_id: Option<Option<Uuid>>,
}

impl NumberChange {
    /// Returns the changed destination; `before` is the previous one. An id is kept only with its kind.
    ///
    /// # Errors
    /// The problem of the id.
    pub fn destination(&self, before: Destination) -> Result<Destination, FieldProblem> {
        let kind = self.kind.unwrap_or(before.kind());
        let kept = before.id().filter(|_| kind == before.kind());
        Destination::of(kind, self.destination_id.unwrap_or(kept)).map_err(|message| FieldProblem {
            field: "destination_id".to_owned(),
            message: message.to_owned(),
        })
    }
}

/// The stored phone numbers.
pub trait Numbers: Send + Sync {
    /// The numbers inside `scope`, by number unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<NumberRecord>>;

    /// One number, of any organisation.
    fn find(&self, number: NumberId) -> PortFuture<'_, Option<NumberRecord>>;

    /// Creates a number inside `scope`. A conflict if it is in use; invalid if the organisation does not have
    /// the destination.
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
