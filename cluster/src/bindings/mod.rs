//! The bindings of phones that the nodes share: one entry for each extension, with the contacts of all nodes.
//!
//! The node that takes a REGISTER writes the entry, by compare-and-set on its revision: two nodes that write at the same
//! time are put in an order by the store, and the later one keeps what the earlier one wrote. A device has one contact in
//! an entry, at the node where it registered last; the node that had it before learns so from the entry.

mod entry;
mod machine;

pub use entry::{BindingKey, SharedContact};
pub use machine::{Input, Output, SharedBindings};

#[cfg(test)]
mod simulation;
