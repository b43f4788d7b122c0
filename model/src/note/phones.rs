//! The phones, as the service sees them.

use bytes::Bytes;

use crate::ids::{CallId, ExtensionId, LegId, NoteId, OrganisationId, TeamId};
use crate::ports::PortFuture;

/// The phones of live calls and of extensions.
pub trait Phones: Send + Sync {
    /// The phones on a live call, whoever's it is; `None` when no such call is up.
    fn on_call(&self, call: CallId) -> PortFuture<'_, Option<CallPhones>>;

    /// The contacts of the devices that are registered for an extension.
    fn devices_of(&self, extension: ExtensionId) -> PortFuture<'_, Vec<String>>;

    /// Sends notes. With an error none of them is sent; what becomes of each is told later.
    fn send(&self, notes: Vec<Dispatch>) -> PortFuture<'_, ()>;
}

/// A live call as a note meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPhones {
    /// Whose it is.
    pub organisation: OrganisationId,
    /// Its team.
    pub team: Option<TeamId>,
    /// Whether it was answered: nothing is sent inside a dialog before.
    pub is_answered: bool,
    /// The legs whose far end is a phone of an extension.
    pub phones: Vec<Phone>,
}

/// A phone on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phone {
    /// Its leg.
    pub leg: LegId,
    /// The person's name, or else the number.
    pub name: String,
}

/// A note on its way to the phones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The note.
    pub note: NoteId,
    /// Where to; a receipt for each, in the order of the places.
    pub to: Destination,
    /// The JSON.
    pub payload: Bytes,
}

/// Where a note goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Inside the dialogs of these legs.
    Call(CallId, Vec<LegId>),
    /// Inside the dialogs of these legs of several calls.
    Calls(Vec<(CallId, LegId)>),
    /// To these contacts of an extension.
    Extension(ExtensionId, Vec<String>),
}

impl Destination {
    /// How many phones that are.
    pub fn len(&self) -> usize {
        match self {
            Destination::Call(_, legs) => legs.len(),
            Destination::Calls(legs) => legs.len(),
            Destination::Extension(_, devices) => devices.len(),
        }
    }

    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
