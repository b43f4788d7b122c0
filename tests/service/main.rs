//! The program in operation: started, queried, reloaded, stopped, killed.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

mod backup;
#[path = "../common/chosen.rs"]
mod chosen;
mod client;
mod clock;
mod cluster;
#[path = "../common/database.rs"]
mod database;
mod descriptors;
mod drain;
mod fail2ban;
mod full_disk;
mod idempotency;
#[path = "../common/killed.rs"]
mod killed;
mod migrations;
mod package;
mod priorities;
mod probes;
#[path = "../common/receiver.rs"]
mod receiver;
#[path = "../common/records.rs"]
mod records;
mod reload;
mod secrets;
mod served;
mod service_manager;
#[path = "../common/site.rs"]
mod site;
mod tasks;
#[path = "../common/tones.rs"]
mod tones;
mod two_nodes;
