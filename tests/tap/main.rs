//! Listening to the calls of others: what passes is recorded, on both databases, once, and as their own switch does.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod apart;
#[path = "../common/chosen.rs"]
mod chosen;
#[path = "../common/database.rs"]
mod database;
mod interfaces;
mod live;
#[path = "../common/records.rs"]
mod records;
#[path = "../common/site.rs"]
mod site;
mod written;
