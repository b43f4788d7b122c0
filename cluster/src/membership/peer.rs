//! What is known of one other member.

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

/// Whether a member is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// Nothing was heard of it for three seconds while NATS answered this node.
    Gone {
        /// When that was found.
        since: Instant,
    },
    /// One stored heartbeat was read, whose age is not known; a second one shows that the member lives.
    Stored,
    /// Its heartbeats arrive.
    Up,
}

/// What a heartbeat is to a member that is known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    /// A new run of the node.
    NewRun,
    /// The next heartbeat of its run.
    Next,
    /// One that was heard before, or of a run that has ended.
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
        // Runs of one node follow each other. Two clocks are not compared: both times are of the same machine.
        if (other.started_at, other.run) > (own.started_at, own.run) { Novelty::NewRun } else { Novelty::Old }
    }

    /// Its state in the view of a node that NATS answers, or not.
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
