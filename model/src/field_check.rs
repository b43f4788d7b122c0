//! Values of a request that are checked against the stored data: ids of other resources, and names that must be
//! free.
//!
//! A request with a wrong field is refused before it is executed. These checks are made nevertheless, so that the
//! answer names every wrong field. The operation checks again, in its own transaction.

use uuid::Uuid;

use crate::ids::OrganisationId;
use crate::port_future::PortFuture;

/// A value of a request and its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCheck {
    /// The path of the field in the request, such as `items[0].extension_id`.
    pub field: String,
    /// The rule for the value.
    pub rule: StoredRule,
    /// The value; an id is a hyphenated UUID.
    pub value: String,
}

/// A rule for a value. Rules about an organisation accept no value while the organisation is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredRule {
    /// An extension of the organisation.
    Extension,
    /// An extension that no other agent of the organisation has.
    ExtensionOfNoAgent,
    /// A number to which the extension with this number, if it is known, can forward calls.
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

/// The problem of a value, a lower-case fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueFault {
    /// Another resource has the value. As the only problem this is a conflict, not a wrong request.
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
    /// Its organisation, inside the scope of the caller; `None` if unknown, or if there is none.
    pub organisation: Option<OrganisationId>,
    /// Its id, whose own value is not a conflict; `None` for a new resource.
    pub own: Option<Uuid>,
}

/// Checks values against the stored data.
pub trait FieldChecks: Send + Sync {
    /// Returns the problem of each value, in the order of `checks`; all are checked against the data of one
    /// instant.
    fn faults(&self, resource: Checked, checks: Vec<FieldCheck>) -> PortFuture<'_, Vec<Option<ValueFault>>>;
}
