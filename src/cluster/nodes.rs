//! The nodes as the HTTP API shows them.

use parking_lot::Mutex;
use sidetone_cluster::membership::{Heartbeat, Identity, MemberView};
use sidetone_cluster::nats::MemberHandle;
use sidetone_model::cluster::{NodeRecord, NodeState, Nodes};
use sidetone_model::ports::PortFuture;

use super::figures::FigureSource;
use crate::clock::wall_clock;

/// The members of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterNodes(pub MemberHandle);

impl Nodes for ClusterNodes {
    fn list(&self) -> PortFuture<'_, Vec<NodeRecord>> {
        let (view, now) = (self.0.view(), self.0.now().instant);
        let nodes = view.members.iter().map(|member| {
            let age = now.saturating_duration_since(member.heard);
            let age_ms = if member.is_this { 0 } else { u64::try_from(age.as_millis()).unwrap_or(u64::MAX) };
            record(member, age_ms)
        });
        let nodes = nodes.collect();
        Box::pin(async move { Ok(nodes) })
    }
}

/// A node without a cluster.
pub struct ThisNode {
    identity: Identity,
    figures: Mutex<FigureSource>,
}

impl ThisNode {
    /// The node with these figures.
    pub fn new(identity: Identity, figures: FigureSource) -> Self {
        ThisNode { identity, figures: Mutex::new(figures) }
    }
}

impl Nodes for ThisNode {
    fn list(&self) -> PortFuture<'_, Vec<NodeRecord>> {
        let heartbeat = Heartbeat {
            v: Heartbeat::FORMAT,
            identity: self.identity.clone(),
            seq: 0,
            at: wall_clock(),
            figures: self.figures.lock().read(),
            leaving: false,
        };
        let heard = crate::clock::instant();
        let node = record(&MemberView { last: heartbeat, state: NodeState::Up, heard, is_this: true }, 0);
        Box::pin(async move { Ok(vec![node]) })
    }
}

fn record(member: &MemberView, heartbeat_age_ms: u64) -> NodeRecord {
    let MemberView { last: Heartbeat { identity, figures, .. }, state, is_this, .. } = member;
    NodeRecord {
        id: identity.node,
        name: identity.name.clone(),
        state: *state,
        this: *is_this,
        version: identity.version.clone(),
        started_at: identity.started_at,
        draining: figures.draining,
        calls: figures.calls,
        rooms: figures.rooms,
        registrations: figures.registrations,
        cpu_percent: figures.cpu_percent,
        loaded: figures.loaded,
        sip: identity.sip.clone(),
        http: identity.http.clone(),
        heartbeat_age_ms,
    }
}
