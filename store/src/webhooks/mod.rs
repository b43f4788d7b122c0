//! Webhooks, their waiting deliveries, and the result of each.
//!
//! A change of a webhook's deliveries first writes the webhook's own row: on PostgreSQL that excludes other writers
//! until the transaction ends. Several webhooks are locked in the order of their ids.

mod deliveries;
mod manage;
mod queue;
mod rows;
mod work;

pub use queue::HandedOut;
pub use work::{ClaimedDelivery, SettledAttempt, Settlement};
