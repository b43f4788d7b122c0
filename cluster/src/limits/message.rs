//! What nodes ask the home of a limit: versioned JSON. Unknown fields are ignored.

use serde::{Deserialize, Serialize};
use sidetone_model::cluster::RateKind;
use sidetone_model::ids::{NodeId, OrganisationId};
use uuid::Uuid;

use crate::membership::RunId;

/// A question to the home of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// How many outbound calls an organisation may have at the node that asks.
    Slots(Ask),
    /// What that node, the home of a limit, takes for itself beyond its share.
    HomeSlots(HomeSlots),
    /// What that node holds, after its view of the members has changed.
    Report(Report),
    /// Requests of a key or a user.
    Rate(Take),
    /// The node that asks has no report of the receiver, which is to send one.
    Recall(Recall),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// So many calls.
    Slots(Granted),
    /// The report, or what the home takes, is known.
    Reported,
    /// What is left of the requests.
    Rate(Taken),
    /// The node that was asked sees other members, lacks the report of one, or has answered a later question: the share holds.
    Unready,
}

/// A node needs this many slots of an organisation's outbound calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The node that asks.
    pub node: NodeId,
    /// Its run.
    pub run: RunId,
    /// Counts the questions of the run: a late one is ignored.
    pub seq: u64,
    /// The hash of the members that it sees.
    pub members: u64,
    /// The organisation.
    pub organisation: OrganisationId,
    /// Its limit.
    pub limit: u32,
    /// Calls that are up, which cannot be taken back.
    pub up: u32,
    /// Calls that are up or wait.
    pub want: u32,
}

/// What the home of a limit takes for itself: the receiver is the home when this one is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeSlots {
    /// The home.
    pub node: NodeId,
    /// As in [`Ask`].
    pub run: RunId,
    /// As in [`Ask`].
    pub seq: u64,
    /// The hash of the members that it sees.
    pub members: u64,
    /// The organisation.
    pub organisation: OrganisationId,
    /// Calls of the home, at most.
    pub held: u32,
}

/// A node lacks the report of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// The node that lacks it.
    pub node: NodeId,
}

/// So many outbound calls the organisation may have at the node that asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Calls, those that are up among them.
    pub slots: u32,
}

/// All that a node holds of the limits whose home is the receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The node.
    pub node: NodeId,
    /// As in [`Ask`].
    pub run: RunId,
    /// As in [`Ask`].
    pub seq: u64,
    /// The hash of the members that it sees.
    pub members: u64,
    /// What it holds.
    pub held: Vec<Held>,
    /// What nodes hold that are gone and may be cut off, as far as it knows. Earlier versions do not say it.
    #[serde(default)]
    pub absent: Vec<HeldBy>,
}

/// Outbound calls of one organisation at a node that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    /// The node.
    pub node: NodeId,
    /// Its calls.
    pub held: Held,
}

/// Outbound calls of one organisation at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The organisation.
    pub organisation: OrganisationId,
    /// Its calls that are up.
    pub up: u32,
}

/// Requests of a key or a user at one node, in the window of a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// The node that asks.
    pub node: NodeId,
    /// The key or the user.
    pub who: Uuid,
    /// What is counted.
    pub what: RateKind,
    /// Requests a minute.
    pub limit: u32,
    /// Requests to count now.
    pub cost: u32,
    /// Those that this node has counted in its window, so that a new home learns of them.
    pub used: u32,
    /// Microseconds until that window ends.
    pub ends_in_us: i64,
}

/// What is left after a [`Take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Whether the requests were within the limit, and are counted.
    pub allowed: bool,
    /// Requests that are left in the window.
    pub remaining: u32,
    /// Microseconds until the window ends.
    pub ends_in_us: i64,
}
