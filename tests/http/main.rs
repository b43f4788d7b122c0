//! The HTTP face on a real socket over a real database, one test per row of the public document.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod ai_prices;
mod auth;
mod bodies;
mod call_info;
mod call_log;
mod call_trace;
mod calls;
mod cdrs;
mod conference_rooms;
mod conferences;
mod contract_cdr;
mod contract_conversation;
mod contract_limits;
mod conversations;
#[path = "../common/database.rs"]
mod database;
mod desk;
mod document;
mod engine;
mod errors;
mod event_payloads;
mod events;
mod examples;
mod export;
mod extensions;
mod face;
mod forwarding;
mod if_match;
mod keys;
mod login;
mod meetings;
#[path = "../common/nodes.rs"]
mod nodes;
mod notes;
mod numbers;
mod office;
mod organisations;
mod paging;
mod prompts;
mod quality;
mod rates;
mod recordings;
#[path = "../common/records.rs"]
mod records;
#[path = "../common/refused_urls.rs"]
mod refused_urls;
#[path = "../common/schema.rs"]
mod schema;
mod scopes;
mod teams;
mod trunks;
mod users;
mod versioning;
mod webhooks;
mod wrong_fields;
