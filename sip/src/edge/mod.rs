//! The edge role between the nodes of a cluster (RFC 5626 §5): requests of other nodes reach a phone that is registered
//! at this node over the flow that a token in their Route names.
//!
//! [`Edge`] is a stateless proxy (RFC 3261 §16.11): dialogs, transactions and retransmissions stay at the two ends. It
//! adds a Via whose branch names the return path. To requests that begin a dialog it adds two Record-Routes, one for
//! each side (RFC 5658). Every path is read from tokens that it signed itself.

mod pass;
mod relay;
mod token;

pub use pass::NodePass;
pub use relay::{Edge, Relayed};

#[cfg(test)]
mod tests;
