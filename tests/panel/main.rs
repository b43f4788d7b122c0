//! The panel over the HTTP API and a real database: who may see and do what.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

#[path = "../common/database.rs"]
mod database;
mod engine;
#[path = "../http/face.rs"]
mod face;
mod login;
#[path = "../common/nodes.rs"]
mod nodes;
#[path = "../http/office.rs"]
mod office;
mod people;
mod prompts;
#[path = "../common/records.rs"]
mod records;
mod settings;
mod site;
mod webhooks;
