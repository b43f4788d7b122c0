//! Passive capture of other systems' calls: they are recorded once, on both databases, as by their own switch.
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
mod hangup;
mod interfaces;
mod live;
#[path = "../common/records.rs"]
mod records;
#[path = "../common/site.rs"]
mod site;
mod written;
