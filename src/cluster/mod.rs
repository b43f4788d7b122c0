//! This node as a member of a cluster, and its view of the other nodes: `[cluster]`, docs/cluster.md.
//!
//! Without `[cluster]` the same port serves this node only.

mod bindings;
mod bucket_work;
mod call_copies;
mod changes;
mod credit;
mod figures;
mod files;
mod limits;
mod lost_calls;
mod member;
mod message;
mod nodes;
mod peers;
mod room_offers;
mod rooms;
mod split_rooms;
mod trunk_homes;

pub use bindings::{BindingCounters, BindingTask};
pub use call_copies::{CopyCounters, CopyWriter};
pub use changes::{ChangeCounters, ChangeTask};
pub use credit::{CreditCounters, CreditTask};
pub use figures::FigureSource;
pub use files::{ClusterFiles, answering_files};
pub use limits::{LimitTask, SharedLimits, answering_limits};
pub use lost_calls::{LostCallCounters, LostCalls};
pub(crate) use member::identity;
pub use member::{ClusterCounters, ClusterMember, ClusterStart, Joining, start_member};
pub use nodes::{ClusterNodes, ThisNode};
pub use peers::{ClusterPeers, DrainRequest, answering, ask_to_drain};
pub use rooms::{RoomCounters, RoomTask};
pub use split_rooms::{SplitRoomWatch, SplitRooms};
