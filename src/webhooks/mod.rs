//! Webhooks: events sent to other hosts, signed, retried for about 15 hours; a repeated delivery has the same id.
//!
//! ```text
//! outbox ──hand out──► deliveries ──due──► scheduler: who may send now ──claim (lease)──► POST ──settle──► …
//!          (one transaction with the place in the log)                     (ten attempts, schedule)
//! ```
//!
//! [`worker`] is the driver: it owns the clock, the tasks and the store's calls. [`scheduler`] distributes places
//! among webhooks and [`schedule`] decides when to try again; both are pure. [`service`] is the API's port. A
//! delivery may be received more than once: after a crash, or when a response is lost. It then has the same
//! `webhook-id`, which is the event's.

pub mod counters;
pub mod post;
pub mod schedule;
pub mod scheduler;
pub mod service;
pub mod signing;
pub mod worker;
