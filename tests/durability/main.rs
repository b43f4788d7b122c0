//! The consequences of a broken, full or slow disk, a power cut, a jump of the clock and a killed process.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

#[path = "../common/chosen.rs"]
mod chosen;
mod crash;
#[path = "../common/database.rs"]
mod database;
mod disk;
mod journal;
#[path = "../common/killed.rs"]
mod killed;
mod power_loss;
#[path = "../common/receiver.rs"]
mod receiver;
#[path = "../common/records.rs"]
mod records;
mod registrations;
#[path = "../common/room.rs"]
mod room_site;
#[path = "../common/site.rs"]
mod site;
#[path = "../common/wire.rs"]
mod wire;
