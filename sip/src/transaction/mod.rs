//! Transactions: one request and its responses, made reliable (RFC 3261 §17, RFC 6026, RFC 4320).
//!
//! Four machines decide when messages are sent, reported or dropped; they handle neither bytes nor addresses.
//! The [`Layer`] owns them, finds the transaction of each message and sends the bytes.
//!
//! Not here: whether a request is valid (dialogs decide that), and what to answer (the user decides).

mod client;
mod client_invite;
#[cfg(test)]
mod closed_flows;
mod config;
pub(crate) mod deadlines;
mod entry;
mod event;
mod finished;
mod key;
#[cfg(test)]
pub(crate) mod ladder;
mod layer;
mod modest;
pub(crate) mod outgoing;
mod sealer;
mod server;
mod server_invite;
mod spent;
mod standing;
#[cfg(test)]
mod tests;
mod timers;

pub use client::{Client, ClientInput, ClientOutput, ResponseClass};
pub use client_invite::ClientInvite;
pub use config::{HostPort, LayerConfig, Local, TRANSACTIONS_MAX};
pub use event::{Counters, Event, Input, Output, SendError};
pub use key::{ClientKey, ServerKey};
pub use layer::Layer;
pub use server::{Server, ServerInput, ServerOutput};
pub use server_invite::ServerInvite;
pub(crate) use timers::Backoff;
pub use timers::{T1, T2, T4, TRYING_AFTER, Timer, Timers};
