//! Values of a request that only the stored data can judge: ids of other resources, and names that must be free.
//!
//! A request with a wrong field is refused before it is carried out. The checks are made for it all the same, so that
//! the answer names every wrong field. What carries the request out checks again, in its own transaction.

use uuid::Uuid;

use crate::ids::OrganisationId;
use crate::port_future::PortFuture;

/// A value of a request and its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCheck {
    /// The path of the field in the request, such as `items[0].extension_id`.
    pub field: String,
    /// What must hold.
    pub rule: StoredRule,
    /// The value, an id as a hyphenated UUID.
    pub value: String,
}

/// What must hold for a value. Rules about an organisation hold for no value while the organisation is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredRule {
    /// An extension of the organisation.
    Extension,
    /// An extension that no other agent of the organisation has.
    ExtensionOfNoAgent,
    /// A number that calls can be forwarded to by the extension with this number, if it is known.
    ForwardTarget(String),
    /// An address that no other user of any organisation has.
    FreeEmail,
    /// A number that no other extension of the organisation has.
    FreeExtensionNumber,
    /// A name that no other key of the organisation has.
    FreeKeyName,
    /// A name that no other organisation has.
    FreeOrganisationName,
    /// A number that no other phone number of any organisation has.
    FreePhoneNumber,
    /// A number that no other conference room of the organisation has.
    FreeRoomNumber,
    /// A domain that no other organisation has.
    FreeSipDomain,
    /// A name that no other team of the organisation has.
    FreeTeamName,
    /// A name that no other trunk has.
    FreeTrunkName,
    /// An organisation.
    Organisation,
    /// A conference room of the organisation.
    Room,
    /// A team of the organisation.
    Team,
    /// A trunk.
    Trunk,
    /// A user of the organisation.
    User,
    /// A user that no other agent of the organisation is.
    UserOfNoAgent,
}

/// What is wrong with a value, a lower-case fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueFault {
    /// Another resource has the value; alone it is a conflict, not a wrong request.
    Taken(String),
    /// The value cannot be used.
    Wrong(String),
}

impl ValueFault {
    /// The text.
    pub fn message(&self) -> &str {
        match self {
            ValueFault::Taken(message) | ValueFault::Wrong(message) => message,
        }
    }
}

/// The resource that a request creates or changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Its organisation, inside the scope of the caller; `None` when it is not known, or when there is none.
    pub organisation: Option<OrganisationId>,
    /// Its id, which a value may belong to already; `None` for a new one.
    pub own: Option<Uuid>,
}

/// Checks values against the stored data.
pub trait FieldChecks: Send + Sync {
    /// Returns what is wrong with each value, in the order of `checks`; the data is that of one instant.
    fn faults(&self, resource: Checked, checks: Vec<FieldCheck>) -> PortFuture<'_, Vec<Option<ValueFault>>>;
}
