//! The phones, as the note service uses them.

use bytes::Bytes;

use crate::ids::{CallId, ExtensionId, LegId, NoteId, OrganisationId, TeamId};
use crate::port_future::PortFuture;

/// The phones of live calls and of extensions.
pub trait Phones: Send + Sync {
    /// The phones on a live call, of any organisation; `None` when there is no such call.
    fn on_call(&self, call: CallId) -> PortFuture<'_, Option<CallPhones>>;

    /// The contacts of the devices that are registered for an extension.
    fn devices_of(&self, extension: ExtensionId) -> PortFuture<'_, Vec<String>>;

    /// Sends notes. After an error none of them is sent; the result of each is reported later.
    fn send(&self, notes: Vec<Dispatch>) -> PortFuture<'_, ()>;
}

/// A live call with the fields that a note needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPhones {
    /// The organisation it belongs to.
    pub organisation: OrganisationId,
    /// Its team.
    pub team: Option<TeamId>,
    /// Whether it was answered: before the answer nothing is sent inside a dialog.
    pub is_answered: bool,
    /// The legs whose far end is a phone of an extension.
    pub phones: Vec<Phone>,
}

/// A phone on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phone {
    /// Its leg.
    pub leg: LegId,
    /// The user's name, or else the number.
    pub name: String,
}

/// A note to be sent to phones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The note.
    pub note: NoteId,
    /// The destination; one receipt each, in the same order.
    pub to: Destination,
    /// The JSON payload.
    pub payload: Bytes,
}

/// The destination of a note.
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
    /// The number of phones.
    pub fn len(&self) -> usize {
        match self {
            Destination::Call(_, legs) => legs.len(),
            Destination::Calls(legs) => legs.len(),
            Destination::Extension(_, devices) => devices.len(),
        }
    }

    /// Whether there are no phones.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
