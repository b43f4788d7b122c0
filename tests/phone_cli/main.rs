//! `sidetone phone` as a person's script sees it: the program itself, against a whole engine.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod calls;
#[path = "../common/chosen.rs"]
mod chosen;
#[path = "../common/database.rs"]
mod database;
mod errors;
mod handset;
mod notes;
#[path = "../common/records.rs"]
mod records;
#[path = "../common/site.rs"]
mod site;
