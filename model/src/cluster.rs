//! The nodes of the installation as readers see them, and the ports that list the nodes and forward requests to them.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::Who;
use crate::call::words;
use crate::ids::{CallId, NodeId};
use crate::ports::PortFuture;
use crate::room::RoomName;
use crate::time::Timestamp;

words! {
    /// Whether a node is there, as the node sees it that is asked.
    NodeState {
        /// It has sent nothing for three seconds.
        Gone = "gone",
        /// It has stopped in order.
        Left = "left",
        /// It is not known: the node that is asked is cut off from NATS, or has read one stored heartbeat of it.
        Unknown = "unknown",
        /// It runs.
        Up = "up",
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeRecord {
    /// The node.
    pub id: NodeId,
    /// Its configured name.
    pub name: String,
    /// Whether it is there.
    pub state: NodeState,
    /// Whether it is the node that answers.
    pub this: bool,
    /// The version of its program.
    pub version: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// Whether it takes no new calls and stops when the last one ends.
    pub draining: bool,
    /// Live calls.
    pub calls: u64,
    /// Live conference rooms.
    pub rooms: u64,
    /// Registered phones.
    pub registrations: u64,
    /// Processor time of the node during the last second, in percent of all its processors.
    pub cpu_percent: u32,
    /// Whether it places no calls for programs because it is loaded.
    pub loaded: bool,
    /// Its SIP listeners.
    #[cfg_attr(feature = "openapi", schema(example = json!(["udp://192.0.2.10:5060"])))]
    pub sip: Vec<String>,
    /// The URL of its HTTP API.
    #[cfg_attr(feature = "openapi", schema(example = "http://192.0.2.10:8080"))]
    pub http: String,
    /// Milliseconds since its last heartbeat arrived at the node that answers; 0 for that node itself.
    pub heartbeat_age_ms: u64,
}

/// The nodes of the installation.
pub trait Nodes: Send + Sync {
    /// Returns every known node, by name; a node without a cluster returns itself.
    fn list(&self) -> PortFuture<'_, Vec<NodeRecord>>;
}

/// A client's request that one node forwards to another. Its target is below `/api/v1`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The headers on which the answer depends, including the token.
    pub headers: Vec<(String, String)>,
    /// The address of the client.
    pub client: IpAddr,
    /// The body.
    #[serde(skip)]
    pub body: Vec<u8>,
}

/// Omits the headers, because they contain the token.
impl fmt::Debug for PeerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerRequest({} {} for {})", self.method, self.target, self.client)
    }
}

/// The answer of another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerAnswer {
    /// The status.
    pub status: u16,
    /// The headers for the client.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(skip)]
    pub body: Vec<u8>,
}

/// A live call or room, which one node owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveThing {
    /// A call.
    Call(CallId),
    /// A room.
    Room(RoomName),
    /// The room that contains this call or leg.
    RoomOfCall(Uuid),
}

/// The owner of a live call or room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No node owns it.
    Absent,
    /// This node owns it.
    Node(NodeId),
    /// No node that answered owns it; these did not answer.
    Unknown(Vec<String>),
}

/// The answers of all other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// The answers.
    pub answers: Vec<PeerAnswer>,
    /// The names of the nodes that did not answer in time.
    pub missing: Vec<String>,
}

/// The other nodes of the cluster, for requests about live calls and rooms.
pub trait Peers: Send + Sync {
    /// Sends a request to every other reachable node; each has 300 ms to answer.
    fn ask_all(&self, request: PeerRequest) -> PortFuture<'_, Gathered>;

    /// Finds the other node that owns a live call or room; each node has 300 ms to answer.
    fn owner(&self, of: LiveThing) -> PortFuture<'_, Owner>;

    /// Forwards a request to one node and returns its answer.
    ///
    /// # Errors
    /// [`Problem::Busy`](crate::problem::Problem::Busy) when it does not answer in time.
    fn forward(&self, to: NodeId, request: PeerRequest) -> PortFuture<'_, PeerAnswer>;

    /// Counts requests of a key or a user at the node that counts them for the cluster, which has 100 ms to answer. It
    /// never fails: if that node is not reachable, the answer is the share of the limit that this node may use by
    /// itself.
    fn count_requests(&self, take: RateTake) -> PortFuture<'_, RateTaken>;
}

/// Requests of a key or a user to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateTake {
    /// The key or the user.
    pub who: Who,
    /// The kind of request.
    pub kind: RateKind,
    /// Requests a minute.
    pub limit: u32,
    /// Requests to count now.
    pub cost: u32,
    /// The requests that this node has admitted in its current window.
    pub used: u32,
    /// Microseconds until that window ends; 0 if there is none.
    pub ends_in_us: i64,
}

/// The kind of request to count for a key or a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateKind {
    /// Calls that it places.
    Placements,
    /// Its requests.
    Requests,
}

/// The state of a limit after counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateTaken {
    /// The cluster has counted the requests.
    Counted {
        /// Whether the requests were within the limit.
        allowed: bool,
        /// The requests left in the window.
        remaining: u32,
        /// Microseconds until the window ends.
        ends_in_us: i64,
    },
    /// The cluster has not counted them: this node may admit this many requests in its window.
    Share(u32),
}
