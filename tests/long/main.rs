//! Attacks and loads that take minutes, against the engine as a process of its own: floods, avalanches, broken
//! messages, guessing, starvation and endurance. `docs/reliability.md` names the promise that each one measures.
//!
//! `cargo test --test long -- --ignored long_flood --nocapture` runs one of them. Every check prints one line of
//! JSON: `{"id":…,"pass":…,"figure":…,"limit":…}`. `docs/load-tests.md` lists the variables that set times and counts.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a program that measures may fail where it measures, reads the clock and prints its figures"
)]

mod avalanche;
mod broken;
mod bruteforce;
mod call_log;
mod check;
#[path = "../common/chosen.rs"]
mod chosen;
#[path = "../common/database.rs"]
mod database;
mod engine;
mod flood;
mod flooder;
mod junk;
mod limits;
mod media;
#[path = "../common/mutations.rs"]
mod mutations;
mod office;
mod phone;
#[path = "../common/receiver.rs"]
mod receiver;
#[path = "../common/records.rs"]
mod records;
mod sip_text;
mod slow_connections;
mod soak;
mod starved;
mod tenants;
mod tls;
#[path = "../common/tunnel.rs"]
mod tunnel;
mod unauthenticated;
mod usage;
#[path = "../../benches/cdr_log/records.rs"]
mod year;
