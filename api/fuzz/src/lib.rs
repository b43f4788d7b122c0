//! Properties that hold for any credential of a request, as functions that panic on a violation.
//!
//! libFuzzer calls them (`targets/`), and so does `api/tests/fuzz_targets.rs` on a stable compiler. The source files of
//! the parsers are compiled in by path, because the API crate does not export them.
#![allow(dead_code, unreachable_pub, reason = "each of the two callers uses a part")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "to panic is what a target is for"
)]

mod credentials;
#[path = "../../src/auth/key_form.rs"]
mod key_form;
#[path = "../../src/auth/token.rs"]
mod token;

pub use credentials::{api_key, jwt};
