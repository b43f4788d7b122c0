//! Leases of live rooms: a room has one owner among the nodes, or none.
//!
//! The store deletes an entry three seconds after it was written, by its own clock, so clocks of nodes are never
//! compared. A node that writes an entry where there is none owns the room until three seconds after it *sent* its last
//! successful write, by its own monotonic clock; that is never later than the deletion. The owner renews every 0.7 s by
//! compare-and-set. An owner that is cut off from the store ends the room before another node can claim it.

mod entry;
mod machine;

pub use entry::{Owner, RoomKey};
pub use machine::{Input, LEASE, OperationId, Outcome, Output, RoomLeases};

#[cfg(test)]
mod simulation;
