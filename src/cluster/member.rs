//! The node joins its cluster: its identity, the check for a second process with its name, its task, its metrics.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_cluster::membership::{Identity, Output, RunId, View};
use sidetone_cluster::nats::{ClusterSettings, ConnectError, Connection, Member, MemberHandle, Notice};
use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_model::metrics::Family;
use sidetone_model::time::Now;
use sidetone_sip::flow::Protocol;
use sidetone_sip::transport::NodeLinkSender;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::bindings::BindingCounters;
use super::call_copies::CopyCounters;
use super::changes::ChangeCounters;
use super::credit::CreditCounters;
use super::figures::FigureSource;
use super::limits::SharedLimits;
use super::lost_calls::LostCallCounters;
use super::rooms::RoomCounters;
use super::split_rooms::SplitRooms;
use crate::cdr::copies::{CallCopies, CallCopy};
use crate::clock::{instant, wall_clock};
use crate::config::Config;
use crate::driver::Handle;

/// The connection of a node that has not joined yet.
pub struct Joining {
    connection: Connection,
    /// The destination of the call copies that the journal and the writer of records send to other nodes.
    pub copies: CallCopies,
    /// The receiver of the copies, and the number of copies that were dropped because the queue was full.
    pub received: (mpsc::Receiver<CallCopy>, Arc<AtomicU64>),
}

/// Why a node does not join.
#[derive(Debug, thiserror::Error)]
pub enum ClusterStart {
    /// NATS cannot be used.
    #[error("{0}")]
    Connect(#[from] ConnectError),
    /// Another process uses the name.
    #[error(
        "[node] name \"{0}\": another process of the cluster runs under this name; give each node its own name, or stop \
         the other process"
    )]
    Double(String),
}

/// A node that has joined; clones share it.
#[derive(Clone)]
pub struct ClusterMember {
    /// The state that other parts read.
    pub handle: MemberHandle,
    /// The counters of its other tasks.
    pub counters: ClusterCounters,
}

/// The counters of the tasks besides the member's own.
#[derive(Clone)]
pub struct ClusterCounters {
    /// Notifications between nodes about the directory and credentials.
    pub changes: Arc<ChangeCounters>,
    /// The entries of this node's calls.
    pub copies: Arc<CopyCounters>,
    /// The calls of nodes that died.
    pub lost: Arc<LostCallCounters>,
    /// The rooms that are live at other nodes too.
    pub split: SplitRooms,
    /// The limits of all nodes.
    pub limits: Arc<SharedLimits>,
    /// The credit reserved for this node.
    pub credit: Arc<CreditCounters>,
    /// The shared bindings, and the switch whose edge is counted; `None` without `[cluster] listen`.
    pub bindings: Option<(Arc<BindingCounters>, Handle)>,
    /// The owners of rooms; `None` without `[cluster] listen`.
    pub rooms: Option<Arc<RoomCounters>>,
    /// The connections with other nodes; `None` if they use UDP.
    pub links: Option<NodeLinkSender>,
}

impl Joining {
    /// Connects, and checks that no other process of the cluster runs under this node's id. If NATS does not answer,
    /// the node starts anyway, and the check is made once it answers.
    ///
    /// # Errors
    /// The settings cannot be used, or there is such a process.
    pub async fn new(settings: &ClusterSettings, name: &str, node: NodeId) -> Result<Self, ClusterStart> {
        let connection = Connection::open(settings.clone(), name).await?;
        if connection.has_double(node).await {
            return Err(ClusterStart::Double(name.to_owned()));
        }
        let (copies, received, dropped) = CallCopies::new();
        Ok(Joining { connection, copies, received: (received, dropped) })
    }
}

