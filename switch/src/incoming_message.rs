//! A message that a phone sent to the switch, and its sender.

use bytes::Bytes;
use sidetone_model::ids::{CallId, ExtensionId, LegId, OrganisationId};
use sidetone_sip::transaction::ServerKey;

/// A JSON message of a phone that needs an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingMessage {
    /// The request to be answered.
    pub key: ServerKey,
    /// The sender.
    pub by: Speaker,
    /// The organisation of the extension or call.
    pub organisation: OrganisationId,
    /// The device, if a device sent it.
    pub device: Option<Device>,
    /// The JSON as received, at most [`MESSAGE_BYTES_MAX`].
    pub body: Bytes,
}

/// A device of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The extension's address of record as a URI.
    pub address: String,
    /// The contact registered from the source address of the message; `None` when there is none, or more than
    /// one.
    pub contact: Option<String>,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A device of the extension, authenticated by digest, in a MESSAGE to its organisation's events
    /// identity.
    Device(ExtensionId),
    /// The far end of a call's leg, in an INFO inside its dialog.
    Leg(CallId, LegId),
}

/// The user part of the identity that sends notes; the host is the organisation's domain.
pub const EVENTS_USER: &str = "events";

/// The longest message of a phone, in bytes: the same limit as for a note.
pub const MESSAGE_BYTES_MAX: usize = 4_096;
