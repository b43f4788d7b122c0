//! The entry of an extension in the store.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use sidetone_model::ids::{ExtensionId, NodeId, OrganisationId};
use sidetone_model::time::Timestamp;

/// A phone that is registered at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedContact {
    /// The node.
    pub node: NodeId,
    /// The contact.
    pub contact: String,
    /// The user part of the Route by which the node reaches the phone (RFC 5626 §5.2).
    pub token: String,
    /// The source of the REGISTER.
    pub source: SocketAddr,
    /// The transport of the REGISTER: `UDP`, `TCP`, `TLS`, `WS` or `WSS`.
    pub transport: String,
    /// The routes between the node and the phone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Preference in thousandths.
    #[serde(default)]
    pub q: u16,
    /// `+sip.instance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// `reg-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reg_id: Option<u32>,
    /// The User-Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The time of the last REGISTER, by the clock of its node.
    pub registered_at: Timestamp,
    /// The time at which the binding expires.
    pub expires_at: Timestamp,
}

impl SharedContact {
    /// The contact as an entry stores it, with times in whole milliseconds. Finer times would never equal the stored
    /// entry, and the entry would be rewritten forever.
    pub(super) fn into_stored(self) -> SharedContact {
        let stored = |time: Timestamp| Timestamp::from_micros(time.as_micros().div_euclid(1_000) * 1_000);
        SharedContact {
            registered_at: stored(self.registered_at),
            expires_at: stored(self.expires_at),
            ..self
        }
    }

    /// Whether both are contacts of one device: same instance and `reg-id`, or same address.
    pub(super) fn is_same_device(&self, other: &SharedContact) -> bool {
        let same_instance = self.instance.is_some() && self.instance == other.instance;
        (same_instance && self.reg_id == other.reg_id) || self.contact == other.contact
    }
}

/// The entry of an extension: versioned JSON; unknown fields are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The version of the format: [`Entry::FORMAT`].
    pub(super) v: u32,
    pub(super) contacts: Vec<SharedContact>,
}

impl Entry {
    pub(super) const FORMAT: u32 = 1;

    pub(super) fn read(value: &[u8]) -> Option<Vec<SharedContact>> {
        if value.len() > ENTRY_BYTES_MAX {
            return None;
        }
        let entry: Entry = serde_json::from_slice(value).ok()?;
        (entry.v == Self::FORMAT).then_some(entry.contacts)
    }
}

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingKey {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The extension.
    pub extension: ExtensionId,
}

impl BindingKey {
    /// Reads the key of an entry.
    pub fn parse(text: &str) -> Option<Self> {
        let (organisation, extension) = text.split_once('.')?;
        let organisation = OrganisationId(organisation.parse().ok()?);
        Some(BindingKey { organisation, extension: ExtensionId(extension.parse().ok()?) })
    }
}

impl fmt::Display for BindingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.organisation, self.extension)
    }
}

/// The maximum size of an entry: more than any extension needs, and below the message limit of NATS.
pub(super) const ENTRY_BYTES_MAX: usize = 256 * 1024;
