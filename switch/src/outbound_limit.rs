//! The outbound calls of organisations with a limit: what a switch reports to its cluster, and what the cluster decides.

use sidetone_model::ids::OrganisationId;

/// What an organisation with a limit needs at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboundNeeds {
    /// The organisation.
    pub organisation: OrganisationId,
    /// Its limit of outbound calls, over all nodes.
    pub limit: u32,
    /// Its outbound calls here that were let through.
    pub up: u32,
    /// Those that wait for a decision.
    pub waiting: u32,
    /// The ticket of the last one that waits.
    pub ticket: u64,
}

/// What an organisation may have at this node until the next decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboundDecision {
    /// The organisation.
    pub organisation: OrganisationId,
    /// So many outbound calls, those that are up among them.
    pub slots: u32,
    /// Calls up to this ticket go on as far as they fit, and are refused else.
    pub ticket: u64,
}
