//! Requests to URLs of tenants: where they may be sent, where never, and what hostile responses can do.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod asked;
mod call_info;
#[path = "../common/elsewhere.rs"]
mod elsewhere;
mod hostile;
mod names;
#[path = "../common/receiver.rs"]
mod receiver;
#[path = "../common/records.rs"]
mod records;
mod refused;
#[path = "../common/refused_urls.rs"]
mod refused_urls;
