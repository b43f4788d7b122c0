//! Webhooks: events that arrive at other machines, signed, retried for about 15 hours, and never twice under another
//! name.
//!
//! ```text
//! outbox ──hand out──► deliveries ──due──► scheduler: who may send now ──claim (lease)──► POST ──settle──► …
//!          (one transaction with the place in the log)                     (ten attempts, schedule)
//! ```
//!
//! [`worker`] is the driver: it owns the clock, the tasks and the store's calls. [`scheduler`] shares places among
//! webhooks and [`schedule`] says when to try again; both are pure. [`desk`] is what the HTTP face manages.
//! A delivery may arrive more than once: after a crash, or when an answer is lost. It then carries the same
//! `webhook-id`, which is the event's.

pub mod counters;
pub mod desk;
pub mod post;
pub mod schedule;
pub mod scheduler;
pub mod signing;
pub mod worker;
