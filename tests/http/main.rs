//! The HTTP face on a real socket over a real database, one test per row of the public document.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod auth;
mod call_log;
mod cdrs;
#[path = "../common/database.rs"]
mod database;
mod document;
mod engine;
mod errors;
mod export;
#[path = "../common/records.rs"]
mod records;
mod versioning;
