//! Tests of the whole engine: over HTTP and SIP on real sockets, as a library and as a process.
//!
//! They are one program, because most of them wait for calls in real time: the others use the processor in the
//! meantime. `cargo test --test engine -- flows::` runs one module.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test, watches real programs by the clock and prints figures"
)]

mod command_line;
mod common;
mod demo;
mod durability;
mod flows;
mod http;
mod isolation;
mod load;
mod long;
mod outbound;
mod panel;
mod peers;
#[path = "../examples/load/program/mod.rs"]
mod program;
mod provision;
mod service;
mod store;
mod tap;
mod webhooks;
