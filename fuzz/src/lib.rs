//! What must hold for any URL that a tenant gives, as a function that panics when it does not.
//!
//! libFuzzer calls it (`targets/`), and so does `tests/fuzz_targets.rs` on a stable compiler. The policy is compiled in
//! by its path: the whole engine with its databases would be built for it otherwise.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "the target uses a part")]

mod outbound_http;
mod webhook_url;

pub use webhook_url::webhook_url;
