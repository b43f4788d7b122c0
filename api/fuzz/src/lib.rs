//! What must hold for any credential of a request, as functions that panic when it does not.
//!
//! libFuzzer calls them (`targets/`), and so does `api/tests/fuzz_targets.rs` on a stable compiler. The files that read
//! the credentials are compiled in by their path: the face itself shows them to no other code.
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
