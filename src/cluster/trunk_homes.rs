//! Notifies the switch of the nodes that may register with trunks.

use std::time::{Duration, Instant};

use sidetone_cluster::membership::{MemberView, View};
use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_switch::queries::ShareTrunks;
use sidetone_switch::trunk_homes::TrunkHomes;

use crate::driver::Handle;

/// The notices, of which an unchanged one is not sent again.
pub(super) struct TrunkHomeNotices {
    node: NodeId,
    switch: Handle,
    /// The last notice that the switch has.
    up: Option<Vec<NodeId>>,
    /// When this node registers with all trunks if it has not seen a member by then.
    alone_at: Instant,
}

impl TrunkHomeNotices {
    pub(super) fn new(node: NodeId, switch: Handle, now: Instant) -> Self {
        TrunkHomeNotices { node, switch, up: None, alone_at: now + JOIN_MAX }
    }

    /// Looks at the members. A node that is cut off keeps the registrations that it has: it does not know what the others
    /// do.
    pub(super) async fn look(&mut self, now: Instant, view: &View) {
        let up = match may_register(view) {
            Some(up) => up,
            None if self.up.is_none() && now >= self.alone_at => vec![self.node],
            None => return,
        };
        if self.up.as_ref() == Some(&up) {
            return;
        }
        // A switch that is busy is notified at the next look.
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

/// How long a node waits at its start until it sees the members.
const JOIN_MAX: Duration = Duration::from_secs(5);
