//! Messages to and from the home of a limit: versioned JSON. Unknown fields are ignored.

use serde::{Deserialize, Serialize};
use sidetone_model::cluster::RateKind;
use sidetone_model::ids::{NodeId, OrganisationId};
use uuid::Uuid;

use crate::membership::RunId;

/// A question to the home of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// How many outbound calls may an organisation have at the requesting node?
    Slots(Ask),
    /// How many slots does the sender, the home of a limit, take beyond its share?
    HomeSlots(HomeSlots),
    /// The slots that the sender holds, after its view of the members has changed.
    Report(Report),
    /// Counts requests of a key or a user.
    Rate(Take),
    /// The sender lacks the report of the receiver, which is to send one.
    Recall(Recall),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The number of granted calls.
    Slots(Granted),
    /// The report, or the slots of the home, are recorded.
    Reported,
    /// The requests that remain.
    Rate(Taken),
    /// The receiver sees other members, lacks a report, or has answered a later question: the sender uses its share.
    Unready,
}

/// A node needs this many slots of an organisation's outbound calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The requesting node.
    pub node: NodeId,
    /// Its run.
    pub run: RunId,
    /// Counts the questions of the run; a late question is ignored.
    pub seq: u64,
    /// The hash of the members that it sees.
    pub members: u64,
    /// The organisation.
    pub organisation: OrganisationId,
    /// Its limit.
    pub limit: u32,
    /// Active calls, whose slots cannot be withdrawn.
    pub up: u32,
    /// Calls that are active or waiting.
    pub want: u32,
}

/// The slots that the home of a limit takes for itself. The receiver becomes the home when this one is cut off.
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
    /// The maximum number of calls of the home.
    pub held: u32,
}

/// A node lacks the report of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// The node that lacks it.
    pub node: NodeId,
}

/// The number of outbound calls that the organisation may have at the requesting node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Calls, including those that are active.
    pub slots: u32,
}

/// All slots that a node holds of the limits whose home is the receiver.
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
    /// The slots that it holds.
    pub held: Vec<Held>,
    /// Slots of nodes that are down and may be cut off, as far as the sender knows. Earlier versions do not send it.
    #[serde(default)]
    pub absent: Vec<HeldBy>,
}

/// Outbound calls of one organisation at a node that is down.
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
    /// Its active calls.
    pub up: u32,
}

/// Requests of a key or a user at one node, in the window of a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// The requesting node.
    pub node: NodeId,
    /// The key or the user.
    pub who: Uuid,
    /// The kind of request.
    pub what: RateKind,
    /// Requests a minute.
    pub limit: u32,
    /// Requests to count now.
    pub cost: u32,
    /// Requests that this node has counted in its window; they initialise the window at a new home.
    pub used: u32,
    /// Microseconds until that window ends.
    pub ends_in_us: i64,
}

/// The result of a [`Take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Whether the requests were within the limit and were counted.
    pub allowed: bool,
    /// Requests that remain in the window.
    pub remaining: u32,
    /// Microseconds until the window ends.
    pub ends_in_us: i64,
}
