//! The program from a shell: its output, its stream, and its exit status.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod analyze;
mod book;
mod captures;
mod check;
#[path = "../common/chosen.rs"]
mod chosen;
#[path = "../common/database.rs"]
mod database;
mod documents;
mod excerpts;
mod phone;
#[path = "../common/receiver.rs"]
mod receiver;
#[path = "../common/records.rs"]
mod records;
mod self_test;
#[path = "../common/site.rs"]
mod site;
mod top;
mod usage;
