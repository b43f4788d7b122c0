//! Bindings in the form that the nodes of a cluster share.
//!
//! The switch has no list of nodes. A binding at another node has a flow to that node, a Route and an address, and is
//! called like a binding of this node.

use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::time::Timestamp;
use sidetone_sip::flow::Flow;

/// A registered phone, with the data that other nodes need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBinding {
    /// Its contact.
    pub contact: String,
    /// The flow on which it registered at its node.
    pub device_flow: Flow,
    /// The routes between its node and the phone, nearest first (RFC 3327).
    pub path: Vec<String>,
    /// Preference in thousandths.
    pub q_permille: u16,
    /// `+sip.instance` (RFC 5626 §4.1).
    pub instance: Option<String>,
    /// `reg-id`.
    pub reg_id: Option<u32>,
    /// The User-Agent.
    pub user_agent: Option<String>,
    /// The last REGISTER.
    pub registered_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// The phones of an extension that are registered at this node and reachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeBindings {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The extension.
    pub extension: ExtensionId,
    /// How many phones the extension may have, at all nodes together.
    pub bindings_max: usize,
    /// The phones.
    pub bindings: Vec<SharedBinding>,
}

/// A phone that is registered at another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteBinding {
    /// The phone.
    pub binding: SharedBinding,
    /// The flow to its node.
    pub way: Flow,
    /// The Route that identifies the phone's flow at its node.
    pub route: String,
}

/// The phones of an extension at all other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingsElsewhere {
    /// The extension.
    pub extension: ExtensionId,
    /// The phones.
    pub bindings: Vec<RemoteBinding>,
    /// Contacts that are no longer registered here, because their phones have since registered at another node.
    pub displaced: Vec<String>,
    /// Whether phones are missing because their node is lost.
    pub is_node_lost: bool,
}
