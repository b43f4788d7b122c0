//! The properties that hold for any URL of a tenant, as a function that panics when one is violated.
//!
//! libFuzzer calls it (`targets/`), and so does `tests/fuzz_targets.rs` on a stable compiler. The policy is included by
//! its path, so that the fuzz target does not build the complete engine with its databases.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "the target uses a part")]

mod outbound_http;
mod webhook_url;

pub use webhook_url::webhook_url;
