//! Attacks and loads that take minutes, against the engine as a process of its own: floods, avalanches, broken
//! messages, guessing, starvation and endurance. `docs/reliability.md` names the promise that each one measures.
//!
//! `cargo test --test engine -- --ignored long_flood --nocapture` runs one of them. Every check prints one line of
//! JSON: `{"id":…,"pass":…,"figure":…,"limit":…}`. `docs/load-tests.md` lists the variables that set times and counts.

mod avalanche;
mod broken;
mod bruteforce;
mod call_log;
mod check;
mod engine;
mod flood;
mod flooder;
mod junk;
mod limits;
mod media;
mod office;
mod phone;
mod sip_text;
mod slow_connections;
mod soak;
mod starved;
mod tenants;
mod tls;
mod unauthenticated;
mod usage;
#[path = "../../benches/cdr_log/records.rs"]
mod year;
