//! The contract of the store, on SQLite and on PostgreSQL.

mod away;
mod call_log;
mod call_recordings;
mod contract;
mod conversations;
mod dead_letters;
mod events;
mod groups;
mod idempotency;
mod money;
mod notes;
mod recordings;
mod sessions;
mod signalling;
mod text_blocks;
mod verdict_counts;

use contract::{acme, with_database, with_store};
