//! Leases of live rooms: a room has one owner among the nodes, or none.
//!
//! The store forgets an entry three seconds after it was written, by its own clock, so that no clocks of nodes are
//! compared: a node that writes an entry where there is none owns the room until three seconds after it *sent* the last
//! write that succeeded, by its own monotonic clock, which is never later. The owner renews every 0.7 s by
//! compare-and-set. One that cannot, because it is cut off from the store, ends the room before another node may take it.

mod entry;
mod machine;

pub use entry::{Owner, RoomKey};
pub use machine::{Input, LEASE, OperationId, Outcome, Output, RoomLeases};

#[cfg(test)]
mod simulation;
