//! The members of the cluster as one node sees them: heartbeats in, a view and changes out.

mod heartbeat;
mod machine;
mod peer;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod view;

pub use heartbeat::{Figures, Heartbeat, Identity, RunId, UnreadableHeartbeat};
pub use machine::{BEAT_EVERY, GONE_AFTER, Input, MEMBERS_MAX, Membership, Output};
pub use view::{MemberView, View};
