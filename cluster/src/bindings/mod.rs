//! The bindings of phones that the nodes share: one entry for each extension, with the contacts of all nodes.
//!
//! The node that receives a REGISTER writes the entry by compare-and-set on its revision. If two nodes write at the
//! same time, the store orders the writes, and the later one keeps the contacts of the earlier one. A device has one
//! contact in an entry, at the node where it registered last; its previous node learns of the move from the entry.

mod entry;
mod machine;

pub use entry::{BindingKey, SharedContact};
pub use machine::{Input, Output, SharedBindings};

#[cfg(test)]
mod simulation;
