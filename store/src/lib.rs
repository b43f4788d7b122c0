//! The database: the only crate with SQL in it, one file per aggregate.
//!
//! Statements are complete literals beside the function that runs them, in the SQL that SQLite and PostgreSQL
//! share: `$1` parameters, TEXT ids, BIGINT microseconds and money. Only lists, whose filters combine freely,
//! assemble their statements from literals. Every function that reads an organisation's data takes a `Scope`.
//! Writes of the directory go through [`WriteTransaction`], one at a time. What is written for a request that
//! must be executed once is one unit with its answer, whichever functions write it (`unit`).

mod agents;
mod ai_prices;
mod api_keys;
mod bell;
mod call_events;
mod call_info;
mod call_log;
mod call_log_query;
mod cdr_counts;
mod cdr_quality;
mod cdrs;
mod columns;
mod conversation_report;
mod conversations;
mod credit;
mod database;
mod directory;
mod events;
mod extensions;
mod failure;
mod idempotency;
mod lent;
mod listing;
mod location;
mod managed;
mod meetings;
mod nodes;
mod note_lists;
mod notes;
mod numbers;
mod one;
mod organisations;
mod plans;
mod pool;
mod probe;
mod prompts;
mod rates;
mod recordings;
mod references;
mod rooms;
mod scope;
mod search;
mod session_ends;
mod session_lists;
mod sessions;
mod sql;
mod statement;
mod teams;
mod totals;
mod trunks;
mod turns;
mod unit;
mod users;
mod vitals;
mod webhooks;
mod write;

pub use api_keys::{ApiKeyRow, ApiKeyText};
pub use bell::{Bell, Listener};
pub use database::{Store, StoreError};
pub use extensions::ExtensionRow;
pub use idempotency::IdempotencyKeys;
pub use location::{Database, Location, LocationError, PostgresUrl};
pub use managed::MakeHa1;
pub use numbers::NumberRow;
pub use organisations::OrganisationRow;
pub use probe::Schema;
pub use prompts::StoredPrompt;
pub use recordings::RecordingPlace;
pub use rooms::RoomRow;
pub use session_ends::Orphaned;
pub use trunks::{CLASH, TrunkRow};
pub use users::UserRow;
pub use webhooks::{ClaimedDelivery, HandedOut, SettledAttempt, Settlement};
pub use write::{Change, WriteTransaction};
