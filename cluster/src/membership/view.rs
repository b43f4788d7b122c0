//! The members for display: a copy of the machine's state for its readers.

use std::time::Instant;

use sidetone_model::cluster::NodeState;

use super::heartbeat::Heartbeat;

/// The cluster as this node sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// The members, including this node, by name.
    pub members: Vec<MemberView>,
    /// Whether this node's own heartbeats return from NATS.
    pub is_linked: bool,
    /// Why they do not return; empty while they do.
    pub reason: String,
    /// Another process that runs under this node's name.
    pub has_double: bool,
    /// Heartbeats refused because the table of members was full.
    pub refused: u64,
}

/// One member.
#[derive(Clone, Debug)]
pub struct MemberView {
    /// Its last heartbeat.
    pub last: Heartbeat,
    /// Whether it is up.
    pub state: NodeState,
    /// When the last heartbeat arrived, by the clock of this node.
    pub heard: Instant,
    /// Whether it is this node.
    pub is_this: bool,
}
