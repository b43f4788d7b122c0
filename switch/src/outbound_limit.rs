//! The outbound calls of organisations with a limit: the needs that a switch reports, and the cluster's decisions.

use sidetone_model::ids::OrganisationId;

/// The outbound calls that an organisation with a limit needs at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboundNeeds {
    /// The organisation.
    pub organisation: OrganisationId,
    /// Its limit of outbound calls, over all nodes.
    pub limit: u32,
    /// Its admitted outbound calls at this node.
    pub up: u32,
    /// Its calls that wait for a decision.
    pub waiting: u32,
    /// The ticket of the last waiting call.
    pub ticket: u64,
}

/// The outbound calls that an organisation may have at this node until the next decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboundDecision {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The number of outbound calls, including those that are up.
    pub slots: u32,
    /// Waiting calls up to this ticket continue as long as slots are free; the others up to it are refused.
    pub ticket: u64,
}
