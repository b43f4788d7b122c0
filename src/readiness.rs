//! The `/readyz` report of a switch: faults that prevent its work, and faults that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidetone_model::ports::Readiness;

use crate::cdr::journal::Journal;
use crate::cluster::ClusterMember;
use crate::driver::Handle;
use crate::supervise::{Supervisor, Task};

/// The parts of a switch that decide whether it is ready.
pub struct EngineReadiness {
    /// Stores the records of calls.
    pub journal: Journal,
    /// The switch.
    pub switch: Handle,
    /// Whether the node is stopping and accepts no new calls.
    pub draining: Arc<AtomicBool>,
    /// Owns the tasks.
    pub supervisor: Supervisor,
    /// Whether the last query of the database failed.
    pub database_away: Arc<AtomicBool>,
    /// The member of a cluster; `None` for a standalone node.
    pub cluster: Option<ClusterMember>,
}

impl Readiness for EngineReadiness {
    fn unready(&self) -> Vec<String> {
        let mut unready = Vec::new();
        if self.draining.load(Ordering::Relaxed) {
            unready.push("draining: the node takes no new calls and stops".to_owned());
        }
        if !self.journal.has_space() {
            unready.push("journal: the disk is full, only the journal's reserve is left".to_owned());
        } else if !self.journal.is_healthy() {
            unready.push("journal: the disk takes no records".to_owned());
        }
        if !self.switch.is_running() {
            unready.push(format!("{}: the switch has stopped, its sockets are closed", Task::Sip.as_str()));
        }
        unready.extend(self.supervisor.troubles());
        unready.extend(self.cluster.as_ref().and_then(ClusterMember::unready));
        unready
    }

    /// Calls continue without the database and without the other nodes, so this does not make the node unready.
    fn degraded(&self) -> Vec<String> {
        let is_away = self.database_away.load(Ordering::Relaxed);
        let words = "database: it does not answer, call records wait in the journal".to_owned();
        let cluster = self.cluster.iter().flat_map(ClusterMember::degraded);
        is_away.then_some(words).into_iter().chain(cluster).collect()
    }
}
