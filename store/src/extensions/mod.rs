//! Extensions of users, with their digest credentials.

mod declare;
mod manage;
mod message_waiting;
mod rows;
mod spoken_names;
mod targets;

pub use declare::ExtensionRow;
pub use manage::MakeHa1;
pub(crate) use message_waiting::message_waiting;
pub(crate) use rows::forwarding;
pub(crate) use targets::forwards_nowhere;