/// The identity of this node towards the others.
pub(crate) fn identity(
    config: &Config,
    node: NodeId,
    (udp, connections, http): (&[SocketAddr], &[(Protocol, SocketAddr)], SocketAddr),
    edge: Option<SocketAddr>,
    own: &[IpAddr],
) -> Identity {
    let reachable = |address: SocketAddr| reachable(address, config.sip.external_address, own);
    let udp = udp.iter().map(|address| format!("udp://{}", reachable(*address)));
    let connections = connections.iter().map(|(protocol, address)| {
        format!("{}://{}", protocol.as_str().to_ascii_lowercase(), reachable(*address))
    });
    Identity {
        node,
        name: config.node.name.clone(),
        run: RunId(Uuid::new_v4()),
        started_at: wall_clock(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sip: udp.chain(connections).take(LISTENERS_MAX).collect(),
        edge,
        http: format!("{}://{}", config.http.scheme(), reachable(http)),
    }
}

/// The address of a listener as others reach it. For a listener on all addresses this is the external address, or the
/// first address of the host.
fn reachable(listener: SocketAddr, external: Option<IpAddr>, own: &[IpAddr]) -> SocketAddr {
    if !listener.ip().is_unspecified() {
        return listener;
    }
    let fits = |ip: &&IpAddr| ip.is_ipv4() == listener.is_ipv4() && !ip.is_loopback();
    let ip = external.or_else(|| own.iter().find(fits).copied());
    SocketAddr::new(ip.unwrap_or(listener.ip()), listener.port())
}

/// The member's task, which is not started yet, and the handle that others use.
pub fn start_member(
    joining: &Joining,
    identity: Identity,
    mut figures: FigureSource,
) -> (Member, MemberHandle) {
    let names = identity.name.clone();
    Member::new(
        joining.connection.clone(),
        identity,
        || Now { instant: instant(), wall: wall_clock() },
        move || figures.read(),
        move |notice| log(&names, &notice),
    )
}

/// Logs one line for each change.
fn log(name: &str, notice: &Notice) {
    match notice {
        Notice::Changed(Output::Isolated(reason)) => tracing::warn!(
            reason,
            "NATS does not answer: this node goes on with its own phones and calls, and sees no other node"
        ),
        Notice::Changed(Output::Linked) => {
            tracing::info!("NATS answers: this node is a member of its cluster")
        }
        Notice::Changed(Output::Joined(node)) => tracing::info!(node.id = %node, "a node is there"),
        Notice::Changed(Output::Left(node)) => tracing::info!(node.id = %node, "a node has stopped in order"),
        Notice::Changed(Output::Lost(node)) => {
            tracing::warn!(node.id = %node, "a node is gone: no heartbeat for 3 s");
        }
        Notice::Changed(Output::Double(true)) => tracing::error!(
            node.name = name,
            "another process of the cluster runs under the name of this node; stop one of them and give it its own \
             [node] name"
        ),
        Notice::Changed(Output::Double(false)) => {
            tracing::info!(node.name = name, "the other process with the name of this node is gone");
        }
        // The task executes these two.
        Notice::Changed(Output::Publish(_) | Output::Reopen) => {}
        Notice::Unreadable(key, reason) => {
            tracing::debug!(key, reason, "a heartbeat was ignored");
        }
    }
}

impl ClusterMember {
    /// Why the node must not accept calls; empty if it may.
    pub fn unready(&self) -> Option<String> {
        self.handle.view().has_double.then(|| {
            "cluster: another process runs under the name of this node; give each node its own [node] name"
                .to_owned()
        })
    }

    /// Failures that do not stop the node.
    pub fn degraded(&self) -> Vec<String> {
        let view = self.handle.view();
        let isolated = (!view.is_linked)
            .then(|| format!("cluster: NATS does not answer ({}), no other node is seen", view.reason));
        isolated.into_iter().chain(self.counters.split.degraded()).collect()
    }

    /// The metrics.
    pub fn families(&self) -> Vec<Family> {
        let (view, counters) = (self.handle.view(), self.handle.counters());
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let heartbeats = Family::counter(
            "sidetone_cluster_heartbeats_total",
            "Heartbeats of cluster nodes, by what became of them.",
        )
        .with([("result", "written")], read(&counters.written))
        .with([("result", "not_written")], read(&counters.failed))
        .with([("result", "read")], read(&counters.read))
        .with([("result", "unreadable")], read(&counters.unreadable))
        .with([("result", "refused")], view.refused);
        let mut families = vec![
            Family::gauge(
                "sidetone_cluster_linked",
                "Whether NATS returns the heartbeats of this node; 0: no other node is seen.",
            )
            .is(u64::from(view.is_linked)),
            Family::counter(
                "sidetone_cluster_isolations_total",
                "How often NATS returned no heartbeat of this node for three seconds.",
            )
            .is(read(&counters.isolations)),
            Family::counter("sidetone_cluster_connects_total", "Connections to NATS that were established.")
                .is(self.handle.connection().connects()),
            heartbeats,
            states(&view),
        ];
        families.extend(self.of_nodes(&view));
        families.extend(self.counters.copies.families());
        families.push(self.counters.changes.family());
        families.push(self.counters.lost.family());
        families.push(self.counters.split.family());
        families.extend(self.counters.limits.families());
        families.push(self.counters.credit.family());
        families.extend(self.counters.rooms.iter().flat_map(|rooms| rooms.families()));
        families.extend(self.counters.links.as_ref().map(links));
        if let Some((bindings, switch)) = &self.counters.bindings {
            families.extend(bindings.families());
            let family = Family::counter(
                "sidetone_edge_messages_total",
                "SIP messages between phones of this node and other nodes, by what became of them.",
            );
            let messages = switch.edge_messages().into_iter();
            families.push(
                messages.fold(family, |family, (result, count)| family.with([("result", result)], count)),
            );
        }
        families
    }

    /// The figures that each node reports.
    fn of_nodes(&self, view: &View) -> [Family; 5] {
        let now = self.handle.now().instant;
        let mut up =
            Family::gauge("sidetone_cluster_node_up", "Whether a node is there, as this node sees it.");
        let mut age = Family::gauge(
            "sidetone_cluster_node_heartbeat_age_seconds",
            "Whole seconds since the last heartbeat of a node arrived at this node.",
        );
        let mut calls =
            Family::gauge("sidetone_cluster_node_calls", "Live calls of a node, by its last heartbeat.");
        let mut phones = Family::gauge(
            "sidetone_cluster_node_registrations",
            "Registered phones of a node, by its last heartbeat.",
        );
        let mut cpu = Family::gauge(
            "sidetone_cluster_node_cpu_percent",
            "Processor time of a node in percent of its processors, by its last heartbeat.",
        );
        for member in &view.members {
            let name = [("node", member.last.identity.name.as_str())];
            let figures = member.last.figures;
            up = up.with(name, u64::from(member.state == NodeState::Up));
            age = age.with(name, now.saturating_duration_since(member.heard).as_secs());
            calls = calls.with(name, figures.calls);
            phones = phones.with(name, figures.registrations);
            cpu = cpu.with(name, u64::from(figures.cpu_percent));
        }
        [up, age, calls, phones, cpu]
    }
}

/// The connections over TLS with other nodes.
fn links(links: &NodeLinkSender) -> Family {
    let counters = links.counters();
    Family::counter(
        "sidetone_cluster_links_total",
        "Connections over TLS with other nodes: opened by either side, and refused or lost; and SIP messages that were dropped, \
         because too many waited.",
    )
    .with([("result", "opened")], counters.opened)
    .with([("result", "refused")], counters.refused)
    .with([("result", "dropped")], counters.dropped)
}

/// The number of nodes in each state.
fn states(view: &View) -> Family {
    let family =
        Family::gauge("sidetone_cluster_nodes", "Nodes of the cluster that this node knows, by state.");
    NodeState::ALL.iter().fold(family, |family, (state, name)| {
        let count = view.members.iter().filter(|member| member.state == *state).count();
        family.with([("state", *name)], count as u64)
    })
}

/// Listeners that a heartbeat lists.
const LISTENERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_named_as_others_reach_them() {
        let own: Vec<IpAddr> =
            ["127.0.0.1", "2001:db8::7", "10.0.0.7"].map(|ip| ip.parse().unwrap()).to_vec();
        let external = Some("203.0.113.5".parse().unwrap());
        let cases = [
            ("192.0.2.1:5060", external, "192.0.2.1:5060"),
            ("0.0.0.0:5060", external, "203.0.113.5:5060"),
            ("0.0.0.0:5060", None, "10.0.0.7:5060"),
            ("[::]:5060", None, "[2001:db8::7]:5060"),
        ];
        for (listener, external, expected) in cases {
            let address = reachable(listener.parse().unwrap(), external, &own);
            assert_eq!(address.to_string(), expected, "{listener}");
        }
        assert_eq!(reachable("0.0.0.0:1".parse().unwrap(), None, &[]).to_string(), "0.0.0.0:1");
    }
}
