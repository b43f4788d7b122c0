//! The edge role between the nodes of a cluster (RFC 5626 §5): a phone that is registered at this node is reached by
//! requests of other nodes, over the flow that a token in their Route names.
//!
//! [`Edge`] is a stateless proxy (RFC 3261 §16.11): dialogs, transactions and retransmissions stay with the two ends.
//! It adds a Via whose branch names the way back, and for requests that begin a dialog two Record-Routes, one for each
//! side (RFC 5658). It reads every way from tokens that it has signed itself.

mod pass;
mod relay;
mod token;

pub use pass::NodePass;
pub use relay::{Edge, Relayed};

#[cfg(test)]
mod tests;
