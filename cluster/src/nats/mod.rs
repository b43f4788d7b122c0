//! The driver: the connection to NATS, and the task that carries the messages of the machines.
//!
//! Every wait has a deadline. The client reopens a failed connection, without a limit of attempts. A reader that
//! returns nothing is reopened when the machine requests it.

mod binding_bucket;
mod bucket;
mod call_bucket;
mod changes;
mod connection;
mod double;
mod member;
mod observe;
mod peers;
mod room_bucket;
mod settings;

pub use binding_bucket::{BindingBucket, BindingStore};
pub use call_bucket::{CallBucket, StoredCall};
pub use changes::{ChangesOfOthers, StoredChange};
pub use connection::{ConnectError, Connection, probe};
pub use member::{Member, MemberCounters, MemberHandle, Notice};
pub use observe::Observed;
pub use peers::{Answering, PeerCounters, PeerListener, Topic};
pub use room_bucket::{RoomBucket, RoomStore};
pub use settings::{ClusterSettings, EdgeSettings, NodeTlsFiles, ServersError};
