//! Transactions: one request and its responses, made reliable (RFC 3261 §17, RFC 6026, RFC 4320).
//!
//! Four machines decide when something is sent, told or forgotten. They know neither bytes nor addresses.

mod client;
mod client_invite;
#[cfg(test)]
mod ladder;
mod server;
mod server_invite;
mod timers;

pub use client::{Client, ClientInput, ClientOutput, ResponseClass};
pub use client_invite::ClientInvite;
pub use server::{Server, ServerInput, ServerOutput};
pub use server_invite::ServerInvite;
pub use timers::{T1, T2, T4, TRYING_AFTER, Timer, Timers};
