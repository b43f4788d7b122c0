//! State of one other member.

use std::time::Instant;

use sidetone_model::cluster::NodeState;

use super::heartbeat::Heartbeat;

/// One other member.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// Its last heartbeat.
    pub(super) last: Heartbeat,
    pub(super) state: Presence,
    /// When `last` arrived, by this node's clock.
    pub(super) heard: Instant,
}

/// Whether a member is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// No heartbeat for three seconds while NATS answered this node.
    Gone {
        /// When that was detected.
        since: Instant,
    },
    /// One stored heartbeat of unknown age was read; a second one shows that the member is alive.
    Stored,
    /// Its heartbeats arrive.
    Up,
}

/// How a heartbeat relates to the last one of a known member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    /// A new run of the node.
    NewRun,
    /// The next heartbeat of its run.
    Next,
    /// A repeated heartbeat, or one of an ended run.
    Old,
}

impl Peer {
    /// A member whose first heartbeat was read.
    pub(super) fn new(heartbeat: Heartbeat, now: Instant) -> Self {
        Peer { last: heartbeat, state: Presence::Stored, heard: now }
    }

    /// Compares a heartbeat with the last one.
    pub(super) fn novelty(&self, heartbeat: &Heartbeat) -> Novelty {
        let (own, other) = (&self.last.identity, &heartbeat.identity);
        if own.run == other.run {
            return if heartbeat.seq > self.last.seq { Novelty::Next } else { Novelty::Old };
        }
        // Runs of one node follow each other. Both times are of the same machine, so no clocks of two machines are
        // compared.
        if (other.started_at, other.run) > (own.started_at, own.run) { Novelty::NewRun } else { Novelty::Old }
    }

    /// Its state in the view of a node that is linked to NATS, or not.
    pub(super) fn shown(&self, is_linked: bool) -> NodeState {
        match self.state {
            _ if self.last.leaving => NodeState::Left,
            Presence::Gone { .. } => NodeState::Gone,
            Presence::Stored => NodeState::Unknown,
            Presence::Up if !is_linked => NodeState::Unknown,
            Presence::Up => NodeState::Up,
        }
    }
}
