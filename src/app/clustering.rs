//! The node as a member of a cluster, or standalone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sidetone_api::{ApiState, PeerService};
use sidetone_cluster::nats::{Member, PeerListener, Topic};
use sidetone_model::cluster::{Nodes, Peers};
use sidetone_model::ids::NodeId;
use sidetone_sip::flow::Protocol;
use sidetone_sip::transport::NodeLinkTask;
use sidetone_store::Store;

use super::edge::NodeEdge;
use super::switching::our_addresses;
use crate::cluster::{
    BindingTask, ChangeTask, ClusterCounters, ClusterFiles, ClusterMember, ClusterNodes, ClusterPeers,
    CopyWriter, CreditTask, DrainRequest, FigureSource, Joining, LimitTask, LostCalls, RoomTask,
    SharedLimits, SplitRoomWatch, ThisNode, answering, answering_files, answering_limits, identity,
    start_member,
};
use crate::config::Config;
use crate::driver::Handle;
use crate::far_files::FarFiles;
use crate::followers::ClusterTasks;
use crate::own_files::OwnFiles;

/// The parts of the cluster that other modules use.
pub(super) struct ClusterPart {
    /// The member; `None` for a standalone node.
    pub(super) member: Option<ClusterMember>,
    /// The nodes that the API lists.
    pub(super) nodes: Arc<dyn Nodes>,
    /// The nodes that the API queries; `None` for a standalone node.
    pub(super) peers: Option<Arc<dyn Peers>>,
    tasks: Option<MemberTasks>,
}

/// The tasks of a member that are not started yet.
struct MemberTasks {
    member: Member,
    copies: CopyWriter,
    changes: ChangeTask,
    lost_calls: LostCalls,
    split_rooms: SplitRoomWatch,
    limits: (LimitTask, Arc<SharedLimits>),
    credit: CreditTask,
    bindings: Option<BindingTask>,
    rooms: Option<RoomTask>,
    links: Option<NodeLinkTask>,
}

impl ClusterPart {
    /// Builds the part of this node; its tasks are not started yet.
    pub(super) fn new(
        config: &Config,
        (node, store, switch): (NodeId, &Store, &Handle),
        (joining, edge): (Option<Joining>, Option<NodeEdge>),
        (figures, draining): (FigureSource, (Arc<AtomicBool>, Arc<AtomicBool>)),
        addresses: (&[SocketAddr], &[(Protocol, SocketAddr)], SocketAddr),
    ) -> Self {
        let edge_address = edge.as_ref().map(|edge| edge.address);
        let identity = identity(config, node, addresses, edge_address, &our_addresses(config));
        let (Some(joining), Some(settings)) = (joining, &config.cluster) else {
            let nodes: Arc<dyn Nodes> = Arc::new(ThisNode::new(identity, figures));
            return ClusterPart { member: None, nodes, peers: None, tasks: None };
        };
        let run = identity.run;
        let (task, handle) = start_member(&joining, identity, figures);
        let (received, dropped) = joining.received;
        let (writer, copies) = CopyWriter::new(handle.clone(), (node, run), received, dropped);
        let (lost_calls, lost) = LostCalls::new(handle.clone(), store.clone(), node, settings.lost_after);
        let (change_task, changes) = ChangeTask::new(handle.clone(), store.clone(), node);
        let (limit_task, limits) =
            LimitTask::new(handle.clone(), (store.clone(), switch.clone()), (node, run));
        let parts = (store.clone(), switch.clone(), node);
        let (credit_task, credit) = CreditTask::new(handle.clone(), parts, config.sip.max_call);
        let peers = ClusterPeers(handle.clone(), Arc::clone(&limits));
        let (split_rooms, split) = SplitRoomWatch::new(peers.clone(), switch.clone());
        let rooms = edge
            .as_ref()
            .map(|edge| RoomTask::new(handle.clone(), switch.clone(), (node, run), edge.listener, draining));
        let (rooms, room_counters) = rooms.unzip();
        let bindings = edge.map(|NodeEdge { edge, listener, address, links }| {
            let (links, names) = links.map(|links| ((links.task, links.sender), links.names)).unzip();
            let place = (edge, listener, address);
            (links, BindingTask::new(handle.clone(), switch.clone(), node, place, names))
        });
        let (links, bindings) = bindings.unzip();
        let (links, link_counters) = links.flatten().unzip();
        let (bindings, binding_counters) = bindings.unzip();
        let binding_counters = binding_counters.map(|counters| (counters, switch.clone()));
        let counters = ClusterCounters {
            changes,
            copies,
            lost,
            split,
            limits: Arc::clone(&limits),
            credit,
            bindings: binding_counters,
            rooms: room_counters,
            links: link_counters,
        };
        ClusterPart {
            nodes: Arc::new(ClusterNodes(handle.clone())),
            peers: Some(Arc::new(peers)),
            member: Some(ClusterMember { handle, counters }),
            tasks: Some(MemberTasks {
                member: task,
                copies: writer,
                changes: change_task,
                lost_calls,
                split_rooms,
                limits: (limit_task, limits),
                credit: credit_task,
                bindings,
                rooms,
                links,
            }),
        }
    }

    /// The files of other nodes; `None` for a standalone node.
    pub(super) fn far_files(&self) -> Option<Arc<dyn FarFiles>> {
        let files = self.member.as_ref().map(|member| ClusterFiles(member.handle.clone()));
        files.map(|files| Arc::new(files) as Arc<dyn FarFiles>)
    }

    /// Returns the tasks, including the one that answers other nodes from this API.
    pub(super) fn into_tasks(
        self,
        (node, switch, own): (NodeId, &Handle, OwnFiles),
        state: &ApiState,
        drain: &DrainRequest,
    ) -> Option<ClusterTasks> {
        let MemberTasks {
            member,
            copies,
            changes,
            lost_calls,
            split_rooms,
            limits,
            credit,
            bindings,
            rooms,
            links,
        } = self.tasks?;
        let answering = answering(switch.clone(), PeerService::new(state.clone()), drain.clone());
        let connection = self.member?.handle.connection().clone();
        let (limits, shared) = limits;
        let questions = answering_limits(shared);
        let (limit_questions, _) = PeerListener::new(connection.clone(), (Topic::Limits, node), questions);
        let (files, _) = PeerListener::new(connection.clone(), (Topic::Files, node), answering_files(own));
        let (peers, _) = PeerListener::new(connection, (Topic::Live, node), answering);
        let limits = (limits, limit_questions);
        Some(ClusterTasks {
            member,
            copies,
            changes,
            lost_calls,
            split_rooms,
            limits,
            credit,
            peers,
            files,
            bindings,
            rooms,
            links,
        })
    }
}
