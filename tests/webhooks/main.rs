//! Webhooks: the complete worker over a real store, with a controlled clock and scripted endpoints; and
//! over real sockets, with an engine that is killed.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod callbacks;
#[path = "../common/chosen.rs"]
mod chosen;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../service/client.rs"]
mod client;
#[path = "../common/database.rs"]
mod database;
mod kill;
#[path = "../common/killed.rs"]
mod killed;
mod lifecycle;
mod neighbours;
mod outage;
#[path = "../common/receiver.rs"]
mod receiver;
#[path = "../common/records.rs"]
mod records;
mod signatures;
#[path = "../common/site.rs"]
mod site;
mod world;
