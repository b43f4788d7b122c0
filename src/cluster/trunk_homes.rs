//! Notifies the switch of the nodes that may register with trunks.

use std::time::{Duration, Instant};

use sidetone_cluster::membership::{MemberView, View};
use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_switch::queries::ShareTrunks;
use sidetone_switch::trunk_homes::TrunkHomes;

use crate::driver::Handle;

/// The notices; an unchanged one is not sent again.
pub(super) struct TrunkHomeNotices {
    node: NodeId,
    switch: Handle,
    /// The last notice that the switch has.
    up: Option<Vec<NodeId>>,
    /// When this node registers with all trunks if it has not seen the members by then.
    alone_at: Instant,
}

impl TrunkHomeNotices {
    pub(super) fn new(node: NodeId, switch: Handle, now: Instant) -> Self {
        TrunkHomeNotices { node, switch, up: None, alone_at: now + JOIN_MAX }
    }

    /// Checks the members. A node that is cut off keeps its current registrations, because it does not know the state
    /// of the others.
    pub(super) async fn look(&mut self, now: Instant, view: &View) {
        let up = match may_register(view) {
            Some(up) => up,
            None if self.up.is_none() && now >= self.alone_at => vec![self.node],
            None => return,
        };
        if self.up.as_ref() == Some(&up) {
            return;
        }
        // If the switch is busy, it is notified at the next check.
        let homes = TrunkHomes::Members { node: self.node, up: up.clone() };
        if self.switch.ask(ShareTrunks(homes)).await.is_ok() {
            self.up = Some(up);
        }
    }
}

/// The nodes that are up and do not drain, sorted; `None` for a node that is cut off.
fn may_register(view: &View) -> Option<Vec<NodeId>> {
    let is_known = view.members.iter().any(|member| member.is_this);
    let may = |member: &&MemberView| member.state == NodeState::Up && !member.last.figures.draining;
    let up = view.members.iter().filter(may);
    let mut up: Vec<NodeId> = up.map(|member| member.last.identity.node).collect();
    up.sort_unstable();
    (view.is_linked && is_known).then_some(up)
}

/// How long a node waits at its start to see the members.
const JOIN_MAX: Duration = Duration::from_secs(5);
